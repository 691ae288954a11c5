"""Which files were read in this session, and what they held: only those may be changed."""

from __future__ import annotations

import hashlib
from pathlib import Path

MAX_CHANGED_BYTES = 8 << 20
"""The largest file that the tools change. It is held in memory several times over, and shown as a diff."""


class FilesRead:
    """Shared by the tools of one conversation. Maps real paths to hashes of the contents.

    attached  the real paths of all files that the person attached
    """

    def __init__(self) -> None:
        self.attached: set[Path] = set()
        self._digests: dict[Path, bytes] = {}
        self._forgotten: set[Path] = set()

    def note(self, path: Path, raw: bytes) -> None:
        """Remember the whole content that was read from or written to a file."""
        self._forgotten.discard(path)
        self._digests[path] = hashlib.sha256(raw).digest()

    def forget(self) -> None:
        """The model no longer sees what was read, and the files may be others now."""
        self._forgotten.update(self._digests)
        self._digests.clear()

    def is_forgotten(self, path: Path) -> bool:
        """Whether the file was read, and `forget` was called since."""
        return path in self._forgotten

    def is_known(self, path: Path) -> bool:
        return path in self._digests

    def is_current(self, path: Path, raw: bytes) -> bool:
        """Whether the file, which now holds `raw`, is unchanged since it was last read."""
        return self._digests.get(path) == hashlib.sha256(raw).digest()
