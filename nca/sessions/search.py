"""Search the log: query the full-text index for candidates and rank them.

Rank messages by how well they answer a question. Pure: no database.

Only terms that are rare enough to be read in a few hundredths of a second select candidates, whatever the size of the
store; common terms only order them.

A score adds up how much of the question a message holds by itself (BM25), together with the messages around it, and
together with its turn. An answer often repeats no word of the question right before it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import log

from nca.sessions.passages import COUNTED, MAX_PASSAGES
from nca.sessions.query import Only, Phrase, Term, WeightedTerm, terms_of
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
    is_typed: bool = False,
) -> tuple[list[Ranked], list[WeightedTerm]]:
    """The best messages, in one session (its row) or all, and the weighted terms of the question.

    only    the sessions and the time that are searched, of all
    beside  databases that are searched with the same question: a word that is rare in all of them counts most, so the
            scores in each can be compared
    is_typed  words of the question may be beginnings, as in `terms_of`
    """
    head, last = _size(database, session)
    weighed = _weighed(database, terms_of(question, is_typed=is_typed), last, beside)
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
    phrases = [phrase for term in terms for phrase in _all_phrases(term)]
    counts = _bounds(database, phrases, last)
    sizes = [_size(other, None)[1] for other in beside]
    others = [_bounds(other, phrases, size) for other, size in zip(beside, sizes, strict=True)]
    everywhere = last + sum(sizes)
    found = []
    for term in terms:
        own = {phrase: counts[phrase] for phrase in _all_phrases(term)}
        rows = {phrase: count + sum(other[phrase] for other in others) for phrase, count in own.items()}
        kept = tuple(
            phrase
            for phrase, count in rows.items()
            if phrase in term.phrases
            if count and (phrase.weight == 1.0 or count <= max(_FEW, COMMON_RATIO * everywhere))
        )
        if term.may_go_on or not any(own[phrase] for phrase in kept):
            begun = next((phrase for phrase in term.beginnings if rows[phrase]), None)
            kept = (*kept, *([begun] if begun and begun not in kept else ()))
        if any(own[phrase] for phrase in kept):
            count = min(everywhere, sum(rows[phrase] for phrase in kept))
            idf = log(1 + (everywhere - count + 0.5) / (count + 0.5))
            total = sum(own[phrase] for phrase in kept)
            found.append(WeightedTerm(Term(kept, term.weight), total, idf * term.weight))
    return sorted(found, key=lambda one: one.rows)[:MAX_TERMS]


def _all_phrases(term: Term) -> tuple[Phrase, ...]:
    return tuple(dict.fromkeys((*term.phrases, *term.beginnings)))


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
    """From the first passages of a common word, up to row `reach`."""
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

    FTS5 reads the whole list of each word that it ranks by, even of the session's own word. For such a
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
        last = database.value("SELECT max(id) FROM messages", (), 0)
        return last, last
    row = database.row("SELECT seq, id FROM messages WHERE session = ? ORDER BY seq DESC LIMIT 1", (session,))
    return (row[0] or 0, row[1] or 0) if row else (0, 0)


def _message_at(database: SessionDatabase, session: int | None, place: int) -> int:
    if session is None:
        return place
    return int(database.value("SELECT id FROM messages WHERE session = ? AND seq = ?", (session, place), 0))


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


@dataclass(frozen=True, slots=True)
class RankingWeights:
    """Chosen on one half of the questions of `benchmarks.recall`; reported on the other half.

    saturation, length   BM25's k1 and b
    rest                 weight of a message's other passages, relative to its best one
    around, reach, decay weight of the neighbourhood, its size in messages, and the factor for each step of distance
    turn                 weight of the turn
    """

    saturation: float = 0.7
    length: float = 0.3
    rest: float = 0.3
    around: float = 0.6
    decay: float = 0.5
    reach: int = 2
    turn: float = 0.2


@dataclass(frozen=True, slots=True)
class Passage:
    """`place`: its number within the message. `counts`: how often it holds each term, phrases weighted."""

    place: int
    words: int
    counts: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A message that holds some of the question. `turn`: the first seq of its turn."""

    id: int
    session: int
    seq: int
    role: str
    turn: int
    passages: tuple[Passage, ...]


@dataclass(frozen=True, slots=True)
class Ranked:
    """`terms`: what the message holds by itself, empty if it is only next to a candidate. `place`: its best passage."""

    session: int
    seq: int
    score: float
    terms: tuple[float, ...] = ()
    place: int = 0


SESSION_SHARES = (1.0, 0.3, 0.1)
SESSION_COVERAGE = 1.0
ROLES = {"user": 1.1, "assistant": 1.0, "tool": 0.9, "system": 0.6}
"""A person's message matters more often than a tool's output of the same words."""


def rank(found: Sequence[Candidate], idfs: Sequence[float], mean_words: float, weights: RankingWeights) -> list[Ranked]:
    """Rank the candidates and the messages next to them, best first. `idfs`: the weight of each term."""
    own: dict[tuple[int, int], tuple[float, ...]] = {}
    score: dict[tuple[int, int], float] = {}
    passage: dict[tuple[int, int], int] = {}
    turns: dict[tuple[int, int], list[float]] = {}
    for one in found:
        place = (one.session, one.seq)
        parts = [_terms(passage, idfs, mean_words, weights) for passage in one.passages]
        sums = [sum(part) for part in parts]
        best = max(sums)
        passage[place] = one.passages[sums.index(best)].place
        terms = tuple(max(column) for column in zip(*parts, strict=True))
        role = ROLES.get(one.role, 1.0)
        own[place] = tuple(role * term for term in terms)
        score[place] = role * (best + weights.rest * (sum(terms) - best))
        turn = turns.setdefault((one.session, one.turn), [0.0] * len(terms))
        for number, term in enumerate(own[place]):
            turn[number] = max(turn[number], term)
    turn_of = {(one.session, one.seq): (one.session, one.turn) for one in found}
    ranked = []
    for place in {*score, *_beside(score)}:
        around = _around(place, own, weights)
        turn_score = sum(turns[turn_of[place]]) if place in turn_of else 0.0
        total = score.get(place, 0.0) + weights.around * around + weights.turn * turn_score
        ranked.append(Ranked(*place, total, own.get(place, ()), passage.get(place, 0)))
    return sorted(ranked, key=lambda one: (-one.score, one.session, -one.seq))


def rank_sessions(ranked: Sequence[Ranked]) -> list[tuple[float, list[Ranked]]]:
    """Sessions, best first, each with its messages in rank order.

    A session scores by its best message, less by the next two, and by how much of the question it holds in total.
    """
    sessions: dict[int, list[Ranked]] = {}
    for one in ranked:
        sessions.setdefault(one.session, []).append(one)
    scored = []
    for messages in sessions.values():
        held = [one.terms for one in messages if one.terms]
        coverage = sum(max(column) for column in zip(*held, strict=True)) if held else 0.0
        best = sum(one.score * share for one, share in zip(messages, SESSION_SHARES, strict=False))
        scored.append((best + SESSION_COVERAGE * coverage, messages))
    return sorted(scored, key=lambda pair: -pair[0])


def _terms(passage: Passage, idfs: Sequence[float], mean_words: float, weights: RankingWeights) -> tuple[float, ...]:
    """BM25 of each term."""
    k1 = weights.saturation
    norm = k1 * (1 - weights.length + weights.length * passage.words / mean_words)
    return tuple(
        idf * count * (k1 + 1) / (count + norm) if count else 0.0
        for idf, count in zip(idfs, passage.counts, strict=True)
    )


def _around(place: tuple[int, int], own: Mapping[tuple[int, int], tuple[float, ...]], weights: RankingWeights) -> float:
    """How much of the question the message and its neighbours hold; each term counts once, where it is best."""
    session, seq = place
    best: list[float] = []
    for step in range(-weights.reach, weights.reach + 1):
        terms = own.get((session, seq + step))
        if terms is None:
            continue
        share = weights.decay ** abs(step)
        best = [max(a, share * b) for a, b in zip(best, terms, strict=True)] if best else [share * b for b in terms]
    return sum(best)


def _beside(score: Mapping[tuple[int, int], float]) -> set[tuple[int, int]]:
    return {(session, seq + step) for session, seq in score for step in (-1, 1) if seq + step > 0}
