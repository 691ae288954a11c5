"""The files that a pasted text names with `@` (a line says so, and a key attaches them), and pasted images.

Somebody else may have written what is pasted, so none of it attaches a file by itself.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import NamedTuple

from nca.terminal.input.prompt_text import is_typed_in
from nca.terminal.render.sanitize import one_line
from nca.words import Source, Words, marked

KEY = "Alt-A"
WAIT_SECONDS = 0.2
"""How long the key waits for the disk. The keys after it wait too, since Enter sends what it attaches."""
_MOST_NAMED = 3
_NAME_CHARS = 60


class _Path(NamedTuple):
    """An `@name` of a file, and where it stands in the text."""

    name: str
    start: int
    end: int


class _Found(NamedTuple):
    """What a text names.

    shown     the text as it is in the prompt
    said      the same with its pastes unfolded
    waiting   paths that were pasted: they attach nothing
    attached  paths that were pasted, and the person has pressed the key
    """

    shown: Words
    said: Words = ()
    waiting: Sequence[_Path] = ()
    attached: Sequence[_Path] = ()


class PastedPaths:
    """Looks for files that are named in what was pasted, beside the prompt: a disk may be slow."""

    def __init__(self, directory: Path, unfold: Callable[[Words], Words], on_found: Callable[[], None]) -> None:
        """`directory` is where a path begins. `on_found` is called when `line` may have changed."""
        self._directory = directory
        self._unfold = unfold
        self._on_found = on_found
        self._chosen: frozenset[str] = frozenset()
        """The names that the key has attached."""
        self._shown: Words = ()
        self._found = _Found(())
        self._looking: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """The prompt is empty."""
        self._chosen = frozenset()
        self._shown, self._found = (), _Found(())

    def look(self, shown: Words) -> None:
        """The text in the prompt is now this."""
        self._shown = shown
        if is_typed_in(shown) and not self._chosen:
            self._found = _Found(shown)
        elif self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look())

    def line(self, cells: int = 100) -> str:
        """What the person has to know before Enter, in a window this wide; "" where nothing pasted names a file."""
        if count := len(self._found.waiting):
            paths, are, them = ("path", "is", "it") if count == 1 else ("paths", "are", "them")
            said = f"{count} {paths} in the pasted text {are} not attached; {KEY} attaches {them}."
            return said if len(said) <= cells else f"{KEY} attaches {count} pasted {paths}"
        names = list(dict.fromkeys(one_line(path.name, _NAME_CHARS) for path in self._found.attached))
        if not names:
            return ""
        more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
        said = f"Enter attaches {', '.join(names[:_MOST_NAMED])}{more}; {KEY} takes that back."
        return said if len(said) <= cells else f"Enter attaches {len(names)}; {KEY} none"

    def toggled(self, shown: Words) -> Words | None:
        """The text, unfolded, with all paths in it attached, or none if they were. None where it names no file."""
        found = self._found if self._found.shown == shown else self._soon(shown)
        if found.waiting:
            self._chosen |= {path.name for path in found.waiting}
            return _with_source(found.said, found.waiting, "typed")
        if found.attached:
            self._chosen = frozenset()
            return _with_source(found.said, found.attached, "pasted")
        return None

    async def _look(self) -> None:
        while self._found.shown != self._shown:
            self._found = await asyncio.wrap_future(self._begin(self._shown))
            self._on_found()

    def _soon(self, shown: Words) -> _Found:
        try:
            return self._begin(shown).result(WAIT_SECONDS)
        except TimeoutError:
            return _Found(shown)

    def _begin(self, shown: Words) -> Future[_Found]:
        answer: Future[_Found] = Future()
        # Not a pool: its threads keep the program from ending, and a path may be on a disk that hangs.
        threading.Thread(target=self._answer, args=(shown, self._chosen, answer), daemon=True, name="nca-paths").start()
        return answer

    def _answer(self, shown: Words, chosen: frozenset[str], answer: Future[_Found]) -> None:
        found = _Found(shown)
        try:
            # Imported here: the first prompt does not need it.
            from nca.agent.mentions import existing

            said = self._unfold(shown)

            def files(source: Source) -> list[_Path]:
                there = existing(said, self._directory, source)
                return [_Path(one.name, one.start, one.end) for one in there if one.path.is_file()]

            attached = [path for path in files("typed") if path.name in chosen] if chosen else []
            found = _Found(shown, said, files("pasted"), attached)
        finally:
            answer.set_result(found)


def _with_source(said: Words, paths: Sequence[_Path], source: Source) -> Words:
    for path in paths:
        said = marked(said, path.start, path.end, source)
    return said


PROGRAM_SECONDS = 5.0
_APPLESCRIPT = (
    "set image to (the clipboard as \u00abclass PNGf\u00bb)",
    'set file_ to open for access POSIX file "{path}" with write permission',
    "write image to file_",
    "close access file_",
)


class PastedImages:
    """The images of one program, in a folder that goes with it: what is sent holds the image itself."""

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        self._environment = environment
        self._folder: Path | None = None
        self._count = 0

    def take(self) -> Path | None:
        """The clipboard's image as a file; None where there is none, or no program that could give it. Blocks."""
        # Imported here: the first prompt does not need it.
        from nca.images import MAX_IMAGE_BYTES, image_kind

        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="nca-images-"))
        path = self._folder / f"pasted-{self._count + 1}.png"
        for command in self._programs(path):
            raw = self._output(command, path)
            if image_kind(raw) and len(raw) <= MAX_IMAGE_BYTES:
                path.write_bytes(raw)
                self._count += 1
                return path
        return None

    def close(self) -> None:
        """Remove the files."""
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def _programs(self, path: Path) -> list[list[str]]:
        """What may be here, the one that fits best first."""
        found: list[list[str]] = []
        if sys.platform == "darwin":
            lines = [line.format(path=path) for line in _APPLESCRIPT]
            found += [["pngpaste", "-"], ["osascript", *(word for line in lines for word in ("-e", line))]]
        if self._environment.get("WAYLAND_DISPLAY"):
            found.append(["wl-paste", "--no-newline", "--type", "image/png"])
        if self._environment.get("DISPLAY"):
            found.append(["xclip", "-selection", "clipboard", "-target", "image/png", "-out"])
        search = self._environment.get("PATH", "")
        whole = [(shutil.which(command[0], path=search), command) for command in found]
        return [[program, *command[1:]] for program, command in whole if program]

    def _output(self, command: list[str], path: Path) -> bytes:
        """What the program prints, or writes to the path; b"" where it fails."""
        try:
            ran = subprocess.run(  # noqa: S603  a fixed program, found on the person's PATH
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                timeout=PROGRAM_SECONDS,
                start_new_session=True,
                check=False,
            )
            raw = ran.stdout or (path.read_bytes() if path.exists() else b"")
        except (OSError, subprocess.TimeoutExpired):
            return b""
        return raw if ran.returncode == 0 else b""
