"""Edit a text in the editor that VISUAL or EDITOR names."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import signal
import sys
import tempfile
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractContextManager, asynccontextmanager
from pathlib import Path

from nca.errors import UsageError
from nca.messages import clean_text
from nca.terminal.render.sanitize import one_line
from nca.words import Words, text_of

VARIABLES = ("VISUAL", "EDITOR")
_END_SECONDS = 1.0


async def edited(text: str, lent_terminal: AbstractContextManager[object], *, name: str = "nca") -> str:
    """Let the person edit `text` in the program that VISUAL or EDITOR names, and return the result.

    `lent_terminal` is entered while that program has the terminal.

    Raises UsageError where there is no terminal or no editor, or the editor failed; the text is as it was.
    """
    if not sys.stdin.isatty():
        raise UsageError("An editor needs a terminal.")
    command = _command()
    # A private folder: the text may be confidential.
    with tempfile.TemporaryDirectory(prefix=f"{name}-", ignore_cleanup_errors=True) as folder:
        path = Path(folder) / f"{name}.md"
        path.write_bytes(clean_text(text).encode())
        with lent_terminal:
            async with _started([*command, str(path)]) as process:
                code = await process.wait()
        if code:
            raise UsageError(f"The editor {_end(code)}; nothing was changed.")
        try:
            return clean_text(path.read_bytes().decode("utf-8", "replace")).replace("\r\n", "\n")
        except OSError as error:
            raise UsageError(f"The editor left no file ({error.strerror}); nothing was changed.") from error


async def edited_words(said: Words, lent_terminal: AbstractContextManager[object]) -> Words:
    """The same for a text of which it is known who said what. Raises UsageError."""
    # Imported here: the prompt needs it only behind an editor.
    from nca.terminal.input.edited_text import retold

    text = await edited(text_of(said), lent_terminal)
    return await asyncio.to_thread(retold, said, text)


def _command() -> Sequence[str]:
    """The editor and its arguments. Raises UsageError."""
    named = next((value for variable in VARIABLES if (value := os.environ.get(variable, "").strip())), "")
    if not named:
        raise UsageError("No editor is set.", advice="Set EDITOR, as in EDITOR=nano.")
    try:
        return shlex.split(named)
    except ValueError as error:
        raise UsageError(f"The editor {one_line(named, 60)!r} cannot be read: {error}.") from error


@asynccontextmanager
async def _started(command: Sequence[str]) -> AsyncIterator[Process]:
    """Run a program that has the terminal. On leaving it is ended, or it would go on reading the keyboard."""
    try:
        process = await asyncio.create_subprocess_exec(*command)
    except (OSError, ValueError) as error:
        said = one_line(str(getattr(error, "strerror", None) or error), 60)
        raise UsageError(
            f"The editor {one_line(command[0], 60)!r} cannot be started: {said}.",
            advice="Set EDITOR to another, as in EDITOR=nano.",
        ) from error
    try:
        yield process
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
            try:
                await asyncio.wait_for(process.wait(), _END_SECONDS)
            except TimeoutError:
                process.kill()


def _end(code: int) -> str:
    """How a program failed, in words."""
    if code > 0:
        return f"ended with exit code {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"
