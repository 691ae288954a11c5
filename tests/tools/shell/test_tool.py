"""The shell tool: its permission, what the person sees, and the names that rules can match."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nca.config.schema import ToolSettings
from nca.context.admission import Limits
from nca.humanize import WRITTEN_OUT, unambiguous
from nca.messages import ToolCall
from nca.tools.files.reading_rules import FilesRead
from nca.tools.shell.command_words import answers_with_1, mentioned_names, remarks
from nca.tools.shell.runner import CommandRunner
from nca.tools.shell.tool import Shell
from nca.tools.tool import ToolError
from nca.tools.toolbox import Toolbox
from tests.tools.shell_strings import (
    ASSIGNMENTS,
    CHAINS,
    CONTROLS,
    HARMLESS,
    HOMOGLYPHS,
    NETWORK,
    REDIRECTIONS,
    SUBSTITUTIONS,
    WRAPPERS,
)


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    (tmp_path / "sub").mkdir()
    (tmp_path / "notes.txt").write_text("hello\n")
    return Shell(CommandRunner(tmp_path, settings=ToolSettings, limits=Limits))


def test_what_it_needs_is_judged_call_by_call(shell: Shell) -> None:
    assert shell.permission == "execute"
    assert shell.needs({"command": "cat notes.txt"}) == "read"
    assert shell.needs({"command": "cat notes.txt; ls"}) == "read"
    assert shell.needs({"command": "cat notes.txt; ls > x"}) == "execute"
    for arguments in (
        {},
        {"command": None},
        {"command": ["ls"]},
        {"command": 1},
        {"cmd": "ls"},
        {"command": {"a": "ls"}},
    ):
        assert shell.needs(arguments) == "execute"


def test_no_sly_command_reads(shell: Shell) -> None:
    sly = [*CHAINS, *SUBSTITUTIONS, *REDIRECTIONS, *CONTROLS, *HOMOGLYPHS, *ASSIGNMENTS, *WRAPPERS, *NETWORK]
    assert not [command for command in sly if shell.needs({"command": command}) != "execute"]


async def test_what_was_judged_is_what_runs(shell: Shell) -> None:
    """A command that reads runs without a shell: no function, alias or variable of one can stand in between."""
    outcome = await shell.run({"command": "cat notes.txt"})
    assert (outcome.text, outcome.is_error, outcome.summary) == ("hello", False, "done · 1 line")
    outcome = await shell.run({"command": "cat 'notes.txt' nothing"})
    assert outcome.is_error
    assert outcome.text.endswith("[exit code 1]")


async def test_what_was_judged_to_read_never_runs_as_anything_else(shell: Shell, tmp_path: Path) -> None:
    """Nobody was asked, and what it names has become a link out of the project since."""
    toolbox = Toolbox([shell])
    for number, command in enumerate(("cat sub/*", "cat sub/0.txt")):
        (tmp_path / "sub" / "0.txt").unlink(missing_ok=True)
        (tmp_path / "sub" / "0.txt").write_text("hello\n")
        call = ToolCall(str(number), "shell", json.dumps({"command": command}))
        assert toolbox.needs(call) == "read"
        assert (await toolbox.run(call)).text == "hello"
        (tmp_path / "sub" / "0.txt").unlink()
        (tmp_path / "sub" / "0.txt").symlink_to("/dev/null")
        outcome = await toolbox.run(call)
        assert outcome.is_error
        assert "changed before it ran" in outcome.text
        assert toolbox.needs(call) == "execute"
        assert not (await toolbox.run(call)).is_error


@pytest.mark.parametrize(
    ("command", "summary"),
    [
        ("printf 'FAILED a.py::test\\n2 failed, 10 passed in 0.1s\\n' | tail -1; true", "done"),
        ("python3 -c 'raise ValueError(1)' 2>&1 | tail -1", "done"),
        ("python3 -c 'raise ValueError(1)' 2>&1 | tail -1; exit 1", "exit code 1"),
        ("cat failing.log", "done"),
        ("printf '12 passed in 0.1s\\n'; exit 3", "exit code 3"),
    ],
)
async def test_the_exit_code_alone_says_what_failed(shell: Shell, tmp_path: Path, command: str, summary: str) -> None:
    (tmp_path / "failing.log").write_text("2 failed in 0.1s\n")
    outcome = await shell.run({"command": command})
    assert outcome.summary == f"{summary} · 1 line"
    assert outcome.is_error == (summary != "done")


@pytest.mark.parametrize(
    ("command", "is_error"),
    [
        ("diff a b", False),
        ("cat a | grep nothing", False),
        ("ls; diff a b", False),
        ("diff a nowhere", True),
        ("false && grep x a", True),
        ("grep nothing a | false", True),
        ("true && test -f nowhere", True),
        ("test -f nowhere", False),
        ("git diff --no-index a b", False),
        ("$X diff a b", True),
    ],
)
async def test_an_exit_code_that_is_an_answer_is_no_failure(
    shell: Shell, tmp_path: Path, command: str, is_error: bool
) -> None:
    """`Fails: diff a b` stood in a record, and in the line about a compaction."""
    (tmp_path / "a").write_text("1\n")
    (tmp_path / "b").write_text("2\n")
    outcome = await shell.run({"command": f"X=false; {command}" if "$X" in command else command})
    assert "exit code" in outcome.text
    assert outcome.is_error == is_error


@pytest.mark.parametrize(
    "command",
    [
        "cat f",
        "cat -n f",
        "cat g f",
        "head -n 20 f",
        "tail f",
        "sed -n 1,20p f",
        "sed -n '1,$p' ./f",
        "cat f | head -20",
        "cat f 2>/dev/null",
        "cat g; echo ---; cat f && ls",
    ],
)
async def test_a_file_that_a_command_shows_in_whole_was_read(tmp_path: Path, command: str) -> None:
    files_read = FilesRead()
    shell = Shell(CommandRunner(tmp_path, settings=ToolSettings, limits=Limits), files_read=files_read)
    (tmp_path / "f").write_bytes(b"one\r\n\n\ttw\xe9\nthree")
    (tmp_path / "g").write_text("g\n")
    await shell.run({"command": command})
    assert files_read.is_current(tmp_path / "f", (tmp_path / "f").read_bytes())


@pytest.mark.parametrize(
    "command", ["head -n 2 f", "sed -n 2,3p f", "cat f | tail -2", "wc f", "ls f; cat f > g", "ls f"]
)
async def test_a_file_of_which_a_command_shows_less_was_not_read(tmp_path: Path, command: str) -> None:
    files_read = FilesRead()
    shell = Shell(CommandRunner(tmp_path, settings=ToolSettings, limits=Limits), files_read=files_read)
    (tmp_path / "f").write_text("one\ntwo\nthree\n")
    await shell.run({"command": command})
    (tmp_path / "f").write_text("line\n" * 5_000)
    await shell.run({"command": "cat f"})
    assert not files_read.is_known(tmp_path / "f")


async def test_reading_is_judged_where_the_last_command_went(shell: Shell) -> None:
    assert shell.needs({"command": "ls .."}) == "execute"
    await shell.run({"command": "cd sub"})
    assert shell.needs({"command": "ls .."}) == "read"
    assert shell.needs({"command": "ls ../.."}) == "execute"
    approval = shell.approval({"command": "make"})
    assert approval.directory.endswith("/sub")
    assert approval.warning == "It runs in sub."


async def test_reading_is_judged_where_it_runs_after_the_directory_was_removed(shell: Shell, tmp_path: Path) -> None:
    await shell.run({"command": "cd sub"})
    (tmp_path / "sub").rmdir()
    assert shell.needs({"command": "ls .."}) == "execute"
    assert shell.approval({"command": "make"}).directory == str(tmp_path)


async def test_through_the_toolbox(shell: Shell) -> None:
    toolbox = Toolbox([shell])
    outcome = await toolbox.run(ToolCall("1", "shell", '{"command": "echo \\"$((6 * 7))\\"", "timeout_seconds": "30"}'))
    assert outcome.text == "42"
    for wrong in ('{"command": ""}', '{"command": 1}', "{}", '{"command": "a\\u0000b"}', '{"command": "\\ud800"}', "x"):
        assert (await toolbox.run(ToolCall("1", "shell", wrong))).is_error
    assert toolbox.describe(ToolCall("1", "shell", '{"command": "make  test"}')) == "$ make test"
    assert "$ ls ⟨U+001B⟩[2K" in toolbox.describe(ToolCall("1", "shell", '{"command": "ls \\u001b[2K"}'))


@pytest.mark.parametrize("command", ["", " ", "a\0b", "\ud800", "#" * 200_000])
def test_nobody_is_asked_about_what_cannot_run(shell: Shell, command: str) -> None:
    with pytest.raises(ToolError):
        shell.approval({"command": command})


def test_a_person_sees_the_command_as_it_is(shell: Shell) -> None:
    approval = shell.approval({"command": "pytest -q 'tests/a b'"})
    assert approval.command == "pytest -q 'tests/a b'"
    assert (approval.path, approval.warning, approval.subject) == ("", "", "pytest")
    assert approval.names == ("pytest", "pytest -q 'tests/a b'", "pytest *", "pytest -q *", "pytest -q 'tests/a b' *")
    approval = shell.approval({"command": "ls\nrm x"})
    assert approval.command == "ls\nrm x"
    assert approval.warning == "The command has 2 lines."
    assert (approval.subject, approval.names) == ("", ())


def test_where_the_lines_of_a_command_end_is_shown(shell: Shell) -> None:
    assert shell.summarize({"command": "cd src\nmake\n"}) == "$ cd src ⏎ make"


@pytest.mark.parametrize(
    ("command", "is_answer"),
    [
        ("make && git log; git status; grep -n 'x' a.txt", True),
        ("make; git status && grep x a.txt", False),
        ("make && grep x a.txt", False),
    ],
)
def test_what_stands_before_the_last_list_has_no_part_in_the_exit_code(command: str, is_answer: bool) -> None:
    assert answers_with_1(command) == is_answer


MISTAKEN = "What looks like ASCII may be something else"


@pytest.mark.parametrize(
    ("command", "shown", "remark"),
    [
        ("a\x1b[2Kb", "a⟨U+001B⟩[2Kb", WRITTEN_OUT),
        ("a\rb\tc\x7f", "a⟨U+000D⟩b⟨U+0009⟩c⟨U+007F⟩", WRITTEN_OUT),
        ("a\u202eb", "a⟨U+202E⟩b", WRITTEN_OUT),
        ("a\u200bb", "a⟨U+200B⟩b", WRITTEN_OUT),
        ("l\u0455", "l⟨U+0455⟩", WRITTEN_OUT),
        ("ls –l fıle ｘ", "ls –l fıle ｘ", f"{MISTAKEN}: ı (U+0131), – (U+2013), ｘ (U+FF58)."),
        ("rm “a∕b” −r", "rm “a∕b” −r", f"{MISTAKEN}: “ (U+201C), ” (U+201D), − (U+2212), ∕ (U+2215)."),
        ("cat 'a∕b' 'fıle – x'", "cat 'a∕b' 'fıle – x'", f"{MISTAKEN}: ı (U+0131), ∕ (U+2215)."),
        ("a⟨U+001B⟩", "a⟨U+27E8⟩U+001B⟩", f"{MISTAKEN}: ⟨ (U+27E8), ⟩ (U+27E9)."),
        ("x" * 600, "x" * 600, "The command has 600 characters."),
        ("a\n\n\nb\n", "a\n\n\nb\n", "The command has 4 lines."),
        (f"a\n{'x' * 600}", f"a\n{'x' * 600}", "The command has 2 lines and 602 characters."),
    ],
)
def test_nothing_of_it_is_hidden(command: str, shown: str, remark: str) -> None:
    assert unambiguous(command) == shown
    assert list(remarks(command)) == [remark]


def test_plain_commands_need_no_remark() -> None:
    written = ("Übung, å, đường, привет, 修正。", "Ціна «Меду» → 5 € ✓", "¿Qué? हिन्दी, ภาษาไทยที่ดี §3 ≤ ٣")
    signs = ("Τιμή · −5 € – “νέα”", "Name │ Price · −5 It’s 10–20")
    plain = (*HARMLESS, *(f"git commit -m '{text}'" for text in (*written, *signs)))
    assert not [command for command in plain if list(remarks(command)) or unambiguous(command) != command]


CALLS_RM = [
    *("rm x", "ls; rm x", "ls && rm x", "ls|xargs rm", "$(rm x)", "`rm x`", "'rm' x", "r'm' x", 'r"m" x', "r\\m x"),
    *("/bin/rm x", "X=1 rm x", "sudo rm x", "ls\nrm x", "(rm x)", "{ rm x; }", "if rm x; then :; fi", "! rm x"),
    *("ls & rm x", "bash -c 'rm x'", "find . -exec rm {} +", '"$(rm x)"', "ls;rm", "rm$IFS-rf", "rm<x", "=rm x"),
    "ls" + " && ls" * 10_000 + " && rm x",
]


@pytest.mark.parametrize("command", CALLS_RM, ids=lambda command: ascii(command)[1:40])
def test_a_denied_program_is_found_wherever_it_stands(command: str, tmp_path: Path) -> None:
    assert "rm" in mentioned_names(command, tmp_path)


def test_what_else_a_denial_may_name(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/etc")
    names = mentioned_names("cd /x && git push --force; cat ./secrets/a link/passwd", tmp_path)
    assert {"git push", "git push --force", f"{tmp_path}/secrets/a", "/etc/passwd", "/x"} <= set(names)
    assert "rm" not in names
    assert {"python", "python3", "python3.11", "pip install"} <= set(
        mentioned_names("python3.11 x; pip3 install y", tmp_path)
    )
    assert mentioned_names("", tmp_path) == ()
