"""The tool that searches files: grep."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from pathlib import Path
from typing import Annotated, Any, ClassVar

from nca.tools.tool import Permission, ToolError, ToolOutcome, TypedTool
from nca.tools.workspace import Workspace, shown

MAX_RESULTS = 1_000
DEADLINE_SECONDS = 10.0
_GRACE_SECONDS = 3.0
"""What the search may need beyond its deadline to start, and to stop by itself."""
_PROGRAM = Path(__file__).with_name("search.py")


class Grep(TypedTool):
    name: ClassVar[str] = "grep"
    permission: ClassVar[Permission] = "read"

    def __init__(self, workspace: Workspace, deadline_seconds: float = DEADLINE_SECONDS) -> None:
        self._workspace = workspace
        self._deadline_seconds = deadline_seconds

    async def call(
        self,
        pattern: Annotated[str, "A Python regular expression, matched within lines; (?i) ignores case."],
        path: Annotated[str, "The directory or file to search, relative to the working directory."] = ".",
        glob: Annotated[str, "Only files whose name matches, such as *.py or src/**/*.{ts,tsx}."] = "",
        max_results: Annotated[int, "How many matching lines to show, at most 1000."] = 100,
    ) -> ToolOutcome:
        """Search the lines of text files. Answers `path:line:text`; what .gitignore excludes is left out."""
        if not pattern:
            raise ToolError("the pattern is empty")
        start = await asyncio.to_thread(self._start, path)
        request = {
            "root": str(self._workspace.root),
            "start": start,
            "pattern": pattern,
            "glob": glob,
            "max_results": min(max(1, max_results), MAX_RESULTS),
            "deadline_seconds": self._deadline_seconds,
        }
        return _answer(await self._search(request))

    def summarize(self, arguments: dict[str, Any]) -> str:
        where = shown(str(arguments.get("path") or "."))
        only = f" ({shown(str(arguments['glob']))})" if arguments.get("glob") else ""
        return f"grep {shown(str(arguments.get('pattern', '')))} in {where}{only}"

    def _start(self, name: str) -> str:
        path = self._workspace.resolve(name)
        if not path.exists():
            raise ToolError(f"there is no file or directory {shown(name)}")
        return path.relative_to(self._workspace.root).as_posix()

    async def _search(self, request: dict[str, Any]) -> list[dict[str, Any]]:
        """The records of the search; without a record of the end, it had to be stopped."""
        records: list[dict[str, Any]] = []
        # -P: the folder of search.py is no place to import from, it has modules with common names.
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-P", str(_PROGRAM), stdin=PIPE, stdout=PIPE, stderr=DEVNULL, limit=1 << 20
        )
        try:
            async with asyncio.timeout(self._deadline_seconds + _GRACE_SECONDS):
                await _send(process, json.dumps(request).encode())
                assert process.stdout is not None
                async for line in process.stdout:
                    records.append(json.loads(line))
        except TimeoutError:
            records.append({"end": "deadline"})
        finally:
            # Whatever it had to say is said.
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.communicate()
        return records


async def _send(process: Process, raw: bytes) -> None:
    assert process.stdin is not None
    try:
        process.stdin.write(raw)
        await process.stdin.drain()
        process.stdin.close()
    except ConnectionError as error:
        raise ToolError("the search could not be started") from error


def _answer(records: list[dict[str, Any]]) -> ToolOutcome:
    last = records[-1] if records else {}
    if "error" in last:
        raise ToolError(str(last["error"]))
    if "end" not in last:
        raise ToolError("the search ended before it was done")
    matches = [f"{shown(record['path'])}:{record['line']}:{record['text']}" for record in records[:-1]]
    remarks = []
    if last["end"] == "deadline":
        remarks.append("the search took too long and was stopped; narrow the path or simplify the pattern")
    elif last["end"] == "results":
        remarks.append(f"only the first {len(matches):,} matches are shown; narrow the search or raise max_results")
    if last.get("long_lines"):
        remarks.append(f"{last['long_lines']:,} long lines were searched only in their first 2,000 characters")
    if last["end"] == "deadline" and not matches:
        raise ToolError(remarks[0])
    if not matches:
        matches = [f"[no matches in {last['files']:,} files]"]
        count = "no matches"
    else:
        count = f"{len(matches):,} match{'es' if len(matches) != 1 else ''}"
    return ToolOutcome("\n".join([*matches, *(f"[{remark}]" for remark in remarks)]), summary=count)
