"""The changes of a session, by file, in linear time for large changes: as unified diffs for a person, and for git.

With the file before, a diff determines the file after: every character that cannot be seen is written out. A patch has
the bytes as they are.
"""

from __future__ import annotations

import base64
import difflib
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from pathlib import Path

from nca.errors import StoreError
from nca.file_history.disk import state_of
from nca.humanize import unambiguous
from nca.sessions.file_record import ABSENT, Change, FileState

Read = Callable[[FileState], bytes]
"""The stored content of a state. Raises StoreDamaged, StoreError."""
_PROBED_BYTES = 8192
CONTEXT_LINES = 3
MAX_COMPARED_LINES = 4_000
"""A longer changed stretch is shown as removed and added in whole: comparing it takes quadratic time."""
_NO_END = "\n\\ No newline at end of file"
_BESIDE = "\0"
"""No visible text holds it."""
_FIRST_LINE = re.compile(r"(?<= [-+])\d+")
"""In the header of a hunk: the number of its first line, before and after."""
_LABELS = "now", "as the session left it", "earlier"
"""The labels at the marks of a conflict."""
_GIT_SECONDS = 10.0
_MOST_CONFLICTS = 127
"""`git merge-file` exits with the number of conflicts, up to this; above it has failed."""
_BARE_RETURN = re.compile(r"\r(?!\n|\Z)")
_TO_QUOTE = re.compile(rb'[^ -~]|["\\]')
"""What git writes in octal in the name of a file."""
_BINARY_LINE_BYTES = 52
_LENGTHS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
"""A line of git's binary patches begins with the letter of its length."""


@dataclass(frozen=True)
class FileChange:
    """The net change of one path. `path` is relative to the workspace; bytes that are not UTF-8 are lone surrogates.

    is_mixed  somebody else may have had a part in it
    """

    path: str
    before: FileState
    after: FileState
    is_mixed: bool
    read: Read

    @property
    def name(self) -> str:
        """The path on one line, with escapes for what cannot be printed."""
        return self.path if self.path.isprintable() else ascii(self.path)[1:-1]

    def diff(self) -> str:
        """A unified diff; one line for what has no lines. Raises StoreError."""
        return self._diff

    @property
    def added(self) -> int:
        return _count(self._diff, "+")

    @property
    def removed(self) -> int:
        return _count(self._diff, "-")

    @cached_property
    def _diff(self) -> str:
        old, new = self.before, self.after
        if unstored := old.why or new.why:
            return f"{self.name}: not stored ({unstored})"
        if old.sha256 == new.sha256 and old.kind == new.kind:
            return f"{self.name}: mode {old.mode:o} → {new.mode:o}"
        if {old.kind, new.kind} - {"absent", "file"}:
            return f"{self.name}: {self._named(old)} → {self._named(new)}"
        contents = [self.read(state) if state.kind == "file" else None for state in (old, new)]
        if any(content and b"\0" in content[:_PROBED_BYTES] for content in contents):
            return f"{self.name}: binary, {old.size:,} → {new.size:,} bytes"
        before, after = (None if content is None else content.decode("utf-8", "replace") for content in contents)
        return unified(before, after, self.name)

    def patch(self) -> bytes:
        """What `git apply` takes from `before` to `after`, byte for byte, with the one bit of a mode that git keeps.

        b"" if it cannot: a content is not stored, or only other bits differ. Raises StoreError.
        """
        old, new = (ABSENT if state.kind == "folder" else state for state in (self.before, self.after))
        if old.why or new.why:
            return b""
        if {old.kind, new.kind} == {"file", "link"}:
            return self._patch(old, ABSENT) + self._patch(ABSENT, new)
        return self._patch(old, new)

    def _patch(self, old: FileState, new: FileState) -> bytes:
        was, now = _git_mode(old), _git_mode(new)
        before, after = (self.read(state) if state.kind != "absent" else b"" for state in (old, new))
        if (was, before) == (now, after):
            return b""
        names = [_quoted(side + os.fsencode(self.path)) for side in (b"a/", b"b/")]
        lines = [b"diff --git %s %s" % tuple(names)]
        if not was or not now:
            lines.append(b"deleted file mode " + was if was else b"new file mode " + now)
        elif was != now:
            lines += [b"old mode " + was, b"new mode " + now]
        if before != after:
            lines.append(b"index %s..%s" % (_git_id(before, was), _git_id(after, now)))
        if b"\0" in before + after:
            lines += [b"GIT binary patch", *_literal(after), *_literal(before)]
        elif before != after:
            sides = zip((b"--- ", b"+++ "), names, (was, now), strict=True)
            # A tab ends a name with spaces for `patch`.
            lines += [sign + (name + b"\t" * (b" " in name) if mode else b"/dev/null") for sign, name, mode in sides]
            lines.append("\n".join(_hunks(before.decode("latin-1"), after.decode("latin-1"))).encode("latin-1"))
        return b"\n".join([*lines, b""])

    def _named(self, state: FileState) -> str:
        return f"link to {self.read(state).decode('utf-8', 'replace')}" if state.kind == "link" else state.kind


def net_changes(journal: Iterable[Change], read: Read) -> tuple[FileChange, ...]:
    """The net change of each file or link, by path, without what others did; no folders, and none that are the same."""
    return tuple(
        FileChange(path, before, changes[-1].after, any(one.is_mixed for one in changes), reads)
        for path, before, changes, reads in _differing(journal, read)
    )


def unchanged(*, has_records: bool) -> str:
    """The line for no net change. has_records: files were changed, but only for a while."""
    if has_records:
        return "All recorded files are as they were before this session."
    return "This session changed no file that is recorded."


def last_made(journal: Iterable[Change], read: Read) -> list[tuple[int, str, str]]:
    """Each path with a net change, whether it is changed or deleted, and the newest message after which it became so,
    rewinds aside."""
    found = []
    for path, _, changes, _ in _differing(journal, read):
        made = [one for one in changes if one.rewind is None]
        standing = [one for one in made if one.after.is_same(changes[-1].after)]
        what = "deleted" if changes[-1].after.kind == "absent" else "changed"
        found += [(one.seq, path, what) for one in (standing or made)[-1:]]
    return found


def _differing(journal: Iterable[Change], read: Read) -> Iterator[tuple[str, FileState, list[Change], Read]]:
    by_path = groupby(sorted(journal, key=lambda one: (one.path, one.number)), key=lambda one: one.path)
    for path, group in by_path:
        changes = list(group)
        before, reads = without_session(changes, read)
        after = changes[-1].after
        if not before.is_same(after) and {before.kind, after.kind} - {"folder", "absent"}:
            yield path, before, changes, reads


def without_session(changes: Sequence[Change], read: Read) -> tuple[FileState, Read]:
    """What the path would hold without the session: its first state with what others changed since, as far as that can
    be merged."""
    texts: dict[FileState, bytes] = {}

    def reads(state: FileState) -> bytes:
        return texts[state] if state in texts else read(state)

    now = before = changes[0].before
    at = {now: before}
    for one in changes:
        theirs = before
        if not one.before.is_same(now) and (found := _merged_or_none((one.before, now, before), reads)) is not None:
            text, conflicts = found
            theirs = state_of(text, one.before.mode if before.mode == now.mode else before.mode, len(text))
            texts[theirs] = text
            before = before if conflicts else theirs
        at[one.before], now = before, one.after
        if one.rewind is not None:
            before = at.get(now, theirs)
        at[now] = before
    return before, reads


def _merged_or_none(states: tuple[FileState, FileState, FileState], read: Read) -> tuple[bytes, int] | None:
    """As `merged`; None also for a content that cannot be read."""
    with suppress(StoreError):
        return merged(states, read)
    return None


def merged(states: tuple[FileState, FileState, FileState], read: Read) -> tuple[bytes, int] | None:
    """git's merge of three states of a file (_LABELS), and the conflicts.

    None for what is no text, without git, or if it fails. Raises StoreError.
    """
    git = shutil.which("git")
    if git is None or any(one.kind != "file" or one.why for one in states):
        return None
    contents = [read(one) for one in states]
    if any(b"\0" in content for content in contents):
        return None
    with tempfile.TemporaryDirectory(prefix="nca-merge-") as folder:
        paths = [Path(folder) / name for name in ("now", "base", "then")]
        for path, content in zip(paths, contents, strict=True):
            path.write_bytes(content)
        labels = [part for label in _LABELS for part in ("-L", label)]
        try:
            done = subprocess.run(  # noqa: S603  no part of it is anybody's text
                [git, "merge-file", "-p", "-q", *labels, *paths],
                cwd=folder,
                # The person's repository and settings have no part in it.
                env={"PATH": os.environ.get("PATH", ""), "GIT_CONFIG_NOSYSTEM": "1", "HOME": folder},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_GIT_SECONDS,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
    return (done.stdout, done.returncode) if 0 <= done.returncode <= _MOST_CONFLICTS else None


def ignored_by_git(directory: Path, paths: Iterable[str]) -> set[str]:
    """Those of the paths below `directory` that git ignores and does not track; none without git or a repository."""
    git = shutil.which("git")
    if git is None:
        return set()
    ignored, rest = set[str](), list(paths)
    while rest:
        try:
            done = subprocess.run(  # noqa: S603  the paths are no words of the command
                [git, "-c", "core.fsmonitor=false", "check-ignore", "-z", "--stdin", "--verbose", "--non-matching"],
                cwd=directory,
                input=b"".join(os.fsencode(path) + b"\0" for path in (".gitignore", *rest)),
                capture_output=True,
                timeout=_GIT_SECONDS,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            break
        fields = done.stdout.split(b"\0")
        rows = list(zip(fields[::4], fields[2::4], fields[3::4], strict=False))
        ignored |= {os.fsdecode(path) for file, pattern, path in rows[1:] if file and not pattern.startswith(b"!")}
        # A path below a link or in a submodule ends git. Without a repository not even the first one is answered.
        rest = rest[len(rows) :] if rows else []
    return ignored


def unified(before: str | None, after: str | None, name: str) -> str:
    """The diff from `before` (None: the file is new) to `after` (None: it is deleted); "" if they are the same.

    Tabs stay, and carriage returns at the ends of lines.
    """
    before, after = (None if text is None else _visible(text) for text in (before, after))
    if before == after:
        return ""
    title = [
        "--- /dev/null" if before is None else f"--- a/{name}",
        "+++ /dev/null" if after is None else f"+++ b/{name}",
    ]
    return "\n".join([*title, *_hunks(before or "", after or "")])


def _hunks(before: str, after: str) -> list[str]:
    """The hunks of a unified diff of two texts without NUL."""
    old, new = _lines(before), _lines(after)
    head = _common(old, new)
    tail = _common(old[head:][::-1], new[head:][::-1])
    if max(len(old), len(new)) - head - tail > MAX_COMPARED_LINES:
        return _one_hunk(old, new, head, tail)
    first = max(0, head - CONTEXT_LINES)
    was, now = _marked(old, head, tail), _marked(new, head, tail)
    compared = list(difflib.unified_diff(was, now, n=CONTEXT_LINES, lineterm=""))
    return [line.replace(_BESIDE, "") for line in _renumbered(compared[2:], first)]


def _git_mode(state: FileState) -> bytes:
    """As git writes it; b"" for nothing."""
    if state.kind == "file":
        return b"100755" if state.mode & 0o100 else b"100644"
    return b"120000" if state.kind == "link" else b""


def _git_id(content: bytes, mode: bytes) -> bytes:
    """The name that git gives to a content, without which it takes no binary patch."""
    if not mode:
        return b"0" * 40
    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest().encode()


def _quoted(name: bytes) -> bytes:
    quoted = _TO_QUOTE.sub(lambda found: b"\\%03o" % found[0][0], name)
    return name if quoted == name else b'"' + quoted + b'"'


def _literal(content: bytes) -> list[bytes]:
    """A whole content as lines of a binary patch, with the empty one at the end."""
    packed = zlib.compress(content)
    lines = [packed[at : at + _BINARY_LINE_BYTES] for at in range(0, len(packed), _BINARY_LINE_BYTES)]
    coded = [_LENGTHS[len(line) - 1 : len(line)] + base64.b85encode(line, pad=True) for line in lines]
    return [b"literal %d" % len(content), *coded, b""]


def has_unseen(diff: str) -> bool:
    """Whether an added line holds a character that is written out, except for the one that colours an emoji."""
    return any(line[:1] == "+" and "⟨U+" in line.replace("⟨U+FE0F⟩", "") for line in diff.split("\n"))


def _visible(text: str) -> str:
    return _BARE_RETURN.sub("⟨U+000D⟩", unambiguous(text, kept="\n\t\r"))


def counts(diff: str) -> str:
    """The lines added and removed, such as "+3 −1"."""
    return f"+{_count(diff, '+')} −{_count(diff, '-')}"


def _count(diff: str, sign: str) -> int:
    """The lines of a unified diff with this sign; 0 for what has no lines."""
    return sum(line[:1] == sign for line in diff.split("\n")[2:]) if diff.startswith("--- ") else 0


def _lines(text: str) -> list[str]:
    lines = text.split("\n")
    last = lines.pop()
    return [*lines, last + _NO_END] if last else lines


def _marked(lines: list[str], head: int, tail: int) -> list[str]:
    """The changed lines with those beside them, which are marked so that they are compared only with each other."""
    end = len(lines) - tail
    before = (f"{line}{_BESIDE}" for line in lines[max(0, head - CONTEXT_LINES) : head])
    after = (f"{line}{_BESIDE * 2}" for line in lines[end : end + CONTEXT_LINES])
    return [*before, *lines[head:end], *after]


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    """How many lines both begin with."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (left, right) in pairs if left != right), min(len(one), len(other)))


def _one_hunk(old: list[str], new: list[str], head: int, tail: int) -> list[str]:
    first = max(0, head - CONTEXT_LINES)
    removed, added = old[head : len(old) - tail], new[head : len(new) - tail]
    before, after = old[first:head], old[len(old) - tail :][:CONTEXT_LINES]
    sizes = [len(before) + len(lines) + len(after) for lines in (removed, added)]
    # Of no lines, the header names the line before them.
    return [
        "@@ -{},{} +{},{} @@".format(*(number for size in sizes for number in (first + (size > 0), size))),
        *(f" {line}" for line in before),
        *(f"-{line}" for line in removed),
        *(f"+{line}" for line in added),
        *(f" {line}" for line in after),
    ]


def _renumbered(lines: list[str], by: int) -> list[str]:
    """Count the lines in hunk headers from the start of the file, not of the stretch that was compared."""

    def shifted(first: re.Match[str]) -> str:
        return str(int(first[0]) + by)

    return [_FIRST_LINE.sub(shifted, line) if line.startswith("@@ ") else line for line in lines]
