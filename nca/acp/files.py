"""The client's files as the tools read and write them."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

from acp import RequestError
from pydantic import ValidationError

from nca.terminal.render.sanitize import one_line
from nca.tools.tool import ToolError

READ_SECONDS, WRITE_SECONDS = 10.0, 30.0
"""A client that takes longer to give a text has nothing to say about it; one that takes longer to write has failed."""

T = TypeVar("T")


class ClientFiles:
    """Asks the client from a tool's thread. Call it on the event loop's thread only to make one.

    reads, writes  ask for a text, and to write one; None: the client does not offer it
    """

    def __init__(
        self,
        reads: Callable[[str], Coroutine[Any, Any, str]] | None,
        writes: Callable[[str, str], Coroutine[Any, Any, Any]] | None,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._reads, self._writes = reads, writes

    def read(self, path: Path) -> str | None:
        if self._reads is None or threading.get_ident() == self._thread:
            return None
        try:
            return self._answer(self._reads(str(path)), READ_SECONDS)
        except (RequestError, ValidationError, ConnectionError, TimeoutError):
            # Not open there, or not known: what is on the disk counts.
            return None

    def write(self, path: Path, text: str) -> bool:
        if self._writes is None:
            return False
        try:
            self._answer(self._writes(str(path), text), WRITE_SECONDS)
        except (RequestError, ValidationError) as error:
            raise ToolError(f"the editor refused to write {path.name} ({one_line(str(error), 200)})") from error
        except TimeoutError:
            raise ToolError(f"the editor did not say whether it wrote {path.name}; read it again") from None
        except ConnectionError:
            raise ToolError(f"the editor has gone; {path.name} was not written") from None
        return True

    def _answer(self, asking: Coroutine[Any, Any, T], seconds: float) -> T:
        """Wait for the loop's answer. Raises TimeoutError, and what the asking raises."""
        future = asyncio.run_coroutine_threadsafe(asking, self._loop)
        try:
            return future.result(seconds)
        except concurrent.futures.CancelledError:
            raise ConnectionError("the client has gone") from None
        except TimeoutError:
            future.cancel()
            raise
