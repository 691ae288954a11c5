"""The files of a project's settings: `.gemini/settings.json`, `.mcp.json`, `.claude/settings.json`, `.nca/config.toml`.

Only the MCP servers of the first two count. The first three were written for other programs: what nca cannot use of
them is a note, no error.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from nca.config.claude_settings import claude_documents
from nca.config.document import Document, read_bytes, read_document, shown_name, shown_path
from nca.config.paths import project_config_file
from nca.config.servers import NAME, named_servers
from nca.errors import ConfigError

MCP_FILE, GEMINI_FILE = ".mcp.json", ".gemini/settings.json"
_FIELDS = ("command", "args", "env", "cwd", "url", "headers")
"""What an entry of `mcpServers` shares with a table of `[mcp.servers]`."""


def read_project(directory: Path, env: Mapping[str, str]) -> tuple[list[Document], list[str]]:
    """The documents of a project, the later ones more important, and notes. Raises ConfigError for nca's own file."""
    notes: list[str] = []
    own = read_document(project_config_file(directory))
    servers = [_servers(directory / name, notes) for name in (GEMINI_FILE, MCP_FILE)]
    found = [*servers, *claude_documents(directory, env, notes, is_own=False), own]
    return [document for document in found if document is not None], notes


def _servers(path: Path, notes: list[str]) -> Document | None:
    try:
        raw = read_bytes(path)
        data = json.loads(raw.decode("utf-8-sig")) if raw is not None else {}
    except (ConfigError, ValueError, RecursionError) as error:
        notes.append(f"{shown_path(path)} was ignored: {error if isinstance(error, ConfigError) else 'it is no JSON'}.")
        return None
    entries = data.get("mcpServers") if isinstance(data, dict) else None
    servers = dict(_usable(entries, path, notes)) if isinstance(entries, Mapping) else {}
    return Document(path, "", {"mcp": {"servers": servers}}) if servers else None


def _usable(entries: Mapping[str, Any], path: Path, notes: list[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each entry as a table of `[mcp.servers]`."""
    for name, entry in entries.items():
        table = {field: entry[field] for field in _FIELDS if field in entry} if isinstance(entry, Mapping) else {}
        if isinstance(entry, Mapping) and entry.get("disabled") is True:
            table["enabled"] = False
        # Gemini CLI's `url` is an SSE server's.
        is_gemini = path.name != MCP_FILE
        if is_gemini and isinstance(entry, Mapping) and "httpUrl" in entry:
            table["url"] = entry["httpUrl"]
        try:
            if not NAME.fullmatch(name):
                raise ValueError("a server's name is 1 to 32 letters, digits, _ and -")
            if isinstance(entry, Mapping) and entry.get("type") == "sse":
                raise ValueError("SSE is not supported; use http")
            if is_gemini and "url" in table and "httpUrl" not in entry and entry.get("type") != "http":
                raise ValueError("SSE is not supported; use httpUrl")
            named_servers().read({name: table})
        except ValueError as error:
            why = str(error).strip().rstrip(".") or "not valid"
            notes.append(f"{shown_path(path)}: the MCP server {shown_name(name)} was left out: {why}.")
            continue
        yield name, table
