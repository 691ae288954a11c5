"""The log: messages in, messages out, and what a killed process left open. Append-only; the schema holds that too."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

import apsw
import msgspec

from nca.messages import Entry, Message
from nca.sessions.database import Database
from nca.sessions.encoding import decode, encode
from nca.sessions.schema import SAID, TODO_RESULT

OUTCOME_UNKNOWN = "[interrupted: outcome unknown]"
"""The result of a tool call whose process died before it answered (reliability F2)."""

_TITLE_CHARS = 120
_MANY_ROWS = 1_000
_MOST = 2**62

_message_decoder = msgspec.json.Decoder(Message)


class Partial(msgspec.Struct, frozen=True):
    """An answer that is still being streamed: all of it so far."""

    text: str
    reasoning: str = ""
    at: float = 0.0


_partial_decoder = msgspec.json.Decoder(Partial)


_HEAD = "SELECT max(seq) FROM messages WHERE session = ?"


def head(connection: apsw.Connection, session: int) -> int:
    """The last seq, inside the caller's transaction; 0 for an empty log."""
    return int(connection.execute(_HEAD, (session,)).get or 0)


def length(database: Database, session: int) -> int:
    """How many messages there are, which is the last seq."""
    row = database.row(_HEAD, (session,))
    return int(row[0] or 0) if row else 0


def entries(database: Database, session: int, first: int = 1, last: int | None = None) -> list[Entry]:
    """The messages first … last, without a last one all from `first` on. Raises StoreDamaged for one that cannot be
    read."""
    rows = database.rows(
        "SELECT seq, body, at FROM messages WHERE session = ? AND seq BETWEEN ? AND ? ORDER BY seq",
        (session, first, _MOST if last is None else last),
    )
    with _collector_paused(len(rows) > _MANY_ROWS):
        return [Entry(seq, decode(body, _message_decoder, f"message {seq}"), at) for seq, body, at in rows]


def said(database: Database, session: int, last: int) -> tuple[int, int]:
    """How many of the messages 1 … last a person wrote, and the seq of the newest of them; 0 for none."""
    row = database.row(
        f"SELECT count(*), coalesce(max(seq), 0) FROM messages WHERE session = ? AND seq <= ? AND {SAID}",  # noqa: S608
        (session, last),
    )
    return (int(row[0]), int(row[1])) if row else (0, 0)


def todo_results(database: Database, session: int) -> list[int]:
    """The seqs of what may be results of the todo tool, newest first."""
    rows = database.rows(
        f"SELECT seq FROM messages WHERE session = ? AND {TODO_RESULT} ORDER BY seq DESC",  # noqa: S608
        (session,),
    )
    return [seq for (seq,) in rows]


def append(database: Database, session: int, messages: Sequence[Message]) -> list[Entry]:
    """Durable on return, and the partial answer is gone. Gives the entries as they will be read again."""
    if not messages:
        return []
    bodies = [encode(message) for message in messages]
    stored = [decode(body, _message_decoder, "a message") for body in bodies]
    at = time.time()
    with database.transaction() as connection:
        seq = head(connection, session) + 1
        _insert(connection, [(session, seq + place, at, stored[place].role, body) for place, body in enumerate(bodies)])
        connection.execute("DELETE FROM partials WHERE session = ?", (session,))
        connection.execute("UPDATE sessions SET title = ? WHERE number = ? AND title = ''", (title_of(stored), session))
        touch(connection, session, at)
    return [Entry(seq + place, message, at) for place, message in enumerate(stored)]


def insert(connection: apsw.Connection, session: int, copied: Sequence[Entry]) -> None:
    """The whole log of a session that is being copied, inside the caller's transaction."""
    _insert(connection, ((session, one.seq, one.at, one.message.role, encode(one.message)) for one in copied))


def _insert(connection: apsw.Connection, rows: Iterable[tuple[int, int, float, str, str]]) -> None:
    connection.executemany("INSERT INTO messages (session, seq, at, role, body) VALUES (?, ?, ?, ?, ?)", rows)


def touch(connection: apsw.Connection, session: int, at: float) -> None:
    """Make the session the one that was used last."""
    connection.execute(
        "UPDATE sessions SET updated_at = ?, touched = (SELECT max(touched) + 1 FROM sessions) WHERE number = ?",
        (at, session),
    )


def save_partial(database: Database, session: int, text: str, reasoning: str) -> None:
    """Durable on return; replaces what was saved before."""
    body = encode(Partial(text, reasoning, time.time()))
    with database.transaction() as connection:
        connection.execute(
            "INSERT INTO partials VALUES (?, ?) ON CONFLICT (session) DO UPDATE SET body = excluded.body",
            (session, body),
        )


def partial(database: Database, session: int) -> Partial | None:
    row = database.row("SELECT body FROM partials WHERE session = ?", (session,))
    return decode(row[0], _partial_decoder, "the partial answer") if row else None


def recover(database: Database, session: int) -> list[Entry]:
    """Close what a killed process left open; nothing where it left nothing, so twice is the same as once.

    Tool calls of the last step without a result get one that says so; a partial answer becomes an interrupted one.
    A partial answer of blanks, or of reasoning only, is dropped: providers refuse an empty message.
    """
    last = _last_step(database, session)
    answered = {message.tool_call_id for message in last if message.role == "tool"}
    calls = [call for message in last for call in message.tool_calls if call.id not in answered]
    closing = [
        Message("tool", OUTCOME_UNKNOWN, tool_call_id=call.id, name=call.name, is_error=True, is_synthetic=True)
        for call in {call.id: call for call in calls}.values()
    ]
    left = partial(database, session)
    if left is not None and left.text.strip():
        closing.append(Message("assistant", left.text, reasoning=left.reasoning, is_interrupted=True))
    if left is not None and not closing:
        with database.transaction() as connection:
            connection.execute("DELETE FROM partials WHERE session = ?", (session,))
    return append(database, session, closing)


def _last_step(database: Database, session: int) -> list[Message]:
    """The assistant message that the log ends with and the results after it; empty where it ends otherwise."""
    row = database.row(
        "SELECT seq FROM messages WHERE session = ? AND role <> 'tool' ORDER BY seq DESC LIMIT 1", (session,)
    )
    if row is None:
        return []
    step = [entry.message for entry in entries(database, session, row[0])]
    return step if step[0].role == "assistant" else []


def title_of(messages: Sequence[Message]) -> str:
    """The beginning of what the person said first, on one line."""
    for message in messages:
        if message.role == "user" and not message.is_synthetic and message.text.strip():
            return " ".join(message.text[: _TITLE_CHARS * 10].split())[:_TITLE_CHARS]
    return ""


@contextmanager
def _collector_paused(is_long: bool) -> Iterator[None]:
    """Decoding many messages makes many objects and no garbage: the collector's passes cost more than the decoding."""
    was_enabled = is_long and gc.isenabled()
    if was_enabled:
        gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
