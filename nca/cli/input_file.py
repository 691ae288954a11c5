"""The file of a command, or standard input for `-`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from nca.errors import UsageError

if TYPE_CHECKING:
    from nca.transcripts.formats.source import Source


def read_input(file: str) -> tuple[bytes, str]:
    """The content, and the name of its source for messages. Raises UsageError if the file cannot be read."""
    if file == "-":
        return sys.stdin.buffer.read(), "standard input"
    try:
        return Path(file).read_bytes(), file
    except OSError as error:
        raise UsageError(f"{file}: cannot be read ({error.strerror or error}).") from error


def open_source(file: str) -> tuple[Source, str]:
    """The file as a source, and for FILE#KEY the key of a session in it. Raises UsageError if it cannot be read."""
    from nca.transcripts.formats.source import Source

    name, key = file, ""
    if file != "-" and not Path(file).exists():
        before, mark, after = file.rpartition("#")
        if mark and Path(before).exists():
            name, key = before, after
    if name != "-" and (Path(name).is_file() or Path(name).is_dir()):
        return Source.of_file(Path(name)), key
    raw, place = read_input(name)
    return Source(place, raw=raw), key


def print_notes(notes: Sequence[str]) -> None:
    """What could not be read of a file, on standard error."""
    import typer

    from nca.terminal.render.sanitize import one_line

    for note in notes:
        typer.echo(f"nca: {one_line(note)}", err=True)
