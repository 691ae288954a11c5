"""What was done: calls of this turn, effects, what failed, and older calls."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, takewhile

from nca.context.file_reads import only_reads, runs_program
from nca.context.record.excerpt import RESULT, excerpt, on_one_line
from nca.context.record.past import ASKED_CHARS, Called, Past, Stated, asked, changes_file, long_arguments
from nca.context.record.piece import Piece, Subject, by_age, fixed
from nca.context.record.text import Section
from nca.context.tokens import text_tokens
from nca.messages import ToolCall

LEVELS = (50, 150, 450, 1_350, 4_050, 12_150, 36_450)
"""Forms of a call, in tokens: a line, then more and more of its arguments and its result."""
FAILURE_TOKENS = 60
EFFECT_CHARS = 220
IDENTITY_CHARS = 800
"""Calls that ask for the same in so many characters are the same call."""


def turn(past: Past) -> Iterator[Piece]:
    """The calls since the person's newest message."""
    return by_age(map(_subject, takewhile(lambda one: one.seq > past.newest_user, past.calls)), LEVELS)


def effects(past: Past) -> Iterator[Piece]:
    """Files that changed, and every call that may have changed something elsewhere; newest first."""
    changed: dict[str, int] = {}
    for seq, path in past.changed:
        changed[path] = max(seq, changed.get(path, 0))
    seen: set[str] = set()
    for called in past.calls:
        if called.has_failed or called.result is None:
            continue
        path = changes_file(called.call)
        if path and path not in seen:
            seen.add(path)
            yield fixed(("file", path), called.seq, f"{path}: {called.call.name}", called.place)
        elif not path and not only_reads(called.call) and not runs_program(called.call):
            key, own = ("effect", called.seq, called.place), (called.result_seq,)
            yield fixed(key, called.seq, told(called, chars=EFFECT_CHARS), called.place, own, LEVELS[0])
    for path, seq in sorted(changed.items(), key=lambda one: -one[1]):
        if path not in seen:
            yield fixed(("file", path), seq, f"{path}: changed")
    recorded = (one for one in past.stated(Section.EFFECTS) if one.text.rpartition(": ")[0] not in seen)
    yield from (_line(one) for one in recorded)


def failed(past: Past) -> Iterator[Piece]:
    """Calls whose result is marked as failed and that were not made again since."""
    seen: set[str] = set()
    for called in past.calls:
        what = asked(called.call, IDENTITY_CHARS)
        if what in seen or called.result is None:
            continue
        seen |= {what, asked(called.call)}
        if called.has_failed:
            why = excerpt(called.result.text.strip(), FAILURE_TOKENS)
            text, own = f"{asked(called.call)} → {why}", (called.result_seq,)
            yield fixed(("failed", what), called.seq, text, called.place, own, FAILURE_TOKENS)
    recorded = (one for one in past.stated(Section.FAILED) if one.text.partition(" → ")[0] not in seen)
    yield from (_line(one) for one in recorded)


def runs(past: Past) -> Iterator[Piece]:
    """Older calls that may have done something: their results cannot be had again."""
    return _older(past, only_read=False)


def reads(past: Past) -> Iterator[Piece]:
    """Older calls that only read, or that wrote a file."""
    return _older(past, only_read=True)


def told(called: Called, tokens: int = LEVELS[0], chars: int = ASKED_CHARS) -> str:
    """A call with what came of it: in one line, or in more tokens with more of its arguments and its result."""
    what, came = asked(called.call, chars), "no result yet"
    if called.result is not None:
        came = excerpt(called.result.text.strip(), tokens) or "nothing"
        came = ("failed: " if called.has_failed else "") + (on_one_line(came) if tokens <= LEVELS[0] else came)
    content = excerpt(long_arguments(called.call), tokens) if tokens > LEVELS[0] else ""
    return f"{what}{' ' * bool(content)}{content} → {came}"


def _subject(called: Called) -> Subject:
    result = called.result.text if called.result is not None else ""
    size = max(text_tokens(result), text_tokens(long_arguments(called.call)), 1)
    key, own = ("call", called.seq, called.place), (called.result_seq,) if called.result is not None else ()
    return Subject(key, called.seq, lambda tokens: told(called, tokens), size, called.place, own)


def _older(past: Past, *, only_read: bool) -> Iterator[Piece]:
    """The calls before the person's newest message, and those of earlier records."""
    older = (one for one in past.calls if one.seq < past.newest_user and one.result is not None)
    found = (_subject(one) for one in older if _is_seen(one.call) is only_read)
    # Of a recorded call the name is known, and what it was about stands behind it.
    recorded = (
        one.subject(RESULT)
        for one in (*past.stated(Section.TURN), *past.stated(Section.CALLS))
        if _is_seen(ToolCall("", one.text.partition(" ")[0], '{"path": "."}')) is only_read
    )
    return by_age(chain(found, recorded), LEVELS)


def _is_seen(call: ToolCall) -> bool:
    """Whether what a call did can be seen elsewhere: it only read, or it changed a file."""
    return only_reads(call) or bool(changes_file(call))


def _line(one: Stated) -> Piece:
    subject = one.subject(RESULT)
    return subject.piece(subject.size)
