"""Folders in which skills and custom commands are looked for: the project's, and the person's own.

A project's files are data, like its AGENTS.md: no link out of the project is followed. The person may have linked their
own to anywhere. A file may begin with front matter: YAML between lines of `---`.
"""

from __future__ import annotations

import os
import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO

from nca.config.paths import PROJECT_FOLDER
from nca.errors import system_reason
from nca.messages import clean_text
from nca.tools.files.workspace import NoSuchFile, Workspace, open_own, shown
from nca.tools.tool import ToolError

MAX_FOLDERS = 2_000
MAX_DEPTH = 5
"""Both as the Agent Skills' guide for clients has them."""
MAX_ENTRIES = 2_000
"""The most skills that are read in one folder."""
MAX_LISTED = 50
OTHERS_FOLDERS = (".agents", ".claude")
"""Other agents' folders, in the project and in the home directory."""
SKILL_FILE = "SKILL.md"


@dataclass(frozen=True, slots=True)
class Place:
    """A folder. `workspace`: the project that it must not leave; None for the person's own."""

    folder: Path
    workspace: Workspace | None = None

    @property
    def is_own(self) -> bool:
        return self.workspace is None

    def open(self, name: str) -> BinaryIO:
        """Open a file of the folder. Raises ToolError."""
        if self.workspace is None:
            return open_own(self.folder / name, self.shown(name))
        inside = str((self.folder / name).relative_to(self.workspace.root))
        return self.workspace.open(self.workspace.resolve(inside), self.shown(name))

    def shown(self, name: str) -> str:
        """How a person and the model know the file."""
        whole = self.folder / name
        if self.workspace is not None and whole.is_relative_to(self.workspace.root):
            whole = whole.relative_to(self.workspace.root)
        return shown(whole.as_posix())

    def read(self, name: str, most_bytes: int) -> bytes:
        """The beginning of a file. Raises ToolError."""
        try:
            with self.open(name) as file:
                return file.read(most_bytes)
        except NoSuchFile:
            raise ToolError(f"{self.shown(name)} is gone") from None
        except OSError as error:
            raise ToolError(f"{self.shown(name)} cannot be read ({system_reason(error)})") from error

    def front(self, name: str, most_bytes: int) -> tuple[dict[str, Any] | None, str]:
        """The fields at the beginning of a file, None if it has none, and the text after them. Raises ToolError."""
        front, body = split_front(clean_text(self.read(name, most_bytes).decode("utf-8-sig", "replace")))
        try:
            return (front_fields(front) if front is not None else None), body
        except ToolError as error:
            raise ToolError(f"{self.shown(name)}: {error}") from None

    def skill_files(self) -> Iterator[str]:
        """Each `SKILL.md` below the folder, none inside another; and plain Markdown files in nca's own folders."""
        for folder, files, below in self._walk():
            if SKILL_FILE in files:
                below.clear()
                yield f"{folder}{SKILL_FILE}"
            elif not folder and self.folder.parent.name not in OTHERS_FOLDERS:
                yield from (name for name in files if name.endswith(".md"))

    def markdown_files(self) -> Iterator[str]:
        for folder, files, _ in self._walk():
            yield from (f"{folder}{name}" for name in files if name.endswith(".md"))

    def beside(self, skill: str) -> list[str]:
        """The other files of a skill's folder, relative to it."""
        within = Place(self.folder / PurePosixPath(skill).parent, self.workspace)
        found = (f"{folder}{name}" for folder, files, _ in within._walk() for name in files)
        return [name for name in islice(found, MAX_LISTED + 1) if name != SKILL_FILE]

    def _walk(self) -> Iterator[tuple[str, list[str], list[str]]]:
        """Each folder as "" or `below/`, its files and the folders in it, which the caller may clear."""
        waiting = deque([""])
        for _ in range(MAX_FOLDERS):
            if not waiting:
                return
            folder = waiting.popleft()
            files, below = self._entries(folder)
            yield folder, files, below
            if folder.count("/") < MAX_DEPTH:
                waiting.extend(f"{folder}{name}/" for name in below)

    def _entries(self, folder: str) -> tuple[list[str], list[str]]:
        """Names of files and of folders, sorted; nothing that is hidden."""
        path = self.folder / folder
        files, folders = list[str](), list[str]()
        try:
            if self.workspace is None:
                with os.scandir(path) as scan:
                    found = [(entry.name, entry.is_dir()) for entry in islice(scan, MAX_ENTRIES)]
            else:
                with self.workspace.folder(self.workspace.resolve(str(path))) as opened, opened.entries() as scan:
                    found = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in islice(scan, MAX_ENTRIES)]
        except (OSError, ToolError):
            # There is no such folder, or it leads out of the project.
            return files, folders
        for name, is_folder in sorted(found):
            if not name.startswith(".") and name not in ("node_modules", "__pycache__"):
                (folders if is_folder else files).append(name)
        return files, folders


def places(directory: Path, own_folder: Path, name: str) -> list[Place]:
    """The folders of `name` ("skills" or "commands"), the person's own first.

    directory   the project's
    own_folder  where the person's settings for nca are
    """
    home = Path(os.path.expanduser("~"))  # noqa: PTH111  never raises
    workspace = Workspace(directory)
    own = [own_folder / name, *(home / folder / name for folder in OTHERS_FOLDERS)]
    projects = [workspace.root / folder / name for folder in (PROJECT_FOLDER, *OTHERS_FOLDERS)]
    # In the home directory itself, its folders are the person's own.
    return [*map(Place, own), *(Place(folder, workspace) for folder in projects if folder not in own)]


_FRONT = re.compile(r"---[ \t]*\r?\n(.*?)^---[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)
_PLAIN_VALUE = re.compile(r"""(?m)^([\w-]+:[ \t]+)(?!["'|>])(\S.*?)[ \t]*\r?$""")
"""A value on the line of its name that has no quotes: people write `Use it for: this` and `[branch] [words]`."""


def split_front(text: str) -> tuple[str | None, str]:
    """The front matter and the text after it; None if the text has none."""
    match = _FRONT.match(text)
    return (match[1], text[match.end() :]) if match else (None, text)


def front_fields(front: str) -> dict[str, Any]:
    """The fields by name. Raises ToolError if it is not YAML, or no list of fields."""
    # Imported here: most projects have no such file, and a start without one does not pay for it.
    import yaml

    quoted = _PLAIN_VALUE.sub(lambda found: f"{found[1]}'{found[2].replace(chr(39), 2 * chr(39))}'", front)
    for text in (front, quoted):
        try:
            found = yaml.safe_load(text)
        except (yaml.YAMLError, ValueError, RecursionError):
            continue
        if isinstance(found, dict):
            return {str(name): value for name, value in found.items()}
    raise ToolError("its front matter is not valid YAML")


def front_line(found: dict[str, Any], name: str) -> str:
    """A field as one line of text; "" if it is missing or is not text. Of `[words]` the brackets stay."""
    value = found.get(name)
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        value = f"[{', '.join(value)}]"
    return " ".join(str(value).split()) if isinstance(value, str | int | float) and value is not False else ""
