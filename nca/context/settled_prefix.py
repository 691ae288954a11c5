"""Find messages so old that they are certain to be hidden, so that no stage has to look at them.

So a compaction costs what is kept, however long the log is. The view is the one that a look at every message gives,
except in three cases: an old read stays if only a read in here makes it superfluous; a broken log may lose one turn
more, because it is repaired later; a short log may lose one turn more or less, because stages count a stretch as a
whole. The view is never larger than that one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from nca.config.schema import ContextSettings
from nca.context import policy
from nca.context.budget import Budget
from nca.context.history import History
from nca.context.meter import Meter
from nca.context.tokens import MESSAGE_TOKENS
from nca.messages import Entry

BY_SIZE = frozenset({"prune", "deduplicate", "summarize", "truncate"})
"""Stages that act while there is too much, and take the oldest first; others may look at any message."""
HIDING = frozenset({"summarize", "truncate"})
RECENT_SHARE = 1.1
"""The newest messages hold this much more than the target, because repairs and estimates may take some away."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """Messages first … last: `turns` whole turns or more, counted no further than needed for the comparison."""

    first: int
    last: int
    turns: int


def recent_raw(
    history: History,
    meter: Meter,
    budget: Budget,
    settings: ContextSettings,
    target_ratio: float,
    target_tokens: int = 0,
) -> int:
    """Raw tokens that the newest messages must hold so that older ones cannot stay; 0 if no stage hides the oldest.

    target_tokens  a target given beside the ratio; 0: none
    """
    stages = set(settings.stages)
    if settings.max_turns or not stages <= BY_SIZE or not stages & HIDING:
        return 0
    staying = {seq for seq in (history.newest_user, *history.pins) if seq and seq <= history.head}
    fixed = meter.fixed_raw + sum(history.run_tokens(seq, seq) for seq in staying)
    target = max(target_tokens, policy.target_tokens(budget, meter.total(fixed), target_ratio))
    return int(RECENT_SHARE * target / meter.calibration.ratio)


def settled_stretches(history: History, first: int, recent_raw: int, locked: Iterable[int]) -> list[Stretch]:
    """The stretches of messages from `first` on that are certain to go, oldest first; none if there are none.

    recent_raw  raw tokens that the messages after them hold at least, whatever of their results is cleared
    locked    seqs that stay; their turns are not part of a stretch
    """
    horizon, recent_turns = _horizon(history, first, recent_raw)
    if not horizon:
        return []
    entries = history.entries
    start = _next_turn(entries, first, horizon)
    found: list[Stretch] = []
    for seq in [*sorted(seq for seq in locked if start <= seq < horizon), horizon]:
        if seq < start:
            continue
        end = seq if seq == horizon else _turn_of(entries, seq, start)
        if end > start:
            found.append(Stretch(start, end - 1, _turns(entries, start, end - 1, recent_turns + 2)))
        if seq < horizon:
            start = _next_turn(entries, seq + 1, horizon)
    return found


def _horizon(history: History, first: int, recent_raw: int) -> tuple[int, int]:
    """The seq at which the near part begins, and the person's messages in it; 0 if everything is near."""
    left, turns = recent_raw, 0
    for seq in range(history.head, first, -1):
        message = history.message(seq)
        if message.role == "tool":
            continue
        if message.content or message.tool_calls:
            left -= history.run_tokens(seq, seq) - MESSAGE_TOKENS
        turns += message.role == "user"
        if left < 0 and _begins_turn(history.entries, seq):
            return seq, turns
    return 0, 0


def _begins_turn(entries: Sequence[Entry], seq: int) -> bool:
    """Whether a person speaks here, and nothing before it is waiting for anything: always a legal cut."""
    message, before = entries[seq - 1].message, entries[seq - 2].message
    is_person = message.role == "user" and not message.is_synthetic
    return is_person and before.role == "assistant" and not before.tool_calls and bool(before.text.strip())


def _next_turn(entries: Sequence[Entry], seq: int, end: int) -> int:
    """The first seq after `seq` at which a turn begins; `end` if none does before that."""
    return next((place for place in range(max(seq, 2) + 1, end) if _begins_turn(entries, place)), end)


def _turn_of(entries: Sequence[Entry], seq: int, start: int) -> int:
    """The beginning of a message's turn; `start` if that is nearer."""
    return next((place for place in range(seq, start, -1) if _begins_turn(entries, place)), start)


def _turns(entries: Sequence[Entry], first: int, last: int, most: int) -> int:
    found = 0
    for seq in range(last, first - 1, -1):
        found += entries[seq - 1].message.role == "user"
        if found >= most:
            break
    return found
