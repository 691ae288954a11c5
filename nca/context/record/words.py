"""The person's words: every typed message, and the ends and unusual lines of pastes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, zip_longest

from nca.context.record.excerpt import WORDS
from nca.context.record.past import Past
from nca.context.record.piece import Key, Piece, Section, Subject, by_age
from nca.context.record.said import BESIDE, MEDIUM_TOKENS, SHORT_TOKENS
from nca.messages import Entry

LEVELS = (1_600,)
"""The first longer form, in tokens."""


def short(past: Past) -> Iterator[Piece]:
    """Each typed message in its short form: those that a model named first, then the newest and the oldest in turn."""
    return (subject.piece(SHORT_TOKENS) for subject in _typed(past))


def medium(past: Past) -> Iterator[Piece]:
    return (subject.piece(MEDIUM_TOKENS) for subject in _typed(past) if subject.size > SHORT_TOKENS)


def longer(past: Past) -> Iterator[Piece]:
    return by_age(_typed(past), LEVELS, above=MEDIUM_TOKENS)


def beside(past: Past) -> Iterator[Piece]:
    """Messages without typed text."""
    alone = (subject for subject in past.once(_in_order) if subject.key[0] == BESIDE)
    return by_age(alone, (SHORT_TOKENS,), is_each=True)


def _typed(past: Past) -> Iterator[Subject]:
    """Messages with typed text."""
    return (subject for subject in past.once(_in_order) if subject.key[0] != BESIDE)


def _in_order(past: Past) -> Iterator[Subject]:
    named = {one.key: one for one in _said(past, (past.history.entries[seq - 1] for seq in past.named))}
    yield from named.values()
    recorded = [one.subject(WORDS) for one in past.record_lines(Section.WORDS)]
    newest = chain(_said(past, past.backwards()), recorded)
    oldest = chain(reversed(recorded), _said(past, past.forwards()))
    seen: set[Key] = set()
    for subject in chain.from_iterable(zip_longest(newest, oldest)):
        if subject is None or subject.key in seen:
            # The two ends have met.
            return
        seen.add(subject.key)
        if subject.key not in named:
            yield subject


def _said(past: Past, entries: Iterable[Entry]) -> Iterator[Subject]:
    for entry in entries:
        message = entry.message
        is_possible = message.role == "user" or type(message.content) is tuple
        if is_possible and (said := past.said(message)) is not None:
            yield said.subject(entry.seq)
