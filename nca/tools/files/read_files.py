"""Which files were read in this session, and what was in them: what nobody has looked at is not written over."""

from __future__ import annotations

import hashlib
from pathlib import Path

MAX_CHANGED_BYTES = 8 << 20
"""The largest file that the tools change: it is held in memory several times over, and shown as a diff."""


class FilesRead:
    """Shared by the tools of one conversation. Files are known by their real paths, contents by their hash."""

    def __init__(self) -> None:
        self._digests: dict[Path, bytes] = {}

    def note(self, path: Path, raw: bytes) -> None:
        """This is what was read from it or written to it, in whole."""
        self._digests[path] = hashlib.sha256(raw).digest()

    def is_known(self, path: Path) -> bool:
        return path in self._digests

    def is_current(self, path: Path, raw: bytes) -> bool:
        """Whether the file, which now holds `raw`, is as it was when it was last read."""
        return self._digests.get(path) == hashlib.sha256(raw).digest()
