"""What is said while the server cannot be reached is kept on this machine, and stored once when it can."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest

from nca.context.view import View
from nca.errors import SessionLocked, StoreUnreachable
from nca.messages import Message, Usage
from nca.sessions import CompactionRecord, Session, Store
from tests.postgres import Cluster
from tests.sessions.postgres.relay import Link, Relay
from tests.sessions.postgres.test_connection_lost import texts
from tests.sessions.store_suite import made, said
from tests.testing.forks import standing_code


@pytest.fixture
def url(cluster: Cluster) -> str:
    return cluster.new_database()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "sessions.db"


@pytest.fixture
def told() -> list[str]:
    return []


@pytest.fixture
def store(url: str, path: Path, told: list[str]) -> Iterator[Store]:
    with impatient(url, path, told) as store:
        yield store


def impatient(url: str, path: Path, told: list[str], seconds: float = 0.1) -> Store:
    from nca.sessions.postgres.database import PostgresDatabase  # needs psycopg

    return Store(PostgresDatabase(url, path, told.append, retry_seconds=seconds), path, is_read_only=False)


@contextmanager
def outage(cluster: Cluster) -> Iterator[None]:
    cluster.halt()
    try:
        yield
    finally:
        cluster.start()


def spools(path: Path) -> list[Path]:
    folder = path.parent / "spool"
    return sorted(folder.iterdir()) if folder.exists() else []


def test_the_chat_goes_on_and_all_is_stored_afterwards(
    cluster: Cluster, store: Store, path: Path, told: list[str]
) -> None:
    session = made(store, "one")
    view, info = session.views.current_id, session.info
    with outage(cluster):
        entries = session.log.append([*said("two"), Message("assistant", "\0 three")])
        session.usage.record(2, "m", Usage(100, 10), view)
        session.log.append(said("four"))
        assert [entry.seq for entry in entries] == [2, 3]
        assert (session.info, session.views.current_id) == (info, view)
        with pytest.raises(StoreUnreachable):
            session.log.entries()
        with pytest.raises(StoreUnreachable):
            session.views.commit(View((), 1), CompactionRecord(trigger="x"))
        assert spools(path)
    assert texts(session) == ["one", "two", "\0 three", "four"]
    assert session.log.entries(2, 3) == entries
    assert session.usage.totals().prompt_tokens == 100
    assert store.search("three")[0].seq == 3
    assert spools(path) == []
    assert "Trying again for 0 seconds" in told[0]
    assert "are kept on this machine" in told[1]
    assert "again" in told[2]
    assert told[3:] == ["3 messages that were kept on this machine are stored now."]


def test_what_was_rolled_back_leaves_no_gap(cluster: Cluster, store: Store) -> None:
    session = made(store, "one")
    with suppress(ZeroDivisionError), session.transaction() as transaction:
        session.log.append_in(transaction, said("never", "was"))
        raise ZeroDivisionError
    with outage(cluster):
        assert [entry.seq for entry in session.log.append(said("two"))] == [2]
    assert texts(session) == ["one", "two"]


def test_a_text_that_is_being_streamed(cluster: Cluster, store: Store, path: Path) -> None:
    session = made(store, "one")
    with outage(cluster):
        session.log.save_partial("an ans")
        session.log.save_partial("an answer")
        session.log.append([Message("assistant", "an answer.")])
    assert texts(session) == ["one", "an answer."]
    assert session.log.partial() is None


KILLED = """
import os, sys
from pathlib import Path
from nca.messages import Message, Usage
from nca.sessions import Store
from nca.sessions.postgres.database import PostgresDatabase
path = Path(sys.argv[2])
store = Store(PostgresDatabase(sys.argv[1], path, retry_seconds=0.1), path, is_read_only=False)
session = store.open_session(sys.argv[3])
print("open", flush=True)
sys.stdin.readline()
session.log.append([Message("assistant", "two")])
session.usage.record(1, "m", Usage(100, 10), 0)
session.log.append([Message("user", "three")])
session.log.save_partial("the begin")
session.log.save_partial("the beginning")
print("kept", flush=True)
os.kill(os.getpid(), 9)
"""


@pytest.fixture
def killed(cluster: Cluster, url: str, path: Path) -> str:
    """A session of which a killed process left two messages and an answer so far."""
    with Store.open(path, url=url) as store, made(store, "one") as session:
        session_id = session.info.id
    command = standing_code(KILLED, url, str(path), session_id)
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
        with outage(cluster):
            process.stdin.write("go\n")
            process.stdin.flush()
            assert process.stdout.readline() == "kept\n"
            process.wait()
    return session_id


ALL = ["one", "two", "three", "the beginning"]


def test_the_next_start_stores_what_a_killed_process_left(killed: str, url: str, path: Path) -> None:
    before = {one: one.read_bytes() for one in spools(path)}
    told: list[str] = []
    for _ in range(2):  # the second time as after a kill between the commit and the end of the file
        with Store.open(path, url=url, tell=told.append) as store, store.open_session(killed) as session:
            assert texts(session) == ALL
            assert session.log.entries()[-1].message.is_interrupted
            assert session.usage.totals().prompt_tokens == 100
            assert len(store.list()) == 1
        assert [one.suffix for one in spools(path)] == []
        for one, content in before.items():
            one.write_bytes(content)
    assert told[0] == f"3 messages that were kept on this machine are stored now, in session {killed}."


def test_a_line_that_was_not_whole_is_left_out(killed: str, url: str, path: Path) -> None:
    [spool] = [one for one in spools(path) if one.suffix == ".jsonl"]
    spool.write_bytes(spool.read_bytes()[:-5])
    with Store.open(path, url=url) as store, store.open_session(killed, read_only=True) as session:
        assert texts(session) == ["one", "two", "three", "the begin"]


def test_a_spool_that_cannot_be_read_stays(killed: str, url: str, path: Path) -> None:
    [spool] = [one for one in spools(path) if one.suffix == ".jsonl"]
    spool.write_bytes(b"?" + spool.read_bytes())
    told: list[str] = []
    with Store.open(path, url=url, tell=told.append) as store, store.open_session(killed, read_only=True) as session:
        assert texts(session) == ["one"]
    assert told[0].startswith(f"{spool} could not be stored and stays: Cannot read")
    assert spool.exists()


def test_where_another_machine_went_on_it_becomes_one_copy(killed: str, url: str, path: Path, tmp_path: Path) -> None:
    with Store.open(tmp_path / "other" / "s.db", url=url) as other, other.open_session(killed) as session:
        session.log.append(said("elsewhere"))
    folder = path.parent / "spool"
    shutil.copytree(folder, tmp_path / "kept")
    told: list[str] = []
    for _ in range(2):
        with Store.open(path, url=url, tell=told.append) as store:
            assert sorted(texts_of(store).values()) == [["one", "elsewhere"], ALL]
            assert texts_of(store)[killed] == ["one", "elsewhere"]
        shutil.copytree(tmp_path / "kept", folder, dirs_exist_ok=True)
    assert told[0].startswith(f"Session {killed} has gone on elsewhere. 3 messages that were kept on this machine are")


def test_of_a_deleted_session_it_becomes_a_session(killed: str, url: str, path: Path, tmp_path: Path) -> None:
    with Store.open(tmp_path / "other" / "s.db", url=url) as other:
        other.delete(killed)
    with Store.open(path, url=url) as store:
        assert list(texts_of(store).values()) == [ALL[1:]]


def test_who_was_taken_over_leaves_a_copy(
    cluster: Cluster, url: str, store: Store, tmp_path: Path, told: list[str]
) -> None:
    session = made(store, "one", name="mine")
    session_id = session.info.id
    with outage(cluster):
        session.log.append(said("kept here"))
    with Store.open(tmp_path / "other" / "s.db", url=url) as other:
        with other.open_session(session_id) as theirs:
            theirs.log.append(said("two"))
            for _ in range(2):
                with pytest.raises(SessionLocked, match="become a copy when you leave" if _ == 0 else "taken over"):
                    session.log.append(said("lost"))
            session.close()
        assert texts_of(other)[session_id] == ["one", "two"]
        assert sorted(texts_of(other).values()) == [["one", "kept here"], ["one", "two"]]
    assert "has gone on elsewhere. 1 message that was kept on this machine is in a copy" in told[-1]


def test_a_commit_without_an_answer_is_not_stored_twice(cluster: Cluster, url: str, path: Path) -> None:
    with closing(Relay(cluster)) as relay, impatient(relay.through(url), path, [], seconds=0) as store:
        session = made(store, "one")

        def cut(link: Link) -> None:
            relay.refuses = link.cuts_next_answer = True

        relay.at_next_commit(cut)
        session.log.append(said("two"))
        assert not relay.is_armed
        assert spools(path)
        relay.refuses = False
        session.log.append(said("three"))
        assert texts(session) == ["one", "two", "three"]
        assert spools(path) == []


def texts_of(store: Store) -> dict[str, list[str]]:
    found = {}
    for info in store.list():
        session: Session = store.open_session(info.id, read_only=True)
        found[info.id] = texts(session)
    return found
