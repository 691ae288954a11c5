"""Output and suggestions of the session commands, without a terminal."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nca.errors import NcaError, SessionNotFound, UsageError
from nca.humanize import local_time
from nca.messages import Message
from nca.terminal.commands.command import find_command
from tests.sessions.samples import said
from tests.terminal.stage import ScriptedReader, Stage, a_stage

KEY = "sk-proj-" + "Ab1" * 16


def suggested(stage: Stage, line: str) -> list[str]:
    name, _, argument = line.removeprefix("/").partition(" ")
    command = find_command(name)
    assert command is not None
    return [one.text for one in command.complete(stage.app, argument)]


def add(stage: Stage, text: str, name: str = "") -> str:
    with stage.conversation.store.create(directory="/x", model="m", name=name) as session:
        session.log.append(said(text, "an answer"))
        return session.info.id


async def test_export_writes_what_is_asked_for_without_keys_and_replaces_nothing(tmp_path: Path) -> None:
    with a_stage(tmp_path, ["It is " + KEY]) as stage:
        await stage.conversation.send("What is the key?")
        name = stage.conversation.session.info.id
        said = await stage.command("/export")
        assert "Wrote 2 messages to" in said
        assert f"nca-{name}.md (markdown)" in said
        page = (tmp_path / f"nca-{name}.md").read_text()
        assert "What is the key?" in page
        assert KEY not in page
        with pytest.raises(UsageError, match="already exists"):
            await stage.command("/export")
        await stage.command("/export --force")
        await stage.command("/export --json")
        assert "(html)" in await stage.command("/export HTML")
        assert not (tmp_path / "HTML").exists()
        assert json.loads((tmp_path / f"nca-{name}.json").read_text())["session"]["kind"] == "chat"
        assert "(jsonl)" in await stage.command("/export jsonl my talk")
        assert (tmp_path / "my talk.jsonl").read_text().startswith("{")
        await stage.command("/export a talk.html")
        assert (tmp_path / "a talk.html").read_text().lower().startswith("<!doctype html>")
        said = await stage.command("/export --as pi for pi.jsonl")
        assert "Wrote 2 messages as a session of pi: " in said
        assert "\nResume it with: cd " in said
        assert "What is the key?" in (exported := (tmp_path / "for pi.jsonl").read_text())
        assert KEY not in exported
        assert "as a session of pi: " in await stage.command("/export as Pi again.jsonl")
        assert (tmp_path / "again.jsonl").is_file()
        export = find_command("export")
        assert export is not None
        outside = "writes a file outside of the project"
        given = ["", "x.md", "--as pi x", "--as pi", "as pi", "../x"]
        assert [export.needs_person(stage.app, one) for one in given] == ["", "", "", outside, outside, outside]
        wrongs = {
            "--pdf": "has no flag --pdf",
            "foo": "The name foo does not say the format",
            "x --html --json": "exclude each other",
            "--as": "--as: '' is not valid; valid: claude, codex",
            "as pie": "The name as pie does not say the format",
            "claude": "The name claude does not say the format",
            "as pi --json": "--as excludes --html",
            "--as pi --json": "--as excludes --html",
            "for pi.jsonl --as pi": "already exists",
        }
        for wrong, about in wrongs.items():
            with pytest.raises(UsageError, match=about):
                await stage.command(f"/export {wrong}")
        (tmp_path / "loop").symlink_to("loop")
        for nowhere in ("~nosuch/x.md", "loop/x.md", "a\0b.md"):
            assert export.needs_person(stage.app, nowhere) == ""
            with pytest.raises(NcaError, match=r"cannot be written|not a valid file name"):
                await stage.command(f"/export {nowhere}")
        assert suggested(stage, "/export talk --h") == ["--html"]
        assert suggested(stage, "/export --force -") == ["--html", "--md", "--json", "--jsonl", "--force", "--as"]
        assert suggested(stage, "/export --as c") == ["claude", "codex"]


async def test_sessions_are_listed_searched_and_suggested(tmp_path: Path) -> None:
    with a_stage(tmp_path) as stage:
        first, second = add(stage, "about a walrus", "\x1b]0;x\x07The name"), add(stage, "the parser")
        listed = await stage.command("/sessions list")
        assert "The name" in listed
        assert "the parser" in listed
        assert f"{stage.conversation.session.info.id} (this)  " in listed
        found = await stage.command("/sessions search walrus")
        assert first in found
        assert second not in found
        assert "user: about a walrus" in found
        # Once, with what was found below it.
        assert found.count(first) == 1
        assert found.index(first) < found.index("\n    1  user: about a walrus")
        assert "Nothing found." in await stage.command("/sessions search zebra")
        assert suggested(stage, "/resume walrus") == suggested(stage, "/resume NAME") == [first]
        assert set(suggested(stage, "/resume ")) >= {first, second}
        assert suggested(stage, "/sessions se") == ["search"]
        assert suggested(stage, f"/sessions delete {second[:6]}") == [second]
        for wrong in ("/sessions nonesuch", "/sessions search", "/sessions delete", "/rename"):
            with pytest.raises(UsageError):
                await stage.command(wrong)


async def test_a_list_that_is_not_whole_says_so_and_marks_runs(tmp_path: Path) -> None:
    with a_stage(tmp_path) as stage:
        with stage.conversation.store.create(directory="/x", model="m", kind="run") as session:
            session.log.append(said("by a program"))
        for number in range(18):
            add(stage, f"question {number}")
        for command in ("/sessions list", "/resume"):
            whole = await stage.command(command)
            assert "(run) by a program" in whole
            assert "older" not in whole
        add(stage, "question 18")
        for command in ("/sessions list", "/resume"):
            cut = await stage.command(command)
            assert "(this)" not in cut, "nothing was said in this one, so it is the oldest"
            assert "… and older ones: /sessions search TEXT finds them" in cut


async def test_delete_asks_and_needs_somebody_to_ask(tmp_path: Path) -> None:
    with a_stage(tmp_path) as stage:
        name = add(stage, "the parser")
        with pytest.raises(UsageError, match="Nobody can be asked"):
            await stage.command(f"/sessions delete {name}")
        reader = ScriptedReader(["", "y"])
        stage = stage.with_reader(reader)
        assert "Nothing was deleted." in await stage.command(f"/sessions delete {name}")
        assert "Deleted " in await stage.command(f"/sessions delete {name[:6]}")
        assert [key for key, _ in reader.keys] == ["y", "n"], "no is an answer, as to every other such question"
        assert reader.questions == [f"Delete “the parser” ({name}, 2 messages) for good?"] * 2
        assert [info.id for info in stage.conversation.store.list()] == [stage.conversation.session.info.id]
        with pytest.raises(UsageError, match="You are in that session"):
            await stage.command(f"/sessions delete {stage.conversation.session.info.id}")


async def test_rename_makes_one_line_of_any_text(tmp_path: Path) -> None:
    with a_stage(tmp_path) as stage:
        assert "“The parser bug”" in await stage.command("/rename  The   parser\tbug ")
        assert stage.conversation.session.info.name == "The parser bug"


async def test_a_session_is_found_by_its_title_its_beginning_or_a_word_of_it(tmp_path: Path) -> None:
    with a_stage(tmp_path) as stage:
        parser, log = add(stage, "fix the parser of dates"), add(stage, "fix the log rotation")

        assert "Resuming “fix the log rotation”" in await stage.command("/resume rotation")
        assert "Resuming “fix the parser of dates”" in await stage.command("/resume Fix the  parser")
        assert "You are in that session already." in await stage.command("/resume parser of")
        assert suggested(stage, "/resume fix the p") == ["parser of dates"]
        assert suggested(stage, "/resume rotat") == [log[:12]]
        with pytest.raises(SessionNotFound) as caught:
            await stage.command("/resume fix")
        assert f"{log[:12]} “fix the log rotation”" in caught.value.message
        assert f"{parser[:12]} “fix the parser of dates”" in caught.value.message
        with pytest.raises(SessionNotFound, match="no session 'otation'"):
            await stage.command("/resume otation")


async def test_sessions_of_one_name_are_listed_with_their_times(tmp_path: Path) -> None:
    """Nothing but their ids told them apart."""
    with a_stage(tmp_path) as stage:
        for one in (add(stage, "fix the parser"), add(stage, "fix the log")):
            await stage.command(f"/resume {one}")
            await stage.command("/rename the bug")
        with pytest.raises(SessionNotFound) as caught:
            await stage.command("/resume the bug")
        infos = [info for info in stage.conversation.store.list() if info.name == "the bug"]
        named = [f"{info.id[:12]} “the bug” ({local_time(info.updated_at)})" for info in infos]
        assert len(named) == 2
        assert ", ".join(named) in caught.value.message


async def test_resuming_counts_as_the_list_does_and_says_what_is_not_in_the_conversation(tmp_path: Path) -> None:
    with a_stage(tmp_path, ["One.", "Two."]) as stage:
        await stage.conversation.send("first")
        await stage.conversation.send("second")
        await stage.command("/rewind 3 chat")
        name = stage.conversation.session.info.id
        await stage.command("/new")
        said = "Resuming “first” (4 messages, 2 of them not in the conversation)."
        assert said in await stage.command(f"/resume {name}")


async def test_resuming_says_that_the_last_message_has_no_answer(tmp_path: Path) -> None:
    """As after a kill: sent again, it gets one, and stands there once."""
    with a_stage(tmp_path, ["Two."]) as stage:
        with stage.conversation.store.create(directory=str(tmp_path), model="m") as session:
            session.log.append([*said("first", "One."), Message("user", "second", source="typed")])
            name = session.info.id
        assert "Your last message has no answer yet. Send it again to get one." in await stage.command(
            f"/resume {name}"
        )
        await stage.app.conversation.send("second")
        await stage.command("/new")
        shown = await stage.command(f"/resume {name}")
        assert "has no answer" not in shown
        assert "Resuming “first” (4 messages)." in shown
