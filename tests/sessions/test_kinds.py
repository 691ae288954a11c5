"""Chats and sessions of `nca run` are distinguished, in old databases too."""

from __future__ import annotations

from pathlib import Path

import apsw

from nca.sessions import Store, sql
from nca.sessions.database import Database, connect, migrate, prepare
from tests.sessions.samples import said
from tests.sessions.test_corruption import PAGE, break_pages, suspect


def made(store: Store, text: str, **options: str) -> str:
    with store.create(directory="/here", model="m", **options) as session:  # type: ignore[arg-type]
        session.log.append(said(text))
        return session.info.id


def old_database(path: Path, version: int) -> None:
    """A database of an older schema with one session in it."""
    path.parent.mkdir(parents=True)
    path.touch(0o600)
    database = Database(connect(path), path)
    prepare(database.connection)
    migrate(database, sql.MIGRATIONS[:version])
    with database.transaction() as connection:
        connection.execute(
            "INSERT INTO sessions (number, id, name, directory, model, created_at, updated_at, touched)"
            " VALUES (1, 'old00001', '', '/here', 'm', 1, 1, 1)"
        )
        connection.execute('INSERT INTO views VALUES (1, 0, NULL, \'{"items":[],"tail":1}\')')
        body = '{"role":"user","content":"an old walrus"}'
        connection.execute("INSERT INTO messages (session, seq, at, role, body) VALUES (1, 1, 1, 'user', ?)", (body,))
    database.close()


def test_the_last_chat_comes_before_a_later_run(store: Store) -> None:
    chat, run = made(store, "a chat"), made(store, "asked once", kind="run")
    latest = store.latest("/here")
    assert latest is not None
    assert (latest.id, latest.kind) == (chat, "chat")
    later = made(store, "another chat")
    assert (store.latest("/here", "run") or latest).id == run
    store.delete(later)
    assert [info.id for info in store.list()] == [run, chat]
    store.delete(chat)
    latest = store.latest("/here")
    assert latest is not None
    assert (latest.id, latest.kind) == (run, "run")


def test_a_run_that_a_person_goes_on_with_is_a_chat(store: Store) -> None:
    run = made(store, "asked once", kind="run")
    with store.open_session(run) as session:
        session.begin_turn("m", "run")
        assert store.find(run).kind == "run"
        session.begin_turn("m", "chat")
    assert store.find(run).kind == "chat"


def test_a_copy_is_of_the_same_kind(store: Store) -> None:
    run = made(store, "asked once", kind="run")
    assert store.fork(run).kind == "run"
    assert store.add(store.copy_of(run)).kind == "run"


def test_an_older_database_holds_chats(path: Path) -> None:
    old_database(path, 2)
    with Store.open(path, read_only=True) as reader:
        assert [info.kind for info in reader.list()] == ["chat"]
    with Store.open(path) as store:
        assert [(info.id, info.kind) for info in store.list()] == [("old00001", "chat")]
        assert [hit.seq for hit in store.search("walrus")] == [1]
        made(store, "asked once", kind="run")
        latest = store.latest("/here")
        assert latest is not None
        assert latest.id == "old00001"
    (backup,) = path.parent.glob("*before-schema*")
    before = apsw.Connection(str(backup))
    assert before.pragma("user_version") == 2
    before.close()


def test_what_is_recovered_keeps_its_kind_even_from_an_older_file(path: Path, tmp_path: Path) -> None:
    with Store.open(path) as store:
        ids = made(store, "a chat"), made(store, "asked once", kind="run")
    connection = apsw.Connection(str(path))
    connection.execute("DROP INDEX sessions_touched; DROP TABLE pins")
    connection.close()
    with Store.open(path) as store:
        assert store.notes
        assert [store.find(one).kind for one in ids] == ["chat", "run"]
    older = tmp_path / "older" / "sessions.db"
    old_database(older, 1)
    connection = apsw.Connection(str(older))
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    root = int(connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'learned'").get)
    connection.close()
    (older.parent / "locks").mkdir(exist_ok=True)
    break_pages(older, [root - 1])
    assert older.stat().st_size >= root * PAGE
    suspect(older)
    with Store.open(older) as store:
        assert "could be read" in store.notes[0]
        assert [(info.id, info.kind, info.messages) for info in store.list()] == [("old00001", "chat", 1)]
