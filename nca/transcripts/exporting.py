"""A session as the bytes of a file, in the format that its name or a person asks for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from nca.errors import UsageError
from nca.sessions.transfer import SessionCopy

FORMATS = {"markdown": (".md", ".markdown"), "json": (".json",), "html": (".html", ".htm")}
OF_OTHERS = frozenset(
    {".pdf", ".doc", ".docx", ".odt", ".rtf", ".zip", ".csv", ".xlsx", ".jsonl", ".xml", ".svg", ".png"}
)
"""Endings that promise another format: Markdown under such a name would open nowhere."""


def format_of(asked: Sequence[str], file: str) -> str:
    """One of FORMATS: what was asked for, else what the file's ending says, else Markdown. Raises UsageError."""
    if len(set(asked)) > 1:
        raise UsageError(f"--format: {' and '.join(asked)} exclude each other.")
    if asked and asked[0] not in FORMATS:
        raise UsageError(f"--format: {asked[0]!r} is not valid; valid: {', '.join(FORMATS)}.")
    if asked:
        return asked[0]
    ending = Path(file).suffix.lower()
    by_ending = {known: name for name, endings in FORMATS.items() for known in endings}
    if ending in OF_OTHERS:
        raise UsageError(f"{file}: nca writes no {ending} files; valid: {', '.join(by_ending)}.")
    return by_ending.get(ending, "markdown")


def rendered(copy: SessionCopy, format_name: str, *, is_ascii: bool = False) -> bytes:
    """`is_ascii`: JSON goes to a terminal, where no stored text may act."""
    match format_name:
        case "json":
            from nca.transcripts.session_file import to_json

            return to_json(copy, is_ascii=is_ascii)
        case "html":
            from nca.transcripts.page import to_html

            return to_html(copy).encode()
        case _:
            from nca.transcripts.markdown import to_markdown

            return to_markdown(copy).encode()
