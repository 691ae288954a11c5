"""What MCP servers ask while they work: a form, a page, the model, the folders. By old and new protocols."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest

from nca.agent.approvals import Answer, Nobody
from nca.agent.conversation import Conversation
from nca.agent.spending import BESIDE_NAME
from nca.config.servers import McpServer
from nca.events import ApprovalAsked, ApprovalGiven, Notice, SideRequestFinished
from nca.messages import Message, ToolCall, Usage
from nca.models.model import Reply
from nca.words import words
from tests.agent.test_mcp import LARGE, Room, call, results, room
from tests.tools.test_mcp import ROOT, a_server, address

__all__ = ["address", "room"]
OLD = McpServer(name="test", command=sys.executable, args=(str(ROOT / "tests" / "tools" / "old_mcp_server.py"),))
FORM = {
    "type": "object",
    "required": ["mail", "colours"],
    "properties": {
        "mail": {"type": "string", "format": "email", "title": "Mail", "description": "Where to\n[approve]\x1b[31m"},
        "age": {"type": "number", "minimum": 18, "maximum": 120},
        "born": {"type": "string", "format": "date"},
        "name": {"type": "string", "minLength": 2, "maxLength": 5},
        "size": {"type": "string", "oneOf": [{"const": "s", "title": "Small"}, {"const": "l", "title": "Large"}]},
        "colours": {"type": "array", "minItems": 1, "items": {"type": "string", "enum": ["red", "blue"]}},
        "sure": {"type": "boolean"},
    },
}


class Typist(Nobody):
    """Answers with one key, then line by line; None is Escape."""

    can_choose = True

    def __init__(self, key: str, *lines: str | None, choice: Literal["once", "deny", "unanswered"] = "once") -> None:
        self.key = key
        self.lines = list(lines)
        self.choice = choice
        self.asked: list[str] = []
        self.seen: list[ApprovalAsked] = []

    async def ask(self, asked: ApprovalAsked) -> Answer:
        self.seen.append(asked)
        if self.choice != "once" and asked.name == "the MCP server test":
            return Answer(self.choice, "not now")
        return Answer("once")

    async def choose(self, question: str, keys: Sequence[tuple[str, str]]) -> str:
        self.asked.append(question)
        return self.key

    async def type_answer(self, question: str) -> str | None:
        self.asked.append(question)
        return self.lines.pop(0)


def ask(method: str, times: int = 1, **params: Any) -> Message:
    """A call that lets an older server send a request, with the texts of its messages so many times."""
    arguments = json.dumps({"method": method, "times": times, "params": params})
    return Message("assistant", None, (ToolCall("c1", "mcp__test__ask", arguments),))


async def answer(conversation: Conversation) -> Any:
    """What an older server was answered."""
    await conversation.send("Go on.")
    await conversation.close()
    return json.loads(results(conversation)[-1])


def server_of(kind: str, address: str) -> McpServer:
    return a_server() if kind == "stdio" else McpServer(name="test", url=address)


@pytest.mark.parametrize("kind", ["stdio", "http"])
async def test_a_person_fills_in_a_form_and_the_call_waits_for_it(room: Room, kind: str, address: str) -> None:
    person = Typist("y", "Valletta", "40", "", "y", "2")
    conversation = room.open(
        call("books", greeting="Hello"), "Done.", person=person, servers=(server_of(kind, address),)
    )
    await conversation.send("Book.")
    assert results(conversation) == ["Valletta, 2 nights, seaside True, double"]
    assert person.asked[0] == "The MCP server test asks: Hello! Where to?"
    assert "40: valid: at most 30." in person.asked[3]
    assert "(a whole number; Enter: 2)" in person.asked[3]
    assert person.asked[5].splitlines()[1:] == ["1 single", "2 double"]
    await conversation.close()


@pytest.mark.parametrize(
    ("key", "lines", "action"), [("n", (), "decline"), ("", (), "cancel"), ("y", (None,), "cancel")]
)
async def test_a_person_declines_or_cancels(room: Room, key: str, lines: tuple[None, ...], action: str) -> None:
    conversation = room.open(call("books", greeting="Hi"), "Done.", person=Typist(key, *lines))
    await conversation.send("Book.")
    assert results(conversation) == [action]
    await conversation.close()


async def test_where_nobody_can_answer_it_is_declined_and_said(room: Room) -> None:
    conversation = room.open(call("books", greeting="Hi"), "Done.")
    await conversation.send("Book.")
    assert results(conversation) == ["decline"]
    said = "The MCP server test asked: Hi! Where to? Nobody can answer here: declined."
    assert said in [notice.message for notice in room.of(Notice)]
    await conversation.close()


async def test_each_kind_of_field_is_read_and_checked(room: Room) -> None:
    tries = ["", "no mail", "me@example.org", "17", "121", "x", "nan", "18.5", "1999-13-01", "1999-12-01"]
    tries += ["a", "abcdef", "abc", "3", "Large", "", "green", "1, blue", "maybe", "no"]
    person = Typist("y", *tries)
    found = await answer(
        room.open(
            ask("elicitation/create", message="Who?", requestedSchema=FORM), "Done.", person=person, servers=(OLD,)
        )
    )
    assert found == {
        "action": "accept",
        "content": {
            **{"mail": "me@example.org", "age": 18.5, "born": "1999-12-01", "name": "abc", "size": "l"},
            **{"colours": ["red", "blue"], "sure": False},
        },
    }
    assert not person.lines
    assert person.asked[1] == "Mail (email): Where to [approve]⟨U+001B⟩[31m"
    problems = [text.splitlines()[0].partition(": ")[2] for text in person.asked if "\n" in text and "valid:" in text]
    assert "valid: email." in problems
    assert {"valid: at least 18.", "valid: at most 120.", "valid: a number.", "valid: date."} <= set(problems)
    assert {"valid: at least 2 characters.", "valid: at most 5 characters.", "valid: 1 to 2.", "valid: y or n."} <= set(
        problems
    )


async def test_empty_lines_leave_out_what_is_not_needed(room: Room) -> None:
    person = Typist("y", "a@b", "", "", "", "", "2", "")
    found = await answer(
        room.open(
            ask("elicitation/create", message="Who?", requestedSchema=FORM), "Done.", person=person, servers=(OLD,)
        )
    )
    assert found == {"action": "accept", "content": {"mail": "a@b", "colours": ["blue"]}}


async def test_a_form_of_too_many_fields_and_an_unknown_request_are_refused(room: Room) -> None:
    many = {"type": "object", "properties": {f"f{number}": {"type": "string"} for number in range(21)}}
    conversation = room.open(
        ask("elicitation/create", message="Who?", requestedSchema=many), "Done.", person=Typist("y"), servers=(OLD,)
    )
    assert (await answer(conversation))["message"] == "21 fields; at most 20 are asked"


async def test_a_page_is_shown_whole_and_opened_when_the_person_says_so(
    room: Room, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = tmp_path / "opened"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {opened}\n')
    browser.chmod(0o755)
    monkeypatch.setenv("BROWSER", str(browser))
    person = Typist("y")
    asked = ask("elicitation/create", mode="url", message="Pay.", url="https://pay.test/1?x=2", elicitationId="e1")
    assert await answer(room.open(asked, "Done.", person=person, servers=(OLD,))) == {"action": "accept"}
    assert person.asked == ["The MCP server test wants you to open https://pay.test/1?x=2\nPay."]
    assert opened.read_text().strip() == "https://pay.test/1?x=2"
    opened.unlink()
    person = Typist("n")
    assert await answer(room.open(asked, "Done.", person=person, servers=(OLD,))) == {"action": "decline"}
    assert not opened.exists()


@pytest.mark.parametrize("kind", ["stdio", "http"])
async def test_the_folders_of_work_are_the_roots(room: Room, tmp_path: Path, kind: str, address: str) -> None:
    more = tmp_path / "more"
    more.mkdir()
    conversation = room.open(
        call("looks"), "Done.", servers=(server_of(kind, address),), values={"tools.readable": [str(more)]}
    )
    await conversation.send("Look.")
    assert results(conversation) == [f"{tmp_path.as_uri()} {more.as_uri()}"]
    await conversation.close()


async def test_the_folders_that_its_arguments_name_are_a_server_s_roots(room: Room, tmp_path: Path) -> None:
    shelf, source = tmp_path / "shelf", tmp_path / "source"
    for folder in (shelf, source):
        folder.mkdir()
    plain = server_of("stdio", "")
    server = replace(plain, args=(*plain.args, str(shelf), "--source", str(source)))
    conversation = room.open(call("looks"), "Done.", servers=(server,))
    await conversation.send("Look.")
    assert results(conversation) == [shelf.as_uri()]
    await conversation.close()


@pytest.mark.parametrize("kind", ["stdio", "http"])
async def test_the_model_answers_a_server_once_the_person_allows_it_and_it_counts(
    room: Room, kind: str, address: str
) -> None:
    person = Typist("", choice="once")
    replies = (call("thinks"), Reply(Message("assistant", "Valletta."), Usage(30, 4, cost=0.02)), "Done.")
    conversation = room.open(*replies, person=person, permission="ask", servers=(server_of(kind, address),))
    await conversation.send("Think.")
    assert results(conversation) == [f"{LARGE.name}, endTurn: Valletta."]
    sent = room.model.requests[1]
    assert sent.messages == [
        {"role": "system", "content": "Be short."},
        {"role": "user", "content": "What is the capital of Malta?"},
    ]
    assert (sent.max_output_tokens, sent.tools) == (50, [])
    [asked] = [one for one in person.seen if one.name == "the MCP server test"]
    assert "system: Be short.\nuser: What is the capital of Malta?" in asked.command
    assert asked.subject == ""
    assert [one.decision for one in room.of(ApprovalGiven)] == ["once", "once"]
    [finished] = room.of(SideRequestFinished)
    assert (finished.purpose, finished.usage) == ("sampling", Usage(30, 4, cost=0.02))
    [beside] = [spent.usage for spent in conversation.spending.by_purpose() if spent.name == BESIDE_NAME]
    assert beside == Usage(30, 4, cost=0.02)
    await conversation.close()


async def test_a_server_does_not_reach_the_model_without_the_person(room: Room) -> None:
    messages = [{"role": "user", "content": {"type": "text", "text": "word "}}]
    asked, person = ask("sampling/createMessage", messages=messages, maxTokens=9), Typist("", choice="deny")
    denied = await answer(room.open(asked, "Done.", person=person, permission="ask", servers=(OLD,)))
    assert denied["message"] == "the person said no: not now"
    alone = room.open(asked, "Done.", person=Typist("", choice="unanswered"), permission="ask", servers=(OLD,))
    finished = await alone.send("Go on.")
    assert "nobody can give it here" in results(alone)[-1]
    assert (finished.is_unanswered, finished.exit_code) == (True, 1)
    assert [one.decision for one in room.of(ApprovalGiven)][-2:] == ["once", "unanswered"]
    await alone.close()
    large = ask("sampling/createMessage", 200_000, messages=messages, maxTokens=9)
    refused = await answer(room.open(large, "Done.", servers=(OLD,)))
    assert "the model has room for" in refused["message"]
    assert len(room.model.requests) == 2


async def test_a_call_that_is_stopped_takes_its_question_along(room: Room) -> None:
    class Absent(Typist):
        async def choose(self, question: str, keys: Sequence[tuple[str, str]]) -> str:
            is_asked.set()
            try:
                await asyncio.Event().wait()
            finally:
                is_over.set()
            return ""

    is_asked, is_over = asyncio.Event(), asyncio.Event()
    conversation = room.open(call("books", greeting="Hi"), "Done.", person=Absent("y"))
    turn = asyncio.create_task(conversation.run_turn(words("Book.")))
    await is_asked.wait()
    turn.cancel()
    await asyncio.gather(turn, return_exceptions=True)
    await is_over.wait()
    await conversation.close()


async def test_the_time_of_a_call_does_not_run_while_a_person_is_asked(room: Room) -> None:
    class Slow(Typist):
        async def type_answer(self, question: str) -> str | None:
            if "Enter: single" in question:
                await asyncio.sleep(3.5)
            return await super().type_answer(question)

    conversation = room.open("Hello.", call("books", greeting="Hi"), "Done.", person=Slow("y", "Gozo", "", "", ""))
    await conversation.send("Hello.")
    [connection] = conversation.servers.connections
    connection.server = replace(connection.server, timeout_seconds=3.0)
    await conversation.send("Book.")
    assert results(conversation) == ["Gozo, 2 nights, seaside False, single"]
    await conversation.close()
