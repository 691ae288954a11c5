"""Where agents keep their sessions, and what is known of a session without reading it whole."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from nca.errors import InvalidMessages
from nca.messages import clean_text
from nca.safe_files import open_ordinary
from nca.sessions.foreign_rows import MAGIC, foreign_tables
from nca.transcripts.formats.records import StoredSession
from nca.transcripts.formats.source import Source, decode

_TITLE_CHARS = 120
_LONGEST_LINE_BYTES = 8192


def stored(
    agent: str, source: Source, *, key: str = "", directory: str = "", title: str = "", at: float = 0.0
) -> StoredSession:
    """A session of a file. Time and size are those of the file unless `at` is given."""
    size = 0
    if source.path is not None:
        with suppress(OSError):
            status = source.path.stat()
            at, size = at or status.st_mtime, status.st_size
    return StoredSession(
        agent=agent,
        path=source.path or Path(source.place),
        key=key,
        directory=directory,
        title=" ".join(title[: _TITLE_CHARS * 10].split())[:_TITLE_CHARS],
        at=at,
        size_bytes=size,
    )


def data_folder(env: Mapping[str, str], home: Path) -> Path:
    """Where programs keep their data by the XDG base directories."""
    given = env.get("XDG_DATA_HOME", "")
    return Path(given) if given.startswith("/") else home / ".local" / "share"


def chosen_folder(given: str | None, home: Path) -> Path | None:
    """The folder that an environment variable names, in which `~` is the home; None without one."""
    if not given:
        return None
    return home / given[2:] if given.startswith("~/") else home if given == "~" else Path(given)


def first_line(path: Path) -> str:
    """The first line of a small file of another program; "" if it cannot be read."""
    try:
        with open_ordinary(path) as file:
            return clean_text(file.read(_LONGEST_LINE_BYTES).decode("utf-8", "replace").split("\n", 1)[0].strip())
    except (OSError, ValueError):
        return ""


def is_database_with(source: Source, **tables: Sequence[str]) -> bool:
    """Whether the file is a SQLite database with these tables and columns. Never raises."""
    try:
        if source.path is None or not source.head.startswith(MAGIC):
            return False
        found = foreign_tables(source.path)
        return all(table in found and set(columns) <= set(found[table]) for table, columns in tables.items())
    except InvalidMessages:
        return False


def newest_key(sessions: Iterable[StoredSession]) -> str:
    """The key of the session that was used last; "" if there is none."""
    return max(sessions, key=lambda one: one.at, default=StoredSession(agent="", path=Path())).key


def json_file(path: Path) -> Any:
    """The JSON of a small file; None if it cannot be read or is no JSON."""
    try:
        with open_ordinary(path) as file:
            return decode(file.read())
    except (OSError, ValueError, RecursionError):
        return None


def folders_above(env: Mapping[str, str]) -> list[Path]:
    """The folder that one works in, and those above it: some agents keep sessions beside the project."""
    given = env.get("PWD", "")
    return [Path(given), *Path(given).parents] if given.startswith("/") else []
