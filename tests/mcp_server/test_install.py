"""`nca mcp install` for each agent."""

from __future__ import annotations

import json
import stat
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

from nca.cli.mcp import app as mcp_app
from nca.errors import ConfigError, UsageError
from nca.mcp_server.install import CLIENTS, client_named, own_command, plan, write

outer = typer.Typer()
outer.add_typer(mcp_app, name="mcp")
AT_HOME = {
    "claude": ".claude.json",
    "codex": ".codex/config.toml",
    "gemini": ".gemini/settings.json",
    "opencode": ".config/opencode/opencode.json",
    "cursor": ".cursor/mcp.json",
    "vscode": ".config/Code/User/mcp.json",
}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home directory with `nca` on the PATH."""
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "NCA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    program = tmp_path / "bin" / "nca"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent))
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def install(*words: str) -> Result:
    result = CliRunner().invoke(outer, ["mcp", "install", *words])
    if isinstance(result.exception, UsageError):
        raise result.exception
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def entry_in(file: Path) -> Any:
    text = file.read_text()
    found = tomllib.loads(text) if file.suffix == ".toml" else json.loads(text)
    return found[next(key for key in ("mcpServers", "mcp_servers", "mcp", "servers") if key in found)]["nca"]


@pytest.mark.skipif(sys.platform != "linux", reason="VS Code has another folder elsewhere")
@pytest.mark.parametrize("agent", AT_HOME)
def test_each_agent_gets_an_entry_once(home: Path, agent: str) -> None:
    assert set(AT_HOME) == {client.name for client in CLIENTS}
    file, program = home / AT_HOME[agent], str(home / "bin" / "nca")
    asked = install(agent)
    assert asked.exit_code == 1
    assert str(file) in asked.stdout
    assert program in asked.stdout
    assert "Nothing was changed." in asked.stdout
    assert not file.exists()
    assert f"Added nca to {file}." in install(agent, "--yes").stdout
    entry = entry_in(file)
    command = entry["command"] if isinstance(entry["command"], list) else [entry["command"], *entry["args"]]
    assert command == [program, "mcp"]
    assert entry.get("type") == {"claude": "stdio", "vscode": "stdio", "opencode": "local"}.get(agent)
    written = file.read_bytes()
    again = install(agent, "--yes")
    assert again.exit_code == 0
    assert "already has nca" in again.stdout
    assert file.read_bytes() == written
    assert [one.name for one in file.parent.glob("*before-nca*")] == []


def test_an_agent_may_see_more_than_its_project(home: Path, tmp_path: Path) -> None:
    assert (
        "read your sessions of the project that you start it in. More: --all, --directory." in install("claude").stdout
    )
    asked = install("claude", "--directory", str(tmp_path))
    assert f"Claude Code can then read your sessions of {tmp_path}." in asked.stdout
    assert f"--directory={tmp_path}" in asked.stdout
    assert "your sessions of all projects." in install("claude", "--all", "--yes").stdout
    assert entry_in(home / ".claude.json")["args"] == ["mcp", "serve", "--all"]
    with pytest.raises(UsageError, match="there is no folder"):
        install("claude", "--directory", str(tmp_path / "missing"))
    with pytest.raises(UsageError, match="--all and --directory exclude each other"):
        install("claude", "--all", "--directory", str(tmp_path))


def test_the_rest_of_a_file_stays_and_is_copied_before(home: Path) -> None:
    config = home / ".codex" / "config.toml"
    config.parent.mkdir()
    before = '# mine\nmodel = "gpt-5"   # fast\n\n[mcp_servers.docs]\ncommand = "docs"\n'
    config.write_text(before)
    config.chmod(0o640)
    said = install("codex", "--yes").stdout
    assert f"The old version is in {config}.before-nca." in said
    assert config.read_text().startswith(f"{before}\n[")
    assert set(tomllib.loads(config.read_text())["mcp_servers"]) == {"docs", "nca"}
    assert stat.S_IMODE(config.stat().st_mode) == 0o640
    assert config.with_name("config.toml.before-nca").read_text() == before
    real = home / "dotfiles" / "gemini.json"
    real.parent.mkdir()
    real.write_text('{\n  // mine\n  "theme": "Dark",\n}\n')
    link = home / ".gemini" / "settings.json"
    link.parent.mkdir()
    link.symlink_to(real)
    install("gemini", "--yes")
    assert link.is_symlink()
    assert real.read_text().startswith('{\n  // mine\n  "theme": "Dark",\n  "mcpServers": {')


@pytest.mark.parametrize(
    ("agent", "text", "reason"),
    [
        ("cursor", '{"mcpServers": {"nca": {"command": "other"}}}', "another entry of this name"),
        ("cursor", '{"mcpServers": ', "not whole JSON"),
        ("cursor", '{"mcpServers": []}', "mcpServers is not an object"),
        ("codex", 'mcp_servers = {docs = {command = "docs"}}\n', "not TOML|not written as tables"),
        ("codex", "model = \n", "not TOML"),
        ("codex", "mcp_servers = 1\n", "mcp_servers is not a table"),
    ],
)
def test_a_file_that_cannot_be_kept_is_left_alone(home: Path, agent: str, text: str, reason: str) -> None:
    file = home / AT_HOME[agent]
    file.parent.mkdir()
    file.write_text(text)
    result = install(agent, "--yes")
    assert result.exit_code == 1
    [line] = [line for line in result.output.splitlines() if "was not changed" in line]
    assert any(part in line for part in reason.split("|"))
    assert str(home / "bin" / "nca") in result.output
    assert file.read_text() == text
    assert len(list(file.parent.iterdir())) == 1


def test_variables_of_the_places_and_of_nca(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NCA_HOME", str(home / "other"))
    monkeypatch.setenv("CODEX_HOME", str(home / "codex"))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(home / "claude"))
    monkeypatch.setenv("GEMINI_CLI_HOME", str(home / "gemini"))
    for agent, file in (("codex", "codex/config.toml"), ("claude", "claude/.claude.json")):
        install(agent, "--yes")
        assert entry_in(home / file)["env"] == {"NCA_HOME": str(home / "other")}
    install("gemini", "--yes")
    assert entry_in(home / "gemini" / ".gemini" / "settings.json")
    comments = home / ".config" / "opencode" / "opencode.jsonc"
    comments.parent.mkdir(parents=True)
    comments.write_text("{}")
    install("opencode", "--yes")
    assert entry_in(comments)["environment"] == {"NCA_HOME": str(home / "other")}
    monkeypatch.setenv("PATH", "")
    assert own_command({"HOME": str(home)}).arguments == ("-m", "nca", "mcp")


def test_what_cannot_be_written_says_so_in_one_line(home: Path) -> None:
    with pytest.raises(UsageError, match="not an agent that nca knows; valid: claude, codex"):
        install("emacs")
    file = home / ".cursor" / "mcp.json"
    file.mkdir(parents=True)
    with pytest.raises(ConfigError, match="cannot be read"):
        install("cursor", "--yes")
    env = {"HOME": str(home), "PATH": str(home / "bin")}
    wanted = plan(client_named("gemini"), own_command(env), env)
    (home / ".gemini").mkdir()
    wanted.file.write_text("{}")
    with pytest.raises(ConfigError, match="another program has just changed it; nothing was written"):
        write(wanted)
    assert wanted.file.read_text() == "{}"
