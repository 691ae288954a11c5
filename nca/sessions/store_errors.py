"""Translate errors of SQLite and the file system into one line and advice; take back what was begun at any failure."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import apsw

from nca.config.paths import data_dir
from nca.errors import ConfigError, StoreDamaged, StoreError, system_reason

_WRITABLE = "Set NCA_HOME to a directory that can be written."
_WRITABLE_ELSEWHERE = "Name a file in a directory that can be written."
"""For a path that was given, and does not follow from NCA_HOME."""
_NOTHING_LOST = "Nothing that was stored before is lost."
_MOST_CHARS = 120
LEAST_FREE_BYTES = 65_536
"""SQLite needs 32 KiB for a file beside the database, and a page or two."""
_DAMAGE = ("invalid fts5 file format", "malformed JSON")
"""How SQLite's extensions name damage that it does not call so. nca stores and binds no JSON but what it made."""


@contextmanager
def explained(path: Path | None, verb: str = "write", *, advice: str | None = None) -> Iterator[None]:
    """Translate errors of SQLite and the file system into StoreError and its subclasses.

    `path`: None for a store in memory. `verb`: what failed with the file. `advice`: for a file that cannot be opened;
    None: it names what decided where the file is.
    """
    try:
        yield
    except apsw.Error as error:
        raise _of_sqlite(error, path, _writable(path) if advice is None else advice) from error
    except OSError as error:
        raise _of_system(path, error, verb, _writable(path) if advice is None else advice) from error
    except UnicodeDecodeError as error:
        raise damaged(path, "a text in it is not UTF-8") from error


@contextmanager
def on_failure(undo: Callable[[], object]) -> Iterator[None]:
    """Call `undo` if the block ends with any exception, an interrupt too."""
    try:
        yield
    except BaseException:
        undo()
        raise


def damaged(path: Path | None, how: str) -> StoreDamaged:
    """`how` may be SQLite's words, with damaged text of the file in them."""
    return StoreDamaged(
        f"{_named(path)} is damaged ({_line(how)})",
        advice="Starting a chat sets the file aside, never overwrites it, and saves what can be read.",
    )


def gone(path: Path | None) -> StoreError:
    return StoreError(
        f"{_named(path)} was deleted or replaced while it was open; nothing more can be stored in it",
        advice="In the chat, `/export FILE.json` still saves the session; `nca sessions import FILE.json` restores it.",
    )


def _writable(path: Path | None) -> str:
    """What to do where the path cannot be used: NCA_HOME helps only for what is kept there."""
    with suppress(ConfigError):
        return _WRITABLE if path is None or path.is_relative_to(data_dir(os.environ)) else _WRITABLE_ELSEWHERE
    return _WRITABLE


def _of_system(path: Path | None, error: OSError, verb: str, advice: str) -> StoreError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return _disk_full(path)
    return StoreError(f"Cannot {verb} {_named(path)}: {system_reason(error)}", advice=advice)


def _of_sqlite(error: apsw.Error, path: Path | None, advice: str) -> StoreError:
    match error:
        case apsw.FullError():
            return _disk_full(path)
        case apsw.CorruptError() | apsw.NotADBError():
            return damaged(path, str(error))
        case apsw.SQLError() if how := next((words for words in _DAMAGE if words in str(error)), ""):
            return damaged(path, how)
        case apsw.BusyError() | apsw.LockedError() | apsw.ProtocolError():
            return StoreError(
                f"Another process keeps {_named(path)} busy", advice=f"Try again in a moment. {_NOTHING_LOST}"
            )
        case apsw.CantOpenError():
            return StoreError(f"Cannot open {_named(path)}: {error}", advice=advice)
        case apsw.ReadOnlyError() | apsw.PermissionsError() | apsw.AuthError():
            return StoreError(f"Cannot write {_named(path)}: {error}", advice=advice)
        case apsw.IOError() if _is_full(path):
            return _disk_full(path)
        case apsw.IOError():
            return StoreError(f"Cannot read or write {_named(path)}: {error}", advice=_NOTHING_LOST)
        case apsw.ConnectionClosedError():
            return StoreError(f"{_named(path)} has been closed", advice=f"Open it again. {_NOTHING_LOST}")
        case apsw.ConstraintError():
            return StoreError(f"{_named(path)} refused the change: {_line(str(error))}", advice=_NOTHING_LOST)
        case _:
            # It may have been asked for something, and not to change.
            return StoreError(f"{_named(path)} did not do as asked: {_line(str(error))}", advice=_NOTHING_LOST)


def _is_full(path: Path | None) -> bool:
    """Whether the disk has no room for the smallest file beside the database: SQLite reports an I/O error for some."""
    try:
        return path is not None and shutil.disk_usage(path.parent).free < LEAST_FREE_BYTES
    except OSError:
        return False


def _disk_full(path: Path | None) -> StoreError:
    if path is None:
        return StoreError("The session is larger than the memory that it may take", advice=_NOTHING_LOST)
    mount = path.parent
    while not mount.is_mount() and mount != mount.parent:
        mount = mount.parent
    try:
        free = f"{shutil.disk_usage(mount).free:,} bytes free on {mount}"
    except OSError:
        free = str(mount)
    return StoreError(f"Disk full: {free}; cannot write {path}", advice=f"Free some space. {_NOTHING_LOST}")


def _line(text: str) -> str:
    """One line that is not too long."""
    return " ".join(text.split())[:_MOST_CHARS]


def _named(path: Path | None) -> str:
    return str(path) if path else "the store in memory"
