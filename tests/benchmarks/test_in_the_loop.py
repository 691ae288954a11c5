"""Sessions with planted facts, compacted as in a chat: what stays readable, whoever writes the summaries."""

from __future__ import annotations

import pytest

from benchmarks.in_the_loop import Session, planted
from benchmarks.peers.side import pair_faults

EMPTY_PROSE = "### 1. Goal and intent\nWork goes on in small steps, each of them with its tests, as it was asked for."


@pytest.mark.parametrize("seed", range(100, 104))
@pytest.mark.parametrize(("window", "filler"), [(3_000, 12), (6_000, 24), (16_000, 64)])
def test_what_the_user_said_to_remember_outlives_every_compaction(seed: int, window: int, filler: int) -> None:
    rows, probes = planted(seed, filler)
    for ask in (None, lambda _, __: EMPTY_PROSE):
        session = Session(rows, ask, window)
        assert session.compactions > 1
        assert pair_faults(session.context) == []
        text = str(session.context)
        kept = {probe.kind: probe.expected in text for probe in probes}
        assert kept["recall"]
        if window > 6_000 or (window > 3_000 and ask is None):
            assert kept["artifact"]
            assert kept["continuation"]
            # What the model itself settled on is its summary's to say, unless code writes that and it said "decided".
            has_said_so = any("We decided" in (row["content"] or "") for row in rows)
            assert kept["decision"] or ask is not None or not has_said_so
