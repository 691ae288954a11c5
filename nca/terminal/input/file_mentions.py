"""Read and write @mentions of files in the prompt, and turn dragged files into mentions.

`nca.agent.mentions` adds the files to the message.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from urllib.parse import unquote, urlsplit

MAX_SUGGESTIONS = 50

_SHOWN_CHARS = 8_192
"""How far back a mention that is being typed is searched for."""
_DROPPED_CHARS = 16_384
_MAX_DROPPED = 20

_MENTION = re.compile(r"(?:^|\s)@(\"[^\"\n]*|[^\s@\"]*)$")
_NEEDS_QUOTES = re.compile(r"[\s'`()<>{}|;,]|[.:!?]$")


def mention_before(text: str) -> str | None:
    """The text after an @ that begins the last word of `text`, or None."""
    found = _MENTION.search(text[-_SHOWN_CHARS:])
    return found[1] if found else None


def can_be_typed(name: str) -> bool:
    """Whether a name can be typed after an @: one line without invisible characters."""
    return name.isprintable() and '"' not in name


def written(path: str) -> str:
    """A path as written after an @. Quotes around a folder stay open, so that one can type on."""
    if path.startswith("~") and not path.startswith("~/"):
        path = f"./{path}"
    if not _NEEDS_QUOTES.search(path):
        return path
    return f'"{path}' if path.endswith("/") else f'"{path}"'


def dropped_files(pasted: str, directory: Path) -> str | None:
    """The mentions for files that were dragged into the terminal; None if the paste is anything else.

    Terminals paste a dragged file as its absolute path, quoted or escaped for a shell, or as a file: address; several
    with blanks between them.
    """
    text = pasted.strip()
    if len(text) > _DROPPED_CHARS or "\n" in text or not text.startswith(("/", "'/", '"/', "file:///")):
        return None
    try:
        words = shlex.split(text)
    except ValueError:
        return None
    paths = [unquote(urlsplit(word).path) if word.startswith("file:///") else word for word in words]
    if not 0 < len(paths) <= _MAX_DROPPED or not all(_is_file(path) and can_be_typed(path) for path in paths):
        return None
    return "".join(f"@{written(_inside(path, directory))} " for path in paths)


def _inside(path: str, directory: Path) -> str:
    """Relative to the directory if it is inside."""
    return str(Path(path).relative_to(directory)) if Path(path).is_relative_to(directory) else path


def _is_file(path: str) -> bool:
    try:
        return path.startswith("/") and Path(path).is_file()
    except (OSError, ValueError):
        return False
