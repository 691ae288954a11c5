"""A command's output, taken as it comes: a beginning and an end in memory, the whole in a private file.

However much comes, in whatever bytes, memory stays within MOST_MEMORY_BYTES (reliability F48).
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from nca.config.schema import AdmissionSettings
from nca.context.admission import admit_output

MOST_MEMORY_BYTES = 1_048_576
MOST_FILE_BYTES = 128 * 1_048_576
"""An output up to this size is kept on disk in whole."""
BEGINNING_BYTES = 16 * 1_048_576
"""What is kept of a larger one: who writes without an end writes the same again and again."""
NOTES_BYTES, NOTES_LINES = 600, 12
"""Room for what is said below an output, so that the whole passes admission as it is."""
_PIECE_BYTES = 262_144
_LONGEST_KEY_BYTES = 8_192
_NO_KEY = re.compile(rb"[^A-Za-z0-9_.~+/=-]")
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
    """What the model gets of an output.

    text         within the limits, a notice in the place of what is missing
    total_bytes  of the whole
    saved        the file with the whole; None where nothing was cut or there is no place to save
    saved_bytes  of the whole, how much the file holds
    """

    text: str
    total_bytes: int
    saved: Path | None
    saved_bytes: int


class OutputCapture:
    """Takes an output's bytes with `feed`; `finish` once, or `drop`."""

    def __init__(self, limits: AdmissionSettings, folder: Path | None) -> None:
        """folder: where the whole goes if something is cut; made when needed."""
        self._limits = limits
        self._keep_bytes = min(limits.max_bytes, MOST_MEMORY_BYTES // 4)
        self._folder = folder
        self._head = bytearray()
        self._tail = bytearray()
        self._total = 0
        self._is_over = False
        self._file: BinaryIO | None = None
        self._path: Path | None = None
        self._written = 0

    def feed(self, data: bytes) -> None:
        """Never raises: where the disk fails, the file is given up and the output goes on."""
        self._total += len(data)
        room = self._keep_bytes - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        if not data:
            return
        if self._total > 2 * self._keep_bytes and not self._is_over:
            # From here on the middle is let go of, so the file begins with all that there was.
            self._is_over = True
            self._begin_file()
        self._write(data)
        self._tail += data[-self._keep_bytes :]
        if len(self._tail) > 2 * self._keep_bytes:
            del self._tail[: -self._keep_bytes]

    def finish(self, redact: Redact) -> Output:
        """What there was. May take seconds for a large file: `redact` takes the keys out of it. Not for the loop."""
        # The seam is marked: by the lines it may be far from where admission cuts.
        seam = _SEAM if self._is_over else b""
        admitted = admit_output(
            readable(bytes(self._head) + seam + bytes(self._tail[-self._keep_bytes :])),
            max_bytes=max(200, self._keep_bytes - NOTES_BYTES),
            max_lines=max(10, self._limits.max_lines - NOTES_LINES),
            direction=self._limits.direction,
            original_bytes=self._total,
        )
        if admitted.is_cut and not self._is_over:
            self._begin_file()
        self._end_file()
        if self._path is not None:
            self._finish_file(self._path, redact)
        return Output(admitted.text, self._total, self._path, self._written)

    def drop(self) -> None:
        """Nobody will read it: the file goes."""
        self._end_file()
        self._give_up()

    def _begin_file(self) -> None:
        if self._folder is None:
            return
        # Only digits, as the folder's other files: recall finds a whole output by this form of name.
        path = self._folder / f"{time.time_ns()}.txt"
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._file, self._path = os.fdopen(_new_private_file(path), "wb"), path
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
            self._give_up()
            return
        self._written += len(data)

    def _end_file(self) -> None:
        file, self._file = self._file, None
        if file is None:
            return
        try:
            file.close()
        except OSError:
            self._give_up()

    def _give_up(self) -> None:
        """A disk that is full: what is there of the file is no whole, so it goes."""
        self._end_file()
        path, self._path = self._path, None
        if path is not None:
            path.unlink(missing_ok=True)

    def _finish_file(self, path: Path, redact: Redact) -> None:
        """Keys that the output showed do not stay in the file either."""
        clean = path.with_suffix(".part")
        try:
            if self._written < self._total:
                self._written = BEGINNING_BYTES
                os.truncate(path, BEGINNING_BYTES)
            with path.open("rb") as source, os.fdopen(_new_private_file(clean), "wb") as target:
                _redact_bytes(source, target, redact)
            clean.replace(path)
        except OSError:
            clean.unlink(missing_ok=True)
            self._give_up()


def readable(data: bytes) -> str:
    """Bytes as text for a model: what is no UTF-8 is replaced, escape sequences and control characters go."""
    text = data.decode("utf-8", "replace")
    return _CONTROL.sub("", _RETURN.sub("\n", text))


def _new_private_file(path: Path) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0), 0o600)


def _redact_bytes(source: BinaryIO, target: BinaryIO, redact: Redact) -> None:
    """Piece by piece, cut where no key can be. Latin-1 gives each byte back as it was."""
    held = b""
    while piece := source.read(_PIECE_BYTES):
        held += piece
        cut = _safe_cut(held)
        target.write(redact(held[:cut].decode("latin-1")).encode("latin-1", "replace"))
        held = held[cut:]
    target.write(redact(held.decode("latin-1")).encode("latin-1", "replace"))


def _safe_cut(data: bytes) -> int:
    """Up to where the data can be taken by itself: not inside a key, and not inside a private key's block."""
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
