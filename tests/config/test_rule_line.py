"""A rule that allows as one line: what it means is what the same rule means in a settings file."""

from __future__ import annotations

from pathlib import Path

import pytest

from nca.config.rule_line import rules_of_line
from nca.errors import UsageError


def meant(line: str, directory: Path = Path("/nowhere")) -> list[tuple[str, str]]:
    return [(rule.tool, rule.subject) for rule in rules_of_line(line, directory)]


@pytest.mark.parametrize(
    ("line", "tool", "subject"),
    [
        ("shell", "shell", ""),
        ("shell make test", "shell", "make test"),
        ("  shell   docker compose *  ", "shell", "docker compose *"),
        ("shell(make test)", "shell", "make test"),
        ("shell ls *.py", "shell", "ls *.py"),
        ("shell (cd a && make)", "shell", "(cd a && make)"),
        ("edit_file src/**", "edit_file", "src/**"),
        ("edit_file app/[id]/page.tsx", "edit_file", "app/[id]/page.tsx"),
        ("fetch_url example.com", "fetch_url", "example.com"),
        ("fetch_url https://example.com/x", "fetch_url", "https://example.com/x"),
        ("mcp__github__create_issue", "mcp__github__create_issue", ""),
        ("*", "*", ""),
    ],
)
def test_a_tool_of_nca_has_its_subject_as_in_the_settings(line: str, tool: str, subject: str) -> None:
    assert meant(line) == [(tool, subject)]


@pytest.mark.parametrize(
    ("line", "rules"),
    [
        ("Bash", [("shell", "")]),
        ("Bash(npm run test:*)", [("shell", "npm run test *")]),
        ("Bash npm test", [("shell", "npm test")]),
        ("Bash(echo hi > o)", [("shell", "echo hi > o")]),
        ('Bash(echo "$HOME")', [("shell", 'echo "$HOME"')]),
        ("Edit", [("edit_file", ""), ("write_file", "")]),
        ("Edit(docs/**)", [("edit_file", "docs/**"), ("write_file", "docs/**")]),
        ("WebFetch(domain:example.com)", [("fetch_url", "example.com")]),
        ("mcp__github", [("mcp__github", ""), ("mcp__github__*", "")]),
        ("Read", []),
        ("Glob(**/*.py)", []),
    ],
)
def test_a_tool_of_claude_code_has_what_it_means_there(line: str, rules: list[tuple[str, str]]) -> None:
    assert meant(line) == rules


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("", "it is not a rule"),
        ("(x)", "it is not a rule"),
        ("Bsh", "there is no tool Bsh. Did you mean Bash?"),
        ("edit-file a.txt", "there is no tool edit-file. Did you mean edit_file?"),
        ("frobnicate", "there is no tool frobnicate. Valid: shell"),
        ("Edit(*.md)", "it allows more than a rule of nca can"),
        ("Bash(git * main)", "it allows more than a rule of nca can"),
        ("edit_file *.md", "it has a pattern that a rule cannot have"),
        ("write_file src/**/a.py", "it has a pattern that a rule cannot have"),
        ("shell npm test:*", "write npm test *"),
        ("shell *", "shell without a subject allows every call"),
        ('shell "make test"', "it is in quotes; write make test"),
        ("shell *.sh", "it begins with no program"),
        ("write_file src/", "it names a folder; write src/** for all that is below it"),
        ("fetch_url *.example.com", "a rule that allows names one host"),
        ("mcp__github__create_issue x", "with all its arguments"),
        ("a\x1b[31m", "there is no tool"),
        ("read_file x", "it needs no rule: no mode asks about it"),
        ("task", "it needs no rule"),
        ("write_file /etc/**", "it is outside of /nowhere"),
        ("edit_file ../x", "it is outside of /nowhere"),
        ("edit_file ~/x", "it is outside of /nowhere"),
    ],
)
def test_what_would_allow_nothing_or_too_much_is_refused(line: str, said: str) -> None:
    with pytest.raises(UsageError) as refused:
        rules_of_line(line, Path("/nowhere"))
    assert said in str(refused.value)
    assert str(refused.value).isprintable()


def test_a_rule_for_files_is_about_those_that_may_be_written_here(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    with pytest.raises(UsageError, match=r"it names a folder; write src/\*\* for all"):
        meant("edit_file src", tmp_path)
    for subject in ("src/**", "new", f"{tmp_path}/src/a.py", f"{tmp_path.parent}/**", "/**", "./**", "src/../b"):
        assert meant(f"write_file {subject}", tmp_path) == [("write_file", subject)]
