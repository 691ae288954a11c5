"""grep by ripgrep, where it is installed: it finds the places, nca reads the lines.

So whatever it walks into, what is shown was opened inside the root and looks the same as without it. What it cannot do
as nca.tools.search.worker does (other regular expressions, globs with folders) is left to that: `None` is the answer.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from nca.tools.files.workspace import Workspace
from nca.tools.search.walk import SKIPPED_FOLDERS
from nca.tools.search.worker import MAX_LINE_CHARS, SHOWN_CHARS, Request, around
from nca.tools.search.worker_process import started
from nca.tools.tool import ToolError

_Place = tuple[str, int, int, int]
"""Path from the root, line, column in bytes from 1, the line's first byte in the file."""
_LINE = re.compile(rb"(?:\./)?([^\0]*)\0(\d+):(\d+):(\d+):")
_SIMPLE_GLOB = re.compile(r"[\w.*?{},+-]{1,200}")
_BEFORE_BYTES, _SHOWN_BYTES = 4 * SHOWN_CHARS, 12 * SHOWN_CHARS
_OPTIONS = (
    *("--no-config", "--no-messages", "--color=never", "--no-heading", "--with-filename", "--sort=path"),
    # The line itself is not wanted (--max-columns=1): it may be 100 MB long.
    *("--null", "--line-number", "--column", "--byte-offset", "--max-columns=1", "--encoding=none", "--crlf"),
    *("--hidden", "--no-ignore-dot", "--no-ignore-exclude", "--no-ignore-global"),
)


def locate(root: Path) -> Path | None:
    """ripgrep on the person's PATH; never one of the project's own, nor one that depends on the working directory."""
    name = "rg.exe" if sys.platform == "win32" else "rg"
    for folder in os.get_exec_path():
        program = Path(folder, name)
        if Path(folder).is_absolute() and program.is_file() and os.access(program, os.X_OK):
            return None if Path(os.path.realpath(program)).is_relative_to(root) else program
    return None


async def search_with(program: Path, workspace: Workspace, request: Request) -> list[dict[str, Any]] | None:
    """The records that nca.tools.search.worker would give, or None where that has to be asked."""
    command = _command(program, request)
    if command is None:
        return None
    places: list[_Place] = []
    end = "done"
    try:
        async with asyncio.timeout(request.deadline_seconds):
            async with started(command, cwd=request.root) as process:
                assert process.stdout is not None
                async for line in process.stdout:
                    if match := _LINE.match(line):
                        places.append((os.fsdecode(match[1]), int(match[2]), int(match[3]), int(match[4])))
                    if len(places) > request.max_results:
                        end = "results"
                        break
                else:
                    is_failed = await process.wait() not in (0, 1)
                    # Nothing in a folder that is ignored itself: it was named, so it is to be searched.
                    if not places and (is_failed or request.start != "."):
                        return None
    except TimeoutError:
        end = "deadline"
    except (ToolError, ValueError):
        # It is not a program after all, or writes lines that no file name explains.
        return None
    shown = await asyncio.to_thread(lambda: list(_read(workspace, places[: request.max_results])))
    return [*shown, {"end": end}]


def _command(program: Path, request: Request) -> list[str] | None:
    """None where ripgrep would look at other files than nca.tools.search.walk does."""
    command = [str(program), *_OPTIONS, *(f"--glob=!{folder}" for folder in sorted(SKIPPED_FOLDERS))]
    if request.start == ".":
        # Of what stands above the root, nothing counts.
        command += ["--no-require-git", "--no-ignore-parent"]
    elif not Path(request.root, ".git").exists():
        # What the folders above the start say counts, but only up to the root: ripgrep stops at a repository alone.
        return None
    if glob := request.glob.strip():
        if not _SIMPLE_GLOB.fullmatch(glob):
            return None
        # As a type of files: --glob would overrule .gitignore.
        command += [f"--type-add=nca:{glob}", "--type=nca"]
    return [*command, f"--regexp={request.pattern}", "--", "./" if request.start == "." else f"./{request.start}"]


def _read(workspace: Workspace, places: list[_Place]) -> Iterator[dict[str, Any]]:
    """The lines at these places; a file that is no longer what it was is left out."""
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
        text = line.decode("utf-8", "replace").rstrip("\r")[:MAX_LINE_CHARS]
        shown = around(text, min(len(before), len(text)))
        yield {"path": name, "line": number, "text": ("…" if skipped and shown[:1] != "…" else "") + shown}
