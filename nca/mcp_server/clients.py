"""Other agents that can start an MCP server: where each keeps its servers, and what an entry for nca looks like there.

The places are those of Claude Code 2.1, Codex 0.140, Gemini CLI 0.40, opencode 1.2, Cursor 2 and VS Code 1.110, by
their documentation.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nca.config.paths import user_home
from nca.errors import UsageError

NAME = "nca"
KEPT_VARIABLES = ("NCA_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME")
"""Where nca keeps things may depend on these; an agent may start the server without them."""


@dataclass(frozen=True, slots=True)
class Command:
    """The command line that starts the server, and the variables that it needs."""

    program: str
    arguments: tuple[str, ...]
    env: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Client:
    """An agent.

    file   its settings, which may not exist
    path   the keys to the entry
    entry  the entry for a command
    """

    name: str
    title: str
    file: Callable[[Mapping[str, str]], Path]
    path: tuple[str, ...]
    entry: Callable[[Command], dict[str, Any]]


def client_named(name: str) -> Client:
    """Raises UsageError, which names those that there are."""
    for client in CLIENTS:
        if client.name == name:
            return client
    raise UsageError(f"{name[:40]!r} is not an agent that nca knows; valid: {', '.join(one.name for one in CLIENTS)}.")


def _plain(command: Command) -> dict[str, Any]:
    entry: dict[str, Any] = {"command": command.program, "args": list(command.arguments)}
    return entry | ({"env": dict(command.env)} if command.env else {})


def _typed(command: Command) -> dict[str, Any]:
    return {"type": "stdio"} | _plain(command)


def _of_opencode(command: Command) -> dict[str, Any]:
    entry: dict[str, Any] = {"type": "local", "command": [command.program, *command.arguments], "enabled": True}
    return entry | ({"environment": dict(command.env)} if command.env else {})


def _below(variable: str, folder: str, file: str) -> Callable[[Mapping[str, str]], Path]:
    """A file in the folder that a variable names, or else in this one of the home directory."""

    def found(env: Mapping[str, str]) -> Path:
        base = Path(env[variable]) if env.get(variable) else user_home(env) / folder
        return base / file

    return found


def _of_gemini(env: Mapping[str, str]) -> Path:
    home = Path(env["GEMINI_CLI_HOME"]) if env.get("GEMINI_CLI_HOME") else user_home(env)
    return home / ".gemini" / "settings.json"


def _opencode_file(env: Mapping[str, str]) -> Path:
    """The one that is there, of the two that opencode reads."""
    folder = _config_home(env) / "opencode"
    with_comments = folder / "opencode.jsonc"
    return with_comments if with_comments.exists() else folder / "opencode.json"


def _vscode_file(env: Mapping[str, str]) -> Path:
    if sys.platform == "darwin":
        base = user_home(env) / "Library" / "Application Support"
    else:
        base = _config_home(env)
    return base / "Code" / "User" / "mcp.json"


def _config_home(env: Mapping[str, str]) -> Path:
    given = env.get("XDG_CONFIG_HOME", "")
    return Path(given) if given and Path(given).is_absolute() else user_home(env) / ".config"


CLIENTS = (
    Client("claude", "Claude Code", _below("CLAUDE_CONFIG_DIR", "", ".claude.json"), ("mcpServers", NAME), _typed),
    Client("codex", "Codex", _below("CODEX_HOME", ".codex", "config.toml"), ("mcp_servers", NAME), _plain),
    Client("gemini", "Gemini CLI", _of_gemini, ("mcpServers", NAME), _plain),
    Client("opencode", "opencode", _opencode_file, ("mcp", NAME), _of_opencode),
    Client("cursor", "Cursor", _below("", ".cursor", "mcp.json"), ("mcpServers", NAME), _plain),
    Client("vscode", "VS Code", _vscode_file, ("servers", NAME), _typed),
)
