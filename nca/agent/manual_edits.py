"""Views that a person asks for: messages restored from the log, and messages shortened."""

from __future__ import annotations

from collections.abc import Sequence

from nca.agent.window import Window
from nca.compat.stages import keep_text
from nca.context.draft import Draft
from nca.context.history import History
from nca.context.plan import is_answered
from nca.context.restore import block_of, hidden_item
from nca.context.rules.untouchable import COLLAPSE, unseen, untouchable
from nca.context.stages.deduplicate import fix_pointers, superseded
from nca.context.stages.prune import COPY, stub_text
from nca.context.stages.truncate import cut_message
from nca.context.view import Marker, Range, Summary, View, hidden_by, is_in, ranges_of, without_ranges
from nca.errors import UsageError
from nca.humanize import check_kind, natural

FEWEST_RESTORED_TURNS = 3
"""CowAgent restores max(3, max_context_turns / 6) turns."""
COLLAPSED_TOKENS = 32
"""The part that stays of a message other than a tool result: its beginning."""


def named_ranges(window: Window, wanted: str) -> Sequence[Range]:
    """The messages of a summary's or marker's id (or the beginning of one), or of a message's number.

    Raises UsageError if there is nothing of that name.
    """
    check_kind(wanted, str, "wanted", "the id of a summary or marker, or a message's number, as text")
    view, head = window.history.view, window.history.head
    ids = [item.id for item in view.items if isinstance(item, Summary | Marker)]
    number = natural(wanted)
    if number is not None and wanted not in ids and 1 <= number <= head:
        check_exists(window.history, number)
        return [block_of(window.history, number)]
    item = hidden_item(view, wanted)
    if item is None:
        listed = ", ".join(ids) or "none is in the context"
        raise UsageError(f"There is no summary, marker or message {wanted!r}.", advice=f"Summaries, markers: {listed}.")
    return ranges_of(item)


def collapsed(window: Window, seqs: Sequence[int]) -> View:
    """The view with these messages shortened, as the stages would shorten them.

    Raises UsageError if one of them is not shown or may not be touched.
    """
    check_kind(seqs, Sequence, "seqs", "a list of messages' numbers")
    for seq in seqs:
        _check_collapsible(window.history, seq)
    draft = Draft(window.history, window.meter)
    _collapse(window, draft, seqs)
    fix_pointers(draft, window.context.prune.placeholder)
    return draft.view()


def collapsible(window: Window) -> set[int]:
    """The messages that `collapsed` would shorten."""
    draft, kept = Draft(window.history, window.meter), _kept(window.history) | window.history.pins
    seqs = [seq for block in draft.blocks() for seq in block.seqs if seq not in kept]
    return {seq for seq, saved in _collapse(window, draft, seqs).items() if saved > 0}


def _collapse(window: Window, draft: Draft, seqs: Sequence[int]) -> dict[int, int]:
    """Shorten these messages in the draft; the raw tokens that each saves."""
    placeholder = window.context.prune.placeholder
    homes = {seq: block for block in draft.blocks() for seq in block.seqs}
    pointers = {one.seq: one.text for one in superseded(draft)}
    saved = {}
    for seq in seqs:
        block, message, before = homes[seq], window.history.message(seq), draft.raw
        if message.role != "tool":
            cut_message(draft, block, seq, COLLAPSED_TOKENS, COLLAPSE)
        else:
            text = pointers.get(seq) or stub_text(message, seq, placeholder)
            if draft.saving(block, seq, text) > 0:
                draft.put_stub(block, seq, text, COPY if seq in pointers else COLLAPSE)
        saved[seq] = before - draft.raw
    return saved


def cleared(window: Window) -> View:
    """The view that shows nothing."""
    head, aside = window.history.head, window.history.view.aside
    return View((Marker(f"clear{head}", without_ranges([(1, head)], aside), ""),), head + 1, aside)


def text_only(window: Window) -> View:
    """The view with only the text of the newest turns, and nothing of the others."""
    draft = Draft(window.history, window.meter)
    newest = max(FEWEST_RESTORED_TURNS, window.context.max_turns // 6)
    keep_text(draft, newest, f"restore{window.history.head}")
    return draft.view()


def no_message(seq: int, last: int) -> UsageError:
    """`last`: the number of the newest message, 0 if there is none."""
    valid = f"Valid: 1 to {last}." if last else "The session has no messages yet."
    return UsageError(f"There is no message {seq}.", advice=valid)


def check_exists(history: History, seq: int) -> None:
    """Raise UsageError if the conversation has no such message."""
    check_kind(seq, int, "seq", "a message's number")
    if not 1 <= seq <= history.head:
        raise no_message(seq, history.head)
    if is_in(seq, history.view.aside):
        raise UsageError(f"Message {seq} is no longer part of the conversation.", advice="/rewind goes back to it.")


def check_shown(history: History, seq: int) -> None:
    """Raise UsageError if there is no such message, or a summary or marker hides it."""
    check_exists(history, seq)
    item = hidden_by(history.view, seq)
    if item is not None:
        kind = "summary" if isinstance(item, Summary) else "marker"
        raise UsageError(
            f"Message {seq} is already hidden: {kind} {item.id} covers it.",
            advice=f"/context expand {seq} puts it back.",
        )


def _check_collapsible(history: History, seq: int) -> None:
    check_shown(history, seq)
    if seq in history.pins:
        raise UsageError(f"Message {seq} is pinned.", advice=f"/context unpin {seq} lets it go.")
    if seq in _kept(history):
        why = "is a system message" if history.message(seq).role == "system" else "is still needed as it is"
        raise UsageError(f"Message {seq} {why}.")


def _kept(history: History) -> set[int]:
    """The messages that nobody may shorten now, beside the pins."""
    kept = untouchable(history) | unseen(history)
    if is_answered(history):
        kept.discard(history.newest_user or 0)
    return kept
