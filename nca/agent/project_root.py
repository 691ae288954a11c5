"""Which folders belong to a project: how far up its instructions are looked for, and what a file of it may import.

A project is a git repository. The home directory, and what lies above it, is never one: a person whose home is a
repository would else have every key of theirs "in the project".
"""

from __future__ import annotations

import os
import re
from collections.abc import Set
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from nca.config.paths import PROJECT_FOLDER
from nca.safe_files import open_ordinary

MAX_LEVELS = 64
_ROOT_USER = 0
_ABOUT_THEIR_PARENT = (PROJECT_FOLDER, ".claude")
"""What stands in these folders is about the folder they are in."""
_HEAD_BYTES = 4_096
_BRANCH = "ref: refs/heads/"
_COMMIT = re.compile(r"[0-9a-f]{40,64}")
_ID_CHARS = 7


def real_home() -> Path:
    """The person's home directory, links resolved."""
    return Path(os.path.realpath(os.path.expanduser("~")))  # noqa: PTH111  never raises


@dataclass(frozen=True, slots=True)
class Project:
    """The project around a directory. All paths are real paths.

    top   where the search upwards for instruction files ends
    root  of the git repository; None where there is none
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

        What stands in the home directory itself is the person's own, and often a link to where they keep such files.
        """
        is_own = self.root is None and self.home.is_relative_to(_about(file))
        return self.top if is_own else self.reach(file).root


@dataclass(frozen=True, slots=True)
class Reach:
    """The folder whose files an instruction file may import."""

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
        links = (self.root.joinpath(*parts[:count]).is_symlink() for count in range(1, len(parts) + 1))
        return "is behind a symbolic link" if any(links) else ""

    @property
    def _has_home(self) -> bool:
        """Keys and settings lie hidden in the home directory, and are nobody's instructions."""
        return self.home.is_relative_to(self.root)


def branch_of(directory: Path) -> str:
    """The git branch of a directory, or the beginning of the commit's id; "" where there is none."""
    root = Project.around(Path(os.path.realpath(directory)), real_home()).root
    if root is None:
        return ""
    git = root / ".git"
    if not git.is_dir():
        # A work tree's or a submodule's.
        named = _beginning(git)
        if not named.startswith("gitdir: "):
            return ""
        git = root / named.removeprefix("gitdir: ")
    head = _beginning(git / "HEAD")
    if head.startswith(_BRANCH):
        return head.removeprefix(_BRANCH)
    return head[:_ID_CHARS] if _COMMIT.fullmatch(head) else ""


def _beginning(file: Path) -> str:
    """The first line; "" of what cannot be read."""
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
