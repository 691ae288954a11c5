"""Drawing in a real pseudo-terminal: hostile texts, growing code, changes, windows that change, a screen reader."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from nca.messages import clean_text
from tests.terminal.payloads import PAYLOADS, forbidden
from tests.terminal.tty import chat

SENDABLE = [clean_text(payload) for payload in PAYLOADS]


def leaks(raw: bytes) -> list[str]:
    return forbidden(raw.decode("utf-8", "replace"))


def test_hostile_texts_from_the_model_its_tools_and_files(tmp_path: Path) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    for payload in PAYLOADS:
        name = f"a{payload}b".encode("utf-8", "surrogateescape" if payload == "\udcff\x1b[1337m" else "replace")
        if b"\0" not in name and b"/" not in name:
            (folder / os.fsdecode(name)).write_text(payload.encode("utf-8", "replace").decode(), encoding="utf-8")
    listing = {"tool": "list_directory", "arguments": {"path": "files"}}
    search = {"tool": "grep", "arguments": {"pattern": "1337", "path": "files\x1b]0;1337\x07"}}
    answer = {
        "text": "\n\n".join(f"- a{payload}b" for payload in SENDABLE) + "\n\nThe end of it.",
        "reasoning": "x\x1b[1337m",
    }
    with chat(
        listing,
        search,
        answer,
        {"error": "".join(SENDABLE), "advice": "\x9b1337m"},
        directory=str(tmp_path),
        window_tokens=200_000,
        banner=["".join(SENDABLE)],
        settings={"terminal.show_reasoning": True},
        columns=120,
    ) as tty:
        tty.line("go")
        tty.sees("The end of it.")
        for line in ("/show", "/show 2", "/show thoughts", "/context", "/context show 3", "/copy x\x1b", "/sessions"):
            tty.line(line)
            tty.settle()
            if line in ("/context", "/sessions"):
                tty.send("\x1b")
                tty.settle()
        tty.line("fail")
        tty.settle()
        tty.send("@files/a")
        tty.settle()
        tty.send("\t\t\t")
        tty.settle()
        assert leaks(tty.raw) == []
        assert len(tty.raw) > 20_000


def test_hostile_output_of_a_command(tmp_path: Path) -> None:
    (tmp_path / "hostile").write_bytes("\n".join(PAYLOADS).encode("utf-8", "replace"))
    with chat("ok", directory=str(tmp_path)) as tty:
        tty.line("!cat hostile; printf 'the \\033]0;1337\\007end\\n'")
        tty.sees("the end")
        tty.settle()
        assert leaks(tty.raw) == []


def test_code_longer_than_the_window_is_whole_in_the_scrollback() -> None:
    code = "\n".join(f"value_{number} = {number}" for number in range(120))
    with chat(f"Here:\n\n```python\n{code}\n```\n\nThe end.", rows=12) as tty:
        tty.line("go")
        whole = tty.sees("The end.")
        assert re.findall(r"^value_(\d+) = \1$", whole, re.MULTILINE) == [str(number) for number in range(120)]


def test_a_change_that_nobody_was_asked_about_is_drawn(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    read = {"tool": "read_file", "arguments": {"path": "a.txt"}}
    write = {"tool": "write_file", "arguments": {"path": "a.txt", "content": "one\nthree\n"}}
    change = {"tool": "edit_file", "arguments": {"path": "a.txt", "old_text": "three", "new_text": "four"}}
    settings = {"agent.permission": "accept-edits"}
    with chat(read, write, change, "Done so.", directory=str(tmp_path), settings=settings) as tty:
        tty.line("go")
        whole = tty.sees("Done so.")
        assert whole.count("  -two\n  +three\n") == 1
        assert whole.count("  -three\n  +four\n") == 1


def test_a_long_call_is_seen_while_the_model_writes_it(tmp_path: Path) -> None:
    written = {"path": "slow.py", "content": "\n".join(f"line_{number} = {number}" for number in range(60))}
    with chat(
        {"tool": "write_file", "arguments": written},
        "Done.",
        directory=str(tmp_path),
        piece_seconds=0.02,
        settings={"permissions.mode": "accept-edits"},
    ) as tty:
        tty.sees("›")
        tty.line("go")
        tty.sees("Writing a call")
        seen = []
        for _ in range(2):
            tty.until(lambda: "lines: write slow.py…" in tty.text() and tty.text() not in seen)
            seen.append(tty.text())
        lines = [int(found) for text in seen for found in re.findall(r"Writing a call, (\d+) lines: write", text)]
        assert 0 < lines[0] <= lines[1] < 60
        tty.sees("Done.")
        assert "Writing a call" not in tty.text()


def test_a_window_that_changes_while_an_answer_comes_loses_none_of_it() -> None:
    paragraphs = [f"Paragraph {number} has *some* words in it." for number in range(40)]
    with chat("\n\n".join(["PAUSE", *paragraphs, "The end."]), "again") as tty:
        tty.line("go")
        for columns, rows in ((60, 20), (40, 10), (120, 40), (90, 24)) * 3:
            tty.resize(columns, rows)
        tty.sees("The end.")
        tty.resize(100, 30)
        tty.line("again please")
        tty.sees("again")
        assert "Traceback" not in tty.text()


@pytest.mark.parametrize("how", ["setting", "terminal"])
def test_a_screen_reader_gets_words_and_nothing_that_moves(tmp_path: Path, how: str) -> None:
    write = {"tool": "write_file", "arguments": {"path": "a.txt", "content": "text\n"}}
    plain = {"settings": {"terminal.plain": True}} if how == "setting" else {"env": {"TERM": "dumb"}}
    with chat(write, "Written.", write, "Not written.", directory=str(tmp_path), **plain) as tty:
        tty.sees(">")
        tty.line("write it")
        tty.sees("Allow it? y once, s for this session, a always here")
        tty.line("what?")
        tty.sees("Allow it?", times=2)
        tty.line("y")
        tty.sees("Tool: write a.txt")
        tty.sees("Written.")
        tty.line("again")
        tty.sees("Allow it?", times=3)
        tty.line("no leave it")
        tty.sees("Tool failed: write a.txt")
        tty.sees("Not written.")
        tty.line("exit")
        assert tty.ends() == 0
        assert b"\x1b" not in tty.raw
        assert (tmp_path / "a.txt").read_text() == "text\n"


def test_what_was_typed_before_a_question_in_plain_lines_is_kept_and_answers_nothing(tmp_path: Path) -> None:
    write = {"tool": "write_file", "arguments": {"path": "a.txt", "content": "text\n"}}
    replies = (write, "Not written.", "The second answer.", "The third answer.")
    with chat(*replies, directory=str(tmp_path), settings={"terminal.plain": True}) as tty:
        tty.sees(">")
        tty.send("PAUSE, write it\ry\rand then\rthe open li")
        tty.sees("Kept for the next prompt: y and then the open li")
        tty.sees("Allow it?")
        tty.line("n")
        tty.sees("Not written.")
        tty.sees("> y")
        tty.sees("The second answer.")
        tty.sees("> and then")
        tty.sees("The third answer.")
        tty.sees("[Enter sends: the open li]")
        tty.send("\r")
        tty.sees("The script is over")
        tty.line("exit")
        assert tty.ends() == 0
        assert not (tmp_path / "a.txt").exists()
