"""Rank messages by how well they answer a question. Pure: no database.

A score adds up how much of the question a message holds by itself (BM25), together with the messages around it, and
together with its turn. An answer often repeats no word of the question right before it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass


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
"""What a person said matters more often than a tool's output of the same words."""


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
