"""The sources of a message's words: the person's typed text, and the parts that came with it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from itertools import islice
from typing import NamedTuple

from nca.context.record.excerpt import PASTE, WORDS, excerpt
from nca.context.record.piece import Subject
from nca.context.record.script import PAUSES, STOPS, UNSPACED_STOPS, words_in
from nca.context.tokens import text_tokens
from nca.humanize import counted
from nca.messages import Message

SHORT_TOKENS, MEDIUM_TOKENS = 80, 1_280
"""The short form of a message, before which nothing else has room; and the form that comes before anything else has a
longer one. Rules are in the middle of a brief as often as at its ends, so it holds two typed pages."""
BESIDE_SHARE = 0.6
BESIDE_TOKENS = 160
"""Pasted, piped or attached text has this share of the typed text's room, and no more than in a form of so many
tokens before the longer ones."""
BULK_CHARS, BULK_LINES = 1_200, 8
"""A foreign text of at least this size may be pasted; for a program's text, and a paste, the lines alone decide."""
SENTENCE_WORDS, FEWEST_WORDS = 6, 3
"""Words of a line that counts as a sentence; at either end of a paste it may be shorter."""
APART_LINES = 2
FEWEST_PROMPTS = 3
"""A line that so many messages end with is a program's."""
_SENTENCE = re.compile(rf"(?:\d{{1,2}}[.)]\s+)?[^\W\d_].*[{STOPS}{PAUSES}{UNSPACED_STOPS}]\W{{0,2}}\Z")


TYPED, BESIDE = "typed", "beside"
"""The name of a message's line: whether the person typed any of it, or showed something."""


class AttachedFile(NamedTuple):
    """`newer`  words for the later message that has the file as well; "" if none has."""

    path: str
    text: str
    newer: str = ""

    def form(self, tokens: int) -> str:
        """Its name alone if it has no room: it is on the disk, and can be read again."""
        text = self.text.strip()
        head = f"[attached: {self.path}, {self.newer or counted(len(self.text.splitlines()), 'line')}]"
        if self.newer or not tokens or not text:
            return head
        return f"{head}\n{excerpt(text, tokens, PASTE)}\n[end of {self.path}]"


class Said(NamedTuple):
    """A message of the person: the typed text, the parts that came with it, named by their source, and marks of
    pictures."""

    typed: str
    beside: tuple[tuple[str, str], ...] = ()
    files: tuple[AttachedFile, ...] = ()
    marks: tuple[str, ...] = ()

    def form(self, tokens: int) -> str:
        parts = [excerpt(self.typed.strip(), tokens, WORDS)]
        room = beside_tokens(tokens)
        room = room if tokens > SHORT_TOKENS or not self.typed.strip() else 0
        parts += [_beside(source, text, room) for source, text in self.beside]
        parts += [file.form(room) for file in self.files]
        parts += self.marks
        return "\n".join(part for part in parts if part)

    @property
    def size(self) -> int:
        """Tokens of its longest form. The short one has no text of a file, however little that is."""
        texts = [*(text for _, text in self.beside), *(file.text for file in self.files if not file.newer)]
        least = SHORT_TOKENS + 1 if any(texts) else 1
        beside = (int(text_tokens(text) / BESIDE_SHARE) + 1 for text in texts)
        longer = (one if one <= BESIDE_TOKENS else MEDIUM_TOKENS + one - BESIDE_TOKENS for one in beside)
        return max(text_tokens(self.typed), *longer, least)

    def subject(self, seq: int) -> Subject:
        return Subject(
            (TYPED if self.typed.strip() or self.marks else BESIDE, seq), seq, self.form, self.size, own=(seq,)
        )


def beside_tokens(tokens: int) -> int:
    """The room of each text beside what was typed, in a form of so many tokens."""
    return int(BESIDE_SHARE * (min(tokens, BESIDE_TOKENS) + max(0, tokens - MEDIUM_TOKENS)))


def said_in(message: Message, prompts: Collection[str] = ()) -> Said | None:
    """What a message says in the person's name; None for one that is not theirs.

    prompts  last lines of a program's texts (`prompts_in`)
    """
    if message.role == "tool":
        # A person's reason for refusing a call is in its result.
        typed_beside = "".join(span.text for span in message.said if span.source == "typed")
        return Said(typed_beside) if typed_beside.strip() else None
    if message.role != "user" or message.is_synthetic:
        return None
    typed: list[str] = []
    beside: list[tuple[str, str]] = []
    # Dictation and snippets come as pastes: nobody knows of one that was sent alone whether it is the person's text.
    is_alone = all(span.source == "pasted" for span in message.said if span.text.strip())
    for span in message.said:
        if span.source == "foreign" or is_alone:
            own, pasted = typed_and_pasted(span.text, prompts, is_paste=is_alone)
            typed.append(own)
            beside += [("pasted", pasted)] if pasted else []
        elif span.source == "typed":
            typed.append(span.text)
        elif span.text.strip():
            beside.append((span.source, span.text))
    attached = [part for part in message.attachments if part.source == "attached"]
    beside += [(f"{part.source}: {part.path}", part.text) for part in message.attachments if part not in attached]
    files = tuple(AttachedFile(part.path, part.text) for part in attached)
    said = Said("".join(typed), tuple(beside), files, message.marks)
    return said if beside or files or said.marks or said.typed.strip() else None


def _beside(source: str, text: str, tokens: int) -> str:
    head = f"[{source}, {counted(len(text.splitlines()), 'line')}]"
    return f"{head} {excerpt(text.strip(), tokens, PASTE)}" if tokens else head


def prompts_in(messages: Iterable[Message]) -> frozenset[str]:
    """The lines with which several texts of unknown source end: a program's prompt. People do not sign what they type.

    Some agents send a command's output to the model in the user's name (SWE-agent's `bash-$`).
    """
    ends = Counter(_last_line(message.text) for message in messages if any(s.source == "foreign" for s in message.said))
    return frozenset(line for line, count in ends.items() if line and count >= FEWEST_PROMPTS)


def _last_line(text: str) -> str:
    return text.rstrip().rpartition("\n")[2].strip()


def typed_and_pasted(text: str, prompts: Collection[str] = (), *, is_paste: bool = False) -> tuple[str, str]:
    """The typed and the pasted part of a text of unknown source.

    In a long text with few sentences, the sentences before and after the rest are typed, and so are one or two lines
    that a blank line sets apart: few people end a line above a paste with a stop.

    is_paste  it is known to be pasted, but not whether the person wrote it
    """
    if len(text) < BULK_CHARS and not is_paste and not (prompts and _last_line(text) in prompts):
        return text, ""
    lines = text.splitlines()
    full = [line for line in lines if line.strip()]
    if len(full) < BULK_LINES or sum(map(_is_sentence, full)) * 2 >= len(full):
        return text, ""
    start, end = _apart(lines), len(lines) - _apart(lines[::-1])
    while start < end and (not lines[start].strip() or _is_sentence(lines[start], FEWEST_WORDS)):
        start += 1
    while end > start and (not lines[end - 1].strip() or _is_sentence(lines[end - 1], FEWEST_WORDS)):
        end -= 1
    return "\n".join([*lines[:start], *lines[end:]]), "\n".join(lines[start:end])


def _apart(lines: Sequence[str]) -> int:
    """The number of lines at the beginning that a person may have typed, as a blank line sets them apart."""
    count = next((count for count, line in enumerate(lines[: APART_LINES + 1]) if not line.strip()), 0)
    return count if sum(1 for line in lines[:count] for _ in words_in(line)) >= FEWEST_WORDS else 0


def _is_sentence(line: str, words: int = SENTENCE_WORDS) -> bool:
    line = line.strip()
    return _SENTENCE.match(line) is not None and sum(1 for _ in islice(words_in(line), words)) >= words
