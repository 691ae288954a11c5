"""Which commands look for models on this machine: only those that need one, and only at the usual ports."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from nca.models.providers import LOCAL_SERVERS
from tests.cli.command import environment
from tests.terminal.tty import ROOT

PROGRAM = """
import contextlib, io, json, sys
reached = []
sys.addaudithook(lambda name, given: reached.append(list(given[1][:2])) if name == "socket.connect" else None)
from nca.cli.app import run
with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
    try:
        run(json.loads(sys.argv[1]))
    except SystemExit:
        pass
print(json.dumps(reached))
"""
PORTS = sorted(int(server.list_url.split(":")[2].split("/")[0]) for server in LOCAL_SERVERS)
ELSEWHERE = "http://127.0.0.1:9/v1"


def reached(arguments: list[str], home: Path, project: Path) -> list[tuple[str, int]]:
    """Every address that a command connected to, without any key in the environment."""
    ran = subprocess.run(
        [sys.executable, "-P", "-c", PROGRAM, json.dumps(arguments)],
        capture_output=True,
        text=True,
        env=environment(home, PYTHONPATH=str(ROOT)),
        cwd=project,
        stdin=subprocess.DEVNULL,
        check=True,
        timeout=100,
    )
    return [(str(host), int(port)) for host, port in json.loads(ran.stdout)]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project that nobody has trusted, which names endpoints everywhere it can."""
    folder = tmp_path / "project"
    (folder / ".nca").mkdir(parents=True)
    (folder / ".nca" / "config.toml").write_text(f'[model]\napi_base = "{ELSEWHERE}"\n')
    variables = f"OPENAI_API_BASE={ELSEWHERE}\nOPENAI_BASE_URL={ELSEWHERE}\nOLLAMA_HOST=127.0.0.1:9\n"
    for name in (".env", ".nca/.env"):
        (folder / name).write_text(variables)
    return folder


@pytest.mark.parametrize(
    "arguments",
    [["--help"], ["--version"], ["loop", "--help"], ["config", "show"], ["sessions", "list"], ["config", "path"]],
)
def test_what_needs_no_model_looks_for_none(tmp_path: Path, project: Path, arguments: list[str]) -> None:
    assert reached(arguments, tmp_path, tmp_path) == []
    assert reached(arguments, tmp_path, project) == []


def test_a_model_is_looked_for_at_the_usual_ports_only(tmp_path: Path, project: Path) -> None:
    assert sorted(port for _, port in reached(["models", "list"], tmp_path, tmp_path)) == PORTS
    # An untrusted project's endpoint is refused, or the usual ports are asked; its own is not.
    assert all(port in PORTS for _, port in reached(["models", "list"], tmp_path, project))
    (project / ".nca" / "config.toml").write_text("")
    assert sorted(port for _, port in reached(["models", "list"], tmp_path, project)) == PORTS
