"""MCP servers in a conversation: calls and results, approval, and when changes of a server apply."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from nca.agent.approvals import Answer, Nobody, Person
from nca.agent.conversation import Conversation
from nca.config.loaded import LoadedSettings, defaults
from nca.config.servers import McpServer
from nca.context.validate import validate_request
from nca.events import ApprovalAsked, ErrorRaised, Event, Notice, ToolFinished, ToolProgress, ToolStarted
from nca.messages import Message, ToolCall
from nca.models.catalog import ModelFacts
from nca.sessions.store import Store
from nca.testing.scripted import ScriptedModel, ScriptedReply
from nca.words import words
from tests.agent.test_conversation import SMALL
from tests.tools.test_mcp import a_server
from tests.tools.test_mcp_lists import changing_server

LARGE = ModelFacts(name="scripted/large", provider="scripted", window_tokens=100_000)


class Consenting(Nobody):
    async def ask(self, asked: ApprovalAsked) -> Answer:
        return Answer("session")


class Room:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.events: list[Event] = []
        self.store = Store.open(path / "sessions.db")

    def open(
        self,
        *replies: ScriptedReply,
        facts: ModelFacts = LARGE,
        servers: tuple[McpServer, ...] | None = None,
        permission: str = "auto",
        person: Person | None = None,
        values: Mapping[str, object] | None = None,
    ) -> Conversation:
        # A server of a test is Python, which on a busy machine needs longer to start than a person would wait.
        given = {"agent.permission": permission, "mcp.wait_seconds": 100, **(values or {})}
        settings: LoadedSettings = defaults().with_values(given, "the test")
        loaded = settings.with_value("mcp.servers", servers or (a_server(),), "the test")
        self.model = ScriptedModel(replies, facts=facts)
        return Conversation.open(
            loaded,
            store=self.store,
            model=self.model,
            directory=self.path,
            listener=self.events.append,
            person=person,
        )

    def of(self, kind: type[Event]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]


@pytest.fixture
def room(tmp_path: Path) -> Room:
    return Room(tmp_path)


def call(name: str, /, **arguments: Any) -> Message:
    return Message("assistant", None, (ToolCall("c1", f"mcp__test__{name}", json.dumps(arguments)),))


def results(conversation: Conversation) -> list[str]:
    return [entry.message.text for entry in conversation.context.entries if entry.message.role == "tool"]


async def test_how_far_a_call_is_comes_between_its_start_and_its_end(room: Room) -> None:
    conversation = room.open(call("counts"), "Done.")
    await conversation.send("Count.")
    between = [event for event in room.events if isinstance(event, ToolStarted | ToolProgress | ToolFinished)]
    assert [type(event) for event in between] == [ToolStarted, ToolProgress, ToolProgress, ToolFinished]
    assert {event.call_id for event in between} == {between[0].call_id}
    first, second = room.of(ToolProgress)
    assert first.text == "1"
    assert second.text.startswith("2/3 two")
    assert "of three xxx" in second.text
    assert len(second.text) < 250
    assert "\n" not in second.text
    await conversation.close()


async def test_a_call_goes_to_the_server_and_its_result_to_the_log(room: Room) -> None:
    conversation = room.open(call("echo", text="hello"), "Done.")
    finished = await conversation.send("Echo hello.")
    assert finished.reason == "answered"
    assert results(conversation) == ["echo: hello"]
    offered = [tool["function"]["name"] for tool in room.model.requests[0].tools]
    assert "mcp__test__echo" in offered
    assert offered.index("mcp__test__echo") > offered.index("read_file")
    assert room.model.requests[0].tools == room.model.requests[1].tools
    for request in room.model.requests:
        assert validate_request(request.messages, "openai", tools=request.tools) == []
    await conversation.close()
    assert conversation.servers.connections[0].state == "off"


async def test_a_result_of_any_size_goes_through_admission(room: Room) -> None:
    conversation = room.open(call("big", megabytes=2), "Much.")
    await conversation.send("Say much.")
    (text,) = results(conversation)
    assert len(text) < 100_000
    whole = Path(text.rpartition("The whole output is in ")[2].rstrip("]"))
    assert whole.stat().st_size >= 2 << 20
    await conversation.close()


@pytest.mark.parametrize(("name", "said"), [("dies", "ended with exit code 3"), ("endless_line", "more than 8 MiB")])
async def test_a_server_that_fails_costs_one_result_and_the_chat_goes_on(room: Room, name: str, said: str) -> None:
    conversation = room.open(call(name), "It failed.", call("echo", text="back"), "Now it works.")
    assert (await conversation.send("Try it.")).reason == "answered"
    assert (await conversation.send("Again.")).text == "Now it works."
    first, second = results(conversation)
    assert first.startswith("Error: the MCP server test: it ")
    assert said in first
    assert "\n" not in first
    assert second == "echo: back"
    assert room.model.requests[0].tools == room.model.requests[-1].tools
    await conversation.close()


async def test_every_call_asks_even_one_that_says_it_only_reads(room: Room) -> None:
    conversation = room.open(
        call("echo", text="1"),
        call("echo", text="2"),
        call("facts"),
        "Done.",
        permission="accept-edits",
        person=Consenting(),
    )
    await conversation.send("Go.")
    asked = room.of(ApprovalAsked)
    assert [one.name for one in asked] == ["mcp__test__echo", "mcp__test__facts"]
    assert asked[0].needs == "execute"
    assert "says it only reads" in asked[0].command
    assert '"text": "1"' in asked[0].command
    # The rule is for this very server; what is started under the same name with another command asks again.
    assert asked[0].subject.startswith(f"test@{a_server().digest}-")
    assert a_server(args=("-m", "other")).digest != a_server().digest
    await conversation.close()


async def test_tools_that_change_come_with_the_next_turn_and_are_asked_about_anew(room: Room) -> None:
    steps = (call("echo", text="1"), call("change"), call("echo", text="2"), "Done.")
    conversation = room.open(
        *steps,
        call("echo", text="3"),
        "Done.",
        servers=(changing_server("test"),),
        permission="ask",
        person=Consenting(),
    )
    await conversation.send("Go.")
    first = [request.tools for request in room.model.requests]
    assert first == [first[0]] * 4, "within a turn every request begins with the same bytes"
    while "grown" not in {offer.name for offer in conversation.servers.find("test").listing.offers}:
        await asyncio.sleep(0.01)
    await conversation.send("Go on.")
    later = {tool["function"]["name"]: tool["function"] for tool in room.model.requests[-1].tools}
    assert "mcp__test__grown" in later
    assert "mcp__test__passing" not in later
    assert "send it to somebody" in later["mcp__test__echo"]["description"]
    asked = [one.name for one in room.of(ApprovalAsked)]
    assert asked == ["mcp__test__echo", "mcp__test__change", "mcp__test__echo"]
    assert results(conversation) == ["echo: 1", "changed", "echo: 2", "echo: 3"]
    assert any("has changed its tools: 1 new, 1 changed, 1 gone" in event.message for event in room.of(Notice))
    for request in room.model.requests:
        assert validate_request(request.messages, "openai", tools=request.tools) == []
    await conversation.close()


async def test_nobody_to_ask_and_reading_only_refuse(room: Room) -> None:
    conversation = room.open(call("echo", text="1"), "No.", call("echo", text="1"), "No.", permission="ask")
    await conversation.send("Go.")
    conversation.set("agent.permission", "plan")
    await conversation.send("Go.")
    unanswered, denied = results(conversation)
    assert "nobody can give it here" in unanswered
    assert "only allows reading" in denied
    await conversation.close()


async def test_a_server_that_cannot_start_is_told_once_and_costs_nothing(room: Room) -> None:
    conversation = room.open("One.", "Two.", servers=(McpServer(name="none", command="there-is-no-such-program"),))
    await conversation.send("Hello.")
    await conversation.send("Hello again.")
    told = [event.message for event in room.of(Notice)]
    assert [one for one in told if "MCP" in one] == [
        "The MCP server none failed: No such file or directory: there-is-no-such-program. /mcp shows more."
    ]
    await conversation.close()


async def test_of_a_server_that_ends_is_told_what_it_wrote_last(room: Room) -> None:
    conversation = room.open("One.", servers=(a_server("broken", how="dying"),))
    await conversation.send("Hello.")
    assert [event.message for event in room.of(Notice) if "MCP" in event.message] == [
        "The MCP server broken failed: it ended with exit code 1: no such luck. /mcp shows more."
    ]
    await conversation.close()


async def test_in_a_small_window_its_tools_take_a_share_and_no_more(room: Room) -> None:
    conversation = room.open("Hello.", facts=SMALL)
    assert (await conversation.send("Hello.")).reason == "answered"
    offered = [tool for tool in room.model.requests[0].tools if tool["function"]["name"].startswith("mcp__")]
    assert 0 < len(offered) < len(conversation.servers.tools())
    assert not room.of(ErrorRaised)
    (said,) = [event.message for event in room.of(Notice) if "No room" in event.message]
    left_out = len(conversation.servers.tools()) - len(offered)
    assert said.startswith(f"No room for {left_out} of {len(conversation.servers.tools())} tools")
    assert len(conversation.servers.left_out) == left_out
    await conversation.close()


async def test_a_tool_that_is_off_takes_no_room_and_misses_none(room: Room) -> None:
    conversation = room.open("Hello.", values={"tools.off": ["mcp__test__slow"]})
    await conversation.send("Hello.")
    assert "mcp__test__slow" not in {tool["function"]["name"] for tool in room.model.requests[0].tools}
    assert not conversation.servers.left_out
    assert not [event.message for event in room.of(Notice) if "No room" in event.message]
    others = [one.name for one in conversation.servers.tools() if one.name != "mcp__test__echo"]
    await conversation.close()
    conversation = room.open("Hello.", facts=SMALL, values={"tools.off": others})
    await conversation.send("Hello.")
    names = {tool["function"]["name"] for tool in room.model.requests[0].tools}
    assert "mcp__test__echo" in names
    assert not conversation.servers.left_out
    await conversation.close()


async def test_no_server_crowds_out_another(room: Room) -> None:
    servers = (a_server(), changing_server())
    conversation = room.open("Hello.", facts=SMALL, servers=servers)
    await conversation.send("Hello.")
    names = {tool["function"]["name"] for tool in room.model.requests[0].tools}
    assert {"mcp__it__echo", "mcp__test__echo"} <= names
    assert conversation.servers.left_out
    await conversation.close()


async def test_a_resource_that_the_text_names_comes_along(room: Room) -> None:
    conversation = room.open("Milk.")
    await conversation.send("What is in @test:memo://today?")
    (message,) = [entry.message for entry in conversation.context.entries if entry.message.role == "user"]
    assert [(part.path, part.text) for part in message.attachments] == [("test:memo://today", "buy milk")]
    assert (await conversation.send("And @test:memo://none?")).reason == "failed"
    assert "@test:memo://none" in room.of(ErrorRaised)[0].message
    await conversation.close()


async def test_interrupted_in_a_call_the_server_lives_on(room: Room) -> None:
    conversation = room.open(call("slow", seconds=60), call("echo", text="still"), "Yes.")
    sending = asyncio.create_task(conversation.run_turn(words("Wait.")))
    connection = conversation.servers.connections[0]
    while not any(getattr(event, "name", "") == "mcp__test__slow" for event in room.events):
        await asyncio.sleep(0.01)
    sending.cancel()
    assert (await sending).reason == "interrupted"
    assert connection.state == "ready"
    assert (await conversation.send("And now?")).text == "Yes."
    assert results(conversation)[-1] == "echo: still"
    assert [event.is_error for event in room.of(ToolFinished)][-1] is False
    await conversation.close()
