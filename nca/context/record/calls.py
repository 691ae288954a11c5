"""What was done: calls of this turn, effects, what failed, and older calls."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import chain, takewhile

from nca.context.file_reads import only_reads, runs_program
from nca.context.record.excerpt import chars_for, excerpt
from nca.context.record.past import ASKED_CHARS, Called, Past, Stated, asked, changes_file, told
from nca.context.record.piece import Piece, by_age, line
from nca.context.record.text import Section
from nca.context.tokens import text_tokens

LEVELS = (50, 150, 450, 1_350, 4_050, 12_150, 36_450)
"""Forms of a call, in tokens: a line, then more and more of its arguments and its result."""
AGE_POWER = 0.5
FAILURE_TOKENS = 60
EFFECT_CHARS = 220
IDENTITY_CHARS = 800
"""Calls that ask for the same in so many characters are the same call."""


def turn(past: Past) -> Iterator[Piece]:
    """The calls since the person's newest message."""
    return by_age(takewhile(lambda one: one.seq > past.newest_user, past.calls()), LEVELS, _form, AGE_POWER)


def effects(past: Past) -> Iterator[Piece]:
    """Files that changed, and every call that may have changed something elsewhere; newest first."""
    files: dict[str, int] = {}
    for seq, path in past.changed:
        files[path] = max(seq, files.get(path, 0))
    seen: set[str] = set()
    for called in past.calls():
        if called.has_failed or called.result is None:
            continue
        path = changes_file(called.call)
        if path:
            if path not in seen:
                seen.add(path)
                yield line(("file", path), called.seq, f"{path}: {called.call.name}", called.place)
        elif not only_reads(called.call) and not runs_program(called.call):
            text = f"{asked(called.call, EFFECT_CHARS)} → {told(called).rpartition(' → ')[2]}"
            yield line(("effect", called.seq, called.place), called.seq, text, called.place)
    for path, seq in sorted(files.items(), key=lambda one: -one[1]):
        if path not in seen:
            yield line(("file", path), seq, f"{path}: changed")
    yield from (piece for piece in _stated(past, Section.EFFECTS) if piece.text.rpartition(": ")[0] not in seen)


def failed(past: Past) -> Iterator[Piece]:
    """Calls whose result is marked as failed and that were not made again since."""
    seen: set[str] = set()
    for called in past.calls():
        what = asked(called.call, IDENTITY_CHARS)
        if what in seen or called.result is None:
            continue
        seen.add(what)
        if called.has_failed:
            why = _result(called, FAILURE_TOKENS)
            yield line(("failed", what), called.seq, f"{asked(called.call)} → {why}", called.place)
    yield from (piece for piece in _stated(past, Section.FAILED) if piece.text.partition(" → ")[0] not in seen)


def runs(past: Past) -> Iterator[Piece]:
    """Older calls that may have done something: their results cannot be had again."""
    return by_age((one for one in _older(past) if _may_matter(one)), LEVELS, _form, AGE_POWER)


def reads(past: Past) -> Iterator[Piece]:
    """Older calls that only read, and calls of earlier records."""

    def form(called: Called | Piece, tokens: int, before: int) -> Piece | None:
        if isinstance(called, Called):
            return _form(called, tokens, before)
        return None if before else called

    calls: Iterator[Called | Piece] = (one for one in _older(past) if not _may_matter(one))
    recorded = chain(_stated(past, Section.TURN), _stated(past, Section.CALLS))
    return by_age(chain(calls, recorded), LEVELS, form, AGE_POWER)


def _may_matter(called: Called) -> bool:
    """Whether a call may have done something that no file shows."""
    return not only_reads(called.call) and not changes_file(called.call)


def _older(past: Past) -> Iterator[Called]:
    return (one for one in past.calls() if one.seq < past.newest_user and one.result is not None)


def _form(called: Called, tokens: int, before: int) -> Piece | None:
    given, result = called.call.arguments, called.result.text if called.result is not None else ""
    if before > LEVELS[0] and max(text_tokens(result), text_tokens(given) if _is_long(given) else 0) <= before:
        return None
    text = _text(called, tokens) if before else told(called)
    return line(called.key, called.seq, text, called.place, partial(_text, called))


def _text(called: Called, tokens: int) -> str:
    """A call with more and more of its arguments and its result."""
    given = called.call.arguments
    is_long = _is_long(given)
    what = f"{called.call.name} {excerpt(given, chars_for(given, tokens))}" if is_long else asked(called.call)
    return f"{what} → {'failed: ' if called.has_failed else ''}{_result(called, tokens)}"


def _is_long(given: str) -> bool:
    return len(given) > ASKED_CHARS


def _result(called: Called, tokens: int) -> str:
    text = called.result.text.strip() if called.result is not None else ""
    return excerpt(text, chars_for(text, tokens))


def _stated(past: Past, section: Section) -> Iterator[Piece]:
    def key(one: Stated) -> tuple[object, ...]:
        return ("stated", section, one.seq, one.order)

    return (line(key(one), one.seq, one.text, one.order) for one in past.section(section))
