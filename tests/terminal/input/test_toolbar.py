"""The toolbar fits every window, and its gauge shows the one usage."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from nca import vocabulary
from nca.humanize import duration, percent, short_tokens
from nca.models.catalog import money
from nca.terminal.input.toolbar import ToolbarStatus, activity_of, gauge, toolbar
from nca.terminal.prompt_reader import status_of
from tests.terminal.stage import a_stage

STATUS = ToolbarStatus(
    "anthropic/claude-sonnet", 0.43, 86_000, 200_000, session="parser", cost=0.1234, permission="ask"
)


def text(status: ToolbarStatus, width: int) -> str:
    return "".join(part for _, part in toolbar(status, width))


def test_everything_is_there_where_there_is_room() -> None:
    assert text(STATUS, 100) == " anthropic/claude-sonnet  ▓▓▓░░░ 43% · 86k/200k  ask  $0.12  parser"


def test_names_give_way_first_and_the_share_stays() -> None:
    shrinking = [text(STATUS, width) for width in range(100, 0, -1)]
    assert " claude-sonnet  ▓▓▓░░░ 43% · 86k/200k" in shrinking
    assert " ▓▓▓░░░ 43% · 86k/200k" in shrinking
    assert " ▓▓▓░░░ 43%" in shrinking
    assert " 43%" in shrinking
    assert shrinking[-1] == ""


def test_the_lines_of_a_command_stand_above_each_cut_at_the_window() -> None:
    rows = text(STATUS._replace(command="\x1b[32mmain\x1b[0m · clean\n5h 23%\n" + "x" * 99), 40).split("\n")
    assert rows == [" main · clean", " 5h 23%", f" {'x' * 37}…", text(STATUS, 40)]
    assert text(STATUS._replace(command="main\n5h", written="{percent} {command}"), 40) == " 43% main"


@given(st.text(max_size=60), st.text(max_size=60), st.floats(0, 3), st.integers(0, 250))
def test_it_never_is_wider_than_the_window(model: str, session: str, ratio: float, width: int) -> None:
    status = STATUS._replace(model=model, session=session, usage_ratio=ratio)
    assert cell_len(text(status, width)) <= width
    assert "\x1b" not in text(status, width)


@pytest.mark.parametrize(
    ("ratio", "cells"),
    [(0, "░░░░░░"), (0.001, "▓░░░░░"), (0.5, "▓▓▓░░░"), (0.99, "▓▓▓▓▓░"), (1, "▓▓▓▓▓▓"), (2.5, "▓▓▓▓▓▓")],
)
def test_gauge(ratio: float, cells: str) -> None:
    assert gauge(ratio) == cells


def test_numbers_as_people_read_them() -> None:
    assert [short_tokens(n) for n in (0, 999, 1_000, 9_949, 9_950, 86_400, 999_499, 999_500, 2_000_000)] == [
        *("0", "999", "1.0k", "9.9k", "10k", "86k", "999k", "1.0M", "2.0M")
    ]
    assert [percent(r) for r in (0, 0.001, 0.43, 1.2)] == ["0%", "<1%", "43%", "120%"]
    assert [duration(s) for s in (0.04, 9.94, 12.3, 125)] == ["0.0 s", "9.9 s", "12 s", "2 min 05 s"]
    assert [money(d) for d in (0, 0.0012, 0.5, 12)] == ["$0.00", "$0.0012", "$0.50", "$12.00"]


def test_the_gauge_warns_of_a_high_usage() -> None:
    assert ("class:gauge", "▓▓▓░░░ 43% · 86k/200k") in toolbar(STATUS, 100)
    full = STATUS._replace(is_high=True)
    assert any(style == "class:gauge.high" for style, _ in toolbar(full, 100))


def test_what_goes_on_and_an_unusual_mode_outlive_names_and_the_gauge_outlives_them() -> None:
    busy = STATUS._replace(permission="auto", activity="compacting in the background")
    assert ("class:hint", "auto") in toolbar(busy, 120)
    assert ("class:activity", "compacting in the background") in toolbar(busy, 120)
    shrinking = list(dict.fromkeys(text(busy, width) for width in range(120, 0, -1)))
    assert shrinking == [
        " anthropic/claude-sonnet  ▓▓▓░░░ 43% · 86k/200k  auto  $0.12  parser  compacting in the background",
        " anthropic/claude-sonnet  ▓▓▓░░░ 43% · 86k/200k  auto  $0.12  compacting in the background",
        " claude-sonnet  ▓▓▓░░░ 43% · 86k/200k  auto  $0.12  compacting in the background",
        " claude-sonnet  ▓▓▓░░░ 43% · 86k/200k  auto  compacting in the background",
        " ▓▓▓░░░ 43% · 86k/200k  auto  compacting in the background",
        " ▓▓▓░░░ 43% · 86k/200k  auto",
        " ▓▓▓░░░ 43% · 86k/200k",
        " ▓▓▓░░░ 43%",
        " 43%",
        "",
    ]


async def test_servers_that_start_stand_in_the_toolbar(tmp_path: Path) -> None:
    with a_stage(tmp_path, mcp__servers={"docs": {"command": "docs-server"}}) as stage:
        conversation = stage.conversation
        assert activity_of(conversation) == status_of(conversation).activity == ""
        (docs,) = conversation.servers.connections
        docs.state = "starting"
        assert status_of(conversation).activity == "starting docs"
        assert status_of(conversation).permission == "ask"
        conversation.set("context.auto", "off")
        assert "auto-compaction off" in text(status_of(conversation), 40)


async def test_the_gauge_waits_for_the_vocabulary_and_the_prompt_does_not(tmp_path: Path) -> None:
    with a_stage(tmp_path) as stage:
        vocabulary._o200k.cache_clear()
        waiting = status_of(stage.conversation)
        assert not vocabulary.is_loaded(), "nothing was counted for the status"
        assert "░░░░░░ …" in text(waiting, 100)
        assert text(waiting, 4) == " …"
        vocabulary.load()
        counted = status_of(stage.conversation)
        assert counted.is_counted
        assert counted.used_tokens == stage.conversation.context.stats().used_tokens > 0
