"""The tools that search: grep for lines, glob for files.

The search runs in a process without keys in its environment, stopped at a deadline, killed when cancelled.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, ClassVar

from nca.humanize import counted
from nca.tools.files.workspace import Workspace, shown
from nca.tools.programs import python_command, started
from nca.tools.search import ripgrep
from nca.tools.search.ripgrep import hidden_note, left_out_of, share_out
from nca.tools.search.worker import SearchRequest
from nca.tools.tool import Permission, ToolError, ToolOutcome, TypedTool

MAX_RESULTS = 1_000
MAX_FILES = 200
DEADLINE_SECONDS = 10.0
_GRACE_SECONDS = 3.0
"""Time beyond the deadline for the process to start, and to stop by itself."""
_LEFT_OUT = "[files that a rule of the person's keeps from being read were left out]"
_TOO_LONG = "the search took too long and was stopped; narrow the path or simplify the pattern"


class _SearchTool(TypedTool):
    """What both tools share. `program` is ripgrep, if it is installed; it is used where it gives the same answer."""

    permission: ClassVar[Permission] = "read"

    def __init__(
        self, workspace: Workspace, program: Path | None = None, deadline_seconds: float = DEADLINE_SECONDS
    ) -> None:
        self._workspace = workspace
        self._program = program
        self._deadline_seconds = deadline_seconds

    def summarize(self, arguments: dict[str, Any]) -> str:
        where = shown(str(arguments.get("path") or "."))
        only = f" ({shown(str(arguments['glob']))})" if arguments.get("glob") else ""
        return f"{self.name} {shown(str(arguments.get('pattern', '')))} in {where}{only}"

    def _request(self, path: str, pattern: str, glob: str, max_results: int) -> SearchRequest:
        start = self._workspace.resolve(path)
        if not start.exists():
            raise ToolError(f"there is no file or directory {shown(path)}")
        relative = start.relative_to(self._workspace.root).as_posix()
        return SearchRequest(str(self._workspace.root), relative, pattern, glob, max_results, self._deadline_seconds)


class Grep(_SearchTool):
    name: ClassVar[str] = "grep"

    async def call(
        self,
        pattern: Annotated[str, "Regular expression; (?i): any case."],
        path: Annotated[str, "Directory or file."] = ".",
        glob: Annotated[str, "Only such files: *.py, src/**/*.ts."] = "",
        max_results: Annotated[int, "At most 1000."] = 100,
    ) -> ToolOutcome:
        """Search lines of files. Skips ignored files."""
        if not pattern:
            raise ToolError("the pattern is empty")
        most = min(max(1, max_results), MAX_RESULTS)
        request = await asyncio.to_thread(self._request, path, pattern, glob, most)
        records = None
        if self._program is not None:
            records = await ripgrep.search_with(self._program, self._workspace, request)
        if not records:
            *found, last = await _run_search(request)
            is_left_out = left_out_of(self._workspace, request)
            shown_files = [record for record in found if not is_left_out(record["path"])]
            records = _shared([*shown_files, last], most)
        # Said whatever is found, so that it says nothing about what is in those files.
        return _matches(records, [_LEFT_OUT] if self._workspace.reading.has_rules else [])


class Glob(_SearchTool):
    name: ClassVar[str] = "glob"

    async def call(
        self,
        pattern: Annotated[str, "*.py (in any folder), src/**/*.{ts,tsx}."],
        path: Annotated[str, "Directory to begin at."] = ".",
    ) -> ToolOutcome:
        """Find files by name, newest first. Skips ignored files."""
        request = await asyncio.to_thread(self._request, path, "", pattern, MAX_FILES)
        *found, last = await _run_search(request)
        total = int(last.get("files", len(found)))
        lines = [shown(record["path"]) for record in found]
        if total > len(found):
            lines.append(f"[{total - len(found):,} older files are not shown; narrow the pattern]")
        lines += _stopped(last, has_results=bool(found))
        said = "\n".join(lines) or f"[no file matches {shown(pattern)}]"
        return ToolOutcome(said, summary=counted(total, "file"))


def _stopped(last: dict[str, Any], *, has_results: bool) -> list[str]:
    """A note if the search was stopped at its deadline. Raises ToolError if it had found nothing by then."""
    if last["end"] != "deadline":
        return []
    if not has_results:
        raise ToolError(_TOO_LONG)
    return [f"[{_TOO_LONG}]"]


def _shared(records: list[dict[str, Any]], most: int) -> list[dict[str, Any]]:
    """The matches to show, and how the search ended, with what is not shown."""
    *found, last = records
    chosen, hidden = share_out([record["path"] for record in found], most)
    return [*(found[place] for place in chosen), last | {"hidden": hidden}]


def _matches(records: list[dict[str, Any]], rules: Sequence[str] = ()) -> ToolOutcome:
    *found, last = records
    lines = [f"{shown(record['path'])}:{record['line']}:{record['text']}" for record in found]
    hidden = last["hidden"]
    some = f"{len(lines):,} of {len(lines) + sum(hidden.values()):,}" if hidden else f"{len(lines):,}"
    count = f"{some} match{'es' if some != '1' else ''}"
    notes = [*rules, *_stopped(last, has_results=bool(found))]
    if hidden:
        notes.append(hidden_note(hidden, is_all=last["end"] == "done"))
    elif last["end"] == "results":
        notes.append("[there may be more matches; narrow the search or raise max_results]")
    if last.get("long_lines"):
        notes.append(f"[{last['long_lines']:,} long lines were searched only in their first 2,000 characters]")
    if not lines:
        files = f" in {last['files']:,} files" if "files" in last else ""
        lines, count = [f"[no matches{files}]"], "no matches"
    return ToolOutcome("\n".join([*lines, *notes]), summary=count)


async def _run_search(request: SearchRequest) -> list[dict[str, Any]]:
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
