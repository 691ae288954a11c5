"""The parts of a turn, and those of a conversation: what its modules are given when they are built."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nca.agent.approvals import Approvals
from nca.agent.archive import Archive
from nca.agent.background import Background
from nca.agent.compactor import Compactor
from nca.agent.fallbacks import Fallbacks
from nca.agent.hooks import Hooks
from nca.agent.memory import Memory
from nca.agent.project_instructions import NestedInstructions
from nca.agent.spending import Spending
from nca.agent.user_input import TaskInput, UserInput
from nca.agent.window import Window
from nca.errors import UsageError
from nca.events import Listener
from nca.file_history.history import FileHistory
from nca.redact import Redactor
from nca.tools.mcp.servers import Servers
from nca.tools.shell.jobs import Jobs
from nca.tools.toolbox import Toolbox


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """The parts of a turn. A conversation has one set of them, and each of its subtasks another.

    outputs: the folder for tool output that is too large to show; None: it is not kept.
    """

    directory: Path
    window: Window
    toolbox: Toolbox
    models: Fallbacks
    compactor: Compactor
    spending: Spending
    approvals: Approvals
    redactor: Redactor
    archive: Archive
    outputs: Path | None
    nested: NestedInstructions
    hooks: Hooks
    files: FileHistory
    jobs: Jobs
    user_input: UserInput | TaskInput
    emit: Listener


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationParts(Parts):
    """The parts of a conversation beside those that its turns run with."""

    compactor: Background
    user_input: UserInput
    memory: Memory
    servers: Servers


class OneTurn:
    """Entered while a turn runs. Raises UsageError for a second one, whoever begins it: the two would be mixed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._thread = 0
        self._task: asyncio.Task[Any] | None = None
        self._has_ended = asyncio.Event()
        self._is_stopped = False

    def __enter__(self) -> None:
        with self._lock:
            if self._thread:
                raise self._refusal()
            self._thread = threading.get_ident()
        self._task, self._has_ended, self._is_stopped = asyncio.current_task(), asyncio.Event(), False

    def __exit__(self, *_: object) -> None:
        if self._task is not None and self._is_stopped:
            # Whoever waits for the turn goes on: it was not cancelled, its turn was.
            self._task.uncancel()
        self._task, self._thread = None, 0
        self._has_ended.set()

    async def stop(self) -> None:
        """End the turn that runs, if one does, as cancelling it would. Raises UsageError in another thread."""
        if self._thread not in (0, threading.get_ident()):
            raise self._refusal()
        if self._task is None:
            return
        if not self._is_stopped:
            self._is_stopped = self._task.cancel()
        await self._has_ended.wait()

    def _refusal(self) -> UsageError:
        where = "another message" if self._thread == threading.get_ident() else "in another thread"
        return UsageError(
            f"This conversation is answering {where}.",
            advice="Send one message at a time, or open a conversation for each: they may share a store.",
        )
