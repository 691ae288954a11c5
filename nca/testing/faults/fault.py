"""What a script of the provider is: how it fails, and what must come of it in a turn."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from nca.testing.http_exchange import Exchange
from nca.testing.script import is_summary_request

Run = Callable[[Exchange], None]
Row = Literal["user", "assistant", "interrupted", "tool"]
"""A message in the log; "interrupted" is an answer that broke off and was kept."""

BEGUN = "The beginning of"
"""What a script that breaks off says before."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One script, and what must come of one turn against it (`nca run`, or a line in the chat).

    run            answers each request; `exchange.attempt` counts them
    outcome        "answer": the turn ends well, "error": with one clear line
    says           text of what is said beside the answer: the error, a notice, a compaction (any case)
    shown          text of the answer that a person has seen by the end, where it is not the script's own
    requests       how many reach the provider in the turn, those for summaries too
    rows           the messages stored, "" for those that the outcome implies (see `stored`)
    results        text of each tool result, in order
    compactions    how many are put in force
    wait_seconds   what the provider asked to wait before the second try; None: it did not say
    exit_code      of `nca run`
    settings       what must be set, where waiting for a default would take long
    needs_talk     it fails only behind a long conversation (some 8,000 tokens), or has nothing to fail at without one
    """

    about: str
    run: Run
    outcome: Literal["answer", "error"] = "error"
    says: str = ""
    shown: str = ""
    requests: int = 1
    rows: tuple[Row, ...] = ()
    results: tuple[str, ...] = ()
    compactions: int = 0
    wait_seconds: float | None = None
    settings: Mapping[str, str] = field(default_factory=dict)
    needs_talk: bool = False
    error_code: int = 3

    @property
    def stored(self) -> tuple[Row, ...]:
        """The turn's messages in the log, in order."""
        if self.rows:
            return self.rows
        if self.outcome == "answer":
            return ("user", "assistant")
        return ("user", "interrupted") if self.shown else ("user",)

    @property
    def exit_code(self) -> int:
        return 0 if self.outcome == "answer" else self.error_code


def once(fail: Run) -> Run:
    """Fail at the first request, then answer."""
    return times(1, fail)


def times(count: int, fail: Run) -> Run:
    """Fail at the first `count` requests, then answer."""

    def run(exchange: Exchange) -> None:
        (fail if exchange.attempt <= count else Exchange.reply)(exchange)

    return run


def wants_summary(exchange: Exchange) -> bool:
    """Whether a request is a summarizer's, and not the talk's."""
    return is_summary_request(exchange.request)
