"""The /context panel: one screen at every size, readable without colours, with all commands."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from nca.agent.stats import ContextStats
from nca.agent.usage_breakdown import HeavyItem, RepeatedReads, RoleShare
from nca.context.parts import KINDS, LABELS
from nca.humanize import local_time
from nca.sessions.views import CompactionRecord
from nca.terminal.panels.context import AROUND_ROWS, FEWEST_ROWS, context_panel
from nca.terminal.panels.context_list import picture
from nca.terminal.render.theme import plain_console

STATS = ContextStats(
    model="m",
    used_tokens=1_240_000,
    budget_tokens=2_000_000,
    window_tokens=2_000_000,
    reserve_tokens=0,
    target_tokens=1_000_000,
    usage_ratio=0.62,
    breakdown={"conversation": 1_240_000},
    parts={"system_prompt": 1_000, "conversation": 1_239_000},
    messages=2,
    turns=1,
    hidden_messages=0,
    stubbed_messages=0,
    summaries=1,
    pinned_messages=0,
    compact_at_tokens=1_600_000,
    auto="on",
    next_rung="a notice above 1,200,000 tokens",
    heaviest=(
        HeavyItem("you: " + "日本語" * 20, 1_234_567, "12", 0.7, ("a file in play", "bulk")),
        HeavyItem("summary", 5_433, "\x1b[31m1a2b"),
    ),
    by_tool=(("shell", 900), ("read_file", 800)),
    by_file=(("src/parse.py", 700),),
    by_role=(RoleShare("tool", 3, 8_100, 24_000), RoleShare("user", 2, 90, 300)),
    repeated=(RepeatedReads("src/parse.py", (17, 23), 3_017),),
    is_estimate=False,
)
FULL = replace(
    STATS,
    used_tokens=sum(range(100, 1_100, 100)),
    budget_tokens=26_000,
    window_tokens=40_000,
    reserve_tokens=14_000,
    usage_ratio=0.21,
    parts={kind: 100 * place for place, kind in enumerate(KINDS, 1)},
    hidden_messages=1,
)
RECORDS = [
    CompactionRecord(
        trigger="manual",
        stages=("prune",),
        tokens_before=9_000,
        tokens_after=4_000,
        kept_facts=3,
        total_facts=3,
        id="c1",
    ),
    CompactionRecord(
        trigger="threshold", stages=("x\x1b[2J",), tokens_before=8_000, tokens_after=4_000, kept_facts=4, total_facts=5
    ),
    CompactionRecord(trigger="manual", stages=("pin",), tokens_before=1, tokens_after=2, id="c3"),
]


def drawn(
    stats: ContextStats,
    width: int,
    rows: int = 24,
    *,
    records: Sequence[CompactionRecord] = RECORDS,
    is_all: bool = False,
    has_bars: bool = True,
) -> list[str]:
    console = plain_console({"COLUMNS": str(width)})
    console.print(
        context_panel(stats, width, rows, records=records, is_all=is_all, collapsible="12", has_bars=has_bars)
    )
    assert isinstance(console.file, io.StringIO)
    said = console.file.getvalue()
    assert "\x1b" not in said
    return [line.rstrip() for line in said.splitlines()]


@pytest.mark.parametrize("width", [80, 200])
def test_numbers_ids_and_reasons_of_the_heaviest_stay_whole(width: int) -> None:
    lines = drawn(STATS, width, 60)
    (message,) = [line for line in lines if "1,234,567" in line]
    (summary,) = [line for line in lines if "5,433" in line]
    assert message.split()[0] == "12"
    assert "0.70 a file in play, bulk" in message
    assert summary.split()[1] == "5,433"
    assert "summ" in summary or width < 64


@given(st.sampled_from([STATS, FULL]), st.integers(30, 220), st.integers(1, 70))
@settings(max_examples=60, deadline=None)
def test_it_fits_the_screen_and_keeps_the_number_the_picture_and_what_comes_next(
    stats: ContextStats, width: int, rows: int
) -> None:
    lines = drawn(stats, width, rows)
    assert max(map(cell_len, lines)) <= width
    text = " ".join(" ".join(lines).split())
    assert f"{stats.used_tokens:,} of {stats.budget_tokens:,} tokens" in text
    assert "free" in text
    assert "Next: a notice above" in text
    assert "/context collapse 12" in text
    if rows >= 24 and width >= 64:
        assert len(lines) <= rows - AROUND_ROWS
    assert len(lines) <= max(rows, FEWEST_ROWS + 14)


def bars(lines: list[str]) -> list[tuple[str, int, int]]:
    """The rows of the picture: label, and the first cell of its bar and the one after the last."""
    found = [re.match(r" (\S.*?) +[\d,]+ +(?:<?\d+%)?( +)([█░·]*)", line) for line in lines]
    return [(row[1], row.start(3), row.end(3)) for row in found if row is not None and row[3]]


@given(
    st.dictionaries(st.sampled_from(KINDS), st.integers(0, 9_000), min_size=1),
    st.integers(0, 20_000),
    st.integers(34, 220),
)
@settings(max_examples=60, deadline=None)
def test_each_bar_begins_where_the_one_above_it_ends(parts: dict[str, int], free: int, width: int) -> None:
    used = sum(parts.values())
    free = free if used else max(1, free)
    budget = used + free
    stats = replace(
        FULL,
        parts=parts,
        used_tokens=used,
        budget_tokens=budget,
        window_tokens=budget + 4_000,
        reserve_tokens=4_000,
        compact_at_tokens=int(0.8 * budget),
    )
    assert all(cell_len(line) < width for line in picture(stats, width).plain.splitlines())
    drawn_bars = bars(picture(replace(stats, auto="off"), width).plain.splitlines())
    full = [LABELS[kind] for kind in KINDS if parts.get(kind)]
    assert len(drawn_bars) == len(full) + bool(free) + 1
    for (_, start, end), (_, following, _) in pairwise(drawn_bars):
        assert end > start
        # What is too small for a cell of its own shares the last one.
        assert following in (end, end - 1)
    for label, (drawn_label, *_) in zip(full, drawn_bars, strict=False):
        assert label.startswith(drawn_label.removesuffix("…"))


@pytest.mark.parametrize("width", [40, 60, 80, 200])
def test_no_label_is_cut(width: int) -> None:
    million = dict.fromkeys(KINDS, 80_000)
    stats = replace(FULL, parts=million, budget_tokens=900_000, window_tokens=1_048_576, reserve_tokens=64_000)
    labels = [line.split("  ")[0].strip() for line in picture(stats, width).plain.splitlines()]
    assert labels[: len(KINDS) + 3] == [*(LABELS[kind] for kind in KINDS), "free", "answer reserve", "over max_tokens"]


def test_the_mark_says_where_compaction_begins() -> None:
    stats = replace(FULL, compact_at_tokens=20_800)
    for width in (80, 200):
        lines = picture(stats, width).plain.splitlines()
        foot = lines[-1]
        assert foot.strip(" └┘") == "compaction at 20,800"
        place = max(foot.find("└"), foot.find("┘"))
        assert [line[place] for line in lines[:-1]] == ["┊"] * (len(lines) - 1)
    assert "compaction" not in picture(replace(stats, auto="off"), 80).plain


def test_small_screens_fold_what_is_small_and_the_sum_stays() -> None:
    lines = drawn(FULL, 80, 20)
    assert any("everything else" in line for line in lines)
    rows = [line.split("%")[0].split() for line in lines if "%" in line and "█" in line]
    assert sum(int(row[-2].replace(",", "")) for row in rows) == FULL.used_tokens


def test_wide_windows_have_sections_side_by_side() -> None:
    lines = drawn(FULL, 160, is_all=True)
    assert any("Largest items" in line and "By tool" in line for line in lines)
    assert not any("Largest items" in line and "By tool" in line for line in drawn(FULL, 100, is_all=True))
    read_aloud = drawn(FULL, 160, is_all=True, has_bars=False)
    assert not any("Largest items" in line and "By tool" in line for line in read_aloud)


@pytest.mark.parametrize("width", range(80, 200, 10))
def test_a_wider_window_never_shows_less_of_what_an_item_is(width: int) -> None:
    label = "you: " + "what is wrong here " * 5
    stats = replace(FULL, heaviest=(HeavyItem(label, 5_433, "12", 0.7, ("an error without a fix",)),))
    texts = ["\n".join(drawn(stats, columns, is_all=True)) for columns in (80, width)]
    shown = [len(re.findall(r"you: .*?…", text)[0]) for text in texts]
    assert shown[1] >= shown[0]


def test_repeated_reads_tell_their_waste_and_the_command_that_ends_it() -> None:
    text = " ".join(drawn(STATS, 100))
    assert "src/parse.py was read 3 times (3,017 tokens of copies): /context collapse 17 23." in text


def test_all_has_tools_files_roles_each_compaction_and_where_every_command_is() -> None:
    text = "\n".join(drawn(FULL, 100, is_all=True))
    for words in (
        "2 compactions saved 9,000 tokens and kept 4 of 5 facts",
        # Without its number in the store: views made by hand are counted there too, so it had gaps.
        f"  {local_time(0)}  9,000 → 4,000  manual: prune\n    kept 3 of 3 facts",
        "tool results           3     8,100        24,000",
        "900   shell",
        "700   src/parse.py",
        "compact from 12 · undo · /help context lists all",
    ):
        assert words in text
    assert "c3" not in text


def test_more_than_the_budget_is_shown_as_it_is() -> None:
    over = replace(STATS, used_tokens=3_000_000, usage_ratio=1.5, parts={"conversation": 3_000_000})
    lines = drawn(over, 80)
    assert lines[0].startswith("Context: 50% over the budget")
    assert any("free" in line and line.split()[1:3] == ["0", "0%"] for line in lines)


def test_what_is_advised_can_be_done() -> None:
    assert "· undo ·" not in drawn(STATS, 100, records=())[-1]
    assert "· undo ·" in drawn(STATS, 100)[-1]
    undone = [msgspec.structs.replace(record, undone=True) for record in RECORDS]
    assert "· undo ·" not in drawn(STATS, 100, records=undone)[-1]
    assert "Read the summary: /context show " in " ".join(drawn(STATS, 200, 60))
