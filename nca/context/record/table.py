"""The table of kinds: in which order and with which weight pieces of the log have room."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from nca.context.record import answers, calls, names, words
from nca.context.record.past import Past
from nca.context.record.piece import Piece, Section


class Kind(NamedTuple):
    """A kind of piece.

    section  of its lines in a record; None for messages that are shown themselves
    weights  its share of the room in each round; 0: it waits for a later one
    leads    the round that continues until this kind is exhausted
    """

    name: str
    section: Section | None
    weights: tuple[float, float, float]
    pieces: Callable[[Past], Iterator[Piece]] | None
    leads: int | None = None


CLOSING, NEWEST, STEPS = "the answer that ends the log", "what the newest step brought in", "the newest steps"
KINDS = (
    Kind("the person's words, short", Section.WORDS, (0.7, 0, 0), words.short, leads=0),
    Kind("the person's words, what was typed whole", Section.WORDS, (0, 0.7, 0), words.medium, leads=1),
    Kind(CLOSING, None, (1.0, 1.0, 1.0), None),
    Kind(NEWEST, None, (0.2, 1.0, 0.8), None),
    Kind("calls of this turn", Section.TURN, (0.01, 0.15, 0.08), calls.turn),
    Kind("effects, in brief", Section.EFFECTS, (0.065, 0.3, 0), calls.effects, leads=1),
    Kind("effects, how they ended", Section.EFFECTS, (0, 0.3, 0), calls.ended_effects, leads=1),
    Kind("effects", Section.EFFECTS, (0, 0.1, 0.1), calls.longer_effects),
    Kind("changed files", Section.EFFECTS, (0.007, 0.04, 0.5), calls.files),
    Kind("what failed", Section.FAILED, (0.005, 0.01, 0.03), calls.failed),
    Kind("the answer that the newest message answers", Section.ANSWERS, (0.2, 0.3, 0.6), answers.latest),
    Kind("answers with a list", Section.ANSWERS, (0, 0, 0.3), answers.lists),
    Kind("longer words", Section.WORDS, (0, 0, 0.15), words.longer),
    Kind("what was pasted alone", Section.WORDS, (0, 0, 0.3), words.beside),
    Kind("answers", Section.ANSWERS, (0, 0, 0.7), answers.answers),
    Kind("names", Section.NAMES, (0, 0, 0.12), names.names),
    Kind("older calls", Section.CALLS, (0, 0, 0.01), calls.older),
    Kind(STEPS, None, (0, 0, 0.2), None),
)
"""Rows without pieces are the messages themselves."""
