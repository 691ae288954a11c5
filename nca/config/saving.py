"""Saving one setting to a file: everything else in it stays, and a crash leaves the old file or the new one whole."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from pathlib import Path
from typing import Any

from nca.config.document import Document, read_document, shown_name, shown_path
from nca.config.loaded import defaults
from nca.config.overrides import UNSET, resolve
from nca.config.schema import KEYS
from nca.config.tables import Row
from nca.config.value_types import InvalidValue
from nca.errors import ConfigError


def save_value(path: Path, name: str, raw: Any, *, is_users_own: bool = False) -> str:
    """Write `name = raw` to the settings file and return the canonical name; the file is made where there is none.

    UNSET takes the setting out of the file.

    name          nca's or another program's; nca's own is written
    is_users_own  the user's file, which may hold what a project's may not, and may be a link

    tomli-w keeps no comments, so a file that has some is first copied beside itself (`config.toml.bak`).
    Raises ConfigError for an unknown name, a bad value, a file that cannot be parsed or written; then nothing changed.
    """
    key = resolve(name, "").key
    if KEYS[key].user_only and not is_users_own:
        raise ConfigError(
            f"{key} cannot be saved in a project's file, because a project may not set it.",
            advice="Save it in your own: nca config set --user.",
        )
    if KEYS[key].value_type.is_named:
        raise ConfigError(f"{key} is written in the file itself, as [{key}.NAME].")
    if is_users_own:
        path = path.resolve()
    document = read_document(path)
    data = document.data if document is not None else {}
    if raw is UNSET and document is None:
        return key
    if raw is UNSET:
        _drop(data, key)
    else:
        _put(data, key, _checked(document, name, raw, key, is_users_own=is_users_own), path)
    # Imported here: only saving needs it.
    import tomli_w

    try:
        if document is not None and _has_comments(document.text):
            _keep_copy(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        _write_whole(path, tomli_w.dumps(data).encode())
    except OSError as error:
        raise ConfigError(f"{shown_path(path)}: cannot be written ({error.strerror}).") from error
    return key


def _checked(document: Document | None, name: str, raw: Any, key: str, *, is_users_own: bool) -> Any:
    """The value as it is written. Raises ConfigError."""
    value = _beside(document).with_value(name, raw, "").value(key)
    confine = KEYS[key].value_type.confine
    if confine is not None and not is_users_own:
        try:
            confine(value)
        except InvalidValue as invalid:
            raise ConfigError(f"{key}{invalid}") from None
    return _plain(value)


def _drop(data: dict[str, Any], key: str) -> None:
    """Take a setting out; a table that is empty then goes too."""
    section, _, last = key.rpartition(".")
    tables = [data]
    for name in section.split(".") if section else ():
        table = tables[-1].get(name)
        if not isinstance(table, dict):
            return
        tables.append(table)
    tables[-1].pop(last, None)
    for above, name in zip(reversed(tables[:-1]), reversed(section.split(".")), strict=False):
        if not above[name]:
            del above[name]


def _beside(document: Document | None) -> Any:
    """What another program's half of a value, or its switch, starts from: the defaults and the file's own values."""
    loaded = defaults()
    for name in ("profile", "context.stages", "model.summarizer"):
        table: Any = document.data if document is not None else {}
        for part in name.split("."):
            table = table.get(part) if isinstance(table, dict) else None
        if table is not None:
            with contextlib.suppress(ConfigError):
                loaded = loaded.with_value(name, table, "")
    return loaded


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [one.plain() if isinstance(one, Row) else one for one in value]
    return value


def _put(data: dict[str, Any], key: str, value: Any, path: Path) -> None:
    *sections, last = key.split(".")
    table = data
    for section in sections:
        table = table.setdefault(section, {})
        if not isinstance(table, dict):
            raise ConfigError(f"{shown_path(path)}: {shown_name(section)} is not a table there; the file was left.")
    table[last] = value


def _has_comments(text: str) -> bool:
    """Whether a `#` stands where a comment may begin. One inside a text only costs a spare copy."""
    return any(line.lstrip().startswith("#") or " #" in line or "\t#" in line for line in text.splitlines())


def _keep_copy(path: Path) -> None:
    """A copy beside the file, under the first free name; an older copy is never overwritten."""
    raw = path.read_bytes()
    for number in range(1, 1000):
        copy = path.with_name(f"{path.name}.bak{number if number > 1 else ''}")
        with contextlib.suppress(FileExistsError), copy.open("xb") as file:
            file.write(raw)
            return
        if copy.is_file() and copy.read_bytes() == raw:
            return


def _write_whole(path: Path, content: bytes) -> None:
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            with contextlib.suppress(FileNotFoundError):
                temporary.chmod(stat.S_IMODE(path.stat().st_mode))
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    """Make the renaming durable, where a folder can be synced at all (not on Windows)."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
