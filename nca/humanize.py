"""Text for people: numbers, sizes and times (86k, 1 message, 2 min 05 s), and the characters that cannot be seen.

These are written out, so that texts that differ never look the same; those that no encoding has are replaced. Here and
not in a room, because tools, exports and the terminal must agree on what can be seen.
"""

from __future__ import annotations

import re
import time
import unicodedata
from bisect import bisect_right
from collections.abc import Sequence
from functools import cached_property
from itertools import accumulate, takewhile
from typing import Any

from nca.errors import UsageError

_MILLION = 1_000_000
_MOST_DIGITS = 9


def natural(written: str) -> int | None:
    """The number that somebody wrote in decimal digits; None for other text, and for more than nine digits.

    Read every number from outside with this: int raises ValueError for some thousands of digits.
    """
    return int(written) if written.isdecimal() and len(written) <= _MOST_DIGITS else None


def short_tokens(count: int) -> str:
    """A token count where space is short: 950, 9.9k, 86k, 1.2M."""
    if count < 1_000:
        return str(count)
    if count < 9_950:
        return f"{count / 1_000:.1f}k"
    if count < 999_500:
        return f"{count / 1_000:.0f}k"
    return f"{count / _MILLION:.1f}M"


def short_of(part: int, whole: int) -> str:
    """Two token counts, with more digits where they would look the same: 86k/200k, but 9.96k/10.04k."""
    shown = short_tokens(part), short_tokens(whole)
    unit, sign = (1_000, "k") if shown[1].endswith("k") else (_MILLION, "M")
    digits = 0
    while shown[0] == shown[1] and part != whole:
        digits += 1
        shown = f"{part / unit:.{digits}f}{sign}", f"{whole / unit:.{digits}f}{sign}"
    return "/".join(shown)


def counted(number: int, one: str, many: str = "") -> str:
    """A count with its noun: 1 message, 1,234 messages. Pass `many` for an irregular plural."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def some_of(names: Sequence[str], most: int) -> str:
    """The first of them, and how many others there are: `a, b and 3 more`."""
    more = len(names) - most
    return ", ".join(names[:most]) + (f" and {more:,} more" if more > 0 else "")


class UsualNotice(str):
    """The text of a notice that says only what was loaded (`nca.events.Notice.is_usual`)."""

    __slots__ = ()


def in_one(words: Sequence[str]) -> str:
    """All of them: `a`, `a and b`, `a, b and c`."""
    return " and ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))


def kind_name(value: object) -> str:
    """What a value is, in the words of JSON: an error says it of one that cannot be used."""
    names = {dict: "an object", list: "a list", str: "text", int: "a number", float: "a number", bool: "a boolean"}
    dumped = ", whose .model_dump() is an object" if hasattr(value, "model_dump") else ""
    return "nothing" if value is None else names.get(type(value), f"a {type(value).__name__}{dumped}")


def one_line(text: str, most_chars: int) -> str:
    """A text on one line of at most this many characters."""
    line = " ".join(text.split())
    return line if len(line) <= most_chars else line[: most_chars - 1].rstrip() + "…"


def duration(seconds: float) -> str:
    """A time span: 0.4 s, 12 s, 2 min 05 s."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 60:
        return f"{seconds:.0f} s"
    return f"{int(seconds) // 60} min {int(seconds) % 60:02d} s"


def percent(ratio: float) -> str:
    """A share as a whole percentage. A share above zero is never shown as 0%."""
    return "<1%" if 0 < ratio < 0.005 else f"{ratio:.0%}"


def share(used: float) -> str:
    """A share of the budget that is used: 83%, or 14% over. The budget is less than the window, so it can be passed."""
    return percent(used) if used <= 1 else f"{percent(used - 1)} over"


def used_in_words(used: float) -> str:
    """The same as a statement: 83% used, 14% over the budget."""
    return f"{share(used)} {'used' if used <= 1 else 'the budget'}"


def byte_size(count: int) -> str:
    """A size in decimal units: 512 bytes, 340 kB, 1.2 MB, 398 MB, 2.5 GB."""
    if count < 1_000:
        return f"{count} bytes"
    if count < 999_500:
        return f"{count / 1_000:.0f} kB"
    if count < 9_950_000:
        return f"{count / _MILLION:.1f} MB"
    return f"{count / _MILLION:.0f} MB" if count < 999_500_000 else f"{count / 1e9:.1f} GB"


def local_time(at: float) -> str:
    """A Unix time as local date and time; "unknown time" if it is out of range."""
    try:
        return time.strftime("%Y-%m-%d %H:%M", time.localtime(at))
    except (OverflowError, ValueError, OSError):
        return "unknown time"


HIDING = "\u202a-\u202e\u2066-\u206f\ufff9-\ufffb\U000e0000-\U000e007f"
"""Characters, for a set in a regular expression, that no text needs: bidirectional overrides and isolates show text in
another order than it has (CVE-2021-42574), and so do the deprecated characters after them; interlinear marks and tags
hide instructions for a model from a person."""

WRITTEN_OUT = "It holds characters that cannot be seen or look like others, written out as ⟨U+…⟩."
"""The note for a person about a text that `written_out` changed."""

# Patterns as texts: `re` compiles each when it is first needed, and the prompt needs none of them.
_BLANK = (
    # Characters that Python calls printable and that show nothing: Unicode's Default_Ignorable_Code_Point, if it is
    # a letter or a mark (joiner, fillers, variation selectors), and the empty Braille pattern.
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
_LOOK_ALIKES = (
    # Greek and Cyrillic letters that look like Latin ones in every font.
    "[\u0391\u0392\u0395-\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7\u03bd\u03bf\u0405\u0406\u0408\u0410\u0412\u0415"
    "\u041a\u041c-\u041e\u0420-\u0422\u0425\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0455\u0456\u0458\u04bb\u0501\u051b\u051d]+"
)
_MIXED = f"(?<=[A-Za-z]){_LOOK_ALIKES}|{_LOOK_ALIKES}(?=[A-Za-z])"
"""In a word with Latin letters only a trick uses them."""
_LETTERS = "[\u0370-\u052f\u1f00-\u1fff]+"
_BETWEEN = r"(?:[^\S\n]|[\d.,:;!?'\"«»„“”‘’…/–—-])"
_WORDS = rf"{_LETTERS}(?:{_BETWEEN}{{1,8}}{_LETTERS})*"
"""Greek and Cyrillic words of one line, with the signs of prose, lists and tables between them but none of code."""
_ALIKE = rf"(?:{_LOOK_ALIKES}|\W)+"
_WRITTEN = r"⟨U\+[0-9A-F]{4,6}⟩"
_PHRASE = rf"(?:{_WRITTEN}|[^\W_]|[^\S\n]|[.,:;!?…/–—-])+"
"""Words of any script in a row, as in a sentence; quotes and signs of code end it."""
_LATIN = "[A-Za-z\u00c0-\u024f]+"
_NAME = r"[\w./:\\@=~-]*"
_BEFORE_IN_NAME, _IN_NAME = rf"[A-Za-z]{_NAME}\Z|=\s*\Z", rf"{_NAME}[A-Za-z]|[(\[{{]|\s*="
"""A part of a Latin name or path, or the name of what code calls or sets."""
_LONGEST_NAME = 80
_OPENING = "⟨"
_MOST_MARKS = 30
"""On one letter, as in Unicode's stream-safe text format; more only take time."""
_LONE_SURROGATES = re.compile(r"[\ud800-\udfff]")


def clean_text(text: str) -> str:
    """Replace lone surrogates by U+FFFD; other text stays. Idempotent.

    A lone surrogate cannot be stored, printed or sent: UTF-8 has no encoding for it.
    """
    if text.isascii():
        return text
    return _LONE_SURROGATES.sub("\ufffd", text)


def unambiguous(text: str, kept: str = "\n", *, is_command: bool = False) -> str:
    """`written_out` such that no two texts give the same: a bracket of the text itself is written out."""
    return written_out(text.replace(_OPENING, _escape(_OPENING)), kept, is_command=is_command)


def written_out(text: str, kept: str = "\n", *, is_command: bool = False) -> str:
    """The text with each character that is not plainly visible as ⟨U+202E⟩, except for those `kept`. Idempotent.

    So are marks that a font would merge with the letter before them (é has two spellings), and Greek and Cyrillic
    letters that pass for the Latin ones around them (`_Around`).
    """
    hidden = {ord(char): _escape(char) for char in set(text) if char not in kept and not _is_plain(char)}
    shown = re.sub(_MIXED, lambda found: "".join(map(_escape, found[0])), text.translate(hidden))
    shown = shown if unicodedata.is_normalized("NFC", shown) else _with_marks(shown)
    return re.sub(_WORDS, _Around(shown, is_command=is_command).unmasked, shown)


class _Around:
    """What stands around Greek and Cyrillic words that look like Latin ones as a whole (UTS #39: whole-script
    confusables), such as СОР or Το.

    In prose of their own script they are words, and a disguise elsewhere. What counts is the nearest that tells: a
    name that they are part of, then their phrase, then their line and the next lines with words. These are not asked in
    a command, where a comment would excuse what is run. Only a word with letters that no Latin one has tells of its own
    script.
    """

    def __init__(self, text: str, *, is_command: bool) -> None:
        self._text = text
        self._is_command = is_command

    def unmasked(self, words: re.Match[str]) -> str:
        if not re.fullmatch(_ALIKE, words[0]) or not self._is_disguise(words.start(), words.end()):
            return words[0]
        return "".join(_escape(char) if char.isalpha() else char for char in words[0])

    def _is_disguise(self, start: int, end: int) -> bool:
        before = self._text[max(0, start - _LONGEST_NAME) : start]
        if re.search(_BEFORE_IN_NAME, before) or re.compile(_IN_NAME).match(self._text, end, end + _LONGEST_NAME):
            return True
        ends, phrases = self._phrases
        near = takewhile(lambda one: one.start() < end, phrases[bisect_right(ends, start) :])
        own, latin = _told(" ".join(one[0] for one in near))
        return not own and (bool(latin) or self._is_command or not self._is_beside_own(start))

    @cached_property
    def _phrases(self) -> tuple[list[int], list[re.Match[str]]]:
        """Where each ends, and the phrases."""
        phrases = list(re.finditer(_PHRASE, self._text))
        return [one.end() for one in phrases], phrases

    def _is_beside_own(self, start: int) -> bool:
        ends, beside_own = self._lines
        return beside_own[bisect_right(ends, start)]

    @cached_property
    def _lines(self) -> tuple[list[int], list[bool]]:
        """Where each line ends, and whether it, or the nearest line with words above or below it, has a word of its
        own script."""
        lines = self._text.split("\n")
        told = list(map(_told, lines))
        beside_own = [own > 0 for own, _ in told]
        for places in (range(len(told)), range(len(told) - 1, -1, -1)):
            is_near = False
            for place in places:
                own, latin = told[place]
                beside_own[place] |= is_near
                is_near = own > 0 if own or latin else is_near
        return list(accumulate(len(line) + 1 for line in lines)), beside_own


def _told(text: str) -> tuple[int, int]:
    """How many words can only be Greek or Cyrillic, and how many are Latin."""
    text = re.sub(_WRITTEN, "", text)
    own = sum(not re.fullmatch(_LOOK_ALIKES, word) for word in re.findall(_LETTERS, text))
    return own, len(re.findall(_LATIN, text))


def _is_plain(char: str) -> bool:
    return char.isprintable() and not re.match(_BLANK, char)


def _with_marks(text: str) -> str:
    """The text in Unicode's form NFC, with every character written out that would merge with those before it."""
    done: list[str] = []
    run = ""
    for char in text:
        if len(run) > _MOST_MARKS or unicodedata.normalize("NFC", run + char) != run + char:
            done += [run, _escape(char)]
            run = ""
        elif unicodedata.combining(char):
            run += char
        else:
            done.append(run)
            run = char
    return "".join((*done, run))


def _escape(char: str) -> str:
    return f"⟨U+{ord(char):04X}⟩"


def check_choice(value: Any, choices: Sequence[str], name: str) -> None:
    """Raise UsageError for an argument that is none of these."""
    if value not in choices:
        raise UsageError(f"{name}: {shown_value(value)} is not valid; valid: {', '.join(choices)}.")


def check_kind(value: Any, kind: Any, name: str, wanted: str) -> None:
    """Raise UsageError for an argument that is not of this kind, a class or a union of some. `wanted`: what is."""
    if not isinstance(value, kind):
        raise UsageError(f"{name}: expected {wanted}, found {kind_name(value)}.")


def shown_value(value: Any) -> str:
    return "(missing)" if value is None else repr(value)[:60]
