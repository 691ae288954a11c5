"""A provider failure, and the expected outcome of the turn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from nca.testing.faults import BEGUN, Fault, once

Row = Literal["user", "assistant", "interrupted", "tool"]
"""A message in the log; "interrupted" is an answer that broke off and was kept."""


@dataclass(frozen=True, slots=True)
class Case:
    """One fault, and what must come of one turn against it (`nca run`, or a line in the chat).

    run            answers each request
    outcome        "answer": the turn ends with the answer; "length", "content_filter": with a part of it; "error": with
                   one clear line
    says           text that is reported besides the answer: the error, a notice, a compaction (any case)
    shown          text of the answer that the user has seen by the end, if it is not the script's own
    requests       number of requests in the turn, those for summaries included
    rows           the messages stored; () for those that the outcome implies (see `stored`)
    results        text of each tool result, in order
    compactions    number of compactions that took effect
    wait_seconds   the wait that the provider asked for before the second try; None: it did not say
    exit_code      of `nca run`
    settings       settings that keep the case short, where the default would mean a long wait
    reason         why the turn ended, if the outcome does not say it
    needs_talk     it fails only after a long conversation (some 8,000 tokens)
    """

    about: str
    run: Fault
    outcome: Literal["answer", "length", "content_filter", "error"] = "error"
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
    reason: str = ""

    @property
    def stored(self) -> tuple[Row, ...]:
        """The turn's messages in the log, in order."""
        if self.rows:
            return self.rows
        if self.outcome in ("answer", "content_filter"):
            return ("user", "assistant")
        return ("user", "interrupted") if self.shown else ("user",)

    @property
    def exit_code(self) -> int:
        return {"answer": 0, "error": self.error_code}.get(self.outcome, 1)


def breaks(about: str, run: Fault, says: str = "") -> Case:
    """An answer that breaks off after its beginning, and again when the model is asked to go on."""
    rows: tuple[Row, ...] = ("user", "interrupted", "user", "interrupted")
    return Case(about, run, says=says, shown=BEGUN, requests=2, rows=rows)


def breaks_once(about: str, run: Fault) -> Case:
    rows: tuple[Row, ...] = ("user", "interrupted", "user", "assistant")
    return Case(about, once(run), "answer", "asked to continue", requests=2, rows=rows)
