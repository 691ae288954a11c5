"""One streamed answer: the rate limits in its headers, and which timeout runs out."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from nca.config.schema import ModelSettings
from nca.models.model import ReportsLimits
from nca.models.stream import Deadlines, limits_of
from nca.testing.faults import send
from nca.testing.provider import Provider
from tests.models.test_client import Asked

COMPLETION = {"choices": [{"index": 0, "message": {"role": "assistant", "content": "Yes."}, "finish_reason": "stop"}]}
LONG, SHORT = 60.0, 0.01


async def test_a_model_has_what_its_providers_last_answer_said() -> None:
    headers = {"x_ratelimit_limit_tokens": "2000", "x_ratelimit_remaining_tokens": "500"}
    with Provider(faults={"limited": send(200, COMPLETION, **headers)}) as provider:
        asked = Asked(provider, "openai/limited")
        await asked.reply()
        assert asked.model.limits == "25% of tokens left"
        assert isinstance(asked.model, ReportsLimits)
        unlimited = Asked(provider, "openai/other")
        await unlimited.reply()
        assert unlimited.model.limits == ""


@pytest.mark.parametrize(
    ("headers", "said"),
    [
        ({}, ""),
        ({"x-ratelimit-limit-tokens": "100", "x-ratelimit-remaining-tokens": "12"}, "12% of tokens left"),
        (
            {
                "anthropic-ratelimit-requests-limit": "50",
                "anthropic-ratelimit-requests-remaining": "49",
                "Anthropic-RateLimit-Input-Tokens-Limit": "1000",
                "anthropic-ratelimit-input-tokens-limit": "1000",
                "anthropic-ratelimit-input-tokens-remaining": "250",
            },
            "25% of input tokens left",
        ),
        ({"x-ratelimit-limit-requests": "0", "x-ratelimit-remaining-requests": "0"}, ""),
        ({"x-ratelimit-limit-requests": "many", "x-ratelimit-remaining-requests": "few"}, ""),
        ({"x-ratelimit-limit-requests": "10", "x-ratelimit-remaining-requests": "nan"}, ""),
        ({"x-ratelimit-remaining-requests": "5"}, ""),
        ({"x-ratelimit-limit-requests": "10", "x-ratelimit-remaining-requests": "0"}, "0% of requests left"),
    ],
)
def test_the_scarcest_limit_counts(headers: dict[str, str], said: str) -> None:
    assert limits_of(headers) == said


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


async def test_a_trickle_that_never_stops_ends_at_the_limit_of_the_whole_answer() -> None:
    async def trickle() -> AsyncIterator[str]:
        for _ in range(2_000):
            await asyncio.sleep(SHORT / 10)
            yield "a piece"

    deadlines = Deadlines(ModelSettings(idle_seconds=LONG, total_seconds=SHORT), "the model")
    stream = trickle()

    async def all_of_it() -> None:
        while await deadlines.next_piece(stream):
            pass

    with pytest.raises(TimeoutError, match=r"took longer than 0\.01 seconds"):
        await all_of_it()


async def test_the_time_without_a_piece_begins_with_the_newest_one() -> None:
    async def late() -> AsyncIterator[str]:
        await asyncio.sleep(0.2)
        for _ in range(3):
            yield "a piece"
            await asyncio.sleep(0)

    deadlines, stream = Deadlines(ModelSettings(first_token_seconds=LONG, idle_seconds=0.1), "the model"), late()
    assert [await deadlines.next_piece(stream) for _ in range(4)] == [*["a piece"] * 3, None]


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
