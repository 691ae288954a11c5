"""An untrusted project starts nothing, connects to nothing and changes nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.cli.command import environment, nca
from tests.cli.hostile import MARK, PROJECTS, where
from tests.cli.hostile_program import COMMANDS
from tests.terminal.payloads import forbidden
from tests.terminal.tty import ROOT, Tty
from tests.testing.forked_tty import ForkedTty
from tests.testing.forks import forked


class Done(NamedTuple):
    """What came of one command in one project."""

    code: int
    events: list[list[str]]
    out: str
    err: str


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Done]:
    """All commands in all projects, in one process."""
    home = tmp_path_factory.mktemp("home")
    roots = {name: tmp_path_factory.mktemp("project-") for name in PROJECTS}
    for name, build in PROJECTS.items():
        build(roots[name])
    places = {str(where(root)): name for name, root in roots.items()}
    env = environment(home, OPENAI_API_KEY="sk-persons-own-key", PYTHONPATH=str(ROOT))
    ran = subprocess.run(
        [sys.executable, "-P", "-m", "tests.cli.hostile_program"],
        input=json.dumps(list(places)),
        capture_output=True,
        text=True,
        env=env,
        check=True,
        timeout=400,
    )
    assert [str(path) for root in roots.values() for path in root.rglob(MARK)] == []
    return {(places.get(place, ""), command): Done(*rest) for place, command, *rest in json.loads(ran.stdout)}


def test_loading_litellm_reads_no_env_file_and_reaches_nothing(done: dict[tuple[str, str], Done]) -> None:
    assert done["", "litellm"].events == []


def test_there_are_enough_of_them() -> None:
    assert len(PROJECTS) >= 40


@pytest.mark.parametrize("name", PROJECTS)
def test_nothing_is_started_reached_or_run(done: dict[tuple[str, str], Done], name: str) -> None:
    for command in map(" ".join, COMMANDS):
        found = done[name, command]
        assert found.events == [], command
        assert found.code in (0, 2, None), (command, found.err)
        assert "Traceback" not in found.err
        assert forbidden(found.out + found.err) == []


@pytest.mark.parametrize("name", PROJECTS)
def test_what_would_act_is_not_in_force(done: dict[tuple[str, str], Done], name: str) -> None:
    settings: dict[str, Any] = json.loads(done[name, "settings"].out)
    if "error" in settings:
        assert len(settings["error"].splitlines()) == 1
        return
    assert settings["api_base"] == ""
    assert settings["models"] == ["", ""]
    assert settings["programs"] == 0
    assert settings["permission"] == "ask"
    assert settings["rules"] == [0, 0]
    assert settings["session"] == [0, 0, 0]
    assert "evil" not in settings["stages"]


@pytest.mark.parametrize("name", ["model", "summarizer", "fallbacks", "summarizer for one model"])
def test_it_is_said_in_one_line(done: dict[tuple[str, str], Done], name: str) -> None:
    said = [line for line in done[name, "loop"].err.splitlines() if "not trusted" in line]
    assert len(said) == 1
    assert "--trust" in said[0]


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["config", "show"], ["models", "list"]])
def test_modules_of_the_directory_are_not_python_s(tmp_path: Path, arguments: list[str]) -> None:
    project = tmp_path / "project"
    project.mkdir()
    PROJECTS["python shadows"](project)
    PROJECTS["files of other programs"](project)
    ran = nca(*arguments, home=tmp_path, cwd=project, OPENAI_API_KEY="k")
    assert ran.returncode == 0, ran.stderr
    assert not (project / MARK).exists()


def test_a_terminal_is_asked_once_and_again_after_a_change(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    file = project / ".nca" / "config.toml"

    def start() -> Tty:
        return ForkedTty(["nca"], environment=environment(tmp_path, OPENAI_API_KEY="k"), cwd=project)

    def leaves(tty: Tty) -> str:
        tty.sees("/help")
        tty.settle()
        whole = tty.text()
        tty.send("\x04")
        assert tty.ends() == 0
        return whole

    PROJECTS["model"](project)
    tty = start()
    tty.sees("y or n:")
    assert 'model.name = "openrouter/evil/model"' in tty.text()
    tty.line("n")
    assert "openai/" in leaves(tty)
    assert "y or n:" not in leaves(start())
    file.write_text('[model]\nname = "openai/other"\n')
    tty = start()
    tty.sees("y or n:")
    tty.line("y")
    assert "openai/other" in leaves(tty)
    whole = leaves(start())
    assert "y or n:" not in whole
    assert "openai/other" in whole
    file.write_text('[model]\nname = "openai/other"\nsummarizer = "openai/more"\n')
    tty = start()
    tty.sees("y or n:")
    # An empty line answers nothing: the question is asked again.
    tty.line("")
    tty.sees("y or n:", times=2)
    tty.line("n")
    leaves(tty)
    file.write_text(
        f'[[hooks]]\nevent = "Stop"\ncommand = "{"x" * 900}"\n[[hooks]]\nevent = "Stop"\ncommand = "seen"\n'
    )
    tty = start()
    tty.sees("y or n:")
    assert 'command = "seen"' in tty.text()
    tty.line("n")
    leaves(tty)
    store = tmp_path / "nca" / "data" / "trust.json"
    assert store.stat().st_mode & 0o777 == 0o600
    assert list(json.loads(store.read_text())["projects"]) == [str(project.resolve())]


def test_what_the_person_saves_through_nca_is_trusted_and_the_flag_is_for_one_run(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()

    def listed() -> str:
        return forked("models", "list", home=tmp_path, cwd=project, OPENAI_API_KEY="k").stdout

    forked("config", "set", "model.name", "openai/mine", home=tmp_path, cwd=project)
    assert "openai/mine" in listed()
    file = project / ".nca" / "config.toml"
    file.write_text(file.read_text() + 'summarizer = "openai/theirs"\n')
    assert "openai/mine" not in listed()
    forked("config", "set", "model.max_retries", "0", home=tmp_path, cwd=project)
    assert "openai/mine" not in listed()

    def ran(*more: str) -> str:
        base = "http://127.0.0.1:9/v1"
        return forked("run", "Hi", *more, home=tmp_path, cwd=project, OPENAI_API_KEY="k", OPENAI_API_BASE=base).stderr

    assert "not trusted" in ran()
    assert "not trusted" not in ran("--trust")
    assert "openai/mine" not in listed()
