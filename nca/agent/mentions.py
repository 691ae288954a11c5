"""`@path` in what a person types: the file's text comes along, within the budget for files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from nca.context.admission import PREVIEW_BYTES, fit_files
from nca.context.tokens import frame_tokens
from nca.errors import UsageError
from nca.messages import AttachmentPart, Message, TextPart, clean_text

_MENTION = re.compile(r"(?:(?<=\s)|^)@(?:\"([^\"\n]+)\"|([^\s\"'`()<>{}|;,]+))")
_LOOKS_LIKE_A_FILE = re.compile(r"^[~./]|/[^/]*\.\w{1,5}$|\.(?:py|md|txt|json|toml|ya?ml|js|tsx?|rs|go|c|h|html|css)$")
_READ_LIMIT_BYTES = PREVIEW_BYTES + 1


def mentioned(text: str, directory: Path) -> list[Path]:
    """The files that the text names with `@`, each once. Raises UsageError for one that cannot be attached."""
    found: list[Path] = []
    for match in _MENTION.finditer(text):
        name = (match[1] or match[2]).rstrip(".:!?") or (match[1] or match[2])
        path = (directory / Path(name).expanduser()).resolve()
        if not path.exists():
            if _LOOKS_LIKE_A_FILE.search(name):
                raise UsageError(f"@{name}: there is no such file in {directory}.", advice="Nothing was sent.")
            continue
        if path.is_dir():
            raise UsageError(f"@{name}: is a directory; name a file in it.", advice="Nothing was sent.")
        if path not in found:
            found.append(path)
    return found


def with_attachments(text: str, paths: Sequence[Path], directory: Path, budget_raw_tokens: int) -> Message:
    """The person's message with its files, cut to the budget where they must be. Raises UsageError."""
    if not paths:
        return Message("user", clean_text(text))
    files = [(_shown(path, directory), _read(path)) for path in paths]
    sizes = [path.stat().st_size for path in paths]
    frames = sum(frame_tokens(name) for name, _ in files)
    fitted = fit_files(files, max(0, budget_raw_tokens - frames), sizes=sizes)
    attached = tuple(
        AttachmentPart(name, admitted.text, admitted.original_bytes, is_cut=admitted.is_cut)
        for (name, _), admitted in zip(files, fitted, strict=True)
    )
    return Message("user", (TextPart(clean_text(text)), *attached))


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            raw = file.read(_READ_LIMIT_BYTES)
    except OSError as error:
        raise UsageError(f"@{path.name}: cannot be read ({error.strerror}).", advice="Nothing was sent.") from error
    if b"\0" in raw[:8192]:
        raise UsageError(f"@{path.name}: is not a text file.", advice="Nothing was sent.")
    return clean_text(raw.decode("utf-8", "replace"))


def _shown(path: Path, directory: Path) -> str:
    return str(path.relative_to(directory)) if path.is_relative_to(directory) else str(path)


def cut_notices(message: Message) -> Iterator[str]:
    """One line for each attached file that is not there in whole."""
    for part in message.attachments:
        if part.is_cut and not part.text:
            yield f"{part.path} was left out: there is no room for its {part.original_bytes:,} bytes."
        elif part.is_cut:
            kept = len(part.text.encode())
            yield f"{part.path} was cut to fit: {kept:,} of {part.original_bytes:,} bytes."
