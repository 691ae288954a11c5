"""The export formats: choose one by name or file extension, render a session in it, and write the file."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from pathlib import Path

from nca.atomic_write import write_atomically
from nca.errors import NcaError, UsageError
from nca.sessions.transfer import SessionCopy

FORMATS = {
    "markdown": (".md", ".markdown"),
    "json": (".json",),
    "jsonl": (".jsonl",),
    "html": (".html", ".htm"),
}
OTHER_FORMATS = frozenset({".pdf", ".doc", ".docx", ".odt", ".rtf", ".zip", ".csv", ".xlsx", ".xml", ".svg", ".png"})
"""Extensions of formats that nca does not write. Markdown under such a name would open nowhere."""


def format_of(asked: Sequence[str], file: str) -> str:
    """One of FORMATS: the one asked for, else by the file's extension, else Markdown. Raises UsageError."""
    if len(set(asked)) > 1:
        raise UsageError(f"--format: {' and '.join(asked)} exclude each other.")
    if asked and asked[0] not in FORMATS:
        raise UsageError(f"--format: {asked[0]!r} is not valid; valid: {', '.join(FORMATS)}.")
    if asked:
        return asked[0]
    extension = Path(file).suffix.lower()
    by_extension = {known: name for name, extensions in FORMATS.items() for known in extensions}
    if extension in OTHER_FORMATS:
        raise UsageError(f"{file}: nca does not write {extension} files; valid: {', '.join(by_extension)}.")
    return by_extension.get(extension, "markdown")


def rendered(copy: SessionCopy, format_name: str, *, is_ascii: bool = False) -> bytes:
    """The export's bytes. `is_ascii` makes JSON safe for a terminal."""
    match format_name:
        case "json":
            from nca.transcripts.session_file import to_json

            return to_json(copy, is_ascii=is_ascii)
        case "jsonl":
            from nca.transcripts.session_file import to_json_lines

            return to_json_lines(copy, is_ascii=is_ascii)
        case "html":
            from nca.transcripts.html_page import to_html

            return to_html(copy).encode()
        case _:
            from nca.transcripts.markdown import to_markdown

            return to_markdown(copy).encode()


def write_private(path: Path, data: bytes, *, overwrites: bool = False) -> None:
    """Write `path` in one step: an existing file stays intact until the new one is complete and synced.

    A conversation may hold secrets even after redaction, so only its owner can read it.

    Raises UsageError if the file exists and `overwrites` is False, NcaError if it cannot be written.
    """
    if os.path.lexists(path) and (not overwrites or path.is_dir()):
        advice = "" if path.is_dir() else "Name another file, or use --force."
        raise UsageError(f"{path} already exists; nothing was written", advice=advice)
    try:
        write_atomically(path, data)
    except ValueError as error:
        raise UsageError(f"{str(path)!r} is not a valid file name.") from error
    except OSError as error:
        reason = "the disk is full" if error.errno in (errno.ENOSPC, errno.EDQUOT) else error.strerror or str(error)
        raise NcaError(f"{path} cannot be written ({reason.lower()})") from error
