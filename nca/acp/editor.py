"""The client as an editor: its files for the tools, and its terminals for commands."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import signal
import threading
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any, TypeVar

from acp import Client, RequestError, schema
from pydantic import ValidationError

from nca.acp.tool_calls import Content
from nca.terminal.render.sanitize import one_line
from nca.tools.tool import TerminalRun, ToolError, current_call

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
            # Not open there, or not known: the file on the disk counts.
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


_END_SECONDS = 5.0
"""How long the client may take to end a command and to send its output."""
_UNKNOWN_EXIT_CODE = 1


class ClientTerminal:
    """Runs each command in a terminal of its own.

    session_id  of the protocol, as it is when a command runs
    show        called with a call's id and the terminal, once there is one
    """

    def __init__(self, client: Client, session_id: Callable[[], str], show: Callable[[str, Content], None]) -> None:
        self._client, self._session_id, self._show = client, session_id, show

    async def run(self, argv: Sequence[str], directory: Path, *, seconds: float, most_bytes: int) -> TerminalRun:
        client, session = self._client, self._session_id()
        making = asyncio.ensure_future(
            client.create_terminal(
                session_id=session,
                command=argv[0],
                args=list(argv[1:]),
                cwd=str(directory),
                output_byte_limit=most_bytes,
            )
        )
        try:
            made = await asyncio.shield(making)
        except (RequestError, ValidationError, ConnectionError) as error:
            raise ToolError(f"the editor's terminal cannot be used ({one_line(str(error), 200)})") from error
        except asyncio.CancelledError:
            # The client may have started it anyway.
            await self._release(session, making)
            raise
        self._show(current_call.get(), schema.TerminalToolCallContent(type="terminal", terminal_id=made.terminal_id))
        is_timeout = False
        try:
            try:
                async with asyncio.timeout(seconds):
                    await client.wait_for_terminal_exit(session_id=session, terminal_id=made.terminal_id)
            except TimeoutError:
                is_timeout = True
                await client.kill_terminal(session_id=session, terminal_id=made.terminal_id)
            async with asyncio.timeout(_END_SECONDS):
                printed = await client.terminal_output(session_id=session, terminal_id=made.terminal_id)
        except (RequestError, ValidationError, ConnectionError, TimeoutError) as error:
            raise ToolError(f"the editor's terminal failed ({one_line(str(error) or 'no answer', 200)})") from error
        finally:
            # Also when the turn is interrupted: releasing a terminal ends what still runs in it.
            await asyncio.shield(self._release(session, making))
        return TerminalRun(_exit_code(printed), printed.output, printed.truncated, is_timeout)

    async def _release(self, session: str, making: asyncio.Future[schema.CreateTerminalResponse]) -> None:
        with contextlib.suppress(RequestError, ValidationError, ConnectionError, TimeoutError):
            async with asyncio.timeout(_END_SECONDS):
                terminal = (await making).terminal_id
                await self._client.release_terminal(session_id=session, terminal_id=terminal)


def _exit_code(printed: schema.TerminalOutputResponse) -> int:
    """As a shell's; negative for a signal."""
    status = printed.exit_status
    if status is None:
        return _UNKNOWN_EXIT_CODE
    if status.signal:
        name = status.signal if status.signal.startswith("SIG") else f"SIG{status.signal}"
        return -int(signal.Signals[name]) if name in signal.Signals.__members__ else _UNKNOWN_EXIT_CODE
    return _UNKNOWN_EXIT_CODE if status.exit_code is None else status.exit_code
