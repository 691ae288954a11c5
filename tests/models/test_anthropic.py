"""Through litellm to Anthropic's Messages API on loopback: marks, thoughts, calls, errors, usage and compaction."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from nca.config.schema import ModelSettings
from nca.context.request import meant_for
from nca.context.validate import validate_request
from nca.errors import ModelNotFound, ProviderError
from nca.events import RetryScheduled
from nca.messages import Message, ResponseFacts
from nca.models.catalog import ModelFacts, describe
from nca.models.client import Delta, ModelRequest, ProviderModel, Reply
from nca.models.price_map import PriceTier
from nca.testing.scripted import Answer, in_order
from nca.wire import message_to_dict
from tests.testing.anthropic_provider import AnthropicProvider

NAME = "anthropic/claude-sonnet-5-5"
SYSTEM = {"role": "system", "content": "Be brief. " * 40}
PARAMETERS = {"type": "object", "properties": {"path": {"type": "string"}}}
TOOL = {"type": "function", "function": {"name": "read_file", "parameters": PARAMETERS}}
LOOK = Answer(
    "Looking.", tool_calls=[("read_file", {"path": "a"}), ("read_file", {"path": "b"})], reasoning="I must look there."
)

OPENED: list[ProviderModel] = []


@pytest.fixture(autouse=True)
async def closed() -> AsyncIterator[None]:
    """No connection of a test is left to the garbage collector."""
    yield
    while OPENED:
        await OPENED.pop().close()


class Chat:
    """A conversation with the provider, message by message, as the agent keeps it."""

    def __init__(self, provider: AnthropicProvider, name: str = NAME, **settings: Any) -> None:
        self.retries: list[RetryScheduled] = []
        self.seen: list[Delta] = []
        self.log = [Message("user", "Hello there.")]
        self.name = name
        chosen = ModelSettings(**{"api_base": provider.url, **settings})
        self.model = ProviderModel(describe(name), chosen, self.retries.append, api_key="key")
        OPENED.append(self.model)

    async def ask(self, compact_at_tokens: int = 0, reasoning: str = "auto", most_tokens: int = 500) -> Reply:
        rows = [SYSTEM, *(message_to_dict(meant_for(self.name, message)) for message in self.log)]
        assert validate_request(rows, "anthropic", tools=[TOOL]) == []
        request = ModelRequest(rows, [TOOL], most_tokens, compact_at_tokens=compact_at_tokens, reasoning=reasoning)
        reply = await self.model.ask(request, self.seen.append)
        self.log.append(reply.message)
        self.log += [Message("tool", "the result", tool_call_id=call.id) for call in reply.message.tool_calls]
        return reply


async def test_a_signed_thought_goes_back_first_and_as_it_came() -> None:
    with AnthropicProvider(in_order(LOOK, "Done.")) as provider:
        chat = Chat(provider)
        reply = await chat.ask()
        await chat.ask()
    assert reply.finish_reason == "tool_calls"
    # litellm keeps neither Anthropic's id nor its own word for the end.
    assert reply.response == ResponseFacts("claude-sonnet-5-5")
    assert reply.message.reasoning == "I must look there."
    (thought,) = reply.message.extra["thinking_blocks"]
    assert provider.requests[1]["messages"][1]["content"][0] == thought


@pytest.mark.parametrize("name", [NAME, "anthropic/claude-sonnet-4-5"])
async def test_thinking_lasts_through_a_turn_and_stops_where_its_blocks_are_missing(name: str) -> None:
    with AnthropicProvider(in_order(LOOK, replace(LOOK, reasoning=""), "Done.", "Well.", "Small.")) as provider:
        chat = Chat(provider, name, temperature=0.2)
        for _ in range(3):
            await chat.ask(reasoning="high", most_tokens=20_000)
        chat.log.append(Message("user", "And now?"))
        await chat.ask(reasoning="high", most_tokens=20_000)
        chat.log.append(Message("user", "Sum up."))
        await chat.ask(reasoning="high", most_tokens=1_000)
    thinks = ["thinking" in body for body in provider.requests]
    assert thinks == [True, True, False, True, False], "without blocks for the rest of that turn, and in a short answer"
    if name != NAME:
        assert ["temperature" in body for body in provider.requests] == [not one for one in thinks]


async def test_another_model_does_not_get_the_thought() -> None:
    with AnthropicProvider(in_order(LOOK, "Done.")) as provider:
        first = Chat(provider)
        await first.ask()
        second = Chat(provider, "anthropic/claude-sonnet-4-6")
        second.log = first.log
        await second.ask()
    assert [block["type"] for block in provider.requests[1]["messages"][1]["content"]] == [
        "text",
        "tool_use",
        "tool_use",
    ]


async def test_results_and_what_is_typed_behind_them_are_one_message() -> None:
    with AnthropicProvider(in_order(LOOK, "Done.")) as provider:
        chat = Chat(provider)
        await chat.ask()
        chat.log.append(Message("user", "And c?"))
        await chat.ask()
    merged = provider.requests[1]["messages"][-1]
    assert [block["type"] for block in merged["content"]] == ["tool_result", "tool_result", "text"]


async def test_each_request_reads_the_one_before_it_from_the_cache() -> None:
    with AnthropicProvider(in_order(LOOK, LOOK, "Done.", "Well.")) as provider:
        chat = Chat(provider)
        used = [reply.usage for reply in [await chat.ask(), await chat.ask(), await chat.ask()]]
        chat.log.append(Message("user", "And now?"))
        used.append((await chat.ask()).usage)
    counts = [(usage.prompt_tokens, usage.cache_read_tokens, usage.cache_write_tokens) for usage in used if usage]
    assert len(counts) == 4
    assert counts[0][1:] == (0, counts[0][0])
    for (before, *_), (prompt, read, written) in pairwise(counts):
        # All that was sent before is read, all that is new is written, and nothing is paid in full.
        assert (read, read + written) == (before, prompt)


async def test_what_came_before_is_found_however_much_a_step_has_added() -> None:
    many = Answer(tool_calls=[("read_file", {"path": str(number)}) for number in range(40)])
    with AnthropicProvider(in_order(many, "Done.")) as provider:
        chat = Chat(provider)
        first, second = (await chat.ask()).usage, (await chat.ask()).usage
    assert first is not None
    assert second is not None
    assert second.cache_read_tokens == first.prompt_tokens


async def test_between_two_requests_only_marks_move() -> None:
    with AnthropicProvider(in_order(LOOK, LOOK, "Done.")) as provider:
        chat = Chat(provider)
        for _ in range(3):
            await chat.ask()
    bare = [json.dumps(_without_marks(body["messages"]))[:-1] for body in provider.requests]
    assert bare[1].startswith(bare[0])
    assert bare[2].startswith(bare[1])
    assert all(json.dumps(body).count("cache_control") <= 4 for body in provider.requests)


async def test_a_cost_counts_cache_reads_and_writes() -> None:
    with AnthropicProvider(in_order("One.", "Two.")) as provider:
        chat = Chat(provider)
        await chat.ask()
        chat.log.append(Message("user", "More."))
        usage = (await chat.ask()).usage
    assert usage is not None
    expected = usage.cache_read_tokens * 1e-07 + usage.cache_write_tokens * 2.5e-06 + usage.completion_tokens * 1e-05
    assert usage.cost == pytest.approx(expected)


@pytest.mark.parametrize(("name", "retries"), [("overloaded-once", 1), ("overloaded", 2), ("overloaded-in-stream", 2)])
async def test_an_overloaded_provider_is_asked_again(name: str, retries: int) -> None:
    with AnthropicProvider(in_order("Here.")) as provider:
        chat = Chat(provider, f"anthropic/{name}", max_retries=2)
        if name == "overloaded-once":
            assert (await chat.ask()).message.text == "Here."
        else:
            with pytest.raises(ProviderError) as raised:
                await chat.ask()
            assert raised.value.failure.action == "backoff"
    assert len(chat.retries) == retries


async def test_an_unknown_model_and_an_overflow_are_told_apart() -> None:
    with AnthropicProvider() as provider, pytest.raises(ModelNotFound):
        await Chat(provider, "anthropic/no-such-model").ask()
    with AnthropicProvider(window_tokens=100) as provider, pytest.raises(ProviderError) as raised:
        await Chat(provider).ask()
    failure = raised.value.failure
    assert (failure.action, failure.is_overflow, failure.limit_tokens) == ("compact", True, 100)
    assert failure.asked_tokens is not None
    assert failure.asked_tokens > 100


async def test_a_stop_for_a_compaction_is_told_with_its_block_and_counted_once() -> None:
    with AnthropicProvider(in_order("Done."), summary="The work so far.") as provider:
        chat = Chat(provider)
        chat.log = [Message("user", "word " * 60_000)]
        reply = await chat.ask(compact_at_tokens=50_000)
    assert reply.finish_reason == "compaction"
    assert reply.compaction == {"type": "compaction", "content": "The work so far."}
    assert reply.usage is not None
    (sampling,) = reply.samplings
    assert sampling.prompt_tokens == reply.usage.prompt_tokens > 60_000
    assert reply.usage.cost == pytest.approx(sampling.prompt_tokens * 2e-06 + sampling.completion_tokens * 1e-05)
    assert provider.betas == ["compact-2026-01-12"]


async def test_below_the_trigger_nothing_happens_and_one_sampling_is_no_several() -> None:
    with AnthropicProvider(in_order("Done.")) as provider:
        reply = await Chat(provider).ask(compact_at_tokens=50_000)
    assert (reply.message.text, reply.compaction, reply.samplings) == ("Done.", None, ())


async def test_a_model_that_cannot_compact_is_not_asked_to() -> None:
    with AnthropicProvider(in_order("Done.")) as provider:
        await Chat(provider, "anthropic/claude-sonnet-4-5").ask(compact_at_tokens=50_000)
    assert "context_management" not in provider.requests[0]


async def test_samplings_of_one_answer_are_priced_each_by_itself() -> None:
    class Twice(AnthropicProvider):
        """Compacts and answers in one response, as Anthropic does where it is not asked to stop."""

        def events(self, body: dict[str, Any], attempt: int) -> list[tuple[str, dict[str, Any]]]:
            *start, (name, end), last = super().events(body, attempt)
            block = {"type": "compaction", "content": "All."}
            rows = [
                {"type": "compaction", "input_tokens": 180_000, "output_tokens": 3_500},
                {"type": "message", "input_tokens": 23_000, "output_tokens": 1_000},
            ]
            compaction: list[tuple[str, dict[str, Any]]] = [
                ("content_block_start", {"index": 9, "content_block": block}),
                ("content_block_stop", {"index": 9}),
            ]
            usage = {"input_tokens": 23_000, "output_tokens": 1_000, "iterations": rows}
            return [start[0], *compaction, *start[1:], (name, {**end, "usage": usage}), last]

    with Twice(in_order("Done.")) as provider:
        chat, half_priced = Chat(provider), Chat(provider)
        reply = await chat.ask(compact_at_tokens=50_000)
        # A map of prices may have those of long requests alone: a part of the cost is no cost.
        long = PriceTier(above_tokens=100_000, input_cost=1e-6, output_cost=1e-6)
        half_priced.model.facts = ModelFacts(NAME, "anthropic", tiers=(long,))
        unknown = (await half_priced.ask(compact_at_tokens=50_000)).usage
    assert unknown is not None
    assert unknown.cost is None
    assert reply.message.text == "Done."
    assert reply.compaction is not None
    assert reply.usage is not None
    assert (reply.usage.prompt_tokens, reply.usage.completion_tokens) == (203_000, 4_500)
    assert [used.prompt_tokens for used in reply.samplings] == [180_000, 23_000]
    assert reply.usage.cost == pytest.approx(203_000 * 2e-06 + 4_500 * 1e-05)
    assert replace(reply, compaction=None).finish_reason == "stop"


def _without_marks(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_marks(item) for key, item in value.items() if key != "cache_control"}
    return [_without_marks(item) for item in value] if isinstance(value, list) else value
