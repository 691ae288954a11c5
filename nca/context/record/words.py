"""What the person said: every message that they typed, and of what they pasted the ends and the unusual lines."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from nca.context.record.excerpt import chars_for, excerpt
from nca.context.record.past import Past
from nca.context.record.piece import Piece, by_age, line
from nca.context.record.text import Section
from nca.context.tokens import text_tokens
from nca.messages import Entry, Message

SHORT_TOKENS, SHORT_PASTED_TOKENS = 80, 45
"""The short form of a message, and of what was pasted, piped or attached with it: nothing else has room before all
messages have theirs."""
MEDIUM_TOKENS, MEDIUM_PASTED_TOKENS = 160, 120
"""As long as most messages are."""
LEVELS = (480, 1_440, 4_320, 12_960)
"""Longer forms, in tokens."""
AGE_POWER = 0.5
BULK_CHARS, BULK_LINES = 1_200, 8
"""A foreign text of at least this size may be pasted; a sentence has this many words or ends as one."""
SENTENCE_WORDS = 6
_SENTENCE = re.compile(r"[^\W\d_].*[.!?:;…。！？]\W{0,2}\Z")


class Said(NamedTuple):
    """A message of the person's: what they typed, and what came with it, named by its source."""

    seq: int
    order: int
    typed: str
    beside: tuple[tuple[str, str], ...] = ()

    @property
    def key(self) -> tuple[object, ...]:
        return ("said", self.seq, self.order)

    def piece(self, tokens: int, pasted_tokens: int) -> Piece:
        text = self.form(tokens, pasted_tokens)
        return line(self.key, self.seq, text, self.order, lambda more: self.form(more, more))

    def form(self, tokens: int, pasted_tokens: int) -> str:
        typed = self.typed.strip()
        parts = [excerpt(typed, chars_for(typed, tokens))]
        for source, text in self.beside:
            cut = excerpt(text.strip(), chars_for(text, pasted_tokens), is_bulk=True)
            parts.append(f"[{source}, {text.count(chr(10)) + 1:,} lines] {cut}")
        return "\n".join(part for part in parts if part)

    def is_within(self, tokens: int, pasted_tokens: int) -> bool:
        """Whether such a form has all of it."""
        beside = all(text_tokens(text) <= pasted_tokens for _, text in self.beside)
        return beside and text_tokens(self.typed) <= tokens


def said_in(message: Message, seq: int) -> Said | None:
    """What a message says in the person's name; None for one that is not theirs."""
    if message.role == "tool":
        # What a person typed when they refused a call stands in its result.
        typed_beside = "".join(span.text for span in message.said if span.source == "typed")
        return Said(seq, -1, typed_beside) if typed_beside.strip() else None
    if message.role != "user" or message.is_synthetic:
        return None
    typed: list[str] = []
    beside: list[tuple[str, str]] = []
    for span in message.said:
        if span.source == "foreign":
            own, pasted = told_apart(span.text)
            typed.append(own)
            beside += [("pasted", pasted)] if pasted else []
        elif span.source == "typed":
            typed.append(span.text)
        elif span.text.strip():
            beside.append((span.source, span.text))
    beside += [(f"{part.source}: {part.path}", part.text) for part in message.attachments]
    if not beside and not "".join(typed).strip():
        return None
    return Said(seq, -1, "".join(typed), tuple(beside))


def told_apart(text: str) -> tuple[str, str]:
    """What was typed and what was pasted of a text of unknown source.

    In a long text of which most lines are no sentences, the sentences before and behind the rest are typed.
    """
    lines = text.splitlines()
    full = [line for line in lines if line.strip()]
    if len(text) < BULK_CHARS or len(full) < BULK_LINES or sum(map(_is_sentence, full)) * 2 >= len(full):
        return text, ""
    start, end = 0, len(lines)
    while start < end and (not lines[start].strip() or _is_sentence(lines[start])):
        start += 1
    while end > start and (not lines[end - 1].strip() or _is_sentence(lines[end - 1])):
        end -= 1
    return "\n".join([*lines[:start], *lines[end:]]), "\n".join(lines[start:end])


def _is_sentence(line: str) -> bool:
    line = line.strip()
    return len(line.split()) >= SENTENCE_WORDS and _SENTENCE.match(line) is not None


def short(past: Past) -> Iterator[Piece]:
    """Each message in its short form: what a model named first, then the newest and the oldest in turn."""
    for said in _in_order(past):
        yield said.piece(SHORT_TOKENS, SHORT_PASTED_TOKENS)


def medium(past: Past) -> Iterator[Piece]:
    for said in _in_order(past):
        if not said.is_within(SHORT_TOKENS, SHORT_PASTED_TOKENS):
            yield said.piece(MEDIUM_TOKENS, MEDIUM_PASTED_TOKENS)


def longer(past: Past) -> Iterator[Piece]:
    def form(said: Said, tokens: int, before: int) -> Piece | None:
        if said.is_within(before or MEDIUM_TOKENS, before or MEDIUM_PASTED_TOKENS):
            return None
        return said.piece(tokens, tokens)

    return by_age(_in_order(past), LEVELS, form, AGE_POWER)


def _in_order(past: Past) -> Iterator[Said]:
    seen: set[tuple[object, ...]] = set()
    for seq in sorted(past.important, reverse=True):
        said = said_in(past.history.message(seq), seq) if seq <= past.history.head else None
        if said is not None:
            seen.add(said.key)
            yield said
    sides = [_newest(past), _oldest(past)]
    while True:
        for side in sides:
            said = next(side, None)
            while said is not None and said.key in seen and said.key[1] in past.important:
                said = next(side, None)
            if said is None or said.key in seen:
                return
            seen.add(said.key)
            yield said


def _newest(past: Past) -> Iterator[Said]:
    yield from _said(past.backwards())
    yield from (Said(one.seq, one.order, one.text) for one in past.section(Section.WORDS))


def _oldest(past: Past) -> Iterator[Said]:
    yield from (Said(one.seq, one.order, one.text) for one in reversed(past.section(Section.WORDS)))
    yield from _said(past.forwards())


def _said(entries: Iterable[Entry]) -> Iterator[Said]:
    for entry in entries:
        is_possible = entry.message.role == "user" or isinstance(entry.message.content, tuple)
        if is_possible and (said := said_in(entry.message, entry.seq)) is not None:
            yield said
