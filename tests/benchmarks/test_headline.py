"""The headline: what is read in each request, one vote a session, and where another program is ahead."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks.comparison import VARIANTS, Variant
from benchmarks.environments import NCA, Environment
from benchmarks.headline import WINDOWS, ahead, headline, kept_to_budget, replayed, standings
from benchmarks.stated import Fact, Recorded
from tests.benchmarks.samples import figures, stated
from tests.benchmarks.test_recorded import talk


def test_a_session_is_replayed_in_the_windows_that_it_does_not_fit_into(tmp_path: Path) -> None:
    facts = [Fact("rule", 1, "rule", [["lock.py"]]), Fact("who", 1, "name", [["Varga"]])]
    rule_later = Fact("never said", 21, "rule", [["Nobody"]])
    sessions = [Recorded("long", talk(60), [*facts, rule_later]), Recorded("short", talk(3), facts)]
    own = [variant for variant in VARIANTS if variant.peer == "nca" and variant.name == "extract"]
    rows = list(replayed({"nca": Environment(NCA)}, sessions, tmp_path, own))
    assert [(row["session"], row["window_tokens"]) for row in rows] == [("long", window) for window in WINDOWS]
    for row in rows:
        assert row["others"] == [61, 61]
        assert row["rules"] == [61, 61 + 51], "due in the 51 requests from message 21 on, and never readable"
        assert (row["requests"], row["refused"], row["over"]) == (61, 0, 0)
    assert rows[0]["compactions"] > rows[-1]["compactions"] > 0


def test_a_window_is_left_out_where_the_newest_words_are_larger(tmp_path: Path) -> None:
    rows = [*talk(40), {"role": "user", "content": "word " * 6_000}, {"role": "assistant", "content": "Too long."}]
    sessions = [Recorded("long", rows, [Fact("rule", 1, "rule", [["lock.py"]])])]
    own = [variant for variant in VARIANTS if variant.peer == "nca" and variant.name == "extract"]
    found = list(replayed({"nca": Environment(NCA)}, sessions, tmp_path, own))
    assert [(row["window_tokens"], "error" in row) for row in found] == [(12_000, False), (24_000, False)]


def test_an_adapter_that_fails_is_a_row_with_its_reason(tmp_path: Path) -> None:
    sessions = [Recorded("long", talk(60), [Fact("rule", 1, "rule", [["lock.py"]])])]
    rows = list(replayed({"nca": Environment(NCA)}, sessions, tmp_path, [Variant("nca", "no such", "nobody")]))
    assert all("error" in row for row in rows)
    (one,) = standings(rows)
    assert (one.rules[0], one.requests, one.cost_ratio) == (0, 0, 0)
    assert one.failures


def test_each_session_is_one_vote() -> None:
    rows = [
        stated("nca", "nca", rules=[4, 4]),
        stated("nca", "nca", rules=[2, 4], window_tokens=12_000),
        stated("nca", "nca", rules=[1, 100], session="other"),
        stated("nca", "nca", rules=[0, 0], session="without rules"),
    ]
    (one,) = standings(rows)
    assert one.rules == pytest.approx({0: (0.75 + 0.01) / 2, 8_000: (1 + 0.01) / 2, 12_000: 0.5})


def test_who_is_ahead_is_said_with_what_it_costs() -> None:
    assert list(ahead(figures())) == []
    better: dict[str, Any] = figures()
    better["headline"][1] |= {"others": [10, 10], "over": 4, "refused": 0}
    but = "other <trim> 100.0% with 4 of 10 requests over the budget (nca: 0)"
    assert list(ahead(better)) == [("other facts readable, played sessions", "90.0%", but, "", False)]
    better["headline"][0] |= {"refused": 1, "over": 9, "cost_ratio": 0.3}
    assert [line[0] for line in ahead(better)][1:] == [
        "requests refused, played sessions",
        "requests over the budget, played sessions",
        "cost with a cache, played sessions",
    ]
    better["headline"].append(stated("other", "other <trim>", others=[0, 10], window_tokens=12_000))
    better["headline"].append(stated("nca", "nca", others=[10, 10], window_tokens=12_000))
    assert "other facts readable at 8k, played sessions" in [line[0] for line in ahead(better)]
    del better["headline"][2:]
    text = "\n".join(headline(better))
    assert "| other <trim> | 25.0% | 25.0% | 100.0% | 100.0% | 100% | 4 of 10 | 0 | 20.0% |" in text
    assert "Real sessions" not in text
    better["marked"] = [stated("nca", "nca", session="real")]
    assert "The same for 1 real sessions" in "\n".join(headline(better))


def test_who_keeps_to_the_budget_is_decided_by_the_newer_vocabulary_where_all_was_counted_by_it() -> None:
    rows = [stated("nca", "nca", over=4, over_o200k=0), stated("other", "other", over=4, over_o200k=2)]
    assert [one.name for one in kept_to_budget(rows)] == ["nca", "other"]
    assert [one.over_of_all for one in kept_to_budget(rows)] == ["4 · 0 of 10", "4 · 2 of 10"]
    rows.append(stated("other", "other", session="elsewhere", over=4))
    assert [one.name for one in kept_to_budget(rows)] == ["nca"]
    rows[1]["over"] = rows[2]["over"] = 2
    assert [one.over_of_all for one in kept_to_budget(rows)] == ["4 · 0 of 10", "4 of 20"]
