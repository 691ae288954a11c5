"""What is pasted into the prompt counts as pasted: it attaches nothing, commands nothing, and stays so."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from nca.messages import Message
from nca.sessions.store import Store
from nca.words import Span, Words, text_of, words
from tests.terminal.tty import Tty, chats

CTRL_A, CTRL_C, CTRL_D, CTRL_E, CTRL_R, CTRL_U, CTRL_W, CTRL_Y = (
    "\x01",
    "\x03",
    "\x04",
    "\x05",
    "\x12",
    "\x15",
    "\x17",
    "\x19",
)
ALT_A, ALT_ENTER, CTRL_UNDERSCORE, EDIT, ESCAPE, TAB, UP, HOME = (
    "\x1ba",
    "\x1b\r",
    "\x1f",
    "\x18\x05",
    "\x1b",
    "\t",
    "\x1b[A",
    "\x1b[H",
)
ISSUE = "It fails, see @diary.txt and\nalso @notes.md"
LONG = "\n".join((*(f"line {number}" for number in range(30)), "see @diary.txt", "end"))


def pasted(text: str) -> str:
    return f"\x1b[200~{text}\x1b[201~"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "diary.txt").write_text("Dear diary\n")
    (tmp_path / "notes.md").write_text("Some notes\n")
    return tmp_path


@pytest.fixture
def start(home: Path) -> Iterator[Callable[..., Tty]]:
    with chats(settles=True, home=str(home), directory=str(home)) as begin:
        yield begin


def sent(home: Path) -> list[Message]:
    """What the person has sent in the newest session."""
    with Store.open(home / "store.db", read_only=True) as store:
        session = store.open_session(store.list()[0].id, read_only=True)
        with session:
            return [entry.message for entry in session.log.entries() if entry.message.role == "user"]


def left(tty: Tty, home: Path) -> list[tuple[Words, list[str]]]:
    """Leave; then what was sent, and the names of the files that went along."""
    tty.settle()
    tty.send(CTRL_D)
    assert tty.ends() == 0
    return [(message.said, [one.path for one in message.attachments]) for message in sent(home)]


def test_a_path_in_a_paste_is_text_until_the_key_attaches_it(start: Callable[..., Tty], home: Path) -> None:
    tty = start("One.", "Two.", "Three.")
    tty.send("Why? " + pasted(ISSUE))
    tty.sees("2 paths in the pasted text are not attached; Alt-A attaches them.")
    tty.send("\r")
    tty.sees("One.")
    tty.settle()
    tty.send("Why? " + pasted(ISSUE))
    tty.sees("2 paths in")
    tty.send(ALT_A)
    tty.sees("Enter attaches diary.txt, notes.md; Alt-A takes that back.")
    tty.send(ALT_A)
    tty.sees("2 paths in")
    tty.send(ALT_A)
    tty.sees("Enter attaches diary.txt, notes.md")
    tty.send("\r")
    tty.sees("Two.")
    tty.sees("Attached diary.txt")
    tty.settle()
    # The key works before anything is drawn.
    tty.send("Again " + pasted("@diary.txt") + ALT_A + "\r")
    tty.sees("Three.")
    first, second, third = left(tty, home)
    assert first == ((*words("Why? "), *words(ISSUE, "pasted")), [])
    assert text_of(second[0]) == text_of(first[0])
    assert [span.text for span in second[0] if span.source == "pasted"] == ["It fails, see ", " and\nalso "]
    assert second[1] == ["diary.txt", "notes.md"]
    assert third == (words("Again @diary.txt"), ["diary.txt"])


def test_a_narrow_window_names_the_key_too(start: Callable[..., Tty]) -> None:
    tty = start(columns=36)
    tty.send(pasted("see @diary.txt"))
    tty.sees(" Alt-A attaches 1 pasted path")
    tty.send(ALT_A)
    tty.sees(" Enter attaches 1; Alt-A none")
    tty.send(CTRL_C)
    tty.sees_no("Alt-A")


def test_a_folded_paste_is_pasted_as_a_whole_and_the_key_finds_its_paths(start: Callable[..., Tty], home: Path) -> None:
    tty = start("One.", "Two.", "Three.")
    tty.send("Look: " + pasted(LONG))
    tty.sees("› Look: [pasted 32 lines]")
    tty.sees("1 path in the pasted text is not attached; Alt-A attaches it.")
    tty.send("\r")
    tty.sees("One.")
    tty.settle()
    tty.send(UP)
    tty.sees("1 path in")
    tty.send(ALT_A)
    tty.sees("Enter attaches diary.txt; Alt-A takes that back.")
    tty.send(CTRL_UNDERSCORE)
    tty.sees("1 path in")
    tty.send(ALT_A + "\r")
    tty.sees("Two.")
    tty.settle()
    tty.send(UP + UP)
    tty.sees("1 path in")
    tty.send("\r")
    tty.sees("Three.")
    first, second, third = left(tty, home)
    assert first == third == ((*words("Look: "), *words(LONG, "pasted")), [])
    assert second[1] == ["diary.txt"]
    assert [span.text for span in second[0] if span.source == "typed"] == ["Look: ", "@diary.txt"]


def test_what_is_typed_beside_a_paste_counts(start: Callable[..., Tty], home: Path) -> None:
    tty = start("One.", "Two.", "Three.")
    tty.send(pasted("of the issue\n") + "read @dia")
    tty.sees("   diary.txt")
    tty.send(TAB + "now\r")
    tty.sees("One.")
    tty.settle()
    tty.send("Read @" + pasted("notes.md") + "\r")
    tty.sees("Two.")
    tty.settle()
    # Typed into the middle of a paste.
    tty.send(pasted("see here") + "\x1b[D" * 4 + "@diary.txt " + "\r")
    tty.sees("Three.")
    assert left(tty, home) == [
        ((*words("of the issue\n", "pasted"), *words("read @diary.txt now")), ["diary.txt"]),
        ((*words("Read @"), *words("notes.md", "pasted")), ["notes.md"]),
        ((*words("see ", "pasted"), *words("@diary.txt "), *words("here", "pasted")), ["diary.txt"]),
    ]


def test_the_source_stays_through_kills_undo_and_the_history(start: Callable[..., Tty], home: Path) -> None:
    tty = start(*(f"Answer {number}." for number in range(1, 7)))
    paste = pasted("see @diary.txt ")
    ways = (
        paste + CTRL_W + "and " + CTRL_Y,
        paste + CTRL_U + "x" + CTRL_Y,
        paste + "y " + CTRL_U + CTRL_UNDERSCORE,
        paste + CTRL_C,
        "",
        CTRL_R + "diary\r",
    )
    for number, keys in enumerate(ways, 1):
        tty.send(keys)
        tty.settle()
        if number in (4, 5):
            tty.send(UP)
            tty.sees("1 path in")
        tty.send("\r")
        tty.sees(f"Answer {number}.")
        tty.settle()
    told = left(tty, home)
    assert [files for _, files in told] == [[]] * 6
    assert all("@diary.txt" not in "".join(span.text for span in said if span.source == "typed") for said, _ in told)
    # One of two blanks was pasted; nobody can tell which, so both count as pasted.
    assert told[0][0] == (*words("see ", "pasted"), *words("and"), *words(" @diary.txt ", "pasted"))
    # Typed text comes back as typed.
    again = start("Again.", "And again.")
    again.send("read @notes.md now" + CTRL_W + CTRL_W + "yes " + CTRL_Y + "\r")
    again.sees("Again.")
    again.settle()
    again.send(UP + "\r")
    again.sees("And again.")
    assert left(again, home) == [(words("read yes @notes.md now"), ["notes.md"])] * 2


def test_a_later_chat_knows_what_was_pasted_and_suggests_none_of_it(start: Callable[..., Tty], home: Path) -> None:
    tty = start("One.", "Two.")
    tty.send(pasted("see @diary.txt please") + "\r")
    tty.sees("One.")
    tty.settle()
    tty.line("the typed one @notes.md")
    tty.sees("Two.")
    tty.settle()
    tty.send("not sent " + pasted("@diary.txt") + CTRL_C + CTRL_D)
    assert tty.ends() == 0
    again = start("Three.", "Four.", "Five.")
    again.send("se")
    again.settle()
    assert "please" not in again.text()
    again.send(CTRL_C + "the ty")
    again.sees("› the typed one @notes.md")
    again.send(CTRL_E + "\r")
    again.sees("Three.")
    again.settle()
    again.send(CTRL_R + "please\r")
    again.sees("1 path in")
    again.send("\r")
    again.sees("Four.")
    again.settle()
    again.send(CTRL_R + "not sent\r")
    again.sees("› not sent @diary.txt")
    again.send("\r")
    again.sees("Five.")
    assert left(again, home) == [
        (words("the typed one @notes.md"), ["notes.md"]),
        (words("see @diary.txt please", "pasted"), []),
        ((*words("not sent "), *words("@diary.txt", "pasted")), []),
    ]


def test_a_line_that_was_pasted_is_no_command(start: Callable[..., Tty], home: Path) -> None:
    tty = start("One.", "Two.", "Three.", "Four.", "Five.")
    for number, text in enumerate(("/exit", f"!touch {home}/pwned", "exit", "/exit\n/exit", "//slashes"), 1):
        tty.send(pasted(text))
        tty.settle()
        tty.send("\r")
        tty.sees(("One.", "Two.", "Three.", "Four.", "Five.")[number - 1])
        tty.settle()
    tty.send("/rename " + pasted("a name") + "\r")
    tty.sees("a name")
    told = left(tty, home)
    assert [text_of(said) for said, _ in told] == ["/exit", f"!touch {home}/pwned", "exit", "/exit\n/exit", "//slashes"]
    assert not (home / "pwned").exists()


def test_a_path_that_is_named_again_is_counted_once(start: Callable[..., Tty]) -> None:
    tty = start()
    tty.send(pasted(" ".join(["@diary.txt"] * 5)))
    tty.sees("1 path in the pasted text is not attached; Alt-A attaches it.")


def test_what_is_pasted_while_nca_works_stays_so(start: Callable[..., Tty], home: Path) -> None:
    tty = start("never", "Second.", "Third.", "Fourth.")
    tty.line("SLOW please")
    tty.sees("The first piece.")
    tty.send("and " + pasted("@diary.txt") + "\r")
    tty.sees("for the next step: and @diary.txt")
    tty.send("more " + pasted("@notes.md"))
    tty.sees("› more @notes.md (Enter queues it)")
    tty.send(CTRL_C)
    tty.sees("Interrupted")
    tty.sees("1 path in the pasted text is not attached")
    tty.send("\r")
    tty.sees("never")
    tty.sees("› and @diary.txt")
    tty.send("\r")
    tty.sees("Second.")
    tty.settle()
    tty.line("PAUSE now")
    tty.send("then " + pasted("@diary.txt") + "\r")
    tty.sees("Fourth.")
    tty.settle()
    told = left(tty, home)
    assert told[1] == ((*words("more "), *words("@notes.md", "pasted")), [])
    assert told[2] == ((*words("and "), *words("@diary.txt", "pasted")), [])
    assert told[4] == ((*words("then "), *words("@diary.txt", "pasted")), [])


def test_what_comes_back_after_a_failure_or_undo_is_what_it_was(start: Callable[..., Tty], home: Path) -> None:
    tty = start({"error": "The provider is down."}, "One.", "Two.")
    tty.send("Why? " + pasted("see @diary.txt") + "\r")
    tty.sees("The provider is down.")
    tty.sees("1 path in the pasted text is not attached")
    tty.send(ALT_A + "\r")
    tty.sees("One.")
    tty.sees("Attached diary.txt")
    tty.settle()
    tty.line("/undo")
    tty.sees("Took back")
    tty.settle()
    tty.send(CTRL_C)
    tty.send("Why? " + pasted("see @notes.md") + "\r")
    tty.sees("Two.")
    tty.settle()
    tty.line("/undo")
    tty.sees("1 path in the pasted text is not attached")
    tty.send(CTRL_C)
    told = left(tty, home)
    assert ((*words("Why? "), *words("see ", "pasted"), *words("@diary.txt")), ["diary.txt"]) in told
    assert ((*words("Why? "), *words("see @notes.md", "pasted")), []) in told


def test_a_file_dropped_on_the_terminal_waits_for_the_key(start: Callable[..., Tty], home: Path) -> None:
    tty = start("One.", "Two.")
    for answer, key in (("One.", ""), ("Two.", ALT_A)):
        tty.send("see " + pasted(f"'{home}/diary.txt' "))
        tty.sees("› see @diary.txt")
        tty.sees("1 path in")
        tty.send(key + "\r")
        tty.sees(answer)
        tty.settle()
    assert [files for _, files in left(tty, home)] == [[], ["diary.txt"]]


def test_the_key_in_vi_mode(start: Callable[..., Tty], home: Path) -> None:
    tty = start("One.", "Two.", settings={"terminal.keys": "vi"})
    tty.send(pasted("see @diary.txt"))
    tty.sees("1 path in")
    tty.send(ALT_A)
    tty.sees("Enter attaches diary.txt")
    tty.send("\r")
    tty.sees("One.")
    tty.settle()
    tty.send(pasted("see #diary.txt"))
    tty.sees("see #diary.txt")
    tty.send(ESCAPE)
    tty.sees("[N] ›")
    tty.send("0f#r@")
    tty.sees("› see @diary.txt")
    tty.send("\r")
    tty.sees("Two.")
    told = left(tty, home)
    assert [files for _, files in told] == [["diary.txt"], ["diary.txt"]]
    assert told[1][0] == (Span("see ", "pasted"), Span("@", "typed"), Span("diary.txt", "pasted"))


def test_a_vi_macro_does_not_replay_a_paste_as_typed_keys(start: Callable[..., Tty], home: Path) -> None:
    tty = start("One.", settings={"terminal.keys": "vi"})
    tty.send("x" + ESCAPE)
    tty.sees("[N] ›")
    tty.send("qai" + pasted("!touch pwned\r@diary.txt"))
    tty.sees("diary.txt")
    tty.send(ESCAPE)
    tty.sees("[N] ›")
    tty.send("q@a")
    tty.settle()
    assert "One." not in tty.text()


def test_the_editor_keeps_what_was_pasted(home: Path, start: Callable[..., Tty]) -> None:
    editor = home / "editor"
    editor.write_text('#!/bin/sh\nsed -i "s/It fails/Why does it fail, and @notes.md/" "$1"\n')
    editor.chmod(0o755)
    tty = start("One.", "Two.", env={"EDITOR": str(editor)})
    tty.send("Look. " + pasted("It fails, see @diary.txt") + EDIT)
    tty.sees("Why does it fail, and @notes.md, see @diary.txt")
    tty.sees("1 path in the pasted text is not attached")
    tty.send("\r")
    tty.sees("One.")
    tty.settle()
    tty.send("/editor " + pasted("see @diary.txt") + "\r")
    tty.sees("› see @diary.txt")
    tty.send("\r")
    tty.sees("Two.")
    told = left(tty, home)
    assert [files for _, files in told] == [["notes.md"], []]
    assert told[1][0] == words("see @diary.txt", "pasted")
