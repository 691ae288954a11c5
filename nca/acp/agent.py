"""The agent that the protocol's SDK serves: its methods, the sessions that are open, and serving one client."""

from __future__ import annotations

import asyncio
import logging
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from acp import PROTOCOL_VERSION, Client, RequestError, run_agent, schema
from acp.meta import AGENT_METHODS

from nca import __version__
from nca.acp.client import ClientFiles, ClientTerminal, EditorPerson
from nca.acp.commands import MODE, EditorCommands, check_mode, mode_state
from nca.acp.content import Block, replay
from nca.acp.session import EditorSession, servers_of
from nca.acp.stdio import Stdio, answered
from nca.acp.tool_calls import Outlet
from nca.acp.updates import Updates
from nca.errors import SessionNotFound, UsageError
from nca.terminal.render.sanitize import one_line
from nca.terminal.render.sessions import title
from nca.terminal.signals import EXIT_CODES
from nca.tools.tool import Editor

if TYPE_CHECKING:
    from nca.agent.conversation import Conversation
    from nca.config.servers import McpServer
    from nca.events import Event, Listener
    from nca.sessions.store import Store

    Open = Callable[
        [Store, Path, str | None, Sequence[McpServer], Listener, EditorPerson, Callable[[], Awaitable[None]]],
        Awaitable[tuple[Conversation, Sequence[str]]],
    ]
    """Opens a conversation in a folder, new or of a stored session; and names that the choice of its model came across.
    The last argument closes the same session where it is open here, once the settings and the model are known.
    Raises NcaError."""

_PAGE = 50
"""Sessions in one answer to session/list."""
Servers = Sequence[schema.HttpMcpServer | schema.SseMcpServer | schema.AcpMcpServer | schema.McpServerStdio]


class NcaAgent:
    """Serves one client."""

    store: Store

    def __init__(self, open_conversation: Open, stdio: Stdio) -> None:
        self._open_conversation, self._stdio = open_conversation, stdio
        self._client: Client | None = None
        self._offers = schema.ClientCapabilities()
        self._sessions: dict[str, EditorSession] = {}
        self._opening = asyncio.Lock()
        self._untold: list[Event] = []

    def on_connect(self, conn: Client) -> None:
        self._client = conn

    def tell(self, event: Event) -> None:
        """Tell what concerns every session, such as a lost connection of the store; without one, the first to come.

        May be called in any thread.
        """
        sessions = tuple(self._sessions.values())
        for session in sessions:
            session.tell(event)
        if not sessions:
            self._untold.append(event)

    def cancel_all(self) -> None:
        """The client has gone: interrupt every prompt."""
        for session in self._sessions.values():
            session.cancel()

    async def close(self) -> None:
        """Close all sessions."""
        sessions, self._sessions = list(self._sessions.values()), {}
        await asyncio.gather(*(one.close() for one in sessions), return_exceptions=True)

    @answered
    async def initialize(
        self,
        protocol_version: int,
        client_capabilities: schema.ClientCapabilities | None = None,
        client_info: schema.Implementation | None = None,
        **_: Any,
    ) -> schema.InitializeResponse:
        self._offers = client_capabilities or schema.ClientCapabilities()
        return schema.InitializeResponse(
            protocol_version=PROTOCOL_VERSION,
            agent_info=schema.Implementation(name="nca", title="nca", version=__version__),
            agent_capabilities=schema.AgentCapabilities(
                load_session=True,
                prompt_capabilities=schema.PromptCapabilities(image=True, audio=False, embedded_context=True),
                mcp_capabilities=schema.McpCapabilities(http=True, sse=False),
                session_capabilities=schema.SessionCapabilities(
                    list=schema.SessionListCapabilities(),
                    resume=schema.SessionResumeCapabilities(),
                    close=schema.SessionCloseCapabilities(),
                    delete=schema.SessionDeleteCapabilities(),
                    fork=schema.SessionForkCapabilities(),
                ),
            ),
            auth_methods=[],
        )

    @answered
    async def authenticate(self, method_id: str, **_: Any) -> schema.AuthenticateResponse:
        raise UsageError("nca needs no login.", advice="A provider's key comes from the environment.")

    @answered
    async def new_session(self, cwd: str, mcp_servers: Servers | None = None, **_: Any) -> schema.NewSessionResponse:
        session, session_id = await self._open(cwd, None, mcp_servers)
        return schema.NewSessionResponse(session_id=session_id, **_state(session))

    @answered
    async def load_session(
        self, cwd: str, session_id: str, mcp_servers: Servers | None = None, **_: Any
    ) -> schema.LoadSessionResponse:
        session, _id = await self._open(cwd, session_id, mcp_servers, replays=True)
        return schema.LoadSessionResponse(**_state(session))

    @answered
    async def resume_session(
        self, cwd: str, session_id: str, mcp_servers: Servers | None = None, **_: Any
    ) -> schema.ResumeSessionResponse:
        session, _id = await self._open(cwd, session_id, mcp_servers)
        return schema.ResumeSessionResponse(**_state(session))

    @answered
    async def fork_session(
        self, cwd: str, session_id: str, mcp_servers: Servers | None = None, **_: Any
    ) -> schema.ForkSessionResponse:
        copy = self.store.fork(self._stored(session_id))
        try:
            session, new_id = await self._open(cwd, copy.id, mcp_servers)
        except BaseException:
            self.store.delete(copy.id)
            raise
        return schema.ForkSessionResponse(session_id=new_id, **_state(session))

    @answered
    async def close_session(self, session_id: str, **_: Any) -> schema.CloseSessionResponse:
        session = self._session(session_id)
        del self._sessions[session_id]
        await session.close()
        return schema.CloseSessionResponse()

    @answered
    async def delete_session(self, session_id: str, **_: Any) -> schema.DeleteSessionResponse:
        """Delete a session for good, also one that is open here. One that does not exist is deleted already."""
        async with self._opening:
            if (session := self._sessions.pop(session_id, None)) is not None:
                await session.close()
            with suppress(SessionNotFound):
                self.store.delete(self._stored(session_id))
        return schema.DeleteSessionResponse()

    async def ext_method(self, method: str, params: dict[str, Any]) -> schema.DeleteSessionResponse:
        """A method for which the SDK has no route of its own; `Stdio` marks it as an extension."""
        if method != AGENT_METHODS["session_delete"]:
            raise RequestError.method_not_found(f"_{method}")
        return await self.delete_session(schema.DeleteSessionRequest.model_validate(params).session_id)

    @answered
    async def list_sessions(
        self, cwd: str | None = None, cursor: str | None = None, **_: Any
    ) -> schema.ListSessionsResponse:
        """Sessions with messages, the last used first. A cursor is the number of those before a page."""
        infos = [
            info
            for info in self.store.list(limit=None)
            if info.messages and info.directory.startswith("/") and (cwd is None or info.directory == cwd)
        ]
        if cursor is not None and cursor not in map(str, range(_PAGE, len(infos), _PAGE)):
            raise UsageError(
                f"cursor: {one_line(cursor, 40)!r} is none that session/list gave.",
                advice="Valid: the nextCursor of the last answer; without a cursor the list begins anew.",
            )
        start = int(cursor or 0)
        page = [
            schema.SessionInfo(
                session_id=info.id,
                cwd=info.directory,
                title=title(info),
                updated_at=datetime.fromtimestamp(info.updated_at, UTC).isoformat(),
            )
            for info in infos[start : start + _PAGE]
        ]
        return schema.ListSessionsResponse(
            sessions=page, next_cursor=str(start + _PAGE) if start + _PAGE < len(infos) else None
        )

    @answered
    async def set_session_mode(self, session_id: str, mode_id: str, **_: Any) -> schema.SetSessionModeResponse:
        check_mode(mode_id)
        await self._session(session_id).set_option(MODE, mode_id)
        return schema.SetSessionModeResponse()

    @answered
    async def set_config_option(
        self, config_id: str, session_id: str, value: str | bool, **_: Any
    ) -> schema.SetSessionConfigOptionResponse:
        options = await self._session(session_id).set_option(config_id, value)
        return schema.SetSessionConfigOptionResponse(config_options=list(options))

    @answered
    async def prompt(self, session_id: str, prompt: list[Block], **_: Any) -> schema.PromptResponse:
        return schema.PromptResponse(stop_reason=await self._session(session_id).prompt(prompt))

    async def cancel(self, session_id: str, **_: Any) -> None:
        if (session := self._sessions.get(session_id)) is not None:
            session.cancel()

    def _session(self, session_id: str) -> EditorSession:
        session = self._sessions.get(session_id)
        if session is None:
            raise SessionNotFound(
                f"Session {one_line(session_id, 40)} is not open", advice="session/new or session/load opens one."
            )
        return session

    def _stored(self, session_id: str) -> str:
        """A stored session's id; no beginning of one and no name is taken. Raises SessionNotFound."""
        if self.store.find(session_id).id != session_id:
            raise SessionNotFound(f"There is no session {one_line(session_id, 40)}")
        return session_id

    async def _open(
        self, cwd: str, stored: str | None, mcp_servers: Servers | None, *, replays: bool = False
    ) -> tuple[EditorSession, str]:
        directory = Path(cwd)
        if not directory.is_absolute() or not await asyncio.to_thread(directory.is_dir):
            raise UsageError(f"cwd: {one_line(cwd, 200)} is not the absolute path of a folder.")
        servers = servers_of(mcp_servers or ())
        async with self._opening:
            stored = None if stored is None else self._stored(stored)

            async def release() -> None:
                if (before := self._sessions.pop(stored or "", None)) is not None:
                    await before.close(opens_again=True)

            outlet = Outlet(self._stdio.put)
            updates = Updates(outlet, directory)
            assert self._client is not None, "the SDK connects before it calls a method"
            person = EditorPerson(
                self._client, outlet, updates.ids, self._offers.elicitation or schema.ElicitationCapabilities()
            )
            person.editor = editor = self._editor(self._client, outlet, updates)
            conversation, models = await self._open_conversation(
                self.store, directory, stored, servers, updates.on_event, person, release
            )
            outlet.session_id = conversation.session.info.id
            commands = EditorCommands(conversation, person, models)
            session = EditorSession(conversation, outlet, updates, commands, editor.files)
            self._sessions[outlet.session_id] = session
        if replays:
            outlet.open()
            await replay(conversation, outlet, updates.ids)
        while self._untold:
            session.tell(self._untold.pop(0))
        updates.follow(conversation)
        await session.offer_commands()
        if not replays:
            # A new session's updates come after the answer that names it.
            asyncio.get_running_loop().call_soon(outlet.open)
        session.warm()
        return session, outlet.session_id

    def _editor(self, client: Client, outlet: Outlet, updates: Updates) -> Editor:
        """The client's offers to the tools."""
        fs, terminal = self._offers.fs, ClientTerminal(client, outlet, updates.shown_in_terminal)
        has_files = fs is not None and (fs.read_text_file or fs.write_text_file)
        return Editor(
            ClientFiles(client, outlet, fs) if fs is not None and has_files else None,
            terminal if self._offers.terminal else None,
        )


def _state(session: EditorSession) -> dict[str, Any]:
    """The fields of every answer that opens a session."""
    return {"modes": mode_state(session.conversation), "config_options": list(session.options())}


_LINE_CHARS = 600


async def serve(open_store: Callable[[Listener], Store], open_conversation: Open, streams: tuple[int, int]) -> int:
    """The exit code. `streams`: see `private_streams`. Raises what opening the store raises."""
    _log_in_lines()
    stdio = Stdio(*streams)
    agent = NcaAgent(open_conversation, stdio)
    with open_store(agent.tell) as agent.store:
        return await _serve(agent, stdio)


async def _serve(agent: NcaAgent, stdio: Stdio) -> int:
    stdio.on_end = agent.cancel_all
    ended_by: list[int] = []

    def end(number: int) -> None:
        ended_by.append(number)
        stdio.end()

    loop = asyncio.get_running_loop()
    for number in EXIT_CODES:
        loop.add_signal_handler(number, end, number)
    try:
        await run_agent(agent, stdio, use_unstable_protocol=True)  # type: ignore[arg-type]
    finally:
        for number in EXIT_CODES:
            loop.remove_signal_handler(number)
        await agent.close()
        await stdio.close()
    return EXIT_CODES[ended_by[0]] if ended_by else 0


class _OneLine(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        reason = f": {record.exc_info[1]}" if record.exc_info and record.exc_info[1] is not None else ""
        return f"nca acp: {one_line(record.getMessage() + reason, _LINE_CHARS)}"


def _log_in_lines() -> None:
    """The SDK logs what goes wrong; a client shows standard error to the person."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_OneLine())
    handler.setLevel(logging.ERROR)
    root = logging.getLogger()
    root.handlers[:] = [handler]
