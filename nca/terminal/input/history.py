"""The history of typed lines, in a private file, the draft beside it, and suggestions from the history."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import re
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import BinaryIO

from prompt_toolkit.auto_suggest import AutoSuggest, Suggestion
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.document import Document
from prompt_toolkit.history import FileHistory, History

from nca.humanize import clean_text
from nca.safe_files import PRIVATE, paths_below
from nca.terminal.input.pastes import FoldedPastes
from nca.terminal.input.prompt_text import Offer, PromptText, is_typed_in
from nca.terminal.render.sanitize import to_terminal
from nca.words import Words, marked, merged, part_of, text_of, words

SUGGESTED_ENTRIES = 2_000
"""How many of the newest entries are searched for a suggestion, at every key."""
_PASTED = "# pasted"
_REFUSED = "# refused "
_RANGE = re.compile(r"(\d{1,9})-(\d{1,9})")


class PrivateHistory(FileHistory):
    """prompt_toolkit's history file with mode 0600. If it cannot be written, the history ends with the program.

    The file gets the text that was sent, with folded `pastes` unfolded. Before each entry a line says which parts of it
    were pasted: `# pasted 4-17 30-44`, places in its text. A line `# refused /hlep` says that the entry had no effect,
    until it comes again. While the program runs, an entry comes back as it was in the prompt.
    """

    MAX_KEPT_CHARS = 20_000
    """A longer entry (a pasted log) is kept in memory only."""

    READ_BYTES = 4 << 20
    """How much of the end of the file is read at the start: some ten thousand entries."""

    def __init__(self, path: Path, pastes: FoldedPastes, prompt_text: PromptText) -> None:
        super().__init__(os.fspath(path))
        self._path = path
        self._pastes = pastes
        self._text = prompt_text
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600))
            path.chmod(0o600)

    def append_string(self, string: str) -> None:
        if string.strip():
            super().append_string(clean_text(string))

    def load_history_strings(self) -> Iterable[str]:
        """The newest first. In the file, lines of an entry begin with `+`; other lines separate entries."""
        try:
            with self._path.open("rb") as file:
                start = max(0, os.fstat(file.fileno()).st_size - self.READ_BYTES)
                file.seek(start)
                lines = file.read().decode("utf-8", "replace").split("\n")
        except OSError:
            return []
        entries: list[_Entry] = [_Entry()]
        refused: dict[str, int] = {}
        for line in lines[1:] if start else lines:
            if line.startswith("+"):
                entries[-1].lines.append(line[1:])
                continue
            if entries[-1].lines:
                entries.append(_Entry())
            if line.startswith(_PASTED):
                entries[-1].pasted = line.removeprefix(_PASTED)
            elif line.startswith(_REFUSED):
                refused[line.removeprefix(_REFUSED)] = len(entries) - 1
        again = {"\n".join(one.lines).strip(): place for place, one in enumerate(entries)}
        self._text.refused.update(text for text, place in refused.items() if again.get(text, -1) < place)
        # The first entry may be cut off.
        said = [entry.said() for entry in reversed(entries[1:] if start else entries) if entry.lines]
        for one in said:
            self._text.known.add(one)
        return [text_of(one) for one in said]

    def refuse(self, text: str) -> None:
        """Write that this line had no effect."""
        if "\n" not in text and len(text) <= self.MAX_KEPT_CHARS:
            with contextlib.suppress(OSError), self._path.open("a", encoding="utf-8") as file:
                file.write(f"\n{_REFUSED}{clean_text(text)}\n")

    def keep(self, said: Words) -> bool:
        """Write unsent text to the file, however long it is; False if that is not possible."""
        try:
            self._store(said)
        except OSError:
            return False
        return True

    def store_string(self, string: str) -> None:
        said = self._pastes.unfold(self._text.said_of(string))
        if sum(len(span.text) for span in said) <= self.MAX_KEPT_CHARS:
            with contextlib.suppress(OSError):
                self._store(said)

    def _store(self, said: Words) -> None:
        with self._path.open("a", encoding="utf-8") as file:
            file.write(_as_entry(said))


def _as_entry(said: Words) -> str:
    """As it is in the file."""
    said = merged(tuple(span._replace(text=clean_text(span.text)) for span in said))
    places: list[str] = []
    start = 0
    for span in said:
        if span.source != "typed":
            places.append(f" {start}-{start + len(span.text)}")
        start += len(span.text)
    lines = "".join(f"+{line}\n" for line in text_of(said).split("\n"))
    return f"\n# {datetime.now()}\n{_PASTED}{''.join(places)}\n{lines}"


class DraftFile:
    """What was typed and not sent, in a file of this program: if it is killed, the next start puts it in the history.

    That is what stands in the prompt, and what was typed while nca works. Without a history file nothing is written.
    """

    EACH_SECONDS = 1.0
    """Between a change and its writing: so much may be lost."""

    def __init__(self, history_file: Path | None, pastes: FoldedPastes) -> None:
        name = f"draft-{os.urandom(4).hex()}"
        self._path = history_file.with_name(f"{history_file.name}.{name}") if history_file else None
        self._file: BinaryIO | None = None
        """Open and locked while there is something to keep."""
        self._pastes = pastes
        self._in_prompt: Words = ()
        self._ahead: Callable[[], Sequence[Words]] = tuple
        self._writing: asyncio.TimerHandle | None = None
        self._written: list[Words] = []
        self.are_others_taken = False
        """Whether the history has unsent text of a killed program since now."""
        if history_file:
            with contextlib.suppress(OSError):
                self.are_others_taken = _take_drafts(history_file)

    def note_prompt(self, said: Words) -> None:
        """The text in the prompt has changed to this."""
        self._in_prompt = said
        self._write_in(self.EACH_SECONDS)

    def note_ahead(self, unsent: Callable[[], Sequence[Words]], is_entered: bool) -> None:
        """What was typed while nca works has changed. One that `is_entered` is written soon."""
        self._ahead = unsent
        self._write_in(0 if is_entered else self.EACH_SECONDS)

    def write_entered(self) -> None:
        """Write entered lines now: what was typed is about to be drawn, and a line is written before it is shown."""
        if self._writing is not None and self._writing.when() <= asyncio.get_running_loop().time():
            self.write()

    def _write_in(self, seconds: float) -> None:
        if self._path is None:
            return
        loop = asyncio.get_running_loop()
        if self._writing is not None and self._writing.when() > loop.time() + seconds:
            self._writing.cancel()
            self._writing = None
        self._writing = self._writing or loop.call_later(seconds, self.write)

    def write(self) -> None:
        """Write what is not sent now, or remove the file where all of it was."""
        if self._writing is not None:
            self._writing.cancel()
            self._writing = None
        said = [one for one in (self._pastes.unfold(self._in_prompt), *self._ahead()) if text_of(one).strip()]
        if self._path is None or said == self._written:
            return
        with contextlib.suppress(OSError):
            if said:
                self._file = self._file or _locked(self._path)
                content = "".join(map(_as_entry, said)).encode()
                os.pwrite(self._file.fileno(), content, 0)
                self._file.truncate(len(content))
            elif self._file is not None:
                self._path.unlink(missing_ok=True)
                self._file.close()
                self._file = None
            self._written = said


def _locked(path: Path) -> BinaryIO:
    """A new file, locked before another program can find it. Raises OSError."""
    hidden = path.with_name(f".{path.name}")
    file = open(hidden, "xb", opener=lambda name, flags: os.open(name, flags, PRIVATE))  # noqa: SIM115
    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    hidden.rename(path)
    return file


def _take_drafts(history_file: Path) -> bool:
    """Put what killed programs have left in the history; True if there was any. A running one has locked its draft."""
    are_any = False
    for left in paths_below(history_file.parent, f"{history_file.name}.draft-*"):
        with left.open("rb") as draft, contextlib.suppress(BlockingIOError):
            fcntl.flock(draft, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(draft.fileno()).st_nlink:  # no other program has taken it meanwhile
                with history_file.open("ab") as file:
                    file.write(draft.read())
                left.unlink()
                are_any = True
    return are_any


class _Entry:
    """The lines of an entry, and which places of it were pasted; None if an older nca wrote it and did not say."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.pasted: str | None = None

    def said(self) -> Words:
        text = "\n".join(self.lines)
        if self.pasted is None:
            return words(text, "pasted" if len(self.lines) > 1 else "typed")
        said = words(text)
        for start, end in _RANGE.findall(self.pasted):
            said = marked(said, int(start), int(end), "pasted")
        return said


def remember(said: Words, history: History, prompt_text: PromptText) -> None:
    """Put words in the history as if the prompt had returned them. `said`: with folded pastes, as the prompt has it."""
    prompt_text.known.add(said)
    history.append_string(text_of(said))


class HistorySuggestion(AutoSuggest):
    """Suggests the rest of the newest entry that begins with the typed line, dimmed, after the cursor.

    Only typed text is suggested, and no line that had no effect.
    """

    def __init__(self, prompt_text: PromptText) -> None:
        self._text = prompt_text

    def get_suggestion(self, buffer: Buffer, document: Document) -> Suggestion | None:
        text = document.text
        if not text.strip() or "\n" in text:
            return None
        for entry in buffer.history.get_strings()[: -SUGGESTED_ENTRIES - 1 : -1]:
            if entry.startswith(text) and entry.strip() not in self._text.refused:
                rest = entry[len(text) :].partition("\n")[0]
                said = part_of(self._text.said_of(entry), 0, len(text) + len(rest))
                if rest and is_typed_in(said) and to_terminal(rest) == rest:
                    self._text.offer(Offer(text, len(text), len(text), rest))
                    return Suggestion(rest)
        return None
