"""What a chat tells a person once, at its beginning: text of a killed chat, parts without effect, plain lines."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING

from nca.terminal.reader import Reader
from nca.terminal.render.output import Output

if TYPE_CHECKING:
    from nca.agent.conversation import Conversation


class ToldOnce:
    """The lines of one chat, whichever sessions it opens."""

    def __init__(self, output: Output, reader: Reader) -> None:
        self._output, self._reader = output, reader
        self._unused = ""
        self._is_plain_offered = False
        self._are_drafts_told = False

    async def tell(self, conversation: Conversation) -> None:
        if self._reader.are_drafts_taken and not self._are_drafts_told:
            self._are_drafts_told = True
            self._output.notice("A chat that was killed had unsent text: Up in an empty prompt brings it back.")
        await self._tell_unused(conversation)
        await self._offer_plain(conversation)

    async def _tell_unused(self, conversation: Conversation) -> None:
        """To a person at a terminal: what of their Claude Code set-up has no effect here."""
        if not self._reader.is_interactive:
            return
        from nca.agent.claude_parts import unused_parts

        runs_own = conversation.loaded.settings.agent.use_claude_home
        home = os.environ.get("HOME")
        found = asyncio.to_thread(unused_parts, conversation.directory, Path(home) if home else None, runs_own=runs_own)
        if (line := await found) and line != self._unused:
            self._unused = line
            self._output.notice(line)

    async def _offer_plain(self, conversation: Conversation) -> None:
        """In a chat on a screen, to a person with a screen reader who has not set `terminal.plain`."""
        is_set = conversation.loaded.origin("terminal.plain") != "default"
        if not self._reader.can_walk or self._is_plain_offered or is_set:
            return
        from nca.terminal.open_terminal import plain_offer, running_screen_reader

        self._is_plain_offered = True
        if reader := await asyncio.to_thread(running_screen_reader):
            self._output.notice(plain_offer(reader))
