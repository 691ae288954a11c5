"""Which file defines each MCP server, and adding a definition to a file or removing it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nca.config.document import Document, read_document, shown_path
from nca.config.paths import project_config_file, user_config_file
from nca.config.projects import read_project
from nca.config.saving import change_file
from nca.config.servers import named_servers
from nca.config.value_types import InvalidValue
from nca.errors import ConfigError


def defining_files(project: Path, env: Mapping[str, str]) -> dict[str, list[Path]]:
    """The files that define each server; the last one counts. Raises ConfigError."""
    own = read_document(user_config_file(env).absolute())
    found: dict[str, list[Path]] = {}
    for document in [*([own] if own is not None else ()), *read_project(project.absolute(), env)[0]]:
        for name in _tables(document.data):
            files = found.setdefault(name, [])
            # With NCA_HOME=~/.nca, the project file of ~ is the user's file.
            if document.path not in files:
                files.append(document.path)
    return found


def add_server(path: Path, name: str, fields: Mapping[str, Any], *, is_users_own: bool) -> None:
    """Add `[mcp.servers.NAME]` with these fields to a settings file, which is created if missing.

    Raises ConfigError, with the file unchanged, if a field is not valid or the file defines the server already.
    """
    try:
        named_servers().read({name: fields})
    except InvalidValue as invalid:
        raise ConfigError(f"The MCP server{invalid}") from None
    document = _document(path)
    if name in _tables(document.data):
        raise ConfigError(
            f"{document.place(('mcp', 'servers', name))}: there is an MCP server {name} already.",
            advice=f"To replace it: nca mcp remove {name}, then add it again.",
        )

    def add(data: dict[str, Any]) -> None:
        table = data
        for part in ("mcp", "servers"):
            table = table.setdefault(part, {})
            if not isinstance(table, dict):
                raise ConfigError(f"{shown_path(path)}: {part} is not a table there; the file was left.")
        table[name] = dict(fields)

    change_file(path, document, add, is_users_own=is_users_own)


def remove_server(path: Path, name: str, *, is_users_own: bool) -> None:
    """Remove `[mcp.servers.NAME]` from a settings file that has it. Raises ConfigError."""

    def remove(data: dict[str, Any]) -> None:
        del data["mcp"]["servers"][name]
        if not data["mcp"]["servers"]:
            del data["mcp"]["servers"]
        if not data["mcp"]:
            del data["mcp"]

    change_file(path, _document(path), remove, is_users_own=is_users_own)


def file_to_change(name: str, project: Path, env: Mapping[str, str]) -> Path:
    """The settings file that defines a server, the one that counts. Raises ConfigError."""
    files = defining_files(project, env)
    if name not in files:
        there = f"There are: {', '.join(files)}." if files else "None is set up; `nca mcp add` adds one."
        raise ConfigError(f"There is no MCP server {name[:40]!r}.", advice=there)
    path = files[name][-1]
    if path not in (project_config_file(project.absolute()), user_config_file(env).absolute()):
        raise ConfigError(f"{shown_path(path)} defines {name}; other agents read it too.", advice="Edit that file.")
    return path


def _document(path: Path) -> Document:
    return read_document(path) or Document(path, "", {})


def _tables(data: Mapping[str, Any]) -> Mapping[str, Any]:
    section = data.get("mcp")
    servers = section.get("servers") if isinstance(section, Mapping) else None
    return servers if isinstance(servers, Mapping) else {}
