"""The parts of a turn, and those of a conversation: what its modules are given when they are built."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from pathlib import Path

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


class OneThread:
    """Entered while a turn runs. Raises UsageError in any other thread: its turn would get answers of this one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._thread, self._turns = 0, 0

    def __enter__(self) -> None:
        with self._lock:
            if self._turns and self._thread != threading.get_ident():
                raise UsageError(
                    "This conversation is answering in another thread.",
                    advice="Send from one thread, or open a conversation for each: they may share a store.",
                )
            self._thread, self._turns = threading.get_ident(), self._turns + 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._turns -= 1
