"""A session as it may go, beside a reference of lists: whatever is done in whatever order, spec section 14 holds.

The real parts are the window, the compactor and a store in memory; only the model is a double, with moods. After
every step the log, the view, the numbers and the next request are held against `tests.context.promises`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass
from functools import cache
from itertools import pairwise, takewhile
from typing import Any

import msgspec
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from nca.agent.compactor import Compactor
from nca.agent.window import Window
from nca.config.loaded import LoadedSettings, defaults
from nca.config.schema import STAGES
from nca.context.draft import Draft
from nca.context.rules.open_step import open_step
from nca.context.view import Marker, Stub, Summary, Verbatim, View
from nca.errors import ContextDoesNotFit, ProviderFailure
from nca.events import ContextCompaction, Event
from nca.messages import AttachmentPart, Message, TextPart, ToolCall, Usage, clean_text
from nca.models.catalog import ModelFacts, describe
from nca.models.client import Model
from nca.sessions.store import Store
from nca.wire import content_text
from tests.context.effort import patient, trying
from tests.context.moods import MOODS, MoodySummarizer
from tests.context.promises import (
    Rows,
    chained,
    counted,
    homes,
    is_cleared,
    misplaced,
    newest,
    newest_problem,
    refused,
    shown,
    system_texts,
)

SYSTEM = "You are a test of the engine. 日本語 🦀"
TOOLS = [
    {"type": "function", "function": {"name": name, "parameters": {"type": "object"}}} for name in ("grep", "shell")
]
KNOWN = (
    ModelFacts("tiny/model", "tiny", 1_000),
    ModelFacts("anthropic/small", "anthropic", 3_000),
    ModelFacts("embedded/usual", "embedded", 8_000, reuses_prefix=True),
    ModelFacts("mistral/usual", "mistral", 16_000),
    describe("nobody/knows-its-window"),
    ModelFacts("gemini/large", "gemini", 2_000_000),
)
MODELS = {facts.name: facts for facts in KNOWN}
STEPS = 30
SLACK_TOKENS = 100
"""Raw tokens: the marker, the repairs and the shortest contents that stay where all else is untouchable."""

PIECES = (
    "a",
    "word ",
    "x = f(y)\n",
    "日本語",
    "🦀🎉",
    "A sentence. Another one.\n\n",
    "Error: no such file\n",
    "src/a.py#123 ",
)
short = st.one_of(
    st.text(st.characters(codec=None), max_size=40),
    st.sampled_from(["", "  ", "a\0b", "Always use tabs.", "\ud83e half of a crab", "[Tool result cleared]", "Go on."]),
)
texts = st.one_of(
    short, st.builds(lambda piece, n: piece * n, st.sampled_from(PIECES), st.sampled_from([5, 60, 400, 2_000]))
)
huge = st.sampled_from([20_000, 20_000, 20_000, 60_000, 60_000, 60_000, 200_000, 2_000_000])
"""Bytes in one line or message, which may be more than a window."""
names = st.sampled_from(["read_file", "write_file", "grep", "shell", "skill", "bad name!"])
arguments = st.one_of(
    st.sampled_from(
        ["{}", "not json", "[1]", "", '{"path": "src/a.py"}', '{"path": "./src/a.py"}', '{"command": "make"}']
    ),
    st.builds(lambda n: f'{{"path": "src/b.py", "offset": {n}, "limit": 10}}', st.integers(1, 30)),
    st.just('{"path": "src/a.py", "content": "' + "z" * 900 + '"}'),
)
ids = st.one_of(st.just(""), st.just(""), st.sampled_from(["a", "b", "with space", "x" * 60, "\ud83e"]))
"""An empty one is made unique."""
calls = st.lists(st.tuples(ids, names, arguments), min_size=1, max_size=5)
reading = st.sampled_from(["src/a.py", "src/b.py"]).map(lambda path: [("", "read_file", f'{{"path": "{path}"}}')])
Wanted = tuple[str, str, str]
Turn = tuple[str, list[tuple[list[Wanted], str]], str]
rounds = st.lists(st.tuples(st.one_of(reading, calls), texts), max_size=4)
turns: st.SearchStrategy[list[Turn]] = st.lists(st.tuples(texts, rounds, texts), min_size=1, max_size=4)
biases = st.sampled_from([None, 0.6, 0.8, 1.0, 1.2, 1.4])
"""What a provider reports, over what it would be believed to count; None: it reports nothing."""
moods = st.sampled_from(MOODS)
models = st.sampled_from(sorted(MODELS))
settings_of_a_session = st.fixed_dictionaries(
    {
        "context.stages": st.one_of(
            st.just(STAGES), st.permutations(STAGES).map(tuple), st.sampled_from([(stage,) for stage in STAGES])
        ),
        "context.max_turns": st.sampled_from([0, 0, 3]),
        "context.max_messages": st.sampled_from([0, 0, 4]),
        "context.summarize.role": st.sampled_from(["user", "user", "system"]),
        "context.target_ratio": st.sampled_from([0.5, 0.5, 0.3]),
    }
)


@cache
def configured(values: tuple[tuple[str, Any], ...]) -> LoadedSettings:
    return defaults().with_values(dict(values), "the test")


def cleaned(message: Message) -> Message:
    """What is stored of a message: the same without lone surrogates."""
    content = message.content
    if isinstance(content, str):
        content = clean_text(content)
    elif content is not None:
        content = tuple(msgspec.structs.replace(part, text=clean_text(part.text)) for part in content)  # type: ignore[union-attr]
    calls = tuple(ToolCall(clean_text(c.id), c.name, clean_text(c.arguments)) for c in message.tool_calls)
    return msgspec.structs.replace(
        message, content=content, tool_calls=calls, tool_call_id=clean_text(message.tool_call_id)
    )


@dataclass(frozen=True)
class Sent:
    """A request that went out, and what must be the same for it to begin the next one."""

    rows: Rows
    view: View
    model: str
    systems: int


@dataclass(frozen=True)
class Step:
    """A view that was in force, and the request of that time."""

    view: View
    rows: Rows
    head: int
    model: str


class SessionMachine(RuleBasedStateMachine):
    """`log`, `done` and `undone` are the reference: a list of messages, and two stacks of views."""

    def __init__(self) -> None:
        super().__init__()
        self.runner = asyncio.Runner()
        self.store = Store.open(None)
        self.log: list[Message] = []
        self.digests = [b""]
        self.done: list[Step] = []
        self.undone: list[View] = []
        self.view = View()
        self.pins: set[int] = set()
        self.sent: Sent | None = None
        self.events: list[Event] = []
        self.made_ids = 0
        self.had_huge = False

    @initialize(model=models, values=settings_of_a_session)
    def start(self, model: str, values: dict[str, Any]) -> None:
        self.loaded = configured(tuple(values.items()))
        self.summarizer = MoodySummarizer(MODELS[model])
        self.session = self.store.create(directory="/", model=model)
        self._open()

    # What enters the log

    @rule(text=texts)
    def ask(self, text: str) -> None:
        self._append(Message("user", text))

    @precondition(lambda self: not self.had_huge)
    @rule(piece=st.sampled_from(PIECES), role=st.sampled_from(["user", "assistant"]), size=huge)
    def say_very_much(self, piece: str, role: Any, size: int) -> None:
        self.had_huge = True
        self._append(Message(role, piece * (size // len(piece.encode()))))

    @rule(text=short, file=texts)
    def ask_about_a_file(self, text: str, file: str) -> None:
        self._append(Message("user", (TextPart(text), AttachmentPart("a.txt", file, 10))))

    @rule(text=texts, is_interrupted=st.booleans())
    def answer(self, text: str, is_interrupted: bool) -> None:
        self._append(Message("assistant", text, reasoning="why", is_interrupted=is_interrupted))

    @rule(text=st.one_of(st.none(), short), wanted=calls)
    def call(self, text: str | None, wanted: list[Wanted]) -> None:
        self._append(self._calling(text, wanted))

    @rule(data=st.data(), are_errors=st.booleans())
    def results(self, data: st.DataObject, are_errors: bool) -> None:
        """Of the newest calls, in any order, some missing, some twice; and of calls that nobody made."""
        known = next((message.tool_calls for message in reversed(self.log) if message.tool_calls), ())
        answered = data.draw(st.lists(st.sampled_from([*(call.id for call in known), "a", "nobody's"]), max_size=6))
        if answered:
            self._append(*(Message("tool", data.draw(texts), tool_call_id=id, is_error=are_errors) for id in answered))

    @rule(turns=turns)
    def work(self, turns: list[Turn]) -> None:
        """Whole turns, as an agent leaves them."""
        for question, rounds, answer in turns:
            self._append(Message("user", question))
            for wanted, output in rounds:
                self._append(self._calling(None, wanted))
                self._append(*(self._result(call, output) for call in self.log[-1].tool_calls))
            self._append(Message("assistant", answer))

    @rule(text=short)
    def speak_as_the_system(self, text: str) -> None:
        self._append(Message("system", text))

    @precondition(lambda self: self.log and open_step(self.log) is not None)
    @rule(is_stopped=st.booleans())
    def close_the_step(self, is_stopped: bool) -> None:
        """What an interruption or the rest of the results leave."""
        waiting = {call.id: call for message in self._last_step() for call in message.tool_calls}
        for message in self._last_step():
            waiting.pop(message.tool_call_id, None)
        text = "[interrupted by the user: outcome unknown]" if is_stopped else "done"
        self._append(*(self._result(call, text) for call in waiting.values()))

    # What a person does

    @precondition(lambda self: self.log)
    @rule(data=st.data())
    def pin_or_unpin(self, data: st.DataObject) -> None:
        seq = data.draw(st.integers(max(1, len(self.log) - 12), len(self.log)))
        (self.session.unpin if seq in self.pins else self.session.pin)(seq)
        self.pins ^= {seq}
        self.window.history.pins = self.session.pins()

    @rule(focus=st.sampled_from(["", "the tests"]), mood=moods)
    def compact_by_hand(self, focus: str, mood: str) -> None:
        self._watched(self.compactor.compact("manual", focus=focus), mood)
        self._watched(self.compactor.compact("manual", preview=True), mood)
        assert self.window.history.view == self.view

    @rule(mood=moods, later=st.lists(texts, max_size=2))
    def compact_while_nobody_looks(self, mood: str, later: list[str]) -> None:
        """Planned, then more is said, then put in force: what came later is in the tail."""
        self.summarizer.mood = mood
        before = self._step()
        try:
            proposal = self.runner.run(self.compactor.plan("idle"))
        except ContextDoesNotFit:
            return
        assert proposal.tokens_before == self.window.measure().used_tokens
        for text in later:
            self._append(Message("assistant", text))
        self.compactor.say_starting("idle")
        outcome = self.compactor.finish(proposal, "idle", 0.0)
        self._note_view(before)
        assert outcome.compacted == (self.window.history.view != before.view)
        if outcome.compacted and not later:
            self._check_landed(before, outcome.tokens_before, outcome.tokens_after, "idle")

    @rule()
    def undo(self) -> None:
        record = self.window.undo()
        assert (record is None) == (not self.done)
        if record is not None:
            step = self.done.pop()
            self.undone.append(self.view)
            self.view = step.view
            if (step.head, step.model) == (len(self.log), self.window.facts.name):
                assert self.window.request_messages() == step.rows

    @rule()
    def redo(self) -> None:
        before = self._step()
        record = self.window.redo()
        assert (record is None) == (not self.undone)
        if record is not None:
            self.done.append(before)
            self.view = self.undone.pop()

    @rule(is_sure=st.sampled_from([False, False, True]))
    def clear(self, is_sure: bool) -> None:
        before = self._step()
        if is_sure and self.window.clear() is not None:
            assert self.window.measure().used_tokens < before_used(before, self.window)
            self._note_view(before)
            assert not [message for message in shown(self.log, self.view) if message.role != "system"]

    @rule(model=models)
    def change_model(self, model: str) -> None:
        self.summarizer = MoodySummarizer(MODELS[model])
        self.window.use(self.loaded, MODELS[model])
        self.compactor.model = self.summarizer
        self.session.set_model(model)

    @rule(values=settings_of_a_session)
    def configure(self, values: dict[str, Any]) -> None:
        self.loaded = configured(tuple(values.items()))
        self.window.use(self.loaded, self.window.facts)

    @rule()
    def reopen(self) -> None:
        before, used, call_raw = self._step(), self.window.measure(), self.window.history.call_raw
        self.session.close()
        self.session = self.store.open_session(self.session_id)
        waiting = self._left_open()
        assert {entry.message.tool_call_id for entry in self.session.recovered} == waiting
        self._take(entry.message for entry in self.session.recovered)
        self._open()
        if not waiting:
            assert self.window.request_messages() == before.rows
            if not used.is_estimate and not self._moved_since_the_report():
                lost = self.window.meter.scaled(call_raw * sum(len(message.tool_calls) for message in self.log))
                assert abs(self.window.measure().used_tokens - used.used_tokens) <= lost

    # What the agent does

    @precondition(lambda self: self.log and self.log[-1].role in ("user", "tool"))
    @rule(bias=biases, text=texts, wanted=st.one_of(st.just([]), calls), mood=moods)
    def send(self, bias: float | None, text: str, wanted: list[Wanted], mood: str) -> None:
        self._send(bias, text, wanted, mood)

    @rule(turns=turns, bias=biases, mood=moods)
    def converse(self, turns: list[Turn], bias: float | None, mood: str) -> None:
        """Turns as they go where nothing goes wrong, but for the summaries."""
        for question, rounds, answer in turns:
            self._append(Message("user", question))
            for wanted, output in rounds:
                if not self._send(bias, None, wanted, mood):
                    return
                self._append(*(self._result(call, output) for call in self.log[-1].tool_calls))
            if not self._send(bias, answer, [], mood):
                return

    def _send(self, bias: float | None, text: str | None, wanted: list[Wanted], mood: str) -> bool:
        """One request as a turn makes it: trimmed, compacted where it is due, checked, sent, reported, answered."""
        if self.log[-1].role == "user":
            self._watched(self.compactor.before_turn(), mood)
        if not self._watched(self.compactor.before_request(), mood):
            return False
        window = self.window
        assert window.measure().fits
        rows = window.request_messages()
        if rows[-1]["role"] == "assistant":
            # All that was asked is blank and left out: nobody sends that.
            return False
        self._check_prefix(rows)
        raw, calls, head = window.meter.raw(window.history), window.history.view_calls, window.history.head
        self._append(self._calling(text, wanted) if wanted else Message("assistant", text))
        if bias is not None:
            window.learn(raw, calls, head, Usage(round(raw * bias * 1.2), 10))
        self.compactor.after_turn()
        return True

    @rule(share=st.sampled_from([0.7, 0.5]), limit=st.sampled_from([None, 2_000, 6_000]), mood=moods)
    def overflow(self, share: float, limit: int | None, mood: str) -> None:
        """The provider says that the request was too long."""
        used, rows, budget = self.window.measure().used_tokens, self.window.request_messages(), self.window.budget
        failure = ProviderFailure("compact", is_overflow=True, asked_tokens=used * 2, limit_tokens=limit)
        self.tries_again = False

        async def recover() -> None:
            self.tries_again = await self.compactor.recover(failure, share=share)

        if self._watched(recover(), mood) and self.tries_again:
            assert self.window.request_messages() != rows or self.window.budget.window_tokens < budget.window_tokens

    # What always holds

    @invariant()
    def the_log_only_grows(self) -> None:
        if not self.log:
            return
        history = self.window.history
        assert [entry.seq for entry in history.entries] == list(range(1, len(self.log) + 1))
        rolling = b""
        for entry, digest in zip(history.entries, self.digests[1:], strict=True):
            rolling = chained(rolling, entry.message)
            assert rolling == digest

    @invariant()
    def the_view_is_the_references(self) -> None:
        if self.log:
            assert self.window.history.view == self.view
            assert misplaced(self.log, self.view) == []

    @invariant()
    def numbers_agree(self) -> None:
        if not self.log:
            return
        meter, measured = self.window.meter, self.window.measure()
        assert meter.raw(self.window.history) == counted(self.log, self.view, meter, self.window.history.call_raw)
        assert measured.used_tokens == meter.used(self.window.history)
        assert sum(measured.breakdown.values()) == measured.used_tokens
        assert all(tokens >= 0 for tokens in measured.breakdown.values()), measured.breakdown

    @invariant()
    def every_provider_would_take_it(self) -> None:
        if not self.log:
            return
        provider = self.window.facts.provider
        assert refused(self.window.history, SYSTEM, ["", provider]) == []
        rows = self.window.request_messages()
        items = homes(self.view, len(self.log))
        own = [
            content_text(message.content)
            for seq, message in enumerate(self.log, 1)
            if message.role == "system" and message.text.strip() and not is_cleared(items[seq][0])
        ]
        summaries = [item.text for item in self.view.items if isinstance(item, Summary) and item.role == "system"]
        texts = system_texts(rows)
        assert texts[0] == SYSTEM
        assert [text for text in texts[1:] if text not in summaries] == own
        assert newest_problem(self.log, self.view, rows) == ""

    @invariant()
    def every_starting_is_closed(self) -> None:
        phases = [event.phase for event in self.events if isinstance(event, ContextCompaction)]
        assert all((one == "starting") == (two != "starting") for one, two in pairwise(phases) if two != "preview")
        assert not phases or phases[-1] != "starting"

    def teardown(self) -> None:
        if self.log:
            assert [entry.message for entry in self.session.entries()] == self.log
            assert self.session.view() == self.view
            assert refused(self.window.history, SYSTEM) == []
        self.session.close()
        self.store.close()
        self.runner.close()

    # The reference's own steps

    def _open(self) -> None:
        self.session_id = self.session.info.id
        facts = self.summarizer.facts
        self.window = Window(self.store, self.session, self.loaded, facts, system_prompt=SYSTEM, tools=TOOLS)
        self.compactor = Compactor(self.window, self.summarizer, self.events.append, self._open_model, lambda _: None)

    async def _open_model(self, name: str) -> Model:
        raise AssertionError(f"nobody asked for {name}")

    def _append(self, *messages: Message) -> None:
        expected = [cleaned(message) for message in messages]
        entries = self.window.append(*messages)
        assert [entry.message for entry in entries] == expected
        self._take(expected)

    def _take(self, messages: Any) -> None:
        for message in messages:
            self.log.append(message)
            self.digests.append(chained(self.digests[-1], message))

    def _calling(self, text: str | None, wanted: list[Wanted]) -> Message:
        made = []
        for id, name, value in wanted:
            self.made_ids += 1
            made.append(ToolCall(id or f"call_{self.made_ids}", name, value))
        return Message("assistant", text, tuple(made))

    def _result(self, call: ToolCall, text: str) -> Message:
        return Message("tool", text, tool_call_id=call.id, name=call.name)

    def _last_step(self) -> list[Message]:
        """What the log ends with: an assistant's message and results; what stands between is a person's."""
        place = open_step(self.log)
        return self.log[place:] if place is not None else []

    def _left_open(self) -> set[str]:
        """The calls without a result where a killed process would have left them: at the end of the log."""
        results = list(takewhile(lambda message: message.role == "tool", reversed(self.log)))
        called = self.log[-1 - len(results)].tool_calls if len(results) < len(self.log) else ()
        return {call.id for call in called} - {message.tool_call_id for message in results}

    def _step(self) -> Step:
        return Step(self.view, self.window.request_messages(), len(self.log), self.window.facts.name)

    def _note_view(self, before: Step) -> None:
        """Follow the window to its new view, where it has one."""
        if self.window.history.view != before.view:
            self.done.append(before)
            self.undone = []
            self.view = self.window.history.view

    def _watched(self, work: Coroutine[Any, Any, object], mood: str) -> bool:
        """Run what may compact, and check what it did; False where it said that the context does not fit."""
        self.summarizer.mood = mood
        self.summarizer.asked.clear()
        before, used, seen = self._step(), self.window.measure().used_tokens, len(self.events)
        stubs = [item.text for item in self.view.items if isinstance(item, Stub | Marker)]
        fits = True
        try:
            self.runner.run(work)
        except ContextDoesNotFit as error:
            fits = False
            self._check_refusal(error)
        self._note_view(before)
        done = [e for e in self.events[seen:] if isinstance(e, ContextCompaction) and e.phase == "completed"]
        if self.view != before.view:
            self._check_landed(before, used, done[-1].tokens_after, done[-1].trigger)
        self._check_questions(stubs)
        return fits

    def _check_landed(self, before: Step, tokens_before: int, tokens_after: int, trigger: str) -> None:
        measured = self.window.measure()
        assert tokens_after == measured.used_tokens < tokens_before
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
        share = max(1.0, error.used_tokens / draft.tokens)
        least = int(share * window.meter.total(window.meter.fixed_raw + locked + SLACK_TOKENS))
        assert least > error.budget_tokens, f"it refused ({error}) although {least} tokens were possible"

    def _check_questions(self, stubs: list[str]) -> None:
        """At most two for a summary (trimming makes one too), of originals, as data, within the model's window."""
        asked = self.summarizer.asked
        assert len(asked) <= (2 if not self.window.context.max_turns else 4)
        told = "\n".join(content_text(message.content) for message in self.log)
        for request in asked:
            text = str(request.messages[-1]["content"])
            assert not [stub for stub in stubs if len(stub) > 12 and stub in text and stub not in told]
            msgspec.json.encode(request.messages)

    def _check_prefix(self, rows: Rows) -> None:
        """Between compactions each request begins as the one before."""
        now = Sent(rows, self.view, self.window.facts.name, sum(message.role == "system" for message in self.log))
        last, self.sent = self.sent, None if open_step(self.log) is not None else now
        if last is not None and (last.view, last.model, last.systems) == (now.view, now.model, now.systems):
            for place, (row, sent) in enumerate(zip(rows, last.rows, strict=False)):
                assert msgspec.json.encode(row) == msgspec.json.encode(sent), f"message {place + 1} was sent otherwise"
            assert len(rows) >= len(last.rows)

    def _moved_since_the_report(self) -> bool:
        """Whether another view than that of the last report is in force, whose own report is not the last one."""
        last = self.session.usage()[-1]
        return (last.view_id, last.model) != (self.session.view_id, self.window.facts.name)


def before_used(before: Step, window: Window) -> int:
    """What was used with another view."""
    return window.meter.used_with(window.history, before.view) + 1


SessionMachine.TestCase.settings = trying(1 / 40, steps=STEPS)
TestSession = patient(SessionMachine.TestCase)
