"""What a typed line is: a message, a slash command, a shell command, or a word that leaves the chat."""

from __future__ import annotations

from typing import Literal

from nca.terminal.input.file_mentions import mention_before
from nca.words import Words, part_of, source_at, text_of, words

LineKind = Literal["message", "command", "shell", "leave"]

COMMANDING = frozenset(("typed", "piped"))
"""The sources of lines that may be commands. What a command from a pipe may do is up to the command."""
LEAVING_WORDS = frozenset({"exit", "quit", ":q"})


def line_kind(said: Words) -> LineKind:
    """What was said is a command only if the person typed how it begins, or a pipe gave it to the chat as a line.

    `//text` is a message that begins with a slash, and `![` begins an image in Markdown.
    """
    text = text_of(said)
    if source_at(said, len(text) - len(text.lstrip())) not in COMMANDING:
        return "message"
    if text.strip().lower() in LEAVING_WORDS:
        return "leave"
    if is_command(text.rstrip()):
        return "command"
    return "shell" if is_shell_line(text) else "message"


def is_command(text: str) -> bool:
    """Whether a text is a slash command: one line that begins with a single slash."""
    return text.startswith("/") and not text.startswith("//") and "\n" not in text


def is_shell_line(text: str) -> bool:
    """Whether a text is a shell command."""
    return text.startswith("!") and not text.startswith("![")


def message_of(line: Words) -> Words:
    """The message that a line sends: `//text` is `/text`, where it could have been a command."""
    is_escaped = text_of(line).startswith("//") and source_at(line, 0) in COMMANDING
    return part_of(line, 1) if is_escaped else line


def line_of(message: Words) -> Words:
    """The line that sends a message, so that its first `/` does not make it a command."""
    is_like_a_command = text_of(message).startswith("/") and source_at(message, 0) in COMMANDING
    return (*words("/"), *message) if is_like_a_command else message


def may_complete(text: str) -> bool:
    """Whether completions open without Tab."""
    return is_command(text) or mention_before(text) is not None
