"""Every place at which a kill can leave another state on disk: statements, and changes of files.

No hook in nca: SQLite's own trace is called before each statement, Python's audit before each file operation. The
place before one is the place after the one before; the last place is the program's own `here`. A SELECT is none: the
disk is the same before and after it.
"""

from __future__ import annotations

import os
import signal
import sys

import apsw

_CHANGES = frozenset(
    {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "os.chmod", "shutil.rmtree", "shutil.copyfile"}
)
_READS = ("SELECT",)
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC


class Points:
    """Counts from `start` on; the process kills itself at place `last`, counted from 1. None: it only counts."""

    def __init__(self, last: int | None) -> None:
        self.count = 0
        self._last = last
        self._is_on = False
        apsw.connection_hooks.append(self._trace)
        # An audit hook stays for good: this is for a process of its own.
        sys.addaudithook(self._audit)

    def start(self) -> None:
        self._is_on = True

    def here(self) -> None:
        if not self._is_on:
            return
        self.count += 1
        if self.count == self._last:
            os.kill(os.getpid(), signal.SIGKILL)

    def _trace(self, connection: apsw.Connection) -> None:
        connection.exec_trace = self._statement

    def _statement(self, cursor: apsw.Cursor, sql: str, bindings: apsw.Bindings | None) -> bool:
        if not sql.lstrip().startswith(_READS):
            self.here()
        return True

    def _audit(self, event: str, arguments: tuple[object, ...]) -> None:
        if event in _CHANGES or (event == "open" and isinstance(arguments[2], int) and arguments[2] & _WRITES):
            self.here()
