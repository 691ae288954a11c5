"""The newest messages as they are: steps back from the newest, whole or with long contents cut."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from nca.context.history import History
from nca.context.record.answers import shortened
from nca.context.record.excerpt import excerpt
from nca.context.record.piece import Piece, by_age
from nca.context.rules.cut_points import blocks
from nca.context.rules.regular import regular_spans
from nca.context.tokens import call_tokens, content_tokens, text_tokens
from nca.context.view import Range, Stub, how_to_recall
from nca.messages import Message
from nca.wire import content_text

LEVELS = tuple(64 << power for power in range(14))
"""How much of each content is shown, in tokens."""
AGE_POWER = 1.0
LEAST_RESULT_TOKENS = 32
"""What is left of a result in any case: less says nothing."""
LEAST_WORDS_TOKENS = 256
"""A message of the person's or the model's that is no longer than this is not cut."""
CUT = "shorten"
"""The stage that a cut content names."""
SMALLEST_CUT_CHARS, CUT_ROUNDS, CUT_FULL = 16, 5, 0.97
SEAM_TOKENS = 20
"""What says that something is cut, and how to get it."""
WINDOW = 64
"""Messages that are divided into steps at once."""


class Step(NamedTuple):
    """The smallest run of messages that may stand by itself. `sizes` are raw tokens."""

    first: int
    last: int
    sizes: tuple[int, ...]

    @property
    def seqs(self) -> range:
        return range(self.first, self.last + 1)

    @property
    def raw(self) -> int:
        return sum(self.sizes)


def steps_back(history: History, spans: Sequence[Range]) -> Iterator[Step]:
    """The steps of these stretches, newest first, read as far as somebody asks."""
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
                yield step_of(history, begin + start, begin + stop)
            end = begin - 1


def step_of(history: History, first: int, last: int) -> Step:
    return Step(first, last, tuple(history.run_tokens(seq, seq) for seq in range(first, last + 1)))


def least(message: Message) -> int:
    """Tokens that a message keeps at least."""
    return LEAST_RESULT_TOKENS if message.role == "tool" else LEAST_WORDS_TOKENS


def shown_raw(message: Message, size: int, level: int) -> int:
    """Raw tokens of a message of `size` of which `level` tokens are shown; its calls are shown whole."""
    level = max(level, least(message)) + SEAM_TOKENS
    if not message.content or size <= level:
        return size
    return min(size, level + sum(map(call_tokens, message.tool_calls)))


def cut_content(message: Message, seq: int, size: int, level: int) -> Stub | None:
    """A message of which `level` tokens of its content are shown; None where all of it is."""
    if shown_raw(message, size, level) >= size:
        return None
    text = content_text(message.content)
    content, most = content_tokens(message.content), max(level, least(message))
    note = f"[… cut from {text.count(chr(10)) + 1:,} lines; {how_to_recall([(seq, seq)])} …]"
    limit, full = most + SEAM_TOKENS, max(1, len(text) * most // max(1, content))
    chars = full
    best = note
    for _ in range(CUT_ROUNDS):
        kept = shortened(text, most * chars // full) if message.role == "assistant" else excerpt(text, chars)
        body = f"{kept}\n{note}"
        shown = text_tokens(body)
        if shown <= limit:
            best = max(best, body, key=len)
        if chars < SMALLEST_CUT_CHARS or CUT_FULL * limit <= shown <= limit:
            break
        chars = int(chars * limit / shown * (1 if shown <= limit else CUT_FULL))
    return Stub(seq, best, CUT)


def older(steps: Iterator[Step]) -> Iterator[Piece]:
    """Each step with more and more of its contents."""

    def form(step: Step, level: int, before: int) -> Piece | None:
        if before and max(step.sizes) <= before + SEAM_TOKENS:
            return None
        return Piece(("step", step.first), step.last, "", 0, step.seqs, level)

    return by_age(steps, LEVELS, form, AGE_POWER)
