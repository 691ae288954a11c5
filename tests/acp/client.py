"""An editor for tests: a client of the protocol's SDK that keeps what it is told and answers as it is told to."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import tempfile
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import IO, Any

import acp
from acp.schema import (
    AcceptElicitationResponse,
    AllowedOutcome,
    CancelElicitationResponse,
    CreateTerminalResponse,
    DeclineElicitationResponse,
    DeniedOutcome,
    KillTerminalResponse,
    PermissionOption,
    ReadTextFileResponse,
    ReleaseTerminalResponse,
    RequestPermissionResponse,
    TerminalExitStatus,
    TerminalOutputResponse,
    ToolCallUpdate,
    WaitForTerminalExitResponse,
    WriteTextFileResponse,
)

from tests.cli.command import environment
from tests.terminal.tty import ROOT
from tests.testing.forks import standing

Form = AcceptElicitationResponse | DeclineElicitationResponse | CancelElicitationResponse | None
"""None: an error of the protocol."""
WAIT_SECONDS = 60.0
"""Only a test that fails waits this long."""
Decide = Callable[[str, ToolCallUpdate, list[PermissionOption]], Awaitable[str | None]]


async def allow_once(session: str, call: ToolCallUpdate, options: list[PermissionOption]) -> str | None:
    return "once"


class Editor:
    """decide   answers permission requests with an option's id; None: cancelled
    forms    answers to forms and pages, each used once; afterwards none is answered
    buffers  what is open and not saved, by path
    """

    def __init__(self) -> None:
        self._changed = asyncio.Event()
        self.terminals: dict[str, asyncio.subprocess.Process] = {}
        self.ignores_kill = False
        self.printed: dict[str, IO[bytes]] = {}
        self.begin_anew()

    def begin_anew(self) -> None:
        """Forget everything, and end the terminals that were not released: nca gives up on that where it takes long."""
        for name in self.terminals:
            self._kill(name)
        for file in self.printed.values():
            file.close()
        self.updates: dict[str, list[Any]] = defaultdict(list)
        self.asked: list[tuple[ToolCallUpdate, list[PermissionOption]]] = []
        self.decide: Decide = allow_once
        self.forms: list[Form] = []
        self.elicited: list[tuple[str, Any]] = []
        self.buffers: dict[str, str] = {}
        self.written: list[tuple[str, str]] = []
        self.saves = True
        self.terminals, self.printed = {}, {}
        self.started: list[list[str]] = []

    def on_connect(self, conn: Any) -> None:
        self.agent = conn

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        self.updates[session_id].append(update)
        self._changed.set()

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait for an update after which it holds."""
        async with asyncio.timeout(WAIT_SECONDS):
            while not holds():
                self._changed.clear()
                await self._changed.wait()

    def of(self, session_id: str, kind: str) -> list[Any]:
        return [one for one in self.updates[session_id] if one.session_update == kind]

    def text(self, session_id: str, kind: str = "agent_message_chunk") -> str:
        return "".join(getattr(one.content, "text", "") for one in self.of(session_id, kind))

    async def request_permission(
        self, session_id: str, tool_call: ToolCallUpdate, options: list[PermissionOption], **_: Any
    ) -> RequestPermissionResponse:
        self.asked.append((tool_call, options))
        self._changed.set()
        chosen = await self.decide(session_id, tool_call, options)
        if chosen is None:
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=chosen))

    async def create_elicitation(self, message: str, mode: Any, **_: Any) -> Form:
        self.elicited.append((message, mode))
        self._changed.set()
        if not self.forms:
            await asyncio.Event().wait()
        answer = self.forms.pop(0)
        if answer is None:
            raise acp.RequestError.internal_error()
        return answer

    async def read_text_file(self, session_id: str, path: str, **_: Any) -> ReadTextFileResponse:
        if path not in self.buffers:
            raise acp.RequestError.resource_not_found(path)
        return ReadTextFileResponse(content=self.buffers[path])

    async def write_text_file(self, session_id: str, path: str, content: str, **_: Any) -> WriteTextFileResponse:
        if path.endswith("locked.txt"):
            raise acp.RequestError(-32000, "the file is locked")
        self.written.append((path, content))
        self.buffers[path] = content
        if self.saves:
            Path(path).write_text(content)
        return WriteTextFileResponse()

    async def create_terminal(
        self, session_id: str, command: str, args: list[str] | None = None, cwd: str | None = None, **_: Any
    ) -> CreateTerminalResponse:
        name = f"terminal-{len(self.terminals) + 1}"
        self.started.append([command, *(args or ())])
        self.printed[name] = tempfile.TemporaryFile()  # noqa: SIM115  closed when it is released
        self.terminals[name] = await asyncio.create_subprocess_exec(
            command,
            *(args or ()),
            cwd=cwd,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=self.printed[name],
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
            env={**os.environ, "OPENAI_API_KEY": "sk-of-the-editor-0123456789"},
        )
        return CreateTerminalResponse(terminal_id=name)

    async def wait_for_terminal_exit(self, session_id: str, terminal_id: str, **_: Any) -> WaitForTerminalExitResponse:
        code = await self.terminals[terminal_id].wait()
        return WaitForTerminalExitResponse(exit_code=max(code, 0))

    async def terminal_output(self, session_id: str, terminal_id: str, **_: Any) -> TerminalOutputResponse:
        code = self.terminals[terminal_id].returncode
        status = TerminalExitStatus(exit_code=code) if code is not None and code >= 0 else None
        self.printed[terminal_id].seek(0)
        text = self.printed[terminal_id].read().decode()
        return TerminalOutputResponse(output=text, truncated=False, exit_status=status)

    async def kill_terminal(self, session_id: str, terminal_id: str, **_: Any) -> KillTerminalResponse:
        if self.ignores_kill:
            await asyncio.Event().wait()
        self._kill(terminal_id)
        return KillTerminalResponse()

    async def release_terminal(self, session_id: str, terminal_id: str, **_: Any) -> ReleaseTerminalResponse:
        self._kill(terminal_id)
        self.printed[terminal_id].close()
        return ReleaseTerminalResponse()

    def _kill(self, terminal_id: str) -> None:
        if self.terminals[terminal_id].returncode is None:
            os.killpg(self.terminals[terminal_id].pid, signal.SIGKILL)

    async def ext_method(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        raise acp.RequestError.method_not_found(method)

    async def ext_notification(self, method: str, params: dict[str, Any]) -> None:
        return


async def delete(agent: Any, **params: str) -> Any:
    """Call session/delete, for which the SDK's client has no method."""
    return await agent._conn.send_request(acp.AGENT_METHODS["session_delete"], params)


def program(
    url: str, home: Path, *arguments: str, is_forked: bool = True, store: str = ""
) -> tuple[list[str], dict[str, str]]:
    """The command line and the environment of `nca acp` against a provider."""
    nca = standing("nca") if is_forked else [sys.executable, "-m", "nca"]
    words = [*nca, "acp", "-m", "openai/test-model", *arguments]
    env = environment(home) | {"OPENAI_API_KEY": "k", "OPENAI_API_BASE": url, "PYTHONPATH": str(ROOT)}
    env["NCA_MODEL__CONTEXT_WINDOW"] = "128000"
    # A server of a test is Python, which on a busy machine needs longer to start than a person would wait.
    return words, env | {"NCA_MCP__WAIT_SECONDS": "120", "NCA_SESSION__STORE": store}


@asynccontextmanager
async def connected(editor: Editor, url: str, home: Path, *arguments: str, store: str = "") -> AsyncIterator[Any]:
    """A running `nca acp`."""
    words, env = program(url, home, *arguments, store=store)
    async with acp.spawn_agent_process(
        editor,  # type: ignore[arg-type]
        *words,
        env=env,
        cwd=home,
        use_unstable_protocol=True,
    ) as (agent, _process):
        yield agent
