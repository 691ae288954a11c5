"""Cut a text: its beginning, its end, and what is least like the rest of it.

A text is divided into parts: lines, and of longer lines sentences. The parts have one order, which does not depend on
the room: from the beginning, from the end, and by how few words a part shares with the others, in turn. A cut is a
prefix of this order, so a longer cut has all that a shorter one has.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache
from math import sqrt

from nca.context.tokens import text_tokens

PART_CHARS = 160
"""Longer lines are divided at the end of a sentence, else at a blank."""
HEAD_WEIGHT, TAIL_WEIGHT, UNUSUAL_WEIGHT = 0.5, 0.2, 0.3
"""How the characters that stay are shared out."""
SCANNED_CHARS = 200_000
"""Of a longer text the middle is left out before it is looked at."""
GAP = "[…]"
GAP_CHARS = 3
"""What a gap costs on average."""
TEXTS_REMEMBERED = 2_048
_WORD = re.compile(r"[^\W_]{2,}")
_DIGIT = re.compile(r"\d")
_SENTENCE_END = re.compile(r"[.!?;:。！？]\s")

Span = tuple[int, int]


def excerpt(text: str, chars: int, *, is_bulk: bool = False) -> str:
    """About `chars` characters of a text; all of it where it is no longer.

    is_bulk  nobody wrote it: what is unlike the rest of it comes before its beginning
    """
    if len(text) <= chars:
        return text
    half = SCANNED_CHARS // 2
    scanned = text if len(text) <= SCANNED_CHARS else f"{text[:half]}\n{GAP}\n{text[-half:]}"
    spans, order = _ordered(scanned, is_bulk)
    kept: list[Span] = []
    left = chars
    for place in order:
        begin, end = spans[place]
        if end - begin > left:
            break
        kept.append((begin, end))
        left -= end - begin + GAP_CHARS
    if not kept:
        return f"{scanned[: max(1, chars)].rstrip()} {GAP}"
    return _joined(scanned, sorted(kept))


def chars_for(text: str, tokens: int) -> int:
    """About how many characters of a text have so many tokens; all of them where it has no more."""
    size = text_tokens(text)
    return len(text) if size <= tokens else len(text) * tokens // size


def first_sentences(text: str, chars: int) -> str:
    """The beginning of a text on one line, to the end of a sentence where one is near."""
    flat = " ".join(text[: 4 * chars].split())
    if len(flat) <= chars:
        return flat
    ends = [found.start() for found in _SENTENCE_END.finditer(flat[:chars])]
    end = ends[-1] + 1 if ends and ends[-1] > chars // 2 else chars
    return f"{flat[:end].rstrip()} {GAP}"


def both_ends(text: str, chars: int) -> str:
    """The beginning and the end of a short text, on one line."""
    flat = (
        " ".join(text.split()) if len(text) < 8 * chars else " ".join((text[: 2 * chars] + text[-2 * chars :]).split())
    )
    if len(flat) <= chars:
        return flat
    return f"{flat[: chars * 2 // 3].rstrip()} {GAP} {flat[len(flat) - chars // 3 :].lstrip()}"


@lru_cache(maxsize=TEXTS_REMEMBERED)
def _ordered(text: str, is_bulk: bool) -> tuple[list[Span], list[int]]:
    """The parts of a text, and their places in the order in which they stay."""
    spans = _parts(text)
    head, tail = iter(range(len(spans))), iter(range(len(spans) - 1, -1, -1))
    lanes = [(head, HEAD_WEIGHT), (tail, TAIL_WEIGHT), (iter(_unusual(text, spans)), UNUSUAL_WEIGHT)]
    spent = [1.0 * is_bulk, 2.0 * is_bulk, 0.0]
    order: list[int] = []
    taken: set[int] = set()
    while len(order) < len(spans):
        lane = min(range(len(lanes)), key=spent.__getitem__)
        place = next((one for one in lanes[lane][0] if one not in taken), None)
        if place is None:
            spent[lane] = float("inf")
            continue
        taken.add(place)
        order.append(place)
        spent[lane] += (spans[place][1] - spans[place][0]) / lanes[lane][1]
    return spans, order


def _parts(text: str) -> list[Span]:
    spans: list[Span] = []
    begin = 0
    while begin < len(text):
        end = text.find("\n", begin) + 1 or len(text)
        while end - begin > PART_CHARS:
            cut = _cut_before(text, begin, begin + PART_CHARS)
            spans.append((begin, cut))
            begin = cut
        if text[begin:end].strip():
            spans.append((begin, end))
        begin = end
    return spans


def _cut_before(text: str, begin: int, end: int) -> int:
    """Where a long line is cut: behind a sentence, else behind a blank, else where it must."""
    ends = [found.end() for found in _SENTENCE_END.finditer(text, begin + PART_CHARS // 4, end)]
    return ends[-1] if ends else (text.rfind(" ", begin + PART_CHARS // 2, end) + 1 or end)


def _unusual(text: str, spans: list[Span]) -> list[int]:
    """The places of the parts, those first that share the fewest words with the others; repeated ones only once."""
    words = [frozenset(_WORD.findall(_DIGIT.sub("0", text[begin:end].lower()))) for begin, end in spans]
    shared = Counter(word for one in words for word in one)
    first = {one: place for place, one in reversed(list(enumerate(words))) if one}
    scores = {
        place: sum(1 / shared[word] for word in one) / sqrt(8 + spans[place][1] - spans[place][0])
        for one, place in first.items()
    }
    return sorted(scores, key=lambda place: (-scores[place], place))


def _joined(text: str, kept: list[Span]) -> str:
    pieces: list[str] = []
    behind = 0
    for begin, end in kept:
        gap = text[behind:begin]
        if gap.strip():
            is_line = not pieces or "\n" in gap or pieces[-1].endswith("\n")
            if pieces:
                pieces[-1] = pieces[-1].rstrip()
            pieces.append(f" {GAP}\n" if is_line and pieces else f" {GAP} " if pieces else f"{GAP} ")
        elif "\n" in gap and pieces and not pieces[-1].endswith("\n"):
            pieces.append("\n")
        pieces.append(text[begin:end])
        behind = end
    whole = "".join(pieces).rstrip()
    return f"{whole} {GAP}" if text[behind:].strip() else whole
