"""Which rules apply to a provider's name."""

from __future__ import annotations

import pytest
from hypothesis import given

from nca.context.request import of_a_program, repair
from nca.context.validate import CHECKS, FAMILIES, validate_request
from nca.messages import Message
from nca.wire import message_to_dict
from tests.context.logs import logs
from tests.context.samples import some

LATE = [{"role": "user", "content": "Hi"}, {"role": "system", "content": "Late."}]


@pytest.mark.parametrize("provider", ["anthropic", "bedrock", "Gemini", "google-ai", "vertex_ai", "codestral"])
def test_families(provider: str) -> None:
    assert validate_request(LATE, provider)


@pytest.mark.parametrize("provider", ["openai", "azure", "somebody", "groq"])
def test_all_others_speak_openai(provider: str) -> None:
    assert validate_request(LATE, provider) == []
    assert validate_request(LATE, provider, tools=[{}] * 129)


@pytest.mark.parametrize("rows", [[], [{"role": "assistant", "content": "Hi"}]])
def test_gemini_is_sent_the_user_first(rows: list[dict[str, str]]) -> None:
    assert "the first content is not the user's" in validate_request(rows, "gemini")


@some
@given(logs())
def test_a_repaired_log_is_valid_for_all_and_for_each_that_is_named(messages: list[Message]) -> None:
    for_all = [message_to_dict(message) for message in repair(messages)]
    for provider in (*CHECKS, *FAMILIES):
        assert validate_request(for_all, provider) == []
        for_one = [message_to_dict(message) for message in repair(messages, provider)]
        assert validate_request(for_one, provider) == []


@some
@given(logs())
def test_what_its_provider_takes_of_a_program_is_sent_as_it_is(messages: list[Message]) -> None:
    rows = [message_to_dict(message) for message in messages]
    for provider in (*CHECKS, *FAMILIES, "somebody"):
        repaired = repair(messages, of_a_program(provider))
        assert validate_request([message_to_dict(message) for message in repaired], provider) == []
        if provider in ("openai", "azure", "somebody", "anthropic") and not validate_request(rows, provider):
            assert repaired == messages
