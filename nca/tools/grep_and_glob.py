"""The tools that search: grep for lines, glob for files.

The search runs in a process without keys in its environment, stopped at a deadline, killed when cancelled.

If ripgrep is installed, it finds the places and nca reads the lines. So every line that is shown was read from a file
opened inside the root, and looks the same as without ripgrep. For searches that ripgrep would answer differently (some
regular expressions, globs with folders) the result is None, and nca.tools.search_worker does them.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Any, ClassVar

from nca.humanize import counted
from nca.tools import search_worker
from nca.tools.files.workspace import Workspace, shown
from nca.tools.programs import python_command, started
from nca.tools.search_worker import SearchRequest, around
from nca.tools.tool import Permission, ToolError, ToolOutcome, TypedTool

MAX_RESULTS = 1_000
MAX_FILES = 200
DEADLINE_SECONDS = 10.0
_GRACE_SECONDS = 3.0
"""Time beyond the deadline for the process to start, and to stop by itself."""
_LEFT_OUT = "[files that a rule of the person's keeps from being read were left out]"
_TOO_LONG = "the search took too long and was stopped; narrow the path or simplify the pattern"


@dataclass(eq=False)
class _SearchTool(TypedTool):
    """The common part of both tools. `program` is ripgrep, if installed; it is used if it gives the same answer."""

    permission: ClassVar[Permission] = "read"

    workspace: Workspace
    program: Path | None = None
    deadline_seconds: float = DEADLINE_SECONDS

    def summarize(self, arguments: dict[str, Any]) -> str:
        where = shown(str(arguments.get("path") or "."))
        only = f" ({shown(str(arguments['glob']))})" if arguments.get("glob") else ""
        return f"{self.name} {shown(str(arguments.get('pattern', '')))} in {where}{only}"

    def _request(self, path: str, pattern: str, glob: str, max_results: int) -> SearchRequest:
        start = self.workspace.resolve(path)
        if not os.path.exists(start):
            raise ToolError(f"there is no file or directory {shown(path)}")
        relative = start.relative_to(self.workspace.root).as_posix()
        return SearchRequest(str(self.workspace.root), relative, pattern, glob, max_results, self.deadline_seconds)


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
        records = await search_with(self.program, self.workspace, request) if self.program is not None else None
        if not records:
            *found, last = await _run_search(request)
            is_left_out = left_out_of(self.workspace, request)
            found = [record for record in found if not is_left_out(record["path"])]
            chosen, hidden = share_out([record["path"] for record in found], most)
            records = [*(found[place] for place in chosen), last | {"hidden": hidden}]
        # Always said, so that it says nothing about the content of those files.
        return _matches(records, [_LEFT_OUT] if self.workspace.reading.has_rules else [])


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


def _matches(records: list[dict[str, Any]], rules: Sequence[str] = ()) -> ToolOutcome:
    *found, last = records
    lines = [f"{shown(record['path'])}:{record['line']}:{record['text']}" for record in found]
    hidden, is_all = last["hidden"], last["end"] == "done"
    of = f" of {'' if is_all else 'at least '}{len(lines) + sum(hidden.values()):,}" if hidden else ""
    some = f"{len(lines):,}{of}"
    count = f"{some} match{'es' if some != '1' else ''}"
    notes = [*rules, *_stopped(last, has_results=bool(found))]
    if hidden:
        notes.append(hidden_note(hidden, is_all=is_all))
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
    command = python_command("nca.tools.search_worker", "pathspec")
    try:
        async with asyncio.timeout(request.deadline_seconds + _GRACE_SECONDS):
            async with started(command, json.dumps(asdict(request)).encode()) as process:
                assert process.stdout is not None
                async for line in process.stdout:
                    records.append(json.loads(line))
    except TimeoutError:
        # It may have said so itself just before.
        if not (records and "end" in records[-1]):
            records.append({"end": "deadline"})
    last = records[-1] if records else {}
    if "error" in last:
        raise ToolError(str(last["error"]))
    if "end" not in last:
        raise ToolError("the search ended before it was done")
    return records


_NAMED = 5


def share_out(files: Sequence[str], most: int) -> tuple[list[int], dict[str, int]]:
    """Which matches to show, by their places, and how many of each file are not shown.

    files  the file of each match
    most   how many may be shown: evenly many of each file, the first ones; with more files than that, one of some
    """
    counts, room = Counter(files), dict[str, int]()
    left = most
    for later, (file, count) in zip(range(len(counts), 0, -1), reversed(counts.most_common()), strict=True):
        room[file] = min(count, left // later)
        left -= room[file]
    hidden = {file: count - room[file] for file, count in counts.items() if count > room[file]}
    chosen: list[int] = []
    for place, file in enumerate(files):
        if room[file]:
            room[file] -= 1
            chosen.append(place)
    return chosen, hidden


def left_out_of(workspace: Workspace, request: SearchRequest) -> Callable[[str], bool]:
    """Whether a rule about reading leaves a file out, by its path from the root.

    The file that the search itself names is not left out: the call was decided by its path.
    """

    @cache
    def is_left_out(name: str) -> bool:
        return name != request.start and workspace.reading.is_hidden(workspace.root / name)

    return is_left_out


def hidden_note(hidden: Mapping[str, int], *, is_all: bool) -> str:
    """A line about the results not shown. is_all: there are no more than these."""
    named = sorted(hidden.items(), key=lambda one: -one[1])[:_NAMED]
    files = ", ".join(f"{shown(file)} {count:,}" for file, count in named)
    if others := len(hidden) - len(named):
        files += f" and {counted(others, 'other file')}"
    total = sum(hidden.values())
    some = f"{'' if is_all else 'at least '}{counted(total, 'more match', 'more matches')}"
    return f"[{some} not shown: {files}; search one file, or raise max_results]"


_Place = tuple[str, int, int, int]
"""Path from the root, line number, column in bytes from 1, offset of the line in the file."""
_LINE = re.compile(rb"(?:\./)?([^\0]*)\0(\d+):(\d+):(\d+):")
_SIMPLE_GLOB = re.compile(r"[\w.*?{},+-]{1,200}")
_BEFORE_BYTES, _SHOWN_BYTES = 4 * search_worker.SHOWN_CHARS, 12 * search_worker.SHOWN_CHARS
_OPTIONS = (
    *("--no-config", "--no-messages", "--color=never", "--no-heading", "--with-filename", "--sort=path"),
    # --max-columns=1: the line itself is not wanted, as it may be 100 MB long.
    *("--null", "--line-number", "--column", "--byte-offset", "--max-columns=1", "--encoding=none", "--crlf"),
    *("--hidden", "--no-ignore-dot", "--no-ignore-exclude", "--no-ignore-global"),
)


async def search_with(program: Path, workspace: Workspace, request: SearchRequest) -> list[dict[str, Any]] | None:
    """The records that nca.tools.search_worker would give, or None if only that can answer."""
    command = _command(program, request)
    if command is None:
        return None
    places: list[_Place] = []
    is_left_out = left_out_of(workspace, request)
    end = "done"
    try:
        async with asyncio.timeout(request.deadline_seconds) as limit:
            async with started(command, cwd=request.root) as process:
                assert process.stdout is not None
                async for line in process.stdout:
                    if (match := _LINE.match(line)) and not is_left_out(name := os.fsdecode(match[1])):
                        places.append((name, int(match[2]), int(match[3]), int(match[4])))
                    if len(places) == request.max_results and (when := limit.when()) is not None:
                        limit.reschedule(min(when, asyncio.get_running_loop().time() + search_worker.EXTRA_SECONDS))
                    if len(places) > request.max_results * search_worker.LOOKED_AT:
                        places.pop()
                        end = "results"
                        break
                else:
                    is_failed = await process.wait() not in (0, 1)
                    # ripgrep skips an ignored folder even if it is named, but such a folder should be searched.
                    if not places and (is_failed or request.start != "."):
                        return None
    except TimeoutError:
        end = "deadline" if len(places) < request.max_results else "results"
    except (ToolError, ValueError):
        # It is not a program, or not ripgrep.
        return None
    chosen, hidden = share_out([place[0] for place in places], request.max_results)
    shown = await asyncio.to_thread(lambda: list(_read(workspace, [places[place] for place in chosen])))
    return [*shown, {"end": end, "hidden": hidden}]


def _command(program: Path, request: SearchRequest) -> list[str] | None:
    """The command line, or None if ripgrep would look at other files than nca.tools.search_worker."""
    command = [str(program), *_OPTIONS, *(f"--glob=!{folder}" for folder in sorted(search_worker.SKIPPED_FOLDERS))]
    if request.start == ".":
        # Ignore files above the root do not count.
        command += ["--no-require-git", "--no-ignore-parent"]
    elif not os.path.exists(Path(request.root, ".git")):
        # Ignore files between the root and the start count, but none above: ripgrep stops only at a repository.
        return None
    if glob := request.glob.strip():
        if not _SIMPLE_GLOB.fullmatch(glob):
            return None
        # Passed as a file type, because --glob would override .gitignore.
        command += [f"--type-add=nca:{glob}", "--type=nca"]
    return [*command, f"--regexp={request.pattern}", "--", "./" if request.start == "." else f"./{request.start}"]


def _read(workspace: Workspace, places: list[_Place]) -> Iterator[dict[str, Any]]:
    """Read the lines at these places, except in files that have gone or become binary."""
    for name, number, column, first_byte in places:
        try:
            with workspace.open(workspace.resolve(name), name) as file:
                if b"\0" in file.read(8192):
                    continue
                skipped = max(0, column - 1 - _BEFORE_BYTES)
                file.seek(first_byte + skipped)
                piece = file.read(_SHOWN_BYTES)
        except ToolError:
            continue
        line = piece.partition(b"\n")[0]
        before = line[: column - 1 - skipped].decode("utf-8", "replace")
        text = line.decode("utf-8", "replace").rstrip("\r")[: search_worker.MAX_LINE_CHARS]
        shown = around(text, min(len(before), len(text)))
        yield {"path": name, "line": number, "text": ("…" if skipped and shown[:1] != "…" else "") + shown}
