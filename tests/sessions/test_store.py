"""Finding, listing, naming and expiring sessions; one connection for several threads."""

from __future__ import annotations

import threading
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis.strategies import DataObject, data, integers, lists, sampled_from

from nca.config.loaded import defaults
from nca.errors import SessionNotFound, StoreDamaged, StoreError
from nca.messages import Entry, Usage
from nca.sessions import Session, Store, transfer
from nca.sessions.transfer import new_copy
from tests.sessions.samples import MANUAL, change_pins, filled, hiding, once_read, pin, said, sqlite_of

DAY = 86_400


def made(store: Store, *, directory: str = "/", age_days: float = 0, is_pinned: bool = False, text: str = "hi") -> str:
    """A closed session that was last used `age_days` ago."""
    with store.create(directory=directory, model="m") as session:
        if text:
            session.log.append(said(text))
        session.set_pinned(is_pinned)
        info = session.info
    with store._database.transaction() as connection:
        connection.execute("UPDATE sessions SET updated_at = updated_at - ? WHERE id = ?", (age_days * DAY, info.id))
    return info.id


def test_a_new_session_knows_where_it_belongs(store: Store) -> None:
    session = store.create(directory="/work", model="openai/gpt-4.1", name="first")
    info = session.info
    assert (info.name, info.directory, info.model) == ("first", "/work", "openai/gpt-4.1")
    assert (info.messages, info.is_pinned, info.title) == (0, False, "")
    assert store.list() == [info]
    assert msgspec.json.decode(msgspec.json.encode(info), type=type(info)) == info


def test_the_last_used_comes_first_whatever_the_clock_says(store: Store) -> None:
    old, new = made(store), made(store, age_days=900)
    assert [info.id for info in store.list()] == [new, old]
    with store.open_session(old) as session:
        session.log.append(said("used again"))
    assert [info.id for info in store.list()] == [old, new]
    assert [info.id for info in store.list(limit=1)] == [old]
    assert [info.id for info in store.list(limit=None)] == [old, new]


def test_latest_is_of_a_directory_or_of_all_and_never_empty(store: Store) -> None:
    assert store.latest(None) is None
    here, there = made(store, directory="/here"), made(store, directory="/there")
    made(store, directory="/here", text="")
    for directory, expected in (("/here", here), ("/there", there), (None, there)):
        info = store.latest(directory)
        assert info is not None
        assert info.id == expected
    assert store.latest("/nowhere") is None


def test_find_by_id_prefix_or_name(store: Store) -> None:
    ids = [made(store) for _ in range(3)]
    with store.open_session(ids[1]) as session:
        session.rename("my  name\n")
        assert session.info.name == "my name"
    for wanted in (ids[1], ids[1][:7], "my name", f" {ids[1]} "):
        assert store.find(wanted).id == ids[1]
    for wanted in ("", "nowhere", "%", "my nam", "\0", "\ud800"):
        with pytest.raises(SessionNotFound, match="There is no session"):
            store.find(wanted)


def test_an_ambiguous_prefix_names_the_candidates(store: Store) -> None:
    for name in ("abc1", "abc2", "ab"):
        with store._database.transaction() as connection:
            connection.execute(
                "INSERT INTO sessions (id, name, directory, model, created_at, updated_at, touched)"
                " VALUES (?, '', '', '', 0, 0, 1)",
                (name,),
            )
            connection.execute('INSERT INTO views VALUES (last_insert_rowid(), 0, NULL, \'{"items":[],"tail":1}\')')
    with pytest.raises(SessionNotFound, match="could be any of abc1, abc2"):
        store.find("abc")
    assert store.find("ab").id == "ab"


def test_names_and_models_can_change(store: Store, session: Session) -> None:
    session.rename("x" * 500)
    session.set_model("anthropic/claude")
    session.set_pinned(True)
    info = store.list()[0]
    assert (len(info.name), info.model, info.is_pinned) == (200, "anthropic/claude", True)


def test_old_sessions_expire_but_pinned_ones_stay(store: Store) -> None:
    made(store, age_days=400, is_pinned=True)
    ids = [made(store, age_days=age) for age in range(40, -1, -1)]
    assert store.expired(0, 50) == []
    assert store.expired(30, 50) == ids[:10]


def test_too_many_sessions_the_oldest_go_first(store: Store) -> None:
    ids = [made(store) for _ in range(6)]
    assert store.expired(30, 3) == ids[:3]
    assert store.expired(30, 6) == []


def test_without_a_limit_none_of_1_000_expires_a_year_later(store: Store) -> None:
    """As many days of use lie between the first and the last."""
    with store._database.transaction() as connection:
        for number in range(1_000):
            copy = new_copy([Entry(1, said(f"question {number}")[0])], directory="/", model="m")
            transfer.write(store._database, connection, f"{number:08x}", copy)
        connection.execute("UPDATE sessions SET updated_at = (number - 1) / 2.5 * ?", (DAY,))
    settings = defaults().settings.session
    assert (settings.retention_days, settings.max_sessions) == (0, 0)
    assert store.expired(settings.retention_days, settings.max_sessions) == []
    store.delete_empty()
    assert len(store.list(None)) == 1_000
    assert store.expired(0, 999) == ["00000000"]
    assert store.expired(398, 0) == [f"{number:08x}" for number in range(3)]


@given(data())
def test_what_expires_is_old_or_too_many_and_nothing_that_anybody_marked(data: DataObject) -> None:
    ages = sorted(data.draw(lists(integers(0, 9), min_size=1, max_size=12)), reverse=True)
    days, most = data.draw(integers(0, 9)), data.draw(integers(0, 12))
    with Store.open(None) as store:
        plain = []
        for age in ages:
            mark = data.draw(sampled_from(("", "", "", "name", "session pin", "message pin", "fork")))
            session_id = made(store, age_days=age, is_pinned=mark == "session pin")
            with store.open_session(session_id) as session:
                if mark == "message pin":
                    pin(session, 1)
            if mark == "name":
                with store._database.transaction() as connection:
                    connection.execute("UPDATE sessions SET name = 'x' WHERE id = ?", (session_id,))
            elif mark == "fork":
                store.delete(store.fork(session_id).id)
            elif not mark:
                plain.append((session_id, age))
        too_old = {one for one, age in plain if 0 < days < len({other for other in ages if other < age})}
        too_many = {one for one, _ in plain[: -most or None]} if most else set()
        assert store.expired(days, most) == [one for one, _ in plain if one in too_old | too_many]


def test_empty_sessions_go_unless_named_or_pinned(store: Store) -> None:
    made(store, text="")
    kept = {made(store, text="", is_pinned=True), made(store)}
    with store.create(directory="/", model="m", name="planned") as session:
        kept.add(session.info.id)
    kept.add(store.create(directory="/", model="m").info.id)  # it is open
    store.delete_empty()
    assert {info.id for info in store.list()} == kept
    for one in kept:
        store.delete_empty(one)
    assert len(store.list()) == 2  # the one with a message, and the open one


@pytest.mark.parametrize("is_named", [False, True])
def test_a_session_that_fills_while_the_empty_ones_are_listed_stays(path: Path, is_named: bool) -> None:
    with Store.open(path) as store, Store.open(path) as other:
        empty = made(store, text="")

        def fill() -> None:
            with other.open_session(empty) as session:
                session.log.append(said("just in time"))

        given = once_read(sqlite_of(store), "SELECT id FROM sessions WHERE ", fill)
        store.delete_empty(empty if is_named else None)
        assert len(given) == 1
        assert [(info.id, info.messages) for info in store.list()] == [(empty, 1)]


def test_a_session_that_is_removed_while_it_is_opened_is_not_the_next_one(path: Path) -> None:
    with Store.open(path) as store, Store.open(path) as other:
        removed = made(store)
        number = store.open_session(removed, read_only=True).number

        def replace() -> Session:
            other.delete(removed)
            return other.create(directory="/", model="m")

        given = once_read(sqlite_of(store), "SELECT id, number FROM sessions WHERE ", replace)
        with pytest.raises(SessionNotFound, match="has just been removed"):
            store.open_session(removed)
        assert [session.number for session in given] == [number], "it has the number of the removed one"
        given[0].log.append(said("mine"))


@pytest.mark.parametrize("part", ["entries", "views", "summaries", "compactions", "pins", "usage"])
def test_a_session_goes_only_for_a_copy_of_all_of_it(store: Store, part: str) -> None:
    with store.create(directory="/", model="m") as session:
        session.log.append(said("one", "two", "three"))
        session.views.commit(hiding(2), MANUAL)
        change_pins(session, 3)
        session.usage.record(3, "m", Usage(10, 2, cost=0.5), session.views.current_id)
        name = session.info.id
    whole = store.exact_copy_of(name)
    assert getattr(whole, part)
    with pytest.raises(StoreDamaged, match="no copy can hold all of it"):
        store.delete_kept(name, lambda copy: msgspec.structs.replace(copy, **{part: getattr(copy, part)[:-1]}))
    assert store.exact_copy_of(name) == whole
    assert store.delete_kept(name, lambda copy: copy) == whole.info
    assert store.list() == []


@pytest.mark.parametrize("wrong_days", [4000, 400, -400, -4000, -20_000])
def test_a_wrong_clock_takes_nothing_away(store: Store, wrong_days: int) -> None:
    """A start writes a session of its own, and the next one removes what is old beside it."""
    ids = [made(store, age_days=age) for age in (10, 5, 0)]
    for _ in range(5):
        for age in (wrong_days, 0):
            ids.append(made(store, age_days=age))
            assert store.expired(30, 50) == []
    assert len(store.list()) == len(ids)
    assert Store.open(None).expired(1, 1) == []


def test_a_reader_changes_nothing(path: Path) -> None:
    [name] = filled(path, sessions=1)
    with Store.open(path, read_only=True) as store:
        for change in (
            lambda: store.create(directory="/", model="m"),
            lambda: store.open_session(name),
            lambda: store.delete(name),
            lambda: store.delete_empty(),
            lambda: store.delete_kept(name, lambda copy: copy),
        ):
            with pytest.raises(StoreError, match="reading only"):
                change()


def test_a_closed_store_says_so(path: Path) -> None:
    store = Store.open(path)
    session = store.create(directory="/", model="m")
    store.close()
    store.close()
    with pytest.raises(StoreError):
        session.log.append(said("late"))
    session.close()


def test_threads_take_turns(store: Store, session: Session) -> None:
    other = store.create(directory="/", model="m")
    threads = [
        threading.Thread(target=lambda to: [to.log.append(said("a", "b")) for _ in range(50)], args=(target,))
        for target in (session, other) * 3
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for target in (session, other):
        assert [entry.seq for entry in target.log.entries()] == list(range(1, 301))


def test_two_processes_worth_of_connections_wait_for_each_other(path: Path) -> None:
    """Two stores on one file, writing different sessions: nobody sees `database is locked`."""
    stores = [Store.open(path) for _ in range(3)]
    sessions = [store.create(directory="/", model="m") for store in stores]
    threads = [
        threading.Thread(target=lambda to: [to.log.append(said("x" * 2000)) for _ in range(100)], args=(target,))
        for target in sessions
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [info.messages for info in stores[0].list()] == [100, 100, 100]
    for store in stores:
        store.close()
