"""The changes of a session in its folder. `Recorder`: the record's interface for tools that change files."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path


@dataclass(slots=True)
class Command:
    """A command while it is recorded.

    said     its line or arguments, and its output once there is some: a file that it names is its doing
    runs_on  some of its processes run on when it has ended
    """

    said: str = ""
    runs_on: bool = False


class Recorder:
    @contextmanager
    def edit(self, path: Path, content: bytes, tool: str, unsaved: bytes | None = None) -> Iterator[None]:
        """Around the writing of `content` to a file of the workspace. Blocks, so call it in a thread.

        unsaved  what an editor has of the file and did not save: that is the file before the change
        """
        yield

    @asynccontextmanager
    async def command(self, tool: str, said: str = "") -> AsyncIterator[Command]:
        """Around whatever may change any file of the workspace. `said`: its line or arguments."""
        yield Command(said)

    @asynccontextmanager
    async def background(self, line: str) -> AsyncIterator[None]:
        """Around a command that runs beside others."""
        yield
