"""Write out the characters that a person cannot see, so that texts that differ never look the same.

Here and not in a room, because tools, exports and the terminal must agree on what can be seen.
"""

from __future__ import annotations

import re
import unicodedata

HIDING = "\u202a-\u202e\u2066-\u206f\ufff9-\ufffb\U000e0000-\U000e007f"
"""Characters, for a set in a regular expression, that no text needs: bidirectional overrides and isolates show text in
another order than it has (CVE-2021-42574), and so do the deprecated characters after them; interlinear marks and tags
hide instructions for a model from a person."""

WRITTEN_OUT = "It holds characters that cannot be seen, written out as ⟨U+…⟩."
"""What a person is told about a text that `written_out` changed."""

_BLANK = re.compile(
    # Characters that Python calls printable and that show nothing: Unicode's Default_Ignorable_Code_Point, where it is
    # a letter or a mark (joiner, fillers, variation selectors), and the empty Braille pattern.
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
_OPENING = "⟨"
_MOST_MARKS = 30
"""On one letter, as in Unicode's stream-safe text format; more only take time."""


def unambiguous(text: str, kept: str = "\n") -> str:
    """`written_out` such that no two texts give the same: a bracket of the text itself is written out as well."""
    return written_out(text.replace(_OPENING, _escape(_OPENING)), kept)


def written_out(text: str, kept: str = "\n") -> str:
    """The text with each character that is not plainly visible as ⟨U+202E⟩, but for those `kept`. Idempotent.

    Marks that a font would merge with the letter before them are written out too: é has two spellings.
    """
    hidden = {ord(char): _escape(char) for char in set(text) if char not in kept and not _is_plain(char)}
    shown = text.translate(hidden)
    return shown if unicodedata.is_normalized("NFC", shown) else _with_marks(shown)


def _is_plain(char: str) -> bool:
    return char.isprintable() and not _BLANK.match(char)


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
