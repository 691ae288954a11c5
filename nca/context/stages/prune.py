"""Prune: replace old tool results by a placeholder. The call, the ids and the error mark stay.

A file can be read again, and its change can be seen. What any other call has said is known from nowhere else, so its
placeholder has the line that a record would have. Where a record follows, no result has less.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from nca.config.schema import PruneSettings
from nca.context.admission import admit_output, is_whole
from nca.context.draft import Block, Draft
from nca.context.record.called import Called, came_of
from nca.context.record.steps import LEAST_RESULT_TOKENS, SEAM_TOKENS, cut_content
from nca.context.tokens import content_tokens
from nca.context.view import PASSED, looked_up
from nca.humanize import one_line
from nca.messages import Message, ToolCall

CLEARED = "[cleared: recall expand={seq}]"
"""The default of context.prune.placeholder. NeuroLink's says `[Tool result cleared]`."""
SEQ = "{seq}"
"""Stands for the message's number in a placeholder."""
COPY, VERSION = "deduplicate", "version"
"""The stages of a pointer to a later read: the later one says as much, or something else."""
FILLED = ("prune", VERSION, "shorten")
SMALLEST_FILL_TOKENS, SURE_SHARE = 100, 0.95
"""Room that is too small for a part of a result; and how much of it a cut takes that would be a little too large."""
SHORTENED = "shorten"
"""The stage that such a stub names: it may still be cleared later."""
MAX_ERROR_CHARS = 200
BUDGET_SHARE_PROTECTED = 4
"""At most a quarter of the budget is protected."""
BUDGET_SHARE_MINIMUM = 10
"""At most a tenth of the budget must be saved."""


class _Result(NamedTuple):
    """A result that may be cleared, and its placeholder."""

    block: Block
    seq: int
    placeholder: str
    called: Called

    def line(self) -> str:
        """The placeholder with the line that a record would have."""
        result = self.called.result
        is_known = self.called.is_seen or result is None or result.is_error or result.text.startswith(self.placeholder)
        return self.placeholder if is_known else f"{self.placeholder} {came_of(self.called, LEAST_RESULT_TOKENS)}"


def prune(
    draft: Draft,
    settings: PruneSettings,
    *,
    target_tokens: int,
    budget_tokens: int,
    history_chars: int = 20_000,
    copies: Mapping[int, str] = MappingProxyType({}),
    has_record: bool = False,
) -> None:
    """Clear results until the target is met, the oldest first; none if that saves little. Copies go at once.

    Whoever changed something elsewhere must know what came of it: results of such calls go last, and none where a
    record follows.

    history_chars  longer results of earlier turns are cut to their beginning and end in any case, as CowAgent does
    copies         pointers to repeated results, by the number of their message
    has_record     a stage that makes a record follows; without one the lines of results go too, if that is needed
    """
    shorten_earlier(draft, history_chars)
    results = _old_results(draft, settings, budget_tokens)
    for one in results:
        if one.seq in copies and draft.saving(one.block, one.seq, one.placeholder) > 0:
            draft.put_stub(one.block, one.seq, copies[one.seq], COPY)
    results = [one for one in results if one.seq not in copies]
    possible_raw = sum(max(0, draft.saving(one.block, one.seq, one.placeholder)) for one in results)
    needed = draft.tokens - target_tokens
    minimum = min(settings.minimum_savings_tokens, needed, budget_tokens // BUDGET_SHARE_MINIMUM)
    if draft.meter.scaled(possible_raw) < max(1, minimum):
        return
    results.sort(key=lambda one: one.called.is_effect)
    for has_line in (True,) if has_record else (True, False):
        for one in results:
            if draft.tokens <= target_tokens or (has_record and one.called.is_effect):
                return
            text = one.line() if has_line else one.placeholder
            if draft.saving(one.block, one.seq, text) > 0:
                draft.put_stub(one.block, one.seq, text, "prune")


def fill(draft: Draft, target_tokens: int, stages: Sequence[str] = FILLED) -> None:
    """Show cut results again while they fit, newest first, so that no room is left beside a placeholder."""
    cleared = [(block, seq) for block in draft.blocks() for seq, stub in block.stubs.items() if stub.stage in stages]
    for block, seq in sorted(cleared, key=lambda row: -row[1]):
        stub = block.stubs[seq]
        left = int((target_tokens - draft.tokens) / draft.meter.calibration.ratio)
        if left < SMALLEST_FILL_TOKENS:
            return
        level = left + content_tokens(stub.text) - SEAM_TOKENS
        draft.remove_stub(block, seq)
        excess = draft.tokens - target_tokens
        if excess <= 0:
            continue
        for most in (level, int(SURE_SHARE * level)):
            cut = cut_content(draft.history.message(seq), seq, most)
            if (
                cut is not None
                and draft.put_stub(block, seq, cut.text, SHORTENED if stub.stage in FILLED else stub.stage) > 0
                and draft.tokens <= target_tokens
            ):
                break
        else:
            draft.put_stub(block, seq, stub.text, stub.stage)


def shorten_earlier(draft: Draft, history_chars: int) -> None:
    """Show only the beginning and the end of the longer results of earlier turns."""
    turns = draft.turns()
    for block in (block for turn in turns[:-1] for block in turn if not block.is_locked):
        for seq in block.seqs:
            message = draft.history.message(seq)
            if message.role != "tool" or seq in block.stubs or len(message.text) <= history_chars:
                continue
            # Bytes are at least as many as characters, so the limit holds for both.
            cut = admit_output(message.text, max_bytes=history_chars, max_lines=len(message.text))
            text = cut.text
            if cut.left_out is not None:
                seam = cut.left_out.seam(seq, has_lines=is_whole(message.text, seq))
                text = text.replace(cut.left_out.seam(), seam, 1)
            if draft.saving(block, seq, text) > 0:
                draft.put_stub(block, seq, text, SHORTENED)


def stub_text(message: Message, seq: int, placeholder: str = CLEARED) -> str:
    """The stub of message `seq`: the placeholder, and the first line of an error, which a model needs.

    A message that came with such a placeholder, from an earlier compaction, stays as it is.
    """
    if message.text.startswith(placeholder.partition(SEQ)[0]):
        return message.text
    text = placeholder.replace(SEQ, looked_up(message, seq))
    said = message.text.strip() if message.is_error else ""
    return f"{text} {one_line(said.splitlines()[0], MAX_ERROR_CHARS)}" if said else text


def _old_results(draft: Draft, settings: PruneSettings, budget_tokens: int) -> list[_Result]:
    """Results that may be cleared, oldest first."""
    protected_tokens = min(settings.protect_tokens, budget_tokens // BUDGET_SHARE_PROTECTED)
    found: list[_Result] = []
    kept_results = kept_tokens = 0
    is_behind = False
    for block in reversed(draft.parts):
        if not isinstance(block, Block):
            # Before messages that are hidden in any case no result is among the newest.
            is_behind = is_behind or block.id == PASSED
            continue
        for seq in reversed(block.seqs):
            message = draft.history.message(seq)
            if message.role != "tool":
                continue
            kept_results += 1
            if kept_tokens <= protected_tokens:
                kept_tokens += draft.meter.scaled(draft.history.run_tokens(seq, seq))
            is_recent = kept_results <= settings.keep_results or kept_tokens <= protected_tokens
            is_recent = is_recent and not is_behind
            called = _called(draft, block, seq)
            name = message.name or called.call.name
            is_cleared = seq in block.stubs and block.stubs[seq].stage != SHORTENED
            if is_recent or block.is_locked or is_cleared or name in settings.protected_tools:
                continue
            found.append(_Result(block, seq, stub_text(message, seq, settings.placeholder), called))
    found.reverse()
    return found


def _called(draft: Draft, block: Block, seq: int) -> Called:
    result = draft.history.message(seq)
    calls = enumerate(draft.history.message(block.first).tool_calls)
    found = ((place, call) for place, call in calls if call.id == result.tool_call_id)
    place, call = next(found, (0, ToolCall("", result.name, "")))
    return Called(block.first, place, call, result, seq)
