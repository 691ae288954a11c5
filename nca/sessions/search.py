"""Search in the log: the candidates that the full-text index gives, ranked.

The index is asked for terms that are rare enough to be looked through in a few hundredths of a second, whatever the
size of the store; common ones only order what those found.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import log

import apsw

from nca.sessions.database import Database
from nca.sessions.functions import register_matches
from nca.sessions.passages import MAX_PASSAGES
from nca.sessions.query import Phrase, Term, terms_of
from nca.sessions.ranking import Found, Passage, Ranked, Weights, rank

COUNTED = 4_000
"""A word in more passages than this is common: how many there are is estimated from how close these lie."""
MAX_POSTINGS = 6_000
"""Passages that one question has FTS5 put in order."""
CANDIDATES = 300
MAX_TERMS = 24
MAX_COMMON = 30_000
"""Passages that are looked through for common terms."""
COMMON_RATIO = 0.05
"""Another form or a beginning of a word that is in more of all passages than this is ignored."""
_FEW = 10
_TOKENIZER = ("porter", ["unicode61", "remove_diacritics", "2"])
_RANK = "bm25(1.0, 0.8, 0.0)"


@dataclass(frozen=True, slots=True)
class Weighed:
    """A term with how many passages hold it (at most), and what it counts for."""

    term: Term
    rows: int
    idf: float


def ranked(
    database: Database,
    question: str,
    session: int | None,
    *,
    weights: Weights | None = None,
    candidates: int = CANDIDATES,
) -> tuple[list[Ranked], list[Weighed]]:
    """The messages that answer best, in one session (its row) or all; and what the question was taken for."""
    head, last = _size(database, session)
    weighed = _weighed(database, terms_of(question), last)
    if not weighed:
        return [], []
    database.also(register_matches)
    rare, common = _rare(weighed, 2 * head)
    # Where every term is in a large part of all messages, only the newest ones are looked through.
    rows = min(rare[0].rows, 2 * head)
    first = _message_at(database, session, int((1 - MAX_POSTINGS / rows) * head)) if rows > MAX_POSTINGS else 0
    found = database.rows(
        "SELECT rowid, nca_matches(passages) FROM passages WHERE passages MATCH ? AND rowid >= ? AND rank MATCH ?"
        " ORDER BY rank LIMIT ?",
        (_expression(rare, session), first * MAX_PASSAGES, _RANK, candidates),
    )
    if not found:
        return [], weighed
    of_common, nothing = _common_counts(database, common, [rowid for rowid, _ in found]), (0.0,) * len(common)
    counts = {rowid: (*held, *of_common.get(rowid, nothing)) for rowid, held in _counts(found, rare).items()}
    words = {rowid: int(matches.split(" ", 1)[0]) for rowid, matches in found}
    mean_words = int(found[0][1].split(" ", 2)[1])
    messages = _messages(database, counts, words)
    return rank(messages, [one.idf for one in (*rare, *common)], mean_words, weights or Weights()), weighed


def _weighed(database: Database, terms: Sequence[Term], last: int) -> list[Weighed]:
    """The terms that some passage holds, rarest first. `last`: the id of the last message."""
    counter = _Counter(database, last)
    found = []
    for term in terms[: 4 * MAX_TERMS]:
        rows = {phrase: counter.rows(phrase) for phrase in term.phrases}
        kept = tuple(
            phrase
            for phrase, count in rows.items()
            if count and (phrase.weight == 1.0 or count <= max(_FEW, COMMON_RATIO * last))
        )
        if kept:
            total = sum(rows[phrase] for phrase in kept)
            count = min(last, total)
            idf = log(1 + (last - count + 0.5) / (count + 0.5))
            found.append(Weighed(Term(kept, term.weight), total, idf * term.weight))
    return sorted(found, key=lambda one: one.rows)[:MAX_TERMS]


class _Counter:
    """How many passages hold a phrase, at most: as many as hold its rarest word."""

    def __init__(self, database: Database, last: int) -> None:
        self._database = database
        self._last = last
        self._known: dict[str, int] = {}

    def rows(self, phrase: Phrase) -> int:
        if phrase.is_prefix:
            return self._count(phrase.sql)
        words = [f'"{word}"' for word in re.findall(r"[^\W_]+", phrase.text)]
        return min(map(self._count, words)) if words else 0

    def _count(self, expression: str) -> int:
        if expression not in self._known:
            row = self._database.row(
                "SELECT count(*), max(rowid) FROM (SELECT rowid FROM passages WHERE passages MATCH ? LIMIT ?)",
                (expression, COUNTED),
            )
            count, reach = row if row else (0, 0)
            if count == COUNTED:
                count = int(COUNTED * max(1.0, self._last * MAX_PASSAGES / reach))
            self._known[expression] = count
        return self._known[expression]


class Stems:
    """What the index makes of a word."""

    def __init__(self, database: Database) -> None:
        self._tokenizer = database.tokenizer(*_TOKENIZER)

    def stem(self, word: str) -> str:
        tokens = self._tokenizer(word.encode(), apsw.FTS5_TOKENIZE_QUERY, None, include_offsets=False)
        return next((str(token[0]) for token in tokens), word)


def _rare(weighed: Sequence[Weighed], most: int) -> tuple[list[Weighed], list[Weighed]]:
    """The terms to look for, and the rarest of the others, which only order what those find. `most`: rows of any."""
    rare: list[Weighed] = []
    common: list[Weighed] = []
    postings = of_common = 0
    for one in weighed:
        rows = min(one.rows, most)
        if not rare or postings + rows <= MAX_POSTINGS:
            postings += rows
            rare.append(one)
        elif of_common + rows <= MAX_COMMON:
            of_common += rows
            common.append(one)
    return rare, common


def _expression(weighed: Sequence[Weighed], session: int | None) -> str:
    """FTS5's query for passages that hold any of the terms; its phrases are theirs, in order, the scope last."""
    text = "{text extra} : (" + " OR ".join(phrase.sql for one in weighed for phrase in one.term.phrases) + ")"
    return text if session is None else f"({text}) AND (scope : s{session})"


def _common_counts(database: Database, common: Sequence[Weighed], rows: Sequence[int]) -> dict[int, tuple[float, ...]]:
    """What the common terms add to rows that others found."""
    if not common:
        return {}
    # The plus: FTS5 goes through its lists once; asked for each row by itself, it would begin anew 300 times.
    found = database.rows(
        "SELECT rowid, nca_matches(passages) FROM passages WHERE passages MATCH ?"
        " AND +rowid IN (SELECT value FROM json_each(?))",
        (_expression(common, None), json.dumps(rows)),
    )
    return _counts(found, common)


def _counts(rows: Sequence[tuple[int, str]], weighed: Sequence[Weighed]) -> dict[int, tuple[float, ...]]:
    """For each row of the index, how often each term stands there, its phrases weighed."""
    phrases = [(number, phrase.weight) for number, one in enumerate(weighed) for phrase in one.term.phrases]
    counts = {}
    for rowid, matches in rows:
        terms = [0.0] * len(weighed)
        for (number, weight), count in zip(phrases, matches.split(" ")[2:], strict=False):
            if count != "0":
                terms[number] += weight * int(count)
        counts[rowid] = tuple(terms)
    return counts


def _size(database: Database, session: int | None) -> tuple[int, int]:
    """How many messages there are at most, and the id of the last."""
    if session is None:
        row = database.row("SELECT max(id) FROM messages")
        return (row[0] or 0, row[0] or 0) if row else (0, 0)
    row = database.row("SELECT max(seq), max(id) FROM messages WHERE session = ?", (session,))
    return (row[0] or 0, row[1] or 0) if row else (0, 0)


def _message_at(database: Database, session: int | None, place: int) -> int:
    if session is None:
        return place
    row = database.row("SELECT id FROM messages WHERE session = ? AND seq = ?", (session, place))
    return row[0] if row else 0


def _messages(database: Database, counts: Mapping[int, tuple[float, ...]], words: Mapping[int, int]) -> list[Found]:
    """The messages that the rows of the index are passages of."""
    passages: dict[int, list[Passage]] = {}
    for rowid, held in counts.items():
        message, place = divmod(rowid, MAX_PASSAGES)
        passages.setdefault(message, []).append(Passage(place, words[rowid], held))
    placed = database.rows(
        "SELECT id, session, seq, role, (SELECT coalesce(max(seq), 0) FROM messages AS turn"
        " WHERE turn.session = messages.session AND turn.seq <= messages.seq AND turn.role = 'user')"
        " FROM messages WHERE id IN (SELECT value FROM json_each(?))",
        (json.dumps(list(passages)),),
    )
    return [
        Found(number, session, seq, role, turn, tuple(passages[number])) for number, session, seq, role, turn in placed
    ]
