"""Pragmas, transactions that are all or nothing, and migrations."""

from __future__ import annotations

import stat
import threading
from pathlib import Path

import apsw
import pytest

from nca.errors import StoreError
from nca.sessions import Store, sql
from nca.sessions.database import Database, connect, fetch, mended_rows, migrate, prepare
from nca.sessions.paths import unused
from tests.sessions.samples import filled, said, sqlite_of

PRAGMAS = {
    "journal_mode": "wal",
    "synchronous": 2,
    "fullfsync": 1,
    "checkpoint_fullfsync": 1,
    "foreign_keys": 1,
    "recursive_triggers": 1,
    "trusted_schema": 0,
    "cell_size_check": 1,
    "mmap_size": 0,
    "application_id": sql.APPLICATION_ID,
    "user_version": len(sql.MIGRATIONS),
}

TWO_STEPS = (
    "CREATE TABLE notes (text TEXT) STRICT; INSERT INTO notes VALUES ('one'), ('two');",
    "SELECT 1; ALTER TABLE notes ADD COLUMN size INTEGER; UPDATE notes SET size = length(text);",
)


@pytest.fixture
def blank(tmp_path: Path) -> Path:
    path = tmp_path / "x.db"
    path.touch(0o600)
    return path


def opened(path: Path) -> Database:
    database = Database(connect(path), path)
    prepare(database.connection)
    return database


@pytest.mark.parametrize(("name", "value"), PRAGMAS.items())
def test_every_pragma_is_in_force(store: Store, name: str, value: object) -> None:
    assert sqlite_of(store).connection.pragma(name) == value


def test_sqlite_is_past_the_wal_reset_fault() -> None:
    assert apsw.sqlite_lib_version() >= "3.51.3"


def test_a_writer_waits_for_another_and_then_says_who_is_busy(store: Store, path: Path) -> None:
    other = connect(path)
    other.execute("BEGIN IMMEDIATE")
    waiting = threading.Thread(target=lambda: store.create(directory="/", model="m"))
    waiting.start()
    waiting.join(0.2)
    assert waiting.is_alive()
    other.execute("COMMIT")
    waiting.join()
    assert len(store.list()) == 1
    other.execute("BEGIN IMMEDIATE")
    sqlite_of(store).connection.set_busy_handler(None)
    with pytest.raises(StoreError, match=r"Another process keeps .* busy"):
        store.create(directory="/", model="m")
    other.close()


def test_writes_begin_immediately(store: Store) -> None:
    with sqlite_of(store).transaction() as connection:
        assert connection.txn_state("main") == apsw.SQLITE_TXN_WRITE


def test_files_are_private(store: Store, path: Path) -> None:
    with store.create(directory="/", model="m") as session:
        session.log.append(said("secret"))
        files = [file for file in path.parent.rglob("*") if file.is_file()]
        assert {"sessions.db", "sessions.db-wal", "sessions.db-shm"} <= {file.name for file in files}
        assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_a_file_that_others_can_read_is_made_private(path: Path) -> None:
    filled(path)
    path.chmod(0o644)
    Store.open(path).close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_an_exception_rolls_everything_back(store: Store) -> None:
    def fail_halfway() -> None:
        with store._database.transaction() as connection:
            connection.execute("INSERT INTO learned VALUES ('m', 1.0, NULL, 0, 0.0)")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_halfway()
    assert store._database.rows("SELECT * FROM learned") == []


@pytest.mark.parametrize("where", ["file", "memory"])
def test_a_full_disk_is_said_and_loses_nothing(path: Path, where: str) -> None:
    with Store.open(path if where == "file" else None) as store:
        session = store.create(directory="/", model="m")
        kept = session.log.append(said("before"))
        pages = sqlite_of(store).connection.pragma("page_count")
        sqlite_of(store).connection.pragma("max_page_count", pages + 4)
        with pytest.raises(StoreError, match="Disk full" if where == "file" else "larger than the memory") as caught:
            session.log.append(said("x" * 10, "y" * 200_000))
        if where == "file":
            assert "bytes free on" in caught.value.message
        assert session.log.entries() == kept
        sqlite_of(store).connection.pragma("max_page_count", 1_000_000)
        kept += session.log.append(said("when there is room again"))
        assert session.log.entries() == kept


def test_after_an_import_without_room_what_is_said_is_still_found(path: Path) -> None:
    with Store.open(path) as store:
        session = store.create(directory="/", model="m")
        session.log.append(said(*(f"{place} " + "y" * 9_000 for place in range(60))))
        copy, connection = store.copy_of(session.info.id), sqlite_of(store).connection
        connection.pragma("max_page_count", connection.pragma("page_count") + 4)
        with pytest.raises(StoreError, match="Disk full"):
            store.add(copy)
        connection.pragma("max_page_count", 1_000_000)
        session.log.append(said("a zebra"))
        assert f"{session.info.id}:61" in [hit.id for hit in store.search("zebra")]


def test_a_migration_goes_all_the_way(blank: Path) -> None:
    database = opened(blank)
    assert migrate(database, TWO_STEPS) is None
    assert database.rows("SELECT * FROM notes") == [("one", 3), ("two", 3)]
    assert database.connection.pragma("user_version") == 2
    assert database.connection.pragma("application_id") == sql.APPLICATION_ID
    assert migrate(database, TWO_STEPS) is None
    database.close()


def test_an_older_file_is_backed_up_first(blank: Path) -> None:
    database = opened(blank)
    migrate(database, TWO_STEPS[:1])
    backup = migrate(database, TWO_STEPS)
    assert backup == blank.with_name("x.db.before-schema-2")
    assert stat.S_IMODE(backup.stat().st_mode) == 0o600
    assert database.rows("SELECT size FROM notes") == [(3,), (3,)]
    database.close()
    before = apsw.Connection(str(backup))
    assert before.execute("SELECT * FROM notes").fetchall() == [("one",), ("two",)]
    assert before.pragma("user_version") == 1
    before.close()


@pytest.mark.parametrize(
    "broken",
    [
        "DELETE FROM notes; CREATE TABLE other (x); SELECT * FROM nowhere;",
        "CREATE TABLE p (i INTEGER PRIMARY KEY); CREATE TABLE c (i REFERENCES p DEFERRABLE INITIALLY DEFERRED);"
        "INSERT INTO c VALUES (7);",
    ],
)
def test_a_migration_that_fails_leaves_the_file_as_it_was(blank: Path, broken: str) -> None:
    database = opened(blank)
    migrate(database, TWO_STEPS[:1])
    with pytest.raises(StoreError):
        migrate(database, (TWO_STEPS[0], broken))
    assert database.rows("SELECT * FROM notes") == [("one",), ("two",)]
    assert database.connection.pragma("user_version") == 1
    assert database.rows("SELECT name FROM sqlite_schema") == [("notes",)]
    database.close()


def test_unused_never_names_a_file_that_exists(tmp_path: Path) -> None:
    path = tmp_path / "x"
    names = []
    for _ in range(3):
        name = unused(path)
        name.touch()
        names.append(name.name)
    assert names == ["x", "x-2", "x-3"]


def test_back_up_is_whole_and_overwrites_nothing(store: Store, tmp_path: Path) -> None:
    session = store.create(directory="/", model="m")
    entries = session.log.append(said("one"))
    target = tmp_path / "copy.db"
    store.back_up(target)
    with Store.open(target, read_only=True) as copy:
        assert copy.open_session(session.info.id, read_only=True).log.entries() == entries
    with pytest.raises(StoreError, match="exists"):
        store.back_up(target)


def test_a_path_may_hold_any_character(tmp_path: Path) -> None:
    path = tmp_path / "a b?c#d%41é" / "sessions.db"
    ids = filled(path)
    assert path.is_file()
    with Store.open(path, read_only=True) as store:
        assert [info.id for info in store.list()] == ids[::-1]


def test_damaged_text_has_a_mark_for_each_bad_byte_and_no_rows_are_none() -> None:
    connection = connect(None)
    connection.execute("CREATE TABLE texts (number, text)")
    assert list(mended_rows(connection, "SELECT * FROM texts")) == []
    connection.execute("INSERT INTO texts VALUES (1, CAST(x'61ff62' AS TEXT)), (2, 'whole'), (3, NULL)")
    wanted = [(1, "a\ufffdb"), (2, "whole"), (3, None)]
    assert fetch(connection, "SELECT number, text FROM texts ORDER BY number") == wanted
    assert list(mended_rows(connection, "SELECT number, text FROM texts WHERE number > ?", (1,))) == wanted[1:]
