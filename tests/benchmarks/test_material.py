"""Generated sessions: equal for equal seeds, valid, and with everything that a compaction can lose."""

from __future__ import annotations

import json

import pytest

import nca
from benchmarks.comparison import limits, materials
from benchmarks.extractors import facts
from benchmarks.in_the_loop import KINDS, planted
from benchmarks.material import coding_session
from benchmarks.peers.side import chars, pair_faults, plain_row, text_of
from benchmarks.validity import refused_by


def test_a_seed_gives_the_same_session() -> None:
    session = coding_session(200)
    assert session == coding_session(300)[:200] or len(session) < 200
    # After another seed the texts are made anew.
    assert session != coding_session(200, seed=8)
    assert session == coding_session(200)


@pytest.mark.parametrize("length", [20, 100, 500])
def test_a_session_is_valid_and_as_long_as_asked(length: int) -> None:
    rows = coding_session(length)
    assert length - 3 <= len(rows) <= length
    assert pair_faults(rows) == []
    assert refused_by([plain_row(row) for row in rows]) == []
    json.dumps(rows)


def test_a_session_holds_what_can_be_lost() -> None:
    rows = coding_session(1_000)
    found = facts(rows)
    assert all(found[kind] for kind in ("paths touched", "files read", "error lines", "rules of the user"))
    reads = [text_of(row) for row in rows if "read_file" in text_of(row) and row["role"] == "assistant"]
    assert len(set(reads)) < len(reads)
    assert 200 < nca.estimate_messages_tokens([plain_row(row) for row in rows]) / len(rows) < 600


def test_each_session_is_larger_than_its_budget() -> None:
    for material in materials(None):
        sizes = limits(material.window_tokens)
        assert chars(material.rows) / 4 > sizes["budget_tokens"] > sizes["trigger_tokens"] > sizes["target_tokens"]


def test_what_is_asked_after_compactions_stands_in_the_session_once() -> None:
    rows, probes = planted(100)
    assert tuple(probe.kind for probe in probes) == KINDS
    assert pair_faults(rows) == []
    for probe in probes:
        assert any(probe.expected in text_of(row) for row in rows)
        assert probe.expected not in probe.question
    assert planted(101)[1] != probes
