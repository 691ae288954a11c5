"""Tools that search: grep for lines, glob for files."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Annotated, Any, ClassVar

from nca.tools.files.workspace import Workspace, shown
from nca.tools.search import ripgrep
from nca.tools.search.worker import FilesRequest, Request
from nca.tools.search.worker_process import DEADLINE_SECONDS, run_search
from nca.tools.tool import Permission, ToolError, ToolOutcome, TypedTool

MAX_RESULTS = 1_000
MAX_FILES = 200
_TOO_LONG = "the search took too long and was stopped; narrow the path or simplify the pattern"


class Grep(TypedTool):
    """`program`: ripgrep, where there is one; what it cannot do the same way is searched without it."""

    name: ClassVar[str] = "grep"
    permission: ClassVar[Permission] = "read"

    def __init__(
        self, workspace: Workspace, program: Path | None = None, deadline_seconds: float = DEADLINE_SECONDS
    ) -> None:
        self._workspace = workspace
        self._program = program
        self._deadline_seconds = deadline_seconds

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
        start = await asyncio.to_thread(_start, self._workspace, path)
        most = min(max(1, max_results), MAX_RESULTS)
        request = Request(str(self._workspace.root), start, pattern, glob, most, self._deadline_seconds)
        records = None
        if self._program is not None:
            records = await ripgrep.search_with(self._program, self._workspace, request)
        return _answer(records if records is not None else await run_search(request))

    def summarize(self, arguments: dict[str, Any]) -> str:
        where = shown(str(arguments.get("path") or "."))
        only = f" ({shown(str(arguments['glob']))})" if arguments.get("glob") else ""
        return f"grep {shown(str(arguments.get('pattern', '')))} in {where}{only}"


class Glob(TypedTool):
    name: ClassVar[str] = "glob"
    permission: ClassVar[Permission] = "read"

    def __init__(self, workspace: Workspace, deadline_seconds: float = DEADLINE_SECONDS) -> None:
        self._workspace = workspace
        self._deadline_seconds = deadline_seconds

    async def call(
        self,
        pattern: Annotated[str, "*.py (in any folder), src/**/*.{ts,tsx}."],
        path: Annotated[str, "Directory to begin at."] = ".",
    ) -> ToolOutcome:
        """Find files by name, newest first. Skips ignored files."""
        start = await asyncio.to_thread(_start, self._workspace, path)
        request = FilesRequest(str(self._workspace.root), start, pattern, MAX_FILES, self._deadline_seconds)
        *found, last = await run_search(request)
        total = int(last.get("files", len(found)))
        lines = [shown(record["path"]) for record in found]
        if total > len(found):
            lines.append(f"[{total - len(found):,} older files are not shown; narrow the pattern]")
        if last["end"] == "deadline":
            if not found:
                raise ToolError(_TOO_LONG)
            lines.append(f"[{_TOO_LONG}]")
        count = f"{total:,} file{'s' if total != 1 else ''}"
        return ToolOutcome("\n".join(lines) or f"[no file fits {shown(pattern)}]", summary=count)

    def summarize(self, arguments: dict[str, Any]) -> str:
        where = shown(str(arguments.get("path") or "."))
        return f"glob {shown(str(arguments.get('pattern', '')))} in {where}"


def _start(workspace: Workspace, name: str) -> str:
    """The place to begin at, from the root with slashes."""
    path = workspace.resolve(name)
    if not path.exists():
        raise ToolError(f"there is no file or directory {shown(name)}")
    return path.relative_to(workspace.root).as_posix()


def _answer(records: list[dict[str, Any]]) -> ToolOutcome:
    *found, last = records
    matches = [f"{shown(record['path'])}:{record['line']}:{record['text']}" for record in found]
    remarks = []
    if last["end"] == "deadline":
        remarks.append(_TOO_LONG)
    elif last["end"] == "results":
        remarks.append(f"only the first {len(matches):,} matches are shown; narrow the search or raise max_results")
    if last.get("long_lines"):
        remarks.append(f"{last['long_lines']:,} long lines were searched only in their first 2,000 characters")
    if last["end"] == "deadline" and not matches:
        raise ToolError(_TOO_LONG)
    count = f"{len(matches):,} match{'es' if len(matches) != 1 else ''}"
    if not matches:
        files = f" in {last['files']:,} files" if "files" in last else ""
        matches, count = [f"[no matches{files}]"], "no matches"
    return ToolOutcome("\n".join([*matches, *(f"[{remark}]" for remark in remarks)]), summary=count)
