"""Other agents' files of MCP servers, and adding nca to them: the plan, and the writing.

Every other character of the file stays. A file that cannot be kept so is left alone, and the caller shows what to add.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nca.config.document import read_bytes
from nca.config.paths import user_home
from nca.errors import ConfigError, UsageError, system_reason
from nca.humanize import one_line
from nca.mcp_server.json_insert import NotInsertable, as_json, inserted, read
from nca.safe_files import write_atomically

NAME = "nca"
KEPT_VARIABLES = ("NCA_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME")


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
    raise UsageError(
        f"{one_line(name, 40)!r} is not an agent that nca knows; valid: {', '.join(one.name for one in CLIENTS)}."
    )


def _plain(command: Command) -> dict[str, Any]:
    entry: dict[str, Any] = {"command": command.program, "args": list(command.arguments)}
    return entry | ({"env": dict(command.env)} if command.env else {})


def _typed(command: Command) -> dict[str, Any]:
    return {"type": "stdio"} | _plain(command)


def _of_opencode(command: Command) -> dict[str, Any]:
    entry: dict[str, Any] = {"type": "local", "command": [command.program, *command.arguments], "enabled": True}
    return entry | ({"environment": dict(command.env)} if command.env else {})


def below(variable: str, folder: str, file: str) -> Callable[[Mapping[str, str]], Path]:
    """A file in the folder that a variable names, or else in this one of the home directory."""

    def found(env: Mapping[str, str]) -> Path:
        given = env.get(variable, "")
        # The XDG specification says to ignore a relative path.
        is_used = given and (given.startswith("/") or not variable.startswith("XDG_"))
        return (Path(given) if is_used else user_home(env) / folder) / file

    return found


_of_gemini = below("GEMINI_CLI_HOME", "", ".gemini/settings.json")


def _opencode_file(env: Mapping[str, str]) -> Path:
    """The one that is there, of the two that opencode reads."""
    folder = below("XDG_CONFIG_HOME", ".config", "opencode")(env)
    with_comments = folder / "opencode.jsonc"
    return with_comments if os.path.exists(with_comments) else folder / "opencode.json"


_VSCODE = ("", "Library/Application Support") if sys.platform == "darwin" else ("XDG_CONFIG_HOME", ".config")


CLIENTS = (
    Client("claude", "Claude Code", below("CLAUDE_CONFIG_DIR", "", ".claude.json"), ("mcpServers", NAME), _typed),
    Client("codex", "Codex", below("CODEX_HOME", ".codex", "config.toml"), ("mcp_servers", NAME), _plain),
    Client("gemini", "Gemini CLI", _of_gemini, ("mcpServers", NAME), _plain),
    Client("opencode", "opencode", _opencode_file, ("mcp", NAME), _of_opencode),
    Client("cursor", "Cursor", below("", ".cursor", "mcp.json"), ("mcpServers", NAME), _plain),
    Client("vscode", "VS Code", below(*_VSCODE, "Code/User/mcp.json"), ("servers", NAME), _typed),
)


MOST_BYTES = 64 * 1024 * 1024
"""Claude Code's file holds a history of prompts too."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The plan of an installation.

    file      the agent's settings
    shown     the entry as a person would write it
    before    the file's text; None if there is no file
    after     the text with the entry; None if nothing is to be written
    is_there  the same entry is there already
    problem   why the file cannot be changed, or ""
    """

    client: Client
    file: Path
    shown: str
    before: str | None
    after: str | None
    is_there: bool = False
    problem: str = ""


def kept_variables(env: Mapping[str, str]) -> dict[str, str]:
    """nca's folders may depend on these variables; an agent may start nca without them."""
    return {name: str(Path(env[name]).absolute()) for name in KEPT_VARIABLES if env.get(name)}


def own_command(env: Mapping[str, str], words: Sequence[str] = ()) -> Command:
    """How another agent starts this nca, with these options of `nca mcp serve`.

    With whole paths: an editor may know another PATH than a shell.
    """
    arguments = ("mcp", "serve", *words) if words else ("mcp",)
    kept = kept_variables(env)
    if found := shutil.which("nca", path=env.get("PATH")):
        return Command(str(Path(found).absolute()), arguments, kept)
    return Command(sys.executable, ("-m", "nca", *arguments), kept)


def plan(client: Client, command: Command, env: Mapping[str, str]) -> Plan:
    """Raises ConfigError if the file cannot be read."""
    file = itself(client.file(env))
    entry = client.entry(command)
    before = text_of(file)
    is_toml = file.suffix == ".toml"
    shown = _as_toml(client.path, entry) if is_toml else as_json(client.path, entry)
    try:
        known = _read(before or "", is_toml=is_toml)
        there = _at(known, client.path)
        if there == entry:
            return Plan(client, file, shown, before, None, is_there=True)
        if there is not None:
            return Plan(client, file, shown, before, None, problem="it already has another entry of this name")
        after = _with_toml(before or "", shown, known, client.path, entry) if is_toml else None
        after = after if after is not None else inserted(before or "", client.path, entry)
    except NotInsertable as reason:
        return Plan(client, file, shown, before, None, problem=str(reason))
    return Plan(client, file, shown, before, after)


def write(wanted: Plan) -> Path | None:
    """Write the file, and return where its old content is, if there was any. Raises ConfigError."""
    assert wanted.after is not None
    return replace(wanted.file, wanted.before, wanted.after)


def replace(file: Path, before: str | None, after: str) -> Path | None:
    """Write `after` to a settings file that still holds `before`; None: there is none. As `write`."""
    _refuse_if_changed(file, before)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        backup = None
        if before is not None:
            # Only where a file is changed: the store comes with it.
            from nca.sessions.paths import unused

            backup = unused(file.with_name(f"{file.name}.before-nca"))
            shutil.copy2(file, backup)
        write_atomically(file, after.encode(), mode=None)
    except OSError as error:
        raise ConfigError(f"{file}: cannot be written ({system_reason(error)}); it was left as it was.") from error
    return backup


def remove(file: Path, before: str | None) -> None:
    """Remove a file that still holds `before`. Raises ConfigError."""
    _refuse_if_changed(file, before)
    try:
        file.unlink()
    except OSError as error:
        raise ConfigError(f"{file}: cannot be removed ({system_reason(error)}).") from error


def _refuse_if_changed(file: Path, before: str | None) -> None:
    if text_of(file) != before:
        raise ConfigError(f"{file}: another program has just changed it; nothing was written.", advice="Try again.")


def text_of(file: Path) -> str | None:
    """The text of a settings file; None if there is none. Raises ConfigError if it cannot be read."""
    raw = read_bytes(file, MOST_BYTES)
    try:
        return raw.decode() if raw is not None else None
    except UnicodeDecodeError:
        raise ConfigError(f"{file}: is not UTF-8; it was left alone.") from None


def itself(file: Path) -> Path:
    """The file that is to be changed: a link is kept, and what it points to is changed."""
    return file.resolve() if os.path.islink(file) else file


def _read(text: str, *, is_toml: bool) -> Any:
    if not is_toml:
        return read(text)
    import tomllib

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise NotInsertable(f"it is not TOML: {error}") from None


def _with_toml(text: str, shown: str, known: Mapping[str, Any], path: tuple[str, ...], entry: Mapping[str, Any]) -> str:
    """The table at the end of the text, which changes nothing before it. Raises NotInsertable."""
    servers = known.get(path[0], {})
    if not isinstance(servers, Mapping):
        raise NotInsertable(f"{path[0]} is not a table")
    newline = "\r\n" if "\r\n" in text else "\n"
    gap = "" if not text else newline if text.endswith("\n") else 2 * newline
    written = text + gap + newline.join([*shown.split("\n"), ""])
    expected = {**known, path[0]: {**servers, path[1]: dict(entry)}}
    if _read(written, is_toml=True) != expected:
        raise NotInsertable("its servers are not written as tables")
    return written


def _at(value: Any, path: tuple[str, ...]) -> Any:
    for key in path:
        if not isinstance(value, Mapping) or key not in value:
            return None
        value = value[key]
    return value


def _as_toml(path: tuple[str, ...], entry: Mapping[str, Any]) -> str:
    import tomlkit

    return tomlkit.dumps({path[0]: {path[1]: dict(entry)}}).strip()
