"""Opening a store in PostgreSQL: what is made of an empty database, and what is refused."""

from __future__ import annotations

import asyncio
import socket
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from nca.errors import ConfigError, StoreError, StoreTooNew
from nca.sessions import Store
from nca.sessions.past_sessions import PastSessions, Wanted
from nca.terminal.panels.session_loader import SessionLoader
from nca.terminal.panels.session_picker import SessionList
from tests.postgres import Cluster
from tests.sessions.store_suite import made
from tests.testing.forks import standing_code

STARTS = 8
START = """
import sys
from nca.sessions import Store
import nca.sessions.postgres.database
print("ready", flush=True)
sys.stdin.readline()
with Store.open(None, url=sys.argv[1]) as store, store.create(directory="/", model="m", name=sys.argv[2]) as session:
    print(session.info.id)
"""


def test_many_starts_on_an_empty_database(cluster: Cluster) -> None:
    url = cluster.new_database()
    commands = [standing_code(START, url, str(number)) for number in range(STARTS)]
    running = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for command in commands
    ]
    for one in running:
        assert one.stdout
        assert one.stdout.readline() == "ready\n"
    ids = {one.communicate("\n")[0] for one in running}
    assert [one.returncode for one in running] == [0] * STARTS
    with Store.open(None, url=url) as store:
        assert {info.id + "\n" for info in store.list()} == ids
        assert {info.name for info in store.list()} == set(map(str, range(STARTS)))


def test_a_newer_schema_is_left_alone(cluster: Cluster) -> None:
    url = cluster.new_database()
    Store.open(None, url=url).close()
    cluster.execute("UPDATE nca.schema_version SET number = 99", url.split("/")[3].split("?")[0])
    with pytest.raises(StoreTooNew, match="schema 99; this one knows 1"):
        Store.open(None, url=url)


@pytest.mark.parametrize(
    ("url", "kind", "said"),
    [
        (
            "postgresql://ada:secret@/none?host=/nowhere",
            StoreError,
            "Cannot reach the PostgreSQL database none at /nowhere",
        ),
        ("postgresql://ada:sec%ret@host/d", ConfigError, "not the address of a PostgreSQL database"),
        ("postgresql://ada:secret@host:port/d?bad=1", ConfigError, "not the address of a PostgreSQL database"),
    ],
)
def test_what_cannot_be_reached_is_named_without_the_password(url: str, kind: type[Exception], said: str) -> None:
    with pytest.raises(kind) as caught:
        Store.open(None, url=url)
    assert said in str(caught.value)
    assert "sec" not in str(caught.value).replace("seconds", "")


def test_a_message_takes_one_row_beside_its_index(cluster: Cluster) -> None:
    url = cluster.new_database()
    with Store.open(None, url=url) as store:
        session = made(store, *map(str, range(100)))
        session.close()
    tables = ("messages", "sessions", "views", "partials", "summaries", "compactions", "pins", "usage", "leases")
    name = url.split("/")[3].split("?")[0]
    rows = [cluster.execute(f"SELECT count(*) FROM nca.{table}", name)[0][0] for table in tables]
    assert rows == [100, 1, 1, 0, 0, 0, 0, 0, 1]


def test_other_agents_search_it_by_folder_and_time(cluster: Cluster) -> None:
    url = cluster.new_database()
    with Store.open(None, url=url) as store:
        ids = [
            made(store, "the zebra", "in the zoo", directory=folder).info.id
            for folder in ("/work", "/work/a", "/other")
        ]
    with closing(PastSessions.open(Path("none.db"), url=url)) as past:
        assert [one.id for one in past.listed(Wanted())] == ids[::-1]
        assert past.count(Wanted(directory="/work")) == 2
        for since in (0.0, 1.0):
            found = past.search("zebra", Wanted(directory="/work", since=since), 10, 200)
            assert {hit.session for hit in found if hit.seq == 1} == set(ids[:2])
        assert past.search("zebra", Wanted(since=9e9), 10, 200) == []
        one = past.find(ids[2][:6])
        assert one
        assert [entry.message.text for entry in past.messages(one, 1, 2)] == ["the zebra", "in the zoo"]
        assert past.is_current(Path("none.db"))


def test_the_picker_of_a_chat_offers_the_sessions_of_the_database(cluster: Cluster, tmp_path: Path) -> None:
    with Store.open(tmp_path / "sessions.db", url=cluster.new_database()) as store:
        session = made(store, "one")
        with closing(SessionLoader(store)) as loader:
            assert asyncio.run(loader.sessions()) == [session.info]
            whose = asyncio.run(loader.whose([session.info]))
        rows = SessionList("/work")
        rows.offer([session.info], whose)
        about = "".join(text for line in rows.listing(120).about for _, text, *_ in line)
        assert f" · owner@{socket.gethostname()}" in about
