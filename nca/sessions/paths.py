"""The files that belong to a database file, their sizes, and the first 100 bytes of the database file.

A mark beside the file tells whether it is as the last process left it; if not, its pages are checked before it is used.
Other programs that write to the file, and most damage, change its size or its time.

Nearly all of the first bytes are the same in every store. Offsets and values are those of
https://www.sqlite.org/fileformat2.html#the_database_header.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path

from nca.safe_files import paths_below

SESSIONS, FILES = "sessions.db", "files.db"
"""What nca calls its databases: of sessions, and beside it of the files that they changed."""


def unused(path: Path) -> Path:
    """`path`, or the first of path-2, path-3 … that does not exist."""
    candidate, number = path, 1
    while os.path.lexists(candidate):
        number += 1
        candidate = path.with_name(f"{path.name}-{number}")
    return candidate


def log_of(path: Path) -> Path:
    """The write-ahead log that belongs to a database file."""
    return path.with_name(path.name + "-wal")


def outputs_of(path: Path) -> Path:
    """The folder of complete tool outputs that belongs to a database file."""
    return path.parent / "outputs"


def archives_of(path: Path) -> Path:
    """The folder of archived sessions that belongs to a database file."""
    return path.parent / "archives"


_OWN = (
    r"\.?(?:{names})(?:\.new|\.(?:corrupt|before-schema)-[\d-]+)?(?:-wal|-shm|-journal|\.\w+\.part)?"
    r"|locks(?:/[^/]+\.(?:opening|use|suspect|closed|lock|files|rewind))?"
    r"|(?:outputs|archives|spool)(?:/\.?[0-9a-f]{{8}}(?:[./-].*)?)?"
)
"""Databases and their copies; locks; what is named by a session. Their folders may hold other things as well."""

_OF_SESSION = re.compile(r"[0-9a-f]{8}\.(?:lock|zip)")


def own_below(name: str, folder: str) -> re.Pattern[str]:
    """Matches, by its path in a workspace, what nca keeps with a database file `name` in `folder` ("." is the root)."""
    own = _OWN.format(names="|".join(map(re.escape, (name, FILES))))
    return re.compile(f"{'' if folder == '.' else re.escape(f'{folder}/')}(?:{own})", re.DOTALL)


def suspicion_of(path: Path) -> Path:
    """A flag file: a process met damage in the database, and no opening has set it aside since."""
    return path.parent / "locks" / f"{path.name}.suspect"


def size_of(path: Path) -> int:
    """The size in bytes; 0 if there is no file."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


HEADER_BYTES = 100
MAGIC = b"SQLite format 3\0"

_PAGE_SIZE = slice(16, 18)
_PAGE_SIZES = frozenset(2**power for power in range(9, 17))
_CHANGES = slice(24, 28)
_PAGES = slice(28, 32)
_APPLICATION_ID = slice(68, 72)
_PAGES_VALID_FOR = slice(92, 96)
_FORMAT_VERSIONS = slice(18, 20)
_FIXED = {20: b"\0\x40\x20\x20", 52: bytes(4), 64: bytes(4), 72: bytes(20)}
"""Reserved space and payload fractions; no auto-vacuum, in two places; room for expansion."""
_FIXED_WITH_TABLES = {44: b"\0\0\0\4", 56: b"\0\0\0\1"}
"""Schema format; UTF-8. SQLite sets both with the first table and reads 0 as these."""


def is_of(header: bytes, application_id: int) -> bool:
    return header.startswith(MAGIC) and header[_APPLICATION_ID] == application_id.to_bytes(4)


def is_sound(header: bytes) -> bool:
    """Whether the bytes that no store changes are what they are in each."""
    return (
        header.startswith(MAGIC)
        and page_bytes(header) > 0
        and header[_FORMAT_VERSIONS] in (b"\1\1", b"\2\2")
        and all(header[place : place + len(value)] == value for place, value in _FIXED.items())
        and all(header[place : place + 4] in (value, bytes(4)) for place, value in _FIXED_WITH_TABLES.items())
    )


def bytes_expected(header: bytes) -> int:
    """The file's size by its header; 0 if SQLite does not go by that."""
    is_valid = header[_CHANGES] == header[_PAGES_VALID_FOR]
    return int.from_bytes(header[_PAGES]) * page_bytes(header) if is_valid else 0


def page_bytes(header: bytes) -> int:
    """The size of a page; 0 if SQLite has no such size."""
    size = int.from_bytes(header[_PAGE_SIZE])
    size = 65_536 if size == 1 else size
    return size if size in _PAGE_SIZES else 0


def mark_of(path: Path) -> Path:
    """The file that says how the database file was left."""
    return path.parent / "locks" / f"{path.name}.closed"


def mark_closed(path: Path) -> None:
    """Remember the file as it is now. A mark that cannot be written costs one check."""
    with suppress(OSError):
        mark_of(path).write_text(_state(path), encoding="ascii")


def was_used(path: Path) -> bool:
    """Whether the database file had content: it was closed before, or something of its sessions is beside it."""
    if os.path.exists(mark_of(path)):
        return True
    if path.name != SESSIONS:  # what is there may be of another store
        return False
    kept = (paths_below(path.parent, "locks/*.lock"), paths_below(archives_of(path), "*.zip"))
    return size_of(path.with_name(FILES)) > 0 or any(_OF_SESSION.fullmatch(one.name) for found in kept for one in found)


def is_as_left(path: Path) -> bool:
    try:
        return mark_of(path).read_text(encoding="ascii") == _state(path)
    except (OSError, UnicodeDecodeError):
        return False


def _state(path: Path) -> str:
    status = path.stat()
    return f"{status.st_size} {status.st_mtime_ns}"
