"""Trim turns: the oldest half of the complete turns goes to one summary.

It is due above `context.max_turns` complete turns, and by name as a stage (`nca.compat.presets`). Whoever
commits the compaction adds the summary to the day's memory file.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

from nca.context.draft import Block, Draft, covered
from nca.context.history import complete_turns
from nca.context.record.compose import plain_record
from nca.context.stages.summarize import summarize_range
from nca.context.stages.truncate import truncated
from nca.context.summary import SummaryFailure, SummaryJob, SummaryReply, SummaryRequest, Written

MEMORY_TOKENS = 2_000
"""Raw tokens of the text for the day's memory file."""


@dataclass(frozen=True, slots=True)
class Trimmed:
    """The trimmed part, in a few lines; `written` is None if the turns were too small for a summary."""

    text: str
    written: Written | None


def trim(
    draft: Draft, job: SummaryJob, *, fewest: int = 2, most: int = 0, target_tokens: int = 0
) -> Generator[SummaryRequest, SummaryReply | SummaryFailure, Trimmed | None]:
    """Replace the oldest half of the complete turns; None, and nothing changed, if nothing of them may go.

    fewest  complete turns that there must be
    most    halve again while there are more than this; 0: once
    target_tokens  see `summarize_range`
    """
    older = _older_half(draft, fewest, most)
    if sum(block.raw for block in older) == 0:
        return None
    room = min(sum(block.raw for block in older), MEMORY_TOKENS)
    note = plain_record(draft.history, covered(older), room)
    written = yield from summarize_range(draft, job, older, target_tokens)
    if written is not None:
        return Trimmed("\n\n".join(text for text in (written.prose, note) if text), written)
    # Turns smaller than any summary of them.
    draft.replace(older, truncated(draft.marker_id(), older))
    return Trimmed(note, None)


def _older_half(draft: Draft, fewest: int, most: int) -> list[Block]:
    shown = (draft.history.entries[seq - 1] for block in draft.blocks() for seq in block.seqs)
    complete = complete_turns(shown, draft.history.pins)
    if len(complete) < max(2, fewest):
        return []
    going = len(complete) // 2
    # A turn that begins in a locked step stays, however old it is.
    locked = {seq for block in draft.blocks() if block.is_locked for seq in block.seqs}
    while most and len(complete) - sum(seq not in locked for seq in complete[:going]) > most:
        if going == len(complete) - 1:
            break
        going += (len(complete) - going) // 2
    first_kept = complete[going]
    return [block for block in draft.blocks() if block.last < first_kept and not block.is_locked]
