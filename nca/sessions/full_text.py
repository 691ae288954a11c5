"""The full-text index in SQLite: FTS5 without a copy of the text, and the SQL functions that fill it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import apsw

from nca.messages import Message
from nca.sessions.passages import COUNTED, MAX_PASSAGES, passages_of, stored_passages
from nca.sessions.query import Only, Phrase, WeightedTerm
from nca.sessions.sql import Binding, Matched, Row

TOKENIZER = ("porter", ["unicode61", "remove_diacritics", "2"])
STEMMED_COLUMNS = (0, 1)
"""The columns text and extra of the index; the third is the scope."""


def register_functions(connection: apsw.Connection, outputs: Path | None) -> None:
    """Register what a connection that writes needs. `outputs`: the folder of complete tool outputs, if any."""

    def passages(*arguments: apsw.SQLiteValue) -> str:
        return json.dumps(stored_passages(str(arguments[0]), outputs))

    # Innocuous: a trigger may call no other function when the schema is not trusted.
    connection.create_scalar_function("nca_passages", passages, 1, flags=apsw.SQLITE_INNOCUOUS)


def register_matches(connection: apsw.Connection) -> None:
    """Register what a search needs. Not on connecting: this reads the database, which may be damaged."""
    connection.register_fts5_function("nca_matches", _matches)


def _matches(api: apsw.FTS5ExtensionApi, *_: Any) -> str:
    """Words in the passage, words in an average passage, then the count of each phrase of the query: `120 88 0 2`."""
    counts = [api.column_size(0), max(1, api.column_total_size(0) // max(1, api.row_count))]
    for phrase in range(api.phrase_count):
        found = api.phrase_locations(phrase)
        counts.append(sum(len(found[column]) for column in STEMMED_COLUMNS))
    return " ".join(map(str, counts))


def insert_passages(
    connection: apsw.Connection, session: int, messages: Iterable[tuple[int, Message]], outputs: Path | None
) -> None:
    """Index messages, each with its id, as the triggers do."""
    connection.executemany(
        "INSERT INTO passages (rowid, text, extra, scope) VALUES (?, ?, ?, ?)",
        (
            (id * MAX_PASSAGES + place, text, extra, f"s{session}")
            for id, message in messages
            for place, (text, extra) in enumerate(passages_of(message, outputs))
        ),
    )


_RANK = "bm25(1.0, 0.8, 0.0)"


class _SQLite(Protocol):
    """The part of `nca.sessions.database.Database` that the index needs."""

    def rows(self, sql: str, bindings: Sequence[Binding] = ()) -> list[Row]: ...

    def row(self, sql: str, bindings: Sequence[Binding] = ()) -> Row | None: ...

    def also(self, step: Callable[[apsw.Connection], None]) -> None: ...

    def tokenizer(self, name: str, arguments: list[str]) -> apsw.FTS5Tokenizer: ...


class FTS5Index:
    """The index of one database; see `nca.sessions.sql.TextIndex`."""

    def __init__(self, database: _SQLite) -> None:
        self._database = database

    def holding(self, phrases: Iterable[Phrase]) -> Mapping[Phrase, tuple[int, int]]:
        return {phrase: self._holding(phrase) for phrase in phrases}

    def _holding(self, phrase: Phrase) -> tuple[int, int]:
        row = self._database.row(
            "SELECT count(*), max(rowid) FROM (SELECT rowid FROM passages WHERE passages MATCH ? LIMIT ?)",
            (_quoted(phrase), COUNTED),
        )
        return (row[0], row[1] or 0) if row else (0, 0)

    def best(
        self, terms: Sequence[WeightedTerm], sessions: Sequence[int], first: int, only: Only | None, limit: int
    ) -> tuple[list[Matched], int]:
        self._database.also(register_matches)
        condition, bound = _condition(only)
        found = self._database.rows(
            "SELECT rowid, nca_matches(passages) FROM passages WHERE passages MATCH ? AND rowid >= ? AND rank MATCH ?"  # noqa: S608
            f"{condition} ORDER BY rank LIMIT ?",
            (_expression(terms, sessions), first, _RANK, *bound, limit),
        )
        mean_words = int(found[0][1].split(" ", 2)[1]) if found else 1
        return [_matched(*row) for row in found], mean_words

    def counts(self, terms: Sequence[WeightedTerm], rows: Sequence[int]) -> list[Matched]:
        # The plus makes FTS5 scan its lists once instead of starting again for each of 300 rows.
        found = self._database.rows(
            "SELECT rowid, nca_matches(passages) FROM passages WHERE passages MATCH ?"
            " AND +rowid IN (SELECT value FROM json_each(?))",
            (_expression(terms), json.dumps(rows)),
        )
        return [_matched(*row) for row in found]

    def stemmer(self) -> Callable[[str], str]:
        tokenizer = self._database.tokenizer(*TOKENIZER)

        def stem(word: str) -> str:
            tokens = tokenizer(word.encode(), apsw.FTS5_TOKENIZE_QUERY, None, include_offsets=False)
            return next((str(token[0]) for token in tokens), word)

        return stem


def _matched(row: int, matches: str) -> Matched:
    words, _, *counts = matches.split(" ")
    return Matched(row, int(words), [int(count) for count in counts])


def _quoted(phrase: Phrase) -> str:
    return '"' + phrase.text.replace('"', " ") + '"' + ("*" if phrase.is_prefix else "")


def _expression(terms: Sequence[WeightedTerm], sessions: Sequence[int] = ()) -> str:
    """The FTS5 query for passages with any of the terms. Its phrases are in the order of the terms, the scope last."""
    text = "{text extra} : (" + " OR ".join(_quoted(phrase) for one in terms for phrase in one.term.phrases) + ")"
    scope = " OR ".join(f"s{session}" for session in sessions)
    return f"({text}) AND (scope : ({scope}))" if scope else text


def _condition(only: Only | None) -> tuple[str, tuple[str | float, ...]]:
    """SQL for candidates' messages, and its values. FTS5 gives the best rows first, so few are looked up."""
    if only is None:
        return "", ()
    message = f"SELECT 1 FROM messages WHERE id = passages.rowid / {MAX_PASSAGES}"  # noqa: S608
    among = "session IN (SELECT value FROM json_each(?))"
    return f" AND EXISTS ({message} AND at >= ? AND {among})", (only.since, json.dumps(only.sessions))
