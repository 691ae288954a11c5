"""The editor's own files and terminals as the tools use them, over real pipes."""

from __future__ import annotations

import asyncio
from pathlib import Path

import acp
import pytest
import pytest_asyncio

from nca.testing.scripted import Answer, in_order
from tests.acp.client import Editor
from tests.acp.conftest import Desk, initialize

pytestmark = pytest.mark.asyncio(loop_scope="session")


@pytest_asyncio.fixture(loop_scope="session")
async def open_desk(desk: Desk) -> Desk:
    """The editor offers its files and its terminal."""
    await initialize(desk, files=True, terminal=True)
    return desk


def call(name: str, **arguments: object) -> Answer:
    return Answer(tool_calls=[(name, arguments)])


def result(desk: Desk, back: int = 1) -> str:
    """What the model was last told by a tool."""
    return str(desk.provider.requests[-back]["messages"][-1]["content"])


async def test_what_is_not_saved_is_read_and_changed_and_can_be_taken_back(open_desk: Desk) -> None:
    desk, path = open_desk, open_desk.work / "main.py"
    path.write_text("saved = 1\n")
    desk.editor.buffers[str(path)] = "unsaved = 1\n"
    edit = call("edit_file", path="main.py", old_text="unsaved = 1", new_text="unsaved = 2")
    desk.provider.script = in_order(call("read_file", path="main.py"), edit, "Done.")
    session = await desk.session()
    await desk.ask(session, "Change it.")
    assert "unsaved = 1" in str(desk.provider.requests[-2]["messages"][-1]["content"])
    [(asked, _)] = desk.editor.asked
    assert asked.content is not None
    [diff] = asked.content
    assert isinstance(diff, acp.schema.FileEditToolCallContent)
    assert (diff.old_text, diff.new_text) == ("unsaved = 1\n", "unsaved = 2\n")
    assert desk.editor.written == [(str(path), "unsaved = 2\n")]
    assert path.read_text() == "unsaved = 2\n"
    del desk.editor.buffers[str(path)]
    await desk.ask(session, "/undo")
    assert path.read_text() == "unsaved = 1\n"


async def test_typed_lines_that_were_not_saved_are_the_persons_and_stay(open_desk: Desk) -> None:
    desk, path = open_desk, open_desk.work / "cart.py"
    path.write_text("rate = 1\n\n\nend\n")
    edits = [call("edit_file", path="cart.py", old_text=f"rate = {n}", new_text=f"rate = {n + 1}") for n in (1, 2)]
    desk.provider.script = in_order(edits[0], "Done.", edits[1], "Done.")
    session = await desk.session()
    await desk.ask(session, "Change it.")
    desk.editor.buffers[str(path)] = "rate = 2\n\n\nend\n# typed\n"
    await desk.ask(session, "Again.")
    assert path.read_text() == "rate = 3\n\n\nend\n# typed\n"
    told = len(desk.editor.text(session))
    await desk.ask(session, "/changes")
    assert "cart.py  +1 −1" in desk.editor.text(session)[told:]
    await desk.ask(session, "/undo")
    assert path.read_text() == "rate = 2\n\n\nend\n# typed\n"


async def test_files_of_which_the_editor_has_typed_lines_stay_and_are_named(open_desk: Desk) -> None:
    desk, path = open_desk, open_desk.work / "cart.py"
    made, gone = desk.work / "made.py", desk.work / "gone.py"
    path.write_text("rate = 1\n\n\nend\n")
    gone.write_text("was here\n")
    edit = call("edit_file", path="cart.py", old_text="rate = 1", new_text="rate = 2")
    delete = call("shell", command="rm gone.py")
    desk.provider.script = in_order(edit, call("write_file", path="made.py", content="made\n"), delete, "Done.")
    session = await desk.session()
    await desk.ask(session, "Change it.")
    desk.editor.buffers[str(path)] = "rate = 2\n\n\nend\n# typed\n"
    desk.editor.buffers[str(made)] = "made\n# typed\n"
    desk.editor.buffers[str(gone)] = "typed anew\n"
    for command in ("/rewind 1 files", "/undo"):
        told = len(desk.editor.text(session))
        await desk.ask(session, command)
        for name in ("cart.py", "made.py", "gone.py"):
            named = f"{name} stays as it is: the editor has lines of it that are not saved."
            assert named in desk.editor.text(session)[told:]
        assert path.read_text() == "rate = 2\n\n\nend\n"
        assert made.read_text() == "made\n"
        assert not gone.exists()


async def test_an_editor_that_shows_what_nca_wrote_has_nothing_unsaved(open_desk: Desk) -> None:
    desk, path, binary = open_desk, open_desk.work / "cart.py", open_desk.work / "data.bin"
    path.write_text("rate = 1\n")
    binary.write_bytes(b"\0\xff")
    desk.editor.buffers[str(binary)] = "in the editor's own way"
    edits = [call("edit_file", path="cart.py", old_text=f"rate = {n}", new_text=f"rate = {n + 1}") for n in (1, 2)]
    more = call("shell", command="echo more >>data.bin; ln -s cart.py link.py")
    desk.editor.buffers[str(desk.work / "link.py")] = "rate = 3\n"
    desk.provider.script = in_order(edits[0], more, "Done.", edits[1], "Done.")
    session = await desk.session()
    await desk.ask(session, "Change it.")
    await desk.ask(session, "Again.")
    for rate in (2, 1):
        await desk.ask(session, "/undo")
        # The editor does not read the file anew.
        assert desk.editor.buffers[str(path)] == "rate = 3\n"
        assert path.read_text() == f"rate = {rate}\n"
    assert binary.read_bytes() == b"\0\xff"
    assert not (desk.work / "link.py").is_symlink()


async def test_a_new_file_that_is_in_the_editor_alone_is_a_file(open_desk: Desk) -> None:
    desk, path, other = open_desk, open_desk.work / "new.py", open_desk.work / "deep" / "other.py"
    desk.editor.buffers |= {str(path): "typed = 1\n", str(other): "typed too\n", str(desk.work / "empty.py"): ""}
    over = call("write_file", path="deep/other.py", content="written\n")
    edit = call("edit_file", path="new.py", old_text="typed = 1", new_text="typed = 2")
    empty = call("write_file", path="empty.py", content="first\n")
    desk.provider.script = in_order(over, call("read_file", path="new.py"), edit, empty, "Done.")
    session = await desk.session()
    await desk.ask(session, "Change it.")
    told = [str(one["content"]) for one in desk.provider.requests[-1]["messages"] if one["role"] == "tool"]
    assert "deep/other.py was not read since the session was opened; read it first" in told[0]
    assert told[1] == "[new.py: in the person's editor, not on the disk yet]\ntyped = 1\n"
    assert not other.parent.exists()
    assert path.read_text() == "typed = 2\n"
    assert (desk.work / "empty.py").read_text() == "first\n"
    mode = path.stat().st_mode
    await desk.ask(session, "/undo")
    assert (path.read_text(), path.stat().st_mode) == ("typed = 1\n", mode)
    assert not (desk.work / "empty.py").exists()


async def test_a_change_of_an_unsaved_text_that_the_editor_refuses_is_no_change(open_desk: Desk) -> None:
    desk, path = open_desk, open_desk.work / "locked.txt"
    path.write_text("saved\n")
    desk.editor.buffers[str(path)] = "unsaved\n"
    edit = call("edit_file", path="locked.txt", old_text="unsaved", new_text="new")
    desk.provider.script = in_order(edit, "No.")
    session = await desk.session()
    await desk.ask(session, "Change it.")
    assert "the file is locked" in result(desk)
    told = len(desk.editor.text(session))
    await desk.ask(session, "/changes")
    assert "changed no file" in desk.editor.text(session)[told:]
    assert path.read_text() == "saved\n"


async def test_a_file_that_is_saved_keeps_its_line_ends_whatever_the_editor_shows(open_desk: Desk) -> None:
    desk, path = open_desk, open_desk.work / "dos.txt"
    path.write_bytes(b"one\r\ntwo\r\n")
    desk.editor.buffers[str(path)] = "one\ntwo\n"
    edit = call("edit_file", path="dos.txt", old_text="two", new_text="three")
    again = call("edit_file", path="dos.txt", old_text="three", new_text="four")
    desk.provider.script = in_order(call("read_file", path="dos.txt"), edit, again, "Done.")
    await desk.ask(await desk.session(), "Change it.")
    assert [text for _, text in desk.editor.written] == ["one\r\nthree\r\n", "one\r\nfour\r\n"]


async def test_a_new_file_goes_through_the_editor_and_is_on_the_disk_even_if_that_keeps_it(open_desk: Desk) -> None:
    desk, path = open_desk, open_desk.work / "deep" / "new.txt"
    desk.editor.saves = False
    desk.provider.script = in_order(call("write_file", path="deep/new.txt", content="text\n"), "Done.")
    session = await desk.session()
    await desk.ask(session, "Write it.")
    assert desk.editor.written == [(str(path), "text\n")]
    assert path.read_text() == "text\n"
    await desk.ask(session, "/undo")
    assert not path.exists()


async def test_a_file_that_the_editor_refuses_to_write_stays(open_desk: Desk) -> None:
    desk = open_desk
    desk.provider.script = in_order(call("write_file", path="locked.txt", content="text\n"), "No.")
    await desk.ask(await desk.session(), "Write it.")
    assert "the editor refused to write locked.txt (the file is locked)" in result(desk)
    assert not (desk.work / "locked.txt").exists()


async def test_a_linked_file_is_sent_as_the_editor_has_it(open_desk: Desk) -> None:
    desk, path = open_desk, open_desk.work / "notes.txt"
    path.write_text("saved\n")
    desk.editor.buffers[str(path)] = "not yet saved\n"
    new = desk.work / "untitled.txt"
    desk.editor.buffers[str(new)] = "not a file yet\n"
    desk.provider.script = in_order("Seen.")
    links = [acp.resource_link_block(one.name, one.as_uri()) for one in (path, new)]
    await desk.ask(await desk.session(), "See ", *links)
    sent = str(desk.provider.requests[-1]["messages"][-1]["content"])
    assert "not yet saved" in sent
    assert "not a file yet" in sent


async def test_a_command_runs_in_the_editors_terminal_without_its_keys(open_desk: Desk) -> None:
    desk = open_desk
    (desk.work / "sub").mkdir()
    first = call(
        "shell", command="cd sub; echo key=$OPENAI_API_KEY; echo 'it'\"'\"'s' >made; read line || echo none; (exit 3)"
    )
    desk.provider.script = in_order(first, call("shell", command="pwd; touch here"), "Done.")
    session = await desk.session()
    await desk.ask(session, "Run it.")
    told = str(desk.provider.requests[-2]["messages"][-1]["content"])
    assert told.splitlines() == ["key=", "none", "[exit code 3]", "[The next command runs in sub]"]
    assert (desk.work / "sub" / "made").read_text() == "it's\n"
    assert result(desk).splitlines()[0] == str(desk.work / "sub")
    assert (desk.work / "sub" / "here").exists()
    assert len(desk.editor.started) == 2
    shown = [one.content[0] for one in desk.editor.of(session, "tool_call_update") if one.content]
    assert [one.terminal_id for one in shown if one.type == "terminal"] == ["terminal-1", "terminal-2"]
    assert not Path(desk.editor.started[0][-1]).exists(), "the script goes with the command"
    await desk.ask(session, "/undo")
    assert not (desk.work / "sub" / "made").exists(), "the record sees what such a command changes"


async def test_what_nca_cannot_know_is_asked_before_files_go_back(open_desk: Desk) -> None:
    desk, made = open_desk, open_desk.work / "gen.py"
    command = "python3 -c \"open('ge' + 'n.py', 'w').close()\""
    desk.provider.script = in_order(call("shell", command=command), "Done.")
    session = await desk.session()
    await desk.ask(session, "Generate it.")
    answers = ["k", None, "d"]

    async def decide(*_: object) -> str | None:
        return answers.pop(0)

    desk.editor.decide, desk.editor.asked = decide, []
    told = len(desk.editor.text(session))
    await desk.ask(session, "/rewind 1 files")
    assert "Not all files are as they were before “Generate it.”. Files: 1 left" in desk.editor.text(session)[told:]
    told = len(desk.editor.text(session))
    await desk.ask(session, "/undo")
    said = desk.editor.text(session)[told:]
    assert said.index("perhaps your own: gen.py.") < said.index("Nothing was changed.")
    assert made.exists()
    await desk.ask(session, "/undo")
    assert not made.exists()
    for asked, options in desk.editor.asked:
        assert "nca cannot tell who made them: gen.py." in str(asked.content)
        assert [(one.option_id, one.name) for one in options] == [("d", "delete"), ("k", "keep"), ("deny", "cancel")]


async def test_a_command_that_only_reads_or_runs_in_the_background_needs_no_terminal(open_desk: Desk) -> None:
    desk = open_desk
    background = call("shell", command="echo from-the-job", background=True)
    wait = call("job", number=1, wait_seconds=20)
    desk.provider.script = in_order(call("shell", command="ls"), background, wait, "Done.")
    await desk.ask(await desk.session(), "Run it.")
    assert "from-the-job" in str(desk.provider.requests[-1]["messages"])
    assert desk.editor.started == []


async def test_a_command_in_the_editors_terminal_ends_with_a_cancel_and_at_its_time_limit(open_desk: Desk) -> None:
    desk = open_desk
    desk.provider.script = in_order(call("shell", command="touch begun; sleep 60"))
    session = await desk.session()
    asking = asyncio.create_task(desk.ask(session, "Sleep."))
    while not (desk.work / "begun").exists():
        await asyncio.sleep(0.02)
    await desk.agent.cancel(session_id=session)
    assert await asking == "cancelled"
    assert await desk.editor.terminals["terminal-1"].wait() < 0
    desk.provider.script = in_order(call("shell", command="touch again; sleep 60", timeout_seconds=1), "Too long.")
    assert await desk.ask(session, "Sleep once more.") == "end_turn"
    assert "[stopped: it ran longer than 1 s]" in result(desk)


async def test_an_editor_that_does_not_answer_a_kill_ends_the_call_all_the_same(open_desk: Desk) -> None:
    desk = open_desk
    desk.editor.ignores_kill = True
    desk.provider.script = in_order(call("shell", command="touch begun; sleep 60", timeout_seconds=1), "It failed.")
    session = await desk.session()
    try:
        assert await desk.ask(session, "Sleep.") == "end_turn"
    finally:
        desk.editor.ignores_kill = False
    assert "the editor's terminal failed" in result(desk)
    assert await desk.editor.terminals["terminal-1"].wait() < 0


async def test_an_editor_that_begins_anew_leaves_no_terminal_open() -> None:
    editor = Editor()
    made = await editor.create_terminal("s", "sleep", ["60"])
    running, printed = editor.terminals[made.terminal_id], editor.printed[made.terminal_id]
    editor.begin_anew()
    assert printed.closed
    assert await running.wait() < 0
