"""Read and write @mentions of files in the prompt, and turn dragged files into mentions.

What a mention brings in is `nca.agent.mentions`.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from urllib.parse import unquote, urlsplit

MAX_SUGGESTIONS = 50

_SHOWN_CHARS = 8_192
"""A mention that is being typed is looked for so far back."""
_DROPPED_CHARS = 16_384
_MAX_DROPPED = 20

_MENTION = re.compile(r"(?:^|\s)@(\"[^\"\n]*|[^\s@\"]*)$")
_NEEDS_QUOTES = re.compile(r"[\s'`()<>{}|;,]|[.:!?]$")


def mention_before(text: str) -> str | None:
    """What stands behind an @ that begins a word at the end of `text`, or None."""
    found = _MENTION.search(text[-_SHOWN_CHARS:])
    return found[1] if found else None


def can_be_typed(name: str) -> bool:
    """Whether a name can stand behind an @: on one line, with nothing in it that is not seen."""
    return name.isprintable() and '"' not in name


def written(path: str) -> str:
    """A path as it is written behind an @. A folder that needs quotes keeps them open: one types on."""
    if path.startswith("~") and not path.startswith("~/"):
        path = f"./{path}"
    if not _NEEDS_QUOTES.search(path):
        return path
    return f'"{path}' if path.endswith("/") else f'"{path}"'


def dropped_files(pasted: str, directory: Path) -> str | None:
    """The mentions for files that were dragged into the terminal; None where a paste is anything else.

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
    """Relative to the directory where it is in there."""
    return str(Path(path).relative_to(directory)) if Path(path).is_relative_to(directory) else path


def _is_file(path: str) -> bool:
    try:
        return path.startswith("/") and Path(path).is_file()
    except (OSError, ValueError):
        return False
