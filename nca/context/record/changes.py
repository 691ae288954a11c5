"""Which files a call of a tool changed, and what the change was about."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from nca.context.file_reads import FileUse, arguments_of
from nca.messages import ToolCall

HINT_CHARS = 60
COUNTED = ("edited", "written", "created", "changed", "")
"""Verbs of changes that leave a file with more in it: only these are counted."""
MOVED_TO = "moved to "
_LOOKED_AT_CHARS = 20_000
_DEFINED = re.compile(
    r"(?m)^\s*(?:export |pub |async |static |public |private )*"
    r"(?:def|class|fn|func|function|interface|type|struct|const|let|var)\s+([A-Za-z_$][\w$]*)"
)
_NEW_TEXT = (
    *("new_text", "new_string", "newText", "newString", "new_str", "new_source", "content", "file_text"),
    *("code_edit", "text", "patch", "diff"),
)
"""Arguments in which tools are given what a file shall say."""
_OLD_TEXT = ("old_text", "old_string", "oldText", "oldString", "old_str")
_VERBS = {
    "deleted": ("delete", "remove"),
    "renamed": ("rename", "move"),
    "written": ("write", "create", "save"),
}
_PATCHED = re.compile(
    r"(?m)^(?:\*\*\* (?P<what>Add|Update|Delete) File: (?P<path>.+?)\s*$(?:\n\*\*\* Move to: (?P<to>.+?)\s*$)?"
    r"|--- (?P<old>\S+).*\n\+\+\+ (?P<new>\S+).*$)"
)
"""A file in a patch, as `apply_patch` or as `diff -u` writes it."""
_SEARCH = re.compile(r"(?ms)^[<-]{5,9} SEARCH[^\n]*\n(.*?)^={5,9}\n(.*?)^[>+]{5,9} REPLACE")


class Change(NamedTuple):
    """What was done to one file, or by git to many: then `path` is its command, and `verb` what it did.

    new, old   what the file shall say, and what it said there
    is_first   nothing that could fail stands before it in the command line, and something does behind it
    """

    path: str
    verb: str
    new: str = ""
    old: str = ""
    is_first: bool = False

    @property
    def target(self) -> str:
        """Where the file was moved; "" where it was not."""
        return self.verb.removeprefix(MOVED_TO) if self.verb.startswith(MOVED_TO) else ""

    @property
    def hint(self) -> str:
        """What the change was about: the last thing that the new text defines, else its first line."""
        if not self.new and not self.old:
            return ""
        new, old = self.new[:_LOOKED_AT_CHARS], self.old[:_LOOKED_AT_CHARS]
        before = set(old.splitlines())
        new = "\n".join(line for line in new.splitlines() if line not in before)
        if defined := _DEFINED.findall(new):
            return _cut(str(defined[-1] if len(defined) == 1 else ", ".join(dict.fromkeys(defined[-3:]))))
        line = next((line.strip() for line in new.splitlines() if len(line.strip()) > 3), "")
        if not line and (gone := _DEFINED.findall(old)):
            # What the newest change took out must not be named as what an older one brought.
            return _cut(f"without {gone[-1]}")
        return _cut(" ".join(line.split()))


def _cut(hint: str) -> str:
    return hint if len(hint) <= HINT_CHARS else f"{hint[: HINT_CHARS - 2].rstrip()} …"


def undone_by(later: Change, changes: Iterable[Change]) -> list[Change]:
    """Those of the changes that a later one may undo: of a file that nobody knows, or of a folder with their file.

    later  without a verb where a file was moved, and nobody knows to which place
    """
    if not later.path:
        stays = {"deleted": ("deleted",), "": ()}.get(later.verb, ("written", "edited"))
        return [change for change in changes if change.verb not in stays]
    if later.verb not in ("deleted", "") and not later.target:
        return []
    inside = f"{later.path.rstrip('/')}/"
    return [
        change
        for change in changes
        if change.path.startswith(inside)
        or (not later.verb and (change.path == later.path or change.verb == "deleted"))
    ]


def is_named(change: Change, paths: Collection[str]) -> bool:
    """Whether the file of a change, where it was moved, or a folder of these is among the paths."""
    both = [path for path in (change.path, change.target) if path]
    return any(one in paths for path in both for one in (path, *_folders(path)))


def _folders(path: str) -> Iterator[str]:
    while path := path.rpartition("/")[0]:
        yield path


def change_by_tool(use: FileUse, call: ToolCall) -> Change:
    """What a tool for one file did to it."""
    arguments = arguments_of(call)
    edits = arguments.get("edits")
    if isinstance(edits, list) and edits and isinstance(edits[-1], dict):
        arguments = edits[-1]
    new, old = _first_text(arguments, _NEW_TEXT), _first_text(arguments, _OLD_TEXT)
    if " SEARCH" in new and (found := _SEARCH.findall(new)):
        old, new = found[-1]
    return Change(use.path, _verb(call.name), new, old)


def changes_by_patch(text: str) -> tuple[Change, ...]:
    """The files that a patch changes."""
    files = list(_PATCHED.finditer(text))
    ends = [*(file.start() for file in files), len(text)][1:]
    return tuple(_patched(file, text[file.end() : end].splitlines()) for file, end in zip(files, ends, strict=True))


def patch_of(call: ToolCall) -> str:
    """The patch that a tool for many files is given; "" for another tool."""
    if "patch" not in call.name.lower():
        return ""
    texts = (text for text in arguments_of(call).values() if isinstance(text, str))
    return next(filter(_PATCHED.search, texts), "")


def _patched(file: re.Match[str], lines: list[str]) -> Change:
    new = "\n".join(line[1:] for line in lines if line.startswith("+"))
    old = "\n".join(line[1:] for line in lines if line.startswith("-"))
    if file["path"]:
        verb = {"Add": "written", "Update": "edited", "Delete": "deleted"}[file["what"]]
        return Change(file["path"], f"{MOVED_TO}{file['to']}" if file["to"] else verb, new, old)
    before, after = file["old"].removeprefix("a/"), file["new"].removeprefix("b/")
    if after == "/dev/null":
        return Change(before, "deleted", new, old)
    return Change(after, "written" if before == "/dev/null" else "edited", new, old)


@lru_cache(maxsize=256)
def _verb(name: str) -> str:
    lowered = name.lower()
    return next((verb for verb, words in _VERBS.items() if any(word in lowered for word in words)), "edited")


def _first_text(arguments: Mapping[str, Any], names: tuple[str, ...]) -> str:
    for name in names:
        if name in arguments and isinstance(text := arguments[name], str):
            return text
    return ""
