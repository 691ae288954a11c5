"""Messages as they are: steps back from the newest, whole or with long contents cut."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import msgspec

from nca.context.history import History
from nca.context.record.excerpt import GAP, PASTE, RESULT, TALK, WORDS, excerpt
from nca.context.record.past import Past
from nca.context.record.piece import Piece, Subject, by_age
from nca.context.record.said import BESIDE_SHARE, MEDIUM_TOKENS, beside_tokens
from nca.context.rules.cut_points import blocks, regular_spans
from nca.context.tokens import content_tokens, text_tokens
from nca.context.view import Range, Stub, looked_up
from nca.humanize import counted
from nca.messages import AttachmentPart, MediaPart, Message, Part, TextPart
from nca.wire import content_text

LAST = 64 << 13
LEVELS = (*(64 << power for power in range(14)), 2 * LAST)
"""The shown part of each content, in tokens; of a text with a newer version, the part above the last but
one."""
LEAST_RESULT_TOKENS = 32
"""Tokens of a result that stay in any case: fewer say nothing."""
LEAST_WORDS_TOKENS = 256
"""A message of the person or the model is not cut if it is no longer than this, except for an answer that ends the
log: in a small room its beginning shows that there is one."""
CUT = "shorten"
"""The stage that a cut content names."""
PART_TOKENS = 8
"""The precision with which the last piece is cut to the rest of the room."""
SEAM_TOKENS = 20
"""The note that something is cut, and how to get it."""
WINDOW = 64
"""Messages that are divided into steps at once."""


def steps_back(history: History, spans: Sequence[Range]) -> Iterator[range]:
    """The smallest runs of messages that may stand by themselves, newest first, read as far as needed."""
    for first, last in reversed(spans):
        end = last
        while end >= first:
            begin = max(first, end - WINDOW + 1)
            while begin > first and history.message(begin).role != "user" and end - begin < 4 * WINDOW:
                begin -= 1
            while begin > first and history.message(begin).role == "tool":
                begin -= 1
            messages = [entry.message for entry in history.entries[begin - 1 : end]]
            for start, stop in reversed(regular_spans(messages) or blocks(messages)):
                yield range(begin + start, begin + stop + 1)
            end = begin - 1


def older(past: Past, steps: Iterator[range]) -> Iterator[Piece]:
    """Each step with more and more of its contents."""
    return by_age((shown(past, seqs) for seqs in steps), LEVELS)


def shown(past: Past, seqs: range) -> Subject:
    """These messages themselves."""
    size = max(_size(past, seq) for seq in seqs)
    return Subject(("step", seqs[0]), seqs[-1], str, max(1, size - SEAM_TOKENS), shows=seqs)


def _size(past: Past, seq: int) -> int:
    """Tokens of its longest form. A text with a later version waits for all else; a copy has no form."""
    message = past.history.message(seq)
    if past.is_copy(seq):
        return 0
    return 2 * LAST if past.newer(seq) or past.repeats_file(message) else _form(past, message)[1]


def cut_itself(past: Past, seq: int, level: int, *, is_last: bool = False) -> Stub | None:
    """A message of which about `level` tokens of its content are shown; None if all of it is.

    It has all that a line of the record has in so many tokens. A text with a newer version, and a file that a
    later message has as well, are only named while there is anything else to show; a copy of a result always is.

    is_last  nothing has room after it: it may be short, whoever said it
    """
    message, newer = past.history.message(seq), past.newer(seq)
    if newer and (level <= LAST or past.is_copy(seq)):
        recall = "" if past.is_copy(seq) else f"; recall expand={looked_up(message, seq)}"
        return Stub(seq, f"[… replaced by ({newer}){recall} …]" if past.numbered else "[… replaced later …]", CUT)
    if level > LAST and past.repeats_file(message):
        return None
    form, size = _form(past, message)
    may_be_short = is_last or message.role == "tool" or seq == past.history.head
    level = max(level - LAST * bool(newer), LEAST_RESULT_TOKENS if may_be_short else LEAST_WORDS_TOKENS)
    if size <= level + SEAM_TOKENS and not past.repeats_file(message):
        return None
    return _cut(message, seq, form(level), numbered=past.numbered)


def has_text(past: Past, seq: int, level: int | None) -> bool:
    """Whether anything of a message's text is shown at a level; None: it is not shown."""
    return level is not None and (level > LAST or not past.newer(seq))


def cut_content(message: Message, seq: int, level: int) -> Stub | None:
    """The same of a message by itself, as `shortened` has it."""
    level = max(level, LEAST_RESULT_TOKENS)
    if content_tokens(message.content) <= level + SEAM_TOKENS:
        return None
    return _cut(message, seq, shortened(message, level), numbered=True)


def shortened(message: Message, tokens: int) -> str:
    """A message's content in about so many tokens; all of it if it has no more.

    The typed text comes first; each other part of it keeps its place and its tags.
    """
    text = content_text(message.content)
    parts = message.content if isinstance(message.content, tuple) else ()
    if message.role != "user" or not any(_is_beside(part) for part in parts):
        return excerpt(text, tokens, TALK if message.role == "assistant" else RESULT)
    if (size := text_tokens(text)) <= tokens:
        return text
    low, high = 0, MEDIUM_TOKENS + int(size / BESIDE_SHARE)
    while high - low > PART_TOKENS:
        middle = (low + high) // 2
        fits = text_tokens(content_text(_shorter(parts, middle))) <= tokens
        low, high = (middle, high) if fits else (low, middle)
    return content_text(_shorter(parts, low))


def _is_beside(part: Part) -> bool:
    """Whether it is a text that came with what was typed."""
    return isinstance(part, AttachmentPart) or (isinstance(part, TextPart) and part.source not in ("", "typed", "nca"))


def _shorter(parts: Sequence[Part], tokens: int) -> tuple[Part, ...]:
    return tuple(part if isinstance(part, MediaPart) else _short(part, tokens) for part in parts)


def _short(part: TextPart | AttachmentPart, tokens: int) -> Part:
    if not _is_beside(part):
        return msgspec.structs.replace(part, text=excerpt(part.text, tokens, WORDS))
    room = beside_tokens(tokens)
    return msgspec.structs.replace(part, text=excerpt(part.text, room, PASTE) if room else GAP)


def _cut(message: Message, seq: int, text: str, *, numbered: bool) -> Stub:
    recall = f"; recall expand={looked_up(message, seq)}" if numbered else ""
    return Stub(seq, f"{text}\n[… cut from {counted(len(message.lines), 'line')}{recall} …]", CUT)


def _form(past: Past, message: Message) -> tuple[Callable[[int], str], int]:
    """A message's form in a line of the record with so many tokens, and tokens of the longest such form."""
    said = past.said(message) if message.role == "user" else None
    if said is not None:
        return said.form, said.size
    text = content_text(message.content).strip()
    return partial(excerpt, text, style=RESULT if message.role == "tool" else TALK), text_tokens(text)
