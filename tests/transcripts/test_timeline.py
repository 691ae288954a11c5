"""The chart of the context: reported or estimated sizes, and the compactions."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import msgspec
import pytest

from nca.context.tokens import message_tokens
from nca.messages import Entry, Message, Usage
from nca.sessions.transfer import new_copy
from nca.sessions.usage import UsageRow
from nca.transcripts.descriptions import compaction_positions
from nca.transcripts.timeline import STACK, Composition, context_sizes, timeline
from tests.transcripts.samples import full


def test_reports_make_the_line_and_a_compaction_its_step() -> None:
    copy = full()
    sizes, is_estimate = context_sizes(copy)
    points = [(size.seq, size.tokens, size.view) for size in sizes]
    assert not is_estimate
    assert points == [(8, 700, 0), (9, 900, 0), (9, 300, 1), (9, 300, 1)]
    picture = ElementTree.fromstring(timeline(copy))
    assert len(picture.findall(".//g")) == 2
    assert [group.get("class") for group in picture.findall(".//g")] == ["mark", "mark undone"]
    assert "compaction 1: 900 to 300 tokens" in "".join(picture.itertext())


def test_without_reports_it_is_an_estimate_by_the_view_in_force() -> None:
    copy = msgspec.structs.replace(full("word " * 50), usage=())
    sizes, is_estimate = context_sizes(copy)
    points = [(size.seq, size.tokens) for size in sizes]
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
        for points in re.findall(r'points="([^"]*)"', picture):
            assert len(points.split()) <= 302
    assert "9,760" in picture


def test_nothing_to_draw() -> None:
    assert timeline(new_copy([], directory="/")) == ""
    assert timeline(new_copy([Entry(1, Message("user", "x"))], directory="/")) == ""


def test_a_clock_that_jumps_leaves_compactions_inside_the_log() -> None:
    copy = full()
    for at in (0.0, 1e12):
        records = tuple(msgspec.structs.replace(record, at=at) for record in copy.compactions)
        jumped = msgspec.structs.replace(copy, compactions=records)
        seqs = [size.seq for size in context_sizes(jumped)[0]]
        assert seqs == sorted(seqs), "the line goes from left to right"
        for seq, record in compaction_positions(jumped):
            view = next(view for view in copy.views if view.number == record.view_after)
            assert view.tail - 1 <= seq <= len(copy.entries)


def test_the_areas_add_up_to_the_line_and_tell_the_kinds_apart() -> None:
    copy = full("word " * 200)
    found, _ = context_sizes(copy)
    composition = Composition(copy)
    for moment in found:
        parts = composition.split(moment)
        assert list(parts) == list(STACK)
        assert min(parts.values()) >= 0
        assert sum(parts.values()) == moment.tokens
    picture = timeline(copy)
    kinds = re.findall(r'polygon class="k (\w+)"', picture)
    assert {"conversation", "tool_results", "attachments", "summaries"} <= set(kinds)
    # The one that lies lowest is drawn last, and all are named.
    assert kinds == [kind for kind in reversed(STACK) if kind in kinds]
    assert all(f">{STACK[kind]}</text>" in picture for kind in kinds)


def test_what_no_message_explains_goes_along_with_every_request() -> None:
    entries = [Entry(seq, Message("user" if seq % 2 else "assistant", "word " * 80)) for seq in range(1, 21)]
    raw = [sum(message_tokens(entry.message) for entry in entries[:seq]) for seq in range(1, 21)]
    usage = [UsageRow(seq, "m", Usage(round(1.1 * raw[seq - 1]) + 1_000, 1), 0, float(seq)) for seq in range(1, 21, 2)]
    copy = msgspec.structs.replace(new_copy(entries, directory="/"), usage=tuple(usage))
    composition, (found, is_estimate) = Composition(copy), context_sizes(copy)
    assert not is_estimate
    assert [abs(composition.split(moment)["fixed"] - 1_000) <= 100 for moment in found] == [True] * 10
    estimated = msgspec.structs.replace(copy, usage=())
    assert all(Composition(estimated).split(moment)["fixed"] == 0 for moment in context_sizes(estimated)[0])


@pytest.mark.parametrize("turns", [1, 4, 5, 6, 59, 60, 61, 400])
def test_each_turn_of_the_person_has_a_tick_and_every_fifth_a_number(turns: int) -> None:
    """What nca asks in between is no turn."""
    messages = [Message("user", "x", source=source) for _ in range(turns) for source in ("typed", "nca")]
    entries = [Entry(seq, message) for seq, message in enumerate(messages, 1)]
    picture = timeline(new_copy(entries, directory="/"))
    step = -(-turns // 60)
    assert len(re.findall(r'y2="252"', picture)) == -(-turns // step)
    numbers = re.findall(r'y="264" text-anchor="middle">(\d+)<', picture)
    assert numbers == [str(number) for number in range(1, turns + 1, 5 * step)]
