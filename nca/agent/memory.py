"""Keep notes for later sessions in `memory.file_path`, and a daily file of trimmed turns beside it.

The notes are one JSON object, {"notes": [{"text", "at"}]}, oldest first. A file with anything else is not nca's, or
damaged: it is left alone, and the person is told.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path

import msgspec

from nca.agent.state import SessionState
from nca.config.paths import PROJECT_FOLDER
from nca.config.schema import MemorySettings
from nca.context.record.compose import plain_record
from nca.context.view import Summary
from nca.errors import ConfigError, system_reason
from nca.humanize import one_line
from nca.messages import clean_text
from nca.safe_files import exclusively, open_ordinary, write_atomically
from nca.tools.files.workspace import shown

MAX_FILE_BYTES = 8 << 20
"""Larger files are left alone."""
MAX_NOTE_CHARS = 20_000
NOTE_TOKENS = 2_000
"""Raw tokens of the note on a session, beside what a model wrote of it."""
MAX_DAYS = 60
"""How many daily files a search reads, newest first."""
_OUT_OF_GIT = """\
# Notes of nca: one person's own, so git does not see them. Remove a line to share what it names.
/.gitignore
/{notes}
/{days}/
"""
_ENTRY = re.compile(r"^## ", re.MULTILINE)


class Note(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`at`: seconds since the epoch, for people only."""

    text: str
    at: float = 0.0


class _Notes(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    notes: list[Note]


class Memory:
    """The notes and daily files of one project."""

    def __init__(self, state: SessionState, directory: Path) -> None:
        self._state = state
        self._directory = directory

    @property
    def file(self) -> Path:
        """The file of notes, by the settings in force. Raises ConfigError."""
        return notes_file(self._state.settings.memory, self._directory)

    def notes(self) -> list[Note]:
        """The notes, oldest first. Raises ConfigError if the file cannot be used."""
        return load_notes(self.file)

    def note(self, text: str) -> list[Note]:
        """Add a note and keep the newest `memory.max_notes`. Returns the kept notes. Raises ConfigError."""
        return add_note(self.file, text, at=time.time(), max_notes=self._state.settings.memory.max_notes)

    def forget(self, note: Note) -> None:
        """Remove a note. Raises ConfigError."""
        _change(self.file, lambda before: [one for one in before if one != note])

    def note_session(self) -> None:
        """Add what holds at the end of this session as a note. Raises ConfigError."""
        history = self._state.history
        summaries = [item for item in history.view.items if isinstance(item, Summary)]
        prose = [one.prose for one in summaries]
        record = plain_record(history, [(1, history.head)], NOTE_TOKENS)
        self.note("\n\n".join(filter(None, [self._state.session.info.title, *prose, record])))

    def keep_trimmed(self, text: str, heading: str) -> str:
        """Add trimmed turns to today's file. Returns what went wrong, as one line, or ""."""
        try:
            append_day(self.file, text, date.today(), heading=heading)
        except ConfigError as error:
            return str(error)
        return ""


def notes_file(settings: MemorySettings, directory: Path) -> Path:
    """The file of notes. Raises ConfigError for a relative path that leaves the directory through a link."""
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
    """The memory file of a day: `.nca/memory/2031-05-09.md` beside `.nca/memory.json`."""
    folder = notes.with_suffix("") if notes.suffix else notes.with_name(notes.name + ".days")
    return folder / f"{day.isoformat()}.md"


def load_notes(notes: Path) -> list[Note]:
    """The notes, oldest first; empty if there is no file. Raises ConfigError if it cannot be used."""
    raw = _read(notes)
    if raw is None:
        return []
    try:
        return msgspec.json.decode(raw, type=_Notes).notes
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        reason = one_line(str(error), 120)
        raise _left(notes, f"is not a file of notes ({reason})") from error


def add_note(notes: Path, text: str, *, at: float, max_notes: int) -> list[Note]:
    """Add a note and keep only the newest `max_notes`. Returns what is kept.

    A text that is there already moves to the end. Raises ConfigError if the file cannot be read or written; then it is
    unchanged.
    """
    note = Note(clean_text(text).strip()[:MAX_NOTE_CHARS], at)
    if not note.text:
        return load_notes(notes)
    return _change(notes, lambda before: [*(one for one in before if one.text != note.text), note][-max_notes:])


def _change(notes: Path, change: Callable[[list[Note]], list[Note]]) -> list[Note]:
    """Replace the notes by what `change` makes of them, and return that. Raises ConfigError."""
    try:
        with exclusively(notes):
            _keep_out_of_git(notes)
            kept = change(load_notes(notes))
            write_atomically(notes, msgspec.json.format(msgspec.json.encode(_Notes(kept)), indent=1) + b"\n")
    except OSError as error:
        raise _left(notes, f"cannot be written ({system_reason(error)})") from error
    return kept


def _keep_out_of_git(notes: Path) -> None:
    """Before the first note in a project's own folder, of which the rest may be shared. A `.gitignore` stays as it is.

    Without it `git add .` would publish what a person said. One that is removed later does not come back.
    """
    days = day_file(notes, date.min).parent
    if notes.parent.name != PROJECT_FOLDER or os.path.exists(notes) or os.path.exists(days):
        return
    with contextlib.suppress(OSError), (notes.parent / ".gitignore").open("x") as file:
        file.write(_OUT_OF_GIT.format(notes=notes.name, days=days.name))


def append_day(notes: Path, summary: str, day: date, *, heading: str = "") -> Path | None:
    """Add a summary of trimmed turns to the day's memory file. Returns the file; None if the summary is empty.

    Raises ConfigError if it cannot be written.
    """
    text = clean_text(summary).strip()
    if not text:
        return None
    path = day_file(notes, day)
    if os.path.islink(path.parent):
        raise _left(path.parent, "is a link, which a project could lay anywhere")
    title = " ".join(clean_text(heading).split()) or "Earlier part of a conversation"
    try:
        path.parent.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _keep_out_of_git(notes)
        path.parent.mkdir(mode=0o700, exist_ok=True)
        with open_ordinary(path, "ab", follows_links=False) as file:
            # One write, so that the entries of two sessions do not mix.
            file.write(f"## {title}\n\n{text}\n\n".encode())
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        raise _left(path, f"cannot be written ({system_reason(error)})") from error
    return path


def day_entries(notes: Path) -> list[tuple[date, int, str]]:
    """The entries of the newest daily files, oldest first: day, place in the file from 1, text with its heading.

    A file that cannot be used is skipped. Raises nothing.
    """
    folder = day_file(notes, date.min).parent
    try:
        # Links are skipped, because a project's link could lead anywhere.
        paths = [] if os.path.islink(folder) else [path for path in folder.iterdir() if not os.path.islink(path)]
    except OSError:  # no day was kept yet
        return []
    days = sorted(day for path in paths if (day := _day_of(path)) is not None)
    found = []
    for day in days[-MAX_DAYS:]:
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
    try:
        with open_ordinary(path) as file:
            raw = file.read(MAX_FILE_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise _left(path, f"cannot be read ({system_reason(error)})") from error
    if len(raw) > MAX_FILE_BYTES:
        raise _left(path, f"is larger than {MAX_FILE_BYTES:,} bytes")
    return raw


def _left(path: Path, why: str) -> ConfigError:
    return ConfigError(f"{shown(str(path))} {why}; it was left as it is.", advice="memory.file_path names another.")
