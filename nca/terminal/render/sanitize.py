"""Make untrusted text safe to print: no control characters or escape sequences, nothing that reorders or hides text.

All text from a model, a tool, a file, a provider or stored data passes `to_terminal` before it reaches the terminal.
Rich and prompt_toolkit do not sanitize: a raw ESC in a text may set the clipboard, the title or the next keyboard
input.
"""

from __future__ import annotations

import json
import re

from nca.humanize import HIDING, clean_text

MAX_LINE_CHARS = 8_000
"""A longer unfinished line is returned before it ends."""

# Sequences of ECMA-48, in their 7-bit and 8-bit forms. A string sequence (OSC, DCS, APC, PM, SOS) without terminator
# ends with its line, so that it cannot hide the rest of a text.
_STRING = r"(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])[^\x07\x18\x1a\x1b\x9c\n\r]*(?:\x07|\x1b\\|[\x18\x1a\x9c])?"
_CSI = r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"
_ESCAPE = r"\x1b(?:[ -/]+[0-~]?|[0-~])?"
_CONTROL = "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]"
# Joiners and marks that languages and emoji need stay.
# As texts, which `re` compiles when they are first needed: the prompt needs neither.
_FORBIDDEN = "|".join((_STRING, _CSI, _ESCAPE, _CONTROL, f"[{HIDING}]"))
_SUSPECT = re.compile(f"[\x00-\x08\x0b-\x1f\x7f-\x9f{HIDING}]")
_CARRIAGE_RETURN = re.compile(r"\r\n?")
_SPACES = re.compile(r"\s+")

# A sequence at the end of a chunk that the next chunk may continue.
_OPEN = (
    r"((?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f]))[^\x07\x18\x1a\x1b\x9c\n\r]*\Z"
    r"|((?:\x1b\[|\x9b)[0-?]*[ -/]?)[ -/]*\Z"
    r"|(\x1b[ -/]?)[ -/]*\Z"
)


def to_terminal(text: str) -> str:
    """Untrusted text made safe to print. Idempotent; safe text is returned unchanged.

    Newline and tab stay, CR and CRLF become a newline (a bare CR would let a text overwrite its own line), lone
    surrogates become U+FFFD. Works on `str`, never on bytes, where a continuation byte could pass for a C1 control.
    """
    text = clean_text(text)
    if _SUSPECT.search(text) is None:
        return text
    return _CARRIAGE_RETURN.sub("\n", re.sub(_FORBIDDEN, "", text))


def one_line(text: str, limit: int = 0) -> str:
    """Safe text on one line with whitespace collapsed, cut to `limit` characters with an ellipsis (0: no limit)."""
    folded = _SPACES.sub(" ", to_terminal(text)).strip()
    return folded if limit <= 0 or len(folded) <= limit else folded[: max(limit - 1, 0)] + "…"


def json_to_terminal(data: bytes) -> bytes:
    """JSON made safe to print: forbidden characters become JSON escapes, which mean the same."""
    text = data.decode("utf-8", "replace")
    if _SUSPECT.search(text) is None:
        return data
    return _SUSPECT.sub(lambda found: json.dumps(found[0])[1:-1], text).encode()


class StreamSanitizer:
    """`to_terminal` for streaming text, including sequences that are split between chunks.

    All pieces of `feed` and `finish` joined equal `to_terminal` of the whole text.
    """

    def __init__(self) -> None:
        self._held = ""
        self._return = ""

    def feed(self, chunk: str) -> str:
        """The safe text so far. An unfinished sequence is held back and its content dropped."""
        text = clean_text(self._held + chunk)
        start, self._held = _open_tail(text)
        stripped = self._return + re.sub(_FORBIDDEN, "", text[:start])
        self._return = "\r" if stripped.endswith("\r") else ""
        return _CARRIAGE_RETURN.sub("\n", stripped.removesuffix("\r"))

    def finish(self) -> str:
        """The held-back part, at the end of the text."""
        held, self._held, self._return = self._return + self._held, "", ""
        return to_terminal(held)


class LineSanitizer:
    """Safe whole lines of streaming text. A line longer than MAX_LINE_CHARS is returned in pieces."""

    def __init__(self) -> None:
        self._sanitizer = StreamSanitizer()
        self.partial = ""
        """The unfinished line."""

    def feed(self, chunk: str) -> list[str]:
        """The finished lines, without newlines."""
        *lines, self.partial = (self.partial + self._sanitizer.feed(chunk)).split("\n")
        if len(self.partial) > MAX_LINE_CHARS:
            lines, self.partial = [*lines, self.partial], ""
        return lines

    def finish(self) -> str:
        """The rest, at the end of the text."""
        rest, self.partial = self.partial + self._sanitizer.finish(), ""
        return rest


def _open_tail(text: str) -> tuple[int, str]:
    """The start of an unfinished sequence, and the shortest text equivalent to it."""
    if _SUSPECT.search(text) is None:
        return len(text), ""
    for found in re.finditer(_FORBIDDEN, text):
        if found.end() == len(text) and (tail := re.compile(_OPEN).match(text, found.start())):
            return found.start(), tail[1] or tail[2] or tail[3]
    return len(text), ""
