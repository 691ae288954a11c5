"""Programs that work for one call, without keys in their environment: they are killed with the call.

Work that holds Python's lock, or a regular expression, cannot be interrupted in a thread, and nca could not leave.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process, create_subprocess_exec
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from nca.tools.tool import ToolError

_BOOT = "import sys; sys.path += sys.argv[1:]; from {module} import main; main()"
_KEPT = ("PATH", "LANG", "LC_ALL", "TMPDIR")
"""The variables that such a program needs. Others may hold keys, and PYTHON… variables change what is imported."""


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
