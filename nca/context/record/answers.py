"""The model's words: the answers that ended a turn, and the newest of them.

The newest version of a text replaces all its versions.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from heapq import merge
from itertools import chain, islice

from nca.context.record.excerpt import TALK, excerpt, is_list
from nca.context.record.past import Answer, Past
from nca.context.record.piece import Piece, Subject, by_age, fixed
from nca.context.todo import as_text, is_open
from nca.context.tokens import text_tokens
from nca.context.view import is_in

LISTS_LEVELS, LATEST_LEVELS, LEVELS = (150,), (40, 150), (40,)
"""The first forms, in tokens."""


def latest(past: Past) -> Iterator[Piece]:
    """The answer that the newest message answers, and those that a model has named as ones to keep, in longer and
    longer forms; not if it has a newer version."""
    before = islice((one for one in past.answers if one.seq < past.newest_user), 1)
    staying = {one.seq: one for one in chain(before, _named(past)) if not one.newer}
    return by_age(map(_subject, staying.values()), LATEST_LEVELS)


def lists(past: Past) -> Iterator[Piece]:
    """Answers with a list: an approved plan, options to choose from. Work refers to its items, as it does to those of a
    todo list that the model has left behind. The list that it works on stays itself."""
    lists = (_subject(one) for one in past.answers if not one.newer and is_list(one.text))
    return by_age(merge(lists, _left_behind(past), key=lambda one: -one.seq), LISTS_LEVELS)


def _left_behind(past: Past) -> Iterator[Subject]:
    seq, parts = past.history.newest_list or (0, {})
    if is_open(parts) and is_in(seq, past.spans):
        yield said_by_model("list", seq, as_text(parts))


def answers(past: Past) -> Iterator[Piece]:
    return by_age(_subjects(past), LEVELS, is_each=True)


def _subjects(past: Past) -> Iterator[Subject]:
    """Each text that has been answered; for replaced ones one line per text."""
    named = _named(past)
    replaced: set[int] = set()
    for one in chain(named, (one for one in past.answers if one not in named)):
        if not one.newer:
            yield _subject(one)
        elif past.numbered and one.line is None and one.newer not in replaced:
            replaced.add(one.newer)
            yield fixed(("answer", one.seq), one.seq, f"replaced by ({one.newer})").subject


def _named(past: Past) -> list[Answer]:
    return [one for one in past.answers if one.seq in past.named] if past.named else []


def _subject(one: Answer) -> Subject:
    return one.line.subject(TALK) if one.line is not None else said_by_model("answer", one.seq, one.text)


def said_by_model(kind: str, seq: int, text: str) -> Subject:
    return Subject((kind, seq), seq, partial(excerpt, text, style=TALK), text_tokens(text), own=(seq,))
