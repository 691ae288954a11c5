"""The keys of the prompt, in a real pseudo-terminal."""

from __future__ import annotations

import json
import shlex
import shutil
import stat
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.terminal.tty import Tty, chat, chats

CTRL_C, CTRL_D, CTRL_E, CTRL_J, CTRL_L, CTRL_R, CTRL_W, CTRL_Z = (
    "\x03",
    "\x04",
    "\x05",
    "\n",
    "\x0c",
    "\x12",
    "\x17",
    "\x1a",
)
CTRL_UNDERSCORE, TAB, SHIFT_TAB, BACKSPACE, ESCAPE = "\x1f", "\t", "\x1b[Z", "\x7f", "\x1b"
ALT_ENTER, ALT_B, ALT_F, UP, DOWN, RIGHT, CTRL_LEFT = (
    "\x1b\r",
    "\x1bb",
    "\x1bf",
    "\x1b[A",
    "\x1b[B",
    "\x1b[C",
    "\x1b[1;5D",
)


def pasted(text: str) -> str:
    return f"\x1b[200~{text}\x1b[201~"


@pytest.fixture
def start() -> Iterator[Callable[..., Tty]]:
    with chats(settles=True) as begin:
        yield begin


def test_enter_sends_and_three_ways_make_a_new_line(start: Callable[..., Tty]) -> None:
    tty = start("Got it.")
    tty.send("one" + ALT_ENTER + "two" + CTRL_J + "three\\\rfour")
    tty.sees("› one\n  two\n  three\n  four")
    tty.send("\r")
    tty.sees("Got it.")
    tty.command("/context")
    tty.sees("you: one two three four")


def test_a_letter_after_an_escape_that_was_pressed_alone_is_no_alt(start: Callable[..., Tty]) -> None:
    """Escape, and within a second "dog", deleted a word and left "og"."""
    tty = start("Got it.")
    for word in ("dog", " fast", " tail"):
        tty.send(ESCAPE)
        tty.settle()  # on a busy machine the Escape and the letter could be read as one
        tty.send(word)
        tty.sees(word)
    assert "› dog fast tail" in tty.text()


def test_a_command_behind_an_escape_is_a_command(start: Callable[..., Tty]) -> None:
    tty = start("Not asked.")
    tty.send(ESCAPE + "/context\r")
    tty.sees("system prompt")
    tty.sees_no("Not asked.")


def test_shift_tab_goes_through_the_modes_that_may_change_by_a_key(start: Callable[..., Tty]) -> None:
    tty = start("Done.", settings={"agent.permission": "auto"})
    for mode in ("ask", "accept-edits", "plan", "ask"):
        tty.send(SHIFT_TAB)
        tty.sees(f"{mode}: nca ")
    tty.send("a line" + SHIFT_TAB)
    tty.sees("› a line")
    tty.line("")
    tty.sees("Done.")
    tty.until(lambda: any("  accept-edits" in line for line in tty.shown()))


def test_shift_tab_goes_back_in_an_open_menu(start: Callable[..., Tty]) -> None:
    tty = start()
    tty.send("/context ")
    tty.sees("list the compactions so far")
    tty.send(SHIFT_TAB)
    tty.sees("› /context compact")


def test_the_rows_of_a_menu_go_with_it(start: Callable[..., Tty]) -> None:
    tty = start("Fine.")
    tty.sees("% · ")
    tty.settle()
    before = tty.shown()
    tty.send("/co")
    tty.sees("/compact")
    tty.send(BACKSPACE * 3)
    tty.until(lambda: tty.shown() == before)


def test_history_is_private_survives_and_is_searched(start: Callable[..., Tty], tmp_path: Path) -> None:
    tty = start("First.", home=str(tmp_path))
    tty.line("the first question")
    tty.sees("First.")
    tty.settle()
    tty.send(CTRL_D)
    assert tty.ends() == 0
    assert stat.S_IMODE((tmp_path / "history").stat().st_mode) == 0o600
    again = start("Second.", "Third.", home=str(tmp_path))
    again.send(UP)
    again.sees("› the first question")
    again.send("\r")
    again.sees("Second.")
    again.settle()
    again.send(CTRL_R + "first")
    again.sees("the first question", times=2)
    again.send("\r\r")
    again.sees("Third.")


def test_commands_settings_and_files_are_completed(start: Callable[..., Tty], tmp_path: Path) -> None:
    tty = start("Read.", settings={"context.info_threshold": 0.5})
    tty.send("/")
    tty.sees("What fills the window")
    tty.send("conf" + TAB)
    tty.sees("› /config")
    tty.send(" compact_thr")
    tty.sees("context.compact_threshold")
    tty.send(TAB + " ")
    tty.sees("› /config context.compact_threshold")
    tty.send(CTRL_C + "/config context.auto ")
    tty.sees("preview")
    tty.send("pre" + TAB + "\r")
    tty.sees("context.auto = preview, for this chat")
    tty.settle()
    tty.send("@pyproj")
    tty.sees("pyproject.toml")
    tty.send(TAB)
    tty.sees("› @pyproject.toml")


def test_files_are_taken_from_the_menu(start: Callable[..., Tty], tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src/parse.py").write_text("print()")
    (tmp_path / "what?").write_text("odd")
    tty = start("Read.", directory=str(tmp_path))
    tty.send("look at @")
    tty.sees("    src/")
    tty.send("sr" + TAB + "pa")
    tty.sees("   src/parse.py")
    tty.send(TAB + "and @")
    tty.sees("› look at @src/parse.py and @")
    tty.sees("   what?")
    tty.send(DOWN + DOWN + "\r")
    tty.sees('› look at @src/parse.py and @"what?"')
    assert "Read." not in tty.text()
    tty.send("\r")
    tty.sees("Read.")
    tty.settle()
    tty.send("/con")
    tty.sees("/context")
    tty.send(ESCAPE)
    tty.settle()
    assert "/config" not in tty.text()


def test_enter_takes_the_file_whose_name_is_begun_and_sends_any_other_word_as_it_is(
    start: Callable[..., Tty], tmp_path: Path
) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src/version.py").write_text("print()")
    tty = start("Read.", "Sent.", "Again.", directory=str(tmp_path))
    tty.send("explain @vers")
    tty.sees("   src/version.py")
    tty.send("\r")
    tty.sees("› explain @src/version.py")
    assert "Read." not in tty.text()
    tty.send("\r")
    tty.sees("Read.")
    tty.settle()
    tty.send("thank @rion")  # its letters are in the file's name, in this order
    tty.sees("   src/version.py", times=tty.text().count("   src/version.py") + 1)
    tty.send("\r")
    tty.sees("Sent.")
    tty.settle()
    tty.send("list @src")
    tty.sees("   src/")
    tty.send("\r")
    tty.sees("Again.")
    assert {"› thank @rion", "› list @src"} <= {*tty.text().split("\n")}


def test_history_by_its_beginning_suggested_searched_and_undone(start: Callable[..., Tty]) -> None:
    tty = start("One.", "Two.", "Three.")
    for text, answer in (
        ("fix the parser", "One."),
        (f"explain{CTRL_J}all of it", "Two."),
        ("fix tests now", "Three."),
    ):
        tty.line(text)
        tty.sees(answer)
        tty.settle()
    tty.send("fix te")
    tty.sees("› fix tests now", times=2)
    tty.send(ALT_F + "and" + CTRL_UNDERSCORE + CTRL_UNDERSCORE + "st")
    tty.settle()
    tty.send(RIGHT + "!")
    tty.sees("› fix tests now!")
    tty.send(CTRL_C)
    tty.settle()
    tty.send("fix" + UP + UP + UP)
    tty.sees("› fix the parser", times=2)
    tty.send(DOWN + DOWN + DOWN + " it")
    tty.sees("› fix it")
    tty.send(CTRL_C)
    tty.settle()
    tty.send(CTRL_R + "l of")
    tty.sees("› explain\n  all of it", times=2)
    tty.send("\r" + CTRL_E + " again" + CTRL_W + ALT_B + "x" + CTRL_LEFT + "y")
    tty.sees("  all of yxit")
    tty.send(CTRL_L)
    tty.settle()
    assert tty.shown()[:2] == ["› explain", "  all of yxit"]


def test_a_line_that_was_refused_is_not_suggested(start: Callable[..., Tty]) -> None:
    tty = start("Fine.")
    for text, said in (
        ("!!echo found", "found\n"),
        ("!!ech0 found", "exit code 127"),
        ("/context show 99", "There is no message 99"),
        ("Look.", "Fine."),
        ("/context unpin 1", "Message 1 is not pinned"),
        ("/context expand 1", "Message 1 is already in the context"),
    ):
        tty.line(text)
        tty.sees(said)
        tty.settle()
    for typed, shown in (
        ("!!ec", "› !!echo found"),
        ("!!ech0", "› !!ech0"),
        *((f"/context {word}", f"› /context {word}") for word in ("show", "unpin", "expand")),
    ):
        tty.send(typed)
        tty.settle()
        assert shown in [line.rstrip() for line in tty.shown()]
        tty.send(CTRL_C)
        tty.settle()
    tty.send(9 * UP)
    tty.sees("› /context show 99", times=2)


def test_ctrl_c_empties_the_line_then_says_what_a_second_does(start: Callable[..., Tty]) -> None:
    tty = start()
    tty.send("something")
    tty.sees("› something")
    tty.send(CTRL_C)
    tty.settle()
    assert "something" not in tty.text()
    tty.send(UP)
    tty.sees("› something")
    tty.send(CTRL_C + CTRL_C)
    tty.sees("Ctrl-C again or Ctrl-D leaves")
    tty.send(CTRL_C)
    assert tty.ends() == 130


def test_ctrl_d_leaves(start: Callable[..., Tty]) -> None:
    tty = start()
    tty.send(CTRL_D)
    assert tty.ends() == 0


def test_long_pastes_are_folded_and_sent_whole(start: Callable[..., Tty]) -> None:
    tty = start("Got it.")
    lines = "\n".join(f"line {number}" for number in range(214))
    tty.send("see " + pasted(lines))
    tty.sees("› see [pasted 214 lines]")
    tty.send(" and " + pasted(lines.upper()))
    tty.sees("[pasted 214 lines] and [pasted 214 lines #2]")
    tty.send(BACKSPACE * 6 + CTRL_W + " what is it?")
    tty.sees("› see  what is it?")
    tty.send(CTRL_C + pasted(lines))
    tty.sees("› [pasted 214 lines]")
    tty.send(" what is it?\r")
    tty.sees("Got it.")
    tty.settle()
    tty.send(UP)
    tty.sees("› [pasted 214 lines] what is it?", times=2)
    tty.send(CTRL_C)
    tty.command("/context")
    tty.sees("you: line 0 line 1")


def test_what_is_pasted_is_never_typed_nor_seen_by_the_terminal(start: Callable[..., Tty], tmp_path: Path) -> None:
    (tmp_path / "my picture.txt").touch()
    tty = start("Got it.", directory=str(tmp_path))
    tty.send("\x1b[200~first\x1b[201~\r!rm -rf x\rlast\x1b[201~")
    tty.sees("› first\n  !rm -rf x\n  last")
    tty.send(CTRL_C + pasted("a\tb \x1b[31mred \u202eorder \x9b1m\r\nnext"))
    tty.sees("› a   b ^[[31mred \ufffdorder \ufffd1m\n  next")
    assert b"\x1b[31mred" not in tty.raw
    assert "\u202e".encode() not in tty.raw
    assert b"\xc2\x9b" not in tty.raw
    tty.send(CTRL_C + "see " + pasted(f"'{tmp_path}/my picture.txt' "))
    tty.sees('› see @"my picture.txt"')
    tty.send(CTRL_C + pasted("x" * 1_000_000))
    tty.sees("› [pasted 1,000,000 characters]")
    assert "Got it." not in tty.text()


def test_a_paste_that_never_ends_does_not_lock_the_keyboard(start: Callable[..., Tty]) -> None:
    tty = start("Got it.")
    tty.send("\x1b[200~half a paste")
    tty.sees("half a paste")
    tty.send(CTRL_C)
    tty.settle()
    tty.line("a question")
    tty.sees("Got it.")


def test_the_late_end_of_a_paste_is_no_typing(start: Callable[..., Tty]) -> None:
    tty = start("Got it.")
    tty.send("\x1b[200~first half, ")
    tty.sees("first half,")
    tty.send("second\nhalf\x1b[201~")
    tty.sees("first half, second\n  half")
    assert "Got it." not in tty.text()


def test_vi_keys(start: Callable[..., Tty]) -> None:
    tty = start("Got it.", settings={"terminal.keys": "vi"})
    tty.sees("[I] ›")
    tty.send("a word\x1b")
    tty.sees("[N] › a word")
    tty.send("0cwthe ")
    tty.sees("[I] › the word")
    tty.send(ALT_ENTER + "more")
    tty.sees("[I] › the\n      moreword")
    tty.send(ESCAPE)
    tty.sees("[N] ›")
    tty.send("V")
    tty.sees("[V] ›")
    tty.send(ESCAPE)
    tty.sees("[N] ›")
    tty.send("R")
    tty.sees("[R] ›")
    tty.send(ESCAPE)
    tty.sees("[N] ›")
    tty.send("\r")
    tty.sees("Got it.")


@pytest.mark.parametrize("size", [(1, 1), (2, 5), (3, 24), (24, 3), (24, 80), (200, 500)])
def test_windows_of_every_size(size: tuple[int, int], tmp_path: Path) -> None:
    columns, rows = size
    with chat("Hello, **world**.\n\n```py\nx = 1\n```", columns=columns, rows=rows, home=str(tmp_path)) as tty:
        while b"\x1b[?2004h" not in tty.raw:
            tty.settle()
        for keys in ("@", TAB, CTRL_C, "/", CTRL_C, CTRL_R, "x\x07", pasted("line\n" * 50), CTRL_C):
            tty.send(keys)
        tty.line("hi")
        tty.settle()
        tty.line("/context")
        tty.settle()
        tty.send(ESCAPE)
        tty.settle()
        tty.send(CTRL_D)
        assert tty.ends() == 0
        assert b"Traceback" not in tty.raw
        assert "\n+hi\n" in (tmp_path / "history").read_text()


@pytest.mark.parametrize("environment", [{"TERM": "screen"}, {"TERM": "bogus-term"}, {"NO_COLOR": "1"}, {"LANG": "C"}])
def test_terminals_and_locales(start: Callable[..., Tty], environment: dict[str, str]) -> None:
    tty = start("Hello, **world**. `code`", env=environment)
    tty.line("hi")
    tty.sees("Hello, world. code")
    tty.settle()
    if "NO_COLOR" in environment:
        assert b"\x1b[36m" not in tty.raw
        assert b";36m" not in tty.raw
    tty.send(CTRL_D)
    assert tty.ends() == 0


@pytest.mark.skipif(shutil.which("bash") is None, reason="job control needs a shell (apt-get install bash)")
def test_ctrl_z_stops_and_fg_goes_on_at_the_prompt_and_at_work() -> None:
    script = json.dumps({"replies": ["One."]})
    program = shlex.join([sys.executable, "-m", "tests.terminal.chat_program", script])
    shell = Tty(["bash", "--norc", "-i"], columns=200, environment={"PS1": "sh> ", "HISTFILE": ""})
    modes = "stty -a | grep -o -e '-*icanon' -e '-*icrnl' | tr '\\n' ' '; echo shown"
    try:
        shell.sees("sh>")
        shell.line(program)
        shell.sees("›")
        shell.send("half a line")
        shell.sees("› half a line")
        shell.send(CTRL_Z)
        shell.sees("Stopped")
        shell.line(modes)
        shell.sees("\nicrnl icanon shown")
        shell.line("fg")
        shell.sees("› half a line")
        shell.send(" and more\r")
        shell.sees("One.")
        shell.line("SLOW")
        shell.sees("The first piece.")
        shell.send("typed" + CTRL_Z)
        shell.sees("Stopped", times=2)
        shell.line(modes)
        shell.sees("\nicrnl icanon shown", times=2)
        shell.line("fg")
        shell.send(" ahead")
        shell.sees("› typed ahead (Enter queues it)")
        # The terminal marks pastes again; bash has ended that for itself as it left.
        assert shell.raw.rfind(b"\x1b[?2004h") > shell.raw.rfind(b"\x1b[?2004l")
        shell.send(CTRL_C)
        shell.sees("Interrupted")
        # What was typed ahead stands there from before: the prompt that has it now comes after the interruption.
        shell.settle()
        shell.sees("› typed ahead")
        shell.send(CTRL_C + CTRL_D)
        shell.sees("left with 0")
    finally:
        shell.close()
