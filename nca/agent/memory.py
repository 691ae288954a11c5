"""What outlives a session: notes in `memory.file_path`, and a file for each day's trimmed turns beside it.

The notes are one JSON object, {"notes": [{"text", "at"}]}, oldest first. A file that is anything else is not nca's, or
was broken: it is left as it is, and said.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
import time
from datetime import date
from pathlib import Path

import msgspec

from nca.agent.state import SessionState
from nca.atomic_write import write_atomically
from nca.config.schema import MemorySettings
from nca.errors import ConfigError
from nca.messages import clean_text
from nca.tools.files.workspace import shown

MAX_FILE_BYTES = 8 << 20
"""More than any number of notes that a person would read; larger files are left alone."""
MAX_NOTE_CHARS = 20_000
MAX_DAYS = 60
"""Days that a search looks back."""
_ENTRY = re.compile(r"^## ", re.MULTILINE)


class Note(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`at`: seconds since the epoch, for people only."""

    text: str
    at: float = 0.0


class _Notes(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    notes: list[Note]


class Memory:
    """The notes and the day's file of one project, where its settings say now."""

    def __init__(self, state: SessionState, directory: Path) -> None:
        self._state = state
        self._directory = directory

    @property
    def file(self) -> Path:
        """Where the notes are. Raises ConfigError."""
        return notes_file(self._state.settings.memory, self._directory)

    def notes(self) -> list[Note]:
        """What was noted for later sessions, oldest first. Raises ConfigError where the file cannot be used."""
        return load_notes(self.file)

    def note(self, text: str) -> list[Note]:
        """Keep a note beyond this session, of all the newest `memory.max_notes`. Raises ConfigError."""
        return add_note(self.file, text, at=time.time(), max_notes=self._state.settings.memory.max_notes)

    def keep_trimmed(self, text: str, heading: str) -> str:
        """Add trimmed turns to today's file, which is only good to have; what is wrong as one line, or ""."""
        try:
            append_day(self.file, text, date.today(), heading=heading)
        except ConfigError as error:
            return str(error)
        return ""


def notes_file(settings: MemorySettings, directory: Path) -> Path:
    """Where the notes are. Raises ConfigError for a relative path that leads out of the directory through a link."""
    try:
        path = Path(settings.file_path).expanduser()
    except RuntimeError as error:
        raise ConfigError(f"memory.file_path: {error}.") from error
    if path.is_absolute():
        return Path(os.path.realpath(path))
    found = Path(os.path.realpath(directory / path))
    if not found.is_relative_to(os.path.realpath(directory)):
        raise ConfigError(f"memory.file_path: {shown(settings.file_path)} is outside of {shown(str(directory))}.")
    return found


def day_file(notes: Path, day: date) -> Path:
    """The day's memory file: `.nca/memory/2031-05-09.md` beside `.nca/memory.json`."""
    folder = notes.with_suffix("") if notes.suffix else notes.with_name(notes.name + ".days")
    return folder / f"{day.isoformat()}.md"


def load_notes(notes: Path) -> list[Note]:
    """The notes, oldest first; none where there is no file. Raises ConfigError for one that cannot be used."""
    raw = _read(notes)
    if raw is None:
        return []
    try:
        return msgspec.json.decode(raw, type=_Notes).notes
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        reason = str(error).splitlines()[0][:120]
        raise _left(notes, f"is no file of notes ({reason})") from error


def add_note(notes: Path, text: str, *, at: float, max_notes: int) -> list[Note]:
    """Keep one more note, and of all only the newest `max_notes`. Returns what is kept.

    A text that is there already moves to the end. Raises ConfigError where the file cannot be read or written; it is
    as it was then.
    """
    note = Note(clean_text(text).strip()[:MAX_NOTE_CHARS], at)
    before = load_notes(notes)
    if not note.text:
        return before
    kept = [*(one for one in before if one.text != note.text), note][-max_notes:]
    content = msgspec.json.format(msgspec.json.encode(_Notes(kept)), indent=1) + b"\n"
    try:
        _private_folder(notes.parent)
        write_atomically(notes, content)
    except OSError as error:
        raise _left(notes, f"cannot be written ({error.strerror})") from error
    return kept


def append_day(notes: Path, summary: str, day: date, *, heading: str = "") -> Path | None:
    """Add what was trimmed to the day's memory file; returns the file, None where there is nothing to say.

    Raises ConfigError where it cannot be written.
    """
    text = clean_text(summary).strip()
    if not text:
        return None
    path = day_file(notes, day)
    if path.parent.is_symlink():
        raise _left(path.parent, "is a link, which a project could lay anywhere")
    title = " ".join(clean_text(heading).split()) or "Earlier part of a conversation"
    try:
        _private_folder(path.parent)
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        for flag in ("O_NOFOLLOW", "O_CLOEXEC", "O_NONBLOCK", "O_BINARY"):
            flags |= getattr(os, flag, 0)
        handle = os.open(path, flags, 0o600)
        with os.fdopen(handle, "ab") as file:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise _left(path, "is not an ordinary file")
            # One write, so that two sessions of the same day do not mix within an entry.
            file.write(f"## {title}\n\n{text}\n\n".encode())
            file.flush()
            os.fsync(handle)
    except OSError as error:
        raise _left(path, f"cannot be written ({error.strerror})") from error
    return path


def day_entries(notes: Path, newest: int = MAX_DAYS) -> list[tuple[date, int, str]]:
    """What the newest days' files hold, oldest first: the day, the place in its file from 1, the text with its heading.

    A file that cannot be used is left out. Raises nothing.
    """
    folder = day_file(notes, date.min).parent
    try:
        # A link is left out: a project could lay one that leads anywhere.
        paths = [] if folder.is_symlink() else [path for path in folder.iterdir() if not path.is_symlink()]
    except OSError:  # no day was kept yet
        return []
    days = sorted(day for path in paths if (day := _day_of(path)) is not None)
    found = []
    for day in days[-newest:]:
        with contextlib.suppress(ConfigError):
            text = clean_text((_read(day_file(notes, day)) or b"").decode("utf-8", "replace"))
            parts = [part.strip() for part in _ENTRY.split(text) if part.strip()]
            found += [(day, number, part) for number, part in enumerate(parts, 1)]
    return found


def _day_of(path: Path) -> date | None:
    try:
        return date.fromisoformat(path.stem) if path.suffix == ".md" else None
    except ValueError:
        return None


def _read(path: Path) -> bytes | None:
    flags = os.O_RDONLY
    for flag in ("O_NONBLOCK", "O_CLOEXEC", "O_BINARY"):
        flags |= getattr(os, flag, 0)
    try:
        handle = os.open(path, flags)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise _left(path, f"cannot be read ({error.strerror})") from error
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise _left(path, "is not an ordinary file")
        with os.fdopen(handle, "rb", closefd=False) as file:
            raw = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise _left(path, f"cannot be read ({error.strerror})") from error
    finally:
        os.close(handle)
    if len(raw) > MAX_FILE_BYTES:
        raise _left(path, f"is larger than {MAX_FILE_BYTES:,} bytes")
    return raw


def _private_folder(folder: Path) -> None:
    """A folder that is made here is the person's alone; one that is there stays as it is."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)


def _left(path: Path, why: str) -> ConfigError:
    return ConfigError(f"{shown(str(path))} {why}; it was left as it is.", advice="memory.file_path names another.")
