"""Switch the chat to another session.

Whatever needs the conversation asks for it each time. The model stays the same in the next session, unless another one
was chosen in it, and so do the settings. The rules "for this session" and the MCP servers end with the old one.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from nca.agent.conversation import Conversation
from nca.terminal.model_choice import go_on
from nca.terminal.panels.locked_session import resolve_lock
from nca.terminal.render.sessions import resumed_lines, short_id

if TYPE_CHECKING:
    from nca.terminal.reader import Reader
    from nca.terminal.render.output import Output


class SessionSwitcher:
    """`conversation` is the one that the chat has now."""

    def __init__(self, conversation: Conversation, output: Output, reader: Reader) -> None:
        self._output = output
        self._reader = reader
        self._closing: set[asyncio.Task[None]] = set()
        self.conversation = conversation

    async def close(self) -> None:
        """Close the conversation that the chat ends with, after those that are still being closed."""
        await asyncio.gather(*self._closing, return_exceptions=True)
        await self.conversation.close()

    async def start(self, name: str) -> None:
        """Begin a new session. Raises NcaError, and nothing has changed."""
        before = self.conversation
        if not before.context.entries and not before.session.is_read_only:
            # It is new already, and would leave nothing behind.
            if name:
                before.session.rename(name)
            self._output.notice("This session is new: it has no messages yet.")
            return
        before_id = short_id(before.session.info.id)
        await self._switch(None, name=name)
        self._output.notice(f"New session. The previous one is kept: /resume {before_id}")

    async def resume(self, wanted: str) -> None:
        """Continue a session, by id or name. Raises SessionNotFound, SessionLocked; then nothing has changed."""
        store, reader = self.conversation.store, self._reader
        info = store.find(wanted)
        if info.id == self.conversation.session.info.id:
            self._output.notice("You are in that session already.")
            return
        found = await resolve_lock(store, info, reader.choose if reader.can_choose else None)
        if found is None or found.session is None:
            return
        await self._switch(found.session.id, read_only=found.read_only)
        await go_on(self.conversation, self._output)
        for line in resumed_lines(self.conversation):
            self._output.notice(line)
        self._output.card(self.conversation.context.where_we_were())

    async def _switch(self, session: str | None, *, read_only: bool = False, name: str = "") -> None:
        before = self.conversation
        conversation = Conversation.open(
            before.loaded,
            store=before.store,
            model=before.model,
            directory=before.directory,
            session=session,
            listener=self._output.on_event,
            prepares=True,
            read_only=read_only,
            notified=before.notified,
            person=self._reader,
        )
        if name:
            conversation.session.rename(name)
        self.conversation = conversation
        # Ctrl-C stops the waiting and not the closing: a lock or a server that stays would be in nobody's hands.
        closing = asyncio.create_task(before.close(keeps_model=True))
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)
        await asyncio.shield(closing)
