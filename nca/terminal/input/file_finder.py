"""An @mention in the prompt, and files found for it on a thread, so that no key waits for a disk.

The files of the directory are walked as `glob` and `grep` walk them (without what .gitignore excludes), nearest first,
and cached. A path outside, or one that the walk does not have (a link, an ignored folder), is completed folder by
folder, as in a shell. Hidden names are suggested only after a dot.
"""

from __future__ import annotations

import asyncio
import heapq
import os
import re
import shlex
import threading
import time
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import NamedTuple, TypeVar
from urllib.parse import unquote, urlsplit

T = TypeVar("T")

MAX_SUGGESTIONS = 50

_SHOWN_CHARS = 8_192
"""How far back a mention that is being typed is searched for."""
_DROPPED_CHARS = 16_384
_MAX_DROPPED = 20

_MENTION = re.compile(r"(?:^|\s)@(\"[^\"\n]*|[^\s@\"]*)$")
_NEEDS_QUOTES = re.compile(r"[\s'`()<>{}|;,]|[.:!?]$")


def mention_before(text: str) -> str | None:
    """The text after an @ that begins the last word of `text`, or None."""
    found = _MENTION.search(text[-_SHOWN_CHARS:])
    return found[1] if found else None


def can_be_typed(name: str) -> bool:
    """Whether a name can be typed after an @: one line without invisible characters."""
    return name.isprintable() and '"' not in name


def written(path: str) -> str:
    """A path as written after an @. Quotes around a folder stay open, so that one can type on."""
    if path.startswith("~") and not path.startswith("~/"):
        path = f"./{path}"
    if not _NEEDS_QUOTES.search(path):
        return path
    return f'"{path}' if path.endswith("/") else f'"{path}"'


def dropped_files(pasted: str, directory: Path) -> str | None:
    """The mentions for files that were dragged into the terminal; None if the paste is anything else.

    Terminals paste a dragged file as its absolute path, quoted or escaped for a shell, or as a file: address; several
    with blanks between them.
    """
    text = pasted.strip()
    if len(text) > _DROPPED_CHARS or "\n" in text or not text.startswith(("/", "'/", '"/', "file:///")):
        return None
    try:
        words = shlex.split(text)
    except ValueError:
        return None
    paths = [unquote(urlsplit(word).path) if word.startswith("file:///") else word for word in words]
    if not 0 < len(paths) <= _MAX_DROPPED or not all(_is_file(path) and can_be_typed(path) for path in paths):
        return None
    return "".join(f"@{written(_inside(path, directory))} " for path in paths)


def _inside(path: str, directory: Path) -> str:
    """Relative to the directory if it is inside."""
    return str(Path(path).relative_to(directory)) if Path(path).is_relative_to(directory) else path


def _is_file(path: str) -> bool:
    try:
        return path.startswith("/") and os.path.isfile(path)
    except (OSError, ValueError):
        return False


def on_thread(work: Callable[[], T], otherwise: T, name: str) -> Future[T]:
    """Look something up on a thread; `otherwise` is the answer if that fails.

    Not a pool: its threads keep the program from ending, and a folder may be on a disk that hangs.
    """
    answer: Future[T] = Future()

    def find() -> None:
        found = otherwise
        try:
            found = work()
        finally:
            answer.set_result(found)

    threading.Thread(target=find, daemon=True, name=name).start()
    return answer


MAX_FILES = 100_000
KEEP_SECONDS = 5.0
"""How long a walk stays valid; a long walk stays valid for ten times its duration."""
FIRST_WALK_SECONDS = 0.3
"""How long suggestions wait for the first walk. After that they come from its findings so far."""
TAB_SECONDS = 0.2
"""How long Tab waits. The keys after it wait too, since its completion comes before them."""
_AGAIN_SECONDS = 0.1
_MAX_ENTRIES = 10_000
_MAX_WORD_CHARS = 200
_NO_MATCH = 9


class _Entry(NamedTuple):
    """A file, or a folder with a final slash. Comparisons use `folded`."""

    folded: str
    depth: int
    path: str


class FileFinder:
    """Suggests files under a directory, and outside by folder. `max_files`: the most that are cached, nearest first."""

    def __init__(self, directory: Path, max_files: int = MAX_FILES) -> None:
        self._directory = directory
        self._walk = _Walk(directory, max_files)
        self._asked: tuple[str, Future[list[str]]] | None = None
        self._ranking = threading.Lock()
        self._last: tuple[list[_Entry], str, list[_Entry]] | None = None

    def find(self, wanted: str, wait_seconds: float | None = None) -> list[str]:
        """The paths as written after an @, best first. None if that takes longer than `wait_seconds`."""
        try:
            return self._ask(wanted).result(wait_seconds)
        except TimeoutError:
            return []

    async def find_soon(self, wanted: str) -> list[str]:
        """Like `find`, without blocking. If nothing is found yet, it waits for the end of the first walk."""
        while True:
            found = await asyncio.shield(asyncio.wrap_future(self._ask(wanted)))
            if found or self._walk.finished_count >= 0:
                return found
            await asyncio.sleep(_AGAIN_SECONDS)

    def _ask(self, wanted: str) -> Future[list[str]]:
        """Start a search. The same question gets the same answer while the walk is complete and valid."""
        if self._asked is not None and self._asked[0] == wanted and not self._walk.is_old:
            return self._asked[1]
        answer = on_thread(lambda: self._search(wanted.removeprefix('"')), list[str](), "nca-files")
        self._asked = None if self._walk.is_old else (wanted, answer)
        return answer

    def _search(self, wanted: str) -> list[str]:
        if wanted.startswith(("/", "~", "..")):
            return [written(path) for path in islice(_in_folder(wanted, Path("/")), MAX_SUGGESTIONS)]
        wanted = wanted.removeprefix("./")
        word = _folded(wanted)
        ranked = self._ranked(word)
        found = [entry.path for entry in ranked]
        if not any(entry.folded.startswith(word) for entry in ranked):
            # A link or an ignored file, once its name is begun.
            found = [*islice(_in_folder(wanted, self._directory), MAX_SUGGESTIONS), *found]
        return [written(path) for path in found[:MAX_SUGGESTIONS]]

    def _ranked(self, word: str) -> list[_Entry]:
        with self._ranking:
            entries = self._walk.entries()
            candidates: Iterable[_Entry] = entries
            # A longer word can only match what matched before. The list only grows, until it is replaced.
            if self._last is not None and self._last[0] is entries and len(entries) == self._walk.finished_count:
                _, before, matched = self._last
                if word.startswith(before) and _is_hidden(word) == _is_hidden(before):
                    candidates = matched
            wants_hidden = _is_hidden(word)
            is_listing = not word or word.endswith("/")
            has_letters = _letters(word).match
            ranked = [
                (rank, entry.depth, 0 if is_listing else len(entry.folded), entry)
                for entry in [entry for entry in candidates if has_letters(entry.folded)]
                if (wants_hidden or not _is_hidden(entry.folded)) and (rank := _rank(entry.folded, word)) < _NO_MATCH
            ]
            if len(entries) == self._walk.finished_count:
                self._last = (entries, word, [entry for *_, entry in ranked])
            return [entry for *_, entry in heapq.nsmallest(MAX_SUGGESTIONS, ranked)]


class _Walk:
    """The files of a directory. When they are old they are walked again; meanwhile the old ones are used."""

    def __init__(self, directory: Path, max_files: int) -> None:
        self._directory = directory
        self._max_files = max_files
        self._entries: list[_Entry] = []
        self._valid_until = 0.0
        self._walking: threading.Thread | None = None
        self.finished_count = -1
        """The number of entries once the walk is complete, -1 before."""

    @property
    def is_old(self) -> bool:
        return time.monotonic() > self._valid_until

    def entries(self) -> list[_Entry]:
        if self.is_old and (self._walking is None or not self._walking.is_alive()):
            self._walking = threading.Thread(target=self._renew, daemon=True, name="nca-walk")
            self._walking.start()
        if self.finished_count < 0 and self._walking is not None:
            self._walking.join(FIRST_WALK_SECONDS)
        return self._entries

    def _renew(self) -> None:
        started = time.monotonic()
        is_first = self.finished_count < 0
        entries = self._entries if is_first else []
        for entry in _entries_below(self._directory, self._max_files):
            entries.append(entry)
        self._entries, self.finished_count = entries, len(entries)
        now = time.monotonic()
        self._valid_until = now + max(KEEP_SECONDS, 10 * (now - started))


def _entries_below(directory: Path, max_files: int) -> Iterator[_Entry]:
    """Files and their folders, nearest first."""
    # Imported here: the patterns of .gitignore are not needed before the first @.
    from nca.tools.search_worker import walk

    folders: set[str] = set()
    for found in islice(walk(os.path.realpath(directory), ".", nearest_first=True), max_files):
        name = found.name
        if not can_be_typed(name):
            continue
        folder = name.rpartition("/")[0]
        while folder and folder not in folders:
            folders.add(folder)
            yield _Entry(_folded(f"{folder}/"), folder.count("/"), f"{folder}/")
            folder = folder.rpartition("/")[0]
        yield _Entry(_folded(name), name.count("/"), name)


def _folded(text: str) -> str:
    """Lower case with composed accents, for comparisons."""
    return (text if text.isascii() else unicodedata.normalize("NFC", text)).lower()


def _is_hidden(path: str) -> bool:
    """Whether a part of a path begins with a dot; also of one that is being typed, which then wants such files."""
    return path.startswith(".") or "/." in path


def _rank(path: str, word: str) -> int:
    """How well a path with these letters matches: 0 is best (prefix), then prefix of its name, part of it, letters."""
    if path == word and path.endswith("/"):
        return _NO_MATCH
    if path.startswith(word):
        return 0
    name = path[path.rfind("/", 0, -1) + 1 :]
    if name.startswith(word):
        return 1
    if word in name:
        return 2
    if word in path:
        return 3
    return 4 if _letters(word).match(name) else 5


@lru_cache(maxsize=8)
def _letters(word: str) -> re.Pattern[str]:
    """Matches the letters of a word in order. Each step ends at the first such letter, so there is no backtracking."""
    return re.compile("".join(f"[^{re.escape(letter)}]*{re.escape(letter)}" for letter in word[:_MAX_WORD_CHARS]), re.S)


def _in_folder(wanted: str, top: Path) -> Iterator[str]:
    """Complete a path from the entries of its folder, as a shell does: links count, hidden names only after a dot."""
    if wanted in ("~", ".", ".."):
        yield f"{wanted}/"
        return
    shown_folder, slash, beginning = wanted.rpartition("/")
    try:
        folder = top / Path(f"{shown_folder}{slash}").expanduser()
        with os.scandir(folder) as scan:
            entries = sorted(islice(scan, _MAX_ENTRIES), key=lambda entry: entry.name)
    except (OSError, ValueError, RuntimeError):
        # The folder does not exist or cannot be read, or the user after ~ does not exist.
        return
    for entry in entries:
        if entry.name.startswith(beginning) and can_be_typed(entry.name):
            if entry.name.startswith(".") and not beginning.startswith("."):
                continue
            yield f"{shown_folder}{slash}{entry.name}{'/' if _is_folder(entry) else ''}"


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False
