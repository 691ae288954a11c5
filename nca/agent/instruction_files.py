"""Read instruction files and what they import as `@path`.

Both may be foreign, so nothing outside of the project is read. An import is opened component by component below the
project's root (nca.safe_files), so that no link is followed, whoever changes the tree meanwhile. Every text passes the
redactor as a tool's result does, before anything is cut.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from nca.agent.project_root import Project, Reach
from nca.redact import Redactor
from nca.tools.files.reading_rules import Reading
from nca.tools.files.workspace import NoSuchFile, Workspace, shown
from nca.tools.skills.places import split_front
from nca.tools.tool import ToolError

MAX_BYTES = 64 * 1024
"""The most that is read of one file, and that is sent of all files together."""
MOST_IMPORTS = 50
CLAUDE_FOLDER = ".claude"
IMPORT_DEPTH = 5
"""As in Claude Code."""
_IMPORT = re.compile(r"(?:(?<=\s)|^)@([^\s`'\"()<>]+)", re.MULTILINE)
_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)


@dataclass(frozen=True, slots=True)
class InstructionFile:
    """`name`: as a person knows it. `text`: what was read of its `size` bytes, without keys."""

    name: str
    text: str
    size: int


class InstructionReader:
    """Reads the instruction files of one project, each file once.

    files     those that have a text, each behind what it imports, by path
    problems  a line for each that was left out, for a person
    """

    def __init__(self, project: Project, redactor: Redactor, reading: Reading, prefix: str = "") -> None:
        """reading: the rules about reading files; what they deny is left out. prefix: of the names of files."""
        self._project, self._redactor, self._reading, self._prefix = project, redactor, reading, prefix
        self.files: dict[Path, InstructionFile] = {}
        self.problems: list[str] = []

    def read_first(self, group: Iterable[Path]) -> None:
        """Read the first file of the group that is there, and what it imports."""
        path = next((path for path in group if os.path.lexists(path)), None)
        if path is None or path in self.files:
            return
        try:
            found = self._read(path, Path(os.path.realpath(path)), self._project.bounds(path))
        except NoSuchFile:
            return
        except ToolError as error:
            self.problems.append(f"Instructions were left out: {error}.")
            return
        self._add(path, found, self._project.reach(path), 0)

    def _add(self, path: Path, found: InstructionFile, reach: Reach, depth: int) -> None:
        for written, target in _imports(path, found.text) if depth < IMPORT_DEPTH else ():
            imported = reach.inside(target)
            if imported in self.files or imported == path:
                continue
            if len(self.files) + len(self.problems) >= MOST_IMPORTS:
                break
            named = f"{found.name} imports {shown(written)}, which"
            if why_not := reach.why_not(imported):
                self._leave_out(f"{named} {why_not}; it was left out.")
                continue
            try:
                self._add(imported, self._read(imported, imported, reach.root), reach, depth + 1)
            except ToolError as error:
                self._leave_out(f"{named} was left out: {error}.")
        if found.text.strip():
            self.files.setdefault(path, found)

    def _leave_out(self, why: str) -> None:
        if why not in self.problems:
            self.problems.append(why)

    def _read(self, path: Path, real: Path, root: Path) -> InstructionFile:
        """Read `real`, where `path` leads, if it is below `root`. No link on the way from there is followed.

        Raises ToolError: NoSuchFile where there is none, else one line that says why it cannot be used.
        """
        name = self._name(path)
        if not real.is_relative_to(root):
            raise ToolError(f"{name} is a link that leads out of the project")
        with Workspace(root, reading=self._reading).open(real, name) as file:
            try:
                size = os.fstat(file.fileno()).st_size
                raw = file.read(MAX_BYTES + 1)
            except OSError as error:
                raise ToolError(f"{name} cannot be read ({error.strerror})") from error
        if b"\0" in raw:
            raise ToolError(f"{name} is not a text file")
        is_whole = len(raw) <= MAX_BYTES
        # The limit may cut a character in two.
        text = raw.decode("utf-8-sig", "replace") if is_whole else raw[: MAX_BYTES - 4].decode("utf-8-sig", "ignore")
        if CLAUDE_FOLDER in path.parts:
            # What stands there for Claude Code, such as a rule's paths, is no instruction.
            text = split_front(text)[1]
        return InstructionFile(name, self._redactor.clean(text), size)

    def _name(self, path: Path) -> str:
        top = self._project.top
        return shown(f"{self._prefix}{path.relative_to(top).as_posix()}" if path.is_relative_to(top) else str(path))


def _imports(path: Path, text: str) -> Iterator[tuple[str, Path]]:
    """The files that a text names as `@path`: as written, and where that is. Nothing in code, and no absent file."""
    for name in _IMPORT.findall(_CODE.sub("", text)):
        for written in (name, name.rstrip(".,;:!?")):
            target = os.path.normpath(path.parent / os.path.expanduser(written))  # noqa: PTH111  never raises
            if os.path.isfile(target):  # noqa: PTH113  a name that is too long, or of a closed folder, is no file
                yield written, Path(target)
                break
