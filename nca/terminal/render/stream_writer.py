"""Write to a terminal or pipe that may be closed, full, limited to an old encoding, or rewrap what it shows."""

from __future__ import annotations

import codecs
import contextlib
import errno
import io
import os
import select
import sys
from collections.abc import Iterable, Mapping
from typing import TextIO

from nca.errors import system_reason

ERROR_HANDLER = "nca.ascii_fallback"
"""For `errors=` of a stream or of str.encode."""

_SYMBOLS = dict(
    zip(
        "›‹•●○▼·–—−‘’“”→←↑↓×✓✗⏎↵▏▌█▓░⟨⟩²⇥␠␍↪↩",
        "><**ov----''\"\"><^vx+x||||#=.<>2>_$><",
        strict=True,
    )
) | {"…": "..."}


def replace_unencodable(*streams: TextIO | None) -> None:
    """Make these streams write symbols they cannot encode in ASCII. Otherwise they would raise or write `?`.

    A terminal of somebody who asks for the locale C gets ASCII, though Python takes that locale for UTF-8 (PEP 540).
    """
    for stream in streams:
        if not isinstance(stream, io.TextIOWrapper):
            continue
        with contextlib.suppress(OSError, ValueError):
            if not is_utf8(stream.encoding):
                stream.reconfigure(errors=ERROR_HANDLER)
            elif sys.flags.utf8_mode and stream.isatty() and asks_for_ascii(os.environ):
                stream.reconfigure(encoding="ascii", errors=ERROR_HANDLER)


def asks_for_ascii(environment: Mapping[str, str]) -> bool:
    """Whether a variable names the locale C, and none says the encoding. Without any, nobody has asked for it."""
    if {"PYTHONUTF8", "PYTHONIOENCODING"} & environment.keys():
        return False
    return any(environment.get(name) in ("C", "POSIX") for name in ("LC_ALL", "LC_CTYPE", "LANG"))


def encodable(text: str, encoding: str) -> str:
    """The text with the symbols that `encoding` lacks in ASCII."""
    return text.encode(encoding, ERROR_HANDLER).decode(encoding, "replace")


def is_utf8(encoding: str | None) -> bool:
    return (encoding or "").lower().replace("_", "-") in ("utf-8", "utf8")


def _handle(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(map(_ascii, error.object[error.start : error.end])), error.end


def _ascii(character: str) -> str:
    if known := _SYMBOLS.get(character):
        return known
    match ord(character):
        case 0x2500 | 0x2501 | 0x2550:
            return "-"
        case 0x2502 | 0x2503 | 0x250A | 0x2551:
            return "|"
        case code if 0x2500 <= code <= 0x257F:  # corners and crossings
            return "+"
        case code if 0x2800 <= code <= 0x28FF:  # a spinner of dots
            return "*"
        case _:
            return "?"


codecs.register_error(ERROR_HANDLER, _handle)


def rewraps_lines(environment: Mapping[str, str] = os.environ) -> bool:
    """Whether the terminal rewraps lines when it gets narrower: all but xterm, GNU screen and the Linux console."""
    return not ("XTERM_VERSION" in environment or "STY" in environment or environment.get("TERM") == "linux")


def rewrapped(cells: Iterable[int], columns: int) -> int:
    """The rows of lines with so many cells each, in a window that got narrower."""
    return sum(max(1, -(-count // columns)) for count in cells)


RESIZE_SECONDS = 0.3
"""What is redrawn waits so long after a change of the window's size. Each drawing of a new width would be rewrapped at
the next one, and a terminal such as tmux moves rows up into the scrollback for that, where nothing can erase them."""
ERASE_DOWN = "\x1b[K\x1b[C\x1b[J\x1b[D"
"""Erases all from the first cell of a row on. tmux moves what is erased from the first cell of the screen into the
scrollback, so the row goes first, and the rest from its second cell on."""
BROKEN_PIPE_EXIT_CODE = 141
"""The shell's exit code for a program that SIGPIPE ended."""
WRITE_FAILED_EXIT_CODE = 1
_CLOSED_TERMINAL = frozenset({errno.EIO, errno.ENXIO})


class StreamWriter:
    """Writes text at once. After a failed write it is silent, and `failure` is the error."""

    def __init__(self, stream: TextIO) -> None:
        self.failure: Exception | None = None
        self._stream = stream

    def write(self, text: str) -> Exception | None:
        """Write and flush. Returns the error if this write fails."""
        if self.failure is not None or not text:
            return None
        try:
            self._stream.write(text)
            self._stream.flush()
        except UnicodeEncodeError:
            return self.write(encodable(text, self._stream.encoding or "ascii"))
        except (OSError, ValueError) as error:
            self._fail(error)
        return self.failure

    def look(self) -> None:
        """Fail as a write would if nobody reads the pipe any more."""
        # Windows has no poll: there the next write finds it.
        with contextlib.suppress(OSError, ValueError, AttributeError):
            poll = select.poll()
            poll.register(self._stream, 0)
            if self.failure is None and poll.poll(0):
                self._fail(BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE)))

    def _fail(self, error: Exception) -> None:
        self.failure = error
        self._discard_buffer()

    def _discard_buffer(self) -> None:
        """Redirect the stream to /dev/null, or the interpreter would write its buffer at exit and print an error."""
        with contextlib.suppress(OSError, ValueError):
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, self._stream.fileno())
            os.close(null)


def is_broken_pipe(failure: Exception | None) -> bool:
    """Whether a write failed because nobody reads any more, and not for another reason, such as a full disk."""
    if not isinstance(failure, OSError):  # a ValueError: the stream was closed
        return True
    return isinstance(failure, ConnectionError) or failure.errno in _CLOSED_TERMINAL


def write_error_line(failure: Exception) -> str:
    return f"The output cannot be written ({system_reason(failure)})."


def write_error_exit_code(failure: Exception | None) -> int:
    return BROKEN_PIPE_EXIT_CODE if is_broken_pipe(failure) else WRITE_FAILED_EXIT_CODE
