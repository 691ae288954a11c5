"""What a typed line is: a message, a slash command, a shell command, or a word that leaves the chat."""

from __future__ import annotations

from typing import Literal

LineKind = Literal["message", "command", "shell", "leave"]

LEAVING_WORDS = frozenset({"exit", "quit", ":q"})


def line_kind(text: str) -> LineKind:
    """`//text` is a message that begins with a slash, and `![` begins an image in Markdown."""
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


def message_of(line: str) -> str:
    """The message that a line sends: `//text` is `/text`."""
    return line[1:] if line.startswith("//") else line


def line_of(message: str) -> str:
    """The line that sends a message, so that its first `/` does not make it a command."""
    return f"/{message}" if message.startswith("/") else message
