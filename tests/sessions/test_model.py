"""The store and a naive model of lists agree after any operations, also after reopening."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from nca.context.view import Marker, Stub, Summary, Verbatim, View
from nca.messages import Message, ToolCall, clean_text
from nca.sessions import CompactionRecord, Store
from nca.sessions.view_rows import PIN, UNPIN
from nca.transcripts.session_file import read_session, to_json
from tests.sessions.samples import change_pins

TEXT = st.text(st.characters(codec=None), max_size=30)
MESSAGE = st.one_of(
    st.builds(lambda text: Message("user", text), TEXT),
    st.builds(lambda text, why: Message("assistant", text, reasoning=why), TEXT, TEXT),
    st.builds(
        lambda ids: Message("assistant", tool_calls=tuple(ToolCall(id, "f", "{}") for id in ids)),
        st.lists(st.sampled_from("abc"), min_size=1, max_size=3, unique=True),
    ),
    st.builds(lambda id, text: Message("tool", text, tool_call_id=id, name="f"), st.sampled_from("abc"), TEXT),
)


def cleaned(message: Message) -> Message:
    """What the store makes of it: the same with lone surrogates replaced."""
    content = clean_text(message.content) if isinstance(message.content, str) else message.content
    return Message(
        message.role,
        content,
        tool_calls=message.tool_calls,
        tool_call_id=message.tool_call_id,
        name=message.name,
        reasoning=clean_text(message.reasoning),
    )


@st.composite
def views(draw: st.DrawFn, head: int) -> View:
    """Any partition of the first messages of a log."""
    items: list[Verbatim | Stub | Summary | Marker] = []
    seq, end = 1, draw(st.integers(0, head))
    while seq <= end:
        last = draw(st.integers(seq, end))
        text = draw(st.text(max_size=5))
        kinds: list[Verbatim | Stub | Summary | Marker] = [
            Verbatim(seq, last),
            Summary(f"s{seq}", ((seq, last),), text),
            Marker(f"t{seq}", ((seq, last),), text),
        ]
        if seq == last:
            kinds.append(Stub(seq, text, "prune"))
        items.append(draw(st.sampled_from(kinds)))
        seq = last + 1
    return View(tuple(items), end + 1)


class StoreMachine(RuleBasedStateMachine):
    """`log`, `done` and `undone` are the model: a list of messages and two stacks of views with their pins."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.path = Path(self.folder.name) / "data" / "sessions.db"
        self.log: list[Message] = []
        self.done: list[tuple[View, frozenset[int]]] = [(View(), frozenset())]
        self.undone: list[tuple[View, frozenset[int]]] = []
        self.partial = ""
        self.committed = 0

    @initialize()
    def start(self) -> None:
        self.store = Store.open(self.path)
        self.session = self.store.create(directory="/", model="m")
        self.id = self.session.info.id

    @rule(messages=st.lists(MESSAGE, min_size=1, max_size=4))
    def append(self, messages: list[Message]) -> None:
        entries = self.session.log.append(messages)
        self.log += [cleaned(message) for message in messages]
        self.partial = ""
        assert [entry.message for entry in entries] == self.log[-len(messages) :]

    @rule(text=TEXT)
    def save_partial(self, text: str) -> None:
        self.session.log.save_partial(text)
        self.partial = clean_text(text)

    @rule(data=st.data())
    def commit(self, data: st.DataObject) -> None:
        view = data.draw(views(len(self.log)))
        self.session.views.commit(view, CompactionRecord(trigger="manual"), expected_head=len(self.log))
        self.take(view, self.done[-1][1])

    def take(self, view: View, pins: frozenset[int]) -> None:
        self.done.append((view, pins))
        self.undone = []
        self.committed += 1

    @rule()
    def undo(self) -> None:
        record = self.session.views.undo()
        assert (record is None) == (len(self.done) == 1)
        if record is not None:
            self.undone.append(self.done.pop())

    @rule()
    def redo(self) -> None:
        record = self.session.views.redo()
        assert (record is None) == (not self.undone)
        if record is not None:
            self.done.append(self.undone.pop())

    @precondition(lambda self: self.log)
    @rule(data=st.data())
    def pin_or_unpin(self, data: st.DataObject) -> None:
        seq, (view, pins) = data.draw(st.integers(1, len(self.log))), self.done[-1]
        change_pins(self.session, seq, stage=UNPIN if seq in pins else PIN)
        self.take(view, pins ^ {seq})

    @rule()
    def reopen(self) -> None:
        self.session.close()
        self.store.close()
        self.store = Store.open(self.path)
        assert self.store.notes == ()
        self.session = self.store.open_session(self.id[:6])
        self.log += self._left_open()
        self.partial = ""

    @rule()
    def recover_again(self) -> None:
        self.reopen()
        assert self.session.log.recover() == []

    @rule(is_fork=st.booleans())
    def go_on_in_a_copy(self, is_fork: bool) -> None:
        """A fork, or the file of an export read again: messages, view, undo, redo and pins are the same."""
        if is_fork:
            copy = self.store.fork(self.id)
        else:
            exported = self.store.copy_of(self.id)
            read = read_session(to_json(exported), "the file", directory="")
            assert read == exported
            copy = self.store.add(read)
        self.session.close()
        self.store.delete(self.id)
        self.id = copy.id
        self.session = self.store.open_session(self.id)
        self.partial = ""
        self.log += self._left_open()

    def _left_open(self) -> list[Message]:
        tail = len(self.log)
        while tail and self.log[tail - 1].role == "tool":
            tail -= 1
        step = self.log[tail - 1 :] if tail and self.log[tail - 1].role == "assistant" else []
        answered = [message.tool_call_id for message in step if message.role == "tool"]
        closing = [
            Message(
                "tool",
                "[interrupted: outcome unknown]",
                tool_call_id=call.id,
                name="f",
                is_error=True,
                source="nca",
            )
            for call in (step[0].tool_calls if step else ())
            if call.id not in answered
        ]
        if self.partial.strip():
            closing.append(Message("assistant", self.partial, is_interrupted=True))
        return closing

    @invariant()
    def they_agree(self) -> None:
        entries = self.session.log.entries()
        assert [entry.seq for entry in entries] == list(range(1, len(self.log) + 1))
        assert [entry.message for entry in entries] == self.log
        assert (self.session.views.current(), self.session.views.pins()) == self.done[-1]
        partial = self.session.log.partial()
        assert (partial.text if partial else "") == self.partial
        assert (self.session.views.current_id > 0) == (len(self.done) > 1)
        assert (self.session.views.redo_id is not None) == bool(self.undone)
        records = self.session.views.compactions()
        assert len(records) == self.committed
        assert sum(not record.undone for record in records) == len(self.done) - 1
        assert self.session.info.messages == len(self.log)

    def teardown(self) -> None:
        self.store.close()
        self.folder.cleanup()


StoreMachine.TestCase.settings = settings(
    max_examples=25, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
)
TestStoreMachine = StoreMachine.TestCase
