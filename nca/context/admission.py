"""Limit the size of tool outputs and attached files. The caller keeps the originals."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import floor

from nca.config.schema import AdmissionSettings
from nca.context.tokens import text_tokens
from nca.vocabulary import fitting_end, fitting_start, within

MAX_OUTPUT_BYTES = 51_200
MAX_OUTPUT_LINES = 2_000
"""NeuroLink's MAX_TOOL_OUTPUT_BYTES and MAX_TOOL_OUTPUT_LINES."""
HEAD_RATIO = 0.25
"""A long output keeps a quarter of its size from the beginning and the rest from the end."""
FILE_RATIO = 0.6
WHOLE_BYTES = 102_400
PREVIEW_BYTES = 5_242_880
PREVIEW_CHARS = 2_000
"""NeuroLink's FILE_READ_BUDGET_PERCENT, FILE_FAST_PATH_SIZE, FILE_PREVIEW_MODE_SIZE and FILE_PREVIEW_CHARS."""
TINY_TOKENS = 64
"""A file that is hardly longer than the notice of a cut is not cut, if all such files fit."""

SAVED = "[The whole output is in "
"""The beginning of a result's last line, if that names the file with the whole: recall shows that file's lines."""
PAGE = re.compile(r"\[[^\n]*?: lines (\d{1,9})-(\d{1,9})\b")
"""The beginning of a result of read_file that shows a part of a file."""
FILE_CUT = "\n[File truncated from "
"""The beginning of the notice at the end of an attached file that was cut."""
_PAGE_END = re.compile(r"\[(?:no more fit; )?continue with offset=\d+\]\Z")
_CUT_LINE = "…"
"""At the cut end of a line of which only a part is shown."""
_SENTENCE_END = re.compile(r"[.!?]\s|\n")


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a tool's output when it enters the log; max_tokens None: bytes and lines alone."""

    max_bytes: int = MAX_OUTPUT_BYTES
    max_lines: int = MAX_OUTPUT_LINES
    direction: str = "both"
    max_tokens: int | None = None

    @classmethod
    def of(cls, settings: AdmissionSettings, max_tokens: int | None = None) -> Limits:
        return cls(settings.max_bytes, settings.max_lines, settings.direction, max_tokens)


@dataclass(frozen=True, slots=True)
class LeftOut:
    """The lines that are missing, in whole or in part, between the kept beginning and the kept end; from 1."""

    first_line: int
    last_line: int
    bytes: int

    def seam(self, seq: int | str = 0, *, has_lines: bool = True) -> str:
        """The line that replaces them.

        seq        the message under which recall has the whole text, or messages: 57-60
        has_lines  the lines are those of the whole text, so that recall can be asked for them
        """
        lines = self.last_line - self.first_line + 1
        what = f"{lines:,} lines" if lines > 1 else f"{self.bytes:,} bytes"
        asked = f" lines={self.first_line}-{self.last_line}" if has_lines else ""
        pointer = f"; recall expand={seq}{asked}" if seq else ""
        return f"[… {what} left out{pointer} …]"


@dataclass(frozen=True, slots=True)
class Admitted:
    """The admitted text. `original_bytes` is the size of the whole in UTF-8; `left_out` is the missing middle."""

    text: str
    is_cut: bool
    original_bytes: int
    left_out: LeftOut | None = None


def admit_output(
    text: str,
    *,
    max_bytes: int = MAX_OUTPUT_BYTES,
    max_lines: int = MAX_OUTPUT_LINES,
    max_tokens: int | None = None,
    direction: str = "both",
    original_bytes: int = 0,
    missing_lines: int = 0,
) -> Admitted:
    """A tool's output within its limits, cut on character boundaries, with a notice if something is missing.

    direction       which end stays: "both" (a quarter head, the rest tail), "head" or "tail"
    original_bytes  of the whole, if `text` is only a part: its first and last `max_bytes` at least
    missing_lines   in the middle of `text`, if it is already less than the whole
    """
    size = original_bytes or (len(text) if text.isascii() else len(text.encode("utf-8", "replace")))
    head, tail = _limit_bytes(*_limit_lines(text, max_lines, direction), max_bytes, direction)
    admitted = _joined(text, head, tail, size, missing_lines)
    room = max_tokens or 0
    while max_tokens is not None and room >= 0 and text_tokens(admitted.text) > max_tokens:
        admitted = _joined(text, *_limit_tokens(head, tail, room, direction), size, missing_lines)
        room -= max(1, text_tokens(admitted.text) - max_tokens)
    return admitted


def _joined(text: str, head: str, tail: str, size: int, missing_lines: int) -> Admitted:
    """The kept beginning and end of a text, with the notice for the rest between them."""
    if len(head) + len(tail) == len(text):
        return Admitted(text, False, size)
    head, tail = _in_lines(text, head, tail)
    left_out = None
    if head and tail:
        first = head.count("\n") + 1
        middle = text[len(head) : len(text) - len(tail)]
        last = first + middle.count("\n") + missing_lines - middle.endswith("\n")
        missing_bytes = size - sum(len(part.encode("utf-8", "replace")) for part in (head, tail))
        left_out = LeftOut(first, max(first, last), missing_bytes)
        kept = f"{_shown_head(text, head)}\n{left_out.seam()}\n{_shown_tail(text, tail)}"
    else:
        kept = _shown_head(text, head) if head else _shown_tail(text, tail)
    kept_size = len(kept.encode("utf-8", "replace"))
    return Admitted(f"{kept}\n[Output truncated from {size} bytes to {kept_size} bytes]", True, size, left_out)


def _in_lines(text: str, head: str, tail: str) -> tuple[str, str]:
    """A text's kept beginning and end, each in whole lines if that costs no more than half of it: half a number reads
    like another one."""
    if head and not _ends_line(text, len(head)) and 0 < len(head) // 2 <= (end := head.rfind("\n")):
        head = head[: end + 1]
    if tail and not _ends_line(text, len(text) - len(tail)) and -1 < (start := tail.find("\n")) <= len(tail) // 2:
        tail = tail[start + 1 :]
    return head, tail


def _ends_line(text: str, place: int) -> bool:
    return "\n" in text[max(0, place - 1) : place + 1]


def _shown_head(text: str, head: str) -> str:
    return head.rstrip() + ("" if _ends_line(text, len(head)) else _CUT_LINE)


def _shown_tail(text: str, tail: str) -> str:
    return ("" if _ends_line(text, len(text) - len(tail)) else _CUT_LINE) + tail.lstrip()


def is_whole(text: str, seq: int) -> bool:
    """Whether a result's lines are those that recall shows for it: it was not cut when it came."""
    return SAVED not in text and f"recall expand={seq} lines=" not in text


def without_middle(text: str, max_tokens: int, seq: int | str, *, has_lines: bool = False) -> str:
    """At most `max_tokens` raw tokens: beginning and end, in whole lines if these are short, and the missing part.

    A page of a file keeps as many of its first lines as fit.

    seq        the message under which recall has the whole text, or messages: 57-60
    has_lines  recall has it line by line as it is here
    """
    if text_tokens(text) <= max_tokens:
        return text
    size, most_lines = len(text.encode("utf-8", "replace")), text.count("\n") + 1
    has_lines &= most_lines > 1
    longest = LeftOut(most_lines, 2 * most_lines, size).seam(seq, has_lines=has_lines)
    # Of a page of a file, lines were asked for from its first one on: its end is only the place to continue.
    is_page = has_lines and PAGE.match(text) is not None
    note = _PAGE_END.search(text) if is_page else None
    ending = note[0] if note else ""

    def cut(room: int) -> str:
        if is_page:
            head = fitting_start(text[: len(text) - len(ending)], room)
            if 0 < len(head) // 2 <= (end := head.rfind("\n")):
                head = head[:end]
            return _without(text, head, ending, seq, has_lines=has_lines)
        head, tail = _in_lines(text, fitting_start(text, room // 2), fitting_end(text, room // 2))
        return _without(text, head, tail, seq, has_lines=has_lines)

    return within(max_tokens, max_tokens - text_tokens(longest) - text_tokens(ending), cut)


def _without(text: str, head: str, tail: str, seq: int | str, *, has_lines: bool) -> str:
    """A text's beginning and end, with a placeholder for the rest between them."""
    tail = tail[max(0, len(head) + len(tail) - len(text)) :]
    missing = text[len(head) : len(text) - len(tail)]
    first = text.count("\n", 0, len(text) - len(tail) - len(missing.lstrip("\n"))) + 1
    missing = missing.strip("\n")
    left_out = LeftOut(first, first + missing.count("\n"), len(missing.encode("utf-8", "replace")))
    has_lines &= left_out.last_line > left_out.first_line
    shown = _shown_head(text, head) if head else "", _shown_tail(text, tail) if tail else ""
    return f"\n{left_out.seam(seq, has_lines=has_lines)}\n".join(shown).strip("\n")


def file_token_budget(
    context_window: int, used_tokens: int, reserve_tokens: int, *, file_ratio: float = FILE_RATIO
) -> int:
    """Tokens that attached files may take: a share of the free tokens, never below 0."""
    return max(0, floor((context_window - used_tokens - reserve_tokens) * file_ratio))


def fit_files(files: Sequence[tuple[str, str]], budget_tokens: int, *, sizes: Sequence[int] = ()) -> list[Admitted]:
    """Several files (path, text) within one budget in raw tokens; together, notices included, they never exceed it.

    A file above 5 MiB is a preview of its beginning. Files under 100 KiB and previews come in whole if they
    fit together; the larger ones share the rest in proportion, cut at sentence ends. If even the small ones do not
    fit, all share in proportion. A cut text says so; a file without room has an empty text.

    sizes  of the whole files in bytes, if `files` holds only their beginning
    """
    sizes = sizes or [len(text.encode("utf-8", "replace")) for _, text in files]
    shown = [
        text[:PREVIEW_CHARS] + _notice(size, text[:PREVIEW_CHARS]) if size > PREVIEW_BYTES else text
        for (_, text), size in zip(files, sizes, strict=True)
    ]
    wanted = [text_tokens(text) for text in shown]
    allowed = _shares(wanted, [not WHOLE_BYTES <= size <= PREVIEW_BYTES for size in sizes], budget_tokens)
    fitted = []
    for (_, text), size, whole, want, most in zip(files, sizes, shown, wanted, allowed, strict=True):
        kept = whole if want <= most else _cut_sentences(text, most, size)
        fitted.append(Admitted(kept, kept != text, size))
    return fitted


def _shares(wanted: Sequence[int], comes_first: Sequence[bool], budget_tokens: int) -> list[int]:
    """Tokens for each file: its wish if all fit or it comes first; else a part in proportion to its wish."""
    is_tiny, first = [want <= TINY_TOKENS for want in wanted], 0
    for whole in (comes_first, is_tiny, [False] * len(wanted)):
        first = sum(want for want, is_first in zip(wanted, whole, strict=True) if is_first)
        if first <= budget_tokens:
            break
    rest = sum(wanted) - first
    share = min(1.0, (budget_tokens - first) / max(1, rest))
    return [want if is_first else floor(want * share) for want, is_first in zip(wanted, whole, strict=True)]


def _notice(size: int, kept: str) -> str:
    return f"{FILE_CUT}{size} bytes to {len(kept.encode('utf-8', 'replace'))} bytes]"


def _cut_sentences(text: str, max_tokens: int, size: int) -> str:
    """The beginning with its notice, within `max_tokens`; empty if not even a character fits beside the notice."""
    start = text[:PREVIEW_CHARS] if size > PREVIEW_BYTES else text

    def cut(room: int) -> str:
        kept = fitting_start(start, room)
        ends = [match.end() for match in _SENTENCE_END.finditer(kept, int(len(kept) * 0.9))]
        kept = kept[: ends[-1]] if ends else kept
        return kept + _notice(size, kept) if kept else ""

    return within(max_tokens, max_tokens - text_tokens(_notice(size, text)), cut)


def _limit_lines(text: str, max_lines: int, direction: str) -> tuple[str, str]:
    """The kept beginning and end; all of the text and nothing if it is within the limit."""
    lines = text.splitlines(keepends=True)
    if len(lines) <= max_lines:
        return text, ""
    head, tail = _split(max_lines, direction)
    return "".join(lines[:head]), "".join(lines[len(lines) - tail :])


def _limit_bytes(first: str, last: str, max_bytes: int, direction: str) -> tuple[str, str]:
    """The kept beginning of `first` and end of `last`, or of `first` alone if nothing was cut from it before."""
    raw_first, raw_last = first.encode("utf-8", "replace"), last.encode("utf-8", "replace")
    if len(raw_first) + len(raw_last) <= max_bytes:
        return first, last
    head, tail = _split(max_bytes, direction)
    raw_end = raw_last if last or direction == "head" else raw_first
    # Cutting bytes may split a character at either cut; "ignore" drops only those halves.
    kept_first = raw_first[:head].decode("utf-8", "ignore")
    kept_last = raw_end[max(0, len(raw_end) - tail) :].decode("utf-8", "ignore") if tail else ""
    return kept_first, kept_last


def _limit_tokens(first: str, last: str, tokens: int, direction: str) -> tuple[str, str]:
    """The same within a number of tokens."""
    head, tail = _split(tokens, direction)
    kept_first = fitting_start(first, head)
    end = first[len(kept_first) :] if not last and direction != "head" else last
    return kept_first, fitting_end(end, tail)


def _split(limit: int, direction: str) -> tuple[int, int]:
    head = {"head": limit, "tail": 0}.get(direction, int(limit * HEAD_RATIO))
    return head, limit - head
