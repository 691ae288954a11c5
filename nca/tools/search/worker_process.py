"""Run the search process: without keys in its environment, stopped at a deadline, killed when cancelled."""

from __future__ import annotations

import asyncio
import json
from dataclasses import asdict
from typing import Any

from nca.tools.child_process import python_command, started
from nca.tools.search.worker import SearchRequest
from nca.tools.tool import ToolError

DEADLINE_SECONDS = 10.0
_GRACE_SECONDS = 3.0
"""Time beyond the deadline for the process to start, and to stop by itself."""


async def run_search(request: SearchRequest) -> list[dict[str, Any]]:
    """The records of a search. The last one says how it ended. Raises ToolError."""
    records: list[dict[str, Any]] = []
    command = python_command("nca.tools.search.worker", "pathspec")
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
