"""One session of another agent as its hooks see it: which calls have failed, and what its next compaction loses."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from errno import EFBIG, ENOENT
from pathlib import Path
from threading import Lock, Thread
from typing import Any

from nca.agent_hooks.handover import Handover, without_handovers
from nca.context.history import History
from nca.context.repeats import Failure, Repeats
from nca.context.request import resolve
from nca.errors import NcaError
from nca.messages import ToolCall
from nca.safe_files import open_folder, paths_below
from nca.sessions.foreign_rows import ForeignDatabase, foreign_database
from nca.transcripts.descriptions import compactions
from nca.transcripts.formats.assemble import assemble
from nca.transcripts.formats.records import Compacted, Format, Record, Said
from nca.transcripts.formats.row import object_of, parsed
from nca.transcripts.formats.source import Source

_SHOWN = ("id", "projectID", "title", "directory", "parent_id", "version", "revert")
"""The keys that the reader looks for in a session; the second one marks an export."""


class StoredTranscript:
    """A session of opencode. It is read as its own export writes it: one JSON value.

    names  the names of the agent's databases in its folder, as a pattern
    """

    def __init__(self, folder: Path, names: str, session: str) -> None:
        self._folder, self._names, self._session = folder, names, session
        self.place = f"{folder / names}, session {session}"

    def read(self, start: int = 0) -> tuple[bytes, int]:
        """The messages from the one with the number `start` on, and how many there are; without one that is not whole.

        start  below 0: so far from the end

        Raises OSError, InvalidMessages.
        """
        for path in sorted(paths_below(self._folder, self._names)):
            with foreign_database(path, is_open=True) as database:
                for session in database.rows("session", {"id": self._session}):
                    found = self._whole(database)
                    start = start if start >= 0 else max(0, len(found) + start)
                    messages = [{"info": one, "parts": _parts(database, one["id"])} for one in found[start:]]
                    info = {name: session.get(name) for name in _SHOWN}
                    return json.dumps({"info": info, "messages": messages}).encode(), len(found)
        raise FileNotFoundError(ENOENT, f"{self.place}: is not there")

    def _whole(self, database: ForeignDatabase) -> list[dict[str, Any]]:
        """The messages; the newest one counts once it is an answer that has ended: its parts are written after it."""
        rows = database.rows("message", {"session_id": self._session}, order=("time_created", "id"))
        found = [object_of(parsed(row.get("data"))) | {"id": row.get("id")} for row in rows]
        is_whole = bool(found) and bool(object_of(found[-1].get("time")).get("completed"))
        return found if is_whole else found[:-1]


def _parts(database: ForeignDatabase, message: Any) -> list[dict[str, Any]]:
    return [object_of(parsed(row.get("data"))) for row in database.rows("part", {"message_id": message}, order=("id",))]


MOST_BYTES = 128 * 1024 * 1024
"""A longer transcript is not read."""
JUST_NOW_SECONDS = 60.0
"""A compaction in the transcript that is so much older than its hook is an earlier one."""
PATIENCE_SECONDS = 0.02
FAR_BYTES = 2 * 1024 * 1024
"""How far back calls are looked at when a session is met in its middle."""


class Transcript:
    """The file of a session, which must lie in the agent's own folder and is opened without following links."""

    def __init__(self, folder: Path, path: Path) -> None:
        """Raises OSError, ValueError if the file is not below the folder."""
        self._root = os.path.realpath(folder)
        inside = Path(os.path.realpath(path.parent), path.name).relative_to(self._root)
        self._parts, self._name = inside.parts[:-1], inside.name
        self.place = str(path)

    def read(self, start: int = 0) -> tuple[bytes, int]:
        """The bytes from `start` to the end of the last whole line, and the place of that end. Raises OSError.

        start  below 0: so far from the end
        """
        with open_folder(self._root, self._parts) as folder, folder.open_ordinary(self._name) as file:
            size = os.fstat(file.fileno()).st_size
            start = start if start >= 0 else max(0, size + start)
            if size - start > MOST_BYTES:
                raise OSError(EFBIG, f"longer than {MOST_BYTES >> 20} MB")
            file.seek(start)
            raw = file.read()
        raw = raw[: raw.rfind(b"\n") + 1]
        return raw, start + len(raw)


class WatchedSession:
    """nca's knowledge of a session. Its methods may be called by several threads.

    clean             takes keys and passwords out of a text
    patience_seconds  how long an answer waits for what is left out of it
    """

    def __init__(
        self,
        reader: Format,
        transcript: Transcript | StoredTranscript,
        clean: Callable[[str], str],
        patience_seconds: float = PATIENCE_SECONDS,
    ) -> None:
        self._reader, self._transcript, self._clean = reader, transcript, clean
        self._patience_seconds = patience_seconds
        self._calls_lock, self._lost_lock = Lock(), Lock()
        self._repeats = Repeats(marks_refusals=False)
        self._calls_read = -FAR_BYTES
        self._ready: tuple[Handover | None, int] = None, 0
        """The losses of the compaction, and the place up to which the transcript was read for them."""
        self.is_compacting = False
        self._owed_since = 0.0
        self._looked_to = -1
        """How far compactions were looked for; -1: what the transcript has at first is old."""
        self._text_beside: str | None = None
        """The losses without text that can be read after the compaction; None until it was left out."""
        self._looking: Thread | None = None

    @property
    def owes(self) -> bool:
        """Whether a compaction has been made, and what it lost was not handed over yet."""
        return self._owed_since > 0

    def note_compacting(self) -> None:
        """A compaction is about to begin."""
        with self._lost_lock:
            self._ready, self._owed_since = (None, 0), 0.0
            self._text_beside, self._looking = None, None
            self.is_compacting = True

    def note_compacted(self, at: float) -> None:
        self._owed_since, self.is_compacting = at, False

    def note_taken(self) -> None:
        """The losses have been handed over."""
        self._ready, self._owed_since = (None, 0), 0.0

    def finds_compaction(self, mark: str) -> bool:
        """Whether the transcript has got a summary that holds `mark` since somebody last asked. Raises OSError."""
        raw, end = self._transcript.read(self._looked_to)
        is_first, self._looked_to = self._looked_to < 0, end
        found = (record.summary for record in self._records(raw) if isinstance(record, Compacted))
        return not is_first and any(mark in summary for summary in found)

    def failed_before(self, call: ToolCall) -> Failure | None:
        """How this call failed before, if nothing was done since that can have changed it. Raises OSError.

        The transcript may write a call otherwise than the hook; if it has the call already, that counts.
        """
        with self._calls_lock:
            raw, self._calls_read = self._transcript.read(self._calls_read)
            for record in self._records(raw):
                if isinstance(record, Said) and not record.is_aside:
                    self._repeats.note(without_handovers(record.message))
            return self._repeats.failed_before(self._repeats.open_call(call.id) or call)

    def prepare(self) -> None:
        """Prepare the losses of the compaction, from the transcript so far. Raises OSError, NcaError.

        If the transcript already has the compaction, the text that can be read after it is left out.
        """
        with self._lost_lock:
            _, read = self._ready
            if read and (not (added := self._added(read)) or any(isinstance(one, Compacted) for one in added)):
                return
            raw, end = self._transcript.read()
            copy = assemble(self._reader.read(Source(self._transcript.place, raw=raw)), self._transcript.place).copy
            made = compactions(copy)
            standing = ""
            if self.owes and made and made[-1].at >= self._owed_since - JUST_NOW_SECONDS:
                shown = resolve(History(copy.entries, copy.view(copy.head_view)))
                standing = "\n".join(message.text for message in shown)
            self._ready = Handover(copy, self._clean, standing), end

    def lost(self) -> str:
        """The losses of the compaction, without text that can be read after it; "" until it is ready. Raises OSError.

        If leaving it out takes too long, it is in this answer, and not in later ones.
        """
        handover, read = self._ready
        if handover is None or self._text_beside is not None:
            return self._text_beside or ""
        said = self._added(read)
        place = next((place for place, one in enumerate(said) if isinstance(one, Compacted)), None)
        if place is None:
            return handover.text
        standing = (one.summary if isinstance(one, Compacted) else one.message.text for one in said[place:])
        if self._looking is None:
            self._looking = Thread(target=self._make_text_beside, args=(handover, "\n".join(standing)), daemon=True)
            self._looking.start()
        self._looking.join(self._patience_seconds)
        return handover.text if self._text_beside is None else self._text_beside

    def _make_text_beside(self, handover: Handover, standing: str) -> None:
        self._text_beside = handover.beside(standing)
        if not self._text_beside:
            self.note_taken()

    def _added(self, read: int) -> list[Said | Compacted]:
        """The transcript's lines since then."""
        return [one for one in self._records(self._transcript.read(read)[0]) if isinstance(one, Said | Compacted)]

    def _records(self, raw: bytes) -> Iterable[Record]:
        """The records of some lines."""
        try:
            yield from self._reader.read(Source(self._transcript.place, raw=raw))
        except NcaError:
            return  # of these lines alone nothing can be read
