"""Sessions, modes, options and slash commands, with an editor's client over real pipes."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import acp
import pytest

from nca.config.paths import data_dir
from nca.errors import SessionNotFound
from nca.sessions.store import Store
from nca.testing.provider import Provider
from nca.testing.scripted import Answer, in_order, prose
from tests.acp.client import Editor, connected, delete
from tests.acp.conftest import Desk, initialize
from tests.cli.command import environment
from tests.postgres import Cluster
from tests.testing.forks import standing
from tests.tools.test_mcp import ROOT

pytestmark = pytest.mark.asyncio(loop_scope="session")

READ = Answer(tool_calls=[("read_file", {"path": "notes.txt"})], reasoning="I should look.")
EDIT = Answer(tool_calls=[("edit_file", {"path": "notes.txt", "old_text": "7319", "new_text": "5150"})])
TODO = Answer(tool_calls=[("todo", {"doing": "answer", "open": []})])


async def worked(desk: Desk) -> str:
    """A session in which a file was read and changed."""
    (desk.work / "notes.txt").write_text("The code is 7319.\n")
    desk.provider.script = in_order(READ, TODO, EDIT, "It was 7319.")
    session = await desk.session()
    attached = acp.resource_block(acp.embedded_text_resource("file:///a/b.txt", "beside"))
    assert await desk.ask(session, "Change the code.", attached) == "end_turn"
    return session


def told(desk: Desk, session: str) -> list[tuple[str, Any]]:
    """What a client shows of a session: who said what, and how each call ended."""
    shown: list[tuple[str, Any]] = []
    for one in desk.editor.updates[session]:
        if one.session_update.endswith("_chunk"):
            text = getattr(one.content, "text", None) or getattr(one.content, "name", "")
            shown.append((one.session_update, text))
        elif one.session_update == "tool_call_update" and one.status in ("completed", "failed"):
            shown.append(("ended", one.status))
        elif one.session_update == "tool_call":
            shown.append(("began", one.title))
    return shown


async def test_a_loaded_session_is_told_from_its_beginning_and_goes_on(desk: Desk) -> None:
    session = await worked(desk)
    await desk.agent.close_session(session_id=session)
    with pytest.raises(acp.RequestError, match="is not open"):
        await desk.ask(session, "Are you there?")
    desk.editor.begin_anew()
    loaded = await desk.agent.load_session(cwd=str(desk.work), session_id=session, mcp_servers=[])
    assert told(desk, session) == [
        ("user_message_chunk", "Change the code. `/a/b.txt`"),
        ("user_message_chunk", "/a/b.txt"),
        ("agent_thought_chunk", "I should look."),
        ("began", "read notes.txt"),
        ("ended", "completed"),
        ("began", "edit notes.txt"),
        ("ended", "completed"),
        ("agent_message_chunk", "It was 7319."),
    ]
    diff = desk.editor.of(session, "tool_call_update")[-1].content[0]
    assert (diff.path, diff.old_text, diff.new_text) == (str(desk.work / "notes.txt"), "7319", "5150")
    assert [one.content for one in desk.editor.of(session, "plan")[-1].entries] == ["answer"]
    assert loaded.modes.current_mode_id == "ask"
    desk.provider.script = in_order("As I said.")
    assert await desk.ask(session, "And?") == "end_turn"
    texts = [str(row.get("content")) for row in desk.provider.requests[-1]["messages"]]
    assert any("It was 7319." in text for text in texts)
    # Loaded once more while it is open, it is told again, and no id of a call stands for two.
    desk.editor.begin_anew()
    await desk.agent.load_session(cwd=str(desk.work), session_id=session, mcp_servers=[])
    ids = [one.tool_call_id for one in desk.editor.of(session, "tool_call")]
    assert len(ids) == len(set(ids)) == 2


async def test_sessions_are_listed_resumed_and_forked(desk: Desk) -> None:
    session = await worked(desk)
    listed = await desk.agent.list_sessions(cwd=str(desk.work))
    assert [(one.session_id, one.title, one.cwd) for one in listed.sessions] == [
        (session, "Change the code. `/a/b.txt`", str(desk.work))
    ]
    assert listed.next_cursor is None
    assert session in {one.session_id for one in (await desk.agent.list_sessions()).sessions}
    desk.editor.begin_anew()
    await desk.agent.resume_session(cwd=str(desk.work), session_id=session, mcp_servers=[])
    copy = await desk.agent.fork_session(cwd=str(desk.work), session_id=session, mcp_servers=[])
    assert copy.session_id != session
    assert told(desk, session) == []
    desk.provider.script = in_order("From the copy.")
    assert await desk.ask(copy.session_id, "Who are you?") == "end_turn"
    assert "7319" in str(desk.provider.requests[-1]["messages"])
    for wrong in ("no-such", session[:3]):
        with pytest.raises(acp.RequestError, match="session"):
            await desk.agent.load_session(cwd=str(desk.work), session_id=wrong, mcp_servers=[])
    with pytest.raises(acp.RequestError, match="cursor"):
        await desk.agent.list_sessions(cursor="-1")


async def test_a_session_without_a_message_can_be_loaded_while_it_is_open(desk: Desk) -> None:
    session = await desk.session()
    for open_ in (desk.agent.load_session, desk.agent.resume_session):
        await open_(cwd=str(desk.work), session_id=session, mcp_servers=[])
    desk.provider.script = in_order("Here.")
    assert await desk.ask(session, "Are you there?") == "end_turn"


async def test_a_session_that_another_program_writes_is_refused(desk: Desk) -> None:
    session = await worked(desk)
    await desk.agent.close_session(session_id=session)
    store = Store.open(data_dir(environment(desk.home)) / "sessions.db")
    with store, store.open_session(session), pytest.raises(acp.RequestError, match="already open in process"):
        await desk.agent.load_session(cwd=str(desk.work), session_id=session, mcp_servers=[])
    await desk.agent.load_session(cwd=str(desk.work), session_id=session, mcp_servers=[])


async def test_a_session_is_deleted_for_good_but_not_one_that_another_program_has_open(desk: Desk) -> None:
    assert (await initialize(desk)).agent_capabilities.session_capabilities.delete is not None
    session, other = await worked(desk), await worked(desk)
    await desk.agent.close_session(session_id=session)
    store = Store.open(data_dir(environment(desk.home)) / "sessions.db")
    with store:
        with store.open_session(session), pytest.raises(acp.RequestError, match="already open in process") as refused:
            await delete(desk.agent, sessionId=session)
        assert "\n" not in str(refused.value)
        listed = (await desk.agent.list_sessions(cwd=str(desk.work))).sessions
        assert {one.session_id for one in listed} == {session, other}
        # One that is closed, one that is open here, and what is gone already.
        for each in (session, other, session, "no-such"):
            assert await delete(desk.agent, sessionId=each) == {}
        assert (await desk.agent.list_sessions(cwd=str(desk.work))).sessions == []
        for gone in (session, other):
            with pytest.raises(SessionNotFound):
                store.find(gone)
    with pytest.raises(acp.RequestError, match="is not open"):
        await desk.ask(other, "Are you there?")
    with pytest.raises(acp.RequestError, match="There is no session"):
        await desk.agent.load_session(cwd=str(desk.work), session_id=session, mcp_servers=[])
    with pytest.raises(acp.RequestError, match="sessionId"):
        await delete(desk.agent)


async def test_a_beginning_of_an_id_deletes_nothing(desk: Desk) -> None:
    session = await worked(desk)
    await delete(desk.agent, sessionId=session[:-1])
    assert [one.session_id for one in (await desk.agent.list_sessions(cwd=str(desk.work))).sessions] == [session]


async def test_what_nca_does_not_do_is_neither_advertised_nor_taken(desk: Desk) -> None:
    offered = (await initialize(desk)).agent_capabilities
    assert (offered.auth.logout, offered.session_capabilities.additional_directories) == (None, None)
    for method in ("logout", "session/set_model", "_session/other"):
        with pytest.raises(acp.RequestError, match="Method not found"):
            await desk.agent._conn.send_request(method, {"sessionId": "s", "modelId": "m"})


async def test_a_folder_that_is_none_opens_nothing(desk: Desk) -> None:
    for cwd in ("relative", str(desk.work / "gone")):
        with pytest.raises(acp.RequestError, match="not the absolute path of a folder"):
            await desk.agent.new_session(cwd=cwd, mcp_servers=[])


async def test_a_fork_or_a_load_that_fails_changes_nothing(desk: Desk) -> None:
    session = await worked(desk)
    before = [one.session_id for one in (await desk.agent.list_sessions()).sessions]
    with pytest.raises(acp.RequestError, match="not the absolute path of a folder"):
        await desk.agent.fork_session(cwd="relative", session_id=session, mcp_servers=[])
    settings = desk.work / ".nca" / "config.toml"
    settings.parent.mkdir(exist_ok=True)
    settings.write_text("no = = settings")
    for open_ in (desk.agent.load_session, desk.agent.resume_session, desk.agent.fork_session):
        with pytest.raises(acp.RequestError, match="config"):
            await open_(cwd=str(desk.work), session_id=session, mcp_servers=[])
    settings.unlink()
    assert [one.session_id for one in (await desk.agent.list_sessions()).sessions] == before
    desk.provider.script = in_order("Still here.")
    assert await desk.ask(session, "Are you there?") == "end_turn"


async def test_modes_are_the_permission_modes(desk: Desk) -> None:
    write = Answer(tool_calls=[("write_file", {"path": "new.txt", "content": "x"})])
    made = await desk.agent.new_session(cwd=str(desk.work), mcp_servers=[])
    session = made.session_id
    assert [one.id for one in made.modes.available_modes] == ["ask", "accept-edits", "plan", "auto"]
    await desk.agent.set_session_mode(session_id=session, mode_id="plan")
    desk.provider.script = in_order(write, "I may not.")
    await desk.ask(session, "Write it.")
    assert (desk.editor.asked, (desk.work / "new.txt").exists()) == ([], False)
    desk.editor.begin_anew()
    await desk.ask(session, "/permissions accept-edits")
    assert [one.current_mode_id for one in desk.editor.of(session, "current_mode_update")] == ["accept-edits"]
    desk.provider.script = in_order(write, "Written.")
    await desk.ask(session, "Write it.")
    assert (desk.editor.asked, (desk.work / "new.txt").exists()) == ([], True)
    await desk.ask(session, "/permissions ask")
    assert [one.current_mode_id for one in desk.editor.of(session, "current_mode_update")] == ["accept-edits", "ask"]
    with pytest.raises(acp.RequestError, match="valid: ask, accept-edits, plan, auto"):
        await desk.agent.set_session_mode(session_id=session, mode_id="yolo")


async def test_options_choose_the_model_and_how_much_it_reasons(desk: Desk) -> None:
    made = await desk.agent.new_session(cwd=str(desk.work), mcp_servers=[])
    assert [(one.id, one.category, one.current_value) for one in made.config_options] == [
        ("mode", "mode", "ask"),
        ("model", "model", "openai/test-model"),
        ("reasoning", "thought_level", "auto"),
    ]
    set_ = desk.agent.set_config_option
    await set_(session_id=made.session_id, config_id="model", value="openai/other-model")
    said = await set_(session_id=made.session_id, config_id="reasoning", value="high")
    assert [one.current_value for one in said.config_options] == ["ask", "openai/other-model", "high"]
    desk.provider.script = in_order("Other.")
    await desk.agent.set_config_option(session_id=made.session_id, config_id="reasoning", value="auto")
    await desk.ask(made.session_id, "Who are you?")
    assert desk.provider.requests[-1]["model"] == "other-model"
    for option, value, says in (("speed", "high", "no option"), ("mode", "yolo", "no mode"), ("model", " ", "values")):
        with pytest.raises(acp.RequestError, match=says):
            await set_(session_id=made.session_id, config_id=option, value=value)


async def test_slash_commands_are_offered_and_say_what_they_say_in_the_chat(desk: Desk) -> None:
    (desk.work / ".claude" / "commands").mkdir(parents=True)
    text = "---\ndescription: Look at it\nargument-hint: FILE\n---\nReview $1 with care.\n"
    (desk.work / ".claude" / "commands" / "review.md").write_text(text)
    session = await desk.session()
    [offered] = desk.editor.of(session, "available_commands_update")
    commands = {one.name: one for one in offered.available_commands}
    assert {"context", "compact", "undo", "model", "review"} <= commands.keys()
    assert not {"exit", "clear", "resume", "help"} & commands.keys()
    assert (commands["review"].description, commands["review"].input.root.hint) == ("Look at it", "FILE")
    assert commands["undo"].input is None

    asked = len(desk.provider.requests)
    await desk.ask(session, "/context")
    assert "system prompt" in desk.editor.text(session)
    before = desk.editor.text(session)
    await desk.ask(session, "/rename the parser")
    assert desk.editor.text(session).removeprefix(before) == "This session is now “the parser”."
    other = await desk.session()
    await desk.ask(other, "/rename the parser")
    assert f"Session {session} also has this name" in desk.editor.text(other)
    for wrong, says in (
        ("/nope", "no command /nope"),
        ("/exit", "works in the terminal"),
        ("/undo", "nothing to take"),
    ):
        await desk.ask(session, wrong)
        assert says in desk.editor.text(session)
    assert len(desk.provider.requests) == asked

    desk.provider.script = in_order("Reviewed.")
    await desk.ask(session, "/review main.py")
    assert "Review main.py with care." in str(desk.provider.requests[-1]["messages"][-1])
    await desk.ask(session, "//etc is a folder")
    assert desk.provider.requests[-1]["messages"][-1]["content"] == "/etc is a folder"
    await desk.ask(session, "/etc/hosts is a file")
    assert desk.provider.requests[-1]["messages"][-1]["content"] == "/etc/hosts is a file"


async def test_undo_takes_back_the_turn_and_its_files(desk: Desk) -> None:
    session = await worked(desk)
    assert "5150" in (desk.work / "notes.txt").read_text()
    await desk.ask(session, "/undo")
    assert "7319" in (desk.work / "notes.txt").read_text()
    desk.editor.begin_anew()
    await desk.agent.load_session(cwd=str(desk.work), session_id=session, mcp_servers=[])
    assert told(desk, session) == []


async def test_a_compaction_is_shown_and_can_be_undone(desk: Desk) -> None:
    desk.provider.script = prose
    session = await desk.session()
    long = "the quick brown fox jumps over the lazy dog " * 300
    for number in range(3):
        pasted = acp.resource_block(acp.embedded_text_resource(f"file:///log-{number}.txt", f"{number} {long}"))
        await desk.ask(session, f"What is in log {number}?", pasted)
    before = desk.editor.of(session, "usage_update")[-1].used
    desk.editor.begin_anew()
    assert await desk.ask(session, "/compact") == "end_turn"
    [begun] = desk.editor.of(session, "tool_call")
    ended = desk.editor.of(session, "tool_call_update")[-1]
    assert (begun.kind, begun.status, ended.status) == ("other", "in_progress", "completed")
    assert ended.tool_call_id == begun.tool_call_id
    after = desk.editor.of(session, "usage_update")[-1].used
    assert after < before
    assert f"{after:,}" in ended.title
    await desk.ask(session, "/context undo")
    assert "Undid the compaction of " in desk.editor.text(session)
    assert desk.editor.of(session, "usage_update")[-1].used == before


async def test_servers_of_the_editor_are_used(desk: Desk) -> None:
    env = [acp.schema.EnvVariable(name="PYTHONPATH", value=str(ROOT))]
    program, *args = standing("tests.tools.mcp_server")
    server = acp.schema.McpServerStdio(name="my tools", command=program, args=args, env=env)
    made = await desk.agent.new_session(cwd=str(desk.work), mcp_servers=[])
    # Also a session that has no message yet gets those of the request that opens it again.
    await desk.agent.load_session(cwd=str(desk.work), session_id=made.session_id, mcp_servers=[server])

    def offered() -> list[Any]:
        newest = desk.editor.of(made.session_id, "available_commands_update")[-1:]
        return [one for update in newest for one in update.available_commands if one.name.startswith("mcp:")]

    await desk.editor.until(lambda: bool(offered()))
    [review] = offered()
    assert (review.name, review.description) == ("mcp:my-tools:review", "Ask for a review.")
    assert review.input.root.hint == "file [question]"
    desk.provider.script = in_order(Answer(tool_calls=[("mcp__my-tools__echo", {"text": "hi"})]), "Heard.")
    assert await desk.ask(made.session_id, "Say hi.") == "end_turn"
    assert "echo: hi" in str(desk.provider.requests[-1]["messages"][-1])
    assert desk.editor.of(made.session_id, "tool_call")[-1].kind == "other"
    with pytest.raises(acp.RequestError, match=r"^my-tools has no prompt 'nope'"):
        await desk.ask(made.session_id, "/mcp:my-tools:nope")
    await desk.agent.close_session(session_id=made.session_id)
    wrong = acp.schema.SseMcpServer(type="sse", name="old", url="http://127.0.0.1:9/sse", headers=[])
    with pytest.raises(acp.RequestError, match="MCP server 'old'"):
        await desk.agent.new_session(cwd=str(desk.work), mcp_servers=[wrong])


async def test_a_lost_connection_of_the_store_is_told(
    provider: Provider, cluster: Cluster, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    editor = Editor()
    async with connected(editor, provider.url, tmp_path, store=cluster.new_database()) as agent:
        desk = Desk(editor, agent, provider, tmp_path, tmp_path)
        await initialize(desk)
        session = await desk.session()
        provider.script = prose
        await desk.ask(session, "One.")
        cluster.halt()
        asking = asyncio.create_task(desk.ask(session, "Two."))
        await editor.until(lambda: " is lost. Trying again for " in editor.text(session))
        cluster.start()
        assert await asking == "end_turn"
        assert " again." in editor.text(session).split("Trying again for ")[1]
    assert "psycopg" not in capfd.readouterr().err


async def test_what_the_person_can_mend_is_no_internal_error(desk: Desk) -> None:
    session = await desk.session()
    told: Any
    with Store.open(data_dir(environment(desk.home)) / "sessions.db") as store:
        taken = store.create(directory=str(desk.work), model="openai/test-model")
        for asking in (
            desk.ask(session, " "),
            desk.agent.load_session(cwd=str(desk.work), session_id=taken.info.id, mcp_servers=[]),
            desk.ask(session, acp.resource_block(acp.embedded_blob_resource("file:///a.bin", "AAEC"))),
        ):
            with pytest.raises(acp.RequestError) as told:
                await asking
            assert told.value.code == -32602, told.value
        taken.close()
    assert "a.bin is neither text nor an image" in str(told.value)
    await desk.ask(session, "/nothing-like-it")
    assert "The editor lists the commands." in desk.editor.text(session)


async def test_a_setting_that_is_wrong_is_named(desk: Desk) -> None:
    folder = desk.work / ".nca"
    folder.mkdir()
    Path(folder / "config.toml").write_text("[context]\ncompact_threshold = 7000\n")
    with pytest.raises(acp.RequestError, match="compact_threshold") as refused:
        await desk.session()
    assert "\n" not in str(refused.value)
