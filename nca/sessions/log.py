"""The message log of a session: append, read, keep a partial answer, and recover from a killed process.

The log is append-only; the schema enforces that.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import pairwise

import msgspec

from nca.context.file_reads import CUT_OFF, NOT_RUN
from nca.context.tokens import message_tokens
from nca.context.view import Range
from nca.errors import StoreDamaged, StoreError, StoreUnreachable
from nca.messages import Entry, Message
from nca.sessions.access import SessionAccess
from nca.sessions.encoding import decode, decode_message, encode
from nca.sessions.mended import stored_message
from nca.sessions.sql import SessionDatabase, Transaction

NOT_BEGUN = f"{NOT_RUN} nca ended before it began]"
"""The result of a tool call whose process died before the call began, such as while the person was asked."""

_TITLE_CHARS = 120
_MOST = 2**62


class Partial(msgspec.Struct, frozen=True):
    """An answer that is still being streamed, as far as it has come. `at`: seconds since the epoch.

    begun  behind an answer with tool calls: the ids of those that have begun; None: nobody noted that
    """

    text: str
    reasoning: str = ""
    at: float = 0.0
    begun: tuple[str, ...] | None = None


_SAVE = "INSERT INTO partials VALUES (?, ?) ON CONFLICT (session) DO UPDATE SET body = excluded.body"
HEAD = "SELECT max(seq) FROM messages WHERE session = ?"


class SessionLog:
    """The messages of one session, numbered by `seq` from 1. A call that writes returns when its data is durable."""

    def __init__(self, access: SessionAccess) -> None:
        self._access, self._said = access, access.database.said
        self._head: int | None = None
        """The newest seq as the writer of the session knows it; None: it has not looked yet."""
        self._written: int | None = None
        self._begun: tuple[str, ...] | None = None
        """The calls of the last answer that have begun. Their results do not end that; any other message does."""

    @property
    def head(self) -> int:
        """The newest seq; 0 for an empty log."""
        return self._access.integer(HEAD)

    def entries(self, first: int = 1, last: int | None = None) -> list[Entry]:
        """The messages first … last, or all from `first` on. Of a damaged one, what can be read."""
        first, last = max(1, first), _MOST if last is None else last
        end = min(last, self.head)  # read first: another process may append meanwhile
        rows = self._access.rows(
            "SELECT id, seq, body, at, role, coalesce(octet_length(body), 0), tokens FROM messages"
            " WHERE session = ? AND seq BETWEEN ? AND ? ORDER BY seq",
            first,
            last,
        )
        # A damaged index leads to other rows without an error. Each message is stored after the one before it.
        is_whole = all(id > before and seq == place + 1 for (before, place, *_), (id, seq, *_) in pairwise(rows))
        begin, reached = (rows[0][1], rows[-1][1]) if rows else (first, first - 1)
        if not is_whole or begin != first or reached < end:
            self._access.database.report(f"messages between {first} and {max(reached, end)} are missing or in disorder")
        return [
            Entry(seq, stored_message(body, role, seq, size), at, tokens)
            for _, seq, body, at, role, size, tokens in rows
        ]

    def rough_tokens(self, first: int) -> int:
        """About how many tokens the messages from `first` on have; nothing is read but their sizes."""
        return self._access.integer(
            "SELECT sum(coalesce(tokens, octet_length(body) / 4)) FROM messages WHERE session = ? AND seq >= ?", first
        )

    def said(self, last: int) -> tuple[int, int]:
        """How many of the messages 1 … last a person wrote, and the seq of the newest of them, or 0."""
        row = self._access.row(
            f"SELECT count(*), coalesce(max(seq), 0) FROM messages WHERE session = ? AND seq <= ? AND {self._said}",  # noqa: S608
            last,
        )
        return (int(row[0]), int(row[1])) if row else (0, 0)

    def said_before(self, seq: int, most: int) -> list[int]:
        """The newest messages before this one that a person wrote, newest first."""
        rows = self._access.rows(
            f"SELECT seq FROM messages WHERE session = ? AND seq < ? AND {self._said} ORDER BY seq DESC LIMIT ?",  # noqa: S608
            seq,
            most,
        )
        return [seq for (seq,) in rows]

    def next_said(self, seq: int) -> int:
        """The first message after this one that a person wrote, or 0."""
        first = f"SELECT min(seq) FROM messages WHERE session = ? AND seq > ? AND {self._said}"  # noqa: S608
        return self._access.integer(first, seq)

    def todo_results(self) -> list[int]:
        """The seqs of all possible results of the todo tool, newest first."""
        rows = self._access.rows(
            f"SELECT seq FROM messages WHERE session = ? AND {self._access.database.todo_result} ORDER BY seq DESC"  # noqa: S608
        )
        return [seq for (seq,) in rows]

    def append(self, messages: Sequence[Message], *, is_use: bool = True) -> list[Entry]:
        """Add all messages or none, and drop the partial answer. Returns the entries as they will be read again.

        is_use  the session is the one used last then
        While the database cannot be reached, they go to the session's spool, if it has one.
        """
        if not messages:
            return []
        bodies, at = [encode(message) for message in messages], time.time()
        try:
            with self._access.transaction() as connection:
                return self._append(connection, bodies, at, is_use=is_use)
        except StoreUnreachable:
            if self._head is None or (spool := self._access.spool) is None:
                raise
            entries = _entries(self._head + 1, bodies, at)
            spool.keep_messages(entries)
            self._head = entries[-1].seq
            return entries

    def append_in(self, connection: Transaction, messages: Sequence[Message]) -> list[Entry]:
        """The same inside the caller's transaction."""
        return self._append(connection, [encode(message) for message in messages], time.time())

    def _append(self, connection: Transaction, bodies: Sequence[str], at: float, *, is_use: bool = True) -> list[Entry]:
        number = self._access.number
        entries = _entries(head(connection, number) + 1, bodies, at)
        self._access.database.insert_messages(connection, number, entries, bodies, is_copy=False)
        appended(connection, number, entries, is_use=is_use)
        self._written = entries[-1].seq
        if any(entry.message.role != "tool" for entry in entries):
            self._begun = None
        if self._begun is not None:
            connection.execute(_SAVE, (number, encode(Partial("", begun=self._begun))))
        return entries

    def end_transaction(self, *, is_committed: bool) -> None:
        """Count the messages appended in the transaction, or drop them."""
        if is_committed and self._written is not None:
            self._head = self._written
        self._written = None

    def save_partial(self, text: str, reasoning: str = "") -> None:
        """Keep the answer so far, in place of the one saved before."""
        self._save(Partial(text, reasoning, time.time()))

    def save_begun(self, calls: Sequence[str]) -> None:
        """Keep which calls of the last answer have begun, before they do. `recover` says of the others: not run."""
        self._begun = tuple(calls)
        self._save(Partial("", begun=self._begun))

    def _save(self, partial: Partial) -> None:
        body = encode(partial)
        try:
            self._access.write(_SAVE, self._access.number, body)
        except StoreUnreachable:
            if self._head is None or (spool := self._access.spool) is None:
                raise
            spool.keep_partial(self._head + 1, body)

    def partial(self) -> Partial | None:
        """The answer that was being streamed, if there is one; without text if it is damaged."""
        row = self._access.row("SELECT body FROM partials WHERE session = ?")
        try:
            return decode(row[0], Partial, "the partial answer") if row else None
        except StoreDamaged:
            return Partial("")

    def recover(self) -> list[Entry]:
        """Complete a log that a killed process left open; returns the messages added. Running it twice adds nothing.

        Tool calls of the last step without a result get one that says so: NOT_BEGUN if it is noted which began and this
        one did not. A partial answer becomes an interrupted message; one without text is dropped, because providers
        refuse an empty message.
        """
        self._head = self.head
        last = self._last_step()
        answered = {message.tool_call_id for message in last if message.role == "tool"}
        calls = [call for message in last for call in message.tool_calls if call.id not in answered]
        left = self.partial()
        may_have_run = {call.id for call in calls} if left is None or left.begun is None else left.begun
        closing = [
            Message("tool", text, tool_call_id=call.id, name=call.name, is_error=True, source="nca")
            for call in {call.id: call for call in calls}.values()
            for text in [CUT_OFF if call.id in may_have_run else NOT_BEGUN]
        ]
        if left is not None and left.text.strip():
            closing.append(Message("assistant", left.text, reasoning=left.reasoning, is_interrupted=True))
        if left is not None and not closing:
            self._access.write("DELETE FROM partials WHERE session = ?", self._access.number)
        return self.append(closing, is_use=False)

    def _last_step(self) -> list[Message]:
        """The last assistant message and its results; empty if the log ends with another message."""
        row = self._access.row(
            "SELECT seq FROM messages WHERE session = ? AND role <> 'tool' ORDER BY seq DESC LIMIT 1"
        )
        if row is None:
            return []
        step = [entry.message for entry in self.entries(row[0])]
        return step if step[0].role == "assistant" else []


def head(connection: Transaction, session: int) -> int:
    """The newest seq, inside the caller's transaction; 0 for an empty log."""
    return int(connection.execute(HEAD, (session,)).get or 0)


def _entries(first: int, bodies: Sequence[str], at: float) -> list[Entry]:
    messages = [decode_message(body, "a message") for body in bodies]
    return [Entry(first + place, message, at, message_tokens(message)) for place, message in enumerate(messages)]


def appended(connection: Transaction, session: int, entries: Sequence[Entry], *, is_use: bool = True) -> None:
    """Update the session for new messages: no partial answer, perhaps a title, and a new time of last use."""
    connection.execute("DELETE FROM partials WHERE session = ?", (session,))
    title = title_of([entry.message for entry in entries])
    connection.execute("UPDATE sessions SET title = ? WHERE number = ? AND title = ''", (title, session))
    if is_use:
        touch(connection, session, entries[-1].at)


def retitle(connection: Transaction, session: int, said: str, before: Sequence[Range], now: Sequence[Range]) -> None:
    """Title a session by the first message of the person in the conversation, if that became another one.

    said  the condition for messages of the person; before, now: what was and is aside
    """
    old, new = (_first(connection, session, said, aside) for aside in (before, now))
    if old != new:
        title = title_of([stored_message(new[1], "user", new[0], len(new[1]))]) if new else ""
        connection.execute("UPDATE sessions SET title = ? WHERE number = ?", (title, session))


def _first(connection: Transaction, session: int, said: str, aside: Sequence[Range]) -> tuple[int, str] | None:
    shown = "".join(f" AND NOT (seq BETWEEN {first} AND {last})" for first, last in aside)
    sql = f"SELECT seq, body FROM messages WHERE session = ? AND {said}{shown} ORDER BY seq LIMIT 1"  # noqa: S608
    found: tuple[int, str] | None = connection.execute(sql, (session,)).get
    return found


def insert(database: SessionDatabase, connection: Transaction, session: int, copied: Sequence[Entry]) -> None:
    """Write the log of a copied session, or what it has more, in the caller's transaction. They are numbered in order.

    Raises StoreError if the messages do not follow the last one.
    """
    if not copied:
        return
    if copied[0].seq != head(connection, session) + 1:
        raise StoreError(f"Message {copied[0].seq} does not follow the last one")
    database.insert_messages(connection, session, copied, [encode(one.message) for one in copied], is_copy=True)


def touch(connection: Transaction, session: int, at: float) -> None:
    """Make this the session used last."""
    connection.execute(
        "UPDATE sessions SET updated_at = ?, touched = (SELECT max(touched) + 1 FROM sessions) WHERE number = ?",
        (at, session),
    )


def title_of(messages: Sequence[Message]) -> str:
    """The beginning of the person's first message, on one line."""
    for message in messages:
        if message.role == "user" and not message.is_synthetic and message.text.strip():
            return " ".join(message.text[: _TITLE_CHARS * 10].split())[:_TITLE_CHARS]
    return ""
