"""Policies are compared by replays: what is cheaper, and what is kept."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.policy import WORDS, Policy, policies, simulated
from tests.benchmarks.test_recorded import talk


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows = talk(60)
    (tmp_path / "long.jsonl").write_text("\n".join(map(json.dumps, rows)))
    facts = [{"name": "rule", "from_message": 1, "kind": "rule", "all_of": [["lock.py"]]}]
    (tmp_path / "long.facts.json").write_text(json.dumps(facts))
    return tmp_path


def test_a_lower_target_costs_less_and_keeps_the_persons_words_while_they_have_room(folder: Path) -> None:
    low, high = simulated([folder], [Policy(0.3), Policy(0.6)], windows=(8_000, 64_000))
    assert (low["cases"], low["sessions"]) == (3, 2)
    assert low["compactions"] < high["compactions"]
    assert low["cached"] < high["cached"]
    assert low["uncached"] < high["uncached"]
    assert low["stated"] == 1.0
    # In the small window it is 1,560 tokens, less than all that the person said; twice that has room for it.
    for kind in ("rules of the user", WORDS):
        assert low["kept"][kind] <= high["kept"][kind]
        assert high["kept"][kind] > 0.99
    (large,) = simulated([folder], [Policy(0.3)], windows=(64_000,))
    assert large["kept"]["rules of the user"] == large["kept"][WORDS] == 1.0


def test_what_was_not_simulated_has_no_section() -> None:
    assert not list(policies({}))
