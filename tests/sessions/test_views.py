"""Views are stored exactly, committed completely or not at all, with undo and redo."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nca.context.view import Marker, Stub, Summary, Verbatim, View, put_aside, ranges_of, seqs
from nca.errors import StoreError
from nca.sessions import CompactionRecord, Session, Store
from nca.sessions.view_rows import BESIDE, REDO, RESTORE, REWIND, UNPIN
from tests.context.test_view import PLACES, view_of
from tests.sessions.samples import MANUAL, RICH_VIEW, SUMMARY, change_pins, hiding, said


@pytest.fixture
def talk(session: Session) -> Session:
    """A session with ten messages."""
    session.log.append(said(*(f"message {number}" for number in range(1, 11))))
    return session


def test_a_new_session_shows_its_whole_log(talk: Session) -> None:
    assert talk.views.current() == View()
    assert talk.views.current_id == 0
    assert talk.views.compactions() == []
    assert (talk.views.undo(), talk.views.redo(), talk.views.current_id, talk.views.redo_id) == (None, None, 0, None)


def test_a_view_comes_back_exactly(store: Store, talk: Session) -> None:
    record = talk.views.commit(RICH_VIEW, MANUAL, expected_head=10)
    assert talk.views.current() == RICH_VIEW
    talk.close()
    with store.open_session(talk.info.id) as again:
        assert again.views.current() == RICH_VIEW
        assert again.views.compactions() == [record]
        assert again.views.summaries() == [SUMMARY]


def test_the_record_is_completed(talk: Session) -> None:
    record = CompactionRecord(
        trigger="threshold",
        stages=("prune", "summarize"),
        tokens_before=9,
        tokens_after=4,
        kept_facts=41,
        total_facts=44,
        kept={"rules": (40, 40), "state": (1, 4)},
        seconds=1.5,
        cost=0.25,
    )
    first = talk.views.commit(hiding(2), record)
    assert first.at > 0
    assert (first.id, first.view_before, first.view_after, first.undone) == ("c1", 0, 1, False)
    assert msgspec.structs.replace(first, id="", at=0.0, view_before=-1, view_after=-1) == record
    second = talk.views.commit(hiding(4), msgspec.structs.replace(record, at=7.0, cost=None))
    assert (second.id, second.view_before, second.view_after, second.at) == ("c2", 1, 2, 7.0)
    assert talk.views.compactions() == [first, second]


@pytest.mark.parametrize(
    ("view", "why"),
    [
        (View((), 3), "covers up to message 0"),
        (View((Verbatim(1, 2), Stub(2, "twice", "prune")), 3), "do not partition"),
        (View((Verbatim(2, 4),), 5), "do not partition"),
        (hiding(11), "covers more than the 10 messages"),
    ],
)
def test_a_view_that_does_not_fit_the_log_is_refused(talk: Session, view: View, why: str) -> None:
    with pytest.raises(StoreError, match=why):
        talk.views.commit(view, MANUAL)
    assert talk.views.current() == View()
    assert talk.views.compactions() == []
    assert talk.views.summaries() == []


def test_the_whole_log_may_be_covered(talk: Session) -> None:
    talk.views.commit(View((Marker("t", ((1, 10),), ""),), 11), MANUAL)
    [entry] = talk.log.append(said("next"))
    assert entry.seq == talk.views.current().tail


def test_messages_appended_while_planning_are_in_the_tail(talk: Session) -> None:
    talk.log.append(said("while you planned"))
    talk.views.commit(hiding(4), MANUAL, expected_head=10)
    assert talk.views.current() == hiding(4)


def test_a_plan_on_a_longer_log_is_refused(talk: Session) -> None:
    with pytest.raises(StoreError, match="covers more than"):
        talk.views.commit(hiding(4), MANUAL, expected_head=11)


def test_a_plan_on_another_view_is_refused(talk: Session) -> None:
    planned = msgspec.structs.replace(MANUAL, view_before=talk.views.current_id)
    talk.views.commit(hiding(2), MANUAL)
    with pytest.raises(StoreError, match="has changed since it was planned"):
        talk.views.commit(hiding(4), planned)
    assert talk.views.current() == hiding(2)


def test_undo_and_redo_walk_back_and_forth(talk: Session) -> None:
    views = [View(), hiding(2, "a"), RICH_VIEW, hiding(8, "b")]
    for view in views[1:]:
        talk.views.commit(view, MANUAL)
    for number in (3, 2, 1):
        record = talk.views.undo()
        assert record is not None
        assert (record.id, record.undone) == (f"c{number}", True)
        assert talk.views.current() == views[number - 1]
    assert talk.views.undo() is None
    assert [record.undone for record in talk.views.compactions()] == [True, True, True]
    talk.log.append(said("later messages stay"))
    for number in (1, 2, 3):
        record = talk.views.redo()
        assert record is not None
        assert (record.id, record.undone) == (f"c{number}", False)
        assert talk.views.current() == views[number]
    assert talk.views.redo() is None
    assert [record.undone for record in talk.views.compactions()] == [False, False, False]
    assert len(talk.log.entries()) == 11


def test_going_to_a_view_makes_the_session_the_one_used_last(store: Store, talk: Session) -> None:
    restored = CompactionRecord(trigger=RESTORE, stages=(RESTORE,))
    with store.create(directory="/", model="m") as other:
        for go, last in (
            (lambda: talk.views.commit(hiding(2), MANUAL), talk),
            (talk.views.undo, talk),
            (talk.views.redo, talk),
            (lambda: talk.views.commit(hiding(4), restored), other),
        ):
            other.log.append(said("meanwhile"))
            assert go()
            assert store.list(limit=1)[0].id == last.info.id


def test_a_new_compaction_drops_what_could_be_redone(talk: Session) -> None:
    talk.views.commit(hiding(2, "a"), MANUAL)
    talk.views.commit(hiding(4, "b"), MANUAL)
    talk.views.undo()
    talk.views.commit(hiding(6, "c"), MANUAL)
    assert talk.views.redo_id is None
    assert [record.undone for record in talk.views.compactions()] == [False, True, False]
    talk.views.undo()
    talk.views.undo()
    assert talk.views.current() == View()
    assert [record.id for record in (talk.views.redo(), talk.views.redo()) if record] == ["c1", "c3"]
    assert talk.views.current() == hiding(6, "c")


def ask_beside(talk: Session) -> None:
    talk.rewinds.append_beside(said("by the way", "yes"))


def go_back_and_forward(talk: Session) -> None:
    for trigger, (base, view) in ((REWIND, talk.rewinds.before(9)), (REDO, (0, View()))):
        if trigger == REDO:
            base, view = talk.rewinds.end_of(talk.views.current_id)
        talk.views.commit(view, CompactionRecord(trigger=trigger, stages=(trigger,)), parent=base)


@pytest.mark.parametrize("act", [ask_beside, go_back_and_forward])
def test_what_was_only_put_aside_since_an_undo_does_not_stand_in_the_way_of_redo(
    talk: Session, act: Callable[[Session], None]
) -> None:
    talk.views.commit(hiding(2, "a"), MANUAL)
    talk.views.commit(hiding(4, "b"), MANUAL)
    talk.views.undo()
    talk.views.undo()
    shown: list[View] = []
    for _ in range(2):
        act(talk)
        aside = talk.views.current().aside
        assert talk.views.redo() is not None
        shown.append(talk.views.current())
        assert shown[-1].aside == aside
    assert [view.items[0] for view in shown] == [*hiding(2, "a").items, *hiding(4, "b").items]
    assert talk.views.redo() is None
    assert [record.undone for record in talk.views.compactions()] == [False, False]
    for _ in range(2):
        assert talk.views.undo() is not None
    assert not any(isinstance(item, Summary) for item in talk.views.current().items)


def test_a_summary_stands_in_one_place(talk: Session) -> None:
    talk.views.commit(View((SUMMARY,), 3), MANUAL)
    talk.views.commit(View((SUMMARY, Verbatim(3, 4), Stub(5, "x", "prune")), 6), MANUAL)
    assert talk.views.summaries() == [SUMMARY]
    again = Summary("s1", ((1, 2),), "the same id after an undo, another text")
    talk.views.undo()
    talk.views.commit(View((again, Verbatim(3, 4)), 5), MANUAL)
    assert talk.views.summaries() == [SUMMARY, again]
    assert talk.views.current().items[0] == again


def test_pins(store: Store, talk: Session) -> None:
    change_pins(talk, 3)
    change_pins(talk, 3)
    change_pins(talk, 10)
    change_pins(talk, 4, stage=UNPIN)
    for seq in (0, -1, 11):
        with pytest.raises(StoreError, match="not in this session"):
            change_pins(talk, seq)
    assert talk.views.pins() == {3, 10}
    change_pins(talk, 3, stage=UNPIN)
    talk.close()
    with store.open_session(talk.info.id) as again:
        assert again.views.pins() == {10}


def test_undo_takes_back_the_last_change_of_pins_and_redo_brings_it_again(talk: Session) -> None:
    change_pins(talk, 3, 5)
    change_pins(talk, 5, stage=UNPIN)
    talk.views.commit(View((SUMMARY,), 3), MANUAL)
    assert talk.views.same_as_current() == [3]
    for pins in ({3}, {3, 5}, set()):
        talk.views.undo()
        assert talk.views.pins() == pins
    assert talk.views.undo() is None
    for pins in ({3, 5}, {3}, {3}):
        assert talk.views.redo() is not None
        assert talk.views.pins() == pins
    talk.views.undo()
    assert talk.views.same_as_current() == [2, 1, 0]
    # A question beside the conversation comes between.
    talk.rewinds.append_beside(said("by the way", "yes"))
    for step, pins in ((talk.views.undo, {3, 5}), (talk.views.undo, set()), (talk.views.redo, {3, 5})):
        assert step() is not None
        assert talk.views.pins() == pins


def test_sessions_do_not_see_each_other(store: Store, talk: Session) -> None:
    with store.create(directory="/", model="m") as other:
        other.log.append(said("mine", "too"))
        other.views.commit(hiding(1, "other"), MANUAL)
        talk.views.commit(hiding(2, "talk"), MANUAL)
        assert [record.id for record in other.views.compactions()] == ["c1"]
        assert other.views.current() == hiding(1, "other")
        assert talk.views.current() == hiding(2, "talk")
        assert len(talk.log.entries()) == 10
        talk.views.undo()
        assert other.views.current_id > 0


@given(st.lists(PLACES.map(lambda places: [place for place in places if place != "aside"]), max_size=3), st.data())
def test_what_was_put_aside_is_in_no_view_that_undo_or_redo_leads_to(
    made: list[list[str]], data: st.DataObject
) -> None:
    """A message that the newest view shows; an earlier one may have it cut, or behind a summary."""
    with Store.open(None) as store, store.create(directory="/work", model="m") as talk:
        talk.log.append(said(*(f"message {number}" for number in range(1, 13))))
        for places in made:
            talk.views.commit(view_of(places), MANUAL)
        gone = (data.draw(st.integers(1, 12)), 12)
        talk.views.commit(put_aside(talk.views.current(), [gone]), CompactionRecord(trigger=BESIDE, stages=(BESIDE,)))
        steps = data.draw(st.lists(st.sampled_from([talk.views.undo, talk.views.redo]), max_size=8))
        for step in (*steps, *[talk.views.undo] * len(made)):
            step()
            view = talk.views.current()
            assert gone in view.aside
            assert not {*seqs([gone])} & {seq for item in view.items for seq in seqs(ranges_of(item))}
