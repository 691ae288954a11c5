"""Which sessions a client may see: those of its own project, of projects that a person names, or all.

The client's project is the repository around the folder that it starts the server in. A client that starts it
elsewhere, as some editors do in the home directory, may name its folders as roots. The home directory, and what is
above it, is no project: it has nearly everything below it.
"""

from __future__ import annotations

import asyncio
import os
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from nca.agent.instruction_files import Project, real_home
from nca.errors import UsageError
from nca.tools.tool import ToolError

_ROOTS_SECONDS = 2.0
"""How long a client may take to name its roots."""
_MOST_ROOTS = 20


@dataclass(slots=True)
class Scope:
    """directories: sessions in these and below them; None: all sessions. asks_for_roots: as long as there are none."""

    directories: tuple[str, ...] | None = None
    asks_for_roots: bool = False

    @classmethod
    def of_project(cls, directory: Path) -> Scope:
        """The project around a directory."""
        found = _project(directory)
        return cls(_both_names([found]) if found else (), asks_for_roots=found is None)

    @classmethod
    def of_directories(cls, directories: Iterable[Path]) -> Scope:
        """Raises UsageError for a folder that there is not."""
        paths = [one.expanduser().absolute() for one in directories]
        if missing := [path for path in paths if not path.is_dir()]:
            raise UsageError(f"--directory: there is no folder {missing[0]}.")
        return cls(_both_names(paths))

    @property
    def allowed(self) -> tuple[str, ...] | None:
        """The directories, None for all. Raises ToolError if there is none."""
        if self.directories == ():
            raise ToolError(
                "no sessions can be shown: this client was started outside of a project and names no roots; the user"
                " can allow folders or all sessions, see nca mcp install --help"
            )
        return self.directories

    def __str__(self) -> str:
        match self.directories:
            case None:
                return "all projects"
            case ():
                return "the project that the client names"
            case some:
                return ", ".join(dict.fromkeys(os.path.realpath(one) for one in some))

    async def learn(self, session: Any) -> None:
        """Ask the client for its roots, where they are what says which project it is in.

        session: the SDK's ServerSession
        """
        if not self.asks_for_roots:
            return
        offered = session.client_capabilities
        if offered is None or offered.roots is None or not session.can_send_request:
            return
        from mcp import MCPError

        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # deprecated since 2026-07-28, and all that older clients have
                found = await asyncio.wait_for(session.list_roots(), _ROOTS_SECONDS)
        except (TimeoutError, MCPError):
            self.asks_for_roots = False
            return
        named = (urlsplit(str(root.uri)) for root in found.roots[:_MOST_ROOTS])
        folders = [Path(unquote(one.path)) for one in named if one.scheme == "file"]
        self.directories = _both_names([folder for one in folders if (folder := _project(one))])


def _project(directory: Path) -> Path | None:
    """The repository around a directory, or the directory; None for the home directory and what is above it."""
    home, real = real_home(), Path(os.path.realpath(directory))
    for one in (Project.around(real, home).root, real):
        if one is not None and not home.is_relative_to(one):
            return one
    return None


def _both_names(paths: Sequence[Path]) -> tuple[str, ...]:
    """The paths as they are written and as they are without links: agents name either."""
    return tuple(dict.fromkeys(name for path in paths for name in (str(path), os.path.realpath(path))))
