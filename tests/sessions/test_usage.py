"""Usage adds up, and what is learned about models outlives sessions."""

from __future__ import annotations

from pathlib import Path

import pytest

from nca.errors import StoreError
from nca.messages import Usage
from nca.sessions import Learned, Session, Store
from tests.sessions.samples import MANUAL, hiding, said


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
