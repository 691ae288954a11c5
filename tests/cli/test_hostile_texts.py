"""Stored, configured and typed text reaches the terminal as text only, through every command."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.cli.command import environment
from tests.terminal.payloads import PAYLOADS, forbidden
from tests.terminal.tty import ROOT

TYPED = [
    payload for payload in PAYLOADS if payload.encode("utf-8", "replace").decode() == payload and "\0" not in payload
]
"""Arguments of programs cannot hold a NUL; of surrogates only those that stand for undecodable bytes."""

LOOKING = [
    ["sessions", "list", "--all"],
    ["sessions", "list", "--json"],
    ["sessions", "search", "find"],
    ["sessions", "search", "find", "--all", "--limit", "200"],
    ["models"],
    ["models", "list"],
    ["doctor"],
    ["doctor", "--json"],
    ["config", "show"],
    ["config", "path"],
    ["loop", "--resume"],
    ["loop", "--continue"],
]
FORMS = [
    ["%"],
    ["config", "get", "%"],
    ["config", "set", "%", "1"],
    ["config", "set", "model.name", "%"],
    ["config", "set", "context.target_ratio", "%"],
    ["sessions", "show", "%"],
    ["sessions", "search", "%"],
    ["sessions", "export", "%"],
    ["sessions", "import", "%"],
    ["sessions", "delete", "%"],
    ["compact", "%"],
    ["models", "get", "%"],
    ["run", "--session", "%", "hello"],
    ["run", "--permission", "%", "hello"],
    ["run", "--stream", "%", "hello"],
    ["loop", "--model", "%", "--nothing%"],
    ["loop", "--config", "%"],
]


def typed() -> Iterator[tuple[list[str], str]]:
    """Each form with its share of the payloads, which together are all of them, and with one that is in every share."""
    for number, form in enumerate(FORMS):
        for payload in {*TYPED[number :: len(FORMS)], "\x1b]0;1337\x07"}:
            yield form, payload


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[list[str], str]]:
    """Every command and what it wrote, from one process."""
    home, project = tmp_path_factory.mktemp("home"), tmp_path_factory.mktemp("project")
    (project / ".nca" / "skills").mkdir(parents=True)
    keys = "".join(f"{json.dumps(f'k{payload}')} = 1\n" for payload in TYPED if payload.isprintable() is False)
    (project / ".nca" / "config.toml").write_text(
        keys.encode("utf-8", "surrogatepass").decode("utf-8", "replace"), encoding="utf-8"
    )
    commands = LOOKING + [[word.replace("%", payload) for word in form] for form, payload in typed()]
    ran = subprocess.run(
        [sys.executable, "-P", "-m", "tests.cli.hostile_texts_program"],
        input=json.dumps(commands),
        capture_output=True,
        text=True,
        env=environment(home, PYTHONPATH=str(ROOT), OPENAI_API_KEY="k"),
        cwd=project,
        check=False,
        timeout=400,
    )
    assert ran.returncode == 0, ran.stderr
    return [(command, text) for command, text in json.loads(ran.stdout)]


def test_each_command_has_written_something(written: list[tuple[list[str], str]]) -> None:
    silent = [command for command, text in written if not text and command[:2] != ["config", "set"]]
    assert silent == []


def test_nothing_forbidden_was_written(written: list[tuple[list[str], str]]) -> None:
    found = {" ".join(command)[:60]: leaks[:3] for command, text in written if (leaks := forbidden(text))}
    assert found == {}
