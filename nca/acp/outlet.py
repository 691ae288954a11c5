"""What one session sends to the client."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from acp.meta import CLIENT_METHODS
from acp.schema import (
    AgentMessageChunk,
    AgentPlanUpdate,
    AgentThoughtChunk,
    AvailableCommandsUpdate,
    ConfigOptionUpdate,
    CurrentModeUpdate,
    SessionInfoUpdate,
    SessionNotification,
    TextContentBlock,
    ToolCallProgress,
    ToolCallStart,
    UsageUpdate,
    UserMessageChunk,
)

Update = (
    UserMessageChunk
    | AgentMessageChunk
    | AgentThoughtChunk
    | ToolCallStart
    | ToolCallProgress
    | AgentPlanUpdate
    | AvailableCommandsUpdate
    | CurrentModeUpdate
    | ConfigOptionUpdate
    | SessionInfoUpdate
    | UsageUpdate
)


class Outlet:
    """Sends updates in their order. Those from before `open` wait, because the client does not know the session yet."""

    def __init__(self, put: Callable[[dict[str, Any]], None]) -> None:
        self._put = put
        self._held: list[Update] | None = []
        self.session_id = ""

    def open(self) -> None:
        """The client knows the session by its id now."""
        held, self._held = self._held or [], None
        for update in held:
            self.send(update)

    def send(self, update: Update) -> None:
        if self._held is not None:
            self._held.append(update)
            return
        told = SessionNotification(session_id=self.session_id, update=update)
        params = told.model_dump(mode="json", by_alias=True, exclude_none=True)
        self._put({"jsonrpc": "2.0", "method": CLIENT_METHODS["session_update"], "params": params})

    def say(self, text: str) -> None:
        """A piece of the answer."""
        if text:
            self.send(AgentMessageChunk(session_update="agent_message_chunk", content=text_block(text)))

    def think(self, text: str) -> None:
        if text:
            self.send(AgentThoughtChunk(session_update="agent_thought_chunk", content=text_block(text)))

    def note(self, text: str) -> None:
        """A line of nca's own, apart from the answer."""
        if text:
            self.say(f"\n\n> {text}\n\n")


def text_block(text: str) -> TextContentBlock:
    return TextContentBlock(type="text", text=text)
