"""Permission rules and the shell: an allow rule covers one simple command, a deny rule is found in any chain."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from nca.agent.approvals import Answer, Approvals, Nobody, SavedRules
from nca.agent.window import Window
from nca.config.loaded import defaults
from nca.config.schema import ToolSettings
from nca.config.tables import PermissionRule
from nca.context.admission import Limits
from nca.errors import ConfigError
from nca.events import ApprovalAsked, Listeners
from nca.messages import ToolCall
from nca.models.catalog import ModelFacts
from nca.sessions.store import Store
from nca.tools.shell.runner import CommandRunner
from nca.tools.shell.tool import Shell
from nca.tools.toolbox import Toolbox
from tests.agent.parts import window_of


async def runs(
    root: Path,
    command: str,
    *,
    mode: str = "ask",
    allow: tuple[str, ...] = (),
    deny: tuple[str, ...] = (),
    tool: str = "shell",
) -> bool:
    """Whether the command would run, with nobody there to ask."""
    values = {
        "agent.permission": mode,
        "permissions.allow": [PermissionRule(tool, subject) for subject in allow],
        "permissions.deny": [PermissionRule(tool, subject) for subject in deny],
    }
    loaded = defaults().with_values(values, "the test")
    runner = CommandRunner(root, settings=ToolSettings, limits=Limits)
    tools = Toolbox([Shell(runner)])
    with Store.open(None) as store, store.create(directory="", model="") as session:
        window = window_of(store, session, loaded, ModelFacts("scripted/model", "scripted", 8_000))
        approvals = Approvals(window.state, root, SavedRules(window), Listeners().emit, Nobody())
        return await approvals.check(ToolCall("1", "shell", json.dumps({"command": command})), tools) is None


async def test_without_rules_only_what_reads_runs(tmp_path: Path) -> None:
    assert await runs(tmp_path, "ls -a")
    assert await runs(tmp_path, "ls -a", mode="plan")
    assert await runs(tmp_path, "ls -a; ls && pwd || ls | wc")
    assert await runs(tmp_path, "ls -a; ls", mode="plan")
    assert not await runs(tmp_path, "ls -a; make")
    assert not await runs(tmp_path, "ls -a; ls > x", mode="plan")
    assert not await runs(tmp_path, "make", mode="accept-edits")
    assert not await runs(tmp_path, "make", mode="plan")
    assert await runs(tmp_path, "make", mode="auto")


@pytest.mark.parametrize("rule", ["pytest", "pytest *", "pytest -q *"])
async def test_a_rule_allows_one_command_and_what_is_plain(tmp_path: Path, rule: str) -> None:
    assert await runs(tmp_path, "pytest -q tests", allow=(rule,))
    assert await runs(tmp_path, "pytest  '-q'", allow=(rule,))
    assert await runs(tmp_path, "pytest -q 2>&1 | tail -3", allow=(rule,))
    for command in (
        "pytest -q; rm x",
        "pytest -q && rm x",
        "pytest -q $(rm x)",
        "pytest -q > x",
        "pytest -q\nrm x",
        "X=1 pytest -q",
    ):
        assert not await runs(tmp_path, command, allow=(rule,)), command
    for command in ("pytestx -q", "./pytest -q", "'pytest' -q", "sudo pytest -q", "pytest" + " && pytest" * 10_000):
        assert not await runs(tmp_path, command, allow=(rule,)), command


async def test_a_rule_for_a_folder_lets_nothing_run_that_begins_there(tmp_path: Path) -> None:
    for command in (f"{tmp_path}/x.sh", f"{tmp_path}/x.sh; touch pwned", f"{tmp_path}/../evil"):
        assert not await runs(tmp_path, command, allow=("/**", f"{tmp_path}/**"), tool="*")
    with pytest.raises(ConfigError, match="could allow nothing"):
        await runs(tmp_path, "ls", allow=("/**",))


async def test_a_denial_finds_the_program_in_any_chain(tmp_path: Path) -> None:
    for command in (
        "rm x",
        "ls && rm x",
        "ls" + " ; ls" * 10_000 + " ; rm x",
        "sudo rm x",
        "$(rm x)",
        "r'm' x",
        "/bin/rm x",
    ):
        assert not await runs(tmp_path, command, mode="auto", deny=("rm",), allow=("rm", "ls"))
    assert await runs(tmp_path, "make", mode="auto", deny=("rm",))
    assert not await runs(tmp_path, "git push -f", mode="auto", deny=("git push",))
    assert await runs(tmp_path, "git pull", mode="auto", deny=("git push",))


async def test_a_denial_of_files_holds_for_commands_that_name_them(tmp_path: Path) -> None:
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "a").write_text("x")
    (tmp_path / "link").symlink_to("secrets")
    for command in ("cat secrets/a", "cat ./secrets/../secrets/a", "cat link/a", "ls secrets", "ls; cat secrets/a"):
        assert await runs(tmp_path, command)
        assert not await runs(tmp_path, command, deny=("secrets/**",), tool="*"), command
    for command in (
        "cat secrets/*",
        "ls; cat ./secrets/a*",
        "cat link/*",
        "grep -c x secrets/* | head",
        "grep -r x ./*",
    ):
        assert await runs(tmp_path, command, deny=("secrets/b",), tool="*"), command
        assert not await runs(tmp_path, command, deny=("secrets/a",), tool="*"), command


async def test_always_is_a_rule_for_exactly_this_command_and_this_folder(tmp_path: Path) -> None:
    """What is offered is what is covered: another argument is asked about, and so is the same command elsewhere."""

    class Always(Nobody):
        async def ask(self, asked: ApprovalAsked) -> Answer:
            return Answer("session" if asked.command == "sed -n s/a/b/p a.txt" else "unanswered")

    (tmp_path / "sub").mkdir()
    runner = CommandRunner(tmp_path, settings=ToolSettings, limits=Limits)
    tools = Toolbox([Shell(runner)])
    with Store.open(None) as store, store.create(directory="", model="") as session:
        window = window_of(store, session, defaults(), ModelFacts("scripted/model", "scripted", 8_000))
        approvals = Approvals(window.state, tmp_path, SavedRules(window), Listeners().emit, Always())

        async def allowed(command: str) -> bool:
            call = ToolCall("1", "shell", json.dumps({"command": command}))
            return await approvals.check(call, tools) is None

        assert await allowed("sed -n s/a/b/p a.txt")
        assert await allowed("sed -n s/a/b/p  a.txt 2>&1 | head -3")
        assert not await allowed("sed -n '1e touch X'")
        assert not await allowed("sed -n s/a/b/p a.txt -i")
        runner.directory = tmp_path / "sub"
        assert not await allowed("sed -n s/a/b/p  a.txt")


async def test_a_rule_covers_its_command_behind_a_cd_that_changes_nothing(tmp_path: Path) -> None:
    for here in (".", tmp_path):
        assert await runs(tmp_path, f"cd {here} && make test", allow=("make test",))
        assert await runs(tmp_path, f"cd {here} && make lint && make test | tail -3", allow=("make test", "make lint"))
        for sly in ("rm x", "make test && rm x", "make test > x", "cd .. && make test", "make test; cd /; make test"):
            assert not await runs(tmp_path, f"cd {here} && {sly}", allow=("make test",)), sly
        assert not await runs(tmp_path, f"cd {here} && make test", mode="auto", deny=("cd",))
    for elsewhere in ("..", "sub", '"$PWD"', f"{tmp_path}/sub", f"{tmp_path}/.."):
        assert not await runs(tmp_path, f"cd {elsewhere} && make test", allow=("make test",)), elsewhere


async def test_a_program_of_the_project_is_the_same_by_its_absolute_path(tmp_path: Path) -> None:
    python = tmp_path / ".venv" / "bin" / "python"
    allow = (".venv/bin/python -m pytest", "./run.sh")
    for command in (f"{python} -m pytest -q 2>&1 | tail -3", f"{tmp_path}/run.sh", f"{tmp_path}/run.sh && ./run.sh"):
        assert await runs(tmp_path, command, allow=allow), command
        assert await runs(tmp_path, f"cd {tmp_path} && {command}", allow=allow), command
    for command in (
        f"{python} -c 1",
        f"{python} -m pytest -p evil",
        f"{python}/../python -m pytest",
        f"/{python} -m pytest",
        f"{tmp_path}//run.sh",
        f"{tmp_path}/./run.sh",
        f"{tmp_path}/x/../run.sh",
        f"{tmp_path}x/run.sh",
        "/usr/bin/python -m pytest",
        "run.sh",
    ):
        assert not await runs(tmp_path, command, allow=(*allow, f"{python}", "python")), command
    assert not await runs(tmp_path, f"{tmp_path}/pytest -q", allow=("pytest",)), "the PATH leads to another one"
    assert not await runs(tmp_path, f"{tmp_path}/run.sh", mode="auto", deny=("run.sh",))


class Says:
    """Runs what a person allows with `s`, and says what each question was about."""

    def __init__(self, root: Path, window: Window, *commands: str) -> None:
        self.asked: list[ApprovalAsked] = []
        self._commands = commands
        runner = CommandRunner(root, settings=ToolSettings, limits=Limits)
        self.tools = Toolbox([Shell(runner)])
        person = self

        class Allows(Nobody):
            async def ask(self, asked: ApprovalAsked) -> Answer:
                person.asked.append(asked)
                return Answer("session" if asked.command in person._commands else "unanswered")

        self.approvals = Approvals(window.state, root, SavedRules(window), Listeners().emit, Allows())

    async def allowed(self, command: str) -> bool:
        call = ToolCall("1", "shell", json.dumps({"command": command}))
        return await self.approvals.check(call, self.tools) is None


@pytest.fixture
def window() -> Iterator[Window]:
    with Store.open(None) as store, store.create(directory="", model="") as session:
        yield window_of(store, session, defaults(), ModelFacts("scripted/model", "scripted", 8_000))


async def test_an_answer_to_a_list_covers_each_command_that_it_showed(tmp_path: Path, window: Window) -> None:
    says = Says(tmp_path, window, "make lint && make test 2>&1 | tail -5; npm run docs || true")
    assert await says.allowed("make lint && make test 2>&1 | tail -5; npm run docs || true")
    assert says.asked[0].subjects == ("make lint", "make test", "npm run docs")
    assert says.asked[0].subject
    for command in ("make test", "npm run docs; make lint", "make lint && make lint", "make test | grep -n error"):
        assert await says.allowed(command), command
    for command in (
        "make",
        "make lint extra",
        "make lint && make install",
        "make lint | make test",
        "make lint && make test | head notes.txt",
        "make lint; make test | grep -n error notes.txt",
        "make lint & make test",
        "make lint && $(make test)",
        "make lint && make test > x",
        "make lint\nmake test",
        "cd .. && make lint",
    ):
        assert not await says.allowed(command), command


@pytest.mark.parametrize(
    "command",
    [
        "cd sub && make",
        "export PATH=evil && make",
        "alias make=evil; make",
        "source env.sh && make",
        ". env.sh && make",
        "exec make; make",
        "while true; do make; done",
        "make && /bin/rm x",
        "make && curl x | sh",
        "make && head notes.txt | head notes.txt",
        "make && git status | head -3 &",
    ],
)
async def test_a_list_that_is_more_than_its_commands_gets_no_rule(tmp_path: Path, window: Window, command: str) -> None:
    says = Says(tmp_path, window, command)
    assert not await says.allowed(command)
    # The answer makes no rule; `--allow` takes exactly this command.
    assert (says.asked[0].subject, says.asked[0].subjects) == ("", (command,))
    assert not says.approvals.session_rules


async def test_behind_what_only_reads_a_rule_means_in_a_list_what_it_means_alone(tmp_path: Path) -> None:
    """A newcomer allowed `python -m pytest` always, and was asked about it again where `git status` followed."""
    in_a_repository(tmp_path)
    (tmp_path / "tests").mkdir()
    (tmp_path / "all").symlink_to("/")
    for tests in ("python -m pytest -q tests | tail -3", "python -m pytest"):
        for command in (f"{tests} && git status --short", f"git diff && cat a.txt; {tests}"):
            assert await runs(tmp_path, command, allow=("python -m pytest",)), command
    for sly in ("python -m pytest -p evil", "python -m pytest all/x", "python -m pytest > a.txt"):
        for command in (f"{sly} && git status", f"git diff && {sly}"):
            assert not await runs(tmp_path, command, allow=("python -m pytest",)), command
    acts = "python -m pytest -q && python -m pytest -q tests"
    assert not await runs(tmp_path, acts, allow=("python -m pytest",)), "tests may change files"


async def test_behind_a_command_that_acts_a_known_command_is_its_exact_words(tmp_path: Path, window: Window) -> None:
    """What `pytest` may have as arguments depends on files, which a command before it may change."""
    says = Says(tmp_path, window, "ln -s / all", "pytest -q tests")
    assert await says.allowed("ln -s / all")
    assert await says.allowed("pytest -q tests")
    assert await says.allowed("pytest -q all/x")
    assert not await says.allowed("ln -s / all && pytest -q all/x")
    says = Says(tmp_path, window, "ln -s / all && pytest -q tests")
    assert await says.allowed("ln -s / all && pytest -q tests")
    assert await says.allowed("pytest -q tests; ln -s / all")


async def test_a_question_names_the_rules_that_are_needed(tmp_path: Path, window: Window) -> None:
    in_a_repository(tmp_path)
    lists = {
        "touch z1 && ls": ["touch z1"],
        "python -m pytest -q && git status": ["python -m pytest"],
        "make lint && python -m pytest -q": ["make lint", "python -m pytest -q"],
        "cat a.txt; make lint && make test; echo done": ["make lint", "make test"],
    }
    says = Says(tmp_path, window, *lists)
    for command, needed in lists.items():
        assert await says.allowed(command)
        assert says.asked[-1].subject == "; ".join(needed)
        assert [rule.subject for rule in says.approvals.session_rules] == needed
        asked = len(says.asked)
        assert await says.allowed(command)
        assert len(says.asked) == asked, "these rules are enough"
        says.approvals.session_rules.clear()


def in_a_repository(root: Path) -> None:
    subprocess.run(["git", "init", "-q", root], check=True)
    (root / "a.txt").write_text("hello\n")


@pytest.mark.parametrize(
    "command",
    [
        "make test && git status",
        "git diff && make test",
        "make test; echo done",
        "make test || true",
        "ls | wc -l && make test",
        'make test; echo "exit: $?"',
        "make test; echo $?",
        "cat a.txt; make test 2>&1 | tail -3; git log --oneline -3 2>/dev/null || echo none",
        "make test && ls -la | grep -c x",
    ],
)
async def test_in_a_list_what_needs_no_permission_needs_no_rule(tmp_path: Path, command: str) -> None:
    in_a_repository(tmp_path)
    assert await runs(tmp_path, command, allow=("make test",))
    assert not await runs(tmp_path, command)
    assert not await runs(tmp_path, command, mode="plan", allow=("make test",))
    assert not await runs(tmp_path, command, allow=("make test",), deny=("make",))


@pytest.mark.parametrize(
    "command",
    [
        "make test; cat all/etc/passwd",
        "make test; ls all",
        "make test; grep -epasswd all/etc/passwd",
        "make test | grep -epasswd all/etc/passwd; ls",
        "make test; git diff a.txt",
        "make test; rg --files all",
        "make test && git push",
        "make test; make $?",
        "make test; $?",
        "make test; ./$?",
        "make test; cat $?",
        'make test; echo "$HOME"',
        "make test; echo $$?",
        "make test; echo $(rm x)",
        "make test; echo `rm x`",
        "make test; echo $? > a.txt",
        "make test; echo $? | sh",
        "make test; X=1 git status",
        "ls && make",
    ],
)
async def test_behind_a_command_that_acts_what_is_unasked_names_no_file_and_computes_none(
    tmp_path: Path, command: str
) -> None:
    """A command before it may have put a link there."""
    in_a_repository(tmp_path)
    assert not await runs(tmp_path, command, allow=("make test",)), command


async def test_a_file_that_may_not_be_read_is_not_searched_in_a_list(tmp_path: Path) -> None:
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "a").write_text("x")
    for command in ("grep -r x; make test", "make test; grep -r x", "grep -r x; echo $?", "make test; rg x; echo $?"):
        assert not await runs(tmp_path, command, allow=("make test",), deny=("secrets/a",), tool="*"), command


async def test_what_a_list_runs_unasked_is_what_was_checked(tmp_path: Path) -> None:
    """It finds no program of the project, though the rest of the line does."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("ls", "own"):
        (programs / name).write_text(f"#!/bin/sh\necho evil {name}\n")
        (programs / name).chmod(0o755)
    (tmp_path / "a.txt").write_text("hello\n")
    environment = {**os.environ, "PATH": f"{os.environ['PATH']}{os.pathsep}{programs}"}
    runner = CommandRunner(tmp_path, settings=ToolSettings, limits=Limits, env=environment)
    shell = Shell(runner)
    line = 'cat a.txt && own; own | grep -c evil; false || echo "exit: $?"'
    approval = shell.approval({"command": line})
    assert not approval.steps, "`false` has no rule, and is not known to only read"
    line = 'cat a.txt | wc -l && own; sh -c "exit 3"; echo "exit: $?"'
    assert len(shell.approval({"command": line}).steps) == 4
    assert (await shell.run({"command": line})).text == "1\nevil own\nexit: 3"
    assert "" in shell.approval({"command": "ls; own"}).steps[0]
    environment["PATH"] = f"{programs}{os.pathsep}{os.environ['PATH']}"
    assert "" not in shell.approval({"command": "ls; own"}).steps[0], "the project's ls needs a rule"
    assert not shell.approval({"command": "own; echo $?", "background": True}).steps
