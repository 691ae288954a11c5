"""A network that passes nothing on and closes nothing: nothing hangs, and nothing is stored twice when it goes on."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, TypeVar

import pytest

import nca
from nca.errors import StoreUnreachable
from nca.sessions import Session, Store
from nca.testing.scripted import ScriptedModel
from tests.postgres import Cluster
from tests.sessions.postgres.relay import Link, Relay
from tests.sessions.postgres.test_connection_lost import texts
from tests.sessions.postgres.test_spool import impatient, spools
from tests.sessions.store_suite import made, said

T = TypeVar("T")


@pytest.fixture
def url(cluster: Cluster) -> str:
    return cluster.new_database()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "sessions.db"


@pytest.fixture
def relay(cluster: Cluster) -> Iterator[Relay]:
    with closing(Relay(cluster)) as relay:
        yield relay


@pytest.fixture
def told() -> list[str]:
    return []


@pytest.fixture
def session(url: str, path: Path, relay: Relay, told: list[str]) -> Iterator[Session]:
    with impatient(relay.through(url), path, told, seconds=0) as store:
        yield made(store, "one")


def rows(cluster: Cluster, url: str) -> int:
    [(number,)] = cluster.execute("SELECT count(*) FROM nca.messages", url.split("/")[3].split("?")[0])
    return int(str(number))


def test_the_chat_goes_on_and_all_is_stored_afterwards(
    session: Session, relay: Relay, path: Path, told: list[str]
) -> None:
    relay.stop()
    session.log.append(said("two"))
    assert spools(path)
    session.log.append(said("three"))
    with pytest.raises(StoreUnreachable, match="Cannot reach"):
        session.log.entries()
    relay.go_on()
    session.log.append(said("four"))
    assert texts(session) == ["one", "two", "three", "four"]
    assert spools(path) == []
    assert [one.split(" ")[0] for one in told] == ["The", "There", "Connected", "2"]


@pytest.mark.parametrize("stop", [Link.stop, Link.stop_answers])
def test_a_commit_that_arrives_late_is_not_stored_twice(
    stop: Callable[[Link], None], cluster: Cluster, session: Session, relay: Relay, url: str, path: Path
) -> None:
    """The connection is given up before the server gets the COMMIT, or after it and before its answer."""

    def stop_all(link: Link) -> None:
        relay.accepts.clear()
        stop(link)

    relay.at_next_commit(stop_all)
    session.log.append(said("two"))
    assert not relay.is_armed
    assert spools(path)
    relay.links[-1].go_on()  # before a new connection can ask for it
    while rows(cluster, url) < 2:
        time.sleep(0.01)
    relay.go_on()
    session.log.append(said("three"))
    assert texts(session) == ["one", "two", "three"]
    assert spools(path) == []


def test_a_single_connection_that_is_lost_is_made_again(
    session: Session, relay: Relay, path: Path, told: list[str]
) -> None:
    relay.stop(accepts=True)
    session.log.append(said("two"))
    assert texts(session) == ["one", "two"]
    relay.go_on()
    session.log.append(said("three"))
    assert texts(session) == ["one", "two", "three"]
    assert (spools(path), told) == ([], [])


async def test_a_loop_of_its_own_lets_the_others_go_on(url: str, path: Path, relay: Relay, tmp_path: Path) -> None:
    """As docs/servers.md says: the program hears of the outage, and ends it, while the conversation waits."""
    told, is_lost, loop = list[str](), asyncio.Event(), asyncio.get_running_loop()

    def tell(line: str) -> None:
        told.append(line)
        loop.call_soon_threadsafe(is_lost.set)

    own = asyncio.new_event_loop()
    thread = threading.Thread(target=own.run_forever, daemon=True)
    thread.start()

    async def there(work: Coroutine[Any, Any, T]) -> T:
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, own))

    loaded = nca.load_settings(project=tmp_path, env={"NCA_HOME": str(tmp_path)})
    store = Store.open(path, url=relay.through(url), tell=tell)
    model = ScriptedModel(["Hello."])
    talk = nca.Conversation.open(loaded, store=store, model=model, directory=tmp_path)
    relay.stop()
    sending = asyncio.ensure_future(there(talk.send("Hello?")))
    await is_lost.wait()
    assert not sending.done()
    assert len(told) == 1
    relay.go_on()
    assert (await sending).text == "Hello."
    assert [line.split(" ")[0] for line in told] == ["The", "Connected"]
    await there(talk.close())
    store.close()
    own.call_soon_threadsafe(own.stop)
    thread.join()
    own.close()


async def test_a_first_turn_that_cannot_read_the_store_fails_and_the_next_goes_on(
    url: str, path: Path, relay: Relay, tmp_path: Path
) -> None:
    loaded = nca.load_settings(project=tmp_path, env={"NCA_HOME": str(tmp_path)})
    heard: list[object] = []
    with impatient(relay.through(url), path, [], seconds=0) as store:
        model = ScriptedModel(["Hello."])
        talk = nca.Conversation.open(loaded, store=store, model=model, directory=tmp_path, listener=heard.append)
        relay.refuses = True
        for link in relay.links:
            link.cut()
        failed = await talk.send("Hello?")
        assert failed.reason == "failed"
        assert failed.error is not None
        assert "Cannot reach" in failed.error.message
        assert heard[-1] == failed
        relay.refuses = False
        assert (await talk.send("Hello again?")).text == "Hello."
        await talk.close()


def test_what_is_lost_on_each_new_connection_is_kept(session: Session, relay: Relay, path: Path) -> None:
    """As in a tunnel that drops large packets and passes small ones."""

    def stop(link: Link) -> None:
        link.stop()
        relay.at_next_commit(stop)

    relay.at_next_commit(stop)
    session.log.append(said("two"))
    assert spools(path)
    relay.at_next_commit(None)
    relay.go_on()
    session.log.append(said("three"))
    assert texts(session) == ["one", "two", "three"]


def test_a_server_that_works_for_long_is_waited_for(cluster: Cluster, relay: Relay, url: str) -> None:
    with Store.open(None, url=relay.through(url)) as store:
        database = store._database  # the store has no query that takes long
        assert database.rows("SELECT 1 FROM pg_sleep(5)") == [(1,)]
        assert len(relay.links) > 1
