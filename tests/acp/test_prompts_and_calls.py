"""Prompts, answers, tool calls and approvals, with an editor's client over real pipes."""

from __future__ import annotations

import asyncio
import base64
import threading
from pathlib import Path
from typing import Any

import acp
import pytest
from acp.schema import PermissionOption, ToolCallUpdate

from nca.testing.scripted import Answer, in_order
from tests.acp.conftest import Desk, initialize
from tests.tools.mcp_server import PIXEL

pytestmark = pytest.mark.asyncio(loop_scope="session")

WRITE = Answer(tool_calls=[("write_file", {"path": "new.txt", "content": "one\ntwo\n"})])
TOUCH = Answer(tool_calls=[("shell", {"command": "touch made && echo done"})])


def blocking() -> tuple[Any, threading.Event, threading.Event]:
    """A script that has been asked, and answers when it may."""
    asked, may = threading.Event(), threading.Event()

    def script(request: dict[str, Any]) -> str:
        asked.set()
        may.wait(60)
        return "Late."

    return script, asked, may


async def test_what_nca_can_do_is_said_first(desk: Desk) -> None:
    said = await initialize(desk)
    offers = said.agent_capabilities
    assert (said.protocol_version, said.agent_info.name, offers.load_session) == (1, "nca", True)
    assert offers.prompt_capabilities.image
    assert offers.prompt_capabilities.embedded_context
    assert not offers.prompt_capabilities.audio
    assert offers.session_capabilities.list is not None
    with pytest.raises(acp.RequestError, match="needs no login"):
        await desk.agent.authenticate(method_id="any")


async def test_an_answer_streams_with_thoughts_and_says_how_full_the_context_is(desk: Desk) -> None:
    desk.provider.script = in_order(Answer(text="Forty-two \x1b[31mred.", reasoning="Let me think."))
    session = await desk.session()
    assert await desk.ask(session, "What is it?") == "end_turn"
    assert desk.editor.text(session) == "Forty-two red."
    assert desk.editor.text(session, "agent_thought_chunk") == "Let me think."
    usage = desk.editor.of(session, "usage_update")[-1]
    assert 0 < usage.used < usage.size
    kinds = [one.session_update for one in desk.editor.updates[session]]
    asked = kinds.index("agent_thought_chunk")
    assert kinds[:asked].count("usage_update") == 2, (
        "when the session opens, and with the request that has the question"
    )
    assert [one.title for one in desk.editor.of(session, "session_info_update")] == ["What is it?"]


async def test_an_edit_is_asked_about_with_its_diff_and_done(desk: Desk) -> None:
    desk.provider.script = in_order(WRITE, "Done.")
    session = await desk.session()
    assert await desk.ask(session, "Write it.") == "end_turn"
    path = str(desk.work / "new.txt")
    [(call, options)] = desk.editor.asked
    assert [one.kind for one in options] == ["allow_once", "allow_always", "reject_once"]
    assert options[1].name == f"Allow for this session: write_file {path}"
    assert call.content is not None
    [diff] = call.content
    assert isinstance(diff, acp.schema.FileEditToolCallContent)
    assert (diff.path, diff.old_text, diff.new_text) == (path, None, "one\ntwo\n")
    [begun] = desk.editor.of(session, "tool_call")
    assert (begun.kind, begun.locations[0].path) == ("edit", path)
    ended = desk.editor.of(session, "tool_call_update")[-1]
    assert (ended.status, ended.content[0].new_text) == ("completed", "one\ntwo\n")
    assert Path(path).read_text() == "one\ntwo\n"


async def test_no_means_no_and_a_session_rule_asks_once(desk: Desk) -> None:
    again = Answer(tool_calls=[("write_file", {"path": "new.txt", "content": "three\n"})])
    desk.provider.script = in_order(WRITE, WRITE, again, "Done.")
    answers = iter(["deny", "session"])

    async def decide(session: str, call: ToolCallUpdate, options: list[PermissionOption]) -> str:
        return next(answers)

    desk.editor.decide = decide
    session = await desk.session()
    assert await desk.ask(session, "Write it.") == "end_turn"
    ends = [one.status for one in desk.editor.of(session, "tool_call_update") if one.status in ("completed", "failed")]
    assert ends == ["failed", "completed", "completed"]
    assert len(desk.editor.asked) == 2
    assert (desk.work / "new.txt").read_text() == "three\n"
    assert not (desk.home / "nca" / "config.toml").exists(), "nothing holds beyond the session"


async def test_what_the_terminal_asks_about_twice_is_allowed_once_only(desk: Desk) -> None:
    long = "".join(f"line {number}\n" for number in range(200))
    calls = [("write_file", {"path": "long.txt", "content": long}), ("shell", {"command": "export A=b && touch a"})]
    desk.provider.script = in_order(*(Answer(tool_calls=[call]) for call in calls), "Done.")
    # An answer that was not offered allows nothing.
    answers = iter(["session", "session"])

    async def decide(session: str, call: ToolCallUpdate, options: list[PermissionOption]) -> str:
        return next(answers)

    desk.editor.decide = decide
    session = await desk.session()
    await desk.ask(session, "Write much.")
    assert [[one.kind for one in options] for _, options in desk.editor.asked] == [["allow_once", "reject_once"]] * 2
    assert sorted(path.name for path in desk.work.iterdir()) == []


async def test_a_command_is_shown_whole_with_where_it_runs_and_its_output_follows(desk: Desk) -> None:
    command = f"echo {'x' * 300} && touch made"
    desk.provider.script = in_order(Answer(tool_calls=[("shell", {"command": command})]), "Done.")
    session = await desk.session()
    await desk.ask(session, "Run it.")
    [(call, _)] = desk.editor.asked
    shown = "\n".join(one.content.text for one in call.content or ())
    assert command in shown
    assert f"in {desk.work}" in shown
    ended = desk.editor.of(session, "tool_call_update")[-1]
    assert ended.content[0].content.text == f"```\n{'x' * 300}\n```"


async def test_a_todo_list_is_the_plan(desk: Desk) -> None:
    steps = {"done": ["look"], "doing": "write", "open": ["test"]}
    desk.provider.script = in_order(Answer(tool_calls=[("todo", steps)]), "Done.")
    session = await desk.session()
    await desk.ask(session, "Plan.")
    [plan] = desk.editor.of(session, "plan")
    told = [(one.content, one.status) for one in plan.entries]
    assert told == [("look", "completed"), ("write", "in_progress"), ("test", "pending")]
    assert desk.editor.of(session, "tool_call") == []


async def test_a_cancel_stops_a_request_a_tool_and_an_approval(desk: Desk) -> None:
    session = await desk.session()
    script, asked, may = blocking()
    desk.provider.script = script
    asking = asyncio.create_task(desk.ask(session, "Wait."))
    await asyncio.to_thread(asked.wait, 60)
    await desk.agent.cancel(session_id=session)
    assert await asking == "cancelled"
    may.set()

    desk.provider.script = in_order(Answer(tool_calls=[("shell", {"command": "touch begun; sleep 60"})]))
    asking = asyncio.create_task(desk.ask(session, "Sleep."))
    while not (desk.work / "begun").exists():
        await asyncio.sleep(0.02)
    await desk.agent.cancel(session_id=session)
    assert await asking == "cancelled"
    assert desk.editor.of(session, "tool_call_update")[-1].status == "failed"

    desk.provider.script = in_order(TOUCH)
    waits = asyncio.Event()

    async def never(session: str, call: ToolCallUpdate, options: list[PermissionOption]) -> str | None:
        await waits.wait()
        return None

    desk.editor.decide, before = never, len(desk.editor.asked)
    asking = asyncio.create_task(desk.ask(session, "Ask."))
    await desk.editor.until(lambda: len(desk.editor.asked) > before)
    await desk.agent.cancel(session_id=session)
    waits.set()
    assert await asking == "cancelled"
    assert not (desk.work / "made").exists()

    # Nothing runs, and a cancel of nothing has no effect.
    await desk.agent.cancel(session_id=session)
    desk.provider.script = in_order("Still here.")
    assert await desk.ask(session, "And now?") == "end_turn"


async def test_a_permission_request_that_is_cancelled_cancels_the_turn(desk: Desk) -> None:
    desk.provider.script = in_order(TOUCH)

    async def cancelled(session: str, call: ToolCallUpdate, options: list[PermissionOption]) -> str | None:
        return None

    desk.editor.decide = cancelled
    assert await desk.ask(await desk.session(), "Touch it.") == "cancelled"
    assert not (desk.work / "made").exists()


async def test_an_editor_that_fails_to_ask_allows_nothing(desk: Desk) -> None:
    desk.provider.script = in_order(TOUCH, "I could not.")

    async def fails(session: str, call: ToolCallUpdate, options: list[PermissionOption]) -> str | None:
        raise acp.RequestError(-32000, "no window")

    desk.editor.decide = fails
    assert await desk.ask(await desk.session(), "Touch it.") == "end_turn"
    assert not (desk.work / "made").exists()


async def test_two_sessions_answer_at_once_and_one_takes_one_prompt_at_a_time(desk: Desk) -> None:
    both = threading.Barrier(2)

    def script(request: dict[str, Any]) -> str:
        both.wait(60)  # only if both were asked before one was answered
        return f"You said {request['messages'][-1]['content']}"

    desk.provider.script = script
    one, other = await desk.session(), await desk.session()
    first = asyncio.create_task(desk.ask(one, "this"))
    await asyncio.sleep(0)
    with pytest.raises(acp.RequestError, match="still answers the prompt before"):
        await desk.ask(one, "too soon")
    assert await desk.ask(other, "that") == "end_turn"
    assert await first == "end_turn"
    assert (desk.editor.text(one), desk.editor.text(other)) == ("You said this", "You said that")


async def test_links_and_resources_come_along_as_files(desk: Desk) -> None:
    (desk.work / "linked file.txt").write_text("The code is 7319.\n")
    desk.provider.script = in_order("Seen.")
    session = await desk.session()
    await desk.ask(
        session,
        "Look at ",
        acp.resource_link_block("linked file.txt", (desk.work / "linked file.txt").as_uri()),
        acp.resource_block(acp.embedded_text_resource("file:///elsewhere/part.py#L3:4", "x = 5150")),
        acp.resource_link_block("a page", "https://example.invalid/page"),
        "please.",
    )
    [sent] = [row for row in desk.provider.requests[-1]["messages"] if row["role"] == "user"]
    said = str(sent["content"])
    for part in ("7319", "x = 5150", "linked file.txt", "L3:4", "https://example.invalid/page", "please."):
        assert part in said
    with pytest.raises(acp.RequestError, match="no such file"):
        await desk.ask(session, acp.resource_link_block("gone", (desk.work / "gone").as_uri()))


async def test_images_reach_a_model_that_sees_them_and_are_refused_by_another(desk: Desk) -> None:
    desk.provider.script = in_order("A dot.")
    image = acp.image_block(base64.b64encode(PIXEL).decode(), "image/png")
    session = await desk.session()
    await desk.ask(session, "/config model.images no")
    with pytest.raises(acp.RequestError, match="the model takes none"):
        await desk.ask(session, "What is it?", image)
    await desk.ask(session, "/config model.images yes")
    await desk.ask(session, "/model openai/test-model")
    assert await desk.ask(session, "What is it?", image) == "end_turn"
    assert "data:image/png;base64" in str(desk.provider.requests[-1]["messages"][-1]["content"])
    for bad in (acp.image_block("no base64", "image/png"), acp.image_block("aGk=", "image/tiff")):
        with pytest.raises(acp.RequestError, match="image"):
            await desk.ask(session, bad)
    with pytest.raises(acp.RequestError, match="no audio"):
        await desk.ask(session, acp.audio_block("aGk=", "audio/wav"))


async def test_a_turn_that_fails_is_an_error_in_one_line(desk: Desk) -> None:
    session = await desk.session()
    await desk.ask(session, "/model openai/no-money")
    with pytest.raises(acp.RequestError, match="credit") as failed:
        await desk.ask(session, "Hello")
    assert "\n" not in str(failed.value)
    with pytest.raises(acp.RequestError, match="empty"):
        await desk.ask(session, "  ")


@pytest.mark.parametrize("uri", ["zed://[selection", "http://[::1#L3", "untitled:Untitled-1", "file:///%00", ""])
async def test_any_address_names_what_is_embedded(desk: Desk, uri: str) -> None:
    session = await desk.session()
    desk.provider.script = in_order("I see.")
    attached = acp.resource_block(acp.embedded_text_resource(uri, "x = 5150"))
    assert await desk.ask(session, "Look.", attached) == "end_turn"
    assert "x = 5150" in str(desk.provider.requests[-1]["messages"])
