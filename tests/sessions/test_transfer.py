"""Export and import of whole sessions: complete, cut, or refused if parts do not match."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from nca.context.view import Stub, Verbatim, View
from nca.errors import SessionNotFound, StoreError, UsageError
from nca.messages import Message, Usage
from nca.sessions import Session, Store
from nca.sessions.log import insert
from nca.sessions.transfer import FIRST_VIEW, SessionCopy, ViewCopy, cut, extend, new_copy
from nca.sessions.usage import UsageRow
from nca.sessions.views import SummaryPlace
from tests.sessions.samples import MANUAL, RICH_VIEW, calling, hiding, pin, result, said


@pytest.fixture
def talk(session: Session) -> Session:
    """Ten messages, three compactions of which one is undone, a pin and a call."""
    messages = said(*(f"message {number}" for number in range(1, 11)))
    session.log.append(messages[:4])
    session.views.commit(hiding(2, "first"), MANUAL)
    session.log.append(messages[4:])
    session.views.commit(RICH_VIEW, msgspec.structs.replace(MANUAL, cost=0.25, trigger="threshold"))
    session.views.commit(hiding(8, "last"), MANUAL)
    session.views.undo()
    pin(session, 3)
    session.usage.record(9, "m", Usage(100, 20, cost=0.5), 1)
    session.rename("the talk")
    return session


def stored(store: Store, session_id: str) -> list[tuple[str, ...]]:
    """The bytes of the log, as they are on the disk."""
    number = store._find(session_id)[1]
    return store._database.rows("SELECT body FROM messages WHERE session = ? ORDER BY seq", (number,))


def test_a_fork_has_all_of_it_and_goes_its_own_way(store: Store, talk: Session) -> None:
    copy = store.fork(talk.info.id)
    assert copy.id != talk.info.id
    assert (copy.name, copy.title, copy.messages) == ("the talk (fork)", talk.info.title, 10)
    assert store.latest() == copy
    assert stored(store, copy.id) == stored(store, talk.info.id)
    with store.open_session(copy.id) as fork:
        assert (fork.views.current(), fork.views.pins(), fork.usage.rows()) == (
            talk.views.current(),
            talk.views.pins(),
            [],
        )
        assert fork.views.compactions() == talk.views.compactions()
        assert fork.views.summaries() == talk.views.summaries()
        assert fork.views.redo() is not None
        assert fork.views.current() == hiding(8, "last")
        for view in (RICH_VIEW, hiding(2, "first"), View()):
            fork.views.undo()
            assert fork.views.current() == view
        fork.log.append(said("only here"))
    assert talk.views.current() == RICH_VIEW
    assert talk.info.messages == 10


def test_a_fork_from_a_message_has_what_was_there(store: Store, talk: Session) -> None:
    info = store.fork(talk.info.id, at=5, name=" two\nlines ")
    assert (info.name, info.messages) == ("two lines", 5)
    with store.open_session(info.id) as fork:
        assert [entry.message.text for entry in fork.log.entries()] == [f"message {n}" for n in range(1, 6)]
        assert fork.views.current() == hiding(2, "first")
        assert fork.views.pins() == {3}
        assert fork.views.undo() is not None
        assert fork.views.current() == View()
    with store.open_session(store.fork(talk.info.id, at=1).id) as fork:
        assert (fork.views.current(), fork.views.current_id, fork.views.pins()) == (View(), 0, frozenset())


def test_a_fork_has_no_compaction_that_was_made_later(store: Store, talk: Session) -> None:
    for at, compactions in ((3, 0), (4, 1), (9, 1), (10, 3)):
        with store.open_session(store.fork(talk.info.id, at=at).id) as fork:
            assert len(fork.views.compactions()) == compactions


def test_a_fork_has_each_pin_up_to_its_last_message(store: Store, talk: Session) -> None:
    pin(talk, 10)
    copy = store.copy_of(talk.info.id)
    assert [cut(copy, at).pins for at in (2, 3, 9, 10)] == [(), (3,), (3,), (3, 10)]


def test_a_fork_never_parts_calls_from_their_results(store: Store, session: Session) -> None:
    session.log.append([*said("question"), calling("1", "2"), result("1"), result("2"), Message("assistant", "answer")])
    for at in (2, 3, 4):
        assert store.fork(session.info.id, at=at).messages == 4
    session.log.append([*said("more"), calling("3")])
    with store.open_session(store.fork(session.info.id).id) as fork:
        assert [entry.message.tool_call_id for entry in fork.recovered] == ["3"]


def test_views_are_tied_to_the_nearest_that_is_left(store: Store, session: Session) -> None:
    session.log.append(said(*"abcdef"))
    session.views.commit(hiding(2), MANUAL)
    session.views.commit(hiding(6), MANUAL)
    session.views.commit(View((Stub(1, "cut", "prune"), Verbatim(2, 3)), 4), MANUAL)
    copy = store.copy_of(session.info.id)
    # A file from elsewhere may not say when a view was made.
    views = tuple(msgspec.structs.replace(view, since=0) for view in copy.views)
    with store.open_session(store.add(cut(msgspec.structs.replace(copy, views=views), 3)).id) as fork:
        assert fork.views.current_id == 3
        assert fork.views.undo() is not None
        assert fork.views.current() == hiding(2)


@pytest.mark.parametrize("at", [0, -1, 11])
def test_there_is_no_such_message(store: Store, talk: Session, at: int) -> None:
    with pytest.raises(UsageError, match=rf"no message {at} in session \w+; valid: 1 to 10\."):
        store.fork(talk.info.id, at=at)
    assert len(store.list()) == 1


def test_a_session_that_is_open_elsewhere_can_be_copied(path: Path, talk: Session) -> None:
    with Store.open(path, read_only=True) as reader:
        assert reader.copy_of("the talk").info == talk.info
        with pytest.raises(StoreError, match="reading only"):
            reader.fork("the talk")
    with pytest.raises(SessionNotFound), Store.open(path, read_only=True) as reader:
        reader.copy_of("nowhere")


def test_an_import_counts_as_used_now_and_keeps_its_birth(store: Store, talk: Session) -> None:
    copy = store.copy_of(talk.info.id)
    aged = msgspec.structs.replace(copy.info, created_at=1.5, updated_at=2.5, is_pinned=True, title="forged")
    info = store.add(msgspec.structs.replace(copy, info=aged))
    assert (info.created_at, info.is_pinned, info.title) == (1.5, True, "message 1")
    assert info.updated_at >= talk.info.updated_at
    assert store.expired(1, 50) == []
    with store.open_session(info.id) as session:
        assert session.usage.rows() == talk.usage.rows()


def test_the_same_session_elsewhere_was_used_when_it_was(store: Store, session: Session) -> None:
    session.log.append(said("hello", "yes"))
    fork = store.fork(session.info.id)
    with store.open_session(fork.id) as opened:
        opened.set_pinned(True)
    copy = store.copy_of(fork.id)
    assert copy.info.updated_at == fork.updated_at
    aged = copy.with_info(updated_at=2.5)
    with Store.open(None) as elsewhere:
        info = elsewhere.add(aged, keeps_id=True)
    assert info == aged.info
    assert info.title == "(fork) hello"


def test_a_new_copy_has_only_a_log(store: Store, session: Session) -> None:
    entries = session.log.append(said("hello", "yes"))
    info = store.add(new_copy(entries, directory="/here", name="x"))
    assert (info.directory, info.name, info.title, info.messages) == ("/here", "x", "hello", 2)


def test_an_import_is_indexed_as_what_is_appended(store: Store, session: Session) -> None:
    """An import inserts its passages in bulk; a trigger inserts those of each appended message."""
    long = "Ann: getUserName said 東京都 on 2026-03-04. " * 60
    session.log.append([*said(long, "two"), *said("three")])
    info = store.add(store.copy_of(session.info.id))

    def indexed(session_id: str) -> list[tuple[object, ...]]:
        return store._database.rows(
            "SELECT seq, passages.rowid % 4096 FROM messages JOIN passages ON passages.rowid / 4096 = messages.id"
            " WHERE messages.session = ? ORDER BY 1, 2",
            (store._find(session_id)[1],),
        )

    assert indexed(info.id) == indexed(session.info.id)
    assert len(indexed(info.id)) > 4
    with store.open_session(info.id) as copy:
        for question in ("user name", "東京", "march", "two", "ann"):
            assert [hit.seq for hit in copy.search(question)] == [hit.seq for hit in session.search(question)] != []
        copy.log.append(said("zebra"))
        assert copy.search("zebra")[0].seq == 4


def test_what_does_not_follow_the_last_message_is_not_written(store: Store, session: Session) -> None:
    """The triggers, which refuse it elsewhere, rest during an import; after it they are there again."""
    entries = session.log.append(said("one", "two", "three"))
    for place in (0, 1):
        with pytest.raises(StoreError, match="does not follow"), session.transaction() as connection:
            insert(session.database, connection, session.number, entries[place:])
    with pytest.raises(StoreError), session.transaction() as connection:
        connection.execute("UPDATE messages SET at = 0")
    assert session.log.entries() == entries


@pytest.mark.parametrize("goes_on", [True, False])
def test_a_session_grows_by_reports_alone_and_counts_each_once(store: Store, session: Session, goes_on: bool) -> None:
    """Also where the file has left the view in force: its own is added then."""
    whole = new_copy(session.log.append(said("one", "two")), directory="/")
    if not goes_on:
        session.views.commit(hiding(1), MANUAL)
    used = tuple(UsageRow(2, "m", Usage(tokens, 1), 0, 1.0) for tokens in (7, 8, 9))
    for many in (1, 1, 3):
        extend(session, msgspec.structs.replace(whole, usage=used[:many]))
        assert [row.usage for row in session.usage.rows()] == [row.usage for row in used[:many]]
        assert session.views.current() == View()
    assert session.search("two")[0].seq == 2


Change = Callable[[SessionCopy], SessionCopy]


def replaced(**values: object) -> Change:
    return lambda copy: msgspec.structs.replace(copy, **values)


def with_view(view: ViewCopy) -> Change:
    return lambda copy: msgspec.structs.replace(copy, views=(*copy.views[:-1], view))


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda copy: msgspec.structs.replace(copy, entries=copy.entries[1:]), "not numbered"),
        (replaced(entries=()), "covers up to message"),
        (with_view(ViewCopy(3, 2, (Verbatim(1, 11),), 12)), "covers up to message 11; there are 10"),
        (replaced(head_view=9), "The view in force, 9"),
        (replaced(views=(FIRST_VIEW,)), "The view in force, 2"),
        (replaced(compactions=()), "The compactions are not"),
        (replaced(pins=(11,)), "A pin"),
        (replaced(summaries=()), "summary 1; there are 0"),
        (with_view(ViewCopy(3, None, (), 1)), "View 3 has no view before it"),
        (with_view(ViewCopy(3, 3, (), 1)), "View 3 has no view before it"),
        (with_view(ViewCopy(2, 1, (), 1)), "View 2 has no view before it, or a number"),
        (with_view(ViewCopy(3, 2, (Verbatim(2, 3),), 4)), "View 3: the view's items"),
        (with_view(ViewCopy(3, 2, (SummaryPlace(0),), 4)), "summary 0"),
        (lambda copy: msgspec.structs.replace(copy, usage=tuple(
            msgspec.structs.replace(row, view_id=8) for row in copy.usage)), "usage of a call"),
        (lambda copy: msgspec.structs.replace(copy, usage=tuple(
            msgspec.structs.replace(row, usage=Usage(10**30, 1)) for row in copy.usage)), "too large"),
    ],
)  # fmt: skip
def test_parts_that_do_not_fit_change_nothing(store: Store, talk: Session, change: Change, why: str) -> None:
    before = store.list()
    with pytest.raises(StoreError, match=why):
        store.add(change(store.copy_of(talk.info.id)))
    assert store.list() == before


def test_a_cut_is_a_copy_that_fits(store: Store, talk: Session) -> None:
    copy = store.copy_of(talk.info.id)
    for at in range(1, 11):
        store.add(cut(copy, at))
    assert store.copy_of(talk.info.id) == copy


def test_a_fork_without_a_name_has_a_title_of_its_own(store: Store) -> None:
    session = store.create(directory="/work", model="m")
    session.log.append(said("fix the parser"))
    copy = store.fork(session.info.id)
    assert (copy.name, copy.title) == ("", "(fork) fix the parser")
    assert (store.fork(session.info.id, name="mine").title, session.info.title) == ("fix the parser", "fix the parser")


def test_a_fork_has_none_of_the_marks_of_its_original(store: Store, talk: Session) -> None:
    talk.set_pinned(True)
    for original in (talk.info.id, store.fork(talk.info.id).id):
        fork = store.fork(original)
        assert (fork.is_pinned, fork.has_forks, fork.origin) == (False, False, None)
        assert store.find(original).has_forks
    assert talk.info.is_pinned
