"""The agent's actions: calls of this turn, effects, failures, and older calls."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from heapq import merge
from itertools import chain, takewhile

from nca.context.record.called import (
    ASKED_CHARS,
    CHARS_PER_TOKEN,
    NO_OTHERS,
    Called,
    Others,
    asked,
    brought,
    came_of,
    long_arguments,
)
from nca.context.record.excerpt import GAP, RESULT, excerpt
from nca.context.record.past import Past
from nca.context.record.piece import Key, Piece, Section, Subject, by_age, fixed
from nca.context.tokens import text_tokens

LEVELS = (50,)
"""The first form of a call, in tokens: a line. Then come more and more of its arguments and its result."""
FAILURE_TOKENS = 60
EFFECT_TOKENS, ENDED_TOKENS = 1, 12
"""The first forms of an effect: the action and its subject, then what came of it. Longer ones follow."""
BRIEF_CHARS, EFFECT_CHARS = 30, 220
"""Characters of a call's request in its first form, and at most."""
CAME = " → "
"""The sign between a call's request and its result."""


def turn(past: Past) -> Iterator[Piece]:
    """The calls since the person's newest message."""
    since = takewhile(lambda one: one.seq > past.newest_user, past.calls)
    return by_age((_subject(past, one) for one in since if _is_current(past, one)), LEVELS)


def effects(past: Past) -> Iterator[Piece]:
    """Each call that may have changed something elsewhere, in brief, newest first: nothing else can tell of it."""
    yield from (_subject(past, one).piece(EFFECT_TOKENS) for one in past.calls if one.is_effect)
    yield from (one.whole() for one in past.record_lines(Section.EFFECTS) if CAME in one.text)


def ended_effects(past: Past) -> Iterator[Piece]:
    """The same with what came of each: without it, a payment that was declined looks like one that was made."""
    return (_subject(past, one).piece(ENDED_TOKENS) for one in past.calls if one.is_effect)


def longer_effects(past: Past) -> Iterator[Piece]:
    return by_age((_subject(past, one) for one in past.calls if one.is_effect), LEVELS, above=ENDED_TOKENS)


def files(past: Past) -> Iterator[Piece]:
    """The files that changed, newest first: by a call, or as the record of files knows."""
    known = (fixed(("file", path), seq, f"{path}: {what}") for seq, path, what in sorted(past.changed, reverse=True))
    seen: set[Key] = set()
    for piece in merge(_written(past), known, key=lambda one: -one.subject.seq):
        if piece.subject.key not in seen:
            seen.add(piece.subject.key)
            yield piece
    recorded = (one for one in past.record_lines(Section.EFFECTS) if CAME not in one.text)
    yield from (one.whole() for one in recorded if ("file", one.text.rpartition(": ")[0]) not in seen)


def _written(past: Past) -> Iterator[Piece]:
    for called in past.calls:
        path = called.changed_file
        if path and called.has_worked:
            yield fixed(("file", path), called.seq, f"{path}: {called.call.name}", called.place)


def _effect(past: Past, called: Called, tokens: int) -> str:
    if called.is_cut_off:
        # Its line says first of all that nobody knows what it did.
        tokens = max(tokens, LEVELS[0])
    chars = min(EFFECT_CHARS, max(BRIEF_CHARS, CHARS_PER_TOKEN * tokens))
    if tokens > EFFECT_TOKENS:
        others = past.others(called.call.name)
        return call_text(called, tokens, chars, is_headed=called.still_fails, others=others)
    return f"{asked(called.call, chars).removesuffix(GAP).rstrip()}{CAME}{GAP}"


def failed(past: Past) -> Iterator[Piece]:
    """Calls with a failed result that were not made again since."""
    failing = (called for called in past.calls if called.still_fails and not called.is_effect)
    yield from (_subject(past, called).piece(FAILURE_TOKENS) for called in failing)
    if recorded := past.record_lines(Section.FAILED):
        made = {asked(called.call) for called in past.calls if called.has_run}
        yield from (one.whole() for one in recorded if one.text.partition(CAME)[0] not in made)


def older(past: Past) -> Iterator[Piece]:
    """The calls before the person's newest message, and those of earlier records."""
    before = (one for one in past.calls if one.seq < past.newest_user and not one.is_effect)
    found = (_subject(past, one) for one in before if _is_current(past, one))
    recorded = (*past.record_lines(Section.TURN), *past.record_lines(Section.CALLS))
    return by_age(chain(found, (one.subject(RESULT) for one in recorded)), LEVELS)


def call_text(
    called: Called,
    tokens: int = LEVELS[0],
    chars: int = ASKED_CHARS,
    *,
    is_headed: bool = False,
    others: Others = NO_OTHERS,
) -> str:
    """A call with its result: in one line, or in more tokens with more of its arguments and its result.

    is_headed  a heading says that it failed
    others     the results among which its own is told
    """
    content = excerpt(long_arguments(called.call), tokens) if tokens > LEVELS[0] else ""
    what = asked(called.call, chars, has_content=bool(content))
    came = "no result came: its outcome is unknown" if called.is_left else "no result yet"
    if called.result is not None:
        is_line = tokens <= LEVELS[0]
        came = came_of(called, tokens, others) if is_line else excerpt(brought(called.result), tokens) or "nothing"
        came = f"failed: {came}" if called.has_failed and not is_headed else came
    return f"{what}{' ' * bool(content)}{content}{CAME}{came}"


def _subject(past: Past, called: Called) -> Subject:
    key, own = ("call", called.seq, called.place), (called.result_seq,) if called.result is not None else ()
    if called.is_effect:
        form, size = partial(_effect, past, called), max(_size(called), EFFECT_CHARS // CHARS_PER_TOKEN)
    else:
        form = partial(call_text, called, is_headed=called.still_fails)
        # A repeated result is told at its last place.
        size = LEVELS[0] if past.newer(called.result_seq) else _size(called)
    return Subject(key, called.seq, form, size, called.place, own, section=_section(past, called))


def _section(past: Past, called: Called) -> Section | None:
    """The section of a call's line, whatever its kind; None: the kind's."""
    if called.still_fails:
        return Section.FAILED
    if not called.is_effect:
        return None
    # What says that it failed has changed nothing for all that is known, and may have.
    if called.has_worked or called.is_cut_off:
        return Section.EFFECTS
    return Section.TURN if called.seq > past.newest_user else Section.CALLS


def _size(called: Called) -> int:
    result = brought(called.result)
    return max(text_tokens(result), text_tokens(long_arguments(called.call)), 1)


def _is_current(past: Past, called: Called) -> bool:
    """Whether a call has a line: of what was read again since, nobody needs to know what it was before."""
    return not (called.only_reads and past.newer(called.result_seq))
