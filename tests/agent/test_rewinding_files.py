"""Chat and files together: after any way back and forth both are byte for byte what they were at that moment."""

from __future__ import annotations

import asyncio
import json
import tempfile
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nca.agent.conversation import Conversation
from nca.agent.rewinding import Point, What
from nca.agent.user_input import TAKEN_BACK
from nca.config.loaded import defaults
from nca.errors import UsageError
from nca.file_history.history import FileHistory
from nca.file_history.plan import RewindPlan
from nca.messages import Message, ToolCall
from nca.sessions.store import Store
from nca.testing.scripted import ScriptedModel
from tests.agent.test_conversation import Room
from tests.agent.test_rewinding import Talk
from tests.context.effort import patient, trying

NAMES = ("a", "b", "d/c")
Writes = list[tuple[str, str]]


class Work(Talk):
    """A talk whose turns write files below `root`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.seen: dict[int, dict[str, str]] = {0: {}}
        super().__init__(100_000)

    def files_of(self, root: Path) -> FileHistory:
        return super().files_of(self.root)

    def work(self, number: int, writes: Writes) -> None:
        self.shown_at[self.window.history.head + 1] = self.moment()
        self.window.append(Message("user", f"Do it {'x' * number}"))
        for name, text in writes:
            path = self.root / name
            with self.files.recorder.edit(path, text.encode(), "write_file"):
                path.parent.mkdir(exist_ok=True)
                path.write_text(text)
        self.window.append(Message("assistant", f"Done {'x' * number}"))
        self.seen[self.window.history.head] = self.tree()

    def tree(self) -> dict[str, str]:
        return {str(one.relative_to(self.root)): one.read_text() for one in self.root.rglob("*") if one.is_file()}

    def moment(self) -> Any:
        return self.window.request_messages(), self.tree()

    def unheard(self) -> str:
        """What the next message has to tell: how the files differ from those at the newest message that is shown."""
        then, now = self.seen[max((one.seq for one in self.window.history.visible()), default=0)], self.tree()
        differing = sorted(name for name in {*then, *now} if then.get(name) != now.get(name))
        return ", ".join(name if name in now else f"{name} (deleted)" for name in differing)

    def go(self, point: Point, what: What) -> None:
        plan = asyncio.run(self.rewinds.plan(point))
        outcome = asyncio.run(self.rewinds.go_back(point, plan if what != "chat" else RewindPlan(), what))
        assert not outcome.left


writes = st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(["one\n", "two\n", "three\n"])), max_size=3)
actions = st.lists(
    st.one_of(
        st.tuples(st.just("work"), writes),
        st.tuples(st.sampled_from(["both", "chat", "files"]), st.integers(0, 20)),
        st.tuples(st.sampled_from(["forward", "end", "reopen"]), st.integers(0, 5)),
    ),
    max_size=12,
)


@patient
@trying(0.024)
@given(actions)
def test_both_are_what_they_were(steps: list[tuple[str, Any]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        talk = Work(Path(folder))
        talk.work(0, [("a", "begin\n")])
        ahead: list[Any] = []
        ends: dict[int, Any] = {}
        for number, (what, value) in enumerate(steps, 1):
            before = talk.moment()
            match what:
                case "work":
                    talk.work(number, value)
                    ahead = []
                case "forward":
                    assert (asyncio.run(talk.rewinds.go_forward()) is not None) == bool(ahead)
                    assert talk.moment() == (ahead.pop() if ahead else before)
                case "reopen":
                    talk.reopen()
                    assert talk.moment() == before
                case "end":
                    if points := [point for point in talk.rewinds.points() if point.rewind]:
                        point = points[value % len(points)]
                        view = talk.session.views.current_id
                        talk.go(point, "both")
                        assert talk.moment() == ends[point.rewind]
                        ends[talk.session.views.current_id] = before
                        ahead.append(before)
                        assert talk.session.views.current_id > view
                case _:
                    seq = sorted(talk.shown_at)[value % len(talk.shown_at)]
                    talk.go(talk.rewinds.point(seq), cast(What, what))
                    chat, tree = talk.shown_at[seq]
                    expected = before[0] if what == "files" else chat, before[1] if what == "chat" else tree
                    assert talk.moment() == expected
                    ends[talk.session.views.current_id] = before
                    ahead.append(before)

            # What a branch left behind when only the chat went back, the model has never heard of.
            if not any(what == "chat" for what, _ in steps[:number]):
                told = talk.user_input.files_taken_back()
                assert told == ((TAKEN_BACK.format(talk.unheard()),) if talk.unheard() else ())


def test_what_somebody_wrote_later_is_no_matter_of_a_turn_that_changed_no_file(tmp_path: Path) -> None:
    talk = Work(tmp_path)
    talk.work(1, [("a", "one\n")])
    talk.work(2, [])
    for _ in range(2):
        newest = talk.rewinds.last_turn()
        assert newest is not None
        talk.go(newest, "both")
    for _ in range(2):
        asyncio.run(talk.rewinds.go_forward())
    (tmp_path / "a").write_text("one\nmine\n")
    newest = talk.rewinds.last_turn()
    assert newest is not None
    assert newest.text.startswith("Do it xx")
    assert asyncio.run(talk.rewinds.changes(newest)) == ()
    assert asyncio.run(talk.rewinds.plan(newest)).is_empty


async def test_wrong_arguments_of_going_back_are_named_and_nothing_changes(tmp_path: Path) -> None:
    room = Room(tmp_path)
    conversation = room.open(["One.", "Two."], settings={"model.summarizer": "none"})
    await conversation.send("First")
    await conversation.send("Second")
    rewinds, before = conversation.rewinds, conversation.context.effective_history()
    point = rewinds.point(3)
    plan = await rewinds.plan(point)
    given: list[tuple[Any, Any, Any, str]] = [
        (point, plan, "everything", "what: 'everything' is not valid; valid: both, chat, files"),
        (3, plan, "chat", "point: expected one of"),
        (point, None, "both", "plan: expected what `await plan"),
    ]
    for one, its_plan, what, said in given:
        with pytest.raises(UsageError, match=said):
            await rewinds.go_back(one, its_plan, what)
    unplanned: Any = "chat"
    with pytest.raises(UsageError, match="plan: expected what `await plan_forward"):
        await rewinds.go_forward(unplanned)
    assert conversation.context.effective_history() == before
    await rewinds.go_back(point, plan, "chat")
    assert conversation.context.effective_history() == before[:-2]
    await conversation.close()


async def test_a_call_that_changed_nothing_beside_the_first_change_is_not_unknown(tmp_path: Path) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "same").write_text("same\n")
    read = Message("assistant", None, (ToolCall("r", "read_file", '{"path": "same"}'),))
    calls = [ToolCall(n, "write_file", json.dumps({"path": n, "content": "same\n"})) for n in ("same", "new")]
    conversation = Conversation.open(
        defaults().with_values({"agent.permission": "auto"}, "the test"),
        store=Store.open(tmp_path / "sessions.db"),
        model=ScriptedModel([read, Message("assistant", None, tuple(calls)), "Done."]),
        directory=folder,
    )
    await conversation.send("Write them.")
    point = conversation.rewinds.last_turn()
    assert point is not None
    plan = await conversation.rewinds.plan(point)
    assert (plan.unknown, [one.path for one in plan.deleted]) == ((), ["new"])
    await conversation.close()
