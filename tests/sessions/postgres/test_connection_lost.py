"""A connection that is lost at any moment loses nothing, and stores nothing twice."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import closing

import pytest

from nca.errors import SessionLocked, StoreError
from nca.sessions import Session, Store
from tests.postgres import Cluster
from tests.sessions.postgres.relay import Link, Relay
from tests.sessions.store_suite import made, said

END_ALL = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'nca'"


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
    with (
        closing(Relay(cluster)) as relay,
        Store.open(None, url=relay.through(url)) as cut_off,
        cut_off.open_session(session_id) as session,
    ):
        relay.at_next_commit(Link.cut_next_answer)
        session.log.append(said("two"))
        assert not relay.is_armed
        session.log.append(said("three"))
        assert texts(session) == ["one", "two", "three"]


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
