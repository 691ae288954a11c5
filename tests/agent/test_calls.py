"""The tool calls of one answer: readers in parallel, writers one by one; repeated calls; messages typed meanwhile."""

from __future__ import annotations

import asyncio
import json
import shutil
import tempfile
import time
from pathlib import Path
from typing import Annotated, Any

import pytest

from nca.agent.approvals import AFTER_FAILURE, Answer, Nobody, Person
from nca.agent.calls import LIVE_SECONDS, MOST_AT_ONCE, LiveOutput
from nca.agent.conversation import Conversation
from nca.config.loaded import defaults
from nca.config.tables import PermissionRule
from nca.context.file_reads import CUT_OFF
from nca.context.repeats import NUDGE
from nca.context.validate import validate_request
from nca.events import (
    ApprovalAsked,
    CallWritten,
    ContextCompaction,
    Event,
    MessageTaken,
    Notice,
    ToolFinished,
    ToolStarted,
)
from nca.messages import Message, ToolCall
from nca.models.model import CallSoFar, Delta, ModelRequest, OnDelta, Reply
from nca.sessions.store import Store
from nca.testing.scripted import ScriptedModel
from nca.tools.tool import Permission, ToolError, ToolOutcome, TypedTool
from nca.tools.toolbox import Toolbox
from nca.wire import part_text
from nca.words import Words, words
from tests.agent.test_conversation import SMALL


class Meeting(TypedTool):
    """Counts how many of it run at once. `wait`: how many loops of the event loop it takes."""

    def __init__(self, name: str, permission: Permission) -> None:
        self.name = name  # type: ignore[misc]
        self.permission = permission  # type: ignore[misc]
        self.running = self.most = 0

    async def call(self, wait: Annotated[int, "How long."] = 1, say: Annotated[str, "The answer."] = "") -> ToolOutcome:
        """Meet."""
        if say == "fail":
            raise ToolError("it failed")
        self.running += 1
        self.most = max(self.most, self.running)
        for _ in range(wait):
            await asyncio.sleep(0)
        self.running -= 1
        return ToolOutcome(say or f"{wait}")


class Typist(Nobody):
    """Types ahead. `typed`: what it has typed by each time it is asked."""

    def __init__(self, *typed: list[str]) -> None:
        self.typed = list(typed)

    def typed_ahead(self) -> list[Words]:
        return [words(one) for one in self.typed.pop(0)] if self.typed else []


class KilledLater(Nobody):
    """Copies the database while it is asked, and allows it. `left`: what a process killed then would have left."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.left: list[list[str]] = []

    async def ask(self, asked: ApprovalAsked) -> Answer:
        self.left.append(left_by_a_kill(self.path))
        return Answer("once")


class KilledBesides(TypedTool):
    """Copies the database once two of its calls run side by side."""

    name, permission = "slow", "read"

    def __init__(self, path: Path) -> None:
        self.path, self.left = path, list[list[str]]()
        self.both = asyncio.Barrier(2)

    async def call(self) -> ToolOutcome:
        """Wait for the other one."""
        await self.both.wait()
        self.left.append(left_by_a_kill(self.path))
        return ToolOutcome("")


def left_by_a_kill(path: Path) -> list[str]:
    """The results that a session gets when it is opened after a kill at this moment."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(path, copy := Path(folder) / "copy")
        with Store.open(copy / "sessions.db") as store, store.open_session(store.list()[0].id) as session:
            return [entry.message.text for entry in session.recovered]


class Room:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.database: Path | None = None
        self.events: list[Event] = []
        self.look, self.change = Meeting("look", "read"), Meeting("change", "write")
        self.execute = Meeting("execute", "execute")

    def open(self, *replies: Any, person: Person | None = None, **settings: Any) -> Conversation:
        loaded = defaults().with_values({"agent.permission": "auto", **settings}, "the test")
        self.model = ScriptedModel(replies, facts=SMALL)
        return Conversation.open(
            loaded,
            store=Store.open(self.database),
            model=self.model,
            directory=self.path,
            toolbox=Toolbox([self.look, self.change, self.execute]),
            listener=self.events.append,
            person=person,
        )


@pytest.fixture
def room(tmp_path: Path) -> Room:
    return Room(tmp_path)


def calls(*made: tuple[str, str]) -> Message:
    return Message(
        "assistant", tool_calls=tuple(ToolCall(f"c{number}", name, text) for number, (name, text) in enumerate(made))
    )


def results(conversation: Conversation) -> list[str]:
    return [entry.message.text for entry in conversation.context.entries if entry.message.role == "tool"]


async def test_readers_run_together_and_are_logged_in_order(room: Room) -> None:
    waits = [90, 1, 50, 3, 20, 2, 10]
    conversation = room.open(calls(*(("look", f'{{"wait": {wait}}}') for wait in waits)), "Done.")
    await conversation.send("Look")
    assert results(conversation) == [str(wait) for wait in waits]
    assert room.look.most == MOST_AT_ONCE
    finished = [event.call_id for event in room.events if isinstance(event, ToolFinished)]
    assert finished == [f"c{number}" for number in range(len(waits))]


async def test_a_call_that_waited_for_an_answer_when_nca_was_killed_never_ran(room: Room) -> None:
    person = KilledLater(room.path / "data")
    room.database = person.path / "sessions.db"
    conversation = room.open(
        calls(("change", "{}"), ("execute", "{}")), "Done.", person=person, **{"agent.permission": "ask"}
    )
    await conversation.send("Change and test")
    await conversation.close()
    not_run = "[not run: nca ended before it began]"
    assert person.left == [[not_run, not_run], [not_run]]


async def test_all_calls_that_ran_side_by_side_when_nca_was_killed_may_have_had_an_effect(tmp_path: Path) -> None:
    slow = KilledBesides(tmp_path / "data")
    with Store.open(slow.path / "sessions.db") as store:
        model = ScriptedModel([calls(("slow", "{}"), ("slow", "{}")), "Done."], facts=SMALL)
        conversation = Conversation.open(
            defaults(), store=store, model=model, directory=tmp_path, toolbox=Toolbox([slow])
        )
        await conversation.send("Go")
        await conversation.close()
    assert slow.left[0] == [CUT_OFF, CUT_OFF]


async def test_no_command_runs_after_a_change_that_failed(room: Room) -> None:
    made = [("change", '{"say": "fail"}'), ("change", "{}"), ("execute", "{}"), ("look", "{}")]
    looked = calls(("look", '{"say": "fail"}'), ("execute", '{"wait": 2}'))
    conversation = room.open(calls(*made), looked, "Done.")
    await conversation.send("Change and test")
    not_run = "[not run: change before it in the same message failed; call it again when that is right]"
    assert results(conversation)[1:4] == ["1", not_run, "1"]
    assert results(conversation)[5:] == ["2"], "a look that failed has changed nothing"
    finished = [event for event in room.events if isinstance(event, ToolFinished)]
    assert [(event.is_error, event.summary) for event in finished][2] == (True, "not run: change failed")
    assert sum(isinstance(event, ToolStarted) for event in room.events) == len(finished)


@pytest.mark.parametrize("path", ["Makefile", "conftest.py", "AGENTS.md", ".github/workflows/ci.yml", "a.py"])
@pytest.mark.parametrize("mode", ["ask", "auto"])
async def test_no_command_runs_after_a_change_that_failed_or_that_nobody_allowed(
    tmp_path: Path, path: str, mode: str
) -> None:
    """Also of a file that others run or obey. In the mode `auto` the edit fails, as its old text is not there."""
    (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / path).write_text("old\n")
    edit = json.dumps({"path": path, "old_text": "old" if mode == "ask" else "none", "new_text": "new"})
    made = calls(("edit_file", edit), ("shell", '{"command": "touch ran"}'))
    settings = {"agent.permission": mode, "permissions.allow": [PermissionRule("shell", "touch ran")]}
    loaded = defaults().with_values(settings, "the test")
    model = ScriptedModel([made, "Done."], facts=SMALL)
    conversation = Conversation.open(loaded, store=Store.open(None), model=model, directory=tmp_path)
    await conversation.send("Go")
    change, command = results(conversation)
    assert ("nobody can give it here" in change) == (mode == "ask")
    assert command == AFTER_FAILURE.format(name="edit_file")
    assert not (tmp_path / "ran").exists()


async def test_a_change_of_any_file_is_tried_after_one_that_failed(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("old\n")
    wrong = '{"path": "a.py", "old_text": "none", "new_text": "new"}'
    made = calls(("edit_file", wrong), ("write_file", '{"path": "Makefile", "content": "all:\\n"}'))
    model = ScriptedModel([made, "Done."], facts=SMALL)
    loaded = defaults().with_values({"agent.permission": "auto"}, "the test")
    conversation = Conversation.open(loaded, store=Store.open(None), model=model, directory=tmp_path)
    await conversation.send("Go")
    assert (tmp_path / "Makefile").read_text() == "all:\n"


async def test_a_writer_waits_for_all_before_it_and_all_behind_wait_for_it(room: Room) -> None:
    made = [("look", "{}"), ("change", '{"wait": 9}'), ("change", "{}"), ("look", "{}"), ("look", "{}")]
    conversation = room.open(calls(*made), "Done.")
    await conversation.send("Change")
    kinds = [
        (type(event).__name__[4:], event.call_id)
        for event in room.events
        if isinstance(event, ToolStarted | ToolFinished)
    ]
    assert kinds[:6] == [
        ("Started", "c0"),
        ("Finished", "c0"),
        ("Started", "c1"),
        ("Finished", "c1"),
        ("Started", "c2"),
        ("Finished", "c2"),
    ]
    assert room.change.most == 1
    assert room.look.most == 2


class Slow(TypedTool):
    """Takes a while to end when it is stopped."""

    name, permission = "slow", "read"
    started = ended = 0

    async def call(self) -> ToolOutcome:
        """Wait."""
        self.started += 1
        try:
            await asyncio.Event().wait()
        finally:
            for _ in range(3):
                await asyncio.sleep(0)
            self.ended += 1
        return ToolOutcome("")


async def test_a_stopped_turn_waits_for_all_calls_that_ran_side_by_side(tmp_path: Path) -> None:
    slow = Slow()
    model = ScriptedModel([calls(("slow", "{}"), ("slow", "{}"), ("slow", "{}"))], facts=SMALL)
    loaded = defaults().with_values({"agent.permission": "auto"}, "the test")
    conversation = Conversation.open(
        loaded, store=Store.open(None), model=model, directory=tmp_path, toolbox=Toolbox([slow])
    )
    turn = asyncio.ensure_future(conversation.run_turn(words("Go")))
    while slow.started < 3:
        await asyncio.sleep(0)
    turn.cancel()
    assert (await turn).reason == "interrupted"
    assert slow.ended == 3


async def test_stopped_in_the_middle_each_call_has_a_true_result(room: Room) -> None:
    made = [("look", "{}"), ("change", '{"wait": 1000000000}'), ("change", "{}")]
    conversation = room.open(calls(*made))
    turn = asyncio.ensure_future(conversation.run_turn(words("Change")))
    while room.change.running == 0:
        await asyncio.sleep(0)
    turn.cancel()
    assert (await turn).reason == "interrupted"
    assert results(conversation) == [
        "1",
        "[interrupted by the user: outcome unknown]",
        "[not run: the person stopped the turn]",
    ]


def told(conversation: Conversation) -> list[str]:
    """What nca added to each result."""
    made = [entry.message.content for entry in conversation.context.entries if entry.message.role == "tool"]
    return ["" if isinstance(one, str) else part_text((one or ())[-1]) for one in made]


def again(text: str = "same") -> Message:
    return calls(("look", f'{{"say": "{text}"}}'))


async def test_going_round_in_circles_is_nudged_once_and_then_ends(room: Room) -> None:
    conversation = room.open(*[again()] * 4, "never asked")
    finished = await conversation.send("Go")
    assert finished.reason == "stuck"
    assert told(conversation) == ["", "", NUDGE, ""]
    assert results(conversation) == ["same"] * 4
    assert len(room.model.requests) == 4
    assert validate_request(conversation.context.effective_history(), "openai") == []


async def test_a_circle_of_several_steps_is_one_too(room: Room) -> None:
    conversation = room.open(*[again(), again("b"), again("c")] * 4, "never asked")
    assert (await conversation.send("Go")).reason == "stuck"
    said = told(conversation)
    assert [number for number, text in enumerate(said, 1) if text == NUDGE] == [9]
    assert len(said) == 12


async def test_a_check_that_fails_the_same_way_after_each_change_is_no_circle(room: Room) -> None:
    changes = [step for number in range(10) for step in (again(f"change {number}"), again("check"))]
    conversation = room.open(*changes, "Done.")
    assert (await conversation.send("Go")).reason == "answered"
    assert not any(told(conversation))


async def test_a_failure_that_is_repeated_with_nothing_changed_is_said(room: Room) -> None:
    fails = [calls((name, '{"say": "fail"}')) for name in ("look", "execute", "change")]
    conversation = room.open(
        *(fails[0], again(), fails[0]), *(fails[1], again(), fails[1]), *(fails[2], fails[0], "No.", fails[0], "No.")
    )
    await conversation.send("Go")
    await conversation.send("Once more")
    said = told(conversation)
    # A reading call is repeated; a call that may do anything lies between for the last one, as does the person's word.
    assert [number for number, text in enumerate(said, 1) if text] == [3, 6]
    assert said[2] == (
        "[This call failed before (message 3), and nothing that was done since can have changed that: Error: it failed]"
    )
    sent = [message["content"] for message in room.model.requests[3].messages if message["role"] == "tool"]
    assert sent[-1] == f"Error: it failed\n\n{said[2]}"


async def test_a_change_that_waits_for_a_look_at_the_file_is_marked_in_the_log_and_works_after_it(
    tmp_path: Path,
) -> None:
    (tmp_path / "a.txt").write_text("old\n")
    written = calls(("write_file", '{"path": "a.txt", "content": "new\\n"}'))
    model = ScriptedModel([written, written, calls(("read_file", '{"path": "a.txt"}')), written, "Done."], facts=SMALL)
    loaded = defaults().with_values({"agent.permission": "auto"}, "the test")
    conversation = Conversation.open(loaded, store=Store.open(None), model=model, directory=tmp_path)
    await conversation.send("Go")
    marks = [one.message.asks_to_read for one in conversation.session.log.entries() if one.message.role == "tool"]
    assert marks == [True, True, False, False]
    assert [bool(text) for text in told(conversation)] == [False, True, False, False]
    assert (tmp_path / "a.txt").read_text() == "new\n"


async def test_a_call_that_was_not_run_has_not_failed(room: Room) -> None:
    refused = calls(("change", '{"say": "fail"}'), ("execute", "{}"))
    conversation = room.open(refused, refused, "Done.")
    await conversation.send("Go")
    assert results(conversation)[1].startswith("[not run: ")
    assert not told(conversation)[3]


async def test_the_same_after_each_compaction_is_said_to_the_model_then_to_the_person(room: Room) -> None:
    steps = [again(str(number) + " word" * 300) for number in (1, 2)] * 100
    settings: dict[str, Any] = {"context.stages": ("truncate",)}
    conversation = room.open(*steps, **settings)
    finished = await conversation.send("Go")
    assert finished.reason == "stuck"
    assert any(isinstance(event, ContextCompaction) and event.phase == "completed" for event in room.events)
    numbers = [number for number, text in enumerate(told(conversation), 1) if text]
    assert numbers == [6, 8, 10]
    assert told(conversation)[5].startswith("[You have made the same calls with the same results 3 times; compactions")
    notices = [event for event in room.events if isinstance(event, Notice) and "nothing new" in event.message]
    assert len(notices) == 2
    assert finished.steps == 12


async def test_a_turn_may_take_a_hundred_and_twenty_steps(room: Room) -> None:
    settings: dict[str, Any] = {"context.stages": ("prune", "truncate")}
    conversation = room.open(*[again(f"part {number}") for number in range(119)], "Done.", **settings)
    finished = await conversation.send("Go")
    assert (finished.reason, finished.steps) == ("answered", 120)


async def test_a_nudge_that_helps_ends_nothing(room: Room) -> None:
    conversation = room.open(*[again()] * 3, again("other"), *[again()] * 2, "Done.")
    assert (await conversation.send("Go")).reason == "answered"


async def test_a_new_turn_may_ask_the_same_again(room: Room) -> None:
    conversation = room.open(*[again()] * 2, "One.", *[again()] * 2, "Two.")
    assert [(await conversation.send(text)).text for text in ("Go", "And again")] == ["One.", "Two."]
    assert not any(told(conversation))


async def test_what_is_said_meanwhile_comes_with_the_next_step_of_the_turn(room: Room) -> None:
    typist = Typist(["stop that", " ", "use b"], ["never taken"])
    conversation = room.open(again(), "Done.", person=typist)
    assert (await conversation.send("Go")).text == "Done."
    roles = [entry.message.role for entry in conversation.context.entries]
    assert roles == ["user", "assistant", "tool", "user", "assistant"]
    assert room.model.requests[1].messages[-1]["content"] == "stop that\n\nuse b"
    assert [event.text for event in room.events if isinstance(event, MessageTaken)] == ["stop that\n\nuse b"]
    # Behind the last step the prompt has it.
    assert typist.typed == [["never taken"]]


async def test_a_file_that_is_not_there_does_not_end_the_turn_that_runs(room: Room) -> None:
    conversation = room.open(again(), "Done.", person=Typist(["see @./missing.py"]))
    assert (await conversation.send("Go")).reason == "answered"
    assert room.model.requests[1].messages[-1]["content"] == "see @./missing.py"
    assert any("no such file" in getattr(event, "message", "") for event in room.events)


class WritesSlowly(ScriptedModel):
    """Writes a call in a thousand pieces."""

    async def ask(self, request: ModelRequest, on_delta: OnDelta) -> Reply:
        for number in range(1, 1_001):
            on_delta(Delta(call=CallSoFar("write_file", "{", "x", number, 0)))
        return await super().ask(request, on_delta)


async def test_a_call_that_is_being_written_is_told_a_few_times_a_second(tmp_path: Path) -> None:
    told: list[CallWritten] = []
    conversation = Conversation.open(
        defaults(),
        store=Store.open(tmp_path / "sessions.db"),
        model=WritesSlowly(["Done."]),
        directory=tmp_path,
        listener=lambda event: told.append(event) if isinstance(event, CallWritten) else None,
    )
    began = time.monotonic()
    await conversation.send("Write it.")
    assert 1 <= len(told) <= 1 + (time.monotonic() - began) / LIVE_SECONDS
    await conversation.close()


async def test_what_a_running_call_prints_is_told_each_time_that_it_changes() -> None:
    told: asyncio.Queue[str] = asyncio.Queue()
    live = LiveOutput(lambda text: text, told.put_nowait)
    for line in ("one", "two", "three"):
        live.feed(f"{line}\n")
        assert (await told.get()).splitlines()[-1] == line
    live.feed("four\n")
    live.end()
    assert told.empty()
