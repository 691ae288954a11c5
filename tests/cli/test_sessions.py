"""`nca sessions`: what a person and a program see, with nothing written and no control character printed."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner, Result

from nca.cli.sessions import app
from nca.errors import SessionNotFound, StoreDamaged, StoreError
from nca.messages import AttachmentPart, Message, TextPart, ToolCall, Usage
from nca.sessions import Store
from tests.cli.command import environment
from tests.sessions.samples import MANUAL, calling, hiding, pin, result, said
from tests.testing.forked_tty import ForkedTty
from tests.testing.forks import forked

NASTY = "title \x1b]0;owned\x07 \x9b2J \u202e end"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home"


def run(home: Path, *arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments), env={"NCA_HOME": str(home)}, catch_exceptions=False)


def store_in(home: Path) -> Store:
    return Store.open(home / "data" / "sessions.db")


def test_without_a_store_there_are_no_sessions_and_none_is_made(home: Path) -> None:
    listed = run(home, "list")
    assert (listed.exit_code, listed.output) == (0, "No sessions yet.\n")
    assert (run(home).exit_code, run(home).output) == (0, listed.output)
    assert json.loads(run(home, "list", "--json").output) == []
    assert run(home, "search", "walrus").output == "Nothing found.\n"
    assert not home.exists()


def test_a_session_of_nca_run_is_marked_in_a_pipe(home: Path) -> None:
    with store_in(home) as store, store.create(directory="/work", model="m", kind="run") as session:
        session.log.append(said("count the lines"))
    assert "  (run) count the lines" in run(home, "list").stdout


def test_on_a_terminal_the_list_fits_the_window(tmp_path: Path) -> None:
    with store_in(tmp_path / "nca") as store, store.create(directory="/work", model="m") as session:
        session.log.append(said("fix the bug in parse.py and all of its tests"))
        env = environment(tmp_path)
        with ForkedTty(["nca", "sessions", "list"], columns=40, environment=env) as tty:
            assert tty.ends() == 0
            lines = [line for line in tty.shown() if line]
        assert len(lines) == 2
        assert lines[1].startswith(session.info.id)
        assert lines[1].endswith("…")


@pytest.mark.parametrize(
    "words", [["sessions", "search", "parse.py"], ["doctor"], ["models", "list"], ["config", "path"]], ids=" ".join
)
def test_on_a_terminal_no_line_is_broken_within_a_word(tmp_path: Path, words: list[str]) -> None:
    with store_in(tmp_path / "nca") as store, store.create(directory="/work", model="m") as session:
        session.log.append(said("fix the bug in parse.py and all of its tests, before anything else is done here"))
    env = environment(tmp_path, NCA_MODEL__NAME="embedded/smollm2-135m")
    whole = forked(*words, home=tmp_path, NCA_MODEL__NAME="embedded/smollm2-135m").stdout.split()
    with ForkedTty(["nca", *words], columns=60, rows=200, environment=env, cwd=tmp_path) as tty:
        tty.ends()
        shown = set(" ".join(tty.shown()).split())
    assert whole
    assert [word for word in whole if len(word) < 40 and word not in shown] == []


def test_the_arguments_of_a_call_are_shown_as_they_are_and_bounded(home: Path) -> None:
    written = '{"text": "def f():\\n    return  1"}'
    with store_in(home) as store, store.create(directory="/work", model="m") as session:
        calls = (ToolCall("1", "write_file", written), ToolCall("2", "write_file", "x" * 9_000))
        session.log.append([Message("assistant", tool_calls=calls)])
        name = session.info.id
    shown = run(home, "show", name).output
    assert f"→ write_file {written}\n" in shown
    assert f"→ write_file {'x' * 2_000}…\n" in shown
    told = json.loads(run(home, "show", name, "--json").output)["log"][0]["message"]["tool_calls"]
    assert [call["function"]["arguments"] for call in told] == [written, "x" * 9_000]


@pytest.mark.parametrize(("columns", "shown"), [(100, True), (60, False), (12, False)])
def test_on_a_terminal_the_list_names_directories_where_there_are_several(
    tmp_path: Path, columns: int, shown: bool
) -> None:
    with store_in(tmp_path / "nca") as store:
        for directory in (f"{tmp_path}/one", "/a/place/with/a/name/that/is/long/two"):
            with store.create(directory=directory, model="m") as session:
                session.log.append(said("fix the bug in parse.py"))
    with ForkedTty(["nca", "sessions", "list"], columns=columns, environment=environment(tmp_path)) as tty:
        assert tty.ends() == 0
        assert ("~/one" in tty.text()) is shown
        assert ("/name/that/is/long/two" in tty.text()) is shown


def test_list_shows_the_last_used_first(home: Path) -> None:
    with store_in(home) as store:
        ids = []
        for name in ("", "named"):
            with store.create(directory="/work", model="openai/gpt-4.1", name=name) as session:
                session.log.append(said("fix the bug in\nparse.py", "done"))
                ids.append(session.info.id)
        store.create(directory="/work", model="m").close()
        with store.create(directory="/work", model="m") as session:
            session.log.append([Message("assistant", "Hello.")])
    without, empty, named, titled = run(home, "list").output.splitlines()
    assert "(no title)" in without
    assert "(empty)" in empty
    assert named.startswith(ids[1])
    assert "named" in named
    assert "openai/gpt-4.1" in named
    assert titled.startswith(ids[0])
    assert "fix the bug in parse.py" in titled
    rows = json.loads(run(home, "list", "--json").output)
    assert [row["id"] for row in rows[2:]] == ids[::-1]
    assert rows[2] | {"created_at": 0, "updated_at": 0} == {
        "id": ids[1],
        "name": "named",
        "directory": "/work",
        "model": "openai/gpt-4.1",
        "created_at": 0,
        "updated_at": 0,
        "messages": 2,
        "is_pinned": False,
        "title": "fix the bug in parse.py",
        "kind": "chat",
        "has_forks": False,
        "chosen_model": "",
        "origin": None,
    }


def test_a_long_list_is_cut_unless_all_is_asked_for(home: Path) -> None:
    with store_in(home) as store:
        for _ in range(52):
            store.create(directory="/", model="m").close()
    lines = run(home, "list").output.splitlines()
    assert len(lines) == 51
    assert "--all" in lines[-1]
    assert len(run(home, "list", "--all").output.splitlines()) == 52
    assert len(json.loads(run(home, "list", "--json").output)) == 52, "a program would take the last ones for all"
    assert len(json.loads(run(home, "list", "--json", "--all").output)) == 52


def test_show_tells_what_happened(home: Path) -> None:
    with store_in(home) as store, store.create(directory="/work", model="m", name="named") as session:
        session.log.append([Message("user", (TextPart("read this"), AttachmentPart("a.py", "text", 1234)))])
        session.log.append(
            [calling("1"), result("1", "line one\nline two"), Message("assistant", "hal", is_interrupted=True)]
        )
        session.views.commit(hiding(3), MANUAL)
        session.views.undo()
        session.views.commit(hiding(1), msgspec.structs.replace(MANUAL, stages=("retry",)))
        pin(session, 1)
        session.usage.record(4, "m", Usage(100, 20, cost=0.5), 0)
        name = session.info.id
    shown = run(home, "show", name[:6]).output
    for piece in (
        f"session    {name} (named)",
        "1 user (pinned)\nread this\n[attached a.py, 1,234 bytes]",
        '2 assistant\n→ read_file {"path": "a.py"}',
        "3 tool (read_file)\nline one\nline two",
        "4 assistant (interrupted)\nhal",
        "manual: summarize; 900 → 300 tokens · 0.0 s · undone",
    ):
        assert piece in shown
    assert "retry" not in shown
    told = json.loads(run(home, "show", name, "--json").output)
    assert [entry["seq"] for entry in told["log"]] == [1, 2, 3, 4]
    assert told["log"][2]["message"]["tool_call_id"] == "1"
    assert told["pins"] == [1]
    assert [one["undone"] for one in told["compactions"]] == [True], "a message that was tried again is none"
    assert told["usage"]["prompt_tokens"] == 100


def test_nothing_stored_reaches_the_terminal_as_a_control_character(home: Path) -> None:
    with store_in(home) as store, store.create(directory=NASTY, model=NASTY, name="") as session:
        session.log.append([Message("user", NASTY), Message("tool", NASTY, tool_call_id="x", name=NASTY)])
        name = session.info.id
    for arguments in (["list"], ["list", "--json"], ["show", name], ["show", name, "--json"]):
        output = run(home, *arguments).output
        assert "title" in output
        assert not set(output) & set("\x07\x1b\x9b\u202e")


def test_looking_changes_no_file(home: Path) -> None:
    with store_in(home) as store, store.create(directory="/", model="m") as session:
        session.log.append(said("a"))
        name = session.info.id
    before = {file: file.stat().st_mtime_ns for file in home.rglob("*")}
    run(home, "list")
    run(home, "show", name)
    assert {file: file.stat().st_mtime_ns for file in home.rglob("*")} == before


def test_a_session_that_is_open_elsewhere_can_be_looked_at(home: Path) -> None:
    with store_in(home) as store, store.create(directory="/", model="m") as session:
        session.log.append(said("still talking"))
        assert "still talking" in run(home, "list").output
        assert "still talking" in run(home, "show", session.info.id).output


def test_errors_are_for_the_caller_to_print(home: Path) -> None:
    with pytest.raises(SessionNotFound, match="There is no session 'x'"):
        run(home, "show", "x")
    (home / "data").mkdir(parents=True)
    (home / "data" / "sessions.db").write_text("garbage")
    with pytest.raises(StoreDamaged):
        run(home, "list")


def test_a_pinned_session_does_not_expire(home: Path) -> None:
    ids = []
    with store_in(home) as store:
        for text in ("kept", "goes", "newest"):
            with store.create(directory="/work", model="m") as session:
                session.log.append(said(text))
                ids.append(session.info.id)
    assert ", “kept”." in run(home, "pin", ids[0]).output
    with store_in(home) as store:
        assert store.expired(0, 1) == [ids[1]]
    assert "* " in run(home, "list").output.splitlines()[-1]
    assert "Unpinned" in run(home, "unpin", ids[0]).output
    with store_in(home) as store:
        assert store.expired(0, 1) == ids[:2]


def test_an_archived_session_is_listed_and_comes_back(home: Path) -> None:
    with store_in(home) as store, store.create(directory="/work", model="m", name="old talk") as session:
        session.log.append(said(NASTY, "there"))
        name = session.info.id
    assert run(home, "list", "--archived").output == "No archived sessions.\n"
    assert "To bring it back: nca sessions restore" in run(home, "archive", "old talk").output
    assert run(home, "list").output == "No sessions yet.\n"
    with pytest.raises(SessionNotFound, match=f"Session {name} is archived. `nca sessions restore {name}`"):
        run(home, "show", name)
    (home / "data" / "archives" / "other.zip").write_text("no archive")
    listed = run(home, "list", "--archived")
    assert listed.stdout.startswith(f"{name} ")
    assert "other.zip is not a session archive, or is damaged." in listed.stderr
    assert [row["id"] for row in json.loads(run(home, "list", "--archived", "--json").stdout)] == [name]
    assert run(home, "restore", "old talk").stdout == f"{name}\n"
    assert run(home, "list").output.startswith(name)
    with pytest.raises(StoreError, match="Session old talk is already in the store; there is nothing to restore"):
        run(home, "restore", "old talk")


def test_usage_says_what_takes_how_much_and_vacuum_gives_room_back(home: Path) -> None:
    assert run(home, "vacuum").output == "No sessions yet.\n"
    with store_in(home) as store:
        for name in ("kept", "gone"):
            with store.create(directory="/work", model="m", name=name) as session:
                session.log.append(said(*(f"{place} " + "word " * 400 for place in range(200))))
        store.delete("gone")
    shown = run(home, "usage").output
    assert "which use it again\n" in shown  # so little is not worth a vacuum
    assert "  kept\n" in shown
    found = json.loads(run(home, "usage", "--json").output)
    assert found["total_bytes"] == sum(part["size_bytes"] for part in found["parts"])
    assert [part["name"] for part in found["parts"]][:1] == ["unused"]
    assert "All sessions are as they were" in run(home, "vacuum").output
    after = json.loads(run(home, "usage", "--json").output)
    assert after["total_bytes"] < found["total_bytes"] / 1.5
    assert "unused" not in {part["name"] for part in after["parts"]}
    with store_in(home), pytest.raises(StoreError, match="Another nca has"):
        run(home, "vacuum")


@pytest.mark.parametrize("at", ["0", "-1", "3", "99"])
def test_a_fork_from_a_message_that_there_is_not_says_which_there_are(tmp_path: Path, at: str) -> None:
    with store_in(tmp_path / "nca") as store, store.create(directory="", model="") as session:
        session.log.append([*said("one"), *said("two")])
        known = session.info.id
    done = forked("sessions", "fork", known, "--at", at, home=tmp_path)
    line = (
        f"nca: There is no message {at} in session {known}; valid: 1 to 2. `nca sessions show {known}` numbers them.\n"
    )
    assert (done.returncode, done.stdout, done.stderr) == (2, "", line)


def test_a_name_that_another_session_has_is_said_with_the_ids(home: Path) -> None:
    with store_in(home) as store:
        first, second = (store.create(directory="", model="") for _ in range(2))
        one, two = first.info.id, second.info.id
        for session in (first, second):
            session.log.append(said("hello"))
            session.close()
    assert "too" not in run(home, "rename", one, "weekly").output
    said_of_it = "also has this name, so the name alone reaches neither: {} reaches this one, {} the other."
    assert said_of_it.format(two, one) in run(home, "rename", two, "weekly").stderr
    assert "too" not in run(home, "rename", two, "monthly").output
    forked_too = run(home, "fork", two, "--name", "weekly")
    (three,) = forked_too.stdout.split()
    assert said_of_it.format(three, one) in forked_too.stderr
    file = home / "a.json"
    file.write_text('[{"role": "user", "content": "hi"}]')
    imported = run(home, "import", str(file), "--name", "weekly")
    (four,) = imported.stdout.split()
    assert (
        f"2 other sessions have this name, so the name alone reaches none: {four} reaches this one" in imported.stderr
    )
    with store_in(home) as store, pytest.raises(SessionNotFound) as caught:
        store.find("weekly")
    assert caught.value.advice == "Several sessions have this name: give one of these ids."
