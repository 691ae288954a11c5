"""Edit a text in the editor that VISUAL or EDITOR names, and report its changes."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shlex
import sys
import tempfile
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AbstractContextManager, asynccontextmanager
from difflib import SequenceMatcher
from pathlib import Path

from nca.errors import UsageError, system_reason
from nca.messages import clean_text
from nca.process_groups import how_ended
from nca.terminal.render.sanitize import one_line
from nca.words import Span, Words, merged, part_of, text_of

_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_WORD = re.compile(r"\s+|\S+")
_MOST_EXACT = 2_000
"""The most pieces for which each is compared with each; in longer texts difflib leaves out the frequent ones."""


def retold(before: Words, text: str) -> Words:
    """The edited text: old text keeps its source, even a moved word; the rest is the person's own.

    nca does not see what the person pastes in their editor, so that counts as typed.
    """
    said: list[Words] = []
    gone: dict[str, Words] = {}
    added: list[int] = []
    for old_lines, lines, is_same in _steps(_pieces(before, _LINE), _LINE.findall(text)):
        if is_same:
            said += old_lines
            continue
        old_words = [word for line in old_lines for word in _pieces(line, _WORD)]
        for old, new, is_kept in _steps(old_words, _WORD.findall("".join(lines))):
            if is_kept:
                said += old
                continue
            for one in old:
                # A word that was both typed and pasted counts as pasted.
                gone[text_of(one)] = one if _has_pasted(one) else gone.get(text_of(one), one)
            added += range(len(said), len(said) + len(new))
            said += ((Span(word, "typed"),) for word in new)
    for number in added:
        word = text_of(said[number])
        said[number] = gone.get(word, said[number]) if word.strip() else said[number]
    return merged(tuple(span for piece in said for span in piece))


def _steps(old: Sequence[Words], new: Sequence[str]) -> Iterator[tuple[Sequence[Words], Sequence[str], bool]]:
    """The matching pieces of old and new, in order, and whether each is the same."""
    matcher = SequenceMatcher(None, [text_of(one) for one in old], new, autojunk=len(new) > _MOST_EXACT)
    for what, first, last, new_first, new_last in matcher.get_opcodes():
        yield old[first:last], new[new_first:new_last], what == "equal"


def _pieces(said: Words, pattern: re.Pattern[str]) -> list[Words]:
    return [part_of(said, *match.span()) for match in pattern.finditer(text_of(said))]


def _has_pasted(said: Words) -> bool:
    return any(span.source != "typed" for span in said)


VARIABLES = ("VISUAL", "EDITOR")
_END_SECONDS = 1.0


async def edited(text: str, lent_terminal: AbstractContextManager[object], *, name: str = "nca") -> str:
    """Let the person edit `text` in the program that VISUAL or EDITOR names, and return the result.

    `lent_terminal` is entered while that program has the terminal.

    Raises UsageError if there is no terminal or no editor, or the editor failed; the text is as it was.
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
            raise UsageError(f"The editor {how_ended(code)}; nothing was changed.")
        try:
            return clean_text(path.read_bytes().decode("utf-8", "replace")).replace("\r\n", "\n")
        except OSError as error:
            raise UsageError(f"The editor left no file ({system_reason(error)}); nothing was changed.") from error


async def edited_words(said: Words, lent_terminal: AbstractContextManager[object]) -> Words:
    """The same for a text with known sources of its parts. Raises UsageError."""
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
        said = one_line(system_reason(error), 60)
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
