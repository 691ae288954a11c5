"""Usage adds up, and what is learned about models outlives sessions."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nca.errors import StoreError
from nca.messages import Usage
from nca.sessions import Learned, Session, Store
from nca.sessions.usage import BESIDE, UNREPORTED
from tests.sessions.samples import MANUAL, hiding, said

COSTS = st.none() | st.integers(0, 1_000).map(lambda cents: cents / 4)
"""Exact in binary: the order in which they are added changes nothing."""
USAGES = st.builds(Usage, *[st.integers(0, 10**9)] * 5, COSTS)


@given(st.lists(st.tuples(st.sampled_from((UNREPORTED, BESIDE, 1, 2)), USAGES), max_size=8), st.integers(1, 4))
def test_all_is_counted_and_only_what_is_about_a_request_is_a_report(
    used: list[tuple[int, Usage]], newest: int
) -> None:
    """While it is written and by another reader, who may have asked before."""
    with Store.open(None) as store, store.create(directory="/work", model="m") as session:
        reader = store.open_session(session.info.id, read_only=True)
        session.log.append(said("a", "b"))
        for place, (seq, usage) in enumerate(used, 1):
            session.usage.record(seq, "m", usage, 0)
            for one in (session.usage, reader.usage):
                assert one.totals() == sum((counted for _, counted in used[:place]), Usage(0, 0))
        for one in (session.usage, reader.usage):
            assert [(row.seq, row.usage) for row in one.rows()] == used
            reports = [(row.seq, row.usage) for row in one.reports(newest)]
            assert reports == [(seq, usage) for seq, usage in used if seq > 0][-newest:]


def test_totals_are_the_sum_of_the_rows(session: Session) -> None:
    assert session.usage.totals() == Usage(0, 0)
    session.log.append(said("a", "b"))
    first = Usage(100, 10, 50, 5, 3, 0.5)
    session.usage.record(1, "m", first, 0)
    session.views.commit(hiding(1), MANUAL)
    session.usage.record(2, "n", Usage(7, 1), session.views.current_id)
    rows = session.usage.rows()
    assert [(row.seq, row.model, row.usage, row.view_id) for row in rows] == [
        (1, "m", first, 0),
        (2, "n", Usage(7, 1), 1),
    ]
    assert session.usage.totals() == Usage(107, 11, 50, 5, 3, 0.5)


def test_usage_of_a_view_that_never_was_is_refused(session: Session) -> None:
    with pytest.raises(StoreError):
        session.usage.record(1, "m", Usage(1, 1), 5)
    assert session.usage.rows() == []


def test_lessons_outlive_the_store(path: Path) -> None:
    with Store.open(path) as store:
        assert store.learned("m") == Learned(1.0, None, 0, 0.0)
        store.save_learned("m", Learned(1.2, None, 3))
        store.save_learned("m", Learned(1.3, 65_536, 4, 99.0))
    with Store.open(path, read_only=True) as store:
        assert store.learned("m") == Learned(1.3, 65_536, 4, 99.0)
        with pytest.raises(StoreError, match="reading only"):
            store.save_learned("m", Learned())
