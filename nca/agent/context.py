"""The context of a session: how full it is, and everything that compacts, restores or protects messages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nca.agent import manual_edits
from nca.agent.archive import Archive, Scope
from nca.agent.background import Background
from nca.agent.compaction_diff import CompactionDiff, Preview, compaction_diff, reason_asked, summary_writer
from nca.agent.compactor import CompactionOutcome
from nca.agent.context_notices import Exchange, last_exchange, unanswered, where_we_were
from nca.agent.stats import ContextStats, stats_of
from nca.agent.usage_breakdown import ContextItem, items_of, sizes_of
from nca.agent.window import Window
from nca.context.log import LogSoFar
from nca.context.policy import Action
from nca.context.restore import block_of, restored
from nca.context.retention import KeptFacts
from nca.context.rules.untouchable import COLLAPSE, is_in_work
from nca.context.view import Range, Summary, View
from nca.errors import StoreError, UsageError
from nca.messages import Entry, Message
from nca.models.catalog import ModelFacts
from nca.models.client import ModelRequest
from nca.sessions.results import Hit
from nca.sessions.view_rows import PIN, RESTORE, UNPIN
from nca.sessions.views import CompactionRecord
from nca.words import Words

PINS_RATIO = 0.5
"""The share of the budget that pins may take: half of it stays for the conversation."""


@dataclass(frozen=True, slots=True)
class Pin:
    """A message that no compaction touches."""

    seq: int
    message: Message
    tokens: int


@dataclass(frozen=True, slots=True)
class TodoList:
    """The newest list of steps that the model wrote: message `seq`, the call's arguments.

    is_in_work  it was written for one of the person's two newest requests
    """

    seq: int
    arguments: dict[str, Any]
    is_in_work: bool


class Context:
    """The context of one conversation (`Conversation.context`). Every change is on disk when its call returns."""

    def __init__(self, window: Window, compactor: Background, archive: Archive) -> None:
        self._window = window
        self._views = window.session.views
        self._compactor = compactor
        self.archive = archive

    # How full it is

    def stats(self, *, with_details: bool = True) -> ContextStats:
        """`with_details=False` leaves out the parts and the largest items, which cost a look at every shown message."""
        return stats_of(self._window, self._compactor, with_details=with_details)

    @property
    def facts(self) -> ModelFacts:
        """What is known of the model that answers, with the window in force."""
        return self._window.state.facts_in_force

    @property
    def reserve_tokens(self) -> int:
        """The part of the window that is kept free for the answer."""
        return self._window.budget.reserve_tokens

    def where_we_were(self, *, is_answer_shown: bool = False) -> tuple[str, ...]:
        """For a person who comes back: at most six lines on the task, the last step, the plan, what fails, the cost."""
        return where_we_were(self._window, self._compactor.files, is_answer_shown=is_answer_shown)

    def last_exchange(self) -> Exchange:
        """The last exchange, for a person who comes back."""
        return last_exchange(self._window)

    def unanswered(self) -> Words:
        """The person's newest message, if it has no answer and sending it again continues it; or ()."""
        return unanswered(self._window)

    def due(self) -> Action:
        """The action before the next request, if nothing is added to it: nothing, notice, compact or refuse."""
        return self._window.due()

    def items(self) -> list[ContextItem]:
        """All that the model is shown of the log, in its order, and what of it can be collapsed."""
        return items_of(self._window, manual_edits.collapsible(self._window))

    def expansion_tokens(self, wanted: str) -> int:
        """How many tokens more the next request would have after `expand`. Raises UsageError as that does."""
        return self._growth(restored(self._window.history, manual_edits.named_ranges(self._window, wanted)))

    def collapse_tokens(self, seqs: Sequence[int]) -> int:
        """How many tokens fewer the next request would have after `collapse`. Raises UsageError as that does.

        Below 0 if a count that the model reported gives way to a higher estimate.
        """
        return -self._growth(manual_edits.collapsed(self._window, seqs))

    def pin_tokens(self, seq: int) -> int:
        """The message's share of the pins' budget, in tokens: its size in the list."""
        return sizes_of(self._window, [seq])[seq]

    # Compaction

    async def compact(self, focus: str = "", only: Range | None = None) -> CompactionOutcome:
        """Compact now, or `only` these messages. Raises ContextDoesNotFit; StoreError for a reader."""
        self._window.session.refuse_reader()
        return await self._compactor.compact("manual", focus=focus, only=only)

    async def preview(self, focus: str = "", only: Range | None = None) -> Preview:
        """The preview of `compact`; nothing changes (a model may be asked for the summary)."""
        return await self._compactor.preview(focus, only)

    async def accept(self, preview: Preview) -> CompactionOutcome:
        """Put a preview in force, unless a hook forbids it.

        Raises UsageError if the view has changed since, or it would save nothing.
        """
        if reason := await self._compactor.forbidden("manual"):
            used = self._window.measure().used_tokens
            return CompactionOutcome(False, used, used, message=reason)
        return self._compactor.accept(preview)

    @property
    def is_preparing(self) -> bool:
        """A compaction is being prepared in the background."""
        return self._compactor.is_running

    # Going back and forth

    def undo(self) -> CompactionRecord | None:
        """Back to the exact view and pins before the last compaction or change; later messages stay. None if there is
        none."""
        return self._show_moved(self._views.undo(), self._views.redo)

    def redo(self) -> CompactionRecord | None:
        """Apply the last undone compaction again; None if there is none."""
        return self._show_moved(self._views.redo(), self._views.undo)

    def clear(self) -> CompactionRecord | None:
        """An empty view; the log keeps everything, and `undo` brings it back. None if it is empty already."""
        window = self._window
        return window.put_in_force(manual_edits.cleared(window), "clear") if window.history.view_tokens else None

    def restore_text(self) -> CompactionRecord | None:
        """Show only the text of the newest turns of a resumed session; None if that saves nothing."""
        window, view = self._window, manual_edits.text_only(self._window)
        saves = window.meter.used_again(window.history, view) < window.measure().used_tokens
        return window.put_in_force(view, RESTORE) if saves else None

    def history(self) -> list[CompactionRecord]:
        """Every compaction of the session, oldest first, including those that were undone."""
        return self._views.compactions()

    def diff(self, record: CompactionRecord) -> CompactionDiff:
        """The messages and facts that a compaction took and kept. Raises StoreDamaged if a view cannot be read."""
        return compaction_diff(self._window, record)

    def summary_writer(self, record: CompactionRecord) -> str:
        """Who wrote a compaction's summary (`writer_in_words`); "" if it has none."""
        return summary_writer(self._window, record)

    def reason_asked(self, record: CompactionRecord) -> str:
        """Why the model asked for a compaction; "" if it did not."""
        return reason_asked(self._window, record)

    # Single messages

    def expand(self, wanted: str) -> CompactionRecord | None:
        """Show the originals again of a summary or marker (by its id or the beginning of it), or of one message.

        None if they are shown already. Raises UsageError if there is nothing of that name, or no room for it.
        """
        return self._window.put_in_force(self._shown(manual_edits.named_ranges(self._window, wanted)), "expand")

    def collapse(self, seqs: Sequence[int]) -> CompactionRecord | None:
        """Shorten these messages: a tool result to its placeholder, an earlier read of a file to a pointer to the
        later one, anything else to its beginning. None if nothing becomes shorter.

        Raises UsageError, and changes nothing, if one of them is not shown or may not be touched.
        """
        return self._window.put_in_force(manual_edits.collapsed(self._window, seqs), COLLAPSE)

    def part(self, seq: int, *, is_later: bool) -> Range:
        """The messages from `seq` on, or those before it, for a compaction of only these.

        Raises UsageError if there is no such message, or it is hidden already.
        """
        manual_edits.check_shown(self._window.history, seq)
        return (seq, self._window.history.head) if is_later else (1, seq - 1)

    def pins(self) -> list[Pin]:
        """The pinned messages, oldest first."""
        history = self._window.history
        sizes = sizes_of(self._window, sorted(history.pins)) if history.pins else {}
        return [Pin(seq, history.message(seq), tokens) for seq, tokens in sizes.items()]

    @property
    def pins_budget_tokens(self) -> int:
        """The most that all pins may take together."""
        return int(PINS_RATIO * self._window.budget.budget_tokens)

    def pin(self, *seqs: int) -> bool:
        """Protect messages from compaction, and show their originals; False if all were pinned already.

        Raises UsageError, and changes nothing, if there is no such message, or the pins' budget has no room for them.
        """
        history = self._window.history
        new = tuple(seq for seq in self._existing(seqs) if seq not in history.pins)
        if not new:
            return False
        needed = sum(sizes_of(self._window, {*history.pins, *new}).values())
        if needed > self.pins_budget_tokens:
            which = f"message {new[0]}" if len(new) == 1 else "these messages"
            raise UsageError(
                f"There is no room for {which} among the pins: together they would take {needed:,} tokens,"
                f" {self.pins_budget_tokens:,} at most.",
                advice="Unpin another, or pin a shorter one.",
            )
        self._set_pins(self._shown([block_of(history, seq) for seq in new]), PIN, new)
        return True

    def unpin(self, *seqs: int) -> bool:
        """False if none was pinned. Raises UsageError, and changes nothing, if there is no such message."""
        gone = tuple(seq for seq in self._existing(seqs) if seq in self._window.history.pins)
        if gone:
            self._set_pins(self.view, UNPIN, gone)
        return bool(gone)

    def _existing(self, seqs: Sequence[int]) -> Iterable[int]:
        for seq in seqs:
            manual_edits.check_exists(self._window.history, seq)
        return dict.fromkeys(seqs)

    def _set_pins(self, view: View, cause: str, pins: tuple[int, ...]) -> None:
        self._window.go_to(view, cause, "manual", pins=pins)
        self._window.take_pins()

    # What there is

    @property
    def view(self) -> View:
        """The log as the model sees it."""
        return self._window.history.view

    @property
    def entries(self) -> Sequence[Entry]:
        """The whole log, as it is now; messages outside of the view are read from disk when they are asked for."""
        return LogSoFar(self._window.history.entries)

    def backwards(self) -> Iterator[Entry]:
        """The whole conversation, newest first: the log without rewound messages and side questions."""
        return self._window.history.backwards()

    @property
    def todo(self) -> TodoList | None:
        """The model's list of steps, in the view or not."""
        found = self._window.history.newest_list
        return TodoList(*found, is_in_work(self._window.history, found[0])) if found is not None else None

    def summaries(self) -> list[Summary]:
        """The summaries that the model sees now, oldest first."""
        return [item for item in self.view.items if isinstance(item, Summary)]

    def kept(self) -> Mapping[str, tuple[int, int]]:
        """What of all that was said can be read in the view as it is now, by kind. Reads messages from disk."""
        return KeptFacts(self._window.history, self.view, self._compactor.changed_files()).by_kind()

    def search(self, question: str, *, scope: Scope = "session", limit: int = 10) -> list[Hit]:
        """Search the whole log for a question, best first, compacted away or not; notes come last.

        Any text is a question; `scope="all"` looks into every session of the store. Raises StoreError, and UsageError
        if this conversation sees its own session only.
        """
        return self.archive.search(question, scope=scope, limit=limit)

    def effective_history(self) -> list[dict[str, Any]]:
        """The messages of the next request, OpenAI-shaped."""
        return self._window.request_messages()

    def next_request(self) -> ModelRequest:
        """The next request without the person's coming message."""
        return ModelRequest(self._window.next_messages(), self._window.tools)

    def _shown(self, ranges: Sequence[Range]) -> View:
        """The view that shows these originals too. Raises UsageError if there is no room for that."""
        view = restored(self._window.history, ranges)
        after = self._window.meter.used_again(self._window.history, view)
        if view != self.view and after > self._window.budget.budget_tokens:
            raise UsageError(
                f"There is no room for that: it would fill {after:,} of {self._window.budget.budget_tokens:,} tokens.",
                advice=self._how_to_read(ranges),
            )
        return view

    def _how_to_read(self, ranges: Sequence[Range]) -> str:
        """What helps where there is no room for the originals of these messages."""
        first = ranges[0][0]
        if len(ranges) == 1 and block_of(self._window.history, first) == ranges[0]:
            return f"/context show {first} prints it, and leaves the context as it is."
        return "Compact first, or take a single message by its number."

    def _show_moved(
        self, record: CompactionRecord | None, back: Callable[[], CompactionRecord | None]
    ) -> CompactionRecord | None:
        """Take up the view that the store went to. If it cannot be read, the store goes `back`."""
        if record is not None:
            try:
                self._window.show(self._views.current())
                self._window.take_pins()
            except StoreError:
                back()
                raise
        return record

    def _growth(self, view: View) -> int:
        """How many tokens more the next request would have with this view, as the record of the change says it."""
        history = self._window.history
        return self._window.meter.used_again(history, view) - self._window.measure().used_tokens
