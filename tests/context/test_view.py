"""The view partitions the log, and every hidden message names what replaced it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nca.context.view import (
    Item,
    Marker,
    Range,
    Stub,
    Summary,
    Verbatim,
    View,
    check_partition,
    hidden_by,
    is_shown,
    merge_ranges,
    put_aside,
    ranges_of,
    seqs,
    without_ranges,
)

VIEW = View(
    (
        Summary("s", ((1, 2), (5, 5)), "a summary"),
        Verbatim(3, 4),
        Stub(6, "[Tool result cleared]", "prune"),
        Marker("m", ((7, 8),), "[out]"),
    ),
    9,
)


def test_what_older_stores_have_beside_a_summary_is_ignored() -> None:
    stored = (
        b'{"type": "summary", "id": "s", "ranges": [[1, 2]], "text": "x", "ledger": {"Files read": ["a"]}, "rank": 2}'
    )
    assert msgspec.json.decode(stored, type=Summary) == Summary("s", ((1, 2),), "x")


RANGES = st.lists(st.tuples(st.integers(1, 30), st.integers(0, 8)).map(lambda run: (run[0], sum(run))), max_size=6)


@given(RANGES, RANGES)
def test_ranges_without_others(ranges: list[tuple[int, int]], gone: list[tuple[int, int]]) -> None:
    left = without_ranges(ranges, gone)
    assert list(seqs(left)) == sorted({*seqs(ranges)} - {*seqs(gone)})
    assert all(one[1] + 1 < other[0] for one, other in pairwise(left))


def test_a_partition_is_accepted() -> None:
    check_partition(VIEW)
    check_partition(View())


@pytest.mark.parametrize(
    "view",
    [
        View((Verbatim(1, 2),), 4),
        View((Verbatim(1, 2),), 2),
        View((Verbatim(1, 2), Stub(2, "x", "prune")), 3),
        View((Verbatim(2, 3),), 4),
        View((Verbatim(1, 1), Verbatim(3, 3)), 4),
        View((Verbatim(2, 1),), 2),
        View((Marker("m", ((1, 1), (1, 1)), ""),), 2),
        View((), 2),
    ],
)
def test_gaps_overlaps_and_wrong_tails_are_refused(view: View) -> None:
    with pytest.raises(ValueError, match=r"partition|tail"):
        check_partition(view)


@given(st.sets(st.integers(1, 60)))
def test_merged_ranges_cover_the_same_and_nothing_twice(wanted: set[int]) -> None:
    merged = merge_ranges((seq, seq) for seq in wanted)
    assert list(seqs(merged)) == sorted(wanted)
    assert all(two[0] > one[1] + 1 for one, two in pairwise(merged))


def test_overlapping_ranges_become_one() -> None:
    assert merge_ranges([(4, 9), (1, 5), (2, 3)]) == ((1, 9),)


@pytest.mark.parametrize("item", VIEW.items)
def test_ranges_of_an_item(item: Item) -> None:
    covered = set(seqs(ranges_of(item)))
    hidden = isinstance(item, Summary | Marker)
    assert covered
    assert all((hidden_by(VIEW, seq) is item) == hidden for seq in covered)


def test_the_tail_is_not_hidden() -> None:
    assert hidden_by(VIEW, 9) is None


def test_a_view_goes_through_json_and_comes_back() -> None:
    assert msgspec.json.decode(msgspec.json.encode(VIEW), type=View) == VIEW


PLACES = st.lists(st.sampled_from(["shown", "stub", "aside", "summary a", "summary b", "marker"]), max_size=12)
"""Where each message below the tail of a view is."""


def runs_of(found: Iterable[int]) -> tuple[Range, ...]:
    return merge_ranges((seq, seq) for seq in found)


def view_of(places: Sequence[str]) -> View:
    """The view that has its messages in these places."""
    at = {place: [seq for seq, one in enumerate(places, 1) if one == place] for place in places}
    runs = {place: runs_of(found) for place, found in at.items()}
    items: list[Item] = [Verbatim(*run) for run in runs.pop("shown", ())]
    items += [Stub(seq, f"cut {seq}", "truncate") for seq in at.get("stub", ())]
    aside = runs.pop("aside", ())
    runs.pop("stub", None)
    items += [(Marker if place == "marker" else Summary)(place, run, place) for place, run in runs.items()]
    view = View(tuple(sorted(items, key=lambda item: ranges_of(item)[0])), len(places) + 1, aside)
    check_partition(view)
    return view


@given(PLACES, st.integers(0, 3), st.sets(st.integers(1, 15), min_size=1))
def test_no_item_is_about_a_message_that_is_put_aside(places: list[str], later: int, wanted: set[int]) -> None:
    """Only those of the tail could leave: one that was cut stayed, and the request had it."""
    head = len(places) + later
    view, gone = view_of(places), {seq for seq in wanted if seq <= head}
    after = put_aside(view, [(seq, seq) for seq in gone])
    check_partition(after)
    told = {seq: item for item in after.items for seq in seqs(ranges_of(item))}
    assert not gone & told.keys()
    assert {*seqs(after.aside)} == gone | {*seqs(view.aside)}
    for item in (*view.items, Verbatim(len(places) + 1, head)):
        staying = {*seqs(ranges_of(item))} - gone
        if isinstance(item, Stub) or (isinstance(item, Summary) and not gone & {*seqs(ranges_of(item))}):
            assert all(told[seq] is item for seq in staying)
        elif isinstance(item, Marker):
            assert {hidden_by(after, seq) for seq in staying} <= {Marker("marker", runs_of(staying), "marker")}
        else:
            assert all(is_shown(after, seq) and not isinstance(told.get(seq), Stub) for seq in staying)
    placed = [ranges_of(item)[0] for item in after.items]
    assert placed == sorted(placed)
