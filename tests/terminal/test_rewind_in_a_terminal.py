"""/rewind in a real terminal: the list, the question with the diff, and Esc Esc."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.terminal.tty import chat

ESCAPE, DOWN = "\x1b", "\x1b[B"
SIZES = [(80, 24), (40, 15)]


def writing(text: str) -> dict[str, object]:
    return {"tool": "write_file", "arguments": {"path": "a.txt", "content": f"{text}\n"}}


@pytest.mark.parametrize(("columns", "rows"), SIZES)
def test_a_message_is_chosen_and_the_files_go_back_with_the_chat(tmp_path: Path, columns: int, rows: int) -> None:
    replies = (writing("one"), "Wrote one.", "Nothing to do.")
    settings = {"agent.permission": "accept-edits"}
    with chat(*replies, columns=columns, rows=rows, directory=str(tmp_path), settings=settings) as tty:
        tty.sees("›")
        tty.line("write it")
        tty.sees("Wrote one.")
        tty.line("again")
        tty.sees("Nothing to do.")
        tty.settle()
        tty.send(ESCAPE)
        tty.send(ESCAPE)
        tty.sees("Search:")
        tty.settle()
        listed = [line for line in tty.shown() if "again" in line or "write it" in line]
        assert listed[0].startswith("› ")
        heads = [line.split() for line in tty.shown() if line.lstrip().startswith("when")]
        assert rows < 12 or (heads[0][0], heads[0][-1]) == ("when", "message")
        assert "in its turn" in tty.text()
        tty.send(DOWN)
        tty.settle()
        assert "1 file +1 −0" in tty.text()
        tty.send("\r")
        tty.sees("Esc")
        tty.settle()
        assert "Search:" not in "\n".join(tty.shown())
        assert "-one" in tty.text()
        tty.answer("b")
        tty.sees("Went back to before")
        tty.settle()
        assert not (tmp_path / "a.txt").exists()
        # The message's text is in the prompt again.
        assert any(line.startswith("› write it") for line in tty.shown())
        tty.send("\x15")
        tty.line("/redo")
        tty.sees("Went forward again. Files: 1")
        assert (tmp_path / "a.txt").read_text() == "one\n"


@pytest.mark.parametrize("keys", ["emacs", "vi"])
def test_escape_twice_is_for_an_empty_prompt_and_leaves_no_line_in_the_history(tmp_path: Path, keys: str) -> None:
    with chat("Fine.", home=str(tmp_path), settings={"terminal.keys": keys}) as tty:
        tty.sees("›")
        tty.line("hello")
        tty.sees("Fine.")
        tty.settle()
        tty.send("typed")
        tty.send(ESCAPE)
        tty.send(ESCAPE)
        tty.settle()
        assert "Search:" not in tty.text()
        tty.send("cc" if keys == "vi" else "\x15")
        tty.settle()
        tty.send(ESCAPE)
        tty.settle()
        assert keys == "emacs" or any("[N]" in line for line in tty.shown())
        tty.send(ESCAPE)
        tty.sees("Search:")
        tty.send(ESCAPE)
        tty.settle()
        assert "/rewind" not in (tmp_path / "history").read_text()
        tty.line("exit")
        assert tty.ends() == 0


def test_what_was_undone_and_redone_behind_an_approval_is_not_offered_again(tmp_path: Path) -> None:
    with chat(writing("one"), "Wrote one.", directory=str(tmp_path)) as tty:
        tty.line("write it")
        tty.sees("Allow it?")
        tty.settle()
        for line in ("/undo", "/undo", "/redo", "/redo"):
            tty.key(f"{line}\r")
        tty.sees("when this is done (4): ")
        tty.answer("y")
        tty.sees("There is nothing to go forward to.")
        tty.settle()
        assert tty.shown()[tty.screen.cursor.y].rstrip() == "›"
