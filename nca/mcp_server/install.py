"""Add nca to the MCP servers of another agent: what would be added and where, and the writing.

Every other character of the file stays. A file that cannot be kept so is left alone, and the caller shows what to add.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nca.errors import ConfigError
from nca.mcp_server.clients import KEPT_VARIABLES, Client, Command
from nca.mcp_server.json_insert import NotInsertable, inserted, read
from nca.safe_files import open_ordinary, write_atomically

MOST_BYTES = 64 * 1024 * 1024
"""Claude Code's file holds a history of prompts too."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What an installation would do.

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


def own_command(env: Mapping[str, str], words: Sequence[str] = ()) -> Command:
    """How another agent starts this nca, with these options of `nca mcp serve`.

    With whole paths: an editor may know another PATH than a shell.
    """
    arguments = ("mcp", "serve", *words) if words else ("mcp",)
    kept = {name: str(Path(env[name]).absolute()) for name in KEPT_VARIABLES if env.get(name)}
    if found := shutil.which("nca", path=env.get("PATH")):
        return Command(str(Path(found).absolute()), arguments, kept)
    return Command(sys.executable, ("-m", "nca", *arguments), kept)


def plan(client: Client, command: Command, env: Mapping[str, str]) -> Plan:
    """Raises ConfigError if the file cannot be read."""
    file = client.file(env)
    file = itself(file)
    entry = client.entry(command)
    before = text_of(file)
    is_toml = file.suffix == ".toml"
    shown = _as_toml(client.path, entry) if is_toml else _as_json(client.path, entry)
    try:
        known = _read(before or "", is_toml=is_toml)
        there = _at(known, client.path)
        if there == entry:
            return Plan(client, file, shown, before, None, is_there=True)
        if there is not None:
            return Plan(client, file, shown, before, None, problem="it has another entry of this name already")
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
            backup = _unused(file.with_name(f"{file.name}.before-nca"))
            shutil.copy2(file, backup)
        write_atomically(file, after.encode(), mode=None)
    except OSError as error:
        raise ConfigError(f"{file}: cannot be written ({error.strerror}); it was left as it was.") from error
    return backup


def remove(file: Path, before: str | None) -> None:
    """Remove a file that still holds `before`. Raises ConfigError."""
    _refuse_if_changed(file, before)
    try:
        file.unlink()
    except OSError as error:
        raise ConfigError(f"{file}: cannot be removed ({error.strerror}).") from error


def _refuse_if_changed(file: Path, before: str | None) -> None:
    if text_of(file) != before:
        raise ConfigError(f"{file}: another program has just changed it; nothing was written.", advice="Try again.")


def text_of(file: Path) -> str | None:
    """The text of a settings file; None if there is none. Raises ConfigError if it cannot be read."""
    try:
        with open_ordinary(file) as opened:
            raw = opened.read(MOST_BYTES + 1)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise ConfigError(f"{file}: cannot be read ({getattr(error, 'strerror', None) or error}).") from error
    if len(raw) > MOST_BYTES:
        raise ConfigError(f"{file}: is larger than {MOST_BYTES >> 20} MB; it was left alone.")
    try:
        return raw.decode()
    except UnicodeDecodeError:
        raise ConfigError(f"{file}: is not UTF-8; it was left alone.") from None


def itself(file: Path) -> Path:
    """The file that is to be changed: a link is kept, and what it points to is changed."""
    return file.resolve() if file.is_symlink() else file


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
        raise NotInsertable(f"{path[0]} is no table")
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


def _as_json(path: tuple[str, ...], entry: Mapping[str, Any]) -> str:
    value: Any = entry
    for key in reversed(path):
        value = {key: value}
    return json.dumps(value, indent=2, ensure_ascii=False)


def _as_toml(path: tuple[str, ...], entry: Mapping[str, Any]) -> str:
    import tomlkit

    return tomlkit.dumps({path[0]: {path[1]: dict(entry)}}).strip()


def _unused(path: Path) -> Path:
    number, found = 1, path
    while found.exists():
        number += 1
        found = path.with_name(f"{path.name}-{number}")
    return found
