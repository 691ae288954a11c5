"""Capture a command's output: its beginning and end in memory, the whole in a private file.

However much output comes, memory stays within MOST_MEMORY_BYTES.
"""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from nca.context.admission import LeftOut, Limits, admit_output

MOST_MEMORY_BYTES = 1_048_576
MOST_FILE_BYTES = 128 * 1_048_576
"""An output up to this size is saved in whole."""
BEGINNING_BYTES = 16 * 1_048_576
"""How much of a larger output is saved: endless output repeats itself."""
NOTES_BYTES, NOTES_LINES, NOTES_TOKENS = 600, 12, 200
"""Room for the notes below an output, so that both together pass admission uncut."""
_LEAST_TOKENS = 100
_PIECE_BYTES = 262_144
_LONGEST_KEY_BYTES = 8_192
_NO_KEY = re.compile(rb"[^A-Za-z0-9_.~+/=-]")
_LONGEST_OPEN_BYTES = 4_096
"""Held back of a line until its end. No progress bar is longer."""
_SEAM = "\n[…]\n".encode()
_BEGIN, _END = b"-----BEGIN ", b"-----END "

_CONTROL = re.compile(
    r"\x1b\][^\x07\x1b\n]*(?:\x07|\x1b\\)?|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?|\x1b[ -/]*[0-~]?"
    r"|[\x00-\x08\x0b-\x1f\x7f-\x9f]"
)
_RETURN = re.compile(r"\r+\n?")

Redact = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class Output:
    """The output of a command.

    text         for the model, within the limits, with a notice where it was cut
    total_bytes  the size of the whole output, without what was written over
    saved        the file with the whole output; None if nothing was cut, or there is no folder for it
    saved_bytes  how much of the output the file holds
    left_out     the lines of the whole output that `text` misses in its middle, or None
    lines        of the whole output if `text` was cut, else 0
    """

    text: str
    total_bytes: int
    saved: Path | None
    saved_bytes: int
    left_out: LeftOut | None = None
    lines: int = 0


class OutputCapture:
    """Call `feed` with each piece of output, then `finish` or `drop` once; `drop` before `finish` saves time."""

    def __init__(self, limits: Limits, folder: Path | None) -> None:
        """folder: where the whole output is saved if it is cut; created when needed."""
        self._limits = limits
        self._keep_bytes = min(limits.max_bytes, MOST_MEMORY_BYTES // 4)
        self._folder = folder
        self._head = bytearray()
        self._tail = bytearray()
        self._total = 0
        self._lines = 0
        self._open = b""
        """The line that no newline has ended yet: a carriage return may replace it."""
        self._is_binary = False
        self._is_over = False
        self._file: BinaryIO | None = None
        self._path: Path | None = None
        self._written = 0

    def feed(self, data: bytes) -> None:
        """Never raises: if the disk fails, the file is deleted and the capture continues.

        Of a line of text that is written over, such as a progress bar, the newest text counts, as on a terminal.
        """
        self._is_binary = self._is_binary or b"\0" in data
        if self._is_binary:
            self._keep_open()
            self._keep(data)
            return
        whole, newline, rest = (self._open + data).rpartition(b"\n")
        self._keep(written_over(whole) + newline)
        self._open = written_over(rest)
        if len(self._open) > _LONGEST_OPEN_BYTES:
            self._keep_open()

    def _keep_open(self) -> None:
        rest, self._open = self._open, b""
        self._keep(rest)

    def _keep(self, data: bytes) -> None:
        self._total += len(data)
        self._lines += _line_ends(data)
        room = self._keep_bytes - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        if not data:
            return
        if self._total > 2 * self._keep_bytes and not self._is_over:
            # From here on the middle is dropped from memory, so the file starts with all output so far.
            self._is_over = True
            self._begin_file()
        self._write(data)
        self._tail += data[-self._keep_bytes :]
        if len(self._tail) > 2 * self._keep_bytes:
            del self._tail[: -self._keep_bytes]

    def finish(self, redact: Redact) -> Output:
        """The output. Redacting a large file may take seconds, so do not call this on the event loop."""
        self._keep_open()
        # Mark the seam, as admission may cut elsewhere.
        seam = _SEAM if self._is_over else b""
        kept = bytes(self._head) + seam + bytes(self._tail[-self._keep_bytes :])
        most = self._limits.max_tokens
        admitted = admit_output(
            readable(kept),
            max_bytes=max(200, self._keep_bytes - NOTES_BYTES),
            max_lines=max(10, self._limits.max_lines - NOTES_LINES),
            max_tokens=None if most is None else max(_LEAST_TOKENS, most - NOTES_TOKENS),
            direction=self._limits.direction,
            original_bytes=self._total,
            missing_lines=self._lines - _line_ends(kept) if self._is_over else 0,
        )
        if admitted.is_cut and not self._is_over:
            self._begin_file()
        if self._file is not None and self._folder is not None:
            self._finish_file(self._file, self._folder, redact)
        # A line that nothing has ended is one as well.
        lines = self._lines + (not kept.endswith((b"\n", b"\r"))) if admitted.is_cut else 0
        return Output(admitted.text, self._total, self._path, self._written, admitted.left_out, lines)

    def drop(self) -> None:
        """Discard the file of the output; also after an error, such as a full disk: then it is not whole."""
        file, self._file = self._file, None
        if file is not None:
            with contextlib.suppress(OSError):
                file.close()
        path, self._path = self._path, None
        self._written = 0
        if path is not None:
            path.unlink(missing_ok=True)

    def _begin_file(self) -> None:
        """Begin a file without a name: what still holds keys is seen by nobody, and a kill leaves nothing of it."""
        if self._folder is None:
            return
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._file = tempfile.TemporaryFile(dir=self._folder)  # noqa: SIM115  `finish` or `drop` closes it
        except OSError:
            return
        self._write(bytes(self._head) + bytes(self._tail))

    def _write(self, data: bytes) -> None:
        if self._file is None:
            return
        data = data[: MOST_FILE_BYTES - self._written]
        try:
            self._file.write(data)
        except OSError:
            self.drop()
            return
        self._written += len(data)

    def _finish_file(self, file: BinaryIO, folder: Path, redact: Redact) -> None:
        """Give the file a name, without its keys."""
        # Only digits, like the other files of the folder: recall finds saved outputs by this form of name.
        path = folder / f"{time.time_ns()}.txt"
        clean = path.with_suffix(".part")
        try:
            if self._written < self._total:
                self._written = BEGINNING_BYTES
                file.truncate(BEGINNING_BYTES)
            file.seek(0)
            with os.fdopen(_new_private_file(clean), "wb") as target:
                _redact_bytes(file, target, redact)
            clean.replace(path)
        except OSError:
            clean.unlink(missing_ok=True)
            self.drop()
            return
        self._path, self._file = path, None
        file.close()


def written_over(data: bytes) -> bytes:
    """Output without what a carriage return lets a terminal write over. One before a newline writes over nothing."""
    if b"\r" not in data:
        return data
    lines = []
    for line in data.split(b"\n"):
        text = line.rstrip(b"\r")
        lines.append(text.rpartition(b"\r")[2] + line[len(text) :])
    return b"\n".join(lines)


def readable(data: bytes) -> str:
    """Decode output for a model: replace bytes that are not UTF-8, drop escape sequences and control characters."""
    text = data.decode("utf-8", "replace")
    return _CONTROL.sub("", _RETURN.sub("\n", text))


def as_on_terminal(text: str) -> str:
    """The lines that are not empty, as a terminal shows them: a line that was written over has its newest text."""
    lines = (_CONTROL.sub("", line.rstrip("\r").rpartition("\r")[2]) for line in text.split("\n"))
    return "\n".join(line for line in lines if line.strip())


def _line_ends(data: bytes) -> int:
    return data.count(b"\n") + data.count(b"\r") - data.count(b"\r\n")


def _new_private_file(path: Path) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0), 0o600)


def _redact_bytes(source: BinaryIO, target: BinaryIO, redact: Redact) -> None:
    """Redact in pieces, split at places without a key. Bytes that are not UTF-8 stay."""

    def write(raw: bytes) -> None:
        target.write(redact(raw.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape"))

    pending = b""
    while piece := source.read(_PIECE_BYTES):
        pending += piece
        cut = _safe_cut(pending)
        write(pending[:cut])
        pending = pending[cut:]
    write(pending)


def _safe_cut(data: bytes) -> int:
    """The place to split the data: not inside a key or a PEM block."""
    cut = max(0, len(data) - _LONGEST_KEY_BYTES)
    for ends in (data.rfind(b"\n", 0, cut), data.rfind(b" ", 0, cut)):
        if ends > cut - _LONGEST_KEY_BYTES:
            cut = ends + 1
            break
    else:
        others = [found.end() for found in _NO_KEY.finditer(data, max(0, cut - _LONGEST_KEY_BYTES), cut)]
        cut = others[-1] if others else cut
    block = data.rfind(_BEGIN, max(0, cut - _PIECE_BYTES), cut)
    return block if block > 0 and _END not in data[block:cut] else cut
