"""/rewind, /undo, /redo, /changes and /btw on a chat whose turns change files."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from nca.errors import ProviderError, UsageError
from nca.humanize import local_time
from nca.messages import Message, ToolCall, Usage
from nca.models.client import Reply
from nca.sessions import Store
from nca.terminal.panels.pickers import RewindPicker
from nca.terminal.render.file_changes import changed_line
from nca.testing.scripted import ScriptedModel
from nca.words import text_of
from tests.terminal.stage import ScriptedReader, Stage, a_stage


def writes(number: int, **files: str) -> list[Any]:
    """A turn that writes files, and its answer."""
    calls = tuple(
        ToolCall(f"w{number}-{name}", "write_file", json.dumps({"path": f"{name}.txt", "content": text}))
        for name, text in files.items()
    )
    return [Message("assistant", None, calls), f"Answer {number}."]


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    replies = [*writes(1, a="one\n", b="two\n"), *writes(2, c="three\n"), "Answer 3.", "Beside."]
    with a_stage(tmp_path, replies, agent__permission="accept-edits") as stage:
        yield stage


def files(directory: Path) -> dict[str, str]:
    return {path.stem: path.read_text() for path in sorted(directory.glob("*.txt"))}


async def test_turns_are_taken_back_and_forth_with_their_files(stage: Stage, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="nothing to take back") as empty:
        await stage.command("/undo")
    assert not empty.value.advice  # there is no other way to go in a new session
    await stage.conversation.send("First")
    await stage.conversation.send("Second")
    whole = files(tmp_path)
    for refused in ("/undo 2", "/redo all"):
        with pytest.raises(UsageError, match=f"{refused.split()[0]} takes no {refused.split()[1]}"):
            await stage.command(refused)
    said = await stage.command("/undo")
    assert "Took back “Second” and its answer. Files: 1 deleted (c.txt). /redo goes forward again." in said
    assert "no record" not in said
    assert files(tmp_path) == {"a": "one\n", "b": "two\n"}
    assert text_of(stage.app._next_words) == "Second"
    assert "Took back “First” and its answer. Files: 2 deleted (a.txt, b.txt)." in await stage.command("/undo")
    assert files(tmp_path) == {}
    with pytest.raises(UsageError, match="nothing to take back"):
        await stage.command("/undo")
    assert "Went forward again. Files: 2 restored (a.txt, b.txt)." in await stage.command("/redo")
    assert "Went forward again. Files: 1 restored" in await stage.command("/redo")
    assert files(tmp_path) == whole
    with pytest.raises(UsageError, match="nothing to go forward to"):
        await stage.command("/redo")
    assert next(entry.message.text for entry in stage.conversation.context.backwards()) == "Answer 2."


async def test_files_without_a_record_here_are_named(tmp_path: Path) -> None:
    """As in a folder that has another name now, and in a fork."""
    here, there, store = tmp_path / "here", tmp_path / "there", tmp_path / "home/sessions.db"
    here.mkdir()
    replies = writes(1, a="one\n", b="two\n")
    with a_stage(here, replies, agent__permission="accept-edits", store_path=store) as stage:
        await stage.conversation.send("First")
        session = stage.conversation.session.info.id
    here.rename(there)
    with Store.open(store) as opened:
        fork = opened.fork(session).id
    for one in (session, fork):
        with a_stage(there, store_path=store, session=one) as stage:
            said = await stage.command("/undo")
        assert "Took back “First” and its answer. /redo" in said
        assert "2 files stay as now: there is no record of them here (a.txt, b.txt)." in said
        assert files(there) == {"a": "one\n", "b": "two\n"}


async def test_a_call_that_wrote_what_was_there_needs_no_record(tmp_path: Path) -> None:
    replies = [*writes(1, a="one\n"), *writes(2, a="one\n")]
    with a_stage(tmp_path, replies, agent__permission="accept-edits") as stage:
        await stage.conversation.send("First")
        await stage.conversation.send("Second")
        assert "no record" not in await stage.command("/undo")
        assert "Files: 1 deleted (a.txt). /redo" in await stage.command("/undo")
        assert files(tmp_path) == {}


async def test_what_got_no_answer_is_a_turn_and_all_that_goes_is_named(tmp_path: Path) -> None:
    down = ProviderError("The provider is down.")
    replies = ["Word for word. " * 400, *writes(2, a="one\n"), down, down]
    with a_stage(tmp_path, replies, agent__permission="accept-edits", model__summarizer="none") as stage:
        await stage.conversation.send("First")
        await stage.conversation.send("Second")
        assert "Compacted" in await stage.command("/compact")
        shown = stage.conversation.context.effective_history()
        await stage.conversation.send("Third")
        assert "Took back “Third” (no answer). /redo" in await stage.command("/undo")
        assert files(tmp_path) == {"a": "one\n"}
        said = await stage.command("/undo")
        # One line, as nothing is asked: what will go is what went.
        assert said.startswith("Took back “Second” and its answer, 1 compaction since. Files: 1 deleted (a.txt). /redo")
        assert (files(tmp_path), text_of(stage.app._next_words)) == ({}, "Second")
        await stage.command("/redo")
        assert stage.conversation.context.effective_history()[: len(shown)] == shown
        assert files(tmp_path) == {"a": "one\n"}
        await stage.command("/undo")
        assert "Took back “First” and its answer. /redo" in await stage.command("/undo")
        await stage.conversation.send("Fourth")
        assert "Took back “Fourth” (no answer). /redo" in await stage.command("/undo")


async def test_the_files_alone_go_back_and_the_model_is_told(stage: Stage, tmp_path: Path) -> None:
    await stage.conversation.send("First")
    await stage.conversation.send("Second")
    shown = stage.conversation.context.effective_history()
    said = await stage.command("/rewind 1 files")
    assert "The files are as they were before “First”. Files: 3 deleted" in said
    assert "Your next message tells the model; until then /redo goes forward again." in said
    assert (files(tmp_path), text_of(stage.app._next_words)) == ({}, "")
    assert stage.conversation.context.effective_history() == shown
    await stage.conversation.send("Third")
    with pytest.raises(UsageError, match="nothing to go forward to") as late:
        await stage.command("/redo")
    assert "branch" not in late.value.advice  # the chat went nowhere, so there is none
    assert "not as you left them: a.txt (deleted)" in str(shown_last(stage))
    points = [point.seq for point in stage.conversation.rewinds.points()]
    assert "Went back to before “Third”" in await stage.command(f"/rewind {points[0]} both")
    assert files(tmp_path) == {}
    assert "2 restored" in await stage.command("/rewind 6 files")
    assert files(tmp_path) == {"a": "one\n", "b": "two\n"}


async def test_files_that_went_back_alone_are_offered_once_more_was_said(stage: Stage, tmp_path: Path) -> None:
    """/redo had nothing to go forward to and no branch was left, so the files could not be had again."""
    rewinds = stage.conversation.rewinds
    await stage.conversation.send("First")
    await stage.conversation.send("Second")
    whole = files(tmp_path)
    await stage.command("/rewind 6 files")
    assert not rewinds.has_branch
    await stage.command("/redo")
    await stage.command("/rewind 6 files")
    await stage.conversation.send("Third")
    for picks, way in (([], "/rewind goes to any message"), ([None], "/rewind offers what you left")):
        with pytest.raises(UsageError, match="nothing to go forward to") as late:
            await stage.with_reader(ScriptedReader([], picks)).command("/redo")
        assert late.value.advice.startswith(way), "without a screen no branch can be chosen"
    picker = RewindPicker(rewinds)
    texts = ["".join(text for _, text in picker.listing(80).row(number)) for number in range(3)]
    assert "with the files that you took back later: Answer 2." in texts[1]
    assert "Second" in texts[2]
    (end,) = (point for point in rewinds.points() if point.rewind)
    said = await stage.with_reader(ScriptedReader(["f"], [end])).command("/rewind")
    assert "The files are as they were after “Answer 2.”. Files: 1 restored (c.txt)." in said
    assert files(tmp_path) == whole
    assert next(stage.conversation.context.backwards()).message.text == "Answer 3."
    await stage.command("/redo")
    assert files(tmp_path) == {"a": "one\n", "b": "two\n"}
    await stage.with_reader(ScriptedReader(["b"], [end])).command("/rewind")
    assert files(tmp_path) == whole
    assert next(stage.conversation.context.backwards()).message.text == "Answer 2."


async def test_what_the_model_hears_of_files_is_what_holds_when_the_message_is_sent(
    stage: Stage, tmp_path: Path
) -> None:
    """The note was stored beside the files: /redo did not withdraw it, a lone `!` did, and leaving lost it."""
    await stage.conversation.send("First")
    await stage.command("/rewind 1 files")
    await stage.command("/redo")
    await stage.conversation.send("Second")
    assert "not as you left them" not in str(shown_last(stage))
    assert files(tmp_path) == {"a": "one\n", "b": "two\n", "c": "three\n"}
    said = await stage.command("/rewind 1 files")
    assert "Goes with" not in said
    stage.conversation.user_input.forget_waiting()
    (tmp_path / "b.txt").write_text("by hand\n")
    await stage.command(f"/resume {stage.conversation.session.info.id}")
    await stage.conversation.send("Third")
    assert "not as you left them: a.txt (deleted), b.txt, c.txt (deleted)." in str(shown_last(stage)[-1])
    await stage.conversation.send("Fourth")
    assert "not as you left them" not in str(shown_last(stage)[-1])
    assert "not kept" not in stage.take()


async def test_the_chat_alone_goes_back(stage: Stage, tmp_path: Path) -> None:
    await stage.conversation.send("First")
    whole = files(tmp_path)
    assert "Went back to before “First”. /redo" in await stage.command("/rewind 1 chat")
    assert files(tmp_path) == whole
    assert list(stage.conversation.context.backwards()) == []
    assert "Went forward again. /undo" in await stage.command("/redo")
    assert files(tmp_path) == whole


async def test_what_you_changed_since_is_left_unless_you_say_otherwise(stage: Stage, tmp_path: Path) -> None:
    await stage.conversation.send("First")
    (tmp_path / "a.txt").write_text("mine\n")
    said = await stage.command("/undo")
    assert "1 deleted (b.txt), 1 left. /redo" in said
    assert "a.txt stays as it is: changed since, and not by this session." in said
    assert said.count("not by this session") == 1
    assert files(tmp_path) == {"a": "mine\n"}
    await stage.command("/redo")
    person = ScriptedReader(["b", "o"])
    asked = stage.with_reader(person)
    said = await asked.command("/rewind 1")
    assert "-two" in said
    assert "a.txt: changed since, and not by this session." in said
    assert "Files: 1 deleted, 1 asked about." in person.questions[0]
    # What becomes of it is not decided before the second answer.
    assert (said.count("not by this session"), "stays as it is" in said) == (1, False)
    assert "Databases, the network and installed packages do not come back." in person.questions[0]
    assert "You or another program changed 1 file in the meantime: a.txt." in person.questions[1]
    assert ("o", "take it back anyway; /redo brings those changes back") in person.keys
    assert files(tmp_path) == {}
    await asked.command("/redo")
    assert files(tmp_path) == {"a": "mine\n", "b": "two\n"}


@pytest.mark.parametrize("answers", [[""], ["b", ""]])
async def test_nothing_changes_where_the_person_goes_back_to_nothing(
    stage: Stage, tmp_path: Path, answers: list[str]
) -> None:
    await stage.conversation.send("First")
    (tmp_path / "a.txt").write_text("mine\n")
    before = files(tmp_path), stage.conversation.context.effective_history()
    assert "Nothing was changed." in await stage.with_reader(ScriptedReader(answers)).command("/rewind 1")
    assert (files(tmp_path), stage.conversation.context.effective_history()) == before


async def test_without_a_screen_messages_are_listed_and_chosen_by_number(stage: Stage) -> None:
    with pytest.raises(UsageError, match="not sent a message"):
        await stage.command("/rewind")
    await stage.conversation.send("First")
    said = await stage.command("/rewind")
    assert "First" in said
    assert "/rewind N goes back" in said
    with pytest.raises(UsageError, match="Files have changed since: 2 deleted") as refused:
        await stage.command("/rewind 1")
    assert "/rewind 1 both, chat or files" in refused.value.advice
    for line in ("/rewind x", "/rewind 1 all", "/rewind 2"):
        with pytest.raises(UsageError):
            await stage.command(line)


@pytest.mark.parametrize("columns", [40, 60, 80])
async def test_the_list_of_messages_keeps_its_numbers_in_a_narrow_window(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    with a_stage(tmp_path, ["One.", "Two."]) as stage:
        points = stage.conversation.rewinds.points
        for what in ("First", "Second"):
            await stage.conversation.send(
                f"{what}, a question whose text is longer than any of these columns, and more"
            )
        lines = (await stage.command("/rewind")).splitlines()
        for point in points():
            [line] = [line for line in lines if local_time(point.at) in line and str(point.seq) == line.split()[0]]
            below = lines[lines.index(line) + 1]
            assert f"{point.tokens:,}" in line
            assert point.text.split(",")[0] in line + below


async def test_a_branch_that_was_left_is_chosen_from_the_list(stage: Stage, tmp_path: Path) -> None:
    await stage.conversation.send("First")
    rewinds = stage.conversation.rewinds
    assert not any("↩" in keys for keys in RewindPicker(rewinds).listing(80).keys)
    await stage.command("/undo")
    await stage.conversation.send("Another")
    picker = RewindPicker(rewinds)
    texts = ["".join(text for _, text in picker.listing(80).row(number)) for number in range(3)]
    assert "Another" in texts[0]
    assert "↩ the end of another branch: Answer 1." in texts[1]
    assert "↩ First" in texts[2]
    assert all("↩ other branch" in keys for keys in picker.listing(80).keys[:2])
    end = next(point for point in rewinds.points() if point.rewind)
    person = ScriptedReader(["b"], [end])
    chosen = stage.with_reader(person)
    said = await chosen.command("/rewind")
    assert "the end of the branch with “Answer 1.”. Files: 2 restored (a.txt, b.txt), 1 deleted (c.txt)." in said
    assert person.questions[0].startswith("Go back to the end of the branch with “Answer 1.”? Files: 2 restored")
    assert files(tmp_path) == {"a": "one\n", "b": "two\n"}
    assert next(stage.conversation.context.backwards()).message.text == "Answer 1."


async def test_changes_are_shown_by_file(stage: Stage) -> None:
    assert "changed no file" in await stage.command("/changes")
    await stage.conversation.send("First")
    said = await stage.command("/changes")
    assert "a.txt" in said
    assert "+one" in said
    assert "2 files +2 −0." in said
    only = await stage.command("/changes b.txt")
    assert "+two" in only
    assert "+one" not in only
    with pytest.raises(UsageError, match=r"did not change z\.txt"):
        await stage.command("/changes z.txt")
    await stage.command("/undo")
    # Five changes whose net was nothing were said to be none.
    assert "All recorded files are as they were before this session." in await stage.command("/changes")


async def test_undo_says_that_a_commit_stays(tmp_path: Path) -> None:
    """A commit that a command had made was left without a word."""

    def git(*arguments: str, at: str = "") -> str:
        command = ["git", "-C", str(tmp_path), "-c", "user.name=n", "-c", "user.email=n@example.org", *arguments]
        environ = {**os.environ, **({"GIT_COMMITTER_DATE": at} if at else {})}
        return subprocess.run(command, check=True, capture_output=True, text=True, env=environ).stdout.strip()

    git("init", "-q")
    git("commit", "-q", "--allow-empty", "-m", "one", at="2020-01-01T00:00:00Z")
    replies = [*writes(1, a="one\n"), *writes(2, b="two\n")]
    with a_stage(tmp_path, replies, agent__permission="accept-edits") as stage:
        await stage.conversation.send("First")
        await stage.conversation.send("Second")
        before = git("rev-parse", "HEAD")[:7]
        assert "HEAD" not in await stage.command("/undo")
        await stage.command("/redo")
        git("add", "a.txt")
        git("commit", "-q", "-m", "two")
        after = git("rev-parse", "HEAD")[:7]
        said = await stage.command("/undo")
        assert f"Git's changes stay: HEAD was at {before} before that message and is at {after} now." in said
        assert f"HEAD was at {before} before that message" in await stage.command("/rewind 1 both")


async def test_a_question_beside_is_answered(tmp_path: Path) -> None:
    with a_stage(
        tmp_path,
        [
            "Answer.",
            Reply(Message("assistant", "It is blue."), Usage(700, 8)),
            Message("assistant", "", (ToolCall("c", "todo", "{}"),)),
        ],
    ) as stage:
        await stage.conversation.send("First")
        before = stage.conversation.session.usage.totals()
        said = await stage.command("/btw which colour?")
        spent = stage.conversation.session.usage.totals()
        assert spent.prompt_tokens - before.prompt_tokens == 700
        assert spent.completion_tokens - before.completion_tokens == 8
        assert "It is blue." in said
        assert "The context is unchanged" in said
        with pytest.raises(UsageError, match="no question"):
            await stage.command("/btw")
        with pytest.raises(UsageError, match="gave no answer"):
            await stage.command("/btw and now?")


def shown_last(stage: Stage) -> Any:
    return stage.conversation.model.requests[-1].messages  # type: ignore[attr-defined]


async def test_a_long_diff_is_cut_and_shown_whole_where_it_is_asked_for(tmp_path: Path) -> None:
    long = "".join(f"line {number}\n" for number in range(300))
    with a_stage(
        tmp_path, writes(1, a=long, b="two\n"), agent__permission="accept-edits", window_tokens=50_000
    ) as stage:
        await stage.conversation.send("First")
        said = await stage.command("/changes")
        assert "… and 1 more file (/changes all shows all)" in said
        assert "+1 −0  b.txt" in said
        assert "line 299" not in said
        assert "line 299" in await stage.command("/changes all")
        person = ScriptedReader(["d", "b"])
        said = await stage.with_reader(person).command("/rewind 1")
        assert "(d shows all of it)" in said
        assert "-line 299" in said
        assert "2 deleted" in said
        assert len(person.questions) == 2


async def test_a_rewind_that_is_stopped_is_whole(stage: Stage, tmp_path: Path) -> None:
    await stage.conversation.send("First")
    rewinds = stage.conversation.rewinds
    point = rewinds.last_turn()
    assert point is not None
    going = asyncio.ensure_future(rewinds.go_back(point, await rewinds.plan(point), "both"))
    for _ in range(3):
        await asyncio.sleep(0)
        going.cancel()
    (ended,) = await asyncio.gather(going, return_exceptions=True)
    is_stopped = isinstance(ended, UsageError) and "Stopped: the files are as they were" in str(ended)
    assert len(files(tmp_path)) == (2 if is_stopped else 0)
    assert (rewinds.last_turn() == point) == is_stopped


async def test_a_file_that_comes_back_without_its_setuid_bit_is_named(tmp_path: Path) -> None:
    tool = tmp_path / "tool.txt"
    tool.write_text("old\n")
    tool.chmod(0o4755)
    replies = [
        Message("assistant", None, (ToolCall("r1", "read_file", json.dumps({"path": "tool.txt"})),)),
        *writes(1, tool="new\n"),
    ]
    with a_stage(tmp_path, replies, agent__permission="accept-edits") as stage:
        await stage.conversation.send("First")
        assert tool.read_text() == "new\n"
        said = await stage.command("/undo")
    assert "Restored without setuid, which nca never sets: tool.txt." in said
    assert (tool.read_text(), tool.stat().st_mode & 0o7777) == ("old\n", 0o755)


def runs(*commands: str, background: bool = False) -> list[Any]:
    """A turn that runs commands, and its answer."""
    calls = tuple(
        ToolCall(f"r{number}", "shell", json.dumps({"command": command, "background": background}))
        for number, command in enumerate(commands)
    )
    return [Message("assistant", None, calls), "Ran."]


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


def on_disk(work: Path, replies: list[Any]) -> AbstractContextManager[Stage]:
    store = work.with_name("home") / "sessions.db"
    return a_stage(work, replies, agent__permission="auto", store_path=store)


@pytest.mark.parametrize(("answers", "left"), [(["k"], {"own1", "own2"}), (["d"], set()), ([], {"own1", "own2"})])
async def test_a_file_that_no_command_mentions_is_deleted_only_where_the_person_says_so(
    work: Path, answers: list[str], left: set[str]
) -> None:
    (work / "e.txt").write_text("old")
    with on_disk(work, runs("for n in 1 2; do touch own$n.txt; done; echo 1 > made.txt; echo new > e.txt")) as stage:
        await stage.conversation.send("First")
        assert len(files(work)) == 4
        person = ScriptedReader(answers)
        said = await stage.with_reader(person).command("/undo")
        coming = "Will restore e.txt.\nWill delete made.txt.\nWill delete files that no command mentions, perhaps"
        assert (coming in said) == ("own1.txt, own2.txt." in said) == bool(answers)
        assert files(work).keys() == {"e", *left}
        assert files(work)["e"] == "old"
        assert len(person.questions) == len(answers)
        if answers:
            assert "2 files appeared while a command ran that does not mention them" in person.questions[0]
        assert ("own1.txt stays as it is: kept." in said) == bool(left)


async def test_hard_links_and_modes_are_named_as_such(work: Path) -> None:
    (work / "e.txt").write_text("old\n")
    (work / "g.txt").write_text("same\n")
    (work / "g.txt").chmod(0o644)
    os.link(work / "e.txt", work / "f.txt")
    with on_disk(work, runs("echo new > e.txt; chmod 755 g.txt")) as stage:
        await stage.conversation.send("First")
        lines = [changed_line(one) for one in stage.conversation.files.changed_since(0)]
        assert lines == ["+1 −1  e.txt", "+1 −1  f.txt", "g.txt: mode 644 → 755"]
        person = ScriptedReader(["l"])
        await stage.with_reader(person).command("/undo")
    assert person.questions == ["Hard links would be separated from 2 files: e.txt, f.txt."]


async def test_what_an_interrupted_command_mentions_goes_back_unasked(work: Path) -> None:
    """A file that the line names, and one that only the output so far names."""
    with on_disk(
        work, runs("for n in 1 2; do echo $n > own$n.txt; echo own$n.txt; done; echo 3 > k.txt; sleep 9886")
    ) as stage:
        sending = asyncio.create_task(stage.conversation.send("First"))
        async with asyncio.timeout(30):
            while "k" not in files(work):
                await asyncio.sleep(0.01)
        sending.cancel()
        await asyncio.wait({sending})
        person = ScriptedReader([])
        assert "Files: 3 deleted" in await stage.with_reader(person).command("/undo")
        assert (files(work), person.questions) == ({}, [])


async def test_a_person_goes_back_to_nothing_at_any_question(work: Path) -> None:
    with on_disk(work, runs("for n in 1 2; do touch own$n.txt; done")) as stage:
        await stage.conversation.send("First")
        assert "Nothing was changed." in await stage.with_reader(ScriptedReader([""])).command("/undo")
        assert len(files(work)) == 2
        assert stage.conversation.rewinds.last_turn() is not None


async def test_a_job_that_runs_is_named_and_stopped_before_files_go_back(work: Path) -> None:
    with on_disk(work, [*runs("echo 1 > made.txt"), *runs("sleep 600", background=True)]) as stage:
        await stage.conversation.send("First")
        await stage.conversation.send("Second")
        with pytest.raises(UsageError, match=r"Files cannot go back while something may change them: job 1 \(\$ sleep"):
            await stage.command("/rewind 1 both")
        person = ScriptedReader(["w", "s"])
        assert "Nothing was changed." in await stage.with_reader(person).command("/rewind 1 both")
        assert person.questions == ["job 1 ($ sleep 600) still runs and may change files."]
        assert "Files: 1 deleted" in await stage.with_reader(person).command("/rewind 1 both")
        assert (files(work), [job.is_running for job in stage.conversation.jobs.all]) == ({}, [False])


async def test_a_job_of_the_branch_that_was_left_is_named_and_the_model_hears_nothing_of_it(tmp_path: Path) -> None:
    asks = Message("assistant", None, (ToolCall("j", "job", '{"number": 1}'),))
    replies = [*runs("sleep 9885", background=True), "Other.", asks, "None."]
    with a_stage(tmp_path, replies, agent__permission="auto") as stage:
        await stage.conversation.send("Serve it")
        named = "Still runs: job 1, $ sleep 9885. /jobs stop 1 ends it."
        assert named in await stage.command("/undo")
        assert "Still runs" not in await stage.command("/redo")
        assert stage.conversation.jobs.known == stage.conversation.jobs.all
        assert named in await stage.command("/undo")
        await stage.command("/jobs stop 1")
        await stage.conversation.send("Something else")
        await stage.conversation.send("What runs?")
        model = stage.conversation.model
        assert isinstance(model, ScriptedModel)
        assert not [one for request in model.requests[2:] for one in request.messages if "sleep 9885" in str(one)]
        assert "there is no job 1; none was started" in str(model.requests[-1].messages[-1])


async def test_what_somebody_made_of_a_file_since_can_be_merged(tmp_path: Path) -> None:
    lines = [f"line {number}\n" for number in range(9)]
    (tmp_path / "a.txt").write_text("".join(lines))
    (tmp_path / "b.txt").write_text("one\n")
    replies = [
        Message("assistant", None, tuple(_read(name) for name in "ab")),
        *writes(1, a="".join(["session\n", *lines[1:]]), b="session\n"),
    ]
    with a_stage(tmp_path, replies, agent__permission="accept-edits") as stage:
        await stage.conversation.send("First")
        (tmp_path / "a.txt").write_text("".join(["session\n", *lines[1:-1], "mine\n"]))
        (tmp_path / "b.txt").write_text("mine\n")
        before = files(tmp_path)
        person = ScriptedReader(["m", "n", "m", "y"])
        said = await stage.with_reader(person).command("/undo")
        assert "+line 0" in said
        assert "With conflict marks: b.txt (1 conflict)." in said
        assert files(tmp_path) == {
            "a": "".join([*lines[:-1], "mine\n"]),
            "b": "<<<<<<< now\nmine\n=======\none\n>>>>>>> earlier\n",
        }
        assert "are as they were before this session" in await stage.command("/changes")
        await stage.command("/redo")
        assert files(tmp_path) == before
        assert "a.txt  +1 −1\n" in await stage.command("/changes")


def _read(name: str) -> ToolCall:
    return ToolCall(f"read-{name}", "read_file", json.dumps({"path": f"{name}.txt"}))


async def test_what_was_not_recorded_is_said_at_the_turn_and_when_it_is_taken_back(work: Path) -> None:
    (work / "data").mkdir()
    for number in range(30):
        (work / f"data/{number}").write_text("1")
    with on_disk(work, runs("rm data/3; echo 1 > a.txt")) as stage:
        stage.conversation.set("rewind.max_files", 20)
        await stage.conversation.send("First")
        gap = "in data/: it has more than 20 files (rewind.max_files)."
        assert f"Not recorded: changes that commands make {gap} They cannot be taken back." in stage.take()
        said = await stage.command("/undo")
        assert "Files: 1 deleted" in said
        assert f"Not recorded, so not taken back: changes that commands made {gap}" in said
