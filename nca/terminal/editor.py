"""A text in the person's own editor."""

from __future__ import annotations

import asyncio
import os
import shlex
import sys
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from nca.errors import UsageError
from nca.messages import clean_text
from nca.terminal.sanitize import one_line

VARIABLES = ("VISUAL", "EDITOR")


async def edited(text: str, lend_terminal: Callable[[], AbstractContextManager[None]], *, name: str = "nca") -> str:
    """What the person made of `text`, in the program that VISUAL or EDITOR names; it has the terminal meanwhile.

    Raises UsageError where there is no terminal or no editor, or the editor failed; the text is as it was.
    """
    command = next((value for variable in VARIABLES if (value := os.environ.get(variable, "").strip())), "")
    if not command:
        raise UsageError("No editor is set.", advice="Set EDITOR, as in EDITOR=nano.")
    if not sys.stdin.isatty():
        raise UsageError("An editor needs a terminal.")
    # A folder of its own, for its owner only: the text may hold what nobody else is to read.
    with tempfile.TemporaryDirectory(prefix=f"{name}-") as folder:
        path = Path(folder) / f"{name}.md"
        path.write_text(text, encoding="utf-8")
        with lend_terminal():
            try:
                process = await asyncio.create_subprocess_exec(*shlex.split(command), str(path))
            except (OSError, ValueError) as error:
                raise UsageError(f"The editor {one_line(command, 60)!r} cannot be started: {error}.") from error
            code = await process.wait()
        if code:
            raise UsageError(f"The editor ended with exit code {code}; nothing was changed.")
        return clean_text(path.read_bytes().decode("utf-8", "replace"))
