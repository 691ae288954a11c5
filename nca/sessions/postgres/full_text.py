"""The full-text index in PostgreSQL: a tsvector for each passage, with the words that FTS5 would index.

The words are split and stemmed by SQLite's own tokenizer, so that both stores find the same. PostgreSQL finds the
passages; how often each holds a phrase is counted here, from the positions of its words.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import apsw

from nca.messages import Message
from nca.sessions.full_text import TOKENIZER
from nca.sessions.passages import COUNTED, MAX_PASSAGES, passages_of
from nca.sessions.query import Only, Phrase, WeightedTerm
from nca.sessions.sql import Matched, Row

_LONGEST_WORD_CHARS = 500
"""A lexeme has at most 2,046 bytes."""
_LOOKED_AT = 1_000
"""Passages of a word that are looked up to count it; if it has more, the number is extrapolated."""
_NEWEST = 1_000
"""The number of passages that give the mean length."""
_STATISTICS = (
    "SELECT CAST(CAST(most_common_elems AS text) AS text[]), most_common_elem_freqs, reltuples"
    " FROM pg_stats JOIN pg_class ON oid = CAST('passages' AS regclass)"
    " WHERE schemaname = 'nca' AND tablename = 'passages' AND attname = 'lexemes' AND most_common_elems IS NOT NULL"
)
"""How often each word occurs in all passages; a team gets it from `common_words()`."""
_K1, _B = 1.2, 0.75
"""Constants of BM25, with which FTS5 ranks candidates."""


class _Postgres(Protocol):
    """The part of `nca.sessions.postgres.database.PostgresDatabase` that the index needs."""

    def rows(self, sql: str, bindings: Sequence[Any] = ()) -> list[Row]: ...


class TsvectorIndex:
    """The index of one database; see `nca.sessions.sql.TextIndex`."""

    def __init__(self, database: _Postgres) -> None:
        self._database = database
        self._common: dict[str, int] | None = None
        """About how many passages hold each common word, by the server's statistics; None: not read yet."""
        self._tokenizer = apsw.Connection(":memory:").fts5_tokenizer(*TOKENIZER)

    @cached_property
    def _hides_sessions(self) -> bool:
        return self._database.rows("SELECT row_security_active('sessions')") == [(True,)]

    def words(self, text: str) -> list[str]:
        """The words of a text as they are indexed. They hold only letters and digits, so nothing need be quoted."""
        tokens = self._tokenizer(text.encode(), apsw.FTS5_TOKENIZE_DOCUMENT, None, include_offsets=False)
        return [str(token[0])[:_LONGEST_WORD_CHARS] for token in tokens]

    def rows(self, message: Message, session: int, outputs: Path | None) -> list[tuple[int, int, str]]:
        """Of each passage of a message: its place, how many words its text has, and its tsvector."""
        found = []
        for place, (text, extra) in enumerate(passages_of(message, outputs)):
            words = self.words(text)
            positions: dict[str, list[int]] = {}
            # A gap, so that no phrase reaches from the text into the extra words.
            for position, word in enumerate((*words, "", *self.words(extra)), 1):
                if word:
                    positions.setdefault(word, []).append(position)
            lexemes = [f"'{word}':{','.join(map(str, places))}" for word, places in positions.items()]
            found.append((place, len(words), " ".join([*lexemes, _scope(session)])))
        return found

    def holding(self, phrases: Iterable[Phrase]) -> Mapping[Phrase, tuple[int, int]]:
        wanted = list(phrases)
        queries = [self._query(phrase) for phrase in wanted]
        [(newest,)] = self._database.rows("SELECT coalesce(max(id), 0) FROM passages")
        known = {query: self._statistic(phrase) for phrase, query in zip(wanted, queries, strict=True)}
        counts = {query: (COUNTED, newest * COUNTED // count) for query, count in known.items() if count >= COUNTED}
        asked = [query for query in dict.fromkeys(queries) if query and query not in counts]
        found = self._database.rows(
            "SELECT held.count, held.reach FROM unnest(CAST(? AS text[])::tsquery[]) WITH ORDINALITY q (query, place),"
            " LATERAL (SELECT count(*), coalesce(max(id), 0) AS reach FROM"
            "  (SELECT id FROM passages WHERE lexemes @@ q.query LIMIT ?) AS first) AS held ORDER BY place",
            (asked, _LOOKED_AT),
        )
        for query, (count, reach) in zip(asked, found, strict=True):
            about = _LOOKED_AT * newest // reach if count == _LOOKED_AT else count
            counts[query] = (about, reach) if about < COUNTED else (COUNTED, reach * COUNTED // _LOOKED_AT)
        return {phrase: counts.get(query, (0, 0)) for phrase, query in zip(wanted, queries, strict=True)}

    def _statistic(self, phrase: Phrase) -> int:
        """About how many passages hold a word, or one that begins so; 0 if it is not known to be common.

        Most of a common word's passages would be looked up only to be counted.
        """
        if self._common is None:
            is_of_team = self._database.rows("SELECT to_regproc('common_words')") != [(None,)]
            rows = self._database.rows("SELECT * FROM common_words()" if is_of_team else _STATISTICS)
            # After the words' frequencies come the least and the greatest.
            self._common = {
                word: int(share * passages)
                for words, shares, passages in rows
                for word, share in zip(words, shares, strict=False)
            }
        words = self.words(phrase.text)
        if len(words) != 1:
            return 0
        if phrase.is_prefix:
            return sum(count for word, count in self._common.items() if word.startswith(words[0]))
        return self._common.get(words[0], 0)

    def best(
        self, terms: Sequence[WeightedTerm], sessions: Sequence[int], first: int, only: Only | None, limit: int
    ) -> tuple[list[Matched], int]:
        [(mean,)] = self._database.rows(
            "SELECT coalesce(avg(words), 1) FROM (SELECT words FROM passages ORDER BY id DESC LIMIT ?) AS newest",
            (_NEWEST,),
        )
        queries = [self._any(one.term.phrases) for one in terms]
        query = " | ".join(f"({one})" for one in queries if one)
        if not query:
            return [], 1
        if sessions:
            query = f"({query}) & ({' | '.join(_scope(session) for session in sessions)})"
        bound: list[str | float | list[int]] = [query, first]
        # A team's index has the passages of all. IS TRUE: they are not to be looked up session by session.
        among = " AND (session IN (SELECT number FROM sessions)) IS TRUE" if self._hides_sessions else ""
        if only is not None:
            among += (
                f" AND EXISTS (SELECT 1 FROM messages WHERE messages.id = passages.id / {MAX_PASSAGES}"  # noqa: S608
                " AND at >= ? AND session = ANY(CAST(? AS bigint[])))"
            )
            bound += [only.since, list(only.sessions)]
        scores = []
        for one, of_term in zip(terms, queries, strict=True):
            if of_term:
                scores.append("CASE WHEN lexemes @@ CAST(? AS tsquery) THEN CAST(? AS float8) ELSE 0 END")
                bound += [of_term, one.idf]
        found = self._database.rows(
            "SELECT id, words, lexemes FROM passages WHERE lexemes @@ CAST(? AS tsquery) AND id >= ?"  # noqa: S608
            f"{among} ORDER BY ({' + '.join(scores)})"
            f" / (1 + {_K1} * ({1 - _B} + {_B} * words / CAST(? AS float8))) DESC, id DESC LIMIT ?",
            (*bound, float(mean), limit),
        )
        return self._matched(found, terms), max(1, int(mean))

    def counts(self, terms: Sequence[WeightedTerm], rows: Sequence[int]) -> list[Matched]:
        found = self._database.rows("SELECT id, words, lexemes FROM passages WHERE id = ANY(?)", (list(rows),))
        return [one for one in self._matched(found, terms) if any(one.counts)]

    def stemmer(self) -> Callable[[str], str]:
        return lambda word: next(iter(self.words(word)), word)

    def _query(self, phrase: Phrase) -> str:
        """A tsquery of a phrase; "" if it has no word."""
        words = [f"'{word}'" for word in self.words(phrase.text)]
        return " <-> ".join(words) + (":*" if phrase.is_prefix else "") if words else ""

    def _any(self, phrases: Sequence[Phrase]) -> str:
        return " | ".join(f"({query})" for phrase in phrases if (query := self._query(phrase)))

    def _matched(self, found: Sequence[tuple[int, int, str]], terms: Sequence[WeightedTerm]) -> list[Matched]:
        phrases = [(self.words(phrase.text), phrase.is_prefix) for one in terms for phrase in one.term.phrases]
        alone = {word for words, is_prefix in phrases for word in (words[:-1] if is_prefix else words)}
        begun = {words[-1] for words, is_prefix in phrases if words and is_prefix}
        choices = [*map(re.escape, alone), *(f"{re.escape(word)}[^']*" for word in begun)]
        pattern = re.compile(f"'({'|'.join(choices)})':([\\d,]+)")
        matched = []
        for row, count, lexemes in found:
            held = {word: set(map(int, places.split(","))) for word, places in pattern.findall(lexemes)}
            matched.append(Matched(row, count, [_count(words, is_prefix, held) for words, is_prefix in phrases]))
        return matched


def _count(words: Sequence[str], is_prefix: bool, held: Mapping[str, set[int]]) -> int:
    """How often a passage holds a phrase. `held`: the places of each word."""
    if not words:
        return 0
    ends: set[int] = held.get(words[-1], set())
    if is_prefix:
        ends = {place for word, places in held.items() if word.startswith(words[-1]) for place in places}
    for back, word in enumerate(reversed(words[:-1]), 1):
        places = held.get(word, set())
        ends = {end for end in ends if end - back in places}
    return len(ends)


def _scope(session: int) -> str:
    """The lexeme for a session; no word has a slash."""
    return f"'/s{session}'"
