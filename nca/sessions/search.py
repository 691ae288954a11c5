"""Search the log: query the full-text index for candidates and rank them.

Only terms that are rare enough to be read in a few hundredths of a second select candidates, whatever the size of the
store; common terms only order them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from math import log

from nca.sessions.passages import COUNTED, MAX_PASSAGES
from nca.sessions.query import Only, Phrase, Term, WeightedTerm, terms_of
from nca.sessions.ranking import Candidate, Passage, Ranked, RankingWeights, rank
from nca.sessions.sql import Matched, SessionDatabase

MAX_POSTINGS = 6_000
"""The most passages that FTS5 sorts for one question."""
CANDIDATES = 300
MAX_TERMS = 24
MAX_COMMON = 30_000
"""The most passages that are read for common terms."""
COMMON_RATIO = 0.05
"""Another form or a beginning of a word that is in more of all passages than this is ignored."""
_FEW = 10
_FEW_SESSIONS = 50


def ranked(
    database: SessionDatabase,
    question: str,
    session: int | None,
    *,
    weights: RankingWeights | None = None,
    candidates: int = CANDIDATES,
    only: Only | None = None,
    beside: Sequence[SessionDatabase] = (),
) -> tuple[list[Ranked], list[WeightedTerm]]:
    """The best messages, in one session (its row) or all, and the weighted terms of the question.

    only    the sessions and the time that are searched, of all
    beside  databases that are searched with the same question: a word that is rare in all of them counts most, so the
            scores in each can be compared
    """
    head, last = _size(database, session)
    weighed = _weighed(database, terms_of(question), last, beside)
    if not weighed:
        return [], []
    is_few = only is not None and _is_few(only)
    if only is not None and is_few:
        head = only.messages
    elif session is not None and _is_most(database, head):
        only = Only((session,), head)
    rare, common = _rare(weighed, 2 * head)
    # If every term is in a large part of all messages, only the newest messages are searched.
    rows = min(rare[0].rows, 2 * head)
    is_cut = rows > MAX_POSTINGS and not is_few
    first = _message_at(database, session, int((1 - MAX_POSTINGS / rows) * head)) if is_cut else 0
    looked_up = only if only is not None and not (is_few and not only.since) else None
    found, mean_words = database.index.best(rare, _scope(session, only), first * MAX_PASSAGES, looked_up, candidates)
    if not found:
        return [], weighed
    of_common = _counts(database.index.counts(common, [one.row for one in found]), common) if common else {}
    nothing = (0.0,) * len(common)
    counts = {row: (*held, *of_common.get(row, nothing)) for row, held in _counts(found, rare).items()}
    messages = _messages(database, counts, {one.row: one.words for one in found})
    return rank(messages, [one.idf for one in (*rare, *common)], mean_words, weights or RankingWeights()), weighed


def _weighed(
    database: SessionDatabase, terms: Sequence[Term], last: int, beside: Sequence[SessionDatabase] = ()
) -> list[WeightedTerm]:
    """The terms that occur in the index, rarest first. `last`: the id of the last message."""
    terms = terms[: 4 * MAX_TERMS]
    phrases = [phrase for term in terms for phrase in term.phrases]
    counts = _bounds(database, phrases, last)
    sizes = [_size(other, None)[1] for other in beside]
    others = [_bounds(other, phrases, size) for other, size in zip(beside, sizes, strict=True)]
    everywhere = last + sum(sizes)
    found = []
    for term in terms:
        own = {phrase: counts[phrase] for phrase in term.phrases}
        rows = {phrase: count + sum(other[phrase] for other in others) for phrase, count in own.items()}
        kept = tuple(
            phrase
            for phrase, count in rows.items()
            if count and (phrase.weight == 1.0 or count <= max(_FEW, COMMON_RATIO * everywhere))
        )
        if any(own[phrase] for phrase in kept):
            count = min(everywhere, sum(rows[phrase] for phrase in kept))
            idf = log(1 + (everywhere - count + 0.5) / (count + 0.5))
            total = sum(own[phrase] for phrase in kept)
            found.append(WeightedTerm(Term(kept, term.weight), total, idf * term.weight))
    return sorted(found, key=lambda one: one.rows)[:MAX_TERMS]


def _bounds(database: SessionDatabase, phrases: Sequence[Phrase], last: int) -> dict[Phrase, int]:
    """Upper bounds of how many passages hold each phrase: as many as hold its rarest word."""
    parts = {phrase: _parts(phrase) for phrase in phrases}
    holding = database.index.holding(dict.fromkeys(part for found in parts.values() for part in found))
    counts = {part: _extrapolated(*held, last) for part, held in holding.items()}
    return {phrase: min((counts[part] for part in found), default=0) for phrase, found in parts.items()}


def _parts(phrase: Phrase) -> list[Phrase]:
    if phrase.is_prefix:
        return [Phrase(phrase.text, is_prefix=True)]
    return [Phrase(word) for word in re.findall(r"[^\W_]+", phrase.text)]


def _extrapolated(count: int, reach: int, last: int) -> int:
    """From the first passages of a common word, the last of which is in row `reach`."""
    return int(COUNTED * max(1.0, last * MAX_PASSAGES / reach)) if count == COUNTED else count


def _rare(weighed: Sequence[WeightedTerm], most: int) -> tuple[list[WeightedTerm], list[WeightedTerm]]:
    """The terms that select candidates, and the rarest of the others, which order them. `most`: the cap of a count."""
    rare: list[WeightedTerm] = []
    common: list[WeightedTerm] = []
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


def _is_few(only: Only) -> bool:
    """Whether the full-text index looks up the sessions; else each candidate's message is looked up."""
    return len(only.sessions) <= _FEW_SESSIONS and only.messages <= MAX_POSTINGS


def _is_most(database: SessionDatabase, messages: int) -> bool:
    """Whether so many messages are most of a large store.

    FTS5 reads the whole list of each word that it ranks by, also of the one that stands for the session. For such a
    session it takes less time to look candidates up.
    """
    return messages > MAX_POSTINGS and 2 * messages > _size(database, None)[0]


def _scope(session: int | None, only: Only | None) -> tuple[int, ...]:
    """The sessions that the index looks up; none for all."""
    if only is not None:
        return only.sessions if _is_few(only) else ()
    return (session,) if session is not None else ()


def _counts(found: Iterable[Matched], weighed: Sequence[WeightedTerm]) -> dict[int, tuple[float, ...]]:
    """For each row of the index, the count of each term, phrases weighted."""
    phrases = [(number, phrase.weight) for number, one in enumerate(weighed) for phrase in one.term.phrases]
    counts = {}
    for one in found:
        terms = [0.0] * len(weighed)
        for (number, weight), count in zip(phrases, one.counts, strict=False):
            if count:
                terms[number] += weight * count
        counts[one.row] = tuple(terms)
    return counts


def _size(database: SessionDatabase, session: int | None) -> tuple[int, int]:
    """An upper bound of the number of messages, and the id of the last."""
    if session is None:
        row = database.row("SELECT max(id) FROM messages")
        return (row[0] or 0, row[0] or 0) if row else (0, 0)
    row = database.row("SELECT seq, id FROM messages WHERE session = ? ORDER BY seq DESC LIMIT 1", (session,))
    return (row[0] or 0, row[1] or 0) if row else (0, 0)


def _message_at(database: SessionDatabase, session: int | None, place: int) -> int:
    if session is None:
        return place
    row = database.row("SELECT id FROM messages WHERE session = ? AND seq = ?", (session, place))
    return row[0] if row else 0


def _messages(
    database: SessionDatabase, counts: Mapping[int, tuple[float, ...]], words: Mapping[int, int]
) -> list[Candidate]:
    """The messages of these rows of the index."""
    passages: dict[int, list[Passage]] = {}
    for rowid, held in counts.items():
        message, place = divmod(rowid, MAX_PASSAGES)
        passages.setdefault(message, []).append(Passage(place, words[rowid], held))
    placed = database.rows(
        "SELECT id, session, seq, role, (SELECT coalesce(max(seq), 0) FROM messages AS turn"  # noqa: S608
        " WHERE turn.session = messages.session AND turn.seq <= messages.seq AND turn.role = 'user')"
        f" FROM messages WHERE id IN ({', '.join(map(str, passages))})"
    )
    if not all(isinstance(place, int) for _, *places, _, _ in placed for place in places):
        database.report("a message has no number")
    return [
        Candidate(number, session, seq, role, turn, tuple(passages[number]))
        for number, session, seq, role, turn in placed
    ]
