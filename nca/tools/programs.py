"""Find programs on the PATH, but never inside the project: a project must not be able to supply its own `ls`.

Some work for one call only, without keys in their environment, and are killed with the call: work that holds Python's
lock, or a regular expression, cannot be interrupted in a thread, and nca could not leave.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process, create_subprocess_exec
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from nca.tools.tool import ToolError

_SHELLS = ("/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash")
_BOOT = "import sys; sys.path += sys.argv[1:]; from {module} import main; main()"
_KEPT = ("PATH", "LANG", "LC_ALL", "TMPDIR")
"""The variables that such a program needs. Others may hold keys, and PYTHON… variables change what is imported."""


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


def python_command(module: str, package: str) -> tuple[str, ...]:
    """The command line that runs the function `main` of a module of nca, which imports one other package."""
    own = str(Path(__file__).resolve().parents[2])
    spec = importlib.util.find_spec(package)
    other = str(Path(spec.origin).resolve().parents[1]) if spec and spec.origin else own
    # -I: neither the working directory nor the environment can add modules.
    return (sys.executable, "-I", "-c", _BOOT.format(module=module), *dict.fromkeys((own, other)))


@contextlib.asynccontextmanager
async def started(command: Sequence[str], sent: bytes = b"", cwd: str | None = None) -> AsyncIterator[Process]:
    """Start a program, send it `sent`, and kill it at the end of the block. Raises ToolError if it does not start."""
    environment = {name: os.environ[name] for name in _KEPT if name in os.environ}
    try:
        process = await create_subprocess_exec(
            *command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, limit=1 << 20, env=environment, cwd=cwd
        )
    except OSError as error:
        raise ToolError(f"{Path(command[0]).name} could not be started ({error.strerror})") from error
    try:
        assert process.stdin is not None
        with contextlib.suppress(ConnectionError):
            process.stdin.write(sent)
            await process.stdin.drain()
            process.stdin.close()
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.communicate()
