"""The sessions of other agents on this machine: indexed in the background, and searched as far as they are indexed.

A thread looks at the agents' files again and again, more often while questions come. What is new or has changed is
read, newest files first; what is gone is removed. A question never waits for it. One process indexes at a time, and all
that run answer from the index.
"""

from __future__ import annotations

import os
import re
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from itertools import chain
from pathlib import Path

import msgspec

from nca.context.view import RECALL
from nca.errors import NcaError, StoreError
from nca.mcp_server.history import Copies, Imported, Place
from nca.messages import Entry, Message
from nca.sessions import foreign_index
from nca.sessions.lock import FileLock
from nca.sessions.log import title_of
from nca.sessions.passages import plain_text
from nca.sessions.past_sessions import PastSession, PastSessions
from nca.transcripts.formats import records
from nca.transcripts.formats.records import Format, Record, Said, StoredSession
from nca.transcripts.formats.source import Source

FRESH_SECONDS = 3.0
"""The pause between two looks at the files, while questions come."""
IDLE_SECONDS = 15.0
"""The same while none come."""
_SAID_EVERY_SECONDS = 0.5
_NICENESS = 10
_NOT_YET = "the sessions of other agents are not indexed yet; ask again in a moment"
_OWN_TOOL = re.compile(r"(?:.*nca.*[^a-z])?(?:recall|expand)")
"""nca's own tools as agents name them: mcp__nca__recall, nca_expand. Their results repeat what was found once."""


class OtherAgents(Place):
    """The place of other agents' sessions."""

    def __init__(
        self, path: Path, formats: Sequence[Format], env: Mapping[str, str], home: Path, *, version: str
    ) -> None:
        """path: the index; version: of the nca that makes it."""
        super().__init__(path)
        self._formats = formats
        self._env, self._home = env, home
        self._made_by = ", ".join([version, *(one.name for one in formats)])
        self._is_kept_fresh = False
        self._is_asked = threading.Event()
        self._problem = ""

    @property
    def agents(self) -> Sequence[str]:
        return [one.name for one in self._formats]

    def sessions(self) -> PastSessions:
        self._is_asked.set()
        return super().sessions()

    def _opened(self) -> PastSessions:
        try:
            return PastSessions.open(self._path, foreign_index.FOREIGN, foreign_index.FOREIGN_COLUMNS)
        except StoreError as error:
            if not self._is_kept_fresh:
                raise
            raise StoreError(f"{_NOT_YET.capitalize()}.") from error  # it is being made, or made again

    def whole(self, session: PastSession, entry: Entry) -> str:
        with self._lock:
            database = self._open.database if self._open is not None else None
            found = foreign_index.origin(database, session.number, entry.seq) if database is not None else None
        if found is None:
            return ""
        path, agent, key = found
        reader = next((one for one in self._formats if one.name == agent), None)
        try:
            known = reader.read(Source.of_file(path), key) if reader is not None else ()
            said = (record for record in known if isinstance(record, Said))
            message = next((one.message for seq, one in enumerate(said, 1) if seq == entry.seq), None)
        except NcaError:
            return ""  # the file is gone, or is being written: the index has the beginning and the end
        return plain_text(message) or message.text if message is not None else ""

    def copies(self, sessions: PastSessions, imported: Imported) -> Copies:
        return foreign_index.copies(sessions.database, imported)

    def note(self) -> str:
        if self._problem:
            return self._problem
        with self._lock:
            known = foreign_index.progress(self._open.database) if self._open is not None else None
        if known is None or not known.is_known:
            return _NOT_YET if self._formats else ""
        notes = []
        if known.indexed < known.files:
            notes.append(f"indexed {known.indexed:,} of {known.files:,} files of other agents; ask again for the rest")
        if known.problems:
            files = "file" if known.problems == 1 else "files"
            notes.append(f"{known.problems:,} {files} of other agents cannot be read")
        return "; ".join(notes)

    def index(self) -> None:
        """Bring the index up to date. Returns at once if another process does. Raises StoreError."""
        lock = FileLock.acquire(self._path.parent / "locks" / f"{self._path.name}.indexing")
        if lock is None:
            return
        try:
            with closing(foreign_index.ForeignIndex(self._path, self._made_by)) as index:
                _Indexing(index, {one.name: one for one in self._formats}).run(list(self._found()))
        finally:
            lock.release()

    def keep_fresh(self) -> None:
        """Begin to keep the index up to date, in a thread that ends with the process."""
        self._is_kept_fresh = bool(self._formats)
        if self._formats:
            threading.Thread(target=self._keep_fresh, daemon=True).start()

    def _keep_fresh(self) -> None:
        if sys.platform == "linux":
            with suppress(OSError):  # of this thread alone
                os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICENESS)
        while True:
            self._is_asked.clear()
            try:
                self.index()
                self._problem = ""
            except StoreError as error:
                self._problem = f"the sessions of other agents cannot be indexed: {error.message}"
            time.sleep(FRESH_SECONDS)
            self._is_asked.wait(IDLE_SECONDS - FRESH_SECONDS)

    def _found(self) -> Iterator[foreign_index.File]:
        """The agents' files as they are now. A folder that cannot be read has none."""
        for one in self._formats:
            with suppress(OSError):
                for path in chain(one.files(self._env, self._home), one.subagents(self._env, self._home)):
                    with suppress(OSError):
                        status = path.stat()
                        # A database that is in use has its newest pages in a log beside it.
                        log = path.with_name(f"{path.name}-wal")
                        beside = log.stat() if os.path.exists(log) else None
                        size = status.st_size + (beside.st_size if beside else 0)
                        changed = max(status.st_mtime_ns, beside.st_mtime_ns if beside else 0)
                        yield foreign_index.File(path, one.name, size, changed)


class _Indexing:
    """One pass over the files."""

    def __init__(self, index: foreign_index.ForeignIndex, formats: Mapping[str, Format]) -> None:
        self._index = index
        self._formats = formats
        self._said_at = float("-inf")

    def run(self, found: Sequence[foreign_index.File]) -> None:
        known = self._index.files()
        paths = {file.path for file in found}
        self._index.forget(file for path, file in known.items() if path not in paths)
        changed = [file for file in found if known.get(file.path) != file]
        changed.sort(key=lambda file: -file.modified_ns)
        for number, file in enumerate(changed):
            self._say(len(paths), len(paths) - len(changed) + number)
            self._file(file)
        self._index.say(len(paths), len(paths))

    def _say(self, files: int, indexed: int) -> None:
        if time.monotonic() - self._said_at >= _SAID_EVERY_SECONDS:
            self._index.say(files, indexed)
            self._said_at = time.monotonic()

    def _file(self, file: foreign_index.File) -> None:
        reader, keys, problem, mark = self._formats[file.agent], list[str](), "", foreign_index.Mark()
        try:
            for stored in reader.sessions(Source.of_file(file.path)):
                keys.append(stored.key)
                mark = self._session(file, reader, stored)
        except StoreError:
            raise
        except NcaError as error:
            problem = error.message
        except Exception as error:  # noqa: BLE001  a fault of one reader, or in one file, must not hide all others
            problem = f"{type(error).__name__}: {error}"
        self._index.finish(file, keys, problem, mark)

    def _session(self, file: foreign_index.File, reader: Format, stored: StoredSession) -> foreign_index.Mark:
        """The place to continue when the file has grown."""
        about = foreign_index.About(
            key=stored.key, title=stored.title, directory=stored.directory, parent=stored.parent, at=stored.at
        )
        if stored.key and self._index.is_current(file, about):
            return foreign_index.Mark()
        mark = self._index.mark(file.path) if reader.hands_out_all else foreign_index.Mark()
        if mark.digest != Source.of_file(file.path).digest(mark.offset):
            mark = foreign_index.Mark()
        source = Source.of_file(file.path, mark.offset)
        reading = _Reading(self._index.about(file, about) if mark.offset else about, source, mark)
        session = self._index.begin(file, about)
        count = self._index.put(session, reading.messages(reader.read(source, stored.key)), mark.messages)
        self._index.end(session, reading.about(), count)
        if not reader.hands_out_all:
            return foreign_index.Mark()
        return reading.mark._replace(digest=source.digest(reading.mark.offset))


class _Reading:
    """The messages of a session, and what its records say about it."""

    def __init__(self, about: foreign_index.About, source: Source, mark: foreign_index.Mark) -> None:
        """mark: where the reading of the source begins; then the last line before which all was handed out."""
        self.mark = mark
        self._source = source
        self._about = about
        self._directory = about.directory if mark.offset else ""
        self._title = ""

    def messages(self, found: Iterable[Record]) -> Iterator[tuple[float, Message]]:
        count = self.mark.messages
        for record in found:
            if isinstance(record, records.About):
                self._about = msgspec.structs.replace(
                    self._about,
                    own_id=record.session or self._about.own_id,
                    title=record.title or self._about.title,
                    directory=self._directory or record.directory or self._about.directory,
                )
            elif isinstance(record, Said):
                message = _without_own_tools(record.message)
                self._title = self._title or title_of([message])
                count += 1
                if self._source.line_at is not None:
                    self.mark = foreign_index.Mark(self._source.line_at, count)
                yield record.at or self._about.at, message

    def about(self) -> foreign_index.About:
        about = self._about
        return msgspec.structs.replace(
            about,
            own_id=about.own_id or about.key,
            title=about.title or self._title,
            directory=about.directory.rstrip("/"),
        )


def _without_own_tools(message: Message) -> Message:
    """The calls and results of nca's own tools under the name that searches pass over."""
    if message.role == "tool":
        is_own = _OWN_TOOL.fullmatch(message.name) is not None
        return msgspec.structs.replace(message, name=RECALL) if is_own else message
    if any(_OWN_TOOL.fullmatch(call.name) for call in message.tool_calls):
        calls = tuple(call for call in message.tool_calls if not _OWN_TOOL.fullmatch(call.name))
        return msgspec.structs.replace(message, tool_calls=calls)
    return message
