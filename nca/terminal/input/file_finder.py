"""Find files for an @mention, on a thread, so that no key waits for a disk.

The files of the directory are walked as `glob` and `grep` walk them (what .gitignore excludes is left out), nearest
first, and remembered. A path outside, and one that begins like nothing in the walk (a link, an ignored folder), is
completed folder by folder, as a shell does. A name that begins with a dot is shown to who types the dot.
"""

from __future__ import annotations

import asyncio
import heapq
import os
import re
import threading
import time
import unicodedata
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from nca.terminal.input.file_mentions import MAX_SUGGESTIONS, can_be_typed, written

MAX_FILES = 100_000
KEEP_SECONDS = 5.0
"""So long a walk is taken as true; a long walk for ten times what it took."""
FIRST_WALK_SECONDS = 0.3
"""So long suggestions wait for the first walk; then they come from what it has found so far."""
TAB_SECONDS = 0.2
"""So long Tab waits, with the keys behind it: what it puts in has to stand before them."""
_AGAIN_SECONDS = 0.1
_MAX_ENTRIES = 10_000
_MAX_WORD_CHARS = 200
_NO_MATCH = 9


class _Entry(NamedTuple):
    """A file, or a folder with its slash; `folded` is what is compared."""

    folded: str
    depth: int
    path: str


class FileFinder:
    """Suggests files under (and, by folder, outside) a directory. `max_files`: as many of the nearest are known."""

    def __init__(self, directory: Path, max_files: int = MAX_FILES) -> None:
        self._directory = directory
        self._walk = _Walk(directory, max_files)
        self._asked: tuple[str, Future[list[str]]] | None = None
        self._ranking = threading.Lock()
        self._last: tuple[list[_Entry], str, list[_Entry]] | None = None

    def find(self, wanted: str, wait_seconds: float | None = None) -> list[str]:
        """The paths, best first, as they are written behind an @; none where that takes longer than `wait_seconds`."""
        try:
            return self._ask(wanted).result(wait_seconds)
        except TimeoutError:
            return []

    async def find_soon(self, wanted: str) -> list[str]:
        """As `find`, while keys go on being read; where nothing is found yet, once the first walk is done."""
        while True:
            found = await asyncio.shield(asyncio.wrap_future(self._ask(wanted)))
            if found or self._walk.finished_count >= 0:
                return found
            await asyncio.sleep(_AGAIN_SECONDS)

    def _ask(self, wanted: str) -> Future[list[str]]:
        """The newest question again gets the same answer, while the walk that it comes from is whole and true."""
        if self._asked is not None and self._asked[0] == wanted and not self._walk.is_old:
            return self._asked[1]
        answer: Future[list[str]] = Future()
        self._asked = None if self._walk.is_old else (wanted, answer)
        # Not from a pool, whose threads keep the program from ending: a folder may be on a disk that hangs.
        threading.Thread(target=self._answer, args=(wanted, answer), daemon=True, name="nca-files").start()
        return answer

    def _answer(self, wanted: str, answer: Future[list[str]]) -> None:
        found: list[str] = []
        try:
            found = self._search(wanted.removeprefix('"'))
        finally:
            answer.set_result(found)

    def _search(self, wanted: str) -> list[str]:
        if wanted.startswith(("/", "~", "..")):
            return [written(path) for path in islice(_in_folder(wanted, Path("/")), MAX_SUGGESTIONS)]
        wanted = wanted.removeprefix("./")
        word = _folded(wanted)
        ranked = self._ranked(word)
        found = [entry.path for entry in ranked]
        if not any(entry.folded.startswith(word) for entry in ranked):
            # A link, or what is ignored, for who begins to write its name.
            found = [*islice(_in_folder(wanted, self._directory), MAX_SUGGESTIONS), *found]
        return [written(path) for path in found[:MAX_SUGGESTIONS]]

    def _ranked(self, word: str) -> list[_Entry]:
        with self._ranking:
            entries = self._walk.entries()
            candidates: Iterable[_Entry] = entries
            # Who types on looks among what fitted before. The list only ever grows, until it is another.
            if self._last is not None and self._last[0] is entries and len(entries) == self._walk.finished_count:
                _, before, matched = self._last
                if word.startswith(before) and _wants_hidden(word) == _wants_hidden(before):
                    candidates = matched
            wants_hidden = _wants_hidden(word)
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
    """The files of a directory, walked again when they are old; meanwhile the old ones are there."""

    def __init__(self, directory: Path, max_files: int) -> None:
        self._directory = directory
        self._max_files = max_files
        self._entries: list[_Entry] = []
        self._valid_until = 0.0
        self._walking: threading.Thread | None = None
        self.finished_count = -1
        """How many entries the list has, once it is whole."""

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
    from nca.tools.search.walk import walk

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
    """For comparing: in any case, and with accents composed as keyboards write them."""
    return (text if text.isascii() else unicodedata.normalize("NFC", text)).lower()


def _wants_hidden(word: str) -> bool:
    return word.startswith(".") or "/." in word


def _is_hidden(path: str) -> bool:
    return path.startswith(".") or "/." in path


def _rank(path: str, word: str) -> int:
    """How well a path that has the letters fits, 0 best: it begins so, its name does, contains it, has the letters."""
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
    """What has the letters of a word in order. Each step ends at the first such letter, so nothing is tried twice."""
    return re.compile("".join(f"[^{re.escape(letter)}]*{re.escape(letter)}" for letter in word[:_MAX_WORD_CHARS]), re.S)


def _in_folder(wanted: str, top: Path) -> Iterator[str]:
    """Completions of a path by the entries of its folder, as in a shell: links too, names with a dot if asked for."""
    if wanted in ("~", ".", ".."):
        yield f"{wanted}/"
        return
    shown_folder, slash, beginning = wanted.rpartition("/")
    try:
        folder = top / Path(f"{shown_folder}{slash}").expanduser()
        with os.scandir(folder) as scan:
            entries = sorted(islice(scan, _MAX_ENTRIES), key=lambda entry: entry.name)
    except (OSError, ValueError, RuntimeError):
        # Not there, may not be read, or ~somebody who does not exist.
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
