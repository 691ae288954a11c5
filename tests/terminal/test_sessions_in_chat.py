"""/new, /resume, /sessions, /rename and /export in a real terminal."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from nca.messages import Message, ToolCall
from nca.sessions import Store
from tests.sessions.samples import said
from tests.sessions.test_lock import other_process
from tests.terminal.tty import Tty, chats

CTRL_C, CTRL_D, ESCAPE, UP, DOWN, TAB = "\x03", "\x04", "\x1b", "\x1b[A", "\x1b[B", "\t"


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Tty]]:
    # /resume looks for sessions of other agents in the person's home.
    with chats(settles=True, home=str(tmp_path), env={"HOME": str(tmp_path)}) as begin:
        yield begin


def filled(home: Path, count: int = 3, **names: str) -> None:
    with Store.open(home / "store.db") as store:
        for number in range(count):
            directory = str(Path.cwd()) if number % 2 == 0 else "/elsewhere"
            with store.create(directory=directory, model="m", name=names.get(f"name{number}", "")) as session:
                session.log.append(said(f"question {number}", f"an answer with walrus{number}"))


def logs(home: Path) -> dict[str, list[str]]:
    """The texts of every session, by name or first words."""
    with Store.open(home / "store.db", read_only=True) as store:
        return {
            info.name or info.title: [
                entry.message.text for entry in store.open_session(info.id, read_only=True).log.entries()
            ]
            for info in store.list()
        }


def test_one_chat_with_three_sessions(start: Callable[..., Tty], tmp_path: Path) -> None:
    tty = start("One.", "Two.", "Three.", prepares=True)
    tty.line("/new")
    tty.sees("This session is new: it has no messages yet.")
    tty.line("first question")
    tty.sees("One.")
    tty.settle()
    tty.line("/new The second")
    tty.sees("New session. The previous one is kept: /resume ")
    tty.settle()
    assert any("scripted/model" in line and "The second" in line for line in tty.shown())
    tty.line("second question")
    tty.sees("Two.")
    tty.settle()
    # The lock of the first is free: another process may write it.
    with Store.open(tmp_path / "store.db") as store:
        first = next(info for info in store.list() if info.title == "first question")
        store.open_session(first.id).close()
    tty.line(f"/resume {first.id[:5]}")
    tty.sees("› first question\n\nOne.\n\nResuming “first question” (2 messages).")
    tty.settle()
    tty.line("third question")
    tty.sees("Three.")
    tty.settle()
    tty.line("/rename The \x1b[200~first\x1b[201~ one")
    tty.sees("This session is now “The first one”.")
    tty.settle()
    tty.line("/resume The first one")
    tty.sees("You are in that session already.")
    tty.settle()
    tty.line("/resume nonesuch")
    tty.sees("There is no session 'nonesuch'.\n/sessions shows them.")
    tty.settle()
    tty.send(CTRL_D)
    assert tty.ends() == 0
    assert b"Traceback" not in tty.raw
    assert logs(tmp_path) == {
        "The first one": ["first question", "One.", "third question", "Three."],
        "The second": ["second question", "Two."],
    }


def test_the_picker_searches_previews_opens_and_leaves(start: Callable[..., Tty], tmp_path: Path) -> None:
    filled(tmp_path, 5, name2="\x1b]0;evil\x07a \x1b[2Jname")
    tty = start("Here.", "There.")
    tty.command("/sessions")
    tty.sees("Tab shows all directories")
    tty.sees("• an answer with walrus4")
    assert "question 3" not in tty.text()
    tty.send(DOWN)
    tty.sees("• an answer with walrus2")
    tty.send(TAB)
    tty.sees("Tab shows this directory")
    assert "question 3" in tty.text()
    tty.send("walrus1")
    tty.sees("found: an answer with walrus1")
    tty.resize(30, 7)
    tty.settle()
    assert "Search: walrus1" in tty.text()
    tty.resize(100, 30)
    tty.settle()
    tty.send(ESCAPE)
    tty.settle()
    # Nothing of it stays, and the prompt works.
    assert "Search:" not in tty.text()
    tty.line("hello")
    tty.sees("Here.")
    tty.settle()
    tty.command("/resume")
    tty.sees("Search:")
    tty.settle()
    tty.send(UP + "\r")
    tty.sees("You are in that session already.")
    tty.settle()
    tty.command("/resume")
    tty.sees("Search:")
    tty.settle()
    tty.send("question 0\r")
    tty.sees("Resuming “question 0” (2 messages).")
    tty.settle()
    tty.line("go on")
    tty.sees("There.")
    tty.settle()
    tty.command("/resume")
    tty.sees("Search:")
    tty.send(CTRL_C)
    tty.settle()
    tty.send(CTRL_D)
    assert tty.ends() == 0
    assert logs(tmp_path)["question 0"] == ["question 0", "an answer with walrus0", "go on", "There."]
    for forbidden in (b"\x1b]0;", b"\x1b[2J", b"Traceback"):
        assert forbidden not in tty.raw


def test_after_a_search_the_first_row_is_chosen_and_what_the_window_hides_is_marked(
    start: Callable[..., Tty], tmp_path: Path
) -> None:
    with Store.open(tmp_path / "store.db") as store:
        for number in range(14):
            with store.create(directory=str(Path.cwd()), model="m") as session:
                session.log.append(said(f"question {number}", "an answer with a walrus"))
    tty = start(rows=20)
    tty.command("/resume")
    tty.sees("question 13")
    tty.send("walrus")
    tty.sees("found: ")
    tty.sees("1 of 14")

    def marks() -> str:
        rows = [
            line for line in tty.shown() if "question" in line and "found:" not in line and "messages ·" not in line
        ]
        return f"{rows[0][:2]}{rows[-1][:2]}" if rows else ""

    tty.until(lambda: marks() == "› ↓ ")
    tty.send("\x1b[6~")
    tty.sees("11 of 14")
    tty.until(lambda: any(line.startswith("↑ ") for line in tty.shown()))
    tty.send("\x15")
    tty.until(lambda: any("Search:" in line and "walrus" not in line for line in tty.shown()))
    tty.send("question 4\r")
    tty.sees("Resuming “question 4” (2 messages).")
    tty.send(CTRL_D)
    assert tty.ends() == 0


def test_a_signal_in_the_picker_ends_the_chat_and_keys_typed_ahead_open_nothing(
    start: Callable[..., Tty], tmp_path: Path
) -> None:
    filled(tmp_path)
    tty = start("Later.")
    tty.send("/resume\rlater\r")
    tty.sees("Search:")
    tty.settle()
    assert "Resuming" not in tty.text()
    tty.send(ESCAPE)
    tty.sees("Later.")
    tty.settle()
    tty.command("/resume")
    tty.sees("Search:")
    tty.settle()
    tty.process.kill(signal.SIGTERM)
    assert tty.ends() == 143
    assert b"Traceback" not in tty.raw


def test_a_session_that_is_held_is_read_or_copied(start: Callable[..., Tty], tmp_path: Path) -> None:
    filled(tmp_path, 1)
    with Store.open(tmp_path / "store.db") as store:
        name = store.list()[0].id
    with other_process(tmp_path / "store.db", name) as other:
        tty = start("Copied.")
        tty.line("/resume nothing")
        tty.sees("There is no session 'nothing'.")
        tty.settle()
        tty.line(f"/resume {name}")
        tty.sees(f"already open in process {other.pid}")
        tty.sees("Esc cancel")
        tty.answer("x", ESCAPE, ESCAPE)  # the x was no answer, and the first Esc deletes it
        tty.settle()
        tty.line(f"/resume {name}")
        tty.sees("r read it here", times=1)
        tty.settle()
        tty.answer("r")
        tty.sees("Reading “question 0” (2 messages).")
        tty.sees("  read-only  ")
        tty.settle()
        tty.line("/new Another")
        tty.sees("New session.")
        tty.settle()
        tty.line(f"/resume {name}")
        tty.settle()
        tty.answer("f")
        tty.sees("Resuming “(fork) question 0” (2 messages).")
        tty.settle()
        tty.line("and now?")
        tty.sees("Copied.")
        tty.settle()
        tty.send(CTRL_D)
        assert tty.ends() == 0
    with Store.open(tmp_path / "store.db", read_only=True) as store:
        assert sorted(info.messages for info in store.list()) == [2, 4]


def test_deleting_asks_and_export_says_where(start: Callable[..., Tty], tmp_path: Path) -> None:
    filled(tmp_path, 3, name1="The old one")
    tty = start("Fine.", directory=str(tmp_path))
    tty.line("hello")
    tty.sees("Fine.")
    tty.settle()
    tty.line("/sessions delete The old one")
    tty.sees("Delete “The old one”")
    tty.sees("Esc cancel")  # drawn once keys are answers
    tty.send(ESCAPE)
    tty.sees("Nothing was deleted.")
    tty.settle()
    tty.line("/sessions delete The old one")
    tty.sees("y delete it")
    tty.answer("y")
    tty.sees("Deleted ")
    tty.settle()
    tty.line("/export talk one.html")
    tty.sees("Wrote 2 messages to")  # a long path goes to the next line
    tty.settle()
    tty.line("/export talk one.html")
    tty.sees("Name another file, or use --force.")
    tty.settle()
    tty.line("/export talk one.html --force --md")
    tty.sees("(markdown).")
    tty.settle()
    tty.send(CTRL_D)
    assert tty.ends() == 0
    assert (tmp_path / "talk one.html").read_text().startswith("#")
    assert "The old one" not in logs(tmp_path)


CUT_OFF = {
    "before the answer": [],
    "after a step": [
        Message("assistant", tool_calls=(ToolCall("c1", "read_file", '{"path": "notes.txt"}'),)),
        Message("tool", "Buy milk.", tool_call_id="c1"),
    ],
}


@pytest.mark.parametrize("steps", CUT_OFF.values(), ids=[*CUT_OFF])
def test_the_message_without_an_answer_is_in_the_prompt(
    start: Callable[..., Tty], tmp_path: Path, steps: list[Message]
) -> None:
    """Up brought the newest line of all sessions, the /resume say."""
    asked = Message("user", "what is in the notes", source="typed")
    with Store.open(tmp_path / "store.db") as store, store.create(directory="/", model="m", name="cut") as session:
        session.log.append([*said("hello", "Hi."), asked, *steps])
    tty = start("Milk.")
    tty.line("/resume cut")
    tty.sees("Your last message has no answer yet. It is in the prompt: Enter sends it again.")
    tty.sees("what is in the notes", times=2)
    tty.settle()
    tty.send("\r")
    tty.sees("Milk.")
    tty.settle()
    tty.send(CTRL_D)
    assert tty.ends() == 0
    texts = [one.text for one in [asked, *steps]]
    assert logs(tmp_path)["cut"] == ["hello", "Hi.", *texts, "Milk."]


def test_what_is_typed_replaces_the_message_without_an_answer(start: Callable[..., Tty], tmp_path: Path) -> None:
    asked = Message("user", "what is in the notes", source="typed")
    with Store.open(tmp_path / "store.db") as store, store.create(directory="/", model="m", name="cut") as session:
        session.log.append([*said("hello", "Hi."), asked])
    tty = start("Milk.")
    tty.line("/resume cut")
    tty.sees("It is in the prompt: Enter sends it again.")
    tty.settle()
    tty.line("go on")
    tty.sees("Milk.")
    tty.settle()
    tty.send(CTRL_D)
    assert tty.ends() == 0
    assert logs(tmp_path)["cut"] == ["hello", "Hi.", "what is in the notes", "go on", "Milk."]
