"""Rank messages by who said what: for `/context`, and for a summarizer with a small window."""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import dataclass

from nca.context.file_reads import only_reads
from nca.messages import Entry, Message

PINNED = (1.0, "pinned")
SYSTEM = (1.0, "a system message")
WORDS = (0.9, "your words")
FAILED = (0.7, "a failed call")
ANSWER = (0.6, "an answer")
EFFECT = (0.5, "a call that may have changed something")
OUTPUT = (0.3, "tool output")
REMARK = (0.2, "said between calls")
SYNTHETIC = (0.2, "added by nca")

Rank = tuple[float, str]


@dataclass(frozen=True, slots=True)
class Importance:
    """`score` is 0 … 1; `reasons` say in a few words why."""

    score: float
    reasons: tuple[str, ...]


def importances(entries: Iterable[Entry], pins: Set[int] = frozenset()) -> dict[int, Importance]:
    """By seq. The scores are ranks, not measurements."""
    found: dict[int, Importance] = {}
    for entry in entries:
        score, reason = PINNED if entry.seq in pins else _rank(entry.message)
        found[entry.seq] = Importance(score, (reason,))
    return found


def _rank(message: Message) -> Rank:
    if message.role == "system":
        return SYSTEM
    if message.role == "user":
        return SYNTHETIC if message.is_synthetic else WORDS
    if message.role == "tool":
        return FAILED if message.is_error else OUTPUT
    if not message.tool_calls:
        return ANSWER
    return REMARK if all(map(only_reads, message.tool_calls)) else EFFECT
