"""Where a program is: only outside of the project, so that no file of a project passes for `ls`."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

_SHELLS = ("/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash", "/bin/sh")


def find_program(name: str, path: str, *, outside: Path) -> Path | None:
    """The program that a PATH leads to, or None.

    Relative entries of the PATH are passed over; what lies inside of `outside`, or leads there, is refused, also where
    another one stands further on: it is what a shell would run.
    """
    entries = [entry for entry in path.split(os.pathsep) if Path(entry).is_absolute()]
    found = shutil.which(name, path=os.pathsep.join(entries)) if entries else None
    if found is None:
        return None
    real = Path(os.path.realpath(found))
    return None if real.is_relative_to(outside) or Path(found).is_relative_to(outside) else Path(found)


def find_shell(path: str, *, outside: Path) -> Path | None:
    """bash where there is one, else sh."""
    for shell in _SHELLS[:-1]:
        if os.access(shell, os.X_OK):
            return Path(shell)
    found = find_program("bash", path, outside=outside)
    return found or (Path(_SHELLS[-1]) if os.access(_SHELLS[-1], os.X_OK) else None)
