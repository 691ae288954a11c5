"""The chat in a real pseudo-terminal: turns, interrupts, signals, ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import termios
from collections.abc import Callable
from pathlib import Path

import pytest

from nca.sessions.session import Session
from nca.sessions.store import Store
from tests.terminal.tty import ROOT, Tty, chat

CTRL_C, CTRL_D, CTRL_L, ESCAPE, LEFT = "\x03", "\x04", "\x0c", "\x1b", "\x1b[D"
FILLER = "The parser reads the file and fails. " * 30


def _last(store: Store) -> Session:
    return store.open_session(store.list()[0].id, read_only=True)


def test_a_chat_from_banner_to_exit(start: Callable[..., Tty]) -> None:
    tty = start(
        {"tool": "list_directory", "arguments": {"path": "nca/terminal/commands"}},
        "It holds **commands**:\n\n- `help.py`\n- `exit.py`\n",
        banner=["scripted/model, because the test says so.", "/model NAME switches."],
    )
    tty.line("what is there?")
    whole = tty.sees("exit.py")
    size = (ROOT / "AGENTS.md").stat().st_size
    told = f"Instructions: AGENTS.md ({size:,} bytes).\n"  # this repository's, in which the tests run
    assert whole.removeprefix(told).startswith("scripted/model, because the test says so.\n/model NAME switches.\n")
    assert "• list" in whole
    tty.sees(" • help.py\n • exit.py")
    tty.settle()
    assert any("▓" in line and "6.5k" in line for line in tty.shown())
    tty.line("exit")
    assert tty.ends() == 0


def test_notices_a_compaction_and_the_gauge(start: Callable[..., Tty]) -> None:
    tty = start(*[FILLER] * 40, window_tokens=10_000)
    for _ in range(30):
        tty.line("go on")
        tty.settle()
        if b"Compacted" in tty.raw:
            break
    assert b"% used" in tty.raw
    assert b"Compaction at 95%." in tty.raw
    tty.sees("Compacted")
    tty.settle()
    tty.command("/context")
    tty.sees("compacted")
    tty.sees("Esc leaves")
    tty.send(ESCAPE)
    tty.settle()
    tty.line("/context undo")
    tty.sees("Undid the compaction of ")


def test_ctrl_c_keeps_the_partial_answer_and_what_was_typed(start: Callable[..., Tty], tmp_path: Path) -> None:
    tty = start("Again.", home=str(tmp_path))
    tty.line("SLOW question")
    tty.sees("The first piece.")
    tty.send("the next one")
    tty.sees("› the next one")
    tty.send(CTRL_C)
    tty.sees("Interrupted. The answer so far is kept.")
    tty.settle()
    assert "› the next one" in tty.shown()[-8:] or "› the next one" in tty.text()
    tty.send("\r")
    tty.sees("Again.")
    tty.settle()
    tty.send(CTRL_D)
    assert tty.ends() == 0
    with Store.open(tmp_path / "store.db") as store, _last(store) as session:
        messages = [entry.message for entry in session.log.entries()]
    assert [message.text.strip() for message in messages] == [
        "SLOW question",
        "The first piece.",
        "the next one",
        "Again.",
    ]
    assert messages[1].is_interrupted


def test_a_ctrl_c_that_stopped_an_answer_is_no_first_of_two_that_leave(start: Callable[..., Tty]) -> None:
    tty = start()
    tty.line("SLOW question")
    tty.sees("The first piece.")
    tty.send(CTRL_C)
    tty.sees("Ctrl-C twice leaves")
    tty.settle()
    tty.send(CTRL_C)
    tty.sees("Ctrl-C again or Ctrl-D leaves")
    tty.send(CTRL_C)
    # On a busy machine it comes more than two seconds after the one before.
    assert tty.ends(again=CTRL_C) == 130


def test_lines_typed_ahead_are_sent_one_after_the_other(start: Callable[..., Tty]) -> None:
    tty = start("One.", "Two.", "Three.", "Four.")
    tty.line("PAUSE first")
    tty.sees("Thinking")
    tty.send("second\rthird\r")
    whole = tty.sees("Three.")
    assert "› second\n\nTwo." in whole
    assert "› third\n\nThree." in whole
    tty.settle()
    tty.line("PAUSE fourth")
    tty.sees("Thinking")
    tty.send(CTRL_D)
    assert tty.ends() == 0
    assert "Four." in tty.text()


def test_a_failed_turn_keeps_the_text_for_another_try(start: Callable[..., Tty]) -> None:
    tty = start({"error": "The key was refused.", "advice": "Check OPENAI_API_KEY."}, "Now it works.")
    tty.line("//etc/hosts, please")
    whole = tty.sees("Check OPENAI_API_KEY.")
    assert "The key was refused." in whole
    tty.sees("› /etc/hosts, please")  # no command, so it needs no second slash
    tty.send("\r")
    tty.sees("Now it works.")
    tty.command("/context")
    tty.sees("you: /etc/hosts, please")
    tty.sees("2 messages in 1 turn")


@pytest.mark.parametrize("keys", ["emacs", "vi"])
def test_what_is_typed_next_replaces_a_refused_message_and_an_arrow_keeps_it(
    start: Callable[..., Tty], keys: str
) -> None:
    tty = start("Fine.", "Fine again.", settings={"terminal.keys": keys})
    tty.sees("›")
    refused = "look at @gone.py"
    tty.line(refused)
    tty.sees("no such file")
    tty.sees("Typing replaces it")
    tty.send(CTRL_L)
    tty.settle()
    tty.line("quickly typed")
    tty.sees("Fine.")
    tty.settle()
    assert f"{refused}quickly" not in tty.text()
    tty.line(refused)
    tty.sees("no such file", times=tty.text().count("no such file") + 1)
    tty.settle()
    tty.send(f"{LEFT * 3}x")
    tty.settle()
    assert any("look at @gonex.py" in line for line in tty.shown())
    tty.send(CTRL_C)
    tty.line(refused)
    tty.sees("no such file", times=2)
    tty.settle()
    tty.send("\x1b[200~pasted words\x1b[201~\r")
    tty.sees("Fine again.")
    assert not any("gone.pypasted" in line for line in tty.shown())


@pytest.mark.parametrize("keys", ["emacs", "vi"])
def test_escape_empties_a_prompt_that_gives_way(start: Callable[..., Tty], keys: str) -> None:
    tty = start("Fine.", settings={"terminal.keys": keys})
    tty.sees("›")
    tty.line("look at @gone.py")
    tty.sees("Esc empties")
    tty.settle()
    rows = tty.shown()
    prompt, hint = (max(at for at, row in enumerate(rows) if part in row) for part in ("› look", "Esc empties"))
    assert hint - prompt <= 2, "no rows are kept for a menu that a text which gives way does not get"
    tty.send(ESCAPE)
    tty.sees_no("Esc empties")
    tty.line("after it")
    tty.sees("Fine.")
    assert "› after it" in tty.text()


@pytest.mark.parametrize("keys", ["emacs", "vi"])
def test_ctrl_d_leaves_a_prompt_that_gives_way(start: Callable[..., Tty], keys: str) -> None:
    """It kept the text, and what was typed next was glued to it: `One/exit`."""
    tty = start("Fine.", settings={"terminal.keys": keys})
    tty.line("One")
    tty.sees("Fine.")
    tty.line("/undo")
    tty.sees("Esc empties")
    tty.settle()
    tty.send(CTRL_D)
    assert tty.ends() == 0


@pytest.mark.parametrize("typed", ["/context", "explain", "quit it"])
def test_escape_and_at_once_a_key_replace_a_text_that_gives_way(start: Callable[..., Tty], typed: str) -> None:
    """Read as Alt-/, it was `look at @gone.py/context`."""
    tty = start("Fine.")
    tty.sees("›")
    tty.line("look at @gone.py")
    tty.sees("Esc empties")
    tty.settle()
    tty.send(ESCAPE + typed)
    tty.sees(f"› {typed}")
    tty.sees_no("Esc empties")


def test_a_second_undo_replaces_the_text_that_the_first_one_brought_back(start: Callable[..., Tty]) -> None:
    tty = start("First.", "Second.")
    tty.line("One")
    tty.sees("First.")
    tty.line("Two")
    tty.sees("Second.")
    tty.line("/undo")
    tty.sees("Took back “Two”")
    tty.sees("Typing replaces it")
    tty.line("/undo")
    tty.sees("Took back “One”")


def test_what_an_editor_left_does_not_give_way(start: Callable[..., Tty], tmp_path: Path) -> None:
    editor = tmp_path / "editor"
    editor.write_text("#!/bin/sh\nprintf 'from the editor' > \"$1\"\n")
    editor.chmod(0o755)
    tty = start("First.", env={"EDITOR": str(editor)})
    tty.line("/editor")
    tty.until(lambda: any("› from the editor" in line for line in tty.shown()))
    tty.line(" and here")
    tty.sees("First.")
    assert "› from the editor and here" in tty.text()


def test_what_is_queued_behind_a_turn_that_brings_nothing_is_in_the_prompt_at_once(start: Callable[..., Tty]) -> None:
    tty = start({"error": "The key was refused."}, "Now it works.", "Again.")
    tty.line("PAUSE first")
    tty.sees("Thinking")
    tty.send("second\r/undo x\r")
    tty.sees("Your 2 queued lines were not sent; they wait below the prompt.")
    tty.sees("› PAUSE first\n")
    tty.sees(" waiting (2): second ⏎ /undo x\n")
    tty.send("\r")
    tty.sees("Now it works.")
    tty.sees("› second\n")
    tty.send("\r")
    tty.sees("Again.")
    tty.sees("› /undo x\n")
    tty.send("\r")
    tty.sees("/undo takes no x.")
    tty.line("PAUSE last")
    tty.sees("Thinking")
    tty.send(CTRL_C)
    tty.sees("Interrupted before an answer came.")
    tty.settle()
    assert tty.text().count("› PAUSE last") == 2


def test_unknown_commands_are_not_sent(start: Callable[..., Tty]) -> None:
    tty = start()
    tty.line("/contxt")
    tty.sees("There is no command /contxt; nothing was sent.")
    tty.sees("Did you mean /context?")
    tty.line("/config context.compact_threshold 9x")
    tty.sees("is not valid")
    for word in ("quit", ":q"):
        assert word  # both leave; one of them ends this program
    tty.line(":q")
    assert tty.ends() == 0


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGQUIT, 131)])
@pytest.mark.parametrize("is_working", [False, True])
def test_signals_end_the_chat_and_restore_the_terminal(
    start: Callable[..., Tty], tmp_path: Path, number: int, code: int, is_working: bool
) -> None:
    tty = start(home=str(tmp_path))
    before = termios.tcgetattr(tty.process.child_fd)[3]
    if is_working:
        tty.line("SLOW question")
        tty.sees("The first piece.")
    else:
        tty.settle()
    tty.process.kill(number)
    while tty._read(1):
        pass
    assert not before & (termios.ICANON | termios.ECHO)  # the prompt had them off
    assert tty.ends() == code
    assert b"Traceback" not in tty.raw
    if is_working:
        with (
            Store.open(tmp_path / "store.db") as store,
            store.open_session(store.list()[0].id, read_only=True) as session,
        ):
            assert session.log.entries()[-1].message.is_interrupted


@pytest.mark.parametrize("is_working", [False, True])
def test_a_terminal_that_is_closed_ends_the_chat(start: Callable[..., Tty], is_working: bool) -> None:
    tty = start()
    if is_working:
        tty.line("SLOW question")
        tty.sees("The first piece.")
    else:
        tty.settle()
    tty.process.close(force=False)
    assert not tty.process.isalive()


def test_nothing_hostile_from_model_or_files_reaches_the_terminal(start: Callable[..., Tty]) -> None:
    hostile = "a\x1b]52;c;aGFjaw==\x07b\x1b[2Jc\x9b31md\u202ee"
    tty = start(hostile, {"tool": f"no{hostile}", "arguments": {}}, "Done.", {"error": hostile, "advice": hostile})
    tty.line("one")
    tty.sees("abc")
    tty.line("two")
    tty.sees("Done.")
    tty.line("three")
    tty.sees("three", times=2)
    tty.settle()
    for forbidden in (b"\x1b]52", b"\x1b[2J", b"\xc2\x9b", "\u202e".encode(), b"\x07"):
        assert forbidden not in tty.raw


def test_a_storm_of_resizes(start: Callable[..., Tty]) -> None:
    tty = start({"text": FILLER + "\n\n", "times": 20}, "Still here.", window_tokens=200_000)
    tty.line("go")
    for step in range(40):
        tty.resize(20 + step * 7 % 100, 3 + step * 5 % 40)
    tty.resize(100, 30)
    tty.settle()
    tty.line("and now?")
    tty.sees("Still here.")
    assert b"Traceback" not in tty.raw


def test_a_line_of_a_megabyte_is_drawn(start: Callable[..., Tty]) -> None:
    tty = start({"text": "x" * 1_000, "times": 1_000}, "Still here.", window_tokens=2_000_000)
    tty.line("go")
    tty.settle(is_drawn=False)
    assert tty.raw.count(b"x") >= 1_000_000
    tty.line("and now?")
    tty.sees("Still here.")


def test_lines_typed_before_the_first_prompt_are_sent() -> None:
    with chat("One.", "Two.") as tty:
        tty.send("first\rsecond\r")
        whole = tty.sees("Two.")
        assert "› first\n\nOne." in whole


def test_lines_pasted_while_it_works_wait_in_the_prompt(start: Callable[..., Tty]) -> None:
    tty = start("One.", "Two.")
    tty.line("PAUSE first")
    tty.sees("Thinking")
    tty.send("\x1b[200~alpha\nbeta\x1b[201~")
    tty.sees("› alpha\n  beta")
    tty.settle()
    assert "Two." not in tty.text()


def test_a_preparation_in_the_background_stands_in_the_toolbar(start: Callable[..., Tty]) -> None:
    # A model is asked where something is left out and its prose has room; else code is done before anybody looks.
    settings = {"context.compact_threshold": 0.95, "context.idle_threshold": 0.8, "context.target_ratio": 0.3}
    answers = [" ".join(f"Answer {number} fails at line {n}: bad token." for n in range(90)) for number in range(40)]
    tty = start(*answers, prepares=True, window_tokens=20_000, settings=settings)
    for _ in range(20):
        tty.line("go on")
        tty.settle()
        if b"compacting in the background" in tty.raw:
            break
    assert b"compacting in the background" in tty.raw
    while "compacting in the background" in "".join(tty.shown()):
        tty.settle()
    tty.line("and now?")
    tty.sees("Compacted")


def test_a_compaction_that_was_stopped_is_said_once(start: Callable[..., Tty]) -> None:
    # Answers that are all alike would be versions of one text, and only the newest would have to be told of.
    answers = [" ".join(f"Answer {number} fails at line {n}: bad token." for n in range(40)) for number in range(16)]
    tty = start(*answers, window_tokens=20_000)
    for number in range(16):
        tty.line(f"Question {number}.")
        tty.sees(f"Answer {number} fails")
        tty.settle()
    tty.line("/compact the parser")
    tty.sees("Compacting the context")
    tty.send(CTRL_C)
    whole = tty.sees("Compaction stopped; nothing changed.")
    tty.settle()
    assert "\nStopped." not in whole + tty.text()


def test_what_of_a_claude_code_set_up_is_not_used_is_said_once_to_a_person(
    start: Callable[..., Tty], tmp_path: Path
) -> None:
    for name, setting in (("work/.claude/settings.json", "theme"), (".claude/settings.json", "spinnerTipsEnabled")):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).write_text(json.dumps({setting: "dark"}))
    said = "Not used here of .claude: theme; of ~/.claude: spinnerTipsEnabled.\n"
    tty = start("One.", "Two.", directory=str(tmp_path / "work"), env={"HOME": str(tmp_path)})
    tty.sees(said)
    tty.line("hello")
    tty.sees("One.")
    tty.settle()
    tty.line("/new")
    tty.sees("New session")
    tty.line("hello")
    tty.sees("Two.")
    tty.settle()
    assert tty.text().count(said) == 1
    script = json.dumps({"replies": ["One."], "directory": str(tmp_path / "work")})
    piped = subprocess.run(
        [sys.executable, "-m", "tests.terminal.chat_program", script],
        input="hello\n",
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "HOME": str(tmp_path)},
        check=True,
    )
    assert "One." in piped.stdout
    assert "Not used" not in piped.stdout + piped.stderr
