"""The picture of the context: what was reported or estimated, and the compactions."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import msgspec

from nca.messages import Entry, Message, Usage
from nca.sessions import UsageRow
from nca.sessions.transfer import new_copy
from nca.transcripts.moments import compacted_after
from nca.transcripts.timeline import context_line, timeline
from tests.transcripts.samples import full


def test_reports_make_the_line_and_a_compaction_its_step() -> None:
    copy = full()
    points, is_estimate = context_line(copy)
    assert not is_estimate
    assert sorted(points) == [(8, 700), (9, 300), (9, 300), (9, 900)]
    picture = ElementTree.fromstring(timeline(copy))
    assert len(picture.findall(".//g")) == 2
    assert [group.get("class") for group in picture.findall(".//g")] == ["mark", "mark undone"]
    assert "compaction c1: 900 to 300 tokens" in "".join(picture.itertext())


def test_without_reports_it_is_an_estimate_by_the_view_in_force() -> None:
    copy = msgspec.structs.replace(full("word " * 50), usage=())
    points, is_estimate = context_line(copy)
    assert is_estimate
    before = [tokens for seq, tokens in points if seq == 9]
    assert points[0] == (0, 0)
    assert before[0] > before[-1] > 0
    assert "estimated" in timeline(copy)


def test_a_long_session_is_drawn_with_few_points() -> None:
    entries = [Entry(seq, Message("user", "word")) for seq in range(1, 20_001)]
    copy = new_copy(entries, directory="/")
    usage = [UsageRow(seq, "m", Usage(seq % 977 * 10, 1), 0, float(seq)) for seq in range(1, 20_001)]
    for one in (copy, msgspec.structs.replace(copy, usage=tuple(usage))):
        picture = timeline(one)
        assert len(picture) < 40_000
        assert len(re.findall(r"[\d.]+,[\d.]+ ", picture)) <= 800
    assert "9,760" in picture


def test_nothing_to_draw() -> None:
    assert timeline(new_copy([], directory="/")) == ""
    assert timeline(new_copy([Entry(1, Message("user", "x"))], directory="/")) == ""


def test_a_clock_that_jumps_leaves_compactions_inside_the_log() -> None:
    copy = full()
    for at in (0.0, 1e12):
        records = tuple(msgspec.structs.replace(record, at=at) for record in copy.compactions)
        for seq, record in compacted_after(msgspec.structs.replace(copy, compactions=records)):
            view = next(view for view in copy.views if view.number == record.view_after)
            assert view.tail - 1 <= seq <= len(copy.entries)
