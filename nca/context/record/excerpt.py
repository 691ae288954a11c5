"""Cut a text: its beginning, its end, and the parts least like the rest.

A text is divided into lines, and long lines into sentences. The order of these parts does not depend on the room: by
turns one from the beginning, one from the end, and the one that shares fewest words with the others. A cut is a prefix
of this order; its last part may be cut. So a longer cut has all that a shorter one has.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache, partial
from math import fsum, inf, sqrt
from typing import NamedTuple

from nca.context.record.script import PAUSES, STOPS, UNSPACED_STOPS, is_inside, words_in
from nca.context.tokens import text_tokens


class Style(NamedTuple):
    """The way to cut a kind of text.

    part_chars  longer lines are divided at the end of a sentence, else at a blank
    behind      characters that beginning, end and unusual parts have so far: the least is next
    has_lists   of a list or a table the beginning of each item comes first
    colon_ends  a part may end behind a colon as at the end of a sentence
    """

    part_chars: int
    behind: tuple[float, float, float] = (0, 0, 0)
    has_lists: bool = False
    colon_ends: bool = True


WORDS = Style(240, (0, 50, 50), has_lists=True)
"""For a person's text: few and whole sentences, and more of the beginning than a greeting."""
TALK = Style(160, (0, 400, 400), has_lists=True, colon_ends=False)
"""For a model's text: the beginning says most. The part before a colon says little without the part after it."""
RESULT = Style(80)
"""For a tool's result: the end says as much."""
PASTE = Style(160, (1, 2, 0))
"""For a text that nobody wrote: the parts unlike the rest say most."""
WEIGHTS = (0.5, 0.2, 0.3)
"""How the characters that stay are shared out to beginning, end and unusual parts."""
FEWEST_ITEMS, ITEM_CHARS = 3, 80
WHOLE_RATIO = 2
"""A line or a sentence that is no more than this times as long as a part is not divided: what it says is often at its
end."""
ROW = "|"
"""A line that begins so is a row of a table. It stays whole: without its last cells it would say something else. The
table's head stays with the first row: alone it says nothing."""
SCANNED_CHARS = 200_000
"""Of a longer text the ends and the parts that look unusual, so many characters together, are compared closely. All
others come after them."""
GAP, GAP_CHARS = "[…]", 4
LEAST_SHARE, LONGEST_WORD_CHARS = 0.5, 40
"""Less than half of a part says nothing; a longer word is cut."""
DENSE_CHARS = 2
"""A script with fewer characters for each token says as much in half of them: its parts are half as long."""
TEXTS_REMEMBERED = 2_048
_SENTENCE_END = re.compile(rf"(?:[{STOPS}{PAUSES}]\s+|[{UNSPACED_STOPS}]\s*)(?=(\S))")
_DIGITS = str.maketrans("123456789", "0" * 9)
_RULE = "|:- \t"
"""The characters of the line below a table's head."""
_ITEM = re.compile(r"(?m)^[^\S\n]*(?:[-*•・|①-⑳]|\d{1,2}[.)．、])[^\S\n]*\S")

Span = tuple[int, int]


def excerpt(text: str, tokens: int, style: Style = RESULT) -> str:
    """About `tokens` tokens of a text; all of it if it has no more."""
    size = text_tokens(text)
    if size <= tokens:
        return text
    left = len(text) * tokens // size
    if len(text) < DENSE_CHARS * size:
        style = style._replace(part_chars=style.part_chars // 2)
    spans, order = _ordered(text, style)
    kept: dict[int, Span] = {}
    for place in order:
        begin, end = spans[place]
        left -= GAP_CHARS * (place - 1 not in kept and place + 1 not in kept)
        if end - begin > left:
            cut = _word_end(text, begin, begin + max(0, left))
            is_said = cut - begin >= LEAST_SHARE * (end - begin) and not text.startswith(ROW, begin)
            if is_said or not kept:
                kept[place] = begin, cut
            break
        kept[place] = begin, end
        left -= end - begin
    return _joined(text, sorted(kept.values()))


def is_list(text: str) -> bool:
    return len(_ITEM.findall(text)) >= FEWEST_ITEMS


def on_one_line(text: str) -> str:
    return " | ".join(line for line in map(str.strip, text.splitlines()) if line)


def both_ends(text: str, chars: int) -> str:
    """The beginning and the end of a short text, on one line."""
    flat = " ".join((text if len(text) < 8 * chars else f"{text[: 2 * chars]} {GAP} {text[-2 * chars :]}").split())
    if len(flat) <= chars:
        return flat
    end, begin = _word_end(flat, 0, chars * 2 // 3), _word_begin(flat, len(flat) - chars // 3)
    return f"{flat[:end].rstrip()} {GAP} {flat[begin:].lstrip()}"


def whole_parts(parts: Sequence[str], chars: int) -> str:
    """Parts of a short text, on one line: the first with its ends, and each other one that has room as it is."""
    if not parts:
        return ""
    said = [both_ends(parts[0], chars)]
    left = chars - len(said[0])
    for part in (" ".join(one.split()) for one in parts[1:]):
        if len(part) < left:
            said.append(part)
            left -= len(part) + 1
        elif said[-1] != GAP:
            said.append(GAP)
    return " ".join(said)


def _word_end(text: str, begin: int, most: int) -> int:
    """The end of a part that has no room beyond `most`: no word or number is cut, except for one that is very long."""
    end = most
    while begin < end and is_inside(text, end):
        end -= 1
    return end if begin < end and most - end <= LONGEST_WORD_CHARS else most


def _word_begin(text: str, least: int) -> int:
    """The same for a part that has no room before `least`."""
    begin = least
    while begin < len(text) and is_inside(text, begin):
        begin += 1
    return begin if begin < len(text) and begin - least <= LONGEST_WORD_CHARS else least


@lru_cache(maxsize=TEXTS_REMEMBERED)
def _ordered(text: str, style: Style) -> tuple[list[Span], list[int]]:
    """The parts of a text, and their places in the order in which they stay."""
    by_item = style.has_lists and is_list(text)
    spans = list(_parts(text, style, ITEM_CHARS if by_item else style.part_chars))
    places = range(len(spans)) if len(text) <= SCANNED_CHARS else _scanned(text, spans)
    others = sorted(set(range(len(spans))).difference(places))
    inwards = [place for pair in zip(others, reversed(others), strict=True) for place in pair][: len(others)]
    if not by_item:
        return spans, [*_in_turn(text, spans, places, style.behind), *inwards]
    first = [place for place in places if not place or "\n" in text[spans[place - 1][1] - 1 : spans[place][0]]]
    rest = sorted(set(places).difference(first))
    ordered = [*_in_turn(text, spans, first, style.behind), *_in_turn(text, spans, rest, (0, 0, 0))]
    return spans, [*ordered, *inwards]


def _scanned(text: str, spans: list[Span]) -> list[int]:
    """Of a long text the parts at its ends, and by a rough look those that are least like the rest."""
    places = range(len(spans))
    unusual = _unusual(text, spans, places, lambda part: part.translate(_DIGITS).split())
    taken = set[int]()
    for order, share in ((places, 0.25), (places[::-1], 0.5), (unusual, 1)):
        left = share * SCANNED_CHARS - sum(spans[place][1] - spans[place][0] for place in taken)
        for place in order:
            left -= spans[place][1] - spans[place][0] if place not in taken else 0
            if left < 0:
                break
            taken.add(place)
    return sorted(taken)


def _in_turn(text: str, spans: list[Span], places: Sequence[int], behind: Sequence[float]) -> list[int]:
    """These parts from the beginning, from the end, and by how unusual they are."""
    lanes = [iter(places), iter(places[::-1]), iter(_unusual(text, spans, places, partial(words_in, letters=2)))]
    spent = list(behind)
    order: dict[int, None] = {}
    while len(order) < len(places):
        lane = min(range(len(lanes)), key=spent.__getitem__)
        place = next((one for one in lanes[lane] if one not in order), None)
        if place is None:
            spent[lane] = inf
            continue
        order[place] = None
        spent[lane] += (spans[place][1] - spans[place][0]) / WEIGHTS[lane] if not _is_note(text, spans[place]) else 0
    return list(order)


def _is_note(text: str, span: Span) -> bool:
    """Whether a text ends here with a note on it, such as `[exit code 1]`: what the end says is before it."""
    last = text[slice(*span)].strip()
    return span[1] == len(text) and last.startswith("[") and last.endswith("]")


def _parts(text: str, style: Style, first: int) -> Iterator[Span]:
    """Lines; longer ones in parts, the part that begins a line of at most `first` characters.

    A line without a letter or a digit says nothing: it goes with the one behind it.
    """
    begin, most = 0, style.part_chars
    while begin < len(text):
        end = _line_end(text, begin)
        says_nothing = _says_nothing(text[begin:end])
        while end < len(text) and says_nothing:
            line, end = end, _line_end(text, end)
            says_nothing = not any(map(str.isalnum, text[line:end]))
        is_row = text.startswith(ROW, begin)
        size = most if is_row else first
        if is_row and _is_rule(text[end : (below := _line_end(text, end))]):
            end = size = _line_end(text, below)  # the first row
        # An item begins with its first sentence.
        while end - begin > (size if size < most else WHOLE_RATIO * size):
            cut = _cut(text, (begin, end), size, style)
            yield begin, cut
            begin, size = cut, most
        if text[begin:end].strip():
            yield begin, end
        begin = end


def _says_nothing(line: str) -> bool:
    return line.strip() not in ("", GAP) and not any(map(str.isalnum, line))


def _is_rule(line: str) -> bool:
    return "-" in line and line.strip(_RULE) == "\n"


def _line_end(text: str, begin: int) -> int:
    return text.find("\n", begin) + 1 or len(text)


def _cut(text: str, line: Span, size: int, style: Style) -> int:
    """The end of a line's first part: after a sentence, but not in the part's first third, else after a blank."""
    begin, end = line
    limit, most = begin + size, begin + WHOLE_RATIO * size
    found = _SENTENCE_END.finditer(text, begin + size // 3, min(most, end) + 1)
    ends = [one.end() for one in found if one.end() <= most and not _goes_on(text, one, style)]
    ends += [end] if end <= most else []
    if ends:
        return max((one for one in ends if one <= limit), default=ends[0])
    return _word_end(text, begin, text.rfind(" ", begin + size // 2, limit) + 1 or limit)


def _goes_on(text: str, end: re.Match[str], style: Style) -> bool:
    """Whether a sentence continues after this sign: a dot may end an abbreviation or an ordinal."""
    sign, first = end[0][0], end[1]
    if sign == ".":
        return first.isdigit() or first.islower() or text[end.start() - 1].isdigit()
    return sign == ":" and not style.colon_ends


def _unusual(
    text: str, spans: list[Span], places: Sequence[int], words_of: Callable[[str], Iterable[str]]
) -> list[int]:
    """The places of the parts, those first that share the fewest words with the others; repeated ones only once."""
    words = {place: frozenset(words_of(text[slice(*spans[place])])) for place in places}
    shared = Counter(word for one in words.values() for word in one)
    first = {one: place for place, one in reversed(words.items()) if one}
    scores = {
        # A plain sum would depend on the order of the set, which is another in each process.
        place: fsum(1 / shared[word] for word in one) / sqrt(8 + spans[place][1] - spans[place][0])
        for one, place in first.items()
    }
    return sorted(scores, key=lambda place: (-scores[place], place))


def _joined(text: str, kept: list[Span]) -> str:
    """The parts, with a mark for each gap between them."""
    made = ""
    behind = 0
    for begin, end in kept:
        gap = text[behind:begin]
        if gap.strip():
            made = _with_gap(made, gap) + ("\n" if gap.endswith("\n") else " ")
        elif "\n" in gap and made and not made.endswith("\n"):
            made += "\n"
        made += text[begin:end]
        behind = end
    return _with_gap(made, text[behind:]) if text[behind:].strip() else made.rstrip()


def _with_gap(made: str, gap: str) -> str:
    """With the mark of a gap: behind a whole line it has a line of its own."""
    is_line = made.endswith("\n") or gap.lstrip(" ").startswith("\n")
    return f"{made.rstrip()}{chr(10) if is_line else ' '}{GAP}" if made else GAP
