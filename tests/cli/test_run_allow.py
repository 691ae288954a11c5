"""--allow: rules for one run or chat, which allow no more than the same rules in the person's own file."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from nca.config.rule_line import ASKING
from nca.config.schema import ToolSettings
from nca.context.admission import Limits
from nca.testing.provider import Provider
from nca.testing.scripted import Answer
from nca.tools.shell.runner import CommandRunner
from nca.tools.toolbox import ToolContext, default_toolbox
from tests.cli.command import keys, nca
from tests.cli.test_run import run
from tests.testing.forks import forked

WRITE = ("write_file", {"path": "src/a.txt", "content": "one"})


@pytest.fixture
def provider() -> Iterator[Provider]:
    with Provider() as running:
        yield running


def calling(provider: Provider, *calls: tuple[str, dict[str, Any]]) -> None:
    script = iter([Answer(tool_calls=list(calls)), Answer(text="Done.")])
    provider.script = lambda _: next(script)


@pytest.mark.parametrize("rule", ["write_file", "write_file src/a.txt", "write_file src/**", "Write(src/**)", "*"])
def test_what_a_rule_names_runs(provider: Provider, tmp_path: Path, rule: str) -> None:
    calling(provider, WRITE)
    done = run(provider, tmp_path, "Write it", "--allow", "shell make", "--allow", rule)
    assert (done.returncode, done.stdout) == (0, "Done.\n"), done.stderr
    assert (tmp_path / "src" / "a.txt").read_text() == "one"


def test_what_a_rule_names_runs_in_a_chat(provider: Provider, tmp_path: Path) -> None:
    calling(provider, WRITE)
    chat = partial(nca, "loop", "--model", "openai/test-model", home=tmp_path, cwd=None, timeout=90, **keys(provider))
    done = chat("--allow", "shell make", "--allow=write_file src/**", "Write it")
    assert (done.returncode, done.stdout) == (0, "Done.\n"), done.stderr
    assert (tmp_path / "src" / "a.txt").read_text() == "one"
    refused = chat("--allow", "nothing")
    assert (refused.returncode, "there is no tool nothing" in refused.stderr) == (2, True)


@pytest.mark.parametrize("rule", ["edit_file", "write_file src", "write_file lib/**", "shell"])
def test_what_no_rule_names_does_not(provider: Provider, tmp_path: Path, rule: str) -> None:
    calling(provider, WRITE)
    assert run(provider, tmp_path, "Write it", "--allow", rule).returncode == 1
    assert not (tmp_path / "src").exists()


@pytest.mark.parametrize("rules", ["deny", "ask"])
def test_a_rule_that_forbids_or_asks_is_stronger(provider: Provider, tmp_path: Path, rules: str) -> None:
    settings = tmp_path / "project" / ".claude" / "settings.json"
    settings.parent.mkdir(parents=True)
    settings.write_text(f'{{"permissions": {{"{rules}": ["Write(src/**)"]}}}}')
    calling(provider, WRITE)
    run(provider, tmp_path, "Write it", "--allow", "*", cwd=tmp_path / "project")
    assert not (tmp_path / "project" / "src").exists()


def test_plan_mode_is_stronger(provider: Provider, tmp_path: Path) -> None:
    calling(provider, WRITE)
    run(provider, tmp_path, "Write it", "--allow", "*", "--permission", "plan")
    assert not (tmp_path / "src").exists()


def test_the_next_run_knows_nothing_of_it(provider: Provider, tmp_path: Path) -> None:
    calling(provider, WRITE)
    assert run(provider, tmp_path, "Write it", "--allow", "write_file").returncode == 0
    calling(provider, ("write_file", {"path": "b.txt", "content": "two"}))
    assert run(provider, tmp_path, "Write it", "--continue").returncode == 1
    assert not (tmp_path / "b.txt").exists()


@pytest.mark.parametrize(
    "call",
    [
        WRITE,
        *(
            ("shell", {"command": line})
            for line in ("touch 'new file'", "touch $NEW\\ file", "cd . && touch b", "echo x > b")
        ),
    ],
)
def test_the_line_about_a_call_that_did_not_run_has_the_rule_that_allows_it(
    provider: Provider, tmp_path: Path, call: tuple[str, dict[str, Any]]
) -> None:
    calling(provider, call)
    said = run(provider, tmp_path, "Do it").stderr
    words = shlex.split(said[said.index("--allow ") :].partition("; ")[0].partition(", which")[0])
    calling(provider, call)
    done = run(provider, tmp_path, "Do it", *words)
    assert done.returncode == 0, done.stderr
    assert any((tmp_path / name).exists() for name in ("src/a.txt", "new file", " file", "b"))


def test_no_rule_is_named_where_a_rule_asks_about_each_call(provider: Provider, tmp_path: Path) -> None:
    settings = tmp_path / "project" / ".claude" / "settings.json"
    settings.parent.mkdir(parents=True)
    settings.write_text('{"permissions": {"ask": ["Write(src/**)"]}}')
    calling(provider, WRITE)
    said = run(provider, tmp_path, "Do it", cwd=tmp_path / "project").stderr
    assert "Only a person can allow it, in a chat at a terminal." in said


@pytest.mark.parametrize(
    "text", ['{"permissions": {"deny": ["Bash(rm:*)"]}', '{"permissions": {"deny": "Bash(rm:*)"}}']
)
def test_nothing_runs_unasked_where_nobody_knows_what_is_denied(provider: Provider, tmp_path: Path, text: str) -> None:
    settings = tmp_path / "project" / ".claude" / "settings.json"
    settings.parent.mkdir(parents=True)
    settings.write_text(text)
    (tmp_path / "project" / "kept").write_text("what it says")
    calling(provider, ("read_file", {"path": "kept"}), ("shell", {"command": "rm kept"}))
    passed = ("--permission", "auto", "--allow", "shell rm kept")
    done = run(provider, tmp_path, "Do it", *passed, cwd=tmp_path / "project")
    assert done.returncode == 1
    assert "A rule asks about it: .claude/settings.json cannot be read whole" in done.stderr
    assert (tmp_path / "project" / "kept").exists()
    assert "what it says" not in str(provider.requests[-1]["messages"]), "the file may keep it from being read"


def test_a_hook_that_asks_is_named_with_its_reason_and_nothing_that_was_passed(
    provider: Provider, tmp_path: Path
) -> None:
    decides = {"permissionDecision": "ask", "permissionDecisionReason": "It is dangerous."}
    (tmp_path / "answer.json").write_text(json.dumps({"hookSpecificOutput": decides}))
    (tmp_path / "nca").mkdir()
    (tmp_path / "nca" / "config.toml").write_text('[[hooks]]\nevent = "PreToolUse"\ncommand = "cat answer.json"\n')
    calling(provider, WRITE)
    passed = ("--permission", "auto", "--allow", "*")
    done = run(provider, tmp_path, "Do it", *passed)
    assert done.returncode == 1
    assert "A hook asks about it: It is dangerous. (PreToolUse: cat answer.json). Only a person can" in done.stderr
    assert "--allow" not in done.stderr
    assert "--permission" not in done.stderr
    assert "It is dangerous." in str(provider.requests[-1]["messages"]), "the model knows why, too"


@pytest.mark.parametrize(
    ("command", "runs"),
    [
        ("echo hi > made", True),
        ("A=1 touch made", True),
        ("for i in 1 2; do touch made; done", True),
        ('touch made; echo "$HOME"', True),
        ('for f in *; do wc -c "$f" > made; done', True),
        ('touch made; env "$HOME"', False),
        ("touch made; rm $X", False),
        ("touch made; rm x", False),
    ],
)
def test_a_rule_that_denies_a_program_stops_what_may_run_it_and_nothing_else(
    provider: Provider, tmp_path: Path, command: str, runs: bool
) -> None:
    project = tmp_path / "project"
    settings = project / ".claude" / "settings.json"
    settings.parent.mkdir(parents=True)
    settings.write_text('{"permissions": {"deny": ["Bash(rm:*)"]}}')
    calling(provider, ("shell", {"command": command}))
    done = run(provider, tmp_path, "Do it", "--permission", "auto", cwd=project)
    assert (project / "made").exists() == runs
    if runs:
        return
    assert "Bash(rm:*)" in done.stderr, "the rule is named"
    calling(provider, ("shell", {"command": command}))
    again = run(provider, tmp_path, "Do it", "--allow", f"shell {command}", cwd=project)
    assert (project / "made").exists() == ("rm x" not in command and "rm $X" not in command), (
        "what a person has read and passes whole"
    )
    assert "Bash(rm:*)" in again.stderr or "rm" not in command


@pytest.mark.parametrize(
    ("rule", "command", "is_refused"),
    [
        ('tool = "read_file"\npaths = ".env"', "cat .env", True),
        ('tool = "Read"\nsubject = ".env"', "head -1 ./.env", True),
        ('tool = "read_file"\nsubject = "secrets"', "cat secrets/k", True),
        ('tool = "read_file"\npaths = ".env"', "cat other", False),
        ('tool = "read_file"\npaths = ".env"', 'cat "$HOME/x"', True),
        ('tool = "read_file"\npaths = ".env"', 'echo "$HOME" && cat other', False),
        ('tool = "shell"\nsubject = "other"', 'cat "$HOME/x"', True),
        ('tool = "shell"\nsubject = "git push"', "cat oth?r", False),
        ('tool = "write_file"\nsubject = "new.txt"', "echo 1 > new.txt", True),
        ('tool = "Edit"\npaths = "new.txt"', "cat new.txt", False),
    ],
)
def test_a_file_that_a_rule_denies_is_reached_by_no_command(
    provider: Provider, tmp_path: Path, rule: str, command: str, is_refused: bool
) -> None:
    project = tmp_path / "project"
    (project / "secrets").mkdir(parents=True)
    for name in (".env", "other", "secrets/k", "new.txt"):
        (project / name).write_text("KEY=1\n")
    config = tmp_path / "nca" / "config.toml"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text(f"[[permissions.deny]]\n{rule}\n")
    calling(provider, ("shell", {"command": command}))
    done = run(provider, tmp_path, "Do it", "--permission", "auto", cwd=project)
    said = provider.requests[-1]["messages"][-1]["content"]
    assert said.startswith("[not run: ") == is_refused, (said, done.stderr)
    assert ("KEY=1" in said) == (not is_refused)


@pytest.mark.parametrize("tool", ["edit_file", "write_file"])
def test_what_may_not_be_edited_may_not_be_written_anew(provider: Provider, tmp_path: Path, tool: str) -> None:
    config = tmp_path / "nca" / "config.toml"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text(f'[[permissions.deny]]\ntool = "{tool}"\nsubject = "src"\n')
    calling(provider, WRITE)
    done = run(provider, tmp_path, "Write it", "--permission", "auto")
    assert f"not allowed by your rule {tool} src" in done.stderr
    assert not (tmp_path / "src" / "a.txt").exists()


@pytest.mark.parametrize("subject", ["rm:*", "rm*", "secrets/*", "*.env", "**/.env"])
def test_a_rule_that_denies_has_no_pattern_in_its_subject(provider: Provider, tmp_path: Path, subject: str) -> None:
    """It matched nothing, and denied nothing."""
    config = tmp_path / "nca" / "config.toml"
    config.parent.mkdir(parents=True, exist_ok=True)
    config.write_text(f'[[permissions.deny]]\ntool = "shell"\nsubject = "{subject}"\n')
    done = run(provider, tmp_path, "Do it")
    assert (done.returncode, provider.requests) == (2, [])
    assert "has a pattern that a subject cannot have; `pattern` is for commands" in done.stderr


def test_a_wrong_rule_is_refused_before_anything_is_sent(provider: Provider, tmp_path: Path) -> None:
    done = run(provider, tmp_path, "Write it", "--allow", "Bsh(ls)")
    assert (done.returncode, provider.requests) == (2, [])
    assert done.stderr.startswith("nca: --allow 'Bsh(ls)': there is no tool Bsh. Did you mean Bash?")
    done = run(provider, tmp_path, "Write it", "--allow", "mcp__nosuch__tool")
    assert (done.returncode, provider.requests) == (2, [])
    assert done.stderr.startswith(
        "nca: --allow mcp__nosuch__tool: there is no such MCP server. Valid: none; to add one"
    )


def test_completion_offers_the_tools_that_ask(tmp_path: Path) -> None:
    words: dict[str, Any] = {"COMP_WORDS": "nca run --allow ", "COMP_CWORD": "3", "_NCA_COMPLETE": "complete_bash"}
    assert set(forked(home=tmp_path, **words).stdout.split()) == set(ASKING)


def test_the_tools_that_ask_are_all_that_do_more_than_read(tmp_path: Path) -> None:
    toolbox = default_toolbox(
        tmp_path, None, ToolContext(runner=CommandRunner(tmp_path, settings=ToolSettings, limits=Limits))
    )
    assert {name for name in toolbox.names if toolbox.permission(name) != "read"} == set(ASKING)
