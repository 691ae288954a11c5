"""The part of `nca bench` about the compactions that a session has had: what each lost, in the person's own words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nca.library.losses import CompactionLoss, LostFact

_COMPACTIONS = 12
"""Compactions shown one by one; --json and --html have all."""
_LISTED = 8
"""Lost facts listed for each compaction; --json and --html have all."""
_FACT_CHARS = 100
_SINGULAR = {"words": "message", "files": "file", "errors": "error"}


def lines(agent: str, compactions: Sequence[CompactionLoss]) -> Iterator[str]:
    from nca.terminal.render.humanize import counted
    from nca.terminal.render.sanitize import one_line

    times = "once" if len(compactions) == 1 else counted(len(compactions), "time")
    yield f"{one_line(agent)} compacted this session {times}. In the first request after each, word for word:"
    for one in compactions[:_COMPACTIONS]:
        yield ""
        yield from _lines_of(agent, one)
    if len(compactions) > _COMPACTIONS:
        yield ""
        yield f"… and {len(compactions) - _COMPACTIONS:,} more (--json and --html have all)"


def _lines_of(agent: str, one: CompactionLoss) -> Iterator[str]:
    from nca.library.losses import KINDS, column_of, nca_size, size_and_cost, would_have_kept

    yield f"compaction {one.number}, after message {one.after_message:,}: {size_and_cost(one)}"
    if one.is_unreadable:
        yield "  Its summary is encrypted or missing, so what it kept cannot be known."
        return
    if not one.kinds:
        yield "  Nothing had been stated yet: no message that you typed, no changed file, no error."
        return
    yield f"  {'':<20}{'stated':>8}{'before':>8}{'after':>8}{'reworded':>10}{column_of(agent):>10}"
    for kind, count in one.kinds.items():
        numbers = f"{count.stated:>8,}{count.before:>8,}{count.after:>8,}{count.reworded:>10,}{count.with_nca:>10,}"
        yield f"  {KINDS[kind]:<20}{numbers}"
    yield f"  {nca_size(one)}"
    gone = [fact for fact in one.lost if not fact.is_reworded]
    if gone:
        kept = sum(fact.with_nca for fact in gone)
        yield f"  lost, neither word for word nor reworded: {len(gone):,}; {would_have_kept(agent, len(gone), kept)}"
        yield from map(_fact_line, gone[:_LISTED])
        if len(gone) > _LISTED:
            yield f"    … and {len(gone) - _LISTED:,} more (--json and --html have all)"


def _fact_line(fact: LostFact) -> str:
    from nca.terminal.render.sanitize import one_line

    text = one_line(fact.text)
    text = text if len(text) <= _FACT_CHARS else text[: _FACT_CHARS - 1] + "…"
    return f"    {'' if fact.with_nca else '(nca too) '}{_SINGULAR[fact.kind]} in message {fact.seq}: {text}"
