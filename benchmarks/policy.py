"""When to compact and how far, chosen by simulation: python -m benchmarks.policy [FOLDER]

Each policy (stages, target, threshold) replays every session request by request in every window that the session fills
twice, by nca's own replay. Code writes the records. FOLDER has transcripts; default: $NCA_TRANSCRIPTS. The sessions of
the tests and a generated one come with them.
"""

from __future__ import annotations

import os
import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

from benchmarks import judge, once
from benchmarks.extractors import facts, sentences
from benchmarks.material import coding_session
from benchmarks.peers.side import text_of
from benchmarks.recorded import WINDOWS as SMALL_WINDOWS
from benchmarks.recorded import readable
from benchmarks.replay import MODEL
from benchmarks.requests import CACHE_READ, CACHE_WRITE
from benchmarks.stated import OWN, Recorded
from benchmarks.stated import sessions_in as recorded_in
from benchmarks.summed import page_text, table
from benchmarks.tokens import tokens
from nca.config.extensions import STAGES
from nca.config.loaded import defaults
from nca.config.schema import AUTO, ContextSettings
from nca.context.budget import Budget
from nca.library.replay import replay
from nca.messages import Message
from nca.wire import message_from_dict, message_to_dict

Row = dict[str, Any]
TIMES_BUDGET = 2
GENERATED = 400
MOST_CHARS = 3_000
"""A message in the person's name that is longer is a paste."""
WORDS = "user's sentences"
KINDS = {"rules of the user": "rules", WORDS: WORDS, "paths touched": "changed paths", "error lines": "errors"}
COSTS = {"cached": "with a cache", "cached_large": "the same, 64,000 and more", "uncached": "without"}
HEAD = ("stages", "target", "threshold", *COSTS.values(), "compactions", *KINDS.values(), "stated facts")
CHOSEN = ("target_ratio", "compact_threshold")
LARGE_WINDOW = 64_000


@dataclass(frozen=True, slots=True)
class Policy:
    """What a replay is run with; the defaults are nca's own."""

    target_ratio: float | str = ContextSettings().target_ratio
    compact_threshold: float | str = ContextSettings().compact_threshold
    stages: tuple[str, ...] = STAGES

    @property
    def values(self) -> Row:
        return {
            "context.stages": self.stages,
            "context.target_ratio": self.target_ratio,
            "context.compact_threshold": self.compact_threshold,
        }


POLICIES = (
    *(Policy(target) for target in (AUTO, 0.20, 0.30, 0.50, 0.60)),
    *(Policy(compact_threshold=threshold) for threshold in (0.60, 0.70, 0.80, 0.90)),
    Policy(stages=("summarize", "truncate")),
    Policy(stages=("prune", "summarize", "truncate")),
    Policy(stages=("deduplicate", "summarize", "truncate")),
)


@dataclass(slots=True)
class Session:
    """A conversation, and by number of messages what had been said by then."""

    name: str
    rows: Sequence[Row]
    said: dict[int, dict[str, list[str]]] = field(default_factory=dict)

    def facts(self, head: int) -> dict[str, list[str]]:
        """By kind, what can be lost of the first `head` messages."""
        if head not in self.said:
            rows = self.rows[:head]
            found = {**facts(rows), WORDS: list(_said(rows))}
            self.said[head] = {kind: found[kind] for kind in KINDS}
        return self.said[head]


def simulated(
    folders: Sequence[Path], policies: Sequence[Policy] = POLICIES, windows: Sequence[int] = once.WINDOWS
) -> Iterator[Row]:
    """For each policy: costs, number of compactions, and what can be read right after them, over all cases."""
    cases = [
        (session, window)
        for session in _sessions(folders)
        for window in windows
        if tokens(session.rows) >= TIMES_BUDGET * Budget.of(window).budget_tokens
    ]
    played = [one for folder in folders for one in recorded_in(folder)]
    for policy in policies:
        found = [_replayed(session, window, policy) for session, window in cases]
        yield {
            "stages": list(policy.stages),
            "target_ratio": policy.target_ratio,
            "compact_threshold": policy.compact_threshold,
            "cases": len(cases),
            "sessions": len({session.name for session, _ in cases}),
            "cached": statistics.geometric_mean(row["cached"] for row in found),
            "cached_large": statistics.geometric_mean(
                row["cached"] for row, (_, window) in zip(found, cases, strict=True) if window >= LARGE_WINDOW
            ),
            "uncached": statistics.geometric_mean(row["uncached"] for row in found),
            "compactions": sum(row["compactions"] for row in found),
            "kept": {
                kind: statistics.mean(row["kept"][kind] for row in found if kind in row["kept"]) for kind in KINDS
            },
            "stated": _stated(played, policy),
        }


def policies(figures: Mapping[str, Any]) -> Iterator[str]:
    """The page's section; nothing where it was not measured."""
    found = figures.get("policies")
    if not found:
        return
    yield "## When to compact, and how far"
    yield (
        f"nca's own settings, chosen by this simulation: {found[0]['sessions']} sessions in every window that they fill"
        f" at least twice, {found[0]['cases']} cases, each replayed request by request; code writes the records."
        " The costs are geometric means, as shares of sending the whole history each time. *With a cache*: as above,"
        " over all cases and over those in windows of 64,000 tokens and more. *Without*: a model that reads every"
        " request anew, such as a local one. The other columns say what can be read right after a compaction, on the"
        " mean over all cases; stated facts are those of the sessions played by hand, over all requests in windows of"
        " 8,000 to 24,000 tokens. Errors that were fixed are among the errors. The first row is what nca does."
        " Not independent of nca: the costs are counted by its own estimate, and the settings were chosen on these"
        " sessions."
    )
    yield table(HEAD, [_cells(row, found[0]) for row in found])
    yield (
        "A lower target costs less with a cache and without, and keeps less: of what the model and the tools said, and"
        " in small windows of the user's words too, so the default is higher there. No compaction aims below what"
        " cannot shrink plus the same share of the rest, up to half of it. The stages make no difference to the cost."
        " A lower threshold makes more compactions, and each is a wait, and a call where a model writes."
    )


def _cells(row: Row, defaults: Row) -> tuple[str, ...]:
    """`defaults` is the row of nca's own settings."""
    stages = "all" if row["stages"] == list(STAGES) else ", ".join(row["stages"])
    costs = (f"{100 * row[name]:.2f}%" for name in COSTS)
    target, threshold = ("default" if row[name] == defaults[name] else f"{row[name]:g}" for name in CHOSEN)
    shares = (f"{100 * share:.1f}%" for share in (*row["kept"].values(), row["stated"]))
    return stages, target, threshold, *costs, str(row["compactions"]), *shares


def _sessions(folders: Sequence[Path]) -> Iterator[Session]:
    """Each file is one session: several talks in a file become one, as if they had been held in one chat."""
    for folder in folders:
        for name, talks in groupby(once.sessions(folder), key=lambda one: one[0].partition("/")[0]):
            rows = [row for number, (_, talk) in enumerate(talks) for row in talk if not (number and _is_system(row))]
            yield Session(name, [{**row, "content": text_of({**row, "tool_calls": ()})} for row in rows])
    yield Session("generated", coding_session(GENERATED, seed=11))


def _is_system(row: Row) -> bool:
    return bool(row["role"] == "system")


def _replayed(session: Session, window_tokens: int, policy: Policy) -> Row:
    shares: dict[str, list[float]] = {}
    before: list[Message] = []

    def watch(head: int, messages: Sequence[Message]) -> None:
        nonlocal before
        now = list(messages)
        if now[: len(before)] != before:
            kept = judge.kept(session.facts(head), [message_to_dict(message) for message in now])
            for kind, (held, total) in kept.items():
                if total:
                    shares.setdefault(kind, []).append(held / total)
        before = now

    loaded = defaults().with_values({"model.context_window": window_tokens, **policy.values}, "the benchmark")
    found = replay([message_from_dict(row) for row in session.rows], loaded, model=MODEL, watch=watch)
    sent, raw = found.with_nca, found.without.tokens
    return {
        "cached": (CACHE_READ * sent.cached_tokens + CACHE_WRITE * (sent.tokens - sent.cached_tokens)) / raw,
        "uncached": sent.tokens / raw,
        "compactions": len(found.compactions),
        "kept": {kind: statistics.mean(of_kind) for kind, of_kind in shares.items()},
    }


def _stated(played: Sequence[Recorded], policy: Policy) -> float:
    """Of the facts of the recorded sessions, the share that can be read, over all requests in small windows."""
    found = [readable(one, window, settings=policy.values) for one in played for window in SMALL_WINDOWS]
    return statistics.mean(one.share for one in found)


def _said(rows: Sequence[Row]) -> Iterator[str]:
    words = (text_of(row) for row in rows if row["role"] == "user")
    yield from dict.fromkeys(one for text in words if len(text) <= MOST_CHARS for one in sentences(text))


if __name__ == "__main__":
    given = sys.argv[1] if len(sys.argv) > 1 else os.environ.get("NCA_TRANSCRIPTS")
    print(page_text(policies({"policies": list(simulated([OWN, *([Path(given)] if given else [])]))})), end="")
