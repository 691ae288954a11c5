"""The panel of /context in narrow windows: names give way, numbers and reasons stay."""

from __future__ import annotations

import io

import pytest

from nca.agent.stats import ContextStats, HeavyItem
from nca.terminal.context_panel import context_panel
from nca.terminal.theme import plain_console

STATS = ContextStats(
    model="m",
    used_tokens=1_240_000,
    budget_tokens=2_000_000,
    window_tokens=2_000_000,
    reserve_tokens=0,
    target_tokens=1_000_000,
    usage_ratio=0.62,
    breakdown={"conversation": 1_240_000},
    messages=2,
    turns=1,
    hidden_messages=0,
    stubbed_messages=0,
    summaries=1,
    pinned_messages=0,
    compact_at_tokens=1_600_000,
    auto="on",
    next_rung="",
    heaviest=(
        HeavyItem("message 12, you: " + "日本語" * 20, 1_234_567, 0.7, ("a file in play", "bulk")),
        HeavyItem("summary \x1b[31m1a2b", 5_433),
    ),
    by_tool=(),
    is_estimate=False,
)


@pytest.mark.parametrize("width", [50, 80, 200])
def test_numbers_and_reasons_of_the_heaviest_stay_whole(width: int) -> None:
    console = plain_console({"COLUMNS": str(width)})
    console.print(context_panel(STATS, width))
    assert isinstance(console.file, io.StringIO)
    said = console.file.getvalue()
    lines = [line.rstrip() for line in said.splitlines()]
    (message,) = [line for line in lines if "1,234,567" in line]
    (summary,) = [line for line in lines if "5,433" in line]
    assert message.endswith("0.70 a file in play, bulk")
    assert "mess" in message
    assert "summ" in summary
    assert "\x1b" not in said
