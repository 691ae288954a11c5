"""Whether a call failed and how it ended, with marks and without."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nca.context.record.outcomes import command_of, error_lines, essence_of, kind_of_command, outcome_of
from nca.messages import Message, ToolCall


def shell(command: str) -> ToolCall:
    return ToolCall("c1", "shell", json.dumps({"command": command}))


def result(text: str, *, is_error: bool = False) -> Message:
    return Message("tool", text, tool_call_id="c1", is_error=is_error)


TRACEBACK = "Traceback (most recent call last):\n  File 'a.py', line 3\nValueError: bad token"


@pytest.mark.parametrize(
    ("command", "text"),
    [
        ("python a.py", TRACEBACK),
        ("python a.py 2>&1 | tail -1", "ValueError: bad token"),
        ("python a.py", '  File "a.py", line 3\n    if\nSyntaxError: invalid syntax'),
        ("node a.js", "TypeError: x is not a function\n    at Object.<anonymous> (/tmp/a.js:1:7)"),
        ("npm run build", "src/a.ts(12,5): error TS2304: Cannot find name 'x'."),
        ("make", "cc -c a.c\na.c:3:5: error: expected ';'\nmake: *** [a.o] Error 1"),
        ("pytest", "....F\nFAILED tests/test_a.py::test_one - assert 1 == 2\n1 failed, 4 passed in 0.1s"),
        ("cargo test", "error[E0425]: cannot find value `x`"),
        ("git push", "fatal: no upstream"),
        ("frobnicate", "bash: frobnicate: command not found"),
        ("ruff check .", "a.py:1:1: F401\n[exit code 1]"),
    ],
)
def test_a_failure_without_a_mark_is_known_by_its_text(command: str, text: str) -> None:
    outcome = outcome_of(shell(command), result(text))
    assert outcome.is_failure
    assert outcome.errors


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (shell("pytest"), "582 passed in 14.3s"),
        (shell("mkdir -p tries; PYTHONPATH=src python tries/a.py"), "ParseError: line 3 cannot be parsed"),
        (shell("node a.js"), "TypeError: as expected"),
        (shell("grep -rn error: src"), "src/a.py:3:    error: str"),
        (shell("grep nothing ."), "[exit code 1]"),
        (shell("cat missing"), "cat: missing: No such file or directory"),
        (ToolCall("c1", "read_file", '{"path": "log.txt"}'), "error: in line 1\n" + "line\n" * 40),
        (ToolCall("c1", "grep", '{"pattern": "x"}'), "No matches."),
        (ToolCall("c1", "Grep", '{"pattern": "x"}'), "<tool_use_error>Path does not exist: cmd/cli</tool_use_error>"),
        (shell("rm -r x"), "[not run: the user refused]"),
        (shell("make fmt"), "Error: The user doesn't want to take this action right now. STOP what you are doing."),
        (shell("make fmt"), "<tool_use_error>Sibling tool call errored</tool_use_error>"),
    ],
)
def test_what_waits_for_no_fix_is_no_failure(call: ToolCall, text: str) -> None:
    assert not outcome_of(call, result(text)).is_failure


def test_a_failed_read_is_known_by_its_beginning() -> None:
    read = ToolCall("c1", "read_file", '{"path": "a.py"}')
    assert outcome_of(read, result("Error: cannot decode a.py")).is_failure


@pytest.mark.parametrize(
    ("command", "kind"),
    [
        ("cd src && ../venv/bin/python -m pytest -q tests | tail -2", "pytest"),
        ("FOO=1 timeout 30 git commit -m 'a && b'", "git commit"),
        ("python3.11 scripts/run.py --x", "python run.py"),
        ("npm run check 2>&1 | head", "npm run check"),
        ("npm run test -- --watch=false", "npm test"),
        ("npm test", "npm test"),
        ("npm run", "npm run"),
        ("uv run pytest -q", "pytest"),
        ("uv run --with rich -p 3.12 ruff check .", "ruff"),
        ("npx --yes jest tests/a.test.js", "jest"),
        ("poetry run python -m mypy src", "mypy"),
        ("time -p timeout -k 5 60s sudo -u bob make all", "make all"),
        ("uv runner x", "uv runner"),
        ("npx", ""),
        ("ls -la; cat a.txt", "cat"),
        ('python -c "import os; print(1)"', "python -c"),
        ("go test \\\n  -run X \\\n  ./...", "go test"),
        ("", ""),
    ],
)
def test_kinds_of_commands(command: str, kind: str) -> None:
    assert kind_of_command(command) == kind


@pytest.mark.parametrize(
    ("command", "line"),
    [
        (
            'PYTHONPATH=src python -c "\nimport a\nprint(a)\n" && python -m pytest -q',
            'PYTHONPATH=src python -c "…" && python -m pytest -q',
        ),
        ("python make.py\ncd tests && pytest -q", "pytest -q"),
        ("cd src && ls\n# all\ncat a.txt", "ls"),
        ("cat > a.py <<'EOF'\nprint(1)\nEOF\npython a.py", "python a.py"),
    ],
)
def test_a_command_is_told_by_the_line_that_it_is_about(command: str, line: str) -> None:
    assert essence_of(command) == line


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("....\n582 passed, 3 skipped in 14.30s", "582 passed, 3 skipped in 14.30s"),
        ("done\n[exit code 0]", "ok"),
        ("nothing to say", "ok"),
        ("bad\n[exit code 3]", "exit 3"),
    ],
)
def test_the_last_word_of_a_command(text: str, said: str) -> None:
    assert outcome_of(shell("make all"), result(text)).text == said


def test_a_command_that_still_runs_has_no_outcome_yet() -> None:
    running = outcome_of(shell("pytest"), result("E   assert 1\n1 failed\n[job 3 is running, for 0 s now]\n[saved]"))
    assert (running.text, running.was_run, running.is_failure) == ("running", False, False)
    for text, said in (("done", "ok"), ("exit code 2", "exit 2")):
        assert outcome_of(None, result(f"[job 3 has ended after 9 s: {text}]")).text == said


def test_a_command_is_a_line_or_the_words_of_one() -> None:
    for words, line in ((["git", "add", "my file"], "git add 'my file'"), (["bash", "-lc", "make all"], "make all")):
        assert command_of(ToolCall("c1", "shell", json.dumps({"command": words}))) == line
    assert command_of(ToolCall("c1", "shell", '{"command": [1]}')) == ""


def test_a_refused_call_was_not_run() -> None:
    assert not outcome_of(shell("rm a"), result("The user doesn't want to proceed with this tool use.")).was_run


def test_error_lines_are_few_and_none_twice() -> None:
    text = "\n".join(["ValueError: a", "ValueError: a", *(f"TypeError: {n}" for n in range(20))])
    lines = error_lines(text)
    assert len(lines) == len(set(lines)) <= 4
    assert lines[0] == "ValueError: a"


def test_a_line_of_code_that_names_an_exception_is_no_report() -> None:
    lines = error_lines(PYTEST)
    assert lines == (
        "2 failed, 147 passed in 1.20s",
        "FAILED tests/test_a.py::test_key - Failed: DID NOT RAISE <class 'Exception'>",
        "FAILED tests/test_a.py::test_file - Failed: DID NOT RAISE <class 'PermissionError'>",
    )
    assert error_lines("raise ValueError(1)\nTypeError: no number") == ("TypeError: no number",)
    assert error_lines("the build failed in the end") == ("the build failed in the end",)


PYTEST = """\
=================================== FAILURES ===================================
_______________________________ test_key_error ________________________________
    def test_key_error(dotenv_path):
>       with pytest.raises(Exception):
E       Failed: DID NOT RAISE <class 'Exception'>
=========================== short test summary info ============================
FAILED tests/test_a.py::test_key - Failed: DID NOT RAISE <class 'Exception'>
FAILED tests/test_a.py::test_file - Failed: DID NOT RAISE <class 'PermissionError'>
2 failed, 147 passed in 1.20s
"""
PIECES = [
    "error: x",
    "  E   assert 1",
    "cannot ",
    "do",
    "failed",
    "xfailed",
    "\n",
    "\n",
    "\r",
    "\u2028",
    "İ",
    "the e  ",
    "x" * 401,
]


@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_error_lines_are_those_that_report_an_error_by_themselves(text: str) -> None:
    """The text is searched as a whole; each line alone says the same. Lines that are there for the error come first."""
    lines = [line for line in map(str.strip, text.splitlines()) if line]
    alone = [line[:160] for line in lines if len(line) <= 400 and error_lines(f"nothing\n{line}") != ("nothing",)]
    alone = [line for line in alone if re.match(r"e  |failed\b|[\w.]*error:", line.lower())] or alone
    unique = list(dict.fromkeys(alone))
    kept = unique if len(unique) <= 4 else [*unique[:3], unique[-1]]
    assert error_lines(text) == tuple(kept or [line[:160] for line in lines[:1]])
