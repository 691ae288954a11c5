"""What a killed process had shown to the person, compared with what the next process finds."""

from __future__ import annotations

import asyncio
import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from nca.agent.conversation import Conversation
from nca.config.loaded import defaults
from nca.context.view import check_partition
from nca.messages import Message
from nca.models.model import ModelRequest
from nca.sessions.passages import MAX_PASSAGES, stored_passages
from nca.sessions.session import Session
from nca.sessions.store import Store
from nca.sessions.views import SummaryPlace
from nca.testing.scripted import ScriptedModel
from nca.tools.toolbox import Toolbox
from nca.transcripts.archives import archived, restore
from tests.context.promises import misplaced, refused
from tests.sessions.samples import sqlite_of
from tests.soak import facts
from tests.soak.facts import AnyFact, digest_of, digest_of_all, whole_of
from tests.soak.program import EFFECTS, EXPORT, MODEL, SETTINGS, SUMMARY, Effect, standing, wants_summary, worked_on

PARTIAL_CHARS = 4_096
PIECE_CHARS = 16


@dataclass
class Known:
    """A session as it was seen last. `digest`: of a whole log that was added at once."""

    log: list[str] = field(default_factory=list)
    digest: str = ""
    stands: facts.Stands | None = None


@dataclass
class Account:
    """Of one home, over all the processes that were killed in it."""

    sessions: dict[str, Known] = field(default_factory=dict)
    ran: set[str] = field(default_factory=set)
    written: str = ""
    pending: facts.Began | None = None
    seen: facts.Seen | None = None
    allows_notes: bool = False
    """A damaged file lies there: that it was set aside will be said."""

    def hear(self, fact: AnyFact) -> None:
        match fact:
            case facts.Began():
                self.pending = fact
            case facts.Done():
                self.pending = self.seen = None
            case facts.Logged(session, seq, digest):
                log = self.sessions.setdefault(session, Known()).log
                assert seq <= len(log) + 1
                log[seq - 1 :] = [*log[seq - 1 : seq - 1], digest] if seq > len(log) else [digest, *log[seq:]]
                self.seen = None
            case facts.Seen():
                self.seen = fact
            case facts.Ran(call):
                self.ran.add(call)
            case facts.Stands(session):
                self.sessions.setdefault(session, Known()).stands = fact
            case facts.Added(session, digest):
                self.sessions[session] = Known(digest=digest)
                self.pending = None
            case facts.Deleted(session):
                del self.sessions[session]
                self.pending = None
            case facts.Written(_, digest):
                self.written = digest
                self.pending = None

    def check(self, home: Path) -> list[str]:
        """Open what the killed process left, as the next one would, go on in it, and give what is wrong with it."""
        effects = _content(home / EFFECTS)
        with Store.open(home / "data" / "sessions.db") as store:
            problems = [] if self.allows_notes else [f"it says: {note}" for note in store.notes]
            problems += _unsound(store)
            problems += _brought_back(store)
            problems += self._sessions(store)
            for info in store.list(None):
                with store.open_session(info.id) as session:
                    problems += self._session(store, session)
            problems += self._effects(effects)
            problems += self._export(home)
            problems += asyncio.run(self._going_on(store, home))
            self._settle(store)
        if _content(home / EFFECTS) != effects:
            problems.append("opening the session ran a tool again")
        return problems

    def _sessions(self, store: Store) -> Iterator[str]:
        found = {info.id for info in store.list(None)}
        pending = self.pending or facts.Began("nothing")
        for session in self.sessions.keys() - found:
            is_empty = not self.sessions[session].log
            if pending.session != session or not (pending.what == "delete" or (pending.what == "close" and is_empty)):
                yield f"session {session} is gone"
        for session in found - self.sessions.keys():
            copy = store.copy_of(session)
            is_new = pending.what == "open" and not copy.entries
            is_added = pending.expected == digest_of_all(entry.message for entry in copy.entries)
            if not is_new and not (pending.what == "add" and is_added):
                yield f"session {session} has come from nowhere, or in part"

    def _session(self, store: Store, session: Session) -> Iterator[str]:
        info = session.info
        known = self.sessions.get(info.id, Known())
        entries = session.log.entries()
        messages = [entry.message for entry in entries]
        log = [digest_of(message) for message in messages]
        if [entry.seq for entry in entries] != list(range(1, len(entries) + 1)):
            yield "the log has a gap"
        if log[: len(known.log)] != known.log:
            yield f"{info.id}: acknowledged messages are lost or changed ({len(known.log)} known, {len(log)} found)"
        if known.digest and digest_of_all(messages) != known.digest:
            yield f"{info.id}: an added session is not whole"
        calls = [call.id for message in messages for call in message.tool_calls]
        results = [message.tool_call_id for message in messages if message.role == "tool"]
        if calls != results:
            yield f"{info.id}: calls and results are no pairs"
        if session.log.partial() is not None:
            yield f"{info.id}: the partial answer is still there"
        yield from self._partial(info.id, messages)
        yield from self._stands(store, session, known)
        yield from _spilled(messages)

    def _partial(self, session: str, messages: list[Message]) -> Iterator[str]:
        for message in messages:
            if message.role == "assistant" and message.text and not whole_of(message.text).startswith(message.text):
                yield f"{session}: an answer is not what the model said"
        if self.seen is None or self.seen.session != session or messages[-1].role != "assistant":
            kept = 0
        else:
            kept = len(messages[-1].text)
        if self.seen and self.seen.session == session and kept < self.seen.chars - PARTIAL_CHARS - PIECE_CHARS:
            yield f"{session}: {self.seen.chars} characters of an answer were shown and {kept} kept"

    def _stands(self, store: Store, session: Session, known: Known) -> Iterator[str]:
        """The view in force is the one that was seen, or, where something was going on, one step from it."""
        info, seen = session.info, known.stands
        head = len(session.log.entries())
        parents: dict[int, int | None] = {}
        placed: set[int] = set()
        for view, parent, body in session.views.stored():
            parents[view] = parent
            placed |= {item.row for item in body.items if isinstance(item, SummaryPlace)}
            whole = session.views.load(view)
            check_partition(whole)
            if whole.tail > head + 1:
                yield f"{info.id}: view {view} covers more than the log"
        if placed != session.views.summaries_by_row().keys():
            yield f"{info.id}: there are summaries without a view, or views without their summary"
        if {record.view_after for record in session.views.compactions()} != parents.keys() - {0}:
            yield f"{info.id}: a compaction is there in part"
        if seen is None:
            return
        now = standing(session)
        is_moving = self.pending is not None and self.pending.session == info.id
        if now != seen and not is_moving:
            yield f"{info.id}: {now} was {seen}, and nothing was going on"
        steps = {seen.view, parents.get(seen.view), *(view for view, parent in parents.items() if parent == seen.view)}
        changes = [now.view != seen.view, now.name != seen.name]
        # Pinning a message may show it again first; that is a view of its own.
        if now.view not in steps or sum(changes) > 1 or len(set(now.pins) ^ set(seen.pins)) > 1:
            yield f"{info.id}: {now} is more than one step from {seen}"
        if now.views not in (seen.views, seen.views + 1) or (now.views > seen.views and now.view != max(parents)):
            yield f"{info.id}: a compaction is there and not in force, or one has gone: {now}, seen {seen}"

    def _effects(self, content: bytes) -> Iterator[str]:
        counts = Counter(content.decode().split())
        yield from (f"the call {call} had its effect {count} times" for call, count in counts.items() if count > 1)
        yield from (f"the call {call} was seen to end and had no effect" for call in self.ran - counts.keys())

    def _export(self, home: Path) -> Iterator[str]:
        content = _content(home / EXPORT)
        digest = hashlib.sha256(content).hexdigest() if content else ""
        expected = {self.written}
        if self.pending is not None and self.pending.what == "write":
            expected.add(self.pending.expected)
        if digest not in expected:
            yield "the exported file is neither the old one nor the new one"

    async def _going_on(self, store: Store, home: Path) -> list[str]:
        """One more turn, with a request that every provider would take."""
        conversation = Conversation.open(
            defaults().with_values(SETTINGS, "the test"),
            store=store,
            model=ScriptedModel([_answer] * 10, facts=MODEL),
            directory=home,
            session=worked_on(store),
            toolbox=Toolbox([Effect(home)]),
        )
        window = conversation._window
        problems = refused(window.history, window.prompt.text) if window.history.view_tokens else []
        finished = await conversation.send("Go on.")
        if finished.reason != "answered":
            problems.append(f"the session does not go on: {finished}")
        problems += refused(window.history, window.prompt.text)
        problems += misplaced([entry.message for entry in window.history.entries], window.history.view)
        await conversation.close()
        return problems

    def _settle(self, store: Store) -> None:
        """What the next process finds is what is known from now on."""
        self.pending = self.seen = None
        self.sessions = {}
        for info in store.list(None):
            with store.open_session(info.id, read_only=True) as session:
                log = [digest_of(entry.message) for entry in session.log.entries()]
                self.sessions[info.id] = Known(log, stands=standing(session))


def _answer(request: ModelRequest) -> str:
    return SUMMARY if wants_summary(request) else facts.prose("on", 300)


def _unsound(store: Store) -> Iterator[str]:
    """What SQLite finds wrong, and messages that the index has not, or has and should not have."""
    connection = sqlite_of(store).connection
    verdict = connection.pragma("integrity_check")
    if verdict != "ok":
        yield f"the database is corrupt: {verdict}"
    broken = connection.execute("PRAGMA foreign_key_check").fetchall()
    if broken:
        yield f"{len(broken)} rows refer to nothing"
    outputs = store.path.parent / "outputs" if store.path else None
    expected = {
        number * MAX_PASSAGES + place
        for number, body in store._database.rows("SELECT id, body FROM messages")
        for place in range(len(stored_passages(body, outputs)))
    }
    found = {row for (row,) in store._database.rows("SELECT rowid FROM passages")}
    if found != expected:
        yield f"the index has {len(found - expected)} passages too many and lacks {len(expected - found)}"


def _brought_back(store: Store) -> Iterator[str]:
    """Restore what is archived."""
    for path, info in archived(store):
        if info is None:
            yield f"the archive {path.name} cannot be read"
        else:
            restore(store, info.id)


def _spilled(messages: list[Message]) -> Iterator[str]:
    """Outputs that were too large for the view lie whole in their files."""
    for message in messages:
        head, _, tail = message.text.rpartition("\n[The whole output is in ")
        if message.role == "tool" and head:
            content = _content(Path(tail.rstrip("]"))).decode()
            if content != whole_of(head):
                yield f"the output that {message.tool_call_id} left in a file is not whole"


def _content(path: Path) -> bytes:
    return path.read_bytes() if path.exists() else b""
