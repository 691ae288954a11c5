"""What a search gives: messages with the stretch that answers, and sessions by the messages that they hold."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import msgspec

from nca.errors import StoreDamaged
from nca.messages import Message
from nca.sessions import search
from nca.sessions.database import Database
from nca.sessions.encoding import decode
from nca.sessions.passages import cuts, plain_text
from nca.sessions.ranking import Ranked, Weights, rank_sessions
from nca.sessions.snippets import Marker

SNIPPET_CHARS = 200
BESIDE_CHARS = 80
SESSION_CANDIDATES = 600
_OF_ONE_SESSION = 3
_SPARE = 5
_LOOKED_THROUGH_CHARS = 10_000
"""Of a message beside a hit."""

_message_decoder = msgspec.json.Decoder(Message)

_ROWS = """
SELECT session, seq, at, role, body, (SELECT id FROM sessions WHERE number = session) AS id,
    (SELECT coalesce(max(seq), 1) FROM messages AS turn
     WHERE turn.session = messages.session AND turn.seq <= messages.seq AND turn.role = 'user') AS first,
    (SELECT coalesce(min(seq) - 1, (SELECT max(seq) FROM messages AS log WHERE log.session = messages.session))
     FROM messages AS turn
     WHERE turn.session = messages.session AND turn.seq > messages.seq AND turn.role = 'user') AS last
FROM messages WHERE (session, seq) IN (SELECT value ->> 0, value ->> 1 FROM json_each(?))
"""


class Beside(msgspec.Struct, frozen=True):
    """A message right before or after a hit: the answer to it, or what it answers."""

    seq: int
    role: str
    snippet: str


class Hit(msgspec.Struct, frozen=True):
    """A message that was found, or a note.

    id        what `recall` and the commands call it: `1a2b3c4d:12`
    session   the session's id; empty for a note
    seq       the message's place in the log; of a note, its place among the notes
    role      the message's; `note` or `day` for what was noted
    at        seconds since the epoch, for people only
    score     comparable within one search
    snippet   about SNIPPET_CHARS characters at most, on one line
    turn      first and last seq of the turn that the message is of
    around    the messages right before and after it, unless they are hits themselves
    """

    id: str
    session: str
    seq: int
    role: str
    at: float
    score: float
    snippet: str
    turn: tuple[int, int]
    around: tuple[Beside, ...] = ()


class SessionHit(msgspec.Struct, frozen=True):
    """A session that was found, with its best messages. `session` is its id."""

    session: str
    score: float
    hits: tuple[Hit, ...]


class _Row(NamedTuple):
    session: int
    seq: int
    at: float
    role: str
    body: str
    id: str
    first: int
    last: int


def find(
    database: Database, question: str, session: int | None, limit: int, *, weights: Weights | None = None
) -> list[Hit]:
    """The messages that answer best, in one session (its row) or in all of them. No text is an error."""
    ranked, weighed = search.ranked(database, question, session, weights=weights)
    return _hits(database, ranked, _marker(database, weighed), limit)


def find_sessions(database: Database, question: str, limit: int) -> list[SessionHit]:
    """The sessions that hold most of a question, each with its best messages."""
    ranked, weighed = search.ranked(database, question, None, candidates=SESSION_CANDIDATES)
    marker = _marker(database, weighed)
    found = []
    for score, messages in rank_sessions(ranked)[:limit]:
        hits = tuple(_hits(database, messages, marker, _OF_ONE_SESSION))
        if hits:
            found.append(SessionHit(hits[0].session, round(score, 3), hits))
    return found


def found_text(database: Database, session: int, seq: int) -> str:
    """All of a message that search looks at; empty where there is no such message."""
    row = database.row("SELECT body FROM messages WHERE session = ? AND seq = ?", (session, seq))
    return _text(row[0], seq, _outputs_of(database)) if row else ""


def _outputs_of(database: Database) -> Path | None:
    """Where whole tool outputs lie."""
    return database.path.parent / "outputs" if database.path else None


def _marker(database: Database, weighed: Sequence[search.Weighed]) -> Marker:
    stem = search.Stems(database).stem
    weights: dict[str, float] = {}
    for one in weighed:
        for phrase in one.term.phrases:
            for word in re.findall(r"[^\W_]+", phrase.text.lower()):
                weights[word] = max(weights.get(word, 0.0), one.idf * phrase.weight)
    return Marker(weights, stem)


def _hits(database: Database, ranked: Sequence[Ranked], marker: Marker, limit: int) -> list[Hit]:
    # A few more than are wanted: some stand beside what was found and have nothing to show.
    ranked = ranked[: limit + _SPARE]
    near = {(one.session, one.seq + step) for one in ranked for step in (-1, 0, 1)}
    rows = [_Row(*row) for row in database.rows(_ROWS, (json.dumps(sorted(near)),))]
    known = {(row.session, row.seq): row for row in rows}
    texts = {place: text for place, row in known.items() if (text := _shown(row, _outputs_of(database)))}
    chosen = [one for one in ranked if (one.session, one.seq) in texts][:limit]
    beside = {place: known[place] for place in texts.keys() - {(one.session, one.seq) for one in chosen}}
    hits = []
    for one in chosen:
        row = known[one.session, one.seq]
        snippet = _snippet(texts[one.session, one.seq], one.place, marker)
        around = []
        for other in (beside.get((one.session, one.seq + step)) for step in (-1, 1)):
            if other:
                text = texts[other.session, other.seq][:_LOOKED_THROUGH_CHARS]
                around.append(Beside(other.seq, other.role, marker.snippet(text, BESIDE_CHARS)))
        score, turn = round(one.score, 3), (row.first, row.last)
        id = f"{row.id}:{row.seq}"
        hits.append(Hit(id, row.id, row.seq, row.role, row.at, score, snippet, turn, tuple(around)))
    return hits


def _shown(row: _Row, outputs: Path | None) -> str:
    """What a message has to show; nothing where it cannot be read: whoever reads the message itself is told."""
    with suppress(StoreDamaged):
        return _text(row.body, row.seq, outputs)
    return ""


def _snippet(text: str, place: int, marker: Marker) -> str:
    places = cuts(text)
    first, last = places[place] if place < len(places) else (0, len(text))
    return marker.snippet(text[first:last], SNIPPET_CHARS)


def _text(body: str, seq: int, outputs: Path | None) -> str:
    return plain_text(decode(body, _message_decoder, f"message {seq}"), outputs)
