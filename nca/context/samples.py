"""How many tokens another vocabulary makes of a request's text, from samples of it."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate

from nca.context.history import History
from nca.context.view import Verbatim
from nca.messages import AttachmentPart, Message, TextPart
from nca.vocabulary import Name, count, count_in

MOST_SAMPLES, SAMPLE_CHARS = 96, 800
"""Places of a request that are looked at, and the characters around each: some 50 ms with the slowest tokenizer."""


def own_per_raw(history: History, vocabulary: Name, beside: Iterable[str] = ()) -> float:
    """Tokens of a vocabulary for each token of o200k, over the next request.

    Places are spread evenly over its characters, so each counts the same, however long its message is.
    beside: texts that go along with every request
    """
    samples = _samples([*filter(None, beside), *_texts_shown(history)])
    raw = sum(map(count, samples))
    return count_in(vocabulary, samples) / raw if raw else 1.0


def _samples(texts: Sequence[str]) -> list[str]:
    ends = list(accumulate(map(len, texts)))
    total = ends[-1] if ends else 0
    if total <= MOST_SAMPLES * SAMPLE_CHARS:
        return list(texts)
    samples = []
    for number in range(MOST_SAMPLES):
        place = total * (2 * number + 1) // (2 * MOST_SAMPLES)
        index = bisect_right(ends, place)
        start = max(0, place - (ends[index] - len(texts[index])) - SAMPLE_CHARS // 2)
        samples.append(texts[index][start : start + SAMPLE_CHARS])
    return samples


def _texts_shown(history: History) -> Iterator[str]:
    for item in (*history.view.items, Verbatim(history.view.tail, history.head)):
        if isinstance(item, Verbatim):
            for entry in history.entries[item.first - 1 : item.last]:
                yield from _texts(entry.message)
        elif (shown := history.shown(item)) is not None:
            yield from _texts(shown)


def _texts(message: Message) -> Iterator[str]:
    if isinstance(message.content, str):
        yield message.content
    for part in message.content if isinstance(message.content, tuple) else ():
        if isinstance(part, TextPart | AttachmentPart):
            yield part.text
    for call in message.tool_calls:
        yield call.arguments
