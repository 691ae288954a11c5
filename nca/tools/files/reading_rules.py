"""The rules about reading files, for all that shows a file's content: tools, attachments, instructions, searches.

An edit needs a file that was read and has not changed since.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from nca.config.schema import PermissionSettings
from nca.config.tables import PermissionRule
from nca.tools.permissions import reading_rule

MOST_FILES = 5_000
"""So many are looked at before a command runs that searches in them: about a second."""


class Reading:
    """Which files may be read. A rule for read_file, or for all tools, is one about the file's content.

    rules      the person's rules, asked for each time because they may change in a chat
    directory  the project's
    """

    def __init__(self, rules: Callable[[], PermissionSettings], directory: Path) -> None:
        self._rules = rules
        self._directory = directory.resolve()

    def denial(self, path: Path) -> str:
        """Why the file may not be read, as it follows its name; "" if no rule denies it."""
        found = self._found(self._rules().deny, path)
        return f"may not be read: a rule of the person's denies it ({found})" if found else ""

    def is_hidden(self, path: Path) -> bool:
        """Whether a search that the person was not asked about leaves the file out: a rule denies it, or asks."""
        rules = self._rules()
        # A rule that asks about every call has already asked about the search.
        asking = [rule for rule in rules.ask if not rule.is_for_all]
        return self._found((*rules.deny, *asking), path) is not None

    def is_hidden_below(self, folder: Path, besides: str = "") -> bool:
        """Whether a file below the folder is one of these, or there are too many files to say.

        besides: the name of folders that are left out
        """
        count = 0
        for above, folders, files in os.walk(folder) if self.has_rules else ():
            folders[:] = [name for name in folders if name != besides]
            for name in files:
                count += 1
                if count > MOST_FILES or self.is_hidden(Path(above, name)):
                    return True
        return False

    @property
    def has_rules(self) -> bool:
        """Whether any file may be left out, whatever is searched for."""
        rules = self._rules()
        return any(
            rule.tool in ("*", "read_file") and (rule.paths or rule.subject) and not rule.for_changes
            for rule in (*rules.deny, *rules.ask)
        )

    def _found(self, rules: Sequence[PermissionRule], path: Path) -> PermissionRule | None:
        return reading_rule([rule for rule in rules if not rule.for_changes], path, self._directory) if rules else None


ANY_READING = Reading(PermissionSettings, Path("/"))
"""No rules: any file may be read."""


MAX_CHANGED_BYTES = 8 << 20
"""The largest file that the tools change. It is held in memory several times over, and shown as a diff."""


class _Seen(NamedTuple):
    """What was shown of a content: `ranges` of its `lines`, first and last; of 0 lines all was."""

    digest: bytes
    lines: int = 0
    ranges: frozenset[tuple[int, int]] = frozenset()

    def and_then(self, later: _Seen) -> _Seen:
        if later.digest != self.digest:
            return later
        return _Seen(self.digest, min(self.lines, later.lines), self.ranges | later.ranges)

    def gaps(self) -> list[tuple[int, int]]:
        found, line = [], 1
        for first, last in sorted(self.ranges | {(self.lines + 1, self.lines)}):
            if line < first:
                found.append((line, first - 1))
            line = max(line, last + 1)
        return found


class FilesRead:
    """Shared by the tools of one conversation. Maps real paths to what was seen of the contents, by their hashes.

    attached  the real paths of all files that the person attached
    """

    def __init__(self) -> None:
        self.attached: set[Path] = set()
        self._seen: dict[Path, _Seen] = {}
        self._forgotten: set[Path] = set()
        self._earlier: list[dict[Path, _Seen]] = []

    def note(self, path: Path, raw: bytes) -> None:
        """Remember the whole content that was read from or written to a file."""
        self._forgotten.discard(path)
        self._seen[path] = _Seen(hashlib.sha256(raw).digest())

    def note_page(self, path: Path, raw: bytes, lines: int, first: int = 1, last: int = 0) -> None:
        """Remember that of the content, which has so many lines, these were shown."""
        self._forgotten.discard(path)
        page = _Seen(hashlib.sha256(raw).digest(), lines, frozenset([(first, last)] if first <= last else []))
        self._seen[path] = self._seen[path].and_then(page) if path in self._seen else page

    def forget(self) -> None:
        """The model no longer sees earlier reads, and the files may be others now."""
        self._forgotten.update(self._seen)
        self._earlier.append(self._seen)
        self._seen = {}

    def recall(self) -> None:
        """The model sees again what it saw before `forget`. A file that is another one now counts as changed."""
        for path, seen in (self._earlier.pop() if self._earlier else {}).items():
            self._seen[path] = seen.and_then(self._seen.get(path, seen))
            self._forgotten.discard(path)

    def is_forgotten(self, path: Path) -> bool:
        """Whether the file was read, and `forget` was called since."""
        return path in self._forgotten

    def is_known(self, path: Path) -> bool:
        return path in self._seen

    def is_current(self, path: Path, raw: bytes) -> bool:
        """Whether the file, which now holds `raw`, is unchanged since it was last read."""
        return path in self._seen and self._seen[path].digest == hashlib.sha256(raw).digest()

    def unseen(self, path: Path) -> list[tuple[int, int]]:
        """The lines of a file that is known, first and last, which no read has shown."""
        return self._seen[path].gaps()
