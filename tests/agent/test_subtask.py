"""The task tool: a question in a separate context, of which only the answer comes back."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

from nca.agent.approvals import Answer, Nobody, Person
from nca.agent.conversation import Conversation
from nca.agent.subtask import PROMPT
from nca.context.validate import validate_request
from nca.errors import ProviderError
from nca.events import ApprovalAsked, Event, Notice, ToolFinished, ToolOutput, ToolStarted, UsageReported
from nca.messages import Message, ToolCall, Usage
from nca.models.catalog import ModelFacts
from nca.models.client import ModelRequest, Reply
from nca.testing.scripted import ScriptedModel
from nca.words import words
from tests.agent.test_conversation import Room

FACTS = ModelFacts(name="scripted/middle", provider="scripted", window_tokens=20_000, input_cost=1e-6, output_cost=1e-6)
TASK = '{"question": "Where is the flag?"}'


class Rooms(Room):
    """`main` and `inner`: what the conversation and its tasks answer, told apart by the system prompt."""

    model: ScriptedModel

    def start(
        self, main: list[Any], inner: list[Any], *, person: Person | None = None, settings: dict[str, Any] | None = None
    ) -> Conversation:
        main, inner = list(main), list(inner)

        def answer(request: ModelRequest) -> Any:
            if "<transcript>" in str(request.messages[-1]["content"]):
                return "### 1. Goal and intent\nThe assistant looks for the flag."
            reply = (inner if is_inner(request) else main).pop(0)
            return reply(request) if callable(reply) else reply

        conversation = self.open([answer] * 60, facts=FACTS, settings=settings, person=person)
        assert isinstance(conversation.model, ScriptedModel)
        self.model = conversation.model
        return conversation

    def requests(self, *, inner: bool) -> list[ModelRequest]:
        return [one for one in self.model.requests if one.tools and is_inner(one) == inner]


def is_inner(request: ModelRequest) -> bool:
    return PROMPT in str(request.messages[0]["content"])


def names(request: ModelRequest) -> list[str]:
    return [tool["function"]["name"] for tool in request.tools]


def call(name: str, arguments: str, call_id: str = "c1") -> Message:
    return Message("assistant", None, (ToolCall(call_id, name, arguments),))


def priced(message: Message | str, cost: float) -> Reply:
    message = Message("assistant", message) if isinstance(message, str) else message
    ending = "tool_calls" if message.tool_calls else "stop"
    return Reply(message, Usage(1_000, 10, cost=cost), ending)


@pytest.fixture
def room(tmp_path: Path) -> Rooms:
    (tmp_path / "notes.txt").write_text("The flag is under the third stone.\n" * 20)
    return Rooms(tmp_path)


async def test_only_the_answer_comes_back(room: Rooms) -> None:
    conversation = room.start(
        [call("task", TASK), "It is under the third stone."],
        [call("read_file", '{"path": "notes.txt"}'), "Under the third stone (notes.txt:1)."],
    )
    finished = await conversation.send("Find the flag.")
    assert (finished.reason, finished.text) == ("answered", "It is under the third stone.")
    first, _ = room.requests(inner=True)
    assert [row["content"] for row in first.messages[1:]] == ["Where is the flag?"]
    assert "task" in names(room.requests(inner=False)[0])
    assert names(first) == [name for name in names(room.requests(inner=False)[0]) if name != "task"]
    result = conversation.context.entries[2].message
    assert (result.text, result.is_error) == ("Under the third stone (notes.txt:1).", False)
    assert len(conversation.context.entries) == 4
    assert "The flag is under" not in str(conversation.context.effective_history())
    # In the events its calls stand inside of the task's, and cannot be taken for the conversation's own.
    lines = [event for event in room.events if isinstance(event, ToolStarted | ToolFinished)]
    assert [event.name for event in lines] == ["task", "read_file", "read_file", "task"]
    assert lines[0].call_id == "c1" != lines[1].call_id == lines[2].call_id
    assert (lines[0].summary, lines[1].summary) == ("task Where is the flag?", "task: read notes.txt")
    assert lines[3].summary.startswith("2 steps, ")
    assert [info.id for info in room.store.list()] == [conversation.session.info.id]


async def test_a_long_output_is_kept_beside_those_of_the_conversation_and_can_be_read(room: Rooms) -> None:
    lines = "".join(f"Stone {number} has no flag.\n" for number in range(40_000))
    (room.path / "long.txt").write_text(lines)
    conversation = room.start(
        [call("task", TASK), "Nowhere."], [call("shell", '{"command": "cat long.txt"}'), "Under none of them."]
    )
    await conversation.send("Find the flag.")
    _, second = room.requests(inner=True)
    outputs = room.store.outputs_folder(conversation.session.info.id)
    assert outputs is not None
    (kept,) = [path for path in outputs.glob("task-*/*") if path.is_file()]
    assert kept.read_text() == lines
    assert str(kept) in str(second.messages[-1]["content"])


async def test_an_output_of_the_conversation_can_be_read(room: Rooms) -> None:
    """A task has a folder of outputs of its own inside the conversation's."""
    found: list[str] = []
    reads = lambda _: call("read_file", json.dumps({"path": found[0]}))  # noqa: E731
    conversation = room.start([call("task", TASK), "Found."], [reads, "Under the third."])
    outputs = room.store.outputs_folder(conversation.session.info.id)
    assert outputs is not None
    outputs.mkdir(parents=True)
    (outputs / "5.txt").write_text("Stone 3 has a flag.")
    found.append(str(outputs / "5.txt"))
    await conversation.send("Find the flag.")
    _, second = room.requests(inner=True)
    assert "Stone 3 has a flag." in str(second.messages[-1]["content"])


async def test_what_it_wishes_of_its_context_is_no_wish_of_the_conversation(room: Rooms) -> None:
    long = "The flag may be anywhere, and nobody knows where. " * 200
    wish = call("compact", '{"reason": "the step is done"}')
    conversation = room.start([long, long, long, call("task", TASK), "Found."], [wish, "Under the third stone."])
    for number in range(3):
        await conversation.send(f"Question {number}.")
    before = conversation.context.effective_history()
    assert conversation.context.stats().usage_ratio > 0.3
    await conversation.send("Find the flag.")
    _, second = room.requests(inner=True)
    assert "of the context is used; go on" in str(second.messages[-1]["content"])
    assert conversation.context.effective_history()[: len(before)] == before
    assert conversation.context.history() == []


@pytest.mark.parametrize(
    ("limit", "asked", "why"), [(0.6, 2, "has cost $0.70"), (0.1001, 0, "This request alone costs")]
)
async def test_its_cost_is_the_sessions_and_the_limit_holds_inside(
    room: Rooms, limit: float, asked: int, why: str
) -> None:
    look = priced(call("read_file", '{"path": "notes.txt"}'), 0.3)
    main = [priced(call("task", TASK), 0.1), priced("Never asked.", 0.1)]
    conversation = room.start(main, [look, look, priced("Never said.", 0.3)], settings={"session.max_cost": limit})
    finished = await conversation.send("Find the flag.")
    assert finished.reason == "failed"
    assert conversation.session.usage.totals().cost == pytest.approx(0.1 + 0.3 * asked)
    assert finished.cost == pytest.approx(0.1 + 0.3 * asked)
    assert len(room.requests(inner=True)) == asked
    assert why in conversation.context.entries[2].message.text
    # What the conversation itself was told of its own requests stays its own.
    assert len(room.of(UsageReported)) == 1


async def test_it_acts_under_the_parents_permissions(room: Rooms) -> None:
    write = call("write_file", '{"path": "new.txt", "content": "x"}')

    class Changing(Nobody):
        word = "deny"

        async def ask(self, asked: ApprovalAsked) -> Answer:
            return Answer(self.word)  # type: ignore[arg-type]

    conversation = room.start(
        [call("task", TASK), "No.", call("task", TASK), "Yes."],
        [write, "It was refused.", write, "Written."],
        person=(person := Changing()),
    )
    await conversation.send("Try.")
    assert not (room.path / "new.txt").exists()
    assert "the person said no" in str(room.requests(inner=True)[1].messages)
    person.word = "session"
    await conversation.send("Again.")
    assert (room.path / "new.txt").read_text() == "x"
    assert [rule.tool for rule in conversation.approvals.session_rules] == ["write_file"]
    asked = room.of(ApprovalAsked)
    started = [event.call_id for event in room.of(ToolStarted) if event.name == "write_file"]
    assert [event.call_id for event in asked] == started


async def test_what_a_task_has_read_the_conversation_has_not(room: Rooms) -> None:
    read = call("read_file", '{"path": "notes.txt"}')
    write = call("write_file", '{"path": "notes.txt", "content": "x"}')
    main = [call("task", TASK), write, read, write, "Done."]
    conversation = room.start(main, [read, "Read."], settings={"agent.permission": "auto"})
    await conversation.send("Try.")
    results = [entry.message for entry in conversation.context.entries if entry.message.role == "tool"]
    assert [message.is_error for message in results] == [False, True, False, False]


async def test_what_a_command_of_a_task_prints_is_told_while_it_runs(room: Rooms) -> None:
    os.mkfifo(room.path / "gate")
    told: list[ToolOutput] = []

    def hear(event: Event) -> None:
        if isinstance(event, ToolOutput):
            told.append(event)
            (room.path / "gate").write_text("on\n")

    conversation = room.start(
        [call("task", TASK), "Done."],
        [call("shell", '{"command": "echo looking; read -r _ <gate"}'), "Nowhere."],
        settings={"agent.permission": "auto"},
    )
    conversation.subscribe(hear)
    await conversation.send("go")
    assert [event.text for event in told] == ["looking"]
    assert told[0].call_id.startswith("task-")


async def test_a_plan_stays_a_plan(room: Rooms) -> None:
    write = call("write_file", '{"path": "new.txt", "content": "x"}')
    conversation = room.start([call("task", TASK), "No."], [write, "Refused."], settings={"agent.permission": "plan"})
    await conversation.send("Try.")
    assert not (room.path / "new.txt").exists()
    assert "only allows reading" in str(room.requests(inner=True)[1].messages)


async def test_a_long_task_is_compacted_in_its_own_window_and_its_limit_is_told(room: Rooms) -> None:
    (room.path / "big.txt").write_text("".join(f"Line {number} of a long story.\n" for number in range(300)))
    looks = [call("read_file", f'{{"path": "big.txt", "offset": {n + 1}}}', f"c{n}") for n in range(15)]
    # The person compacts by hand; a task does by itself.
    settings = {"agent.max_steps": 15, "context.auto": "off"}
    conversation = room.start([call("task", TASK), "Done."], looks, settings=settings)
    await conversation.send("Find the flag.")
    inner = room.requests(inner=True)
    assert len(inner) == 15
    assert any("Conversation Summary" in str(one.messages) or "cleared" in str(one.messages) for one in inner)
    assert all(not validate_request(one.messages, "scripted", tools=one.tools) for one in inner)
    assert any(event.message.startswith("task: Compacted ") for event in room.of(Notice))
    assert conversation.context.history() == []
    result = conversation.context.entries[2].message
    assert (result.text, result.is_error) == ("[the task reached its limit of 15 steps]", True)


async def test_what_a_task_found_up_to_its_limit_is_an_answer(room: Rooms) -> None:
    found = Message("assistant", "Not under the first.", (ToolCall("c1", "read_file", '{"path": "notes.txt"}'),))
    conversation = room.start([call("task", TASK), "Done."], [priced(found, 0.1)] * 2, settings={"agent.max_steps": 2})
    await conversation.send("Find the flag.")
    result = conversation.context.entries[2].message
    assert result.text == "Not under the first.\n[the task reached its limit of 2 steps]"
    assert not result.is_error
    (told,) = (event for event in room.of(ToolFinished) if event.name == "task")
    assert told.summary == "2 steps, 2,020 tokens"


async def test_an_answer_is_admitted_like_every_result(room: Rooms) -> None:
    conversation = room.start([call("task", TASK), "Long."], ["A long tale. " * 20_000])
    await conversation.send("Find the flag.")
    assert "Output truncated from" in conversation.context.entries[2].message.text
    assert conversation.context.stats().used_tokens < 10_000


async def test_a_failure_inside_is_one_line_for_the_model(room: Rooms) -> None:
    conversation = room.start(
        [call("task", TASK), "Then not.", call("task", '{"question": " "}'), "Oh."],
        [ProviderError("The model is out.")],
    )
    assert (await conversation.send("Find the flag.")).reason == "answered"
    assert conversation.context.entries[2].message.text == "Error: the task failed: The model is out."
    await conversation.send("Ask nothing.")
    assert "Error: give a question" in [entry.message.text for entry in conversation.context.entries]


async def test_cancelling_the_turn_cancels_the_task(room: Rooms) -> None:
    begun = asyncio.Event()

    def slow(request: ModelRequest) -> str:
        begun.set()
        return "A very long answer. " * 5_000

    conversation = room.start([call("task", TASK), "Never.", "Fine."], [slow])
    sending = asyncio.ensure_future(conversation.run_turn(words("Find the flag.")))
    await begun.wait()
    sending.cancel()
    assert (await sending).reason == "interrupted"
    assert conversation.context.entries[-1].message.text == "[interrupted by the user: outcome unknown]"
    asked = len(room.model.requests)
    for _ in range(50):
        await asyncio.sleep(0)
    assert len(room.model.requests) == asked == 2


async def test_several_tasks_run_side_by_side(room: Rooms) -> None:
    both = Message("assistant", None, (ToolCall("c1", "task", TASK), ToolCall("c2", "task", TASK)))
    conversation = room.start([both, "Done."], [priced("One.", 0.1), priced("Two.", 0.1)])
    heard: list[Event] = []
    conversation.subscribe(heard.append)
    await conversation.send("Find both flags.")
    kinds = [type(event).__name__ for event in heard if isinstance(event, ToolStarted | ToolFinished)]
    assert kinds == ["ToolStarted", "ToolStarted", "ToolFinished", "ToolFinished"]
    assert sorted(entry.message.text for entry in conversation.context.entries[2:4]) == ["One.", "Two."]


async def test_a_small_window_has_no_task(room: Rooms) -> None:
    small = room.open(["Hello."])
    await small.send("Hello")
    assert isinstance(small.model, ScriptedModel)
    assert "task" not in names(small.model.requests[0])


async def test_what_a_task_changes_is_taken_back_with_the_conversation_s_own(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "notes.txt").touch()
    room = Rooms(tmp_path / "home")
    room.path = tmp_path
    inner = [
        call("write_file", '{"path": "d/made.txt", "content": "1"}'),
        call("shell", '{"command": "rm notes.txt; echo 2 > made"}'),
        "Done.",
    ]
    conversation = room.start([call("task", TASK), "Good."], inner, settings={"agent.permission": "auto"})
    await conversation.send("Change it.")
    assert not (tmp_path / "notes.txt").exists()
    assert [one.path for one in conversation.files.changed_since(1)] == ["d/made.txt", "made", "notes.txt"]
    conversation.files.apply(conversation.files.plan(1))
    assert sorted(one.name for one in tmp_path.iterdir()) == ["home", "notes.txt"]
