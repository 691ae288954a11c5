"""Programs that search files: started without keys, stopped at a deadline, gone when the answer is no longer wanted."""

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

from nca.tools.search.worker import FilesRequest, Request
from nca.tools.tool import ToolError

DEADLINE_SECONDS = 10.0
_GRACE_SECONDS = 3.0
"""What the search may need beyond its deadline to start, and to stop by itself."""
_BOOT = "import sys; sys.path += sys.argv[1:]; from nca.tools.search.worker import main; main()"
_KEPT = ("PATH", "SYSTEMROOT", "LANG", "LC_ALL", "TMPDIR", "TEMP")
"""What a search needs of the environment. Keys stand in others, and PYTHON… variables change what is imported."""


async def run_search(request: Request | FilesRequest) -> list[dict[str, Any]]:
    """The records of a search; one that had to be stopped ends with a record that says so."""
    records: list[dict[str, Any]] = []
    # -I: neither the project's folder nor the environment says what is imported.
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
    """A running program, killed on leaving. Raises ToolError where it does not start."""
    environment = {name: os.environ[name] for name in _KEPT if name in os.environ}
    try:
        process = await asyncio.create_subprocess_exec(
            *command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, limit=1 << 20, env=environment, cwd=cwd
        )
    except OSError as error:
        raise ToolError(f"the search could not be started ({error.strerror})") from error
    try:
        await _send(process, sent)
        yield process
    finally:
        # Whatever it had to say is said.
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.communicate()


async def _send(process: Process, raw: bytes) -> None:
    assert process.stdin is not None
    try:
        process.stdin.write(raw)
        await process.stdin.drain()
        process.stdin.close()
    except ConnectionError as error:
        raise ToolError("the search could not be started") from error


def _import_folders() -> list[str]:
    """Where nca and pathspec lie, for a Python that is told nothing by its surroundings."""
    own = str(Path(__file__).resolve().parents[3])
    spec = importlib.util.find_spec("pathspec")
    other = str(Path(spec.origin).resolve().parents[1]) if spec and spec.origin else own
    return list(dict.fromkeys((own, other)))
