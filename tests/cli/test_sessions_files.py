"""`nca sessions export`, `import`, `rename`, `fork`, `delete`, `backup`, as processes."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from nca.messages import Message
from nca.sessions import Store
from tests.cli.command import environment
from tests.sessions.damage import PAGE_BYTES
from tests.sessions.samples import MANUAL, calling, hiding, result, said
from tests.shapes.conversions import to_responses
from tests.terminal.tty import ROOT, Tty
from tests.testing.forks import forked as nca

KEY = "sk-" + "a1B2" * 6
ROWS = [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "yes"}]


def store_in(home: Path) -> Store:
    return Store.open(home / "nca" / "data" / "sessions.db")


@pytest.fixture
def talk(tmp_path: Path) -> str:
    """A closed session with six messages and a compaction."""
    with store_in(tmp_path) as store, store.create(directory="/work", model="m", name="the talk") as session:
        session.log.append(said("fix it", "done", "my own-secret-value", f"never say {KEY}", "\x1b[2J", "end"))
        session.views.commit(hiding(2), MANUAL)
        return session.info.id


def test_json_goes_out_and_comes_in_again(tmp_path: Path, talk: str) -> None:
    done = nca("sessions", "export", "the talk", "talk.json", "--no-redact", home=tmp_path)
    assert (done.returncode, done.stdout) == (0, "")
    assert "(6 messages) to talk.json as json" in done.stderr
    file = tmp_path / "talk.json"
    assert file.stat().st_mode & 0o777 == 0o600
    new = nca("sessions", "import", "talk.json", "--name", "again", home=tmp_path)
    assert new.returncode == 0
    with store_in(tmp_path) as store:
        one, other = store.copy_of(talk), store.copy_of(new.stdout.strip())
        assert other.info.name == "again"
        assert (one.entries, one.views, one.summaries, one.compactions) == (
            *(other.entries, other.views, other.summaries, other.compactions),
        )


def test_a_session_goes_to_another_agent(tmp_path: Path, talk: str) -> None:
    done = nca("sessions", "export", talk, "--as", "claude", home=tmp_path)
    (file,) = (tmp_path / ".claude" / "projects" / "-work").iterdir()
    assert done.returncode == 0
    assert done.stdout == f"cd /work && claude --resume {file.stem}\n"
    assert done.stderr == f"Wrote 6 messages as a session of Claude Code: {file}\n"
    assert KEY not in file.read_text()
    again = nca("sessions", "import", str(file), home=tmp_path)
    with store_in(tmp_path) as store:
        assert len(store.copy_of(again.stdout.strip()).entries) == len(store.copy_of(talk).entries)
    beside = nca("sessions", "export", talk, "talk.jsonl", "--as", "claude", home=tmp_path)
    assert "Claude Code finds it once it is at " in beside.stderr
    assert (
        "talk.jsonl already exists" in nca("sessions", "export", talk, "talk.jsonl", "--as", "pi", home=tmp_path).stderr
    )
    assert "--as writes a file" in nca("sessions", "export", talk, "-", "--as", "pi", home=tmp_path).stderr
    both = nca("sessions", "export", talk, "talk.jsonl", "--as", "claude", "--json", home=tmp_path)
    assert (both.returncode, json.loads(both.stdout)["error"]["exit_code"]) == (2, 2)
    assert "--as excludes --format, --html, --json and --force." in both.stderr


def test_formats_by_flag_by_ending_and_by_default(tmp_path: Path, talk: str) -> None:
    assert nca("sessions", "export", talk, home=tmp_path).stdout.startswith("# the talk\n")
    assert nca("sessions", "export", talk, "-", "--html", home=tmp_path).stdout.startswith("<!doctype html>")
    assert json.loads(nca("sessions", "export", talk, "--json", home=tmp_path).stdout)["format"] == "nca-session"
    assert nca("sessions", "export", talk, "--out", "talk.html", home=tmp_path).returncode == 0
    assert (tmp_path / "talk.html").read_text().startswith("<!doctype html>")
    assert nca("sessions", "export", talk, "talk.txt", "--format", "json", home=tmp_path).returncode == 0
    assert json.loads((tmp_path / "talk.txt").read_bytes())["version"] == 1


def test_keys_stay_here_unless_asked_for(tmp_path: Path, talk: str) -> None:
    for form in ("markdown", "json", "html"):
        done = nca("sessions", "export", talk, "--format", form, home=tmp_path, OPENAI_API_KEY="own-secret-value")
        text = done.stdout
        assert KEY not in text
        assert "own-secret-value" not in text
        assert "[redacted OPENAI_API_KEY]" in text
        assert "\x1b" not in text
    assert KEY in nca("sessions", "export", talk, "--no-redact", home=tmp_path).stdout


def test_nothing_is_overwritten_unless_forced(tmp_path: Path, talk: str) -> None:
    (tmp_path / "a.md").write_text("mine")
    done = nca("sessions", "export", talk, "a.md", home=tmp_path)
    assert (done.returncode, (tmp_path / "a.md").read_text()) == (2, "mine")
    assert "--force" in done.stderr
    assert nca("sessions", "export", talk, "a.md", "--force", home=tmp_path).returncode == 0
    assert (tmp_path / "a.md").read_text().startswith("# the talk")
    assert not list(tmp_path.glob(".*.tmp"))


def test_import_of_other_programs_files(tmp_path: Path) -> None:
    (tmp_path / "array.json").write_text(json.dumps(ROWS))
    (tmp_path / "object.json").write_text(json.dumps({"messages": ROWS, "tools": []}))
    (tmp_path / "items.json").write_text(json.dumps(to_responses(ROWS)))
    (tmp_path / "lines.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    ids = [
        nca("sessions", "import", name, home=tmp_path).stdout.strip()
        for name in ("array.json", "object.json", "items.json", "lines.jsonl")
    ]
    both = ("sessions", "import", "array.json", "lines.jsonl")
    ids += nca(*both, home=tmp_path).stdout.splitlines()
    assert len(ids) == 6
    assert nca(*both, "--name", "x", home=tmp_path).returncode == 2
    assert (bad := nca(*both, "none.json", home=tmp_path)).returncode == 2
    assert bad.stdout == "", "one that is invalid imports nothing"
    piped = nca("sessions", "import", "-", home=tmp_path, stdin=json.dumps(ROWS)).stdout.strip()
    with store_in(tmp_path) as store:
        for name in (*ids, piped):
            copy = store.copy_of(name)
            assert [entry.message for entry in copy.entries] == said("hello", "yes")
            assert copy.info.directory == str(tmp_path)


def test_a_bad_file_leaves_nothing_behind(tmp_path: Path) -> None:
    lines = [json.dumps(row) for row in ROWS] + ['{"role": "robot", "content": "x"}']
    (tmp_path / "bad.jsonl").write_text("\n".join(lines))
    done = nca("sessions", "import", "bad.jsonl", home=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("nca: bad.jsonl, line 3: message 3: role 'robot' is not known; valid: system")
    assert nca("sessions", "import", "missing.json", home=tmp_path).returncode == 2
    assert nca("sessions", "list", home=tmp_path).stdout == "No sessions yet.\n"


def test_rename_and_fork(tmp_path: Path, talk: str) -> None:
    assert nca("sessions", "rename", "the talk", "new\n\x1b[1mname", home=tmp_path).returncode == 0
    forked = nca("sessions", "fork", talk, "--at", "2", "--name", "copy", home=tmp_path)
    assert forked.returncode == 0
    with store_in(tmp_path) as store:
        assert store.find("copy").id == forked.stdout.strip()
        assert (store.find("copy").messages, store.find(talk).messages) == (2, 6)
    done = nca("sessions", "fork", talk, "--at", "7", home=tmp_path)
    assert (done.returncode, "valid: 1 to 6" in done.stderr) == (2, True)
    assert nca("sessions", "rename", talk, "", home=tmp_path).stdout == f"Removed the name of {talk}.\n"


def test_delete_asks_and_takes_the_long_outputs_along(tmp_path: Path, talk: str) -> None:
    folder = tmp_path / "nca" / "data" / "outputs" / talk
    folder.mkdir(parents=True)
    done = nca("sessions", "delete", talk, home=tmp_path)
    assert (done.returncode, "--yes" in done.stderr) == (2, True)
    env = {**environment(tmp_path), "PYTHONPATH": str(ROOT)}
    for answer, said_then in (("n", "Nothing was deleted."), ("y", f"Deleted {talk}.")):
        with Tty([sys.executable, "-m", "nca", "sessions", "delete", talk[:5]], environment=env) as tty:
            tty.sees(f"Permanently delete {talk}, “the talk”, 6 messages? y or n:")
            tty.line("")
            tty.sees("y or n:", times=2)
            tty.line(answer)
            tty.sees(said_then)
            assert tty.ends() == 0
    assert not folder.exists()
    assert nca("sessions", "delete", talk, "--yes", home=tmp_path).returncode == 2


def test_a_session_that_is_open_is_not_deleted_but_can_be_copied(tmp_path: Path, talk: str) -> None:
    with store_in(tmp_path) as store, store.open_session(talk) as session:
        session.log.append([Message("user", "still talking")])
        done = nca("sessions", "delete", talk, "--yes", home=tmp_path)
        assert (done.returncode, "already open in process" in done.stderr) == (1, True)
        assert nca("sessions", "rename", talk, "x", home=tmp_path).returncode == 1
        forked = nca("sessions", "fork", talk, home=tmp_path)
        assert forked.returncode == 0
        assert "still talking" in nca("sessions", "export", talk, home=tmp_path).stdout
        assert store.find(forked.stdout.strip()).messages == 7


def test_backup(tmp_path: Path, talk: str) -> None:
    with store_in(tmp_path) as store, store.open_session(talk):
        done = nca("sessions", "backup", "copy.db", home=tmp_path)
    assert (done.returncode, done.stdout) == (0, "Backed up 1 session to copy.db.\n")
    with Store.open(tmp_path / "copy.db", read_only=True) as copy:
        assert copy.find(talk).messages == 6
    again = nca("sessions", "backup", "copy.db", home=tmp_path)
    said = "nca: copy.db already exists; nothing was written. Name another file.\n"
    assert (again.returncode, again.stderr) == (2, said)
    nowhere = nca("sessions", "backup", "no/copy.db", home=tmp_path)
    assert (nowhere.returncode, nowhere.stderr) == (1, "nca: Cannot write no/copy.db: no such file or directory\n")
    (tmp_path / "empty").mkdir()
    assert nca("sessions", "backup", "x.db", home=tmp_path / "empty").returncode == 2


def test_a_backup_that_is_not_whole_is_none(tmp_path: Path) -> None:
    path = tmp_path / "nca" / "data" / "sessions.db"
    with store_in(tmp_path) as store, store.create(directory="/", model="m") as session:
        session.log.append([Message("user", "word " * 600) for _ in range(40)])
    raw = bytearray(path.read_bytes())
    page = raw.rfind(b"word word") // PAGE_BYTES * PAGE_BYTES
    raw[page : page + 8] = b"\xff" * 8
    path.write_bytes(raw)
    done = nca("sessions", "backup", "copy.db", home=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert "The copy is not whole, so it was deleted: copy.db is damaged (" in done.stderr
    assert not [one.name for one in tmp_path.iterdir() if "copy" in one.name]


def test_a_copy_goes_to_a_new_file_or_a_store_and_never_over_another_file(tmp_path: Path, talk: str) -> None:
    notes = tmp_path / "notes.txt"
    notes.write_text("my notes")
    before = sorted(tmp_path.iterdir())
    for option in ("--to", "--from"):
        done = nca("sessions", "copy", option, "notes.txt", home=tmp_path)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == f"nca: {notes} is not a session database; it was left alone. Name another file.\n"
    assert (notes.read_text(), sorted(tmp_path.iterdir())) == ("my notes", before)
    assert nca("sessions", "copy", "--to", "copy.db", home=tmp_path).stdout == "Copied 1 session.\n"
    with store_in(tmp_path) as store, store.create(directory="/work", model="m") as other:
        other.log.append(said("not asked for"))
    again = nca("sessions", "copy", talk, "--to", "copy.db", home=tmp_path)
    assert again.stdout == "Copied 0 sessions. 1 was already there.\n"


def test_a_copied_fork_has_the_outputs_of_the_session_that_it_came_from(tmp_path: Path) -> None:
    with store_in(tmp_path) as store:
        with store.create(directory="/work", model="m") as session:
            folder = store.outputs_folder(session.info.id)
            assert folder is not None
            folder.mkdir(parents=True)
            (folder / "1-shell.txt").write_text("the whole output")
            cut = f"start\n[cut; full output: {folder / '1-shell.txt'}]"
            session.log.append([*said("run"), calling("1"), result("1", cut), Message("assistant", "Done.")])
        fork = store.fork(session.info.id).id
        store.delete(session.info.id)
    there = tmp_path / "there" / "copy.db"
    output = there.parent / "outputs" / folder.name / "1-shell.txt"
    # A copy that was killed left a part of it.
    output.parent.mkdir(parents=True)
    output.write_text("the wh")
    assert nca("sessions", "copy", fork, "--to", str(there), home=tmp_path).stdout == "Copied 1 session.\n"
    assert output.read_text() == "the whole output"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["copy", "--from", "typo.db"], "--from typo.db: there is no such file."),
        (["copy", "--to", "nowhere/copy.db"], "--to nowhere/copy.db: there is no folder "),
        (["export", "nowhere"], "There is no session 'nowhere'"),
        (["export", "the talk", "--format", "pdf"], "valid: markdown, json, jsonl, html"),
        (["export", "the talk", "--html", "--json"], "exclude each other"),
        (["export", "the talk", "a.md", "--out", "b.md"], "exclude each other"),
        (["fork", "nowhere"], "There is no session"),
        (["fork", "the talk", "--at", "x"], "Invalid value for '--at'"),
    ],
)
def test_wrong_words_are_one_line_and_exit_2(tmp_path: Path, talk: str, arguments: list[str], said: str) -> None:
    done = nca("sessions", *arguments, home=tmp_path)
    assert done.returncode == 2
    assert done.stdout == "" or ("--json" in arguments and said in json.loads(done.stdout)["error"]["message"])
    assert said in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "nowhere").exists()


def test_the_command_that_resumes_names_the_folder_exactly(tmp_path: Path) -> None:
    with store_in(tmp_path) as store, store.create(directory="/my  work", model="m", name="talk") as session:
        session.log.append(said("Hi", "Hello"))
    done = nca("sessions", "export", "talk", "talk.jsonl", "--as", "claude", home=tmp_path)
    assert done.stdout.startswith("cd '/my  work' && claude ")


def test_json_lines_are_a_transcript_for_other_commands(tmp_path: Path) -> None:
    with store_in(tmp_path) as store, store.create(directory="/work", model="m", name="talk") as session:
        session.log.append(
            [*said("What?"), calling("1"), result("1", "héllo\nline"), Message("assistant", "It is so.")]
        )
    assert nca("sessions", "export", "talk", "talk.jsonl", home=tmp_path).returncode == 0
    rows = [json.loads(line) for line in (tmp_path / "talk.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [row["role"] for row in rows] == ["user", "assistant", "tool", "assistant"]
    assert [row["_seq"] for row in rows] == [1, 2, 3, 4]
    assert nca("sessions", "export", "talk", "--format", "jsonl", home=tmp_path).stdout.isascii()
    assert nca("sessions", "import", "talk.jsonl", "--name", "again", home=tmp_path).returncode == 0
    with store_in(tmp_path) as store:
        whole, again = (store.copy_of(name).entries for name in ("talk", "again"))
    assert [entry.message.text for entry in again] == [entry.message.text for entry in whole]
    assert again[1].message.tool_calls == whole[1].message.tool_calls
