"""What the model said: the answers that ended a turn, the newest of them, and remarks between calls.

Of answers that are versions of one text the newest stands for all: an older one is told in one line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from typing import NamedTuple

from nca.context.record.excerpt import GAP, chars_for, excerpt, first_sentences
from nca.context.record.past import Past
from nca.context.record.piece import Piece, by_age, line
from nca.context.record.text import Section
from nca.context.tokens import text_tokens

LATEST_LEVELS = (150, 450, 1_350, 4_050)
LEVELS = (40, 120, 360, 1_080, 3_240, 9_720)
"""Forms, in tokens."""
AGE_POWER = 0.5
SHORTEST_REMARK_CHARS = 80
VERSION_CHARS, VERSION_SHARE = 24, 0.5
"""Two texts of which so large a share of the lines or sentences of at least so many characters is the same are versions
of one."""
REPLACED, REPLACED_CHARS = "replaced later: ", 40
FEWEST_ITEMS, SHORTEST_ITEM_CHARS, LEAD_CHARS = 3, 48, 240
_ITEM = re.compile(r"(?m)^\s*(?:[-*•|]|\d{1,2}[.)])\s*\S")
_PART = re.compile(r"[\n.!?。！？]+")


class Answer(NamedTuple):
    seq: int
    order: int
    text: str
    replaced_by: int = 0

    @property
    def key(self) -> tuple[object, ...]:
        return ("answer", self.seq, self.order)

    def piece(self, tokens: int, *, numbered: bool) -> Piece:
        if not self.replaced_by:
            return line(self.key, self.seq, shortened(self.text, tokens), self.order, partial(shortened, self.text))
        by = f"replaced by ({self.replaced_by}): " if numbered else REPLACED
        return line(self.key, self.seq, f"{by}{first_sentences(self.text, REPLACED_CHARS)}", self.order)

    def is_within(self, tokens: int) -> bool:
        """Whether such a form has all of it."""
        return bool(tokens and self.replaced_by) or text_tokens(self.text) <= tokens


def shortened(text: str, tokens: int) -> str:
    """A form of an answer: of a list or a table each item's beginning; else the text's beginning, or an excerpt."""
    chars = chars_for(text, tokens)
    if len(text) <= chars:
        return text
    if len(_ITEM.findall(text)) >= FEWEST_ITEMS and (outlined := outline(text, chars)):
        return outlined
    return first_sentences(text, chars) if tokens <= LEVELS[0] else excerpt(text, chars)


def outline(text: str, chars: int) -> str:
    """Every line of a text, the long ones cut to the same length; "" where that would leave too little of them.

    The first line has no less than in a shorter form of the text.
    """
    first, *lines = [one.rstrip() for one in text.splitlines() if one.strip()]
    lead = first if len(first) <= LEAD_CHARS else _begun(first, LEAD_CHARS)
    left, most = chars - len(lead), 0
    for place, size in enumerate(sorted(len(one) + 1 for one in lines)):
        most = left // (len(lines) - place)
        if size > most:
            break
        left -= size
    if most < SHORTEST_ITEM_CHARS:
        return ""
    return "\n".join([lead, *(one if len(one) < most else _begun(one, most) for one in lines)])


def _begun(text: str, chars: int) -> str:
    return f"{text[: chars - len(GAP) - 1].rstrip()} {GAP}"


def latest(past: Past) -> Iterator[Piece]:
    """The answer that the newest message answers, in longer and longer forms."""
    answer = next((one for one in _answers(past) if one.seq < past.newest_user), None)
    for tokens, before in zip(LATEST_LEVELS, (0, *LATEST_LEVELS), strict=False):
        if answer is not None and not answer.is_within(before):
            yield answer.piece(tokens, numbered=past.numbered)


def answers(past: Past) -> Iterator[Piece]:
    def form(answer: Answer, tokens: int, before: int) -> Piece | None:
        return None if answer.is_within(before) else answer.piece(tokens, numbered=past.numbered)

    return by_age(_answers(past), LEVELS, form, AGE_POWER, is_each=True)


def remarks(past: Past) -> Iterator[Piece]:
    """What the model said beside its calls."""

    def form(remark: Answer, tokens: int, before: int) -> Piece | None:
        if remark.is_within(before):
            return None
        key, text = ("remark", remark.seq, remark.order), shortened(remark.text, tokens)
        return line(key, remark.seq, text, remark.order, partial(shortened, remark.text))

    return by_age(_remarks(past), LEVELS, form, AGE_POWER)


def _answers(past: Past) -> Iterator[Answer]:
    """Newest first, each with the number of the newer version of its text."""
    newer: dict[str, int] = {}
    for seq, order, text in _texts(past):
        parts = {part for one in _PART.split(text) if len(part := " ".join(one.split())) >= VERSION_CHARS}
        same = [newer[part] for part in parts if part in newer]
        replaced_by = max(set(same), key=same.count) if same and len(same) >= VERSION_SHARE * len(parts) else 0
        yield Answer(seq, order, text, replaced_by)
        newer.update(dict.fromkeys(parts - newer.keys(), replaced_by or seq))


def _texts(past: Past) -> Iterator[tuple[int, int, str]]:
    for seq in sorted(past.important, reverse=True):
        message = past.history.message(seq)
        if message.role == "assistant" and message.text.strip():
            yield seq, -1, message.text.strip()
    for entry in past.backwards():
        message = entry.message
        is_answer = message.role == "assistant" and not message.tool_calls and message.text.strip()
        if is_answer and entry.seq not in past.important:
            yield entry.seq, -1, message.text.strip()
    for one in past.section(Section.ANSWERS):
        yield one.seq, one.order, one.text.removeprefix(REPLACED)


def _remarks(past: Past) -> Iterator[Answer]:
    for entry in past.near():
        message = entry.message
        if message.role == "assistant" and message.tool_calls and len(message.text.strip()) >= SHORTEST_REMARK_CHARS:
            yield Answer(entry.seq, -1, message.text.strip())
    for one in past.section(Section.REMARKS):
        yield Answer(one.seq, one.order, one.text)
