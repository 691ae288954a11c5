"""A session that edits and runs commands in a folder."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Iterable
from pathlib import Path

from nca.config.schema import RewindSettings
from nca.file_history.changes import FileChange
from nca.file_history.history import FileHistory
from nca.sessions.store import Store

USUAL = RewindSettings()


class Room:
    """A session in a folder. `head` is the newest message."""

    def __init__(self, root: Path, store: Store, limits: RewindSettings = USUAL, session_id: str = "") -> None:
        self.root, self.head, self.limits = root, 0, limits
        root.mkdir(exist_ok=True)
        if not session_id:
            with store.create(directory=str(root), model="m") as session:
                session_id = session.info.id
        self.session_id = session_id
        self.history = FileHistory(
            store,
            self.session_id,
            root,
            head=lambda: self.head,
            limits=lambda: self.limits,
        )

    def edit(self, name: str, text: str) -> None:
        """As the tools do."""
        self.head += 1
        path, content = self.root / name, text.encode()
        with self.history.recorder.edit(path, content, "write_file"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)

    async def command(self, line: str, *, runs_on: bool = False) -> None:
        """As the shell does."""
        self.head += 1
        async with self.history.recorder.command("shell", line) as recorded:
            recorded.runs_on = runs_on
            await asyncio.to_thread(subprocess.run, ["sh", "-c", line], cwd=self.root, check=True)

    def notices(self) -> list[str]:
        return self.history.recorder.take_notices()

    def texts(self) -> dict[str, str]:
        return {str(one.relative_to(self.root)): one.read_text() for one in self.root.rglob("*") if one.is_file()}


def paths(changes: Iterable[FileChange]) -> list[str]:
    return [one.path for one in changes]
