"""Lines of standard input, and what a typed line is: a message, a command, or a word that leaves the chat.

And what a paste puts in it."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Callable, Container, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Literal

from nca.terminal.input.file_finder import dropped_files, mention_before
from nca.terminal.input.terminal_modes import take_typed
from nca.terminal.render.sanitize import one_line
from nca.words import Words, part_of, source_at, text_of, words

if TYPE_CHECKING:
    from nca.terminal.input.pastes import FoldedPastes

LineKind = Literal["message", "command", "shell", "leave"]

COMMANDING = frozenset(("typed", "piped"))
"""The sources of lines that may be commands. The command decides what it may do for a pipe."""
LEAVING_WORDS = frozenset({"exit", "quit", ":q"})
_PATH = re.compile(r"/(?!mcp:)[^\s/]+/")
"""How a path begins. The name of an MCP server's prompt may have a slash too."""


def line_kind(said: Words, own: Callable[[], Container[str]] = tuple) -> LineKind:
    """A text is a command only if the person typed its beginning, or a pipe gave it to the chat as a line.

    `own` finds the names of the person's own commands, for a text of several lines that may begin with one.
    `//text` is a message that begins with a slash, and `![` begins an image in Markdown.
    """
    text = text_of(said)
    if source_at(said, len(text) - len(text.lstrip())) not in COMMANDING:
        return "message"
    if text.strip().lower() in LEAVING_WORDS:
        return "leave"
    if is_command(text.rstrip()) or is_long_command(text, own):
        return "command"
    return "shell" if is_shell_line(text) else "message"


def is_command(text: str) -> bool:
    """Whether a text is a slash command: one line that begins with a single slash, and not with a path."""
    return text.startswith("/") and not text.startswith("//") and "\n" not in text and not _PATH.match(text)


def is_long_command(text: str, own: Callable[[], Container[str]]) -> bool:
    """Whether a text of several lines begins with the name of a command: its argument may have them."""
    if not text.startswith("/") or "\n" not in text or text[1:2].isspace():
        return False
    first = text[1:].split(maxsplit=1)[:1]
    # Imported here: the first prompt needs little.
    from nca.terminal.render.event_lines import NAMES

    return any(name in NAMES or name in own() for name in first)


def is_shell_line(text: str) -> bool:
    """Whether a text is a shell command."""
    return text.startswith("!") and not text.startswith("![")


def message_of(line: Words) -> Words:
    """The message that a line sends: `//text` is `/text`, where it could have been a command."""
    is_escaped = text_of(line).startswith("//") and source_at(line, 0) in COMMANDING
    return part_of(line, 1) if is_escaped else line


def line_of(message: Words) -> Words:
    """The line that sends a message, so that its first `/` does not make it a command."""
    text = text_of(message)
    is_like_a_command = text.startswith("/") and not _PATH.match(text) and source_at(message, 0) in COMMANDING
    return (*words("/"), *message) if is_like_a_command else message


def may_complete(text: str) -> bool:
    """Whether completions open without Tab."""
    return is_command(text) or mention_before(text) is not None


def pasted_text(before: str, pasted: str, directory: Path, pastes: FoldedPastes) -> str:
    """What a paste puts behind a text: a path that looks like a dragged file becomes its mention.

    That attaches nothing yet, since a paste of a path looks the same.
    """
    begins_word = not before or before[-1].isspace()
    may_name_files = begins_word and not is_command(before) and not is_shell_line(before)
    mentions = dropped_files(pasted, directory) if may_name_files else None
    return mentions or text_of(pastes.fold_pasted(pasted))


def held_line(count: int, *, is_first_next: bool) -> str:
    """What became of so many queued lines. `is_first_next`: the next prompt starts with the first of them."""
    if count == 1:
        return f"Your queued line was not sent; it {'is in' if is_first_next else 'waits below'} the prompt."
    where = "the first is in the prompt, the rest waits" if is_first_next else "they wait"
    return f"Your {count} queued lines were not sent; {where} below {'it' if is_first_next else 'the prompt'}."


_PROMPT, _MORE = "> ", "... "


def in_a_row(lines: Sequence[str]) -> str:
    """Lines as they are shown where they wait."""
    return one_line(" ⏎ ".join(lines).replace("\n", " ↵ "))


class InputLines:
    """Reads lines of standard input without holding up the event loop.

    Reading happens in a daemon thread, so that a pipe that says nothing cannot keep the program from ending.
    """

    def __init__(self, lines: IO[str], *, prompt: IO[str] | None = None) -> None:
        self._lines = lines
        self._prompt = prompt
        self._queue: asyncio.Queue[str | None] = asyncio.Queue()
        self._asked = threading.Semaphore(0)
        self._thread: threading.Thread | None = None
        self._is_waiting = False
        self._is_line_open = False
        self._kept: list[str] = []
        """Lines that were typed before a question: the next messages."""
        self._held: list[str] = []
        """Lines that Enter sends one by one; another line replaces the first."""
        self._begun = ""
        """The beginning of the line that was being typed; Enter sends it, too."""

    async def keep_typed(self) -> str:
        """Keep what was typed so far for the next message: it answers no question that appears now. Returns it."""
        typed = ""
        while not self._queue.empty():
            if (line := self._queue.get_nowait()) is None:
                self._queue.put_nowait(None)
                break
            self._is_waiting = False
            typed += f"{line}\n"
        if self._prompt is not None and not self._is_waiting:
            typed += await asyncio.to_thread(take_typed, self._lines.fileno())
        *lines, rest = typed.split("\n")
        self._kept += filter(str.strip, lines)
        self._begun = "\n".join(filter(str.strip, (self._begun, rest)))
        return typed

    def hold(self) -> int:
        """Send nothing that was kept until Enter is pressed for each line. Returns how many lines came to those."""
        come = [line for line in (*self._kept, self._begun) if line.strip()]
        self._held += come
        self._kept, self._begun = [], ""
        return len(self._held) if come else 0

    def drop_held(self) -> list[str]:
        """Remove and return the lines that are held."""
        dropped, self._held = self._held, []
        return dropped

    async def answer(self) -> str:
        """The next line that is typed now. Raises EOFError."""
        held, kept, begun = self._held, self._kept, self._begun
        self._held, self._kept, self._begun = [], [], ""
        try:
            return await self.next()
        finally:
            self._held, self._kept, self._begun = held, kept, begun

    async def next(self, default: str = "") -> str:
        """The next line without its end, lines that end in a backslash joined; EOFError at the end of the input."""
        loop = asyncio.get_running_loop()
        if self._thread is None:
            self._thread = threading.Thread(target=self._pump, args=(loop,), daemon=True, name="nca-lines")
            self._thread.start()
        if self._prompt is None:
            default = ""
        if self._held or not self._kept:
            self.hold()
        if self._held and not default:
            default = self._held.pop(0)
        if default:
            self._say(f"[Enter sends: {one_line(default, 60)}]\n")
        if self._held:
            self._say(f"[Behind it: {one_line(in_a_row(self._held), 200)}; Ctrl-C drops that]\n")
        collected: list[str] = []
        while True:
            self._say(_MORE if collected else _PROMPT)
            if self._kept:
                line: str | None = self._kept.pop(0)
                self._say(f"{line}\n")
            else:
                line = await self._typed()
            if line is None:
                self.end_line()
                if collected:
                    return "\n".join(collected)
                raise EOFError
            self._is_line_open = False
            if line.endswith("\\"):
                collected.append(line[:-1])
                continue
            text = "\n".join([*collected, line])
            return text if text.strip() else default

    async def _typed(self) -> str | None:
        if not self._is_waiting:
            self._is_waiting = True
            self._asked.release()
        line = await self._queue.get()
        self._is_waiting = False
        return line

    def end_line(self) -> None:
        """End the line of the prompt without its Enter: what is written next begins a line."""
        if self._is_line_open:
            self._say("\n")

    def begin_line(self) -> None:
        """The prompt again, after text that was written while it waits."""
        if self._is_waiting:
            self._say(_PROMPT)

    def _say(self, text: str) -> None:
        if self._prompt is not None:
            self._prompt.write(text)
            self._prompt.flush()
            self._is_line_open = not text.endswith("\n")

    def _pump(self, loop: asyncio.AbstractEventLoop) -> None:
        while True:
            self._asked.acquire()
            try:
                line = self._lines.readline()
            except (OSError, ValueError):
                line = ""
            try:
                loop.call_soon_threadsafe(self._queue.put_nowait, line.rstrip("\r\n") if line else None)
            except RuntimeError:
                return  # the loop has ended
