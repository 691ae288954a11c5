"""Prune: replace old tool results by a placeholder. The call, the ids and the error mark stay."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from nca.config.schema import PruneSettings
from nca.context.admission import admit_output, is_whole
from nca.context.draft import Block, Draft
from nca.context.record.steps import SEAM_TOKENS, cut_content
from nca.context.tokens import content_tokens
from nca.context.view import PASSED, looked_up
from nca.humanize import one_line
from nca.messages import Message

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


def prune(
    draft: Draft,
    settings: PruneSettings,
    *,
    target_tokens: int,
    budget_tokens: int,
    history_chars: int = 20_000,
    copies: Mapping[int, str] = MappingProxyType({}),
) -> None:
    """Clear results until the target is met, the oldest first; none if that saves little. Copies go at once.

    history_chars  longer results of earlier turns are cut to their beginning and end in any case, as CowAgent does
    copies         pointers to repeated results, by the number of their message
    """
    shorten_earlier(draft, history_chars)
    candidates = _candidates(draft, settings, budget_tokens)
    for block, seq, *_ in candidates:
        if seq in copies:
            draft.put_stub(block, seq, copies[seq], COPY)
    candidates = [one for one in candidates if one[1] not in copies]
    possible_raw = sum(saved for *_, saved in candidates)
    possible = draft.meter.scaled(possible_raw)
    needed = draft.tokens - target_tokens
    minimum = min(settings.minimum_savings_tokens, needed, budget_tokens // BUDGET_SHARE_MINIMUM)
    if possible < max(1, minimum):
        return
    for block, seq, text, _ in candidates:
        if draft.tokens <= target_tokens:
            return
        draft.put_stub(block, seq, text, "prune")


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


def _candidates(draft: Draft, settings: PruneSettings, budget_tokens: int) -> list[tuple[Block, int, str, int]]:
    """Results that may be cleared, oldest first: block, seq, placeholder and the raw tokens that it saves."""
    protected_tokens = min(settings.protect_tokens, budget_tokens // BUDGET_SHARE_PROTECTED)
    found: list[tuple[Block, int, str, int]] = []
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
            name = message.name or _tool_names(draft, block).get(message.tool_call_id, "")
            is_cleared = seq in block.stubs and block.stubs[seq].stage != SHORTENED
            if is_recent or block.is_locked or is_cleared or name in settings.protected_tools:
                continue
            text = stub_text(message, seq, settings.placeholder)
            saved = draft.saving(block, seq, text)
            if saved > 0:
                found.append((block, seq, text, saved))
    found.reverse()
    return found


def _tool_names(draft: Draft, block: Block) -> dict[str, str]:
    return {call.id: call.name for call in draft.history.message(block.first).tool_calls}
