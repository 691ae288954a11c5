"""Truncate: hide the oldest turns behind a marker, and cut contents as a last resort."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil

import msgspec

from nca.config.schema import TruncateSettings
from nca.context.admission import is_whole, without_middle
from nca.context.draft import Block, Draft, Part, covered
from nca.context.record.past import is_record
from nca.context.summary import cut_text
from nca.context.tokens import message_tokens, text_tokens
from nca.context.view import Marker, Summary, how_to_recall, looked_up
from nca.messages import Message
from nca.wire import content_text

TRUNCATED = "[Earlier conversation history was truncated to fit within context limits]"
"""NeuroLink's marker; the recall hint for its messages follows it."""
FIRST_EXCHANGE_SHARE = 10
"""The first exchange stays only while it costs at most a tenth of the budget."""
SMALLEST_CONTENT_TOKENS = 24
"""Contents are not cut below this: less says nothing."""
MARKER_TOKENS = 32
"""Raw tokens of a marker: smaller messages are not hidden behind one."""
CUTTING = ("truncate", "shorten")
"""The stages that show a message's beginning and end."""


def truncate(draft: Draft, settings: TruncateSettings, *, target_tokens: int, budget_tokens: int) -> None:
    """Hide whole turns, oldest first; then steps of the turn in progress; then cut contents."""
    turns, marker_id = draft.turns(), draft.marker_id()
    first = turns[0] if turns else []
    keeps_first = (
        len(turns) > 1 and draft.meter.scaled(sum(b.raw for b in first)) * FIRST_EXCHANGE_SHARE <= budget_tokens
    )
    older = turns[1 if keeps_first else 0 : -1]
    current = turns[-1] if turns else []
    before = [block for block in draft.blocks() if block.turn == 0 and not block.is_locked]
    # A record of earlier messages goes last of all: it covers more than any turn does.
    records = [[block] for block in before if is_record(draft.history.message(block.first))]
    groups = [[block] for block in before if [block] not in records] + older
    passed, draft.passed_turns = draft.passed_turns, 0
    start = max(1, round((passed + len(groups)) * settings.fraction)) - passed if groups else 0
    steps = [[block] for block in current if not block.is_locked]
    # The model was working from the newest step that may go: it goes last.
    groups += steps[:-1]
    if keeps_first:
        groups.append(first)
    groups += [*steps[-1:], *records]
    if groups and draft.tokens > target_tokens:
        _hide(draft, groups, start, target_tokens, marker_id)
    if draft.tokens > target_tokens:
        _drop_old_summaries(draft, target_tokens, marker_id)
    if draft.tokens > target_tokens:
        cut_contents(draft, target_tokens)


def _hide(draft: Draft, groups: list[list[Block]], start: int, target_tokens: int, marker_id: str) -> None:
    """Hide the first `start` groups, and as many more as the target needs."""
    gone: list[Block] = []
    markers = [part for part in draft.parts if isinstance(part, Marker) and part.text]
    raw = draft.raw - sum(map(draft.part_raw, markers)) + MARKER_TOKENS
    for count, group in enumerate(groups):
        if count >= start and draft.meter.total(raw) <= target_tokens:
            break
        leaving = [block for block in group if not block.is_locked]
        gone += leaving
        raw -= sum(block.raw for block in leaving)
    if gone and sum(block.raw for block in gone) > MARKER_TOKENS:
        leaving_parts: list[Part] = [*markers, *gone]
        draft.replace(leaving_parts, truncated(marker_id, leaving_parts))


def truncated(marker_id: str, gone: Sequence[Part]) -> Marker:
    """The marker for these parts, with the call that shows them again."""
    ranges = covered(gone)
    return Marker(marker_id, ranges, f"{TRUNCATED} [{how_to_recall(ranges)}]")


def _drop_old_summaries(draft: Draft, target_tokens: int, marker_id: str) -> None:
    """Old summaries go before contents are cut, oldest first; the log keeps all their messages."""
    for part in [part for part in draft.parts if not isinstance(part, Block | Marker)][:-1]:
        if draft.tokens <= target_tokens:
            return
        markers = [other for other in draft.parts if isinstance(other, Marker) and other.text]
        draft.replace([*markers, part], truncated(marker_id, [*markers, part]))


def cut_contents(draft: Draft, target_tokens: int) -> None:
    """Cut the largest contents that may be touched until the target is met."""
    shown = [
        (block, seq)
        for block in draft.blocks()
        if block.is_unseen or not block.is_locked
        for seq in block.seqs
        if draft.history.message(seq).content
    ]
    while draft.tokens > target_tokens and shown:
        sized = [(message_tokens(_now(draft, block, seq)), block, seq) for block, seq in shown]
        largest, block, seq = max(sized, key=lambda row: (row[0], -row[2]))
        if largest <= SMALLEST_CONTENT_TOKENS + 8:
            return
        excess = int((draft.tokens - target_tokens) / draft.meter.calibration.ratio)
        keep = max(SMALLEST_CONTENT_TOKENS, min(largest // 2, largest - excess // max(1, len(shown) // 4)))
        if not cut_message(draft, block, seq, keep):
            shown.remove((block, seq))


def cut_summaries(draft: Draft, limit_tokens: int) -> None:
    """Cut summaries that were written for a larger window; each keeps its prose for the next summary."""
    for part in [part for part in draft.parts if isinstance(part, Summary)]:
        excess = ceil((draft.tokens - limit_tokens) / draft.meter.calibration.ratio)
        if excess <= 0:
            return
        most = max(SMALLEST_CONTENT_TOKENS, text_tokens(part.text) - excess)
        text = cut_text(part.text, most, how_to_recall(part.ranges))
        if len(text) < len(part.text):
            draft.replace([part], msgspec.structs.replace(part, text=text))


def cut_message(draft: Draft, block: Block, seq: int, keep_tokens: int, stage: str = "truncate") -> bool:
    """Show only the beginning and the end of a message, its attachments as text; False if that saves nothing."""
    stub = block.stubs.get(seq)
    # A cut text is cut again from the whole, so that it says how much of that is missing.
    now = draft.history.message(seq) if stub is not None and stub.stage in CUTTING else _now(draft, block, seq)
    whole = content_text(now.content)
    wanted = looked_up(now, seq)
    has_lines = now.role == "tool" and wanted == str(seq) and is_whole(whole, seq)
    text = without_middle(whole, keep_tokens, wanted, has_lines=has_lines)
    if draft.saving(block, seq, text) <= 0 or (text == whole and now.attachments):
        return False
    draft.put_stub(block, seq, text, stage)
    return True


def _now(draft: Draft, block: Block, seq: int) -> Message:
    return draft.shown(block)[seq - block.first]
