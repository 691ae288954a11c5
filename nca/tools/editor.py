"""What an editor offers to the tools of a conversation: the files that it has open, and a terminal of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


class EditorFiles(Protocol):
    """Files as the editor has them, saved or not. Both methods block, so they are called in a thread."""

    def read(self, path: Path) -> str | None:
        """The text; None where the editor has nothing to say about the file."""
        ...

    def write(self, path: Path, text: str) -> bool:
        """Replace the text and save it. False if the editor takes no texts. Raises ToolError if it refuses."""
        ...


@dataclass(frozen=True, slots=True)
class TerminalRun:
    """How a program in the editor's terminal ended.

    exit_code   negative: the signal that ended it
    output      all that is kept of its output
    is_cut      the beginning of the output was not kept
    is_timeout  it ran out of time and was stopped
    """

    exit_code: int
    output: str
    is_cut: bool
    is_timeout: bool


class EditorTerminal(Protocol):
    """A terminal in which the person sees what a command prints while it runs."""

    async def run(self, argv: Sequence[str], directory: Path, *, seconds: float, most_bytes: int) -> TerminalRun:
        """Run a program to its end, at most so many seconds. If cancelled, stops it. Raises ToolError."""
        ...


@dataclass(frozen=True, slots=True)
class Editor:
    """None: the editor does not offer it."""

    files: EditorFiles | None = None
    terminal: EditorTerminal | None = None
