"""Gauge, panel, command output, notices, events and JSON all show the same usage."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import pytest

from nca.events import ContextCompaction, ContextWarning, Event, RequestStarted
from nca.humanize import percent, short_of
from nca.messages import Message, Usage
from nca.models.model import ModelRequest, Reply
from nca.terminal.input.toolbar import toolbar
from nca.terminal.prompt_reader import status_of
from nca.testing.scripted import count_request_tokens
from tests.terminal.stage import Stage, a_stage
from tests.terminal.test_commands import LONG, SUMMARY


async def check(stage: Stage) -> int:
    """Every place that shows the usage now shows the same; the number."""
    conversation = stage.conversation
    stats, status = conversation.context.stats(), status_of(conversation)
    used, budget = stats.used_tokens, stats.budget_tokens
    assert sum(stats.parts.values()) == sum(stats.breakdown.values()) == used
    assert (status.used_tokens, status.budget_tokens, status.usage_ratio) == (used, budget, stats.usage_ratio)
    gauge = "".join(text for _, text in toolbar(status, 200))
    assert f"{percent(used / budget)} · {short_of(used, budget)}" in gauge
    for line in ("/context", "/context all"):
        panel = (await stage.command(line)).splitlines()[0]
        assert panel.startswith(f"Context: {percent(used / budget)} used")
        assert f"{used:,} of {budget:,} tokens" in panel
    written = msgspec.json.decode(msgspec.json.encode(stats))
    assert (written["used_tokens"], written["usage_ratio"]) == (used, used / budget)
    return used


@pytest.mark.parametrize("window_tokens", [12_000, 40_000])
async def test_it_is_one_number_through_turns_compactions_and_changes_by_hand(
    tmp_path: Path, window_tokens: int
) -> None:
    events: list[Event] = []
    answers: Sequence[str] = [f"Answer {number}. {LONG}" for number in range(5)]
    replies = [*answers, *[SUMMARY] * 5]
    with a_stage(tmp_path, replies, window_tokens=window_tokens, context__auto="off") as stage:
        conversation = stage.conversation
        conversation.subscribe(events.append)
        await check(stage)
        for number in range(5):
            before = conversation.context.stats().used_tokens
            await conversation.send(f"Question {number}. {LONG[:400]}")
            started = [event for event in events if isinstance(event, RequestStarted)]
            if len(started) <= number:
                break
            assert before <= started[-1].used_tokens <= await check(stage)
        for warning in (event for event in events if isinstance(event, ContextWarning)):
            assert percent(warning.used_tokens / warning.budget_tokens) in warning.message
        for line in ("/context collapse 2", "/context expand 2", "/context pin 4", "/context compact before 5"):
            said = await stage.command(line)
            used = await check(stage)
            told = re.findall(r"\(([\d,]+) / ", said)
            assert told in ([], [f"{used:,}"]), line
        done = [event for event in events if isinstance(event, ContextCompaction) and event.phase == "completed"]
        assert [event.tokens_after for event in done] == [used]
        for line in ("/context undo", "/context redo", "/config context.max_tokens 9000", "/context clear"):
            await stage.command(line)
            await check(stage)


async def test_a_message_has_one_size_also_after_a_provider_reported_wrong_counts(tmp_path: Path) -> None:
    def answers(factor: float) -> Callable[[ModelRequest], Reply]:
        def answer(request: ModelRequest) -> Reply:
            usage = Usage(round(count_request_tokens(request.messages, request.tools) * factor), 300)
            return Reply(Message("assistant", LONG), usage)

        return answer

    with a_stage(tmp_path, [*[answers(1.2)] * 9, answers(2.6)], window_tokens=60_000) as stage:
        context = stage.conversation.context
        for number in range(10):
            await stage.conversation.send(f"Question {number}. {LONG[:400]}")
        sizes = {int(item.id): item.tokens for item in context.items()}
        assert {seq: context.pin_tokens(seq) for seq in sizes} == sizes
        context.pin(3)
        assert [pin.tokens for pin in context.pins()] == [sizes[3]]
