"""What the approval panel shows determines what the call does."""

from __future__ import annotations

import io
import re
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from nca.events import ApprovalAsked
from nca.file_history.changes import unified
from nca.humanize import WRITTEN_OUT, unambiguous
from nca.terminal.render.calls import PART_LINES, PIECE_CHARS, ApprovalPanel
from nca.terminal.render.theme import plain_console
from nca.tools.files.edit import EditFile, WriteFile
from nca.tools.files.reading_rules import FilesRead
from nca.tools.files.workspace import Workspace
from tests.terminal.payloads import PAYLOADS, SURROGATES, forbidden

TITLE = 1 + 2
"""Rows before the first line of a new file: what the tool wants, that it is new, and the place in it."""


def asked(
    *, command: str = "", diff: str = "", path: str = "", directory: str = "", warning: str = ""
) -> ApprovalAsked:
    return ApprovalAsked("c", "tool", "write", "", path, command, diff, warning, "", directory)


def test_a_command_that_no_rule_can_cover_says_so() -> None:
    call = asked(command="echo $HOME", directory="/work")
    assert any(row.startswith("Asked each time") for row in rows(msgspec.structs.replace(call, allowed_by="tool")))
    assert not any(
        row.startswith("Asked each time") for row in rows(msgspec.structs.replace(call, allowed_by="subject"))
    )


def rows(call: ApprovalAsked, width: int = 80) -> list[str]:
    """All that is shown, part after part."""
    console: Console = plain_console({})
    console.width = width
    panel = ApprovalPanel(call)
    with console.capture() as captured:
        console.print(panel.first())
        while panel.lines_left:
            console.print(panel.more())
    return captured.get().removesuffix("\n").split("\n")


def read_back(shown: list[str]) -> list[str]:
    """The lines that a person reads out of the rows, escapes and marks undone."""
    lines: list[str] = []
    for row in shown:
        if row.startswith("… and "):
            continue
        text = f"{row[2:-1]} " if row.endswith("␠") and len(row) > 2 else row[2:]
        lines[-1:] = [lines[-1] + text] if row.startswith("↪ ") else [*lines[-1:], text]
    return [_undone(line) for line in lines]


def _undone(line: str) -> str:
    line = f"{line[:-1]}\r" if line.endswith("␍") else line
    line = line.replace("⇥   ", "\t")
    return re.sub("⟨U\\+([0-9A-F]{4,6})⟩", lambda found: chr(int(found[1], 16)), line)


def content_of(shown: list[str]) -> str:
    """What a new file will hold, read out of its diff."""
    lines = read_back(shown[TITLE:])
    no_end = lines[-1:] == ["\\ No newline at end of file"]
    assert all(line.startswith("+") for line in lines[: len(lines) - no_end])
    text = "\n".join(line[1:] for line in lines[: len(lines) - no_end])
    return text if no_end or not lines else f"{text}\n"


contents = st.lists(
    st.sampled_from(
        [
            *"ab  \n\n\t\r+-@\\ ⟨⟩U27E8…↪⇥␠␍\x1b\x07\x9b\x0b\x0c\u2028\u202e\u200b\ufe0f\u3000\u0301é日🙂",
            *("\\ No newline at end of file", "… and 3 more lines not shown", "\n  +", "\r\n", "word " * 7, "x" * 19),
            "\U000e0041",
        ]
    )
    | st.characters(exclude_categories=["Cs"]),
    max_size=20,
).map("".join)


@given(contents, st.integers(40, 80))
@settings(max_examples=250, deadline=None)
def test_the_bytes_of_a_new_file_can_be_read_out_of_the_panel(content: str, width: int) -> None:
    shown = rows(asked(diff=unified(None, content, "a")), width)
    assert content_of(shown) == content
    assert forbidden("\n".join(shown)) == []


@given(contents, st.integers(40, 80))
@settings(max_examples=120, deadline=None)
def test_a_command_can_be_read_out_of_the_panel(command: str, width: int) -> None:
    shown = rows(asked(command=unambiguous(command), directory="/work"), width)
    assert "\n".join(read_back(shown[1:-1])) == command or not command
    assert shown[-1] == "in /work"


@given(st.text(), contents, contents)
@settings(max_examples=120, deadline=None)
def test_two_changes_of_one_file_never_look_the_same(before: str, one: str, other: str) -> None:
    before = before.encode("utf-8", "replace").decode()
    panels = [rows(asked(path="/w/a", diff=unified(before, after, "a"))) for after in (before + one, before + other)]
    assert (panels[0] == panels[1]) == (one == other)


@pytest.mark.parametrize(
    "content", ["x" * 200 + " " + "y", "x" * 200 + "y", "x" * 76 + "日", "x" * 75 + " 日", " " * 5_000, "xy " * 2_000]
)
def test_a_fold_hides_no_blank(content: str) -> None:
    for width in range(70, 90):
        assert content_of(rows(asked(diff=unified(None, content, "a")), width)) == content


def test_every_payload_is_seen_in_every_change(tmp_path: Path) -> None:
    (tmp_path / "old.txt").write_text("one\ntwo\nthree\n")
    files_read = FilesRead()
    files_read.note(tmp_path / "old.txt", (tmp_path / "old.txt").read_bytes())
    writing, editing = WriteFile(Workspace(tmp_path), files_read), EditFile(Workspace(tmp_path), files_read)
    seen: dict[str, str] = {}
    payloads = [payload for payload in PAYLOADS if "\0" not in payload]  # a NUL is refused
    for payload in payloads:
        content = f"echo two {payload}; end\n"
        new = writing.approval({"path": "new.sh", "content": content})
        edit = editing.approval({"path": "old.txt", "old_text": "two", "new_text": content})
        over = writing.approval({"path": "old.txt", "content": f"one\n{content}three\n"})
        for approval in (new, edit, over):
            shown = "\n".join(rows(asked(path=approval.path, diff=approval.diff, warning=approval.warning), 120))
            assert forbidden(shown) == []
            # Lone surrogates cannot be written: U+FFFD is.
            assert payload in SURROGATES or WRITTEN_OUT in shown or payload == "\n"
            assert seen.setdefault(shown, content) == content or payload in SURROGATES
        if payload not in SURROGATES:
            assert content_of(rows(asked(diff=new.diff))) == content
    assert len(seen) >= 3 * (len(payloads) - len(SURROGATES))


def test_an_emoji_and_a_deleted_trick_are_no_reason_to_warn(tmp_path: Path) -> None:
    (tmp_path / "old.txt").write_text("a\u202eb\nend\n")
    files_read = FilesRead()
    files_read.note(tmp_path / "old.txt", (tmp_path / "old.txt").read_bytes())
    editing = EditFile(Workspace(tmp_path), files_read)
    for new in ("clean", "⚠\ufe0f careful"):
        approval = editing.approval({"path": "old.txt", "old_text": "a\u202eb", "new_text": new})
        assert approval.warning == ""
        assert "-a⟨U+202E⟩b" in approval.diff


def test_broken_bytes_of_a_file_are_told_apart(tmp_path: Path) -> None:
    shown = set()
    for byte in (b"\x80", b"\x81", b"\xff"):
        (tmp_path / "old.txt").write_bytes(b"caf" + byte + b" one\n")
        files_read = FilesRead()
        files_read.note(tmp_path / "old.txt", (tmp_path / "old.txt").read_bytes())
        editing = EditFile(Workspace(tmp_path), files_read)
        shown.add(editing.approval({"path": "old.txt", "old_text": "one", "new_text": "two"}).diff)
    assert len(shown) == 3


def test_an_empty_line_beside_a_change_needs_no_mark() -> None:
    shown = rows(asked(diff=unified("a\n\nb\n", "a\n\nc\n", "a")))
    assert "␠" not in "".join(shown)


def test_a_long_call_comes_in_parts_that_say_how_much_is_left() -> None:
    command = "\n".join(f"echo {number}" for number in range(PART_LINES + 5))
    panel = ApprovalPanel(asked(command=command, directory="/work/sub"))
    console: Console = plain_console({})
    with console.capture() as captured:
        console.print(panel.first())
    text = captured.get()
    assert "… and 5 more lines not shown" in text
    assert "in /work/sub" in text
    assert panel.lines_left == 5
    panel.more()
    assert panel.lines_left == 0
    assert ApprovalPanel(asked(command="x" * (3 * PIECE_CHARS + 1))).lines_left == 4


def test_a_path_is_shown_as_seen_from_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    inside, outside = str(tmp_path / "src" / "a.py"), f"{tmp_path}-other/a.py"
    assert rows(asked(path=inside))[1] == "  src/a.py"
    assert "".join(read_back(rows(asked(path=outside))[1:])).startswith(outside)


def test_nothing_in_it_reaches_the_terminal_as_a_code() -> None:
    evil = "\x1b]52;c;ZXZpbA==\x07\x1b[2J\u202egpj.exe\r"
    call = ApprovalAsked("c", evil, "write", evil, path=evil, command=evil, diff="+" + evil, warning=evil)
    assert not set("\x1b\x07\u202e\r") & set("\n".join(rows(call)))


def test_the_question_about_a_call_of_a_task_says_so() -> None:
    console = plain_console({"COLUMNS": "80"})
    call = ApprovalAsked("task-0a1b2c3d/1", "shell", "execute", "$ rm x", command="rm x", directory="/work")
    console.print(ApprovalPanel(call).first())
    assert isinstance(console.file, io.StringIO)
    assert console.file.getvalue().startswith("task: shell wants to run this command:\n")


def test_a_page_is_not_said_to_be_run() -> None:
    call = ApprovalAsked("c", "fetch_url", "execute", "fetch", command="https://a.example/")
    assert rows(call)[0] == "fetch_url wants to reach out:"
