"""Run the search process: without keys in its environment, stopped at a deadline, killed when cancelled."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import json
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from nca.tools.search.worker import SearchRequest
from nca.tools.tool import ToolError

DEADLINE_SECONDS = 10.0
_GRACE_SECONDS = 3.0
"""Time beyond the deadline for the process to start, and to stop by itself."""
_BOOT = "import sys; sys.path += sys.argv[1:]; from nca.tools.search.worker import main; main()"
_KEPT = ("PATH", "LANG", "LC_ALL", "TMPDIR")
"""The variables that a search needs. Others may hold keys, and PYTHON… variables change what is imported."""


async def run_search(request: SearchRequest) -> list[dict[str, Any]]:
    """The records of a search. The last one says how it ended. Raises ToolError."""
    records: list[dict[str, Any]] = []
    # -I: neither the working directory nor the environment can add modules.
    command = (sys.executable, "-I", "-c", _BOOT, *_import_folders())
    try:
        async with asyncio.timeout(request.deadline_seconds + _GRACE_SECONDS):
            async with started(command, json.dumps(asdict(request)).encode()) as process:
                assert process.stdout is not None
                async for line in process.stdout:
                    records.append(json.loads(line))
    except TimeoutError:
        records.append({"end": "deadline"})
    last = records[-1] if records else {}
    if "error" in last:
        raise ToolError(str(last["error"]))
    if "end" not in last:
        raise ToolError("the search ended before it was done")
    return records


@contextlib.asynccontextmanager
async def started(command: Sequence[str], sent: bytes = b"", cwd: str | None = None) -> AsyncIterator[Process]:
    """Start a program, send it `sent`, and kill it at the end of the block. Raises ToolError if it does not start."""
    environment = {name: os.environ[name] for name in _KEPT if name in os.environ}
    try:
        process = await asyncio.create_subprocess_exec(
            *command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, limit=1 << 20, env=environment, cwd=cwd
        )
    except OSError as error:
        raise ToolError(f"the search could not be started ({error.strerror})") from error
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


def _import_folders() -> list[str]:
    """The folders of nca and pathspec, for an isolated Python."""
    own = str(Path(__file__).resolve().parents[3])
    spec = importlib.util.find_spec("pathspec")
    other = str(Path(spec.origin).resolve().parents[1]) if spec and spec.origin else own
    return list(dict.fromkeys((own, other)))
