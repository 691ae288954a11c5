"""A project's files for Gemini CLI, Codex and opencode, and the MCP servers of `.mcp.json`, as nca's settings.

Servers count once the user trusts the project. The files were written for other programs: what nca cannot use of them
is a note or is named at the start, no error. The table in docs/other-agents.md is FILES; a test compares them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from nca.config.document import Document, read_document, read_json, shown_name, shown_path
from nca.config.servers import NAME, named_servers
from nca.errors import ConfigError

MCP_FILE = ".mcp.json"
MOST_INSTRUCTIONS = 10
_INSTRUCTIONS = ".md"
"""Only files that end so are instructions: a name must not lead to a file of secrets."""
_SHARED = ("command", "args", "env", "cwd", "url", "headers")
"""The keys that an entry shares with a table of `[mcp.servers]`."""
_LIMITS = ("enabled_tools", "disabled_tools", "includeTools", "excludeTools")


class OtherFile(NamedTuple):
    """A settings file of another agent, below a project's directory.

    servers        the setting that holds MCP servers
    table          an entry of it as a table of `[mcp.servers]`; raises ValueError, with the reason
    instructions   settings that name instruction files, the older name last
    are_paths      whether these are paths from the directory, and not names that are looked for in each folder
    """

    path: str
    servers: str
    table: Callable[[Mapping[str, Any]], dict[str, Any]]
    instructions: tuple[str, ...] = ()
    are_paths: bool = False


def _of_claude(entry: Mapping[str, Any]) -> dict[str, Any]:
    if entry.get("type") == "sse":
        raise ValueError("SSE is not supported; use http")
    return _shared(entry) | ({"enabled": False} if entry.get("disabled") is True else {})


def _of_gemini(entry: Mapping[str, Any]) -> dict[str, Any]:
    table = _of_claude(entry)
    if "httpUrl" in entry:
        return table | {"url": entry["httpUrl"]}
    if "url" in table and entry.get("type") != "http":
        raise ValueError("SSE is not supported; use httpUrl")
    return table


def _of_codex(entry: Mapping[str, Any]) -> dict[str, Any]:
    names = {"http_headers": "headers", "bearer_token_env_var": "token_variable", "env_vars": "environment"}
    found = {ours: entry[theirs] for theirs, ours in {**names, "enabled": "enabled"}.items() if theirs in entry}
    return _shared(entry) | found


def _of_opencode(entry: Mapping[str, Any]) -> dict[str, Any]:
    command = entry.get("command")
    table = {field: _variables(entry[field]) for field in ("url", "headers") if field in entry}
    if isinstance(command, list) and command:
        table |= {"command": command[0], "args": command[1:]}
    if "environment" in entry:
        table["env"] = _variables(entry["environment"])
    return table | ({"enabled": entry["enabled"]} if "enabled" in entry else {})


def _variables(value: Any) -> Any:
    """opencode's `{env:NAME}` as `${NAME}`."""
    if isinstance(value, Mapping):
        return {name: _variables(one) for name, one in value.items()}
    return value.replace("{env:", "${") if isinstance(value, str) else value


def _shared(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {field: entry[field] for field in _SHARED if field in entry}


FILES = (
    OtherFile(".gemini/settings.json", "mcpServers", _of_gemini, ("context.fileName", "contextFileName")),
    OtherFile(".codex/config.toml", "mcp_servers", _of_codex, ("project_doc_fallback_filenames",)),
    OtherFile("opencode.json", "mcp", _of_opencode, ("instructions",), are_paths=True),
    OtherFile(MCP_FILE, "mcpServers", _of_claude),
)
"""The later ones count before the earlier ones."""


class Instructions(NamedTuple):
    """Instruction files that a project's other settings name.

    instead  names that replace GEMINI.md; () if the settings name none
    further  names that are looked for if none of the usual ones exists
    paths    files of the directory
    """

    instead: tuple[str, ...] = ()
    further: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()


def server_documents(directory: Path, notes: list[str]) -> Iterator[Document]:
    """The MCP servers of each file that has some. Adds to `notes` what was left out."""
    for file in FILES:
        path = directory / file.path
        entries = _read(path, notes).get(file.servers)
        servers = dict(_usable(entries, file, path, notes)) if isinstance(entries, Mapping) else {}
        if servers:
            yield Document(path, "", {"mcp": {"servers": servers}})


def instruction_names(directory: Path) -> Instructions:
    gemini, codex, opencode = (_instructions(file, _read(directory / file.path, []))[0] for file in FILES[:3])
    return Instructions(gemini, codex, opencode)


def unused_settings(directory: Path) -> Iterator[tuple[str, list[str]]]:
    """Each file with the names of the settings that are there and not used."""
    for file in FILES:
        data = _read(directory / file.path, [])
        unused = _instructions(file, data)[1]
        for name, value in data.items():
            below = [one.rpartition(".")[2] for one in file.instructions if one.startswith(f"{name}.")]
            if below and isinstance(value, Mapping):
                unused += [f"{name}.{shown_name(one)}" for one in value if one not in below]
            elif name not in (file.servers, "$schema", *file.instructions):
                unused.append(shown_name(name))
        if unused:
            yield file.path, unused


def _read(path: Path, notes: list[str]) -> dict[str, Any]:
    try:
        if path.suffix == ".toml":
            document = read_document(path)
            return document.data if document is not None else {}
        data = read_json(path)
    except ConfigError as error:
        notes.append(f"{error} The file was ignored.")
        return {}
    return data if isinstance(data, dict) else {}


def _instructions(file: OtherFile, data: Mapping[str, Any]) -> tuple[tuple[str, ...], list[str]]:
    """The names that count, and what is not used of them."""
    used: list[str] = []
    unused: list[str] = []
    for setting in file.instructions:
        section, _, below = setting.rpartition(".")
        held = data.get(section) if section else data
        named = held.get(below) if isinstance(held, Mapping) else None
        written = [named] if isinstance(named, str) else named if isinstance(named, list) else []
        names = [one for one in written if isinstance(one, str) and _is_instruction(one, are_paths=file.are_paths)]
        used += names[:MOST_INSTRUCTIONS]
        if left := [one for one in written if one not in used]:
            unused.append(f"{setting} ({', '.join(shown_name(str(one)) for one in left[:3])})")
    return tuple(dict.fromkeys(used)), unused


def _is_instruction(name: str, *, are_paths: bool) -> bool:
    parts = name.removeprefix("./").split("/")
    is_plain = name.isprintable() and not any(mark in name for mark in "*?[{~\\")
    is_inside = len(parts) == 1 or are_paths
    return is_plain and is_inside and name.endswith(_INSTRUCTIONS) and not {"", ".", ".."} & {*parts}


def _usable(
    entries: Mapping[str, Any], file: OtherFile, path: Path, notes: list[str]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each entry as a table of `[mcp.servers]`."""
    for name, entry in entries.items():
        try:
            if not NAME.fullmatch(name):
                raise ValueError("a server's name is 1 to 32 letters, digits, _ and -")
            given = entry if isinstance(entry, Mapping) else {}
            if limit := next((one for one in _LIMITS if given.get(one)), ""):
                raise ValueError(f"nca uses all tools of a server or none ({limit})")
            table = file.table(given)
            named_servers().read({name: table})
        except ValueError as error:
            why = str(error).strip().rstrip(".") or "not valid"
            notes.append(f"{shown_path(path)}: the MCP server {shown_name(name)} was left out: {why}.")
            continue
        yield name, table
