"""Costs as a person sees them: /cost, /context, and the line of a compaction."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import msgspec

from nca.agent.stats import Prices
from nca.errors import CostLimitReached
from nca.events import ContextCompaction
from nca.messages import Message, Usage
from nca.models.client import Reply
from nca.terminal.panels.context import context_panel
from nca.terminal.render.event_lines import compaction_line, error_line
from nca.terminal.render.theme import plain_console
from tests.terminal.panels.test_context import STATS
from tests.terminal.stage import a_stage


async def test_cost_tells_cache_turn_and_limit(tmp_path: Path) -> None:
    usage = Usage(1_000, 10, cache_read_tokens=600, cache_write_tokens=300, cost=0.25)
    with a_stage(tmp_path, [Reply(Message("assistant", "Hello."), usage)], session__max_cost=2) as stage:
        said = await stage.command("/cost")
        assert "No request of this session has been answered yet. · limit $2.00" in said
        assert "price unknown" not in said
        await stage.conversation.send("Hi.")
        said = await stage.command("/cost")
    assert "1,000 tokens in · 10 out · 60% of the input from the provider's cache · 300 written to it · $0.25" in said
    assert "last turn $0.25 · limit $2.00 (session.max_cost)" in said


async def test_cost_names_what_was_not_for_answers(tmp_path: Path) -> None:
    usage = Usage(1_000, 10, cost=0.25)
    replies = [Reply(Message("assistant", f"Hello {number}. " + "word " * 300), usage) for number in range(8)]
    with a_stage(tmp_path, replies) as stage:
        for _ in range(4):
            await stage.conversation.send("Hi. " + "word " * 300)
        await stage.conversation.context.compact()
        said = (await stage.command("/cost")).splitlines()
    assert [line for line in said if line.startswith("other requests ")]
    assert [line for line in said if line.startswith("answers ")]
    assert "Other requests: summaries, tasks and /btw." in said


def panel(prices: Prices) -> str:
    console = plain_console({})
    with console.capture() as captured:
        console.print(context_panel(replace(STATS, prices=prices), 100))
    return " ".join(captured.get().split())


def test_context_tells_what_a_request_costs_and_compaction_saves() -> None:
    assert "costs" not in panel(Prices())
    assert "Reading the next request costs $0.30." in panel(Prices(0.3))
    text = panel(Prices(0.3, 0.03, 0.02, 0.9, 0.09))
    assert "Reading the next request costs $0.30 ($0.0300 if cached)." in text
    assert "Compaction saves $0.90 per request ($0.0900 if cached) and cost $0.0200." in text


def test_the_line_of_a_compaction_tells_what_it_cost_and_saves() -> None:
    event = ContextCompaction("completed", "threshold", message="Compacted.", cost=0.5, saves=0.25, saves_cached=0.025)
    assert compaction_line(event) == "Compacted. · cost $0.50 · saves $0.25 per request ($0.0250 if cached)"
    grown = msgspec.structs.replace(event, cost=0, saves=-0.25, saves_cached=-0.025)
    assert compaction_line(grown) == "Compacted. · costs $0.25 more per request ($0.0250 if cached)"
    assert compaction_line(replace_prices(event)) == "Compacted."


def replace_prices(event: ContextCompaction) -> ContextCompaction:
    return ContextCompaction(event.phase, event.trigger, message=event.message)


async def test_stats_have_prices_where_the_model_has(tmp_path: Path) -> None:
    with a_stage(tmp_path, ["Hello."]) as stage:
        await stage.conversation.send("Hi.")
        assert stage.conversation.context.stats().prices == Prices()


def test_a_limit_is_raised_in_the_words_of_where_one_is() -> None:
    """`nca run` named a command of the chat."""
    error = CostLimitReached("It costs too much.", advice="`--max-cost 2` allows more.")
    assert error_line(error)[1] == "`/config session.max_cost 2` allows more."
