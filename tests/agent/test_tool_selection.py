"""nca's own tools in a conversation: which are offered, what a change shows, and what a compaction keeps."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, ClassVar

import pytest
from msgspec.structs import replace

from nca.agent.conversation import Conversation
from nca.agent.reply_checks import ASKED_AGAIN, CHANGE_NOW, NOT_CHANGED, NOTHING_RUN, RUN_NOW, orders_run
from nca.agent.tool_selection import offered
from nca.config.loaded import defaults
from nca.config.schema import ToolSettings
from nca.context.admission import Limits
from nca.context.budget import Budget
from nca.errors import ProviderError, ProviderFailure
from nca.events import Event, Notice, RequestRead, ToolFinished
from nca.messages import Message, ToolCall
from nca.models.catalog import ModelFacts, describe
from nca.models.client import Delta, ModelRequest, OnDelta, Reply
from nca.sessions.store import Store
from nca.testing.scripted import ScriptedModel, ScriptedReply
from nca.tools.shell.runner import CommandRunner
from nca.tools.tool import Permission, ToolOutcome, TypedTool
from nca.tools.toolbox import Toolbox, ToolContext, default_toolbox
from tests.agent.test_conversation import LONG_ANSWER, summary_or

LARGE = ModelFacts(name="scripted/large", provider="scripted", window_tokens=100_000, can_see=True)
PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x1e\0\0\0\x14" + b"\0" * 50


class Room:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.project = path / "project"
        self.project.mkdir()
        self.store = Store.open(path / "sessions.db")
        self.events: list[Event] = []

    def open(
        self, replies: list[ScriptedReply], facts: ModelFacts = LARGE, session: str | None = None
    ) -> tuple[Conversation, ScriptedModel]:
        model = ScriptedModel(replies, facts=facts)
        conversation = Conversation.open(
            defaults().with_values({"agent.permission": "auto"}, "the test"),
            store=self.store,
            model=model,
            directory=self.project,
            session=session,
            listener=self.events.append,
        )
        return conversation, model


@pytest.fixture
def room(tmp_path: Path) -> Room:
    return Room(tmp_path)


def call(name: str, call_id: str = "c1", /, **arguments: Any) -> Message:
    return Message("assistant", None, (ToolCall(call_id, name, json.dumps(arguments)),))


async def test_a_folder_that_is_added_in_the_chat_can_be_read_at_once(room: Room) -> None:
    (other := room.path / "other").mkdir()
    (other / "note.txt").write_text("remember")
    reading: list[ScriptedReply] = [call("read_file", path="../other/note.txt"), "Read."]
    conversation, _ = room.open([*reading, *reading])
    await conversation.send("Read it.")
    conversation.set("tools.readable", ["../other"])
    await conversation.send("And now?")
    results = [event.summary for event in room.events if isinstance(event, ToolFinished)]
    assert results[0].startswith("../other/note.txt is outside of the working directory (")
    assert results[1:] == ["1 line"]
    await conversation.close()


async def test_a_change_is_in_the_event_with_its_diff(room: Room) -> None:
    (room.project / "a.py").write_text("x = 1\n")
    steps: list[ScriptedReply] = [
        call("read_file", path="a.py"),
        call("edit_file", path="a.py", old_text="1", new_text="2"),
        "Done.",
    ]
    conversation, _ = room.open(steps)
    await conversation.send("Make it two.")
    read, edited = [event for event in room.events if isinstance(event, ToolFinished)]
    assert (read.diff, edited.summary) == ("", "+1 −1")
    assert edited.diff == "--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-x = 1\n+x = 2"
    assert (room.project / "a.py").read_text() == "x = 2\n"
    await conversation.close()


async def test_an_image_reaches_a_model_that_sees_and_is_named_to_one_that_does_not(room: Room) -> None:
    (room.project / "a.png").write_bytes(PNG)
    conversation, model = room.open([call("read_file", path="a.png"), "I see."])
    await conversation.send("Look.")
    (shown,) = [row for row in model.requests[-1].messages if isinstance(row["content"], list)]
    assert shown["role"] == "user"
    assert shown["content"][1]["image_url"]["url"].startswith("data:image/png;base64,")
    blind = ScriptedModel(["No.", call("read_file", path="a.png"), "No."], facts=ModelFacts(name="scripted/blind"))
    await conversation.use_model(blind)
    await conversation.send("And now?")
    assert "base64" not in str(blind.requests[-1].messages)
    await conversation.send("Again?")
    assert "the model takes none" in blind.requests[-1].messages[-1]["content"]
    await conversation.close()


def test_what_is_known_of_models_eyes() -> None:
    assert describe("openai/gpt-4.1").can_see
    assert not describe("openai/gpt-3.5-turbo").can_see
    assert not describe("nobody/knows-this").can_see


async def test_the_list_of_what_is_to_be_done_outlives_compaction_and_the_process(room: Room) -> None:
    todo = call("todo", doing="mend the parser", open=["run the tests"], done=["read it"])
    answers = summary_or(LONG_ANSWER * 3)

    def reply(request: ModelRequest) -> Any:
        if "Make a list" in str(request.messages[-1]["content"]):
            return todo
        return answers(request)

    facts = ModelFacts(name="scripted/small", provider="scripted", window_tokens=16_000)
    conversation, model = room.open([reply] * 200, facts)
    conversation.set("context.target_ratio", 0.1)
    await conversation.send("Make a list.")
    for number in range(60):
        await conversation.send(f"Question {number}")
    assert len(conversation.context.history()) >= 2
    assert "mend the parser" in str(conversation.context.effective_history())
    assert "Question 1" not in [row["content"] for row in conversation.context.effective_history()]
    name = conversation.session.info.id
    await conversation.close()
    later = iter([call("todo", "c2"), "As I said."])

    def resumed_reply(request: ModelRequest) -> Any:
        return answers(request) if "<transcript>" in str(request.messages[-1]) else next(later)

    resumed, model = room.open([resumed_reply] * 4, facts, session=name)
    await resumed.send("What was left?")
    assert model.requests[-1].messages[-1]["content"] == "- [x] read it\n- [>] mend the parser\n- [ ] run the tests"
    await resumed.close()


async def test_a_small_window_is_offered_less_also_where_it_is_found_out(room: Room) -> None:
    failure = ProviderFailure("compact", is_overflow=True, asked_tokens=9_000, limit_tokens=4_000)
    conversation, model = room.open([*[LONG_ANSWER] * 12, ProviderError("too long", failure=failure), *["Done."] * 3])
    for number in range(12):
        await conversation.send(f"Question {number}")
    assert (await conversation.send("One more")).reason == "answered"
    names = [[one["function"]["name"] for one in request.tools] for request in model.requests]
    assert {"glob", "todo", "fetch_url", "shell", "write_file"} <= set(names[0])
    assert set(names[-1]) == {"read_file", "edit_file", "write_file", "grep", "shell", "recall"}
    await conversation.close()


SMALL = replace(LARGE, is_small=True)
BUDGET = Budget.of(16_384)


class Own(TypedTool):
    name: ClassVar[str] = "own"
    permission: ClassVar[Permission] = "read"

    async def call(self, flag: bool, names: list[str]) -> ToolOutcome:
        """Made by the person. It has more to say."""
        return ToolOutcome("")


def test_a_small_model_is_offered_few_tools_in_their_simplest_form(tmp_path: Path) -> None:
    toolbox = default_toolbox(tmp_path)
    small = {one["function"]["name"]: one["function"] for one in offered(toolbox, SMALL, BUDGET)}
    assert list(small) == ["read_file", "edit_file", "write_file", "grep"]
    edit = small["edit_file"]["parameters"]
    assert list(edit["properties"]) == edit["required"] == ["path", "new_text"]
    assert list(small["read_file"]["parameters"]["properties"]) == ["path", "offset", "limit"]
    assert len(json.dumps(list(small.values()))) < 2_000


async def test_a_small_model_changes_a_file_by_its_new_code_and_another_model_cannot(room: Room) -> None:
    edit = call("edit_file", path="a.py", new_text="def f():\n    return 2")
    steps: list[ScriptedReply] = [call("read_file", path="a.py"), edit, "Done."]
    for facts, number in ((SMALL, 2), (LARGE, 1)):
        (room.project / "a.py").write_text("x = 1\n\n\ndef f():\n    return 1\n")
        conversation, model = room.open(steps, facts)
        await conversation.send("Let f in a.py return 2.")
        assert (room.project / "a.py").read_text() == f"x = 1\n\n\ndef f():\n    return {number}\n"
        said = model.requests[-1].messages[-1]["content"]
        assert said == ("[edited a.py: f replaced]" if number == 2 else "Error: missing argument old_text (a string)")
        await conversation.close()


def test_tools_that_are_not_ncas_own_stay_as_they_are() -> None:
    toolbox = Toolbox([Own()])
    assert offered(toolbox, SMALL, BUDGET) == offered(toolbox, LARGE, BUDGET) == toolbox.definitions()


@pytest.mark.parametrize(
    ("window_tokens", "off", "is_offered"), [(9_000, (), False), (60_000, ("job",), False), (60_000, (), True)]
)
def test_a_command_in_the_background_is_offered_only_together_with_job(
    tmp_path: Path, window_tokens: int, off: tuple[str, ...], is_offered: bool
) -> None:
    runner = CommandRunner(tmp_path, settings=ToolSettings, limits=Limits)
    toolbox = default_toolbox(tmp_path, context=ToolContext(runner=runner))
    chosen = offered(toolbox, LARGE, Budget.of(window_tokens), off)
    tools = {one["function"]["name"]: one["function"] for one in chosen}
    assert ("job" in tools) == is_offered
    assert ("background" in tools["shell"]["parameters"]["properties"]) == is_offered
    whole = {one["function"]["name"]: one["function"] for one in toolbox.definitions()}
    assert "background" in whole["shell"]["parameters"]["properties"]


def test_what_is_off_is_not_offered(tmp_path: Path) -> None:
    for facts in (LARGE, SMALL):
        names = [one["function"]["name"] for one in offered(default_toolbox(tmp_path), facts, BUDGET, ["grep"])]
        assert "read_file" in names
        assert "grep" not in names


EDIT = call("write_file", path="b.py", content="x = 2\n")


@pytest.mark.parametrize(
    ("facts", "asked", "steps", "is_told", "is_said"),
    [
        (SMALL, "Fix a.py.", ["```py\nx = 2\n```", "a.py is fixed."], True, True),
        (SMALL, "Something is wrong in b.py. Please fix it.", ["```py\nx = 2\n```", EDIT, "Fixed."], True, False),
        (SMALL, "Can you fix a.py?", ["a.py is fixed.", "Yes."], True, True),
        (SMALL, "What does fix in a.py do?", ["It changes x."], False, True),
        (SMALL, "What is in a.py?", ["```py\nx = 1\n```"], False, False),
        (SMALL, "Write a loop.", ["```py\nx = 1\n```"], False, False),
        (SMALL, "Fix b.py. " + "It is wrong. " * 50, ["Fixed."], False, True),
        (SMALL, "Fix b.py.", [EDIT, "```py\nx = 2\n```"], False, False),
        (LARGE, "Fix a.py.", ["```py\nx = 2\n```"], False, False),
    ],
)
async def test_a_small_model_that_changed_no_file_is_told_once_and_does_not_pass_for_one_that_did(
    room: Room, facts: ModelFacts, asked: str, steps: list[ScriptedReply], is_told: bool, is_said: bool
) -> None:
    conversation, model = room.open(steps, facts)
    await conversation.send(asked)
    told = [one["content"] for one in model.requests[-1].messages if one["role"] == "user"][1:]
    assert told == ([CHANGE_NOW.format(asked=asked)] if is_told else [])
    assert len(model.requests) == len(steps)
    assert (Notice(ASKED_AGAIN) in room.events) is is_told
    assert (Notice(NOT_CHANGED) in room.events) is is_said
    labels = [item.label for item in conversation.context.stats().heaviest]
    assert any(label.startswith("nca: No file has changed") for label in labels) is is_told
    await conversation.close()


async def test_a_change_that_was_refused_is_no_fault_of_the_model(room: Room) -> None:
    conversation, _ = room.open([EDIT, "It was refused."], SMALL)
    conversation.set("agent.permission", "ask")
    await conversation.send("Fix b.py.")
    assert not {Notice(ASKED_AGAIN), Notice(NOT_CHANGED)} & set(room.events)
    await conversation.close()


RUN = call("shell", command="echo 3 passed")
SHOWN = "```sh\npytest\n```"


@pytest.mark.parametrize(
    ("facts", "asked", "steps", "is_told", "is_said"),
    [
        (SMALL, "Run the tests.", [SHOWN, RUN, "All pass."], True, False),
        (SMALL, "Can you run pytest -q for me?", [SHOWN, "All pass."], True, True),
        (SMALL, "Which tests fail? Run them.", [RUN, "None."], False, False),
        (SMALL, "How do I run the tests?", [SHOWN], False, False),
        (LARGE, "Run the tests.", [SHOWN], False, False),
    ],
)
async def test_a_small_model_that_was_to_run_something_and_did_not_is_told_once(
    room: Room, facts: ModelFacts, asked: str, steps: list[ScriptedReply], is_told: bool, is_said: bool
) -> None:
    conversation, model = room.open(steps, facts)
    conversation.set("agent.permission", "auto")
    await conversation.send(asked)
    told = [one["content"] for one in model.requests[-1].messages if one["role"] == "user"][1:]
    assert told == ([RUN_NOW.format(asked=asked)] if is_told else [])
    assert len(model.requests) == len(steps)
    assert (Notice(ASKED_AGAIN) in room.events) is is_told
    assert (Notice(NOTHING_RUN) in room.events) is is_said
    await conversation.close()


@pytest.mark.parametrize(
    ("asked", "is_order"),
    [
        ("run it", True),
        ("Fix a.py and run the tests.", True),
        ("Please execute test_a.py", True),
        ("Does it run?", False),
        ("Write a script that I can run.", False),
        ("Start with the parser.", False),
        ("What is a runtime error?", False),
    ],
)
def test_what_asks_for_a_run(asked: str, is_order: bool) -> None:
    assert orders_run(asked) is is_order


@pytest.mark.parametrize(("mode", "steps"), [("ask", [EDIT, "I may not."]), ("plan", ["Change line 2."])])
async def test_a_small_model_that_may_not_change_a_file_is_not_told_to(
    room: Room, mode: str, steps: list[ScriptedReply]
) -> None:
    conversation, model = room.open(steps, SMALL)
    conversation.set("agent.permission", mode)
    await conversation.send("Fix b.py.")
    assert len(model.requests) == len(steps)
    await conversation.close()


class Reading(ScriptedModel):
    """Says what it has read, as a server of llama.cpp does."""

    async def ask(self, request: ModelRequest, on_delta: OnDelta) -> Reply:
        on_delta(Delta(read_tokens=512, of_tokens=3_900))
        return await super().ask(request, on_delta)


async def test_what_a_model_has_read_is_an_event_and_no_part_of_the_answer(room: Room) -> None:
    conversation = Conversation.open(
        defaults(), store=room.store, model=Reading(["Hi."]), directory=room.project, listener=room.events.append
    )
    finished = await conversation.send("Hello.")
    assert [event for event in room.events if isinstance(event, RequestRead)] == [RequestRead(512, 3_900)]
    assert finished.text == "Hi."
    await conversation.close()
