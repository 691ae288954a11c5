"""Pasted texts and images. A long paste is folded in the prompt to `[pasted 214 lines]`; it is sent in full.

In the text of the prompt a folded paste is one character of Unicode's last private plane; `nca.terminal.input.display`
draws its label. So each key treats it as one: Backspace deletes it, an arrow moves past it, and no edit splits it.

A pasted text may name files with `@`: a line says so, and a key attaches them. Somebody else may have written it, so
none of it attaches a file by itself.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from nca.humanize import some_of
from nca.terminal.input.file_finder import on_thread
from nca.terminal.input.prompt_text import is_typed_in
from nca.terminal.render.sanitize import one_line
from nca.words import Source, Span, Words, marked, merged, part_of, text_of

if TYPE_CHECKING:
    from nca.agent.mentions import Mention

FOLD_LINES = 12
FOLD_CHARS = 2_000

_FIRST, _LAST = 0x10F000, 0x10FFFD
_RESERVED = re.compile(f"[{chr(_FIRST)}-{chr(_LAST)}]")
_PIECES = re.compile(f"([{chr(_FIRST)}-{chr(_LAST)}])")
_NEWLINE = re.compile(r"\r\n?")


def paste_label(text: str) -> str:
    """The label of a long text: `[pasted 214 lines]`."""
    lines = text.removesuffix("\n").count("\n") + 1
    return f"[pasted {lines} lines]" if lines > 1 else f"[pasted {len(text):,} characters]"


def is_long(text: str) -> bool:
    return len(text) >= FOLD_CHARS or text.count("\n") + 1 >= FOLD_LINES


class FoldedPastes:
    """Keeps the text of each folded paste, with who said each part of it, while the program runs."""

    def __init__(self) -> None:
        self._said: dict[str, Words] = {}
        self._marks: dict[Words, str] = {}
        self._labels: dict[str, str] = {}
        self._label_of: dict[str, str] = {}
        self._alike: Counter[str] = Counter()

    def fold_pasted(self, pasted: str) -> Words:
        """What to insert for a paste: its text, or the character that represents it."""
        return self.fold((Span(_NEWLINE.sub("\n", pasted), "pasted"),))

    def fold(self, said: Words) -> Words:
        """The words as they are, or the character that represents them if they are long."""
        text = text_of(said)
        # A text with such a character is folded too, or the character would be taken for another paste.
        return self._mark(said) if is_long(text) or _RESERVED.search(text) else said

    def unfold(self, said: Words) -> Words:
        """The words with their pastes in full."""
        found: list[Span] = []
        for span in said:
            for piece in _PIECES.split(span.text):
                found += self._said.get(piece) or (span._replace(text=piece),)
        return merged(tuple(found))

    def refold(self, said: Words) -> Words:
        """Fold the pastes of a text that returns to the prompt, after a failure, from an editor or from the session."""
        text = text_of(said)
        known = sorted((one for one in self._label_of if one in text), key=len, reverse=True)
        found: Words = ()
        end = 0
        for match in re.finditer("|".join(map(re.escape, known)), text) if known else ():
            found += (*self._folded(part_of(said, end, match.start())), *self._mark(part_of(said, *match.span())))
            end = match.end()
        return merged((*found, *self._folded(part_of(said, end))))

    def _folded(self, said: Words) -> Words:
        """Each paste of these words that is long, perhaps of another program, as its character."""
        return tuple(one for span in said for one in (self.fold((span,)) if span.source == "pasted" else (span,)))

    def label(self, character: str) -> str | None:
        """The label of a character that represents a paste; None for any other."""
        return self._labels.get(character)

    def shown(self, text: str) -> str:
        """The text of a prompt with labels in place of its pastes."""
        return _RESERVED.sub(lambda found: self._labels.get(found[0], found[0]), text)

    def _mark(self, said: Words) -> Words:
        """The character for a text; the text itself once all characters are in use."""
        said = merged(said)
        mark = self._marks.get(said, "")
        if not mark and _FIRST + len(self._said) > _LAST:
            return said
        if not mark:
            mark = chr(_FIRST + len(self._said))
            self._said[mark], self._marks[said], self._labels[mark] = said, mark, self._label(text_of(said))
        return (Span(mark, "pasted"),)

    def _label(self, text: str) -> str:
        """One label for each text, numbered if two texts have the same size."""
        if text not in self._label_of:
            label = paste_label(text)
            self._alike[label] += 1
            number = self._alike[label]
            self._label_of[text] = f"{label[:-1]} #{number}]" if number > 1 else label
        return self._label_of[text]


KEY = "Alt-A"
WAIT_SECONDS = 0.2
"""How long the key waits for the disk. The keys after it wait too, since Enter sends its attachments."""
_MOST_NAMED = 3
_NAME_CHARS = 60


class _Found(NamedTuple):
    """The names in a text.

    shown     the text as it is in the prompt
    said      the same with its pastes unfolded
    waiting   paths that were pasted: they attach nothing
    attached  paths that were pasted, and the person has pressed the key
    """

    shown: Words
    said: Words = ()
    waiting: Sequence[Mention] = ()
    attached: Sequence[Mention] = ()


class PastedPaths:
    """Looks for files that pasted text names, beside the prompt: a disk may be slow."""

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
        """The line about Enter and pasted names, in a window this wide; "" if nothing pasted names a file."""
        if count := len({path.name for path in self._found.waiting}):
            paths, are, them = ("path", "is", "it") if count == 1 else ("paths", "are", "them")
            said = f"{count} {paths} in the pasted text {are} not attached; {KEY} attaches {them}."
            return said if len(said) <= cells else f"{KEY} attaches {count} pasted {paths}"
        names = list(dict.fromkeys(one_line(path.name, _NAME_CHARS) for path in self._found.attached))
        if not names:
            return ""
        said = f"Enter attaches {some_of(names, _MOST_NAMED)}; {KEY} takes that back."
        return said if len(said) <= cells else f"Enter attaches {len(names)}; {KEY} none"

    def toggled(self, shown: Words) -> Words | None:
        """The text, unfolded, with all paths in it attached, or none if they were. None if it names no file."""
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
        chosen = self._chosen
        return on_thread(lambda: self._find(shown, chosen), _Found(shown), "nca-paths")

    def _find(self, shown: Words, chosen: frozenset[str]) -> _Found:
        # Imported here: the first prompt does not need it.
        from nca.agent.mentions import existing

        said = self._unfold(shown)

        def files(source: Source) -> list[Mention]:
            return [one for one in existing(said, self._directory, source) if os.path.isfile(one.path)]

        attached = [path for path in files("typed") if path.name in chosen] if chosen else []
        return _Found(shown, said, files("pasted"), attached)


def _with_source(said: Words, paths: Sequence[Mention], source: Source) -> Words:
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
    """The images of one program, in a folder that is deleted with it: the message holds the image itself."""

    def __init__(self, environment: Mapping[str, str] = os.environ) -> None:
        self._environment = environment
        self._folder: Path | None = None
        self._count = 0

    def take(self) -> Path | None:
        """The clipboard's image as a file; None if there is none, or no program that could give it. Blocks."""
        # Imported here: the first prompt does not need it.
        from nca.images import MAX_IMAGE_BYTES, image_kind

        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="nca-images-"))
        path = self._folder / f"pasted-{self._count + 1}.png"
        for command in self._programs(path):
            raw = _output(command, path)
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
        """Programs that may be installed, best first."""
        found: list[list[str]] = []
        if sys.platform == "darwin":
            lines = [line.format(path=path) for line in _APPLESCRIPT]
            found += [["pngpaste", "-"], ["osascript", *(word for line in lines for word in ("-e", line))]]
        if self._environment.get("WAYLAND_DISPLAY"):
            found.append(["wl-paste", "--no-newline", "--type", "image/png"])
        if self._environment.get("DISPLAY"):
            found.append(["xclip", "-selection", "clipboard", "-target", "image/png", "-out"])
        return installed(found, self._environment)


def _output(command: list[str], path: Path) -> bytes:
    """The program's output, or the file that it writes; b"" if it fails."""
    printed = run_program(command)
    with suppress(OSError):
        return printed or (path.read_bytes() if printed is not None and os.path.exists(path) else b"")
    return b""


def installed(commands: Sequence[Sequence[str]], environment: Mapping[str, str]) -> list[list[str]]:
    """The commands with an installed program, by its whole path."""
    search = environment.get("PATH", "")
    whole = [(shutil.which(command[0], path=search), command) for command in commands]
    return [[program, *command[1:]] for program, command in whole if program]


def run_program(command: Sequence[str], data: bytes | None = None) -> bytes | None:
    """The output of a clipboard program; None if it fails.

    Some stay in the background for as long as they hold the clipboard, so with `data` for them nothing of ours is left
    open in them.
    """
    pipes: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE}
    if data is not None:
        pipes = {"input": data, "stdout": subprocess.DEVNULL}
    try:
        ran = subprocess.run(  # noqa: S603  a fixed program, found on the person's PATH
            command, stderr=subprocess.DEVNULL, timeout=PROGRAM_SECONDS, start_new_session=True, check=False, **pipes
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return None if ran.returncode else ran.stdout or b""
