"""Read instruction files and what they import as `@path`; which folders belong to a project.

Both may be foreign, so nothing outside of the project is read. An import is opened component by component below the
project's root (nca.safe_files), so that no link is followed, whoever changes the tree meanwhile. Every text passes the
redactor as a tool's result does, before anything is cut.

A project is a git repository. The home directory, or one above it, is never one: a person whose home is a
repository would else have every key of theirs "in the project".
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Set
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from nca.config.paths import PROJECT_FOLDER
from nca.errors import system_reason
from nca.redact import Redactor
from nca.safe_files import open_ordinary
from nca.tools.files.reading_rules import Reading
from nca.tools.files.workspace import NoSuchFile, Workspace, shown
from nca.tools.skill_places import split_front
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

    files     those that have a text, each after its imports, by path
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
        for written, target in imports(path, found.text) if depth < IMPORT_DEPTH else ():
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
                raise ToolError(f"{name} cannot be read ({system_reason(error)})") from error
        if b"\0" in raw:
            raise ToolError(f"{name} is not a text file")
        is_whole = len(raw) <= MAX_BYTES
        # The limit may cut a character in two.
        text = raw.decode("utf-8-sig", "replace") if is_whole else raw[: MAX_BYTES - 4].decode("utf-8-sig", "ignore")
        if CLAUDE_FOLDER in path.parts:
            # Text for Claude Code there, such as a rule's paths, is not an instruction.
            text = split_front(text)[1]
        return InstructionFile(name, self._redactor.clean(text), size)

    def _name(self, path: Path) -> str:
        top = self._project.top
        return shown(f"{self._prefix}{path.relative_to(top).as_posix()}" if path.is_relative_to(top) else str(path))


def imports(path: Path, text: str) -> Iterator[tuple[str, Path]]:
    """The files that a text names as `@path`: as written, and where that is. Nothing in code, and no absent file."""
    for name in _IMPORT.findall(_CODE.sub("", text)):
        for written in (name, name.rstrip(".,;:!?")):
            target = os.path.normpath(path.parent / os.path.expanduser(written))  # noqa: PTH111  never raises
            if os.path.isfile(target):
                yield written, Path(target)
                break


MAX_LEVELS = 64
_ROOT_USER = 0
_ABOUT_THEIR_PARENT = (PROJECT_FOLDER, ".claude")
"""Files in these folders are about the folder that holds them."""
_HEAD_BYTES = 4_096
_BRANCH = "ref: refs/heads/"
_COMMIT = re.compile(r"[0-9a-f]{40,64}")
_ID_CHARS = 7
_MOVE = re.compile(r"([0-9a-f]{40,64}) ([0-9a-f]{40,64}) [^\t]*> (\d{1,12}) [-+]\d{4}")
"""A line of git's log of checkouts: from, to, and the time in seconds."""
_LOG_BYTES = 65_536
"""Of the end of that log."""


def real_home() -> Path:
    """The person's home directory, links resolved."""
    return Path(os.path.realpath(os.path.expanduser("~")))  # noqa: PTH111  never raises


@dataclass(frozen=True, slots=True)
class Project:
    """The project around a directory. All paths are real paths.

    top   where the search upwards for instruction files ends
    root  of the git repository; None if there is none
    """

    top: Path
    root: Path | None
    home: Path

    @classmethod
    def around(cls, directory: Path, home: Path) -> Project:
        """Both are real paths. A `.git` may be a file too: of a work tree, or of a submodule.

        Without a repository, the search goes up to the home directory; elsewhere it stays in the directory. It stops at
        a folder, and at a `.git`, of anyone but the directory's owner or root: whoever may write to a shared folder
        could instruct the model from there.
        """
        try:
            owners = {directory.stat().st_uid, _ROOT_USER}
        except OSError:
            return cls(directory, None, home)
        for folder in (directory, *directory.parents)[:MAX_LEVELS]:
            if not _belongs(folder, owners) or (folder != home and home.is_relative_to(folder)):
                break
            if folder == home:
                return cls(home, None, home)
            git = folder / ".git"
            if os.path.lexists(git):
                return cls(folder, folder, home) if _belongs(git, owners) else cls(directory, None, home)
        return cls(directory, None, home)

    def within(self, directory: Path) -> Project:
        """The same, but nothing above `directory`."""
        root = directory if self.root is not None and directory.is_relative_to(self.root) else self.root
        return Project(directory, root, self.home)

    def reach(self, file: Path) -> Reach:
        """How far the imports of an instruction file may lead: in the repository, else in the folder it is about."""
        if self.root is not None:
            return Reach(self.root, self.home)
        about = _about(file)
        return Reach(file.parent if self.home.is_relative_to(about) else about, self.home)

    def bounds(self, file: Path) -> Path:
        """The folder that an instruction file must not leave if it is a link: a project's stays in the project.

        A file in the home directory itself is the person's own, and often a link to where they keep such files.
        """
        is_own = self.root is None and self.home.is_relative_to(_about(file))
        return self.top if is_own else self.reach(file).root


@dataclass(frozen=True, slots=True)
class Reach:
    """The folder from which an instruction file may import."""

    root: Path
    home: Path

    def inside(self, target: Path) -> Path:
        """The same file as a path below the root, however its beginning is written; else the path as it is.

        Links below the root stay as they are.
        """
        if target.is_relative_to(self.root):
            return target
        folders = (folder for folder in target.parents if os.path.realpath(folder) == str(self.root))
        return next((self.root / target.relative_to(folder) for folder in folders), target)

    def why_not(self, path: Path) -> str:
        """Why the file at `inside(path)` must not be imported; "" if it may."""
        is_above_home = self._has_home and self.root != self.home
        if not path.is_relative_to(self.root) or (is_above_home and path.is_relative_to(self.home)):
            return "is outside of the project"
        parts = path.relative_to(self.root).parts
        if self._has_home and any(part.startswith(".") for part in parts):
            return "is hidden in the home directory"
        links = (os.path.islink(self.root.joinpath(*parts[:count])) for count in range(1, len(parts) + 1))
        return "is behind a symbolic link" if any(links) else ""

    @property
    def _has_home(self) -> bool:
        """Keys and settings lie hidden in the home directory, and are nobody's instructions."""
        return self.home.is_relative_to(self.root)


def branch_of(directory: Path) -> str:
    """The git branch of a directory, or the beginning of the commit's id; "" where there is none."""
    git = _git_folder(directory)
    head = _beginning(git / "HEAD") if git is not None else ""
    if head.startswith(_BRANCH):
        return head.removeprefix(_BRANCH)
    return head[:_ID_CHARS] if _COMMIT.fullmatch(head) else ""


def head_moved(directory: Path, since: float) -> tuple[str, str] | None:
    """The beginnings of the ids of the commit that git had checked out at a time and of the present one.

    None if they are the same, or git's own log of them does not say it.
    """
    git = _git_folder(directory)
    if git is None:
        return None
    moves: list[re.Match[str]] = []
    with suppress(OSError, ValueError), open_ordinary(git / "logs" / "HEAD") as opened:
        opened.seek(max(0, opened.seek(0, os.SEEK_END) - _LOG_BYTES))
        lines = opened.read(_LOG_BYTES).decode("utf-8", "replace").splitlines()
        # Git's times are whole seconds.
        moves = [move for move in map(_MOVE.match, lines) if move and int(move[3]) >= int(since)]
    if not moves or moves[0][1] == moves[-1][2]:
        return None
    earlier = moves[0][1][:_ID_CHARS] if moves[0][1].strip("0") else "no commit"
    return earlier, moves[-1][2][:_ID_CHARS]


def _git_folder(directory: Path) -> Path | None:
    root = Project.around(Path(os.path.realpath(directory)), real_home()).root
    if root is None:
        return None
    git = root / ".git"
    if os.path.isdir(git):
        return git
    # A work tree's or a submodule's.
    named = _beginning(git)
    return root / named.removeprefix("gitdir: ") if named.startswith("gitdir: ") else None


def _beginning(file: Path) -> str:
    """The first line; "" if the file cannot be read."""
    with suppress(OSError, ValueError), open_ordinary(file) as opened:
        return opened.read(_HEAD_BYTES).decode("utf-8", "replace").partition("\n")[0].strip()
    return ""


def _about(file: Path) -> Path:
    """The folder that an instruction file is about."""
    return file.parent.parent if file.parent.name in _ABOUT_THEIR_PARENT else file.parent


def _belongs(path: Path, owners: Set[int]) -> bool:
    try:
        return path.lstat().st_uid in owners
    except OSError:
        return False
