"""Split a message into the passages of the full-text index.

A trigger calls `stored_passages` for every message that enters the log, so index and log are one transaction. Where
many come at once, `nca.sessions.log.insert` does the same in the same transaction, but faster. The index stores no
text: a passage is cut from its message again when it is shown. The cuts must therefore never change without a migration
that rebuilds the index.

    text    the passage; FTS5 splits it into words, so `a/b.py:12` and `snake_case` are phrases
    extra   what FTS5 does not see: the words of camelCase, pairs of neighbouring CJK characters, the month of a date,
            and who speaks. Older databases also hold the words nca9when and nca9count, which no query uses.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from nca.context.view import RECALL
from nca.errors import StoreDamaged
from nca.messages import AttachmentPart, Message, TextPart, clean_text
from nca.safe_files import open_ordinary
from nca.sessions.encoding import decode_message

PASSAGE_CHARS = 1_200
MAX_PASSAGES = 4_096
"""Of one message; later text is not indexed. A row of the index is `message id * MAX_PASSAGES + place`."""
COUNTED = 4_000
"""A word in more passages than this is common: its count is extrapolated from the first so many."""

_LEAST_PASSAGE = PASSAGE_CHARS // 2
_OUTPUT = re.compile(r"\[The whole output is in .*?([0-9A-Za-z_-]+)[/\\](\d+\.txt)\]\s*\Z")
CAMEL = re.compile(r"\b(?:[^\W\d_]*[a-z][A-Z]\w*|[A-Z]{2,}[a-z]\w+)")
_KINDS = bytes(
    ord("a" if char.islower() else "A" if char.isupper() else "0" if char.isalnum() or char == "_" else " ")
    for char in map(chr, range(128))
) + bytes(128)
"""For each ASCII character: small letter, capital, another character of a word, or none."""
_HUMP = re.compile(rb"A(?:(?<=aA)|(?<!AA)A++(?=a))")
"""Every match of CAMEL contains a capital after a small letter, or at least two before one."""
_WORD = re.compile(r"\w+")
_KNOWN_WORDS = 8_192
CAMEL_PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
CJK_RUN = re.compile(f"[{_CJK}]+")
_LIKE_CJK = re.compile("[\u1100-\u11ff\u2e80-\U0010ffff]")
"""In every text that has CJK characters once it is normalized, such as the letters of a Korean syllable."""
_SPEAKER = re.compile(
    r"\s*(?:[\[(][^\])]{1,60}[\])]\s*)?\**([^\W\d_][\w.'’-]*(?: [\w.'’-]+){0,2})\**\s*(?:\([^)]{1,40}\)\s*)?:\s"
)
_SPEAKER_CHARS = 200
BY = "nca9by"
"""Prefix of each word of the speaker's name in the second column; nobody writes it."""
_ISO_DATE = re.compile(r"(?:19|20)(?<=\b..)\d\d[-/](0[1-9]|1[0-2])[-/](?:[0-2]\d|3[01])")
_MONTH_NAMES = "january february march april may june july august september october november december"
_MONTHS = _MONTH_NAMES.split()


def stored_passages(body: str, outputs: Path | None) -> list[tuple[str, str]]:
    """The passages of a stored message; none if it is damaged."""
    try:
        return passages_of(decode_message(body, "a message"), outputs)
    except StoreDamaged:
        return []  # reading the row reports the damage; it must not stop a migration


def passages_of(message: Message, outputs: Path | None) -> list[tuple[str, str]]:
    """The passages of a message, each as (text, extra)."""
    text = plain_text(message, outputs)
    speaker = speaker_of(message)
    return [(text[first:end].replace("\0", " "), extra_words(text[first:end], speaker)) for first, end in cuts(text)]


def plain_text(message: Message, outputs: Path | None = None) -> str:
    """The searchable text of a message. `outputs`: the folder of complete tool outputs."""
    if message.role == "tool" and message.name == RECALL:
        return ""
    content = _content(message, outputs)
    marks = message.marks
    if not message.tool_calls and not message.reasoning and not marks:
        return clean_text(content)
    parts = [content, *marks]
    parts += [f"{call.name} {_arguments(call.arguments)}" for call in message.tool_calls if call.name != RECALL]
    parts.append(message.reasoning)
    return clean_text("\n".join(part for part in parts if part))


def cuts(text: str) -> list[tuple[int, int]]:
    """Start and end of each passage of a text, cut at the end of a line or word if there is one."""
    found: list[tuple[int, int]] = []
    first = 0
    while len(text) - first > PASSAGE_CHARS and len(found) < MAX_PASSAGES:
        end = first + PASSAGE_CHARS
        for gap in ("\n", " "):
            cut = text.rfind(gap, first + _LEAST_PASSAGE, end) + 1
            if cut > 0:
                end = cut
                break
        found.append((first, end))
        first = end
    if len(found) < MAX_PASSAGES and text[first:].strip():
        found.append((first, len(text)))
    return found


def extra_words(text: str, speaker: str = "") -> str:
    """The second column of the index, one entry a line."""
    words = camel_words(text)
    if "20" in text or "19" in text:  # much faster than the pattern
        words += [_MONTHS[int(month) - 1] for month in _ISO_DATE.findall(text)]
    if not text.isascii() and _LIKE_CJK.search(text):
        words += [" ".join(pairs(run)) for run in CJK_RUN.findall(unicodedata.normalize("NFKC", text))]
    if speaker:
        words += [f"{BY}{word}" for word in re.findall(r"\w+", speaker.lower())]
    return "\n".join(words)


def camel_words(text: str) -> list[str]:
    """The matches of CAMEL in a text, each word as its parts. Only words with a hump are searched."""
    kinds = text.encode("ascii", "replace").translate(_KINDS)
    found: list[str] = []
    end = 0
    for hump in _HUMP.finditer(kinds):
        if hump.start() < end:
            continue
        first = kinds.rfind(b" ", end, hump.start()) + 1 or end
        while first > end and (text[first - 1].isalnum() or text[first - 1] == "_"):  # after a letter beyond ASCII
            first -= 1
        end = word.end() if (word := _WORD.match(text, first)) else hump.end()
        if parts := _camel_parts(text[first:end]):
            found.append(parts)
    return found


@lru_cache(_KNOWN_WORDS)
def _camel_parts(word: str) -> str:
    """The parts of a word that is like CAMEL, else nothing. The same names come again and again."""
    return " ".join(CAMEL_PART.findall(word)) if CAMEL.match(word) else ""


def pairs(run: str) -> Iterator[str]:
    """Overlapping pairs of a run of CJK characters, and the last one alone, so that each character begins a word."""
    for place in range(len(run) - 1):
        yield run[place : place + 2]
    yield run[-1]


def speaker_of(message: Message) -> str:
    """The name before a message's text ("[8 May] Ann: …") or on the message; empty if there is none."""
    if message.role == "tool" or message.role == "system":
        return ""
    beginning = message.text[:_SPEAKER_CHARS]
    match = _SPEAKER.match(beginning) if ":" in beginning else None
    if match and all(word[0].isupper() for word in match[1].split()):
        return match[1]
    return message.name


def _content(message: Message, outputs: Path | None) -> str:
    """Without what nca added, or the program that a message was imported from."""
    content = message.content
    if isinstance(content, str):
        return "" if message.is_synthetic else _whole_output(message, content, outputs)
    texts = []
    for part in content or ():
        if isinstance(part, AttachmentPart):
            texts.append(f"{part.path}\n{part.text}")
        elif isinstance(part, TextPart) and (part.source or message.source) != "nca":
            texts.append(part.text)
    return "\n".join(texts)


def _whole_output(message: Message, text: str, outputs: Path | None) -> str:
    """The complete output that a shortened tool result names, if it is in the store's own folder; else the text.

    Only the file's name is taken from the text, so no other file is read, whatever a tool writes.
    """
    if outputs is None or message.role != "tool" or not text.rstrip().endswith("]"):
        return text
    if not (match := _OUTPUT.search(text, max(0, len(text) - 4_096))):
        return text
    try:
        with open_ordinary(outputs / match[1] / match[2], follows_links=False) as file:
            return file.read(4 * MAX_PASSAGES * PASSAGE_CHARS).decode("utf-8", "replace")
    except OSError:
        return text


def _arguments(arguments: str) -> str:
    """The values of a call's JSON arguments, one a line; invalid JSON unchanged."""
    try:
        return "\n".join(_values(msgspec.json.decode(arguments)))
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return arguments


def _values(value: Any) -> Iterator[str]:
    match value:
        case dict():
            for name, item in value.items():
                yield f"{name}: " + "\n".join(_values(item))
        case list():
            for item in value:
                yield from _values(item)
        case None:
            return
        case _:
            yield str(value)
