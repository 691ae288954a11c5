"""Find programs on the PATH, but never inside the project: a project must not be able to supply its own `ls`."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

_SHELLS = ("/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash")


def find_program(name: str, path: str, *, outside: Path) -> Path | None:
    """The program that a PATH leads to, or None.

    Relative entries of the PATH are skipped. If the first match is in the folder `outside`, or is a link to a file
    there, the answer is None, even if another match follows: a shell would run the first one.
    """
    entries = [entry for entry in path.split(os.pathsep) if Path(entry).is_absolute()]
    found = shutil.which(name, path=os.pathsep.join(entries)) if entries else None
    if found is None:
        return None
    real = Path(os.path.realpath(found))
    return None if real.is_relative_to(outside) or Path(found).is_relative_to(outside) else Path(found)


def path_outside(path: str, *, outside: Path) -> str:
    """A PATH without relative entries and without folders of the project, for a program that starts others."""
    entries = (entry for entry in path.split(os.pathsep) if Path(entry).is_absolute())
    kept = [entry for entry in entries if not Path(os.path.realpath(entry)).is_relative_to(outside)]
    return os.pathsep.join(kept) or os.defpath


def find_shell(path: str, *, outside: Path) -> Path | None:
    """bash if there is one, else sh."""
    installed = (Path(shell) for shell in _SHELLS if os.access(shell, os.X_OK))
    found = next(installed, None) or find_program("bash", path, outside=outside)
    return found or (Path("/bin/sh") if os.access("/bin/sh", os.X_OK) else None)
