"""How many tokens a text has, by what it is made of: words, capitals, digits, signs, space and scripts.

This is slower than `nca.context.tokens` by far, so only samples of a request are looked at, where no model has
reported yet. Raw tokens stay the unit that everything is counted in: what is found here is a ratio.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import accumulate
from math import ceil

from nca.context.history import History
from nca.context.tokens import (
    CODE_CHARS_PER_TOKEN,
    MESSAGE_TOKENS,
    PROSE_CHARS_PER_TOKEN,
    RESULT_CHARS_PER_TOKEN,
    message_tokens,
    text_tokens,
)
from nca.context.view import Range, Verbatim
from nca.messages import AttachmentPart, Message, TextPart

FAMILIES = ("gpt", "claude", "other")
"""Kinds of tokenizers: OpenAI's o200k; Claude's, as far as it is published; and the mean of five others (cl100k, those
of Llama 3, Qwen and DeepSeek, and Mistral's tekken), for all models that are neither."""

MOST_SAMPLES, SAMPLE_TOKENS = 192, 40
"""How many places of a request are looked at, and how many raw tokens of the text around each."""

_SIGN = r"[!-/:-@\[-`{-~]"
_SAME = re.compile(rf"({_SIGN})\1{{3,}}")
"""A run of one sign is a token or two, however long."""
_PIECES = (
    (re.compile(r"[A-Z]+(?![a-z])"), (1.69, 1.56, 1.76)),
    (re.compile(r"\d{1,3}"), (1.17, 1.18, 1.56)),
    (re.compile(r" (?=\d)"), (0.93, -0.30, 0.70)),
    (re.compile(rf"{_SIGN}\n"), (-0.90, 0.26, -0.93)),
    (re.compile(r"\n\s*"), (1.97, 1.21, 1.95)),
    (re.compile(r"(?<!\s)[ \t]{2,}"), (1.12, 1.50, 1.18)),
)
"""Capitals; digits; a space before them; a sign that ends a line, which is one token with it; ends of lines with what
indents the next; wide gaps. Beside each its tokens, one number for a family. A single space belongs to what follows.

These numbers and those below are a least-squares fit to the families' tokenizers over code in six languages,
configuration, listings, tables, and prose in thirty languages. The text that they are judged by is no part of that.
"""
_RUNS = (
    (
        re.compile(r"[A-Z]?[a-z]+"),
        ((0, (0.82, 0.94, 0.79)), (4, (0.06, 0.16, 0.11)), (7, (0.41, 0.15, 0.49)), (11, (0.38, 1.59, 0.44))),
    ),
    (re.compile(rf"{_SIGN}+"), ((0, (0.66, 0.80, 0.67)), (2, (0.90, 0.81, 0.88)), (5, (0.91, 0.30, 0.97)))),
)
"""Words, and runs of signs: tokens of each, and of each character behind so many."""
_SCRIPTS = (
    (0x0100, (0.71, 2.21, 1.30)),
    (0x0300, (1.53, 3.28, 1.90)),
    (0x0400, (0.43, 1.39, 0.67)),
    (0x0600, (0.33, 0.66, 0.42)),
    (0x0900, (0.34, 1.21, 0.49)),
    (0x0E00, (0.39, 1.77, 0.89)),
    (0x1100, (0.38, 1.91, 0.61)),
    (0x1E00, (0.39, 1.77, 0.89)),
    (0x1F00, (1.52, 3.28, 1.89)),
    (0x3000, (2.16, 2.06, 2.75)),
    (0x3100, (0.65, 1.03, 0.70)),
    (0xA000, (0.88, 1.14, 0.97)),
    (0xD800, (0.73, 1.38, 0.86)),
    (0xE000, (1.25, 1.25, 1.25)),
    (0x10000, (0.80, 1.09, 0.88)),
)
"""Tokens of a character that is no ASCII, by the script that ends before each of these."""
_ENDS = tuple(end for end, _ in _SCRIPTS)


def close_tokens(text: str, family: str) -> float:
    """Tokens of a text, as the tokenizers of a family count."""
    column = FAMILIES.index(family)
    text = _SAME.sub(r"\1", text)
    total = 0.0 if text.isascii() else _wide_tokens(text, column)
    total += sum(each[column] * len(pattern.findall(text)) for pattern, each in _PIECES)
    for pattern, steps in _RUNS:
        lengths = Counter(map(len, pattern.findall(text)))
        ends = [first for first, _ in steps[2:]] + [len(text)]
        total += steps[0][1][column] * lengths.total()
        for (first, each), last in zip(steps[1:], ends, strict=True):
            behind = sum(n * (min(length, last) - first) for length, n in lengths.items() if length > first)
            total += each[column] * behind
    return total


def _wide_tokens(text: str, column: int) -> float:
    """Tokens of the characters that are no ASCII. Those of a script share the high byte of their code units."""
    pages = Counter(text.encode("utf-16-le", "surrogatepass")[1::2])
    pages[0] -= len(text.encode("ascii", "ignore"))
    return sum(_SCRIPTS[bisect_right(_ENDS, page << 8)][1][column] * n for page, n in pages.items())


def density(history: History, family: str, beside: Iterable[str] = ()) -> float:
    """Tokens per raw token of the next request.

    Places are spread evenly over its raw tokens, so each counts the same, however long its message is.
    beside: texts that go along with every request
    """
    stretches = [*(Message("system", text) for text in beside if text), *_shown(history)]
    ends = list(accumulate(_raw(history, stretch) for stretch in stretches))
    total = ends[-1] if ends else 0
    count = min(MOST_SAMPLES, ceil(total / SAMPLE_TOKENS))
    samples, framing, raw = [], 0, 0.0
    for number in range(count):
        place = total * (2 * number + 1) // (2 * count)
        index = bisect_right(ends, place)
        stretch, place = stretches[index], place - (ends[index - 1] if index else 0)
        if not isinstance(stretch, Message):
            stretch, place = _message_at(history, stretch, place)
        sample, tokens = _sample(stretch, place)
        framing += 0 if sample else SAMPLE_TOKENS
        raw += tokens
        samples.append(sample)
    # Nothing is counted of what stands between two samples, and no word goes across.
    return (framing + close_tokens("\0".join(samples), family)) / raw if raw else 1.0


def _shown(history: History) -> Iterator[Message | Range]:
    """What the view shows: runs of messages, first to last, and what stands for others."""
    for item in history.view.items:
        shown = (item.first, item.last) if isinstance(item, Verbatim) else history.shown(item)
        if shown is not None:
            yield shown
    if history.view.tail <= history.head:
        yield history.view.tail, history.head


def _raw(history: History, stretch: Message | Range) -> int:
    return message_tokens(stretch) if isinstance(stretch, Message) else history.run_tokens(*stretch)


def _message_at(history: History, run: Range, place: int) -> tuple[Message, int]:
    """The message of a run at so many raw tokens of it, and at how many of the message."""
    first, last = run
    seq = first + bisect_right(range(first, last), place, key=lambda seq: history.run_tokens(first, seq))
    return history.message(seq), place - (history.run_tokens(first, seq - 1) if seq > first else 0)


def _sample(message: Message, place: int) -> tuple[str, float]:
    """Some text around so many raw tokens of a message, and its raw tokens; "" where framing or an image stands.

    A text that is shorter than a sample is repeated, because it was as likely to be found as it is long.
    """
    place -= MESSAGE_TOKENS
    for text, chars_per_token in _texts(message):
        tokens = text_tokens(text, chars_per_token)
        if 0 <= place < tokens:
            middle, half = len(text) * place // tokens, int(SAMPLE_TOKENS * chars_per_token / 2)
            sample = text[max(0, middle - half) : middle + half]
            sample *= 2 * half // len(sample)
            return sample, text_tokens(sample, chars_per_token)
        place -= tokens
    return "", SAMPLE_TOKENS


def _texts(message: Message) -> Iterator[tuple[str, float]]:
    """The texts of a message in the order in which they are counted, each with its characters per token."""
    of_content = RESULT_CHARS_PER_TOKEN if message.role == "tool" else PROSE_CHARS_PER_TOKEN
    if isinstance(message.content, str):
        yield message.content, of_content
    for part in message.content if isinstance(message.content, tuple) else ():
        if isinstance(part, TextPart):
            yield part.text, of_content
        elif isinstance(part, AttachmentPart):
            yield part.text, RESULT_CHARS_PER_TOKEN
    for call in message.tool_calls:
        yield call.arguments, CODE_CHARS_PER_TOKEN
