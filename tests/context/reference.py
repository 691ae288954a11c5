"""The reference model of `test_machine`: a log and two stacks of views in plain lists, beside a real session."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

import msgspec
from hypothesis.stateful import RuleBasedStateMachine

from nca.agent.background import Background
from nca.agent.fallbacks import Fallbacks
from nca.config.loaded import LoadedSettings
from nca.context.draft import Draft
from nca.context.restore import block_of
from nca.context.rules.steps import open_step
from nca.context.summary_input import MAX_CHUNKS
from nca.context.summary_writer import MAX_FAILURES
from nca.context.tokens import message_tokens
from nca.context.view import Marker, Stub, Verbatim, View
from nca.errors import ContextDoesNotFit
from nca.events import ContextCompaction, Event
from nca.messages import Message, ToolCall
from nca.sessions.store import Store
from nca.wire import content_text, message_from_dict
from tests.agent.parts import OnlyModel, context_of, window_of
from tests.context.happenings import MODELS, SYSTEM, TOOLS, Wanted, cleaned
from tests.context.moods import HELPLESS, MoodySummarizer
from tests.context.promises import Rows, chained, homes, newest

SLACK_TOKENS = 100
"""Raw tokens: the marker, the repairs and the shortest contents that stay where all else is untouchable."""


@dataclass(frozen=True)
class Sent:
    """A request that went out, and what must be the same for it to begin the next one."""

    rows: Rows
    view: View
    model: str
    systems: int


@dataclass(frozen=True)
class Step:
    """A view that was in force with its pins, and the request of that time."""

    view: View
    pins: frozenset[int]
    rows: Rows
    head: int
    model: str


class Reference(RuleBasedStateMachine):
    """`log`, `done` and `undone` are the reference: a list of messages, and two stacks of views with their pins."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.store = Store.open(None)
        self.log: list[Message] = []
        self.digests = [b""]
        self.done: list[Step] = []
        self.undone: list[tuple[View, frozenset[int]]] = []
        self.view = View()
        self.pins: frozenset[int] = frozenset()
        self.sent: Sent | None = None
        self.events: list[Event] = []
        self.made_ids = 0
        self.had_huge = False
        self.was_too_long = False

    def begin(self, model: str, loaded: LoadedSettings) -> None:
        self.loaded = loaded
        self.summarizer = MoodySummarizer(MODELS[model])
        self.session = self.store.create(directory="/", model=model)
        self.open()

    def open(self) -> None:
        self.session_id = self.session.info.id
        facts = self.summarizer.facts
        self.window = window_of(self.store, self.session, self.loaded, facts, SYSTEM, TOOLS)
        self.models = Fallbacks(self.summarizer, OnlyModel().open, self.window.use_model, self.events.append)
        self.compactor = Background(self.window, self.models, self.events.append, None, prepares=False)
        self.context = context_of(self.window, self.compactor)

    def append(self, *messages: Message) -> None:
        expected = [cleaned(message) for message in messages]
        entries = self.window.append(*messages)
        assert [entry.message for entry in entries] == expected
        self.take(expected)

    def take(self, messages: Any) -> None:
        for message in messages:
            self.log.append(message)
            self.digests.append(chained(self.digests[-1], message))

    def calling(self, text: str | None, wanted: list[Wanted]) -> Message:
        made = []
        for id, name, value in wanted:
            self.made_ids += 1
            made.append(ToolCall(id or f"call_{self.made_ids}", name, value))
        return Message("assistant", text, tuple(made))

    def result_of(self, call: ToolCall, text: str) -> Message:
        return Message("tool", text, tool_call_id=call.id, name=call.name)

    def last_step(self) -> list[Message]:
        """What the log ends with: an assistant's message and results; what stands between is a person's."""
        place = open_step(self.log)
        return self.log[place:] if place is not None else []

    def left_open(self) -> set[str]:
        """The calls without a result where a killed process would have left them: at the end of the log."""
        results = list(takewhile(lambda message: message.role == "tool", reversed(self.log)))
        called = self.log[-1 - len(results)].tool_calls if len(results) < len(self.log) else ()
        return {call.id for call in called} - {message.tool_call_id for message in results}

    def now(self) -> Step:
        return Step(self.view, self.pins, self.window.request_messages(), len(self.log), self.window.facts.name)

    def note_view(self, before: Step) -> None:
        """Follow the window to its new view or pins, where it has them."""
        history = self.window.history
        if (history.view, history.pins) != (before.view, before.pins):
            self.done.append(before)
            self.undone = []
            self.view, self.pins = history.view, history.pins

    def watched(self, work: Coroutine[Any, Any, object], mood: str) -> bool:
        """Run what may compact, and check what it did; False where it said that the context does not fit."""
        self.summarizer.mood = mood
        self.summarizer.asked.clear()
        before, used, seen = self.now(), self.window.measure().used_tokens, len(self.events)
        stubs = [item.text for item in self.view.items if isinstance(item, Stub | Marker)]
        fits = True
        try:
            self.runner.run(work)
        except ContextDoesNotFit as error:
            fits = False
            self._check_refusal(error)
        self.note_view(before)
        done = [e for e in self.events[seen:] if isinstance(e, ContextCompaction) and e.phase == "completed"]
        if self.view != before.view:
            self.check_landed(before, used, done[-1].tokens_after, done[-1].trigger)
        self._check_questions(stubs, mood)
        return fits

    def check_landed(self, before: Step, tokens_before: int, tokens_after: int, trigger: str) -> None:
        measured = self.window.measure()
        assert tokens_after == measured.used_tokens
        # A model with a larger window is shown more again.
        assert tokens_after < tokens_before or trigger == "model"
        assert measured.fits
        held = set(self.pins) | {seq for seq, message in enumerate(self.log, 1) if message.role == "system"}
        first_open = open_step(self.log)
        if first_open is not None:
            held |= set(range(first_open + 1, len(self.log) + 1))
        then, now = homes(before.view, len(self.log)), homes(self.view, len(self.log))
        for seq in held - {newest(self.log)}:
            if isinstance(then[seq][0], Verbatim | None):
                assert isinstance(now[seq][0], Verbatim | None), f"message {seq} was not to be touched"
        self.summarizer.mood = "deadline"
        aims = {"threshold": 0, "idle": 0, "turns": self.window.budget.budget_tokens, "overflow": tokens_after}
        if trigger in aims:
            again = self.runner.run(self.compactor.plan(trigger, target_tokens=aims[trigger]))
            assert not again.compacted, "twice is not once"

    def _check_refusal(self, error: ContextDoesNotFit) -> None:
        """It refuses only where what may not be touched is larger than the budget."""
        window = self.window
        assert error.used_tokens > error.budget_tokens == window.budget.budget_tokens
        draft = Draft(window.history, window.meter)
        locked = sum(block.raw for block in draft.blocks() if block.is_locked)
        # A compaction makes the view anew, of the log and the pins: it shows a pin that is hidden now.
        shown = {seq for block in draft.blocks() for seq in block.seqs}
        hidden = {block_of(window.history, pin) for pin in self.pins - shown}
        locked += sum(window.history.run_tokens(first, last) for first, last in hidden)
        share = max(1.0, error.used_tokens / draft.tokens)
        least = int(share * window.meter.total(window.meter.fixed_raw + locked + SLACK_TOKENS))
        assert least > error.budget_tokens, f"it refused ({error}) although {least} tokens were possible"

    def _check_questions(self, stubs: list[str], mood: str) -> None:
        """One for each chunk of a summary (trimming makes one too), at most two in vain; of originals, as data, and
        within the model's window with their answers."""
        asked = self.summarizer.asked
        summaries = 2 if self.window.context.max_turns else 1
        in_vain = summaries * MAX_FAILURES
        assert len(asked) <= (in_vain if mood in HELPLESS else summaries * MAX_CHUNKS + in_vain)
        told = "\n".join(content_text(message.content) for message in self.log)
        room = self.window.budget.window_tokens
        for request in asked:
            text = str(request.messages[-1]["content"])
            assert not [stub for stub in stubs if len(stub) > 12 and stub in text and stub not in told]
            messages = [message_from_dict(row) for row in request.messages]
            tokens = self.window.meter.scaled(sum(map(message_tokens, messages)) + (request.max_output_tokens or 0))
            assert tokens <= room, f"a question of {tokens} tokens ({len(messages)} messages) for {room}"
            if not request.tools:
                assert (text.count("<transcript>"), text.count("</transcript>")) == (1, 1), (
                    "data does not look like data"
                )

    def check_prefix(self, rows: Rows) -> None:
        """Between compactions each request begins as the one before."""
        now = Sent(rows, self.view, self.window.facts.name, sum(message.role == "system" for message in self.log))
        last, self.sent = self.sent, None if open_step(self.log) is not None else now
        if last is not None and (last.view, last.model, last.systems) == (now.view, now.model, now.systems):
            for place, (row, sent) in enumerate(zip(rows, last.rows, strict=False)):
                assert msgspec.json.encode(row) == msgspec.json.encode(sent), f"message {place + 1} was sent otherwise"
            assert len(rows) >= len(last.rows)

    def moved_since_the_report(self) -> bool:
        """Whether another view than that of the last report is in force, whose own report is not the last one."""
        last = self.session.usage.rows()[-1]
        return (last.view_id, last.model) != (self.session.views.current_id, self.window.facts.name)
