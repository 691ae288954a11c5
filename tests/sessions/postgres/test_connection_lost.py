"""A connection that is lost at any moment loses nothing, and stores nothing twice."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from urllib.parse import quote

import pytest

from nca.errors import SessionLocked, StoreError
from nca.sessions import Session, Store
from nca.testing.store_suite import made, said
from tests.postgres import Cluster

END_ALL = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'nca'"


class Cut:
    """A socket before the server's, which cuts a connection when the server has carried out the next COMMIT."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self._server = str(cluster.folder / ".s.PGSQL.5432")
        self._listening = socket.socket(socket.AF_UNIX)
        self._listening.bind(str(folder / ".s.PGSQL.5432"))
        self._listening.listen()
        self.is_armed = False
        self._cut: socket.socket | None = None
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                thread = threading.Thread(target=self._serve, args=(client,), daemon=True)
                self._threads.append(thread)
                thread.start()

    def _serve(self, client: socket.socket) -> None:
        with suppress(OSError), client, socket.socket(socket.AF_UNIX) as server:
            server.connect(self._server)
            back = threading.Thread(target=self._pass_back, args=(server, client), daemon=True)
            back.start()
            self._pass_on(client, server)
            _end(server)
            back.join()

    def _pass_on(self, client: socket.socket, server: socket.socket) -> None:
        with suppress(OSError):
            while content := client.recv(65_536):
                if self.is_armed and b"COMMIT" in content:
                    self.is_armed = False
                    # The answer says that it is committed, and no answer reaches the client.
                    self._cut = client
                server.sendall(content)

    def _pass_back(self, server: socket.socket, client: socket.socket) -> None:
        with suppress(OSError):
            while content := server.recv(65_536):
                if self._cut is client:
                    break
                client.sendall(content)
        _end(client)

    def close(self) -> None:
        """Once every connection is closed at its other end."""
        _end(self._listening)
        for thread in self._threads:
            thread.join()
        self._listening.close()


def _end(one: socket.socket) -> None:
    """Wake whoever waits for it."""
    with suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)


def end_all(cluster: Cluster) -> None:
    """End the server's processes of all connections."""
    while cluster.execute(END_ALL):
        time.sleep(0.01)


@pytest.fixture
def url(cluster: Cluster) -> str:
    return cluster.new_database()


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    with Store.open(None, url=url) as store:
        yield store


def texts(session: Session) -> list[str]:
    return [entry.message.text for entry in session.log.entries()]


def test_between_two_calls(cluster: Cluster, store: Store) -> None:
    session = made(store, "one", "two")
    end_all(cluster)
    assert texts(session) == ["one", "two"]
    end_all(cluster)
    session.log.append(said("three"))
    assert texts(session) == ["one", "two", "three"]


def test_inside_a_transaction(cluster: Cluster, store: Store) -> None:
    session = made(store, "one")
    with session.transaction() as transaction:
        session.log.append_in(transaction, said("two"))
        end_all(cluster)
        session.log.append_in(transaction, said("three"))
        end_all(cluster)
    assert texts(session) == ["one", "two", "three"]


def test_after_the_commit_before_its_answer(cluster: Cluster, store: Store, url: str) -> None:
    session_id = made(store, "one").info.id
    store.close()
    folder = cluster.folder / "cut"
    folder.mkdir()
    cut = Cut(cluster, folder)
    told: list[str] = []
    try:
        through = url.replace(quote(str(cluster.folder), safe=""), quote(str(folder), safe=""))
        with Store.open(None, url=through, tell=told.append) as cut_off, cut_off.open_session(session_id) as session:
            cut.is_armed = True
            session.log.append(said("two"))
            assert not cut.is_armed
            session.log.append(said("three"))
            assert texts(session) == ["one", "two", "three"]
    finally:
        cut.close()


def test_the_server_crashes_and_comes_back(cluster: Cluster, url: str) -> None:
    from nca.sessions.postgres.database import PostgresDatabase  # needs psycopg

    told: list[str] = []
    database = PostgresDatabase(url, None, told.append, retry_seconds=60)
    with Store(database, None, is_read_only=False) as store:
        session = made(store, "one")
        cluster.halt()
        again = threading.Timer(0.5, cluster.start)
        again.start()
        session.log.append(said("two"))
        again.join()
        assert texts(session) == ["one", "two"]
    assert len(told) == 2
    assert "Trying again for 60 seconds" in told[0]


def test_after_the_time_is_over_the_next_call_does_not_wait(cluster: Cluster, url: str) -> None:
    from nca.sessions.postgres.database import PostgresDatabase  # needs psycopg

    told: list[str] = []
    with closing(PostgresDatabase(url, None, told.append, retry_seconds=0.2)) as database:
        cluster.halt()
        for _ in range(2):
            with pytest.raises(StoreError, match="Cannot reach the PostgreSQL database"):
                database.rows("SELECT 1")
        assert len(told) == 1
        cluster.start()
        assert database.rows("SELECT 1") == [(1,)]
        assert told[1:] == [f"Connected to {database.where} again."]


def test_the_lease_comes_back_with_the_connection(cluster: Cluster, store: Store, url: str) -> None:
    session = made(store, "one")
    end_all(cluster)
    assert texts(session) == ["one"]
    with Store.open(None, url=url) as other, pytest.raises(SessionLocked, match="already open in process"):
        other.open_session(session.info.id)


def test_who_was_away_meanwhile_has_lost_the_session(cluster: Cluster, store: Store, url: str) -> None:
    session = made(store, "one")
    session_id = session.info.id
    end_all(cluster)  # the first holder does not notice yet
    with Store.open(None, url=url) as other, other.open_session(session_id) as mine:
        mine.log.append(said("two"))
        with pytest.raises(SessionLocked, match="was taken over in process"):
            session.log.append(said("lost"))
        assert texts(mine) == ["one", "two"]


def test_a_closed_store_does_not_connect_again(store: Store) -> None:
    session = made(store, "one")
    store.close()
    with pytest.raises(StoreError, match="The store is closed"):
        session.log.entries()
