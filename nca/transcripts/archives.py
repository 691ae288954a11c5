"""Archived sessions: `archives/ID.zip` beside the database, which only their owner can read.

session.json   the session as an export that is not redacted
info.json      the part of it that a list shows
outputs/       the saved tool outputs that its messages name

The file that is restored may come from elsewhere: nca.transcripts.archives says how much of it is read, and
nothing is written but the session and outputs of sessions that the store does not have.

A session leaves the store when its archive is on the disk and has been read back; an archive is deleted when its
session is in the store again. A process that is killed between the two leaves both: the session is in the store then,
and what is left of the archive goes with the next archive of it, or when the session is deleted.
"""

from __future__ import annotations

import io
import os
import re
import secrets
import shutil
import stat
import time
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

import msgspec

from nca.errors import (
    InvalidMessages,
    NcaError,
    SessionLocked,
    SessionNotFound,
    StoreDamaged,
    StoreError,
    system_reason,
)
from nca.safe_files import PRIVATE, atomic_file, open_folder, open_ordinary, paths_below
from nca.sessions import SessionInfo, Store
from nca.sessions.paths import archives_of
from nca.sessions.store_errors import explained
from nca.sessions.transfer import SessionCopy
from nca.transcripts.session_file import read_session, to_json


class Limits(NamedTuple):
    """Of one JSON part.

    size_bytes  unpacked
    values      objects, arrays and what is in them: an empty object is three bytes in the file, and 64 in memory
    depth       what nests deeper could be written to the store, and not be read again from deeper in the program
    """

    size_bytes: int
    values: int
    depth: int


SESSION = Limits(512 << 20, 30_000_000, 100)
"""Twice what a session of a million messages has. Memory has to hold the bytes several times."""
INFO = Limits(1 << 20, 1_000, 10)
MOST_OUTPUT_BYTES = 8 << 30
MOST_OUTPUTS = 200_000
_MOST_AT_ONCE = 64 << 20
"""zipfile reads the list of members in one piece and keeps all of them: room for more than MOST_OUTPUTS."""
_PIECE_BYTES = 1 << 20
_STEPS = {ord("["): 1, ord("{"): 1, ord("]"): -1, ord("}"): -1}
_NO_BRACKETS = bytes(byte for byte in range(256) if byte not in _STEPS)
_NOT_COUNTED = bytes(byte for byte in range(256) if byte not in b"[{,")


def check_outputs(members: list[zipfile.ZipInfo], place: str) -> None:
    """Raise InvalidMessages if the outputs are too many or too large, or one is not a file. zipfile unpacks no more of
    a member than it declares."""
    if len(members) > MOST_OUTPUTS:
        raise InvalidMessages(f"{place}: holds {len(members):,} outputs; valid: at most {MOST_OUTPUTS:,}.")
    check_output_bytes(sum(member.file_size for member in members), place)
    for member in members:
        kind = stat.S_IFMT(member.external_attr >> 16)
        if kind not in (0, stat.S_IFREG):
            raise InvalidMessages(f"{place}: {member.filename!r} is a link or no file; valid: files.")


def check_output_bytes(count: int, place: str) -> None:
    if count > MOST_OUTPUT_BYTES:
        raise InvalidMessages(f"{place}: its outputs unpack to more than {MOST_OUTPUT_BYTES >> 30} GiB, the limit.")


def read_json(archive: zipfile.ZipFile, name: str, limits: Limits, place: str) -> bytes:
    """The bytes of a JSON member. Raises InvalidMessages at the first piece that goes beyond a limit."""
    read = bytearray()
    with archive.open(name) as file:
        for piece in checked(iter(lambda: file.read(_PIECE_BYTES), b""), limits, f"{place}: {name}"):
            read += piece
    return bytes(read)


def checked(pieces: Iterable[bytes], limits: Limits, place: str) -> Iterator[bytes]:
    """The pieces of a JSON text, each after it was found to be within the limits. Raises InvalidMessages."""
    size = values = depth = 0
    is_in_text, rest = False, b""
    for piece in pieces:
        size += len(piece)
        # A piece may end between a backslash and what it escapes.
        plain = (rest + piece).replace(b"\\\\", b"").replace(b'\\"', b"")
        rest = b"\\" if plain.endswith(b"\\") else b""
        runs = plain.split(b'"')
        outside = b"".join(runs[int(is_in_text) :: 2])
        is_in_text ^= len(runs) % 2 == 0
        values += len(outside.translate(None, _NOT_COUNTED))
        depths = list(accumulate(map(_STEPS.__getitem__, outside.translate(None, _NO_BRACKETS)), initial=depth))
        depth = depths[-1]
        if size > limits.size_bytes:
            raise InvalidMessages(f"{place}: unpacks to more than {limits.size_bytes >> 20} MiB, the limit.")
        if values > limits.values:
            raise InvalidMessages(f"{place}: holds more than {limits.values:,} values, the limit.")
        if max(depths) > limits.depth:
            raise InvalidMessages(f"{place}: is nested deeper than {limits.depth} levels, the limit.")
        yield piece


class _Bounded(io.BufferedReader):
    """A file that is read in pieces of at most _MOST_AT_ONCE."""

    def read(self, size: int | None = -1) -> bytes:
        if size is None or size < 0 or size > _MOST_AT_ONCE:
            data = super().read(_MOST_AT_ONCE + 1)
            if len(data) > _MOST_AT_ONCE:
                raise zipfile.BadZipFile(f"its list of files is larger than {_MOST_AT_ONCE >> 20} MiB")
            return data
        return super().read(size)


_SESSION, _INFO = "session.json", "info.json"
_OUTPUT = re.compile(r"outputs(/\w[\w.-]*){2,}", re.ASCII)
_NAMED_OUTPUTS = re.compile(rb"outputs/([\w-]+)/")
_NAME_CHARS = 40
_ID = re.compile(r"[0-9a-z]{1,32}")
_UNREADABLE = (OSError, EOFError, zlib.error, zipfile.BadZipFile, KeyError, NotImplementedError, RuntimeError)
"""zipfile's errors for a file that is not a ZIP, damaged, encrypted, or compressed in an unknown way."""


class Archived(NamedTuple):
    """An archive. `info` is None if it cannot be read."""

    path: Path
    info: SessionInfo | None


class Moved(NamedTuple):
    """The sessions that `archive_expired` moved, how many are left for next time, and why it stopped early, if so."""

    sessions: list[SessionInfo]
    left: int
    problem: NcaError | None = None


def archive(store: Store, id_or_prefix: str) -> tuple[Path, SessionInfo]:
    """Move a session from the store to its archive. Returns the file and what was moved.

    Raises SessionNotFound, SessionLocked, StoreDamaged (a damaged session stays), StoreError (it cannot be written).
    """
    return _move(store, store.find(id_or_prefix).id)


def archive_expired(store: Store, retention_days: int, max_sessions: int, most: int | None = None) -> Moved:
    """Archive what `Store.expired` names, oldest first, `most` of it. What is open or damaged stays."""
    due = store.expired(retention_days, max_sessions)
    moved: list[SessionInfo] = []
    problem: NcaError | None = None
    stays = 0
    for session_id in due:
        if len(moved) == most:
            break
        try:
            moved.append(_move(store, session_id)[1])
        except (SessionLocked, SessionNotFound, StoreDamaged):
            stays += 1
        except NcaError as error:
            problem = error
            break
    return Moved(moved, len(due) - len(moved) - stays, problem)


def archived(store: Store) -> list[Archived]:
    """The archives beside the store, the session used last first, then those that cannot be read.

    A session that the store has is not archived, whatever a kill left of its archive.
    """
    paths = sorted(paths_below(archives_of(store.path), "*.zip")) if store.path else []
    stored = {info.id: info for info in store.list(None)} if paths else {}
    found = [Archived(path, _info(path)) for path in paths]
    found = [one for one in found if not (one.info and _is_same(one.info, stored.get(one.info.id)))]
    return sorted(found, key=lambda one: -one.info.updated_at if one.info else 0.0)


def restore(store: Store, wanted: str) -> SessionInfo:
    """Put a session back into the store, under its own id and as the one used last.

    wanted: an archive's file, or the id, the beginning of the id or the name of a session archived beside the store

    Raises SessionNotFound, InvalidMessages (it is not an archive), StoreError (the store has the session).
    """
    path = Path(wanted) if os.path.isfile(wanted) else _find(store, wanted)
    with _opened(path) as file:
        copy = _read(file, path)
        session_id = copy.info.id
        own = store.archive_of(session_id)
        if own is None or not _ID.fullmatch(session_id):
            raise InvalidMessages(f"{path}: names no session that can be restored.")
        others = {info.id for info in store.list(None)}
        for member in _outputs(file, path):
            if (of := member.filename.split("/")[1]) not in others:
                _put_back(file, member, own.parents[1], replaces=of == session_id)
    info = store.add(copy.with_info(updated_at=time.time()), keeps_id=True)
    if os.path.exists(own) and own.samefile(path):
        store.delete_archive(session_id)
    return info


def _move(store: Store, session_id: str) -> tuple[Path, SessionInfo]:
    path, outputs = store.archive_of(session_id), store.outputs_folder(session_id)
    if path is None or outputs is None:
        raise StoreError("The sessions are kept in memory only; there is no place for an archive")

    def keep(copy: SessionCopy) -> SessionCopy:
        # A kill left this session's own.
        if os.path.exists(path) and not _is_same(copy.info, _info(path)):
            raise StoreError(f"{path} is not an archive of this session", advice="Move it away.")
        with explained(path):
            path.parent.mkdir(mode=0o700, exist_ok=True)
            store.delete_archive(session_id)
            _write(path, copy, outputs)
        try:
            with _opened(path) as file:
                _outputs(file, path)
                return _read(file, path)
        except InvalidMessages:
            # It could not be restored, so the session stays.
            store.delete_archive(session_id)
            raise

    return path, store.delete_kept(session_id, keep)


def output_folders(own: Path, data: bytes) -> set[Path]:
    """The folders with the outputs of a session: its own, and what its text names. A fork names its original's."""
    return {own, *(own.with_name(name.decode()) for name in _NAMED_OUTPUTS.findall(data))}


def _write(path: Path, copy: SessionCopy, own: Path) -> None:
    """`own`: the folder of the session's outputs."""
    data = to_json(copy)
    folders = output_folders(own, data)
    found = sorted(output for folder in folders for output in paths_below(folder, "**/*") if os.path.isfile(output))
    check_output_bytes(sum(output.stat().st_size for output in found), str(path))
    with atomic_file(path) as whole, zipfile.ZipFile(whole, "w", strict_timestamps=False) as file:
        for name, content in ((_SESSION, data), (_INFO, msgspec.json.encode(copy.info))):
            member = zipfile.ZipInfo(name)
            member.external_attr = PRIVATE << 16
            file.writestr(member, content, zipfile.ZIP_DEFLATED)
        for output in found:
            file.write(output, output.relative_to(own.parents[1]), zipfile.ZIP_DEFLATED)


def _read(file: zipfile.ZipFile, path: Path) -> SessionCopy:
    return read_session(read_json(file, _SESSION, SESSION, str(path)), f"{path}: {_SESSION}", directory="")


def _outputs(file: zipfile.ZipFile, path: Path) -> list[zipfile.ZipInfo]:
    """The archive's members besides its JSON parts. Raises InvalidMessages if any is not an output."""
    members = [member for member in file.infolist() if member.filename not in (_SESSION, _INFO)]
    if unknown := [member.filename for member in members if not _OUTPUT.fullmatch(member.filename)]:
        raise InvalidMessages(f"{path}: holds {unknown[0]!r}, which is not part of an archive.")
    check_outputs(members, str(path))
    return members


def _put_back(file: zipfile.ZipFile, member: zipfile.ZipInfo, root: Path, *, replaces: bool) -> None:
    """Write an output below the folder of the store, through no link."""
    *parts, name = member.filename.split("/")
    target = root / member.filename
    with explained(target), open_folder(str(root), parts, create=True) as folder:
        with suppress(FileNotFoundError):
            if folder.stat(name) and not replaces:
                return
        temporary = f".{name[:_NAME_CHARS]}.{secrets.token_hex(4)}.tmp"
        try:
            with file.open(member) as source, os.fdopen(folder.create(temporary, PRIVATE), "wb") as output:
                shutil.copyfileobj(source, output)
                output.flush()
                os.fsync(output.fileno())
            os.replace(temporary, name, src_dir_fd=folder.handle, dst_dir_fd=folder.handle)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary, dir_fd=folder.handle)
            raise
        folder.sync()


def _info(path: Path) -> SessionInfo | None:
    try:
        with _opened(path) as file:
            return msgspec.json.decode(read_json(file, _INFO, INFO, str(path)), type=SessionInfo)
    except (InvalidMessages, msgspec.DecodeError):
        return None


def _is_same(one: SessionInfo, other: SessionInfo | None) -> bool:
    """Sessions that were recovered from damage may have each other's ids."""
    return other is not None and (one.id, one.created_at, one.title) == (other.id, other.created_at, other.title)


def _find(store: Store, wanted: str) -> Path:
    found = [
        one.path
        for one in archived(store)
        if one.info and wanted and (one.info.id.startswith(wanted) or one.info.name == wanted)
    ]
    exact = [path for path in found if path.stem == wanted] or found
    if len(exact) > 1:
        raise SessionNotFound(f"{wanted!r} could be any of {', '.join(path.stem for path in exact)}")
    if exact:
        return exact[0]
    if any(wanted in (info.id, info.name) for info in store.list(None)):
        raise StoreError(f"Session {wanted} is already in the store; there is nothing to restore")
    raise SessionNotFound(f"There is no archive of {wanted!r}", advice="`nca sessions list --archived` lists them.")


@contextmanager
def _opened(path: Path) -> Iterator[zipfile.ZipFile]:
    """Raises InvalidMessages if it is not an archive or cannot be read."""
    try:
        with _Bounded(open_ordinary(path).detach()) as file, zipfile.ZipFile(file) as archive:  # type: ignore[attr-defined]
            yield archive
    except _UNREADABLE as error:
        why = system_reason(error).strip("'\"")
        raise InvalidMessages(f"{path}: is not an archive of a session, or is damaged ({why}).") from error
