"""Random sessions beside a reference of plain lists: the invariants hold after any sequence of actions.

The real parts are the window, the compactor and a store in memory; only the model is a double, with moods. After
every step the log, the view, the numbers and the next request are held against `tests.context.promises`.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

from nca.context.rules.steps import open_step
from nca.context.view import Item, Marker, Summary
from nca.context.within_window import MOST_WINDOWS
from nca.errors import ContextDoesNotFit, ProviderFailure
from nca.events import ContextCompaction
from nca.messages import AttachmentPart, Message, TextPart, Usage
from nca.sessions.view_rows import PIN, UNPIN
from nca.wire import content_text
from tests.context.effort import patient, trying
from tests.context.hands import Hands
from tests.context.happenings import (
    MODELS,
    PIECES,
    SYSTEM,
    Turn,
    Wanted,
    biases,
    calls,
    configured,
    huge,
    models,
    moods,
    settings_of_a_session,
    short,
    texts,
    turns,
)
from tests.context.moods import MoodySummarizer
from tests.context.promises import (
    chained,
    counted,
    homes,
    is_cleared,
    misplaced,
    newest_problem,
    refused,
    shown,
    system_texts,
)

STEPS = 30


class SessionMachine(Hands):
    """Whatever is done, in whatever order."""

    @initialize(model=models, values=settings_of_a_session)
    def start(self, model: str, values: dict[str, Any]) -> None:
        self.begin(model, configured(tuple(values.items())))

    # What enters the log

    @rule(text=texts)
    def ask(self, text: str) -> None:
        self.append(Message("user", text))

    @precondition(lambda self: not self.had_huge)
    @rule(piece=st.sampled_from(PIECES), role=st.sampled_from(["user", "assistant"]), size=huge)
    def say_very_much(self, piece: str, role: Any, size: int) -> None:
        self.had_huge = True
        self.append(Message(role, piece * (size // len(piece.encode()))))

    @rule(text=short, file=texts)
    def ask_about_a_file(self, text: str, file: str) -> None:
        self.append(Message("user", (TextPart(text), AttachmentPart("a.txt", file, 10))))

    @rule(text=texts, is_interrupted=st.booleans())
    def answer(self, text: str, is_interrupted: bool) -> None:
        self.append(Message("assistant", text, reasoning="why", is_interrupted=is_interrupted))

    @rule(text=st.one_of(st.none(), short), wanted=calls)
    def call(self, text: str | None, wanted: list[Wanted]) -> None:
        self.append(self.calling(text, wanted))

    @rule(data=st.data(), are_errors=st.booleans())
    def results(self, data: st.DataObject, are_errors: bool) -> None:
        """Of the newest calls, in any order, some missing, some twice; and of calls that nobody made."""
        known = next((message.tool_calls for message in reversed(self.log) if message.tool_calls), ())
        answered = data.draw(st.lists(st.sampled_from([*(call.id for call in known), "a", "nobody's"]), max_size=6))
        if answered:
            self.append(*(Message("tool", data.draw(texts), tool_call_id=id, is_error=are_errors) for id in answered))

    @rule(turns=turns)
    def work(self, turns: list[Turn]) -> None:
        """Whole turns, as an agent leaves them."""
        for question, rounds, answer in turns:
            self.append(Message("user", question))
            for wanted, output in rounds:
                self.append(self.calling(None, wanted))
                self.append(*(self.result_of(call, output) for call in self.log[-1].tool_calls))
            self.append(Message("assistant", answer))

    @rule(text=short)
    def speak_as_the_system(self, text: str) -> None:
        self.append(Message("system", text))

    @precondition(lambda self: self.log and open_step(self.log) is not None)
    @rule(is_stopped=st.booleans())
    def close_the_step(self, is_stopped: bool) -> None:
        """What an interruption or the rest of the results leave."""
        waiting = {call.id: call for message in self.last_step() for call in message.tool_calls}
        for message in self.last_step():
            waiting.pop(message.tool_call_id, None)
        text = "[interrupted by the user: outcome unknown]" if is_stopped else "done"
        self.append(*(self.result_of(call, text) for call in waiting.values()))

    # What a person does

    @precondition(lambda self: self.log)
    @rule(data=st.data())
    def pin_or_unpin(self, data: st.DataObject) -> None:
        seq = data.draw(st.integers(max(1, len(self.log) - 12), len(self.log)))
        before = self.now()
        self.window.go_to(self.view, UNPIN if seq in self.pins else PIN, "manual", pins=(seq,))
        self.window.take_pins()
        assert self.window.history.pins == self.pins ^ {seq}
        self.note_view(before)

    @rule(focus=st.sampled_from(["", "the tests"]), mood=moods)
    def compact_by_hand(self, focus: str, mood: str) -> None:
        self.watched(self.compactor.compact("manual", focus=focus), mood)
        self.watched(self.compactor.preview(), mood)
        assert self.window.history.view == self.view

    @rule(mood=moods, later=st.lists(texts, max_size=2))
    def compact_while_nobody_looks(self, mood: str, later: list[str]) -> None:
        """Planned, then more is said, then put in force: what came later is in the tail."""
        self.summarizer.mood = mood
        before = self.now()
        try:
            proposal = self.runner.run(self.compactor.plan("idle"))
        except ContextDoesNotFit:
            return
        assert proposal.tokens_before == self.window.measure().used_tokens
        for text in later:
            self.append(Message("assistant", text))
        self.compactor.say_starting("idle")
        outcome = self.compactor.finish(proposal, "idle", 0.0)
        self.note_view(before)
        assert outcome.compacted == (self.window.history.view != before.view)
        if outcome.compacted and not later:
            self.check_landed(before, outcome.tokens_before, outcome.tokens_after, "idle")

    @rule()
    def undo(self) -> None:
        record = self.context.undo()
        assert (record is None) == (not self.done)
        if record is not None:
            step = self.done.pop()
            self.undone.append((self.view, self.pins))
            self.view, self.pins = step.view, step.pins
            assert self.window.history.pins == self.pins
            if (step.head, step.model) == (len(self.log), self.window.facts.name):
                assert self.window.request_messages() == step.rows

    @rule()
    def redo(self) -> None:
        before = self.now()
        record = self.context.redo()
        assert (record is None) == (not self.undone)
        if record is not None:
            self.done.append(before)
            self.view, self.pins = self.undone.pop()
            assert self.window.history.pins == self.pins

    @rule(is_sure=st.sampled_from([False, False, True]))
    def clear(self, is_sure: bool) -> None:
        before = self.now()
        if is_sure and self.context.clear() is not None:
            assert self.window.meter.used(self.window.history) <= self.window.meter.used_with(
                self.window.history, before.view
            )
            self.note_view(before)
            assert not [message for message in shown(self.log, self.view) if message.role != "system"]

    @rule(model=models)
    def change_model(self, model: str) -> None:
        self.summarizer = MoodySummarizer(MODELS[model])
        self.models.replace_first(self.summarizer)
        self.session.set_model(model)

    @rule(values=settings_of_a_session)
    def configure(self, values: dict[str, Any]) -> None:
        self.loaded = configured(tuple(values.items()))
        self.window.use(self.loaded, self.window.facts)

    @rule()
    def reopen(self) -> None:
        before, used, call_raw = self.now(), self.window.measure(), self.window.history.call_raw
        self.session.close()
        self.session = self.store.open_session(self.session_id)
        waiting = self.left_open()
        assert {entry.message.tool_call_id for entry in self.session.recovered} == waiting
        self.take(entry.message for entry in self.session.recovered)
        self.open()
        if self.window.history.view != before.view:
            # More than any window holds: opening leaves the oldest of it behind a marker.
            shown = self.window.history.run_tokens(before.view.tail, len(self.log))
            assert shown > MOST_WINDOWS * self.window.budget.window_tokens
            self.was_too_long = True
            self.note_view(before)
        elif not waiting:
            assert self.window.request_messages() == before.rows
            if not used.is_estimate and not self.moved_since_the_report():
                # The reports of the whole session are taken up, also those that a change of the model had put aside.
                call_raw = max(call_raw, self.window.history.call_raw)
                lost = self.window.meter.scaled(call_raw * sum(len(message.tool_calls) for message in self.log))
                # One more for the sums of the fit, which are added in another order and rounded.
                assert abs(self.window.measure().used_tokens - used.used_tokens) <= lost + 1

    # What the agent does

    @precondition(lambda self: self.log and self.log[-1].role in ("user", "tool"))
    @rule(bias=biases, text=texts, wanted=st.one_of(st.just([]), calls), mood=moods)
    def send(self, bias: float | None, text: str, wanted: list[Wanted], mood: str) -> None:
        self._send(bias, text, wanted, mood)

    @rule(turns=turns, bias=biases, mood=moods)
    def converse(self, turns: list[Turn], bias: float | None, mood: str) -> None:
        """Turns as they go where nothing goes wrong, but for the summaries."""
        for question, rounds, answer in turns:
            self.append(Message("user", question))
            for wanted, output in rounds:
                if not self._send(bias, None, wanted, mood):
                    return
                self.append(*(self.result_of(call, output) for call in self.log[-1].tool_calls))
            if not self._send(bias, answer, [], mood):
                return

    def _send(self, bias: float | None, text: str | None, wanted: list[Wanted], mood: str) -> bool:
        """One request as a turn makes it: trimmed, compacted where it is due, checked, sent, reported, answered."""
        if self.log[-1].role == "user":
            if not content_text(self.log[-1].content).strip():
                # `Conversation.send` refuses a blank message.
                return False
            self.watched(self.compactor.before_turn(), mood)
        if not self.watched(self.compactor.before_request(), mood):
            return False
        window = self.window
        assert window.measure().fits
        rows = window.request_messages()
        if rows[-1]["role"] == "assistant":
            # All that was asked is blank and left out: nobody sends that.
            return False
        self.check_prefix(rows)
        raw, calls, head = window.meter.raw(window.history), window.history.view_calls, window.history.head
        self.append(self.calling(text, wanted) if wanted else Message("assistant", text))
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
            self.tries_again = await self.compactor.recover(failure, share=share, explain=lambda: None)

        if self.watched(recover(), mood) and self.tries_again:
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
            if message.role == "system" and message.text.strip() and not self.is_gone(items[seq][0])
        ]
        summaries = [item.text for item in self.view.items if isinstance(item, Summary) and item.role == "system"]
        texts = system_texts(rows)
        assert texts[0] == SYSTEM
        assert [text for text in texts[1:] if text not in summaries] == own
        assert newest_problem(self.log, self.view, rows) == ""

    def is_gone(self, item: Item | None) -> bool:
        """Whether a person, or opening what many windows hold, put a system message away."""
        return is_cleared(item) or (self.was_too_long and isinstance(item, Summary | Marker))

    @invariant()
    def every_starting_is_closed(self) -> None:
        phases = [event.phase for event in self.events if isinstance(event, ContextCompaction)]
        assert all((one == "starting") == (two != "starting") for one, two in pairwise(phases) if two != "preview")
        assert not phases or phases[-1] != "starting"

    def teardown(self) -> None:
        if self.log:
            assert [entry.message for entry in self.session.log.entries()] == self.log
            assert self.session.views.current() == self.view
            assert refused(self.window.history, SYSTEM) == []
        self.session.close()
        self.store.close()
        self.runner.close()


SessionMachine.TestCase.settings = trying(1 / 40, steps=STEPS)
TestSession = patient(SessionMachine.TestCase)
