"""Save one setting, a permission rule or an MCP server to a file. Everything else in it stays, including comments."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Literal

from nca.config.document import Document, KeyPath, alone, read_document, shown_name, shown_path
from nca.config.loaded import defaults
from nca.config.overrides import UNSET, resolve
from nca.config.paths import project_config_file, user_config_file
from nca.config.projects import read_project
from nca.config.schema import KEYS
from nca.config.servers import named_servers
from nca.config.tables import PermissionRule, Row
from nca.config.value_types import InvalidValue
from nca.errors import ConfigError
from nca.humanize import one_line
from nca.safe_files import write_atomically


def save_value(path: Path, name: str, raw: Any, *, is_users_own: bool = False) -> str:
    """Write `name = raw` to the settings file, which is created if missing, and return nca's name of the setting.

    raw           the value; UNSET removes the setting
    name          nca's name, or another program's
    is_users_own  the user's own file: it may contain any setting, and may be a link

    Raises ConfigError for an unknown name, an invalid value, or a file that cannot be read or written. The file is then
    unchanged.
    """
    key = resolve(name, "").key
    if KEYS[key].user_only and not is_users_own:
        raise ConfigError(
            f"{key} cannot be saved in a project's file, because a project may not set it.",
            advice="Save it in your own: nca config set --user.",
        )
    if KEYS[key].value_type.is_named:
        raise ConfigError(f"{key} is written in the file itself, as [{key}.NAME].")
    with alone(path.resolve(), mode=0o777):
        _save(path, name, raw, key, is_users_own=is_users_own)
    return key


def _save(path: Path, name: str, raw: Any, key: str, *, is_users_own: bool) -> None:
    document, parts = _document(path), tuple(key.split("."))
    if raw is UNSET:
        _change(document, partial(_drop, key=parts), is_users_own=is_users_own)
    else:
        value = _checked(document, name, raw, key, is_users_own=is_users_own)
        _change(document, partial(_put, key=parts, value=value, path=path), is_users_own=is_users_own)


def _change(document: Document, change: Callable[[dict[str, Any]], None], *, is_users_own: bool) -> None:
    """Apply `change` to the tables of a settings file as it was read, and write it.

    A file in which nothing is left is removed, unless it is a link. A file that would lose a comment is first copied
    (`config.toml.bak`). Raises OSError if it cannot be written.
    """
    text = document.text
    written = _changed(text, document.data, change)
    if written == text:
        return
    path = document.path.resolve() if is_users_own else document.path
    if any(line[line.find("#") :] not in written for line in text.splitlines() if "#" in line):
        _keep_copy(path)
    if written or os.path.islink(document.path):
        write_atomically(path, written.encode(), mode=None)
    else:
        path.unlink()


def _changed(text: str, data: dict[str, Any], change: Callable[[dict[str, Any]], None]) -> str:
    """The file's text after the change, in its own style; rewritten without comments where that does not succeed."""
    # Only saving needs them.
    import tomllib

    import tomli_w
    import tomlkit
    from tomlkit.exceptions import TOMLKitError

    change(data)
    if not text.strip():
        return tomli_w.dumps(data)
    with contextlib.suppress(TOMLKitError, tomllib.TOMLDecodeError):
        styled = tomlkit.parse(text)
        change(styled)
        # A removed entry leaves the empty lines around it.
        written = f"{tomlkit.dumps(styled).rstrip()}\n".lstrip("\n")
        if tomllib.loads(written) == data:
            return written
    return tomli_w.dumps(data)


def _checked(document: Document, name: str, raw: Any, key: str, *, is_users_own: bool) -> Any:
    """The value to write. Raises ConfigError."""
    value = _beside(document).with_value(name, raw, "").value(key)
    confine = KEYS[key].value_type.confine
    if confine is not None and not is_users_own:
        try:
            confine(value)
        except InvalidValue as invalid:
            raise ConfigError(f"{key}{invalid}") from None
    return _plain(value)


def _drop(data: dict[str, Any], *, key: KeyPath) -> None:
    """Remove a setting, and each table that is empty then."""
    *sections, last = key
    tables = [data]
    for name in sections:
        table = tables[-1].get(name)
        if not isinstance(table, dict):
            return
        tables.append(table)
    tables[-1].pop(last, None)
    for above, name in zip(reversed(tables[:-1]), reversed(sections), strict=False):
        if not above[name]:
            del above[name]


def _beside(document: Document) -> Any:
    """The defaults with the file's profile, stages and summarizer, which some names of other programs modify."""
    loaded = defaults()
    for name in ("profile", "context.stages", "model.summarizer"):
        if (raw := value_at(document.data, name)) is not None:
            with contextlib.suppress(ConfigError):
                loaded = loaded.with_value(name, raw, "")
    return loaded


def value_at(data: Mapping[str, Any], key: str) -> Any:
    """A file's value at a dotted key; None if it has none."""
    found: Any = data
    for part in key.split("."):
        found = found.get(part) if isinstance(found, Mapping) else None
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [one.plain() if isinstance(one, Row) else one for one in value]
    return value


def _put(data: dict[str, Any], *, key: KeyPath, value: Any, path: Path) -> None:
    *sections, last = key
    table = data
    for section in sections:
        table = table.setdefault(section, {})
        if not isinstance(table, dict):
            raise ConfigError(f"{shown_path(path)}: {shown_name(section)} is not a table there; the file was left.")
    table[last] = value


def _keep_copy(path: Path) -> None:
    """Copy the file to the first free name. Older copies are never overwritten."""
    raw = path.read_bytes()
    for number in range(1, 1000):
        copy = path.with_name(f"{path.name}.bak{number if number > 1 else ''}")
        with contextlib.suppress(FileExistsError), copy.open("xb") as file:
            file.write(raw)
            return
        if os.path.isfile(copy) and copy.read_bytes() == raw:
            return


RuleList = Literal["permissions.allow", "permissions.ask", "permissions.deny"]
ALLOW: RuleList = "permissions.allow"
ASK: RuleList = "permissions.ask"
DENY: RuleList = "permissions.deny"


def add_rule(file: Path, name: RuleList, rule: PermissionRule) -> None:
    """Add a rule. Raises ConfigError if the file cannot be read or written; it is then unchanged."""
    with alone(file.resolve(), mode=0o777):
        rules = _rules(file, name)
        if rule not in rules:
            _save(file, name, [*rules, rule], name, is_users_own=True)


def remove_rule(file: Path, name: RuleList, rule: PermissionRule) -> bool:
    """Remove a rule; False if there was none. Raises ConfigError like `add_rule`."""
    with alone(file.resolve(), mode=0o777):
        rules = _rules(file, name)
        if rule not in rules:
            return False
        _save(file, name, [one for one in rules if one != rule], name, is_users_own=True)
    return True


def _rules(file: Path, name: RuleList) -> tuple[PermissionRule, ...]:
    """The rules in the file, without other layers."""
    raw = value_at(_document(file.resolve()).data, name)
    try:
        rules: tuple[PermissionRule, ...] = KEYS[name].value_type.read(() if raw is None else raw)
    except ValueError as error:
        raise ConfigError(f"{file}: {name}{error}") from None
    return rules


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
    with alone(path.resolve(), mode=0o777):
        document = _document(path)
        if name in _tables(document.data):
            raise ConfigError(
                f"{document.place(('mcp', 'servers', name))}: there is an MCP server {name} already.",
                advice=f"To replace it: nca mcp remove {name}, then add it again.",
            )
        add = partial(_put, key=("mcp", "servers", name), value=dict(fields), path=path)
        _change(document, add, is_users_own=is_users_own)


def remove_server(path: Path, name: str, *, is_users_own: bool) -> None:
    """Remove `[mcp.servers.NAME]` from a settings file that has it. Raises ConfigError."""
    with alone(path.resolve(), mode=0o777):
        _change(_document(path), partial(_drop, key=("mcp", "servers", name)), is_users_own=is_users_own)


def file_to_change(name: str, project: Path, env: Mapping[str, str]) -> Path:
    """The settings file that defines a server, the one that counts. Raises ConfigError."""
    files = defining_files(project, env)
    if name not in files:
        there = f"Valid: {', '.join(files)}." if files else "None is set up; `nca mcp add` adds one."
        raise ConfigError(f"There is no MCP server {one_line(name, 40)!r}.", advice=there)
    path = files[name][-1]
    if path not in (project_config_file(project.absolute()), user_config_file(env).absolute()):
        raise ConfigError(f"{shown_path(path)} defines {name}; other agents read it too.", advice="Edit that file.")
    return path


def _document(path: Path) -> Document:
    return read_document(path) or Document(path, "", {})


def _tables(data: Mapping[str, Any]) -> Mapping[str, Any]:
    servers = value_at(data, "mcp.servers")
    return servers if isinstance(servers, Mapping) else {}
