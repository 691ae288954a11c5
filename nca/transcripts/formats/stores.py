"""What readers need for the sessions in an agent's store."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from nca.transcripts.formats.records import StoredSession
from nca.transcripts.formats.source import Source

_TITLE_CHARS = 120


def stored(
    agent: str, source: Source, *, key: str = "", directory: str = "", title: str = "", at: float = 0.0
) -> StoredSession:
    """A session of a file. Time and size are those of the file unless `at` is given."""
    size = len(source.head)
    if source.path is not None:
        with suppress(OSError):
            status = source.path.stat()
            at, size = at or status.st_mtime, status.st_size
    return StoredSession(
        agent=agent,
        path=source.path or Path(source.place),
        key=key,
        directory=directory,
        title=" ".join(title[: _TITLE_CHARS * 10].split())[:_TITLE_CHARS],
        at=at,
        size_bytes=size,
    )
