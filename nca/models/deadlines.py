"""Timeouts for one streamed answer: until it starts, between its pieces, and until it ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from typing import TypeVar

from nca.config.schema import ModelSettings

Result = TypeVar("Result")


class Deadlines:
    """Three timeouts that start when the object is created; the TimeoutError names the setting.

    The first ends with the first piece (keep-alive comments are not pieces), the second restarts with each piece, and
    the third covers the whole answer, so that an endless trickle ends too.
    """

    def __init__(self, settings: ModelSettings, model: str) -> None:
        self._settings = settings
        self._model = model
        self._started = asyncio.get_running_loop().time()
        self._has_begun = False

    async def next_piece(self, pieces: AsyncIterator[Result]) -> Result | None:
        """The next piece, None at the end."""
        try:
            piece = await self.within(anext(pieces))
        except StopAsyncIteration:
            return None
        self._has_begun = True
        return piece

    async def within(self, answer: Awaitable[Result]) -> Result:
        """Wait for the stream, or for a piece of it."""
        now = asyncio.get_running_loop().time()
        end = self._started + self._settings.total_seconds
        if self._has_begun:
            own = now + self._settings.idle_seconds
        else:
            own = self._started + self._settings.first_token_seconds
        clock = asyncio.timeout_at(min(own, end))
        try:
            async with clock:
                return await answer
        except TimeoutError as error:
            if not clock.expired():
                raise
            raise TimeoutError(self._say(is_total=end <= own)) from error

    def _say(self, *, is_total: bool) -> str:
        if is_total:
            return f"{self._model} took longer than {self._settings.total_seconds:g} seconds (model.total_seconds)."
        if self._has_begun:
            return f"{self._model} sent nothing for {self._settings.idle_seconds:g} seconds (model.idle_seconds)."
        seconds = self._settings.first_token_seconds
        return f"{self._model} did not start to answer within {seconds:g} seconds (model.first_token_seconds)."
