"""What keeps files from becoming what they are to be, found before any of them is touched."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path, PurePosixPath

from nca.errors import StoreDamaged
from nca.file_history.changes import FileChange
from nca.file_history.disk import look, nearest_folder
from nca.safe_open import open_folder

_IN_THE_WAY = "{} is in the way"


def obstacles(root: Path, changes: Iterable[FileChange]) -> dict[str, str]:
    """The paths that cannot become what they are to be while all others do, each with what is in its way.

    Only folders may be above a file, a folder in which something stays can become nothing else, and what may not be
    written stays as it is.
    """
    found: dict[str, str] = {}
    made = {one.path: one for one in changes}
    may_write: dict[tuple[str, ...], bool] = {}
    # What is in the way of one path may keep another one from being made.
    while blocked := {path: why for path, one in made.items() if (why := _obstacle(root, one, made, may_write))}:
        found |= blocked
        for path in blocked:
            del made[path]
    return found


def _obstacle(
    root: Path, one: FileChange, made: Mapping[str, FileChange], may_write: dict[tuple[str, ...], bool]
) -> str:
    above = PurePosixPath(one.path).parent
    if one.after.kind != "absent":
        for up in [*above.parents, above] if str(above) != "." else []:
            if str(up) != "." and _kind_then(root, str(up), made) not in ("folder", "absent"):
                return _IN_THE_WAY.format(up)
    if (
        one.before.kind == "folder"
        and one.after.kind in ("file", "link")
        and (inside := _stays_in(root, one.path, made))
    ):
        return _IN_THE_WAY.format(inside)
    if one.before.kind == one.after.kind == "folder":
        return ""
    if one.after.kind in ("file", "link"):
        try:
            one.read(one.after)
        except StoreDamaged as error:
            return error.message[:1].lower() + error.message[1:]
    there = nearest_folder(root, above.parts)
    if there not in may_write:
        may_write[there] = "/".join(there) in made or _may_write(root, there)
    return "" if may_write[there] else "permission denied"


def _kind_then(root: Path, path: str, made: Mapping[str, FileChange]) -> str:
    """What will be at a path when all changes are made."""
    return made[path].after.kind if path in made else look(root, path, 0)[0].kind


def _stays_in(root: Path, folder: str, made: Mapping[str, FileChange]) -> str:
    """Something that will still be in a folder when all changes are made; "" if nothing will."""
    waiting = [folder]
    while waiting:
        here = waiting.pop()
        with suppress(OSError), open_folder(str(root), here.split("/")) as opened, opened.entries() as entries:
            for entry in entries:
                inner = f"{here}/{entry.name}"
                if inner not in made or made[inner].after.kind != "absent":
                    return inner
                if made[inner].before.kind == "folder":
                    waiting.append(inner)
    return ""


def _may_write(root: Path, parts: tuple[str, ...]) -> bool:
    try:
        with open_folder(str(root), parts) as folder:
            return os.access(".", os.W_OK | os.X_OK, dir_fd=folder.handle, effective_ids=True)
    except FileNotFoundError:
        return True  # a command has removed the whole workspace: it is made again
    except OSError:
        return False
