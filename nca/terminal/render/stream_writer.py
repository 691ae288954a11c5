"""Write to a terminal or pipe that may be closed, full, or limited to an old encoding."""

from __future__ import annotations

import contextlib
import errno
import os
from typing import TextIO

from nca.terminal.render.ascii_fallback import encodable

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
            self.failure = error
            self._discard_buffer()
        return self.failure

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
    reason = failure.strerror if isinstance(failure, OSError) else None
    return f"The output cannot be written ({(reason or str(failure)).lower()})."


def write_error_exit_code(failure: Exception | None) -> int:
    return BROKEN_PIPE_EXIT_CODE if is_broken_pipe(failure) else WRITE_FAILED_EXIT_CODE
