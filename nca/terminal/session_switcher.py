"""Which conversation the chat has, and the one place where another takes over.

Everything else asks `CommandContext.conversation` each time. What a conversation is given by the chat (who approves,
what was typed meanwhile) is given in `wire`. Model and settings go on, as the chat is the same; the rules "for this
session", the MCP servers and what was prepared end with the conversation, and the new one has its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from nca.errors import UsageError
from nca.terminal.panels.locked_session import settled
from nca.terminal.render.session_lines import gone_on_lines, short_id

if TYPE_CHECKING:
    from nca.agent.conversation import Conversation
    from nca.events import Event
    from nca.terminal.commands.command import CommandContext

OpenSession = Callable[["Conversation", str | None, bool], "Conversation"]
"""(the one before, an id or None for a new session, whether only to read it): with the model and the settings of the
one before. Raises NcaError, and nothing has changed."""


def opener(listener: Callable[[Event], None]) -> OpenSession:
    """Opens sessions in the store of the conversation before, for the same listener."""

    def open_session(before: Conversation, session: str | None, read_only: bool) -> Conversation:
        from nca.agent.conversation import Conversation

        return Conversation.open(
            before.loaded,
            store=before.store,
            model=before.model,
            directory=before.directory,
            session=session,
            listener=listener,
            prepares=True,
            read_only=read_only,
            told=before.told,
        )

    return open_session


class Exchange:
    """`wire` gives a conversation what it needs of the chat; called by `take_up` and nobody else."""

    def __init__(self, context: CommandContext, open_session: OpenSession | None) -> None:
        self._context = context
        self._open_session = open_session
        self._closing: set[asyncio.Task[None]] = set()
        self.wire: Callable[[Conversation], None] = lambda conversation: None

    def take_up(self, conversation: Conversation) -> None:
        """From here on it is the chat's."""
        self._context.conversation = conversation
        self._context.preview = None
        self.wire(conversation)

    async def close(self) -> None:
        """Close the conversation that the chat ends with, after those that are still being closed."""
        await asyncio.gather(*self._closing, return_exceptions=True)
        await self._context.conversation.close()

    async def start(self, name: str) -> None:
        """A new session. Raises UsageError where sessions cannot be exchanged here."""
        before = self._context.conversation
        if not before.context.entries and not before.session.is_read_only:
            # It is new already, and would leave nothing behind.
            if name:
                before.session.rename(name)
            self._context.output.notice("This session is new; nothing has been said in it.")
            return
        before_id = short_id(before.session.info.id)
        await self._go(None, name=name)
        self._context.output.notice(f"A new session. The one before is kept: /resume {before_id}")

    async def resume(self, wanted: str) -> None:
        """Go on with a session, by id or name. Raises SessionNotFound, SessionLocked, UsageError."""
        store, output = self._context.store, self._context.output
        if store is None:
            raise UsageError("Sessions are not kept here.")
        info = store.find(wanted)
        if info.id == self._context.conversation.session.info.id:
            output.notice("That is the session you are in.")
            return
        found = await settled(store, info, self._context.ask)
        if found is None or found.session is None:
            return
        await self._go(found.session.id, read_only=found.is_held)
        for line in gone_on_lines(self._context.conversation):
            output.notice(line)

    async def _go(self, session: str | None, *, read_only: bool = False, name: str = "") -> None:
        if self._open_session is None:
            raise UsageError("The session of this chat cannot be changed.", advice="nca loop --resume opens another.")
        before = self._context.conversation
        conversation = self._open_session(before, session, read_only)
        if name:
            conversation.session.rename(name)
        self.take_up(conversation)
        # Ctrl-C stops the waiting and not the closing: a lock or a server that stays would be in nobody's hands.
        closing = asyncio.create_task(before.close(keeps_model=True))
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)
        await asyncio.shield(closing)
