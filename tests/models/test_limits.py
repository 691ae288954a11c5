"""Rate limits and the cache's time, as providers state them."""

from __future__ import annotations

import pytest

from nca.messages import Usage
from nca.models.claude import LIFE_SECONDS, cache_seconds
from nca.models.limits import limits_of
from nca.models.model import ReportsLimits
from nca.testing.faults import send
from nca.testing.provider import Provider
from tests.models.test_client import Asked

COMPLETION = {"choices": [{"index": 0, "message": {"role": "assistant", "content": "Yes."}, "finish_reason": "stop"}]}


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
    ],
)
def test_the_scarcest_limit_counts(headers: dict[str, str], said: str) -> None:
    assert limits_of(headers) == said


def test_only_a_cache_that_nca_asked_for_has_a_known_end() -> None:
    cached = Usage(900, 7, 600)
    assert cache_seconds("anthropic", "anthropic/claude-x", cached, 60) == LIFE_SECONDS - 60
    assert cache_seconds("anthropic", "anthropic/claude-x", cached, LIFE_SECONDS + 1) == 0
    assert cache_seconds("anthropic", "anthropic/claude-x", Usage(900, 7), 60) == 0
    assert cache_seconds("openai", "openai/gpt-x", cached, 60) == 0
