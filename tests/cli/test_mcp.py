"""MCP servers with the whole program: none starts unasked, and none outlives it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from nca.config.example import toml_value
from nca.testing.provider import Provider
from nca.testing.scripted import Answer, in_order
from tests.testing.forks import forked, shared
from tests.tools.test_mcp import ROOT, is_running

CALL = Answer(tool_calls=[("mcp__test__child", {})])


@pytest.fixture
def provider() -> Iterator[Provider]:
    with Provider() as running:
        yield running


def server_table(mark: Path) -> str:
    """A server that leaves its process's number in a file where it is started."""
    program = f"import os, pathlib; pathlib.Path({str(mark)!r}).write_text(str(os.getpid()))\n"
    program += "from tests.tools.mcp_server import main; main()"
    args = toml_value(["-c", program])
    return f"[mcp.servers.test]\ncommand = {toml_value(sys.executable)}\nargs = {args}\ncwd = {toml_value(str(ROOT))}\n"


def write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def run(provider: Provider, home: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    given = ("run", "Go.", "-m", "openai/test-model", "--context-window", "32000", *arguments)
    return forked(*given, home=home, OPENAI_API_KEY="k", OPENAI_API_BASE=provider.url)


def test_nca_mcp_alone_is_a_server_and_a_command_of_it_is_none(tmp_path: Path) -> None:
    client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}
    asked = json.dumps({"jsonrpc": "2.0", "id": 7, "method": "initialize", "params": client}) + "\n"
    for words in ((), ("serve",)):
        (answer,) = forked("mcp", *words, home=tmp_path, stdin=asked).stdout.splitlines()
        assert json.loads(answer)["id"] == 7
    listed = forked("mcp", "list", home=tmp_path, stdin=asked)
    assert (listed.returncode, listed.stdout.partition(" To add one")[0]) == (0, "No MCP servers.")


def test_one_message_has_the_tools_and_leaves_no_process(provider: Provider, tmp_path: Path) -> None:
    mark = tmp_path / "started"
    write(tmp_path / "nca" / "config.toml", server_table(mark))
    provider.script = in_order(CALL, "Done.")
    done = run(provider, tmp_path, "--permission", "auto")
    assert (done.returncode, done.stdout) == (0, "Done.\n"), done.stderr
    child = provider.requests[1]["messages"][-1]["content"]
    for pid in (int(mark.read_text()), int(child)):
        while is_running(pid):
            time.sleep(0.01)
    assert "pid " not in done.stderr


def test_where_nobody_sits_a_form_is_declined_and_a_question_to_the_model_is_refused(
    provider: Provider, tmp_path: Path
) -> None:
    rules = "".join(f'[[permissions.allow]]\ntool = "mcp__test__{name}"\n' for name in ("books", "thinks"))
    write(tmp_path / "nca" / "config.toml", rules + server_table(tmp_path / "started"))
    book = Answer(tool_calls=[("mcp__test__books", {"greeting": "Hi"}), ("mcp__test__thinks", {})])
    provider.script = in_order(book, "Done.")
    done = run(provider, tmp_path)
    assert (done.returncode, done.stdout) == (1, "Done.\n"), "what nobody could approve did not happen"
    declined, refused = (message["content"] for message in provider.requests[1]["messages"][-2:])
    assert declined == "decline"
    assert "it needs the person's approval, and nobody can give it here" in refused
    said = "The MCP server test asked: Hi! Where to? Nobody can answer here: declined."
    assert said in done.stderr


def test_a_project_starts_none_before_it_is_trusted(provider: Provider, tmp_path: Path) -> None:
    mark = tmp_path / "started"
    write(tmp_path / ".nca" / "config.toml", server_table(mark))
    provider.script = in_order("Done.")
    done = run(provider, tmp_path)
    assert "Settings of this project wait for your trust: mcp.servers" in done.stderr
    assert not mark.exists()
    assert run(provider, tmp_path, "--trust").returncode == 0
    assert mark.exists()


@pytest.mark.parametrize("command", [("--help",), ("config", "show"), ("sessions", "list"), ("--version",)])
def test_commands_that_only_show_start_none(command: tuple[str, ...], tmp_path: Path) -> None:
    mark = tmp_path / "started"
    write(tmp_path / "nca" / "config.toml", server_table(mark))
    assert forked(*command, home=tmp_path).returncode == 0
    assert not mark.exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_run_that_is_ended_takes_its_servers_along(
    number: signal.Signals, provider: Provider, tmp_path: Path
) -> None:
    mark = tmp_path / "started"
    write(tmp_path / "nca" / "config.toml", server_table(mark))
    provider.script = in_order(Answer(tool_calls=[("mcp__test__slow", {"seconds": 600})]), "Done.")
    words = ("run", "Go.", "-m", "openai/test-model", "--permission", "auto", "--stream", "ndjson")
    child = shared().start(*words, home=tmp_path, cwd=tmp_path, OPENAI_API_KEY="k", OPENAI_API_BASE=provider.url)
    while '"tool_started"' not in child.text("stdout"):
        assert not child.ended.is_set()
        time.sleep(0.01)
    child.send(number)
    child.wait()
    while is_running(int(mark.read_text())):
        time.sleep(0.01)
