"""Who said each part of a text that comes back from an editor."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher

from nca.words import Span, Words, merged, part_of, text_of

_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_WORD = re.compile(r"\s+|\S+")
_MOST_EXACT = 2_000
"""Pieces up to which each is compared with each; in longer texts difflib leaves out the frequent ones."""


def retold(before: Words, text: str) -> Words:
    """The edited text: what was there keeps its source, also a word that was moved; the rest is the person's own.

    nca does not see what the person pastes in their editor, so that counts as typed.
    """
    said: list[Words] = []
    gone: dict[str, Words] = {}
    added: list[int] = []
    for old_lines, lines, is_same in _steps(_pieces(before, _LINE), _LINE.findall(text)):
        if is_same:
            said += old_lines
            continue
        old_words = [word for line in old_lines for word in _pieces(line, _WORD)]
        for old, new, is_kept in _steps(old_words, _WORD.findall("".join(lines))):
            if is_kept:
                said += old
                continue
            for one in old:
                # Where the same word was typed and pasted, it counts as pasted.
                gone[text_of(one)] = one if _has_pasted(one) else gone.get(text_of(one), one)
            added += range(len(said), len(said) + len(new))
            said += ((Span(word, "typed"),) for word in new)
    for number in added:
        word = text_of(said[number])
        said[number] = gone.get(word, said[number]) if word.strip() else said[number]
    return merged(tuple(span for piece in said for span in piece))


def _steps(old: Sequence[Words], new: Sequence[str]) -> Iterator[tuple[Sequence[Words], Sequence[str], bool]]:
    """What of the old became what of the new, in order, and whether it is the same."""
    matcher = SequenceMatcher(None, [text_of(one) for one in old], new, autojunk=len(new) > _MOST_EXACT)
    for what, first, last, new_first, new_last in matcher.get_opcodes():
        yield old[first:last], new[new_first:new_last], what == "equal"


def _pieces(said: Words, pattern: re.Pattern[str]) -> list[Words]:
    return [part_of(said, *match.span()) for match in pattern.finditer(text_of(said))]


def _has_pasted(said: Words) -> bool:
    return any(span.source != "typed" for span in said)
