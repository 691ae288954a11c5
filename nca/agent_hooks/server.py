"""The process that answers the hooks of all agents of this person, over a socket that only they can open.

A hook has no time to read a transcript. This process reads on while the agent works: what a compaction will lose is
ready when the agent asks for it. It ends by itself when no hook has come for a while.

Handovers and errors are logged in a file of JSON lines that only its owner can read.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import msgspec

from nca.agent_hooks.agents import AGENTS, Agent, Kind
from nca.agent_hooks.client import HANDED_ON_BYTES, LOG, MOST_BYTES, SOCKET, STARTING
from nca.agent_hooks.handover import MOST_CHARS, START
from nca.agent_hooks.session import StoredTranscript, Transcript, WatchedSession
from nca.errors import NcaError
from nca.humanize import natural
from nca.messages import ToolCall
from nca.safe_files import open_ordinary, write_atomically
from nca.sessions.lock import FileLock
from nca.transcripts.formats.registry import format_named
from nca.vocabulary import count

IDLE_SECONDS = 1800.0
POLL_SECONDS = 1.0
TALK_SECONDS = 2.0
"""A client that takes longer has given up."""
SETTLING_SECONDS, LOOK_SECONDS = 8.0, 0.1
"""Agents write their transcripts a little later: so long is looked for more while the agent compacts."""
MOST_SESSIONS = 32
INDEX = ("hooks", "index")
_MOST_HEAD_BYTES = 16 * 1024
"""The path of an agent's folder is the longest part of a head."""


class Event(msgspec.Struct, frozen=True, kw_only=True):
    """The fields of a hook's input that nca reads."""

    session_id: str
    hook_event_name: str
    transcript_path: str | None = None
    cwd: str = ""
    source: str = ""
    tool_name: str = ""
    tool_input: Any = None
    tool_use_id: str = ""
    agent_id: str | None = None
    """Set in a subagent, which has its calls in another file."""


class _Asked(NamedTuple):
    agent: Agent
    home: Path
    event: Event


class Server:
    """clean: takes keys and passwords out of a text."""

    def __init__(self, folder: Path, clean: Callable[[str], str], idle_seconds: float = IDLE_SECONDS) -> None:
        self._folder, self._clean, self._idle_seconds = folder, clean, idle_seconds
        self._log = Log(folder)
        self._sessions: dict[tuple[str, str], WatchedSession] = {}
        self._lock = threading.Lock()
        self._indexing: subprocess.Popen[bytes] | None = None

    def serve(self, first: bytes = b"") -> bool:
        """Answer until no hook comes any more; False at once if another process does. Raises StoreError, OSError.

        first  what a client said who started this process and did not wait
        """
        lock = FileLock.acquire(self._folder / "lock")
        if lock is None:
            return False
        _warm_up()
        os.chdir(self._folder)  # see the client
        Path(SOCKET).unlink(missing_ok=True)
        listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        old = os.umask(0o177)
        listener.bind(SOCKET)
        os.umask(old)
        listener.listen(64)
        listener.settimeout(POLL_SECONDS)
        Path(STARTING).unlink(missing_ok=True)
        try:
            if received := _received(BytesIO(first)):
                self._answer(*received)
            self._accept(listener)
        finally:
            Path(SOCKET).unlink(missing_ok=True)
            lock.release()
        return True

    def _accept(self, listener: socket.socket) -> None:
        last, own = time.monotonic(), Path(SOCKET).stat().st_ino
        while time.monotonic() - last < self._idle_seconds:
            try:
                client, _ = listener.accept()
            except TimeoutError:
                with suppress(FileNotFoundError):
                    if Path(SOCKET).stat().st_ino == own:
                        continue
                return  # somebody has removed the socket: nobody can come any more
            last = time.monotonic()
            threading.Thread(target=self._talk, args=(client,), daemon=True).start()

    def _talk(self, client: socket.socket) -> None:
        """Read one event, answer it, and note whether the answer was taken."""
        began = time.monotonic()
        with client, suppress(OSError):
            client.settimeout(TALK_SECONDS)
            received = _received(client.makefile("rb"))
            if received is None:
                return
            asked, answer = self._answer(*received)
            if asked is None:
                return
            if answer:
                client.sendall(_shaped(asked.event, answer))
            client.shutdown(socket.SHUT_WR)
            if answer:
                self._note_answer(asked, answer, client.recv(16), time.monotonic() - began)

    def _answer(self, agent: str, home: str, raw: bytes) -> tuple[_Asked | None, str]:
        """The answer to an event; "" for none."""
        try:
            asked = _Asked(AGENTS[agent], Path(home), msgspec.json.decode(raw, type=Event))
        except (KeyError, UnicodeDecodeError, RecursionError, msgspec.DecodeError) as error:
            self._log.add(Line(at=now(), agent=agent[:40], problem=f"an event could not be read: {error}"))
            return None, ""
        try:
            return asked, self._answer_to(asked)
        except Exception as error:  # noqa: BLE001  whatever a transcript holds, the agent goes on and the log says why
            self._note_problem(asked, error)
            return asked, ""

    def _answer_to(self, asked: _Asked) -> str:
        event = asked.event
        kind: Kind | None = asked.agent.kind(event.hook_event_name, event.source)
        if kind is None or event.agent_id or not (event.transcript_path or asked.agent.data):
            return ""
        session = self._session(asked)
        match kind:
            case "compacting":
                session.note_compacting()
                self._begin_preparing(asked, session)
                self._index()
            case "summarized":
                session.lost()  # from now on, without what the summary says
            case "compacted":
                session.note_compacted(now())
                return session.lost() or self._begin_preparing(asked, session)
            case "over":
                return self._prepare_for_later(asked, session)
            case "prompt":
                if asked.agent.summary and session.finds_compaction(asked.agent.summary):
                    return self._prepare_for_later(asked, session)
                return session.lost() if session.owes else ""
            case "call":
                arguments = msgspec.json.encode(event.tool_input or {}).decode()
                failure = session.failed_before(ToolCall(event.tool_use_id, event.tool_name, arguments))
                lost = session.lost() if session.owes else ""
                told = "\n\n".join(filter(None, (lost, failure.line() if failure else "")))
                return told if len(told) <= MOST_CHARS else lost
            case "ends":
                self._index()
        return ""

    def _prepare_for_later(self, asked: _Asked, session: WatchedSession) -> str:
        """A compaction has been made: make ready what it lost, for the next event."""
        session.note_compacting()
        session.note_compacted(now())
        self._index()
        return self._begin_preparing(asked, session)

    def _session(self, asked: _Asked) -> WatchedSession:
        """Raises OSError, ValueError if the path is none of the agent's."""
        key, agent = _key(asked), asked.agent
        with self._lock:
            session = self._sessions.pop(key, None)
            if session is None:
                reader = format_named(agent.name)
                assert reader is not None
                if agent.data:
                    transcript: Transcript | StoredTranscript = StoredTranscript(asked.home, agent.sessions, key[1])
                else:
                    transcript = Transcript(asked.home / agent.sessions, Path(key[1]))
                session = WatchedSession(reader, transcript, self._clean)
            self._sessions[key] = session
            while len(self._sessions) > MOST_SESSIONS:
                del self._sessions[next(iter(self._sessions))]
            return session

    def _begin_preparing(self, asked: _Asked, session: WatchedSession) -> str:
        threading.Thread(target=self._prepare, args=(asked, session), daemon=True).start()
        return ""

    def _prepare(self, asked: _Asked, session: WatchedSession) -> None:
        """Make ready what a compaction loses, until it has been made: the newest messages are written meanwhile."""
        end = time.monotonic() + SETTLING_SECONDS
        try:
            session.prepare()
            while session.is_compacting and time.monotonic() < end:
                time.sleep(LOOK_SECONDS)
                session.prepare()
        except Exception as error:  # noqa: BLE001  as above
            self._note_problem(asked, error)

    def _index(self) -> None:
        """Bring the index of other agents' sessions up to date, in a process of its own."""
        with self._lock:
            if self._indexing is None or self._indexing.poll() is not None:
                program = [sys.executable, "-P", "-m", "nca", *INDEX]
                null = subprocess.DEVNULL
                self._indexing = subprocess.Popen(program, stdin=null, stdout=null, stderr=null)  # noqa: S603

    def _note_answer(self, asked: _Asked, answer: str, taken: bytes, seconds: float) -> None:
        if not taken:
            problem = f"the hook had gone when the answer was ready, after {round(1000 * seconds)} ms"
            self._log.add(_line(asked, problem=problem))
            return
        with self._lock:
            session = self._sessions.get(_key(asked))
        if session is not None and answer.startswith(START):
            session.note_taken()
        self._log.add(_line(asked, text=answer, ms=natural(taken.decode("ascii", "replace"))))

    def _note_problem(self, asked: _Asked, error: Exception) -> None:
        is_expected = isinstance(error, NcaError | OSError | ValueError)
        said = error.message if isinstance(error, NcaError) else str(error)
        said = said if is_expected else f"{type(error).__name__}: {said}"
        self._log.add(_line(asked, problem=said))


def _warm_up() -> None:
    """Load what the first answer would wait for."""
    count("")
    for name in AGENTS:
        format_named(name)


def _key(asked: _Asked) -> tuple[str, str]:
    """The agent, and its file or the session: Gemini CLI continues in another file than it names at first."""
    event = asked.event
    return asked.agent.name, event.session_id if asked.agent.data else event.transcript_path or ""


def _line(asked: _Asked, *, text: str = "", problem: str = "", ms: int | None = None) -> Line:
    event = asked.event
    return Line(
        at=now(),
        agent=asked.agent.name,
        event=event.hook_event_name + (f" ({event.source})" if event.source else ""),
        session=event.session_id,
        directory=event.cwd,
        text=text,
        problem=problem,
        ms=ms,
    )


def _shaped(event: Event, answer: str) -> bytes:
    """The answer as the agents read it."""
    output = {"hookEventName": event.hook_event_name, "additionalContext": answer}
    return msgspec.json.encode({"hookSpecificOutput": output}) + b"\n"


def _received(client: BinaryIO) -> tuple[str, str, bytes] | None:
    """Agent, home and event; None if the client has gone."""
    head = client.readline(_MOST_HEAD_BYTES)
    agent, home, size = [*head.decode("utf-8", "replace").rstrip("\n").split("\t"), "", ""][:3]
    wanted = min(natural(size) or 0, MOST_BYTES + HANDED_ON_BYTES)
    event = client.read(wanted)
    return (agent, home, event) if head.endswith(b"\n") and len(event) == wanted else None


_MOST_LOG_BYTES = 2 * 1024 * 1024
"""Of a longer log the newer half stays."""


class Line(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One event.

    event    the hook's, as the agent names it
    text     what was handed over
    problem  why nothing was handed over, if something should have been
    ms       how long the hook waited for nca, without the start of its program; None if it had gone by then
    """

    at: float
    agent: str
    event: str = ""
    session: str = ""
    directory: str = ""
    text: str = ""
    problem: str = ""
    ms: int | None = None


class Log:
    def __init__(self, folder: Path) -> None:
        self._path = folder / LOG

    def add(self, line: Line) -> None:
        """Write a line. A disk that takes no more is no reason to disturb an agent."""
        with suppress(OSError):
            with open_ordinary(self._path, "ab", follows_links=False) as file:
                file.write(msgspec.json.encode(line) + b"\n")
                size = file.tell()
            if size > _MOST_LOG_BYTES:
                kept = self._raw()[-_MOST_LOG_BYTES // 2 :].partition(b"\n")[2]
                write_atomically(self._path, kept)

    def lines(self) -> list[Line]:
        """Oldest first; without lines that are damaged. Raises OSError."""
        found = []
        for row in self._raw().splitlines():
            with suppress(msgspec.DecodeError):
                found.append(msgspec.json.decode(row, type=Line))
        return found

    def _raw(self) -> bytes:
        try:
            with open_ordinary(self._path, follows_links=False) as file:
                return file.read()
        except FileNotFoundError:
            return b""


def now() -> float:
    return round(time.time(), 3)
