"""What a person changes about the view: messages put back, and messages that stay whatever happens."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nca.agent.window import Window
from nca.context.draft import Draft
from nca.context.plan import is_answered
from nca.context.restore import block_of, hidden_item, put_back
from nca.context.rules.untouchable import unseen, untouchable
from nca.context.stages.deduplicate import STAGE as DEDUPLICATE
from nca.context.stages.deduplicate import mend_pointers, superseded
from nca.context.stages.prune import stub_text
from nca.context.stages.truncate import cut_message
from nca.context.view import Marker, Range, Summary, hidden_by, ranges_of
from nca.errors import UsageError
from nca.messages import Message
from nca.sessions.views import CompactionRecord

COLLAPSE = "collapse"
"""The stage that a stub names which a person put there, and its record."""
COLLAPSED_TOKENS = 32
"""What is left of a message that is no tool result: its beginning."""
PINS_RATIO = 0.5
"""The share of the budget that pins may take: half of it stays for the conversation."""


@dataclass(frozen=True, slots=True)
class Pin:
    """A message that no compaction touches."""

    seq: int
    message: Message
    tokens: int


class ByHand:
    """Each change is on disk when its call returns; `undo` takes back what `expand` and `collapse` did."""

    def __init__(self, window: Window) -> None:
        self._window = window

    def expand(self, wanted: str) -> CompactionRecord | None:
        """Put the originals back for which a summary or marker stands (its id, or the beginning of it), or one
        message by its number. None where they are shown already.

        Raises UsageError where there is nothing of that name, or no room for it.
        """
        return self._show(self._ranges(wanted), "expand")

    def collapse(self, seqs: Sequence[int]) -> CompactionRecord | None:
        """Show these messages in short, as the stages would: a tool's result by its placeholder, an earlier read by a
        pointer to the later one, anything else by its beginning. None where nothing becomes shorter by that.

        Raises UsageError, and nothing has changed, where one of them is not shown or may not be touched.
        """
        window = self._window
        draft = Draft(window.history, window.meter)
        for seq in seqs:
            self._check_collapsible(seq)
        pointers = {one.seq: one.text for one in superseded(draft)}
        for seq in seqs:
            block = next(block for block in draft.blocks() if seq in block.seqs)
            message = window.history.message(seq)
            if message.role != "tool":
                cut_message(draft, block, seq, COLLAPSED_TOKENS, COLLAPSE)
                continue
            text = pointers.get(seq) or stub_text(message, window.context.prune.placeholder)
            if draft.saving(block, seq, text) > 0:
                draft.put_stub(block, seq, text, DEDUPLICATE if seq in pointers else COLLAPSE)
        mend_pointers(draft)
        view = draft.view()
        if view == window.history.view:
            return None
        before, after = window.measure().used_tokens, window.meter.used_again(window.history, view)
        return window.put_in_force(view, COLLAPSE, before, after)

    def part(self, seq: int, *, is_later: bool) -> Range:
        """The messages from `seq` on, or those before it, for a compaction of only these.

        Raises UsageError where there is no such message, or it is hidden already.
        """
        self._check_shown(seq)
        return (seq, self._window.history.head) if is_later else (1, seq - 1)

    def pins(self) -> list[Pin]:
        """What is pinned, oldest first."""
        history = self._window.history
        return [Pin(seq, history.message(seq), self._tokens(seq)) for seq in sorted(history.pins)]

    @property
    def pins_budget_tokens(self) -> int:
        return int(PINS_RATIO * self._window.budget.budget_tokens)

    def pin(self, seq: int) -> bool:
        """Protect a message, shown as it is from now on; False where it was pinned already.

        Raises UsageError where there is no such message, or the pins' budget has no room for it.
        """
        self._check(seq)
        if seq in self._window.history.pins:
            return False
        needed = self._tokens(seq) + sum(pin.tokens for pin in self.pins())
        if needed > self.pins_budget_tokens:
            raise UsageError(
                f"There is no room for message {seq} among the pins: together they would be {needed:,} tokens,"
                f" {self.pins_budget_tokens:,} at most.",
                advice="Unpin another, or pin a shorter one.",
            )
        self._show([block_of(self._window.history, seq)], "pin")
        self._window.session.pin(seq)
        self._window.history.pins = self._window.session.pins()
        return True

    def unpin(self, seq: int) -> bool:
        """False where it was not pinned. Raises UsageError where there is no such message."""
        self._check(seq)
        if seq not in self._window.history.pins:
            return False
        self._window.session.unpin(seq)
        self._window.history.pins = self._window.session.pins()
        return True

    def _ranges(self, wanted: str) -> Sequence[Range]:
        is_id = wanted in hidden_ids(self._window)
        if wanted.isdecimal() and not is_id and 1 <= int(wanted) <= self._window.history.head:
            return [block_of(self._window.history, int(wanted))]
        item = hidden_item(self._window.history.view, wanted)
        if item is None:
            ids = ", ".join(hidden_ids(self._window)) or "none is in the context"
            raise UsageError(
                f"There is no summary, marker or message {wanted!r}.", advice=f"Summaries, markers: {ids}."
            )
        return ranges_of(item)

    def _show(self, ranges: Sequence[Range], cause: str) -> CompactionRecord | None:
        window = self._window
        own = window.context.summarize
        view = put_back(window.history, ranges, ledger_tokens=own.ledger_tokens, words_tokens=own.user_turns_tokens)
        if view == window.history.view:
            return None
        before, after = window.measure().used_tokens, window.meter.used_again(window.history, view)
        if after > window.budget.budget_tokens:
            raise UsageError(
                f"There is no room for that: {after:,} tokens would be used of {window.budget.budget_tokens:,}.",
                advice="Compact first, or take a single message by its number.",
            )
        return window.put_in_force(view, cause, before, after)

    def _check(self, seq: int) -> None:
        if not 1 <= seq <= self._window.history.head:
            raise UsageError(f"There is no message {seq}.", advice=f"Valid: 1 to {self._window.history.head}.")

    def _check_shown(self, seq: int) -> None:
        self._check(seq)
        item = hidden_by(self._window.history.view, seq)
        if item is not None:
            kind = "summary" if isinstance(item, Summary) else "marker"
            raise UsageError(
                f"Message {seq} is hidden already: {kind} {item.id} stands for it.",
                advice=f"/context expand {seq} puts it back.",
            )

    def _check_collapsible(self, seq: int) -> None:
        self._check_shown(seq)
        history = self._window.history
        if seq in history.pins:
            raise UsageError(f"Message {seq} is pinned.", advice=f"/context unpin {seq} lets it go.")
        kept = untouchable(history) | unseen(history)
        if is_answered(history):
            kept.discard(history.newest_user or 0)
        if seq in kept:
            why = "is a system message" if history.message(seq).role == "system" else "is still needed as it is"
            raise UsageError(f"Message {seq} {why}.")

    def _tokens(self, seq: int) -> int:
        return self._window.meter.scaled(self._window.history.run_tokens(seq, seq))


def hidden_ids(window: Window) -> list[str]:
    """The ids of the summaries and markers in the view, oldest first."""
    return [item.id for item in window.history.view.items if isinstance(item, Summary | Marker)]
