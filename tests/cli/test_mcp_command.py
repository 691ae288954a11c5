"""`nca mcp list`, `add` and `remove` as a person uses them."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from nca.cli.mcp import app as mcp_app
from nca.errors import UsageError
from tests.testing.forks import standing
from tests.tools.test_mcp import PROGRAM, ROOT

outer = typer.Typer()
outer.add_typer(mcp_app, name="mcp")
ENDS = "import os, sys; sys.exit('no such luck, ' + os.environ['MY_TOKEN'])"


class Shell:
    """Runs `nca mcp …` in a project of its own, or raises what the command raised."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.project = root / "project"
        self.project.mkdir()
        self.own = root / "home" / "config.toml"
        self.theirs = self.project / ".nca" / "config.toml"
        monkeypatch.chdir(self.project)
        monkeypatch.setenv("NCA_HOME", str(root / "home"))

    def __call__(self, *words: str) -> Result:
        result = CliRunner().invoke(outer, ["mcp", *words])
        if isinstance(result.exception, UsageError):
            raise result.exception
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return result


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    return Shell(tmp_path, monkeypatch)


def test_a_server_is_added_tried_and_removed(shell: Shell) -> None:
    assert "nca mcp add NAME" in shell("list").stdout
    said = shell("add", "files", "--env", f"PYTHONPATH={ROOT}", "--env", "TOKEN=hunter2", "--", *standing(PROGRAM))
    assert said.stdout.startswith(f"Saved the MCP server files in {shell.own}.")
    shown = shell("list", "--check")
    assert shown.exit_code == 0
    assert f"{PROGRAM}; env: PYTHONPATH, TOKEN\n  in {shell.own}\n" in shown.stdout
    assert "files: ready; tools: echo, slow" in shown.stdout
    assert "hunter2" not in shown.output
    shell("add", "gone", "--", "no-such-program")
    shown = shell("list", "--check")
    assert shown.exit_code == 1
    assert "gone: failed: No such file or directory: no-such-program\n" in shown.stdout
    shell("add", "ends", "--env", "MY_TOKEN=hunter2hunter2", "--", sys.executable, "-c", ENDS)
    shown = shell("list", "--check")
    assert "ends: failed: it ended with exit code 1\n" in shown.stdout
    assert "\n  no such luck, [redacted MY_TOKEN]\n" in shown.stdout
    assert "hunter2" not in shown.output
    assert f"Removed the MCP server gone from {shell.own}." in shell("remove", "gone").stdout
    assert "gone" not in shell("list").stdout


def test_a_projects_server_keeps_the_trust_in_it(shell: Shell) -> None:
    shell("add", "web", "--project", "--url", "https://example.org/mcp", "--header", "X-Key=${MY_KEY}")
    assert "web: https://example.org/mcp; headers: X-Key\n" in shell("list").stdout
    assert not shell.own.exists()
    assert f"no effect here: {shell.theirs} defines web" in shell("add", "web", "--", "x").stderr
    (shell.project / ".mcp.json").write_text(json.dumps({"mcpServers": {"other": {"command": "x"}}}))
    shown = shell("list")
    assert "wait for your trust: mcp.servers (" in shown.stderr
    assert "other" not in shown.stdout
    waits = shell("add", "more", "--project", "--", "x")
    assert "wait for your trust: mcp.servers" in waits.stderr
    assert "`nca config trust`" in waits.stderr
    assert "To try it" not in waits.stdout
    assert str(shell.theirs) in shell("remove", "web").stdout
    assert str(shell.own) in shell("remove", "web").stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("a",), "The MCP server a: either command or url must be given."),
        (("a b", "--", "x"), "The MCP server a b: a server's name is 1 to 32 letters, digits, _ and -."),
        (("a", "--url", "example.org"), "url must begin with http:// or https://"),
        (("a", "--url", "http://x", "--", "x"), "not both"),
        (("a", "--url", "http://x", "--env", "K=hunter2"), "--env is for a program"),
        (
            ("a", "--header", "K=hunter2", "--", "x"),
            "--header, --token-variable and --client-id are for an HTTP server",
        ),
        (("a", "--env", "hunter2", "--", "x"), "--env number 1 is not NAME=VALUE."),
        (("a", "--user", "--project", "--", "x"), "--user and --project exclude each other."),
    ],
)
def test_a_mistake_is_one_line_and_writes_nothing(shell: Shell, words: tuple[str, ...], said: str) -> None:
    with pytest.raises(UsageError) as caught:
        shell("add", *words)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "hunter2" not in str(caught.value)
    assert not shell.own.exists()
    assert not shell.theirs.exists()
