"""Timeouts of a streamed answer: which one runs out, and which setting the error names."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from nca.config.schema import ModelSettings
from nca.models.deadlines import Deadlines

LONG, SHORT = 60.0, 0.01


async def pieces(count: int) -> AsyncIterator[str]:
    """So many pieces, then nothing."""
    for _ in range(count):
        yield "a piece"
    await asyncio.sleep(LONG)


@pytest.mark.parametrize(
    ("count", "settings", "says"),
    [
        (0, ModelSettings(first_token_seconds=SHORT, idle_seconds=LONG), "did not start to answer"),
        (2, ModelSettings(first_token_seconds=LONG, idle_seconds=SHORT), "sent nothing for 0.01 seconds"),
        (2, ModelSettings(first_token_seconds=LONG, idle_seconds=LONG, total_seconds=SHORT), "took longer than 0.01"),
    ],
)
async def test_the_setting_that_ran_out_is_named(count: int, settings: ModelSettings, says: str) -> None:
    deadlines = Deadlines(settings, "the model")
    stream = pieces(count)
    for _ in range(count):
        assert await deadlines.next_piece(stream) == "a piece"
    with pytest.raises(TimeoutError, match=says):
        await deadlines.next_piece(stream)


async def test_the_end_of_a_stream_is_none_and_a_timeout_of_its_own_passes() -> None:
    async def broken() -> AsyncIterator[str]:
        yield "a piece"
        raise TimeoutError("its own")

    deadlines = Deadlines(ModelSettings(), "the model")
    stream = broken()
    await deadlines.next_piece(stream)
    with pytest.raises(TimeoutError, match="its own"):
        await deadlines.next_piece(stream)
    assert await deadlines.next_piece(stream) is None
