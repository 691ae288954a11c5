"""The folder that tools may access. Resolves names to paths inside it and refuses everything outside.

Links are resolved before the check, so neither `..`, nor an absolute path, nor a link inside the project reaches a file
outside. Files are then opened component by component without following links (nca.safe_files), so a link
that was created since the check leads nowhere.

No mode but `auto` writes unasked what other programs run, or agents obey, once it is there: asked.toml names it.
"""

from __future__ import annotations

import difflib
import json
import os
import stat
import unicodedata
from collections.abc import Callable, Container, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, BinaryIO

from nca.config.paths import PROJECT_FOLDER
from nca.errors import system_reason
from nca.safe_files import READ_FLAGS, Folder, open_folder
from nca.tools.files.reading_rules import ANY_READING, Reading
from nca.tools.files.text_file import as_in_editor, new_in_editor
from nca.tools.tool import EditorFiles, ToolError

NEAR_RATIO = 0.85
"""The likeness (difflib's ratio) from which one name may be meant for another."""


@dataclass(eq=False)
class Workspace:
    """Everything under `root`. In the folders `protected` nothing may be written.

    readable  folders outside of the root with readable files, asked at each call: those that nca itself names to the
              model, and those that the settings add
    attached  files anywhere that the person attached: the model has their names, and may have only their beginnings
    open_files  those that an editor has open: files under the root are read as they are there, saved or not
    reading  the rules about reading files; denied files are not opened, whoever asks
    """

    root: Path
    protected: Sequence[Path] = ()
    readable: Callable[[], Sequence[Path]] = tuple
    attached: Container[Path] = ()
    open_files: EditorFiles | None = None
    reading: Reading = ANY_READING

    def __post_init__(self) -> None:
        self.root = Path(os.path.realpath(self.root))
        self._unwritten = [plain_parts(Path(os.path.realpath(path)).parts) for path in self.protected]

    def resolve(self, name: str) -> Path:
        """The real path of a name, relative to the root or absolute. Raises ToolError if it is outside of the root."""
        path = self._real_path(name)
        if not path.is_relative_to(self.root):
            raise ToolError(f"{shown(name)} is outside of the working directory")
        return path

    def resolve_to_read(self, name: str) -> Path:
        """As `resolve`, but also takes a file that was attached or is in a readable folder."""
        path = self._real_path(name)
        if self._base(path) == self.root and not path.is_relative_to(self.root):
            raise ToolError(
                f"{shown(name)} is outside of the working directory (the user can name folders to read in the setting"
                " tools.readable)"
            )
        return path

    def _real_path(self, name: str) -> Path:
        if not name.strip() or "\0" in name:
            raise ToolError(f"{name!r} is not a path")
        try:
            return Path(os.path.realpath(self.root / name))
        except (OSError, ValueError) as error:
            raise ToolError(f"{shown(name)}: not a usable path") from error

    def _base(self, path: Path) -> Path:
        """The folder from which a file is opened."""
        if path in self.attached and not path.is_relative_to(self.root):
            return path.parent
        folders = (Path(os.path.realpath(folder)) for folder in self.readable())
        return next((folder for folder in folders if path.is_relative_to(folder)), self.root)

    def resolve_to_write(self, name: str) -> Path:
        """As `resolve`, but also raises ToolError for nca's own settings and data, whether they exist or not."""
        path = self.resolve(name)
        if path == self.root:
            raise ToolError(f"{shown(name)} is a directory")
        inside = plain_parts(path.relative_to(self.root).parts)
        whole = plain_parts(path.parts)
        if PROJECT_FOLDER in inside or any(whole[: len(folder)] == folder for folder in self._unwritten):
            raise ToolError(f"{shown(name)} belongs to nca's own settings and data, which tools may not write")
        return path

    def is_behind_link(self, name: str, path: Path) -> bool:
        """Whether a link makes a name lead to another path."""
        return Path(os.path.normpath(self.root / name)) != path

    def relative(self, path: Path) -> str:
        """A path relative to the root, with forward slashes, for a person and the model."""
        return shown((path.relative_to(self.root) if path.is_relative_to(self.root) else path).as_posix())

    def folder(self, path: Path, *, create: bool = False) -> AbstractContextManager[Folder]:
        """Open a folder under the root without following links. Raises OSError."""
        return open_folder(str(self.root), path.relative_to(self.root).parts, create=create)

    def open(self, path: Path, name: str) -> BinaryIO:
        """Open a regular file for reading. Raises ToolError, which mentions `name`, for anything else."""
        if self.open_files is None or not path.is_relative_to(self.root):
            return self.open_saved(path, name)
        try:
            return as_in_editor(self.open_saved(path, name), path, self.open_files)
        except NoSuchFile:
            if (new := new_in_editor(path, self.open_files)) is None:
                raise
            return new

    def open_saved(self, path: Path, name: str) -> BinaryIO:
        """As `open`, but always the file on the disk."""
        if path == self.root:
            raise IsDirectory(f"{shown(name)} is a directory; use list_directory")
        if denial := self.reading.denial(path):
            raise ToolError(f"{shown(name)} {denial}")
        try:
            base = self._base(path)
            with open_folder(str(base), path.parent.relative_to(base).parts) as folder:
                handle = folder.open(path.name)
        except OSError as error:
            raise _refusal(name, error, self._nearest(path)) from error
        return _as_file(handle, name)

    def _nearest(self, path: Path) -> str:
        """The name beside a missing file that may be meant: small models write Cart.py for cart.py; "" for none."""
        with suppress(OSError):
            names = {one.name.casefold(): one.name for one in sorted(path.parent.iterdir())}
            for near in difflib.get_close_matches(path.name.casefold(), names, n=1, cutoff=NEAR_RATIO):
                if not self.reading.denial(path.with_name(names[near])):
                    return names[near]
        return ""


def open_own(path: Path, name: str) -> BinaryIO:
    """Open a file that the person named, wherever its links lead. Raises ToolError, which mentions `name`."""
    try:
        handle = os.open(os.path.realpath(path), READ_FLAGS)
    except (OSError, ValueError) as error:
        raise _refusal(name, error if isinstance(error, OSError) else OSError(22, "not a path")) from error
    return _as_file(handle, name)


class NoSuchFile(ToolError):
    """No file has that name."""


class IsDirectory(ToolError):
    """A directory has that name."""


def shown(name: str) -> str:
    """A file's name on one line, with escapes for bytes that are not UTF-8 and characters that are not printable."""
    return name if name.isprintable() else ascii(name)[1:-1]


def _as_file(handle: int, name: str) -> BinaryIO:
    """The regular file behind a descriptor. Closes it and raises ToolError if it is anything else."""
    mode = os.fstat(handle).st_mode
    if stat.S_ISREG(mode):
        return os.fdopen(handle, "rb")
    os.close(handle)
    if stat.S_ISDIR(mode):
        raise IsDirectory(f"{shown(name)} is a directory; use list_directory")
    raise ToolError(f"{shown(name)} is not an ordinary file")


def _refusal(name: str, error: OSError, near: str = "") -> ToolError:
    if isinstance(error, FileNotFoundError | NotADirectoryError):
        return NoSuchFile(f"there is no file {shown(name)}" + (f" (there is {shown(near)})" if near else ""))
    if isinstance(error, PermissionError):
        return ToolError(f"{shown(name)} may not be read (permission denied)")
    return ToolError(f"{shown(name)} cannot be read ({system_reason(error)})")


@cache
def _asked() -> tuple[dict[str, str], dict[str, str]]:
    """asked.toml: the reason, for a person who is asked, by the name of a file, and by `FILE#KEY`."""
    # Only where something is written.
    import tomllib

    table = tomllib.loads(Path(__file__).with_name("asked.toml").read_text(encoding="utf-8"))
    whys = {name: why for why, names in table.items() for name in names.split()}
    files = {name.casefold(): why for name, why in whys.items() if "#" not in name}
    return files, {name: why for name, why in whys.items() if "#" in name}


def why_asked(parts: Sequence[str]) -> str:
    """Why a person should be asked before a file of the project is written, such as "a shell runs it"; "" without one.

    parts  the components of its path in the project
    """
    plain, files = plain_parts(parts), _asked()[0]
    for at, part in enumerate(plain):
        by_ending = (why for name, why in files.items() if name.startswith("*") and part.endswith(name[1:]))
        if why := files.get(part) or files.get("/".join(plain[at : at + 2])) or next(by_ending, ""):
            return why
    return ""


def why_change_asked(parts: Sequence[str], before: str, after: str) -> str:
    """Why a person should be asked before a file's text is changed so; "" if there is no reason.

    before  "" for a new file
    """
    name = plain_parts(parts)[-1]
    keys = {at.partition("#")[2]: why for at, why in _asked()[1].items() if at.startswith(f"{name}#")}
    if not keys:
        return ""
    old, new = _members(before) or _Members([]), _members(after)
    if new is None:
        return "nca cannot read its JSON, and a program that can may run what it names"
    return next((why for key, why in keys.items() if old.get(key) != new.get(key)), "")


class _Members(dict[str, list[Any]]):
    """The members of a JSON object. A name that comes twice has all its values: readers differ in which they take."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__()
        for name, value in pairs:
            self.setdefault(name, []).append(value)


def _members(text: str) -> _Members | None:
    """None for what is not a JSON object, such as one with comments."""
    try:
        value = json.loads(text.removeprefix("\ufeff") or "{}", object_pairs_hook=_Members)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, _Members) else None


def plain_parts(parts: Sequence[str]) -> tuple[str, ...]:
    """Path components as lax file systems compare them.

    HFS and NTFS may ignore case, characters without width, trailing dots and blanks, and a stream name after a colon
    (git protects its own folder against the same).
    """
    plain = []
    for part in parts:
        visible = "".join(char for char in part if unicodedata.category(char) != "Cf")
        plain.append(unicodedata.normalize("NFKC", visible).casefold().split(":")[0].rstrip(". ") or part)
    return tuple(plain)
