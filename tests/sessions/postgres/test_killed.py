"""Processes that write and are killed, a server whose processes are ended, and one that cannot be reached for a while:
nothing is lost, mixed or doubled.

`NCA_SOAK_KILLS=2000` makes so many kills among 16 processes: 8 write sessions of their own, 8 fight for one.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path

from nca.errors import StoreError
from nca.messages import Message
from nca.sessions import Store
from tests.postgres import Cluster
from tests.sessions.postgres.test_connection_lost import END_ALL

KILLS = int(os.environ.get("NCA_SOAK_KILLS", "12"))
WRITERS = 4 if KILLS <= 12 else 16
"""Half of them write sessions of their own, half fight for one."""
HANGS_SECONDS, MOMENT_SECONDS = 100, 0.5
APPENDS = 20


def write(url: str, session_id: str, name: str, path: Path, said: Connection) -> None:
    """Append two messages at a time until killed, and say what is tried and what is durable."""
    from nca.sessions.postgres.database import PostgresDatabase

    me, number = f"{name}-{os.getpid()}", 0
    while True:
        try:
            database = PostgresDatabase(url, path, retry_seconds=0.02)
            with Store(database, path, is_read_only=False) as store, store.open_session(session_id) as session:
                for _ in range(APPENDS):
                    number += 1
                    said.send(("try", f"{me} {number}", 0))
                    entries = session.log.append([Message("user", f"{me} {number} {part}") for part in "ab"])
                    said.send(("stored", f"{me} {number}", entries[0].seq))
        except StoreError:  # another one has it, or there is no server
            pass
        time.sleep(0.05)  # or the others would never find it free


def test_nothing_is_lost_mixed_or_doubled(cluster: Cluster, tmp_path: Path) -> None:
    url = cluster.new_database()
    with Store.open(None, url=url) as store:
        shared, *own = (store.create(directory="/", model="m", name=str(n)).info.id for n in range(1 + WRITERS // 2))
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.sessions.postgres.test_killed", "nca.sessions.postgres.database"])
    said = {session_id: _Said() for session_id in (shared, *own)}
    machines = [tmp_path / str(number) / "sessions.db" for number in range(WRITERS)]

    def started(place: int, kill: int) -> _Writer:
        session_id = own[place // 2] if place % 2 else shared
        return _Writer(context, said[session_id], url, session_id, f"{place}-{kill}", machines[place])

    running = [started(place, 0) for place in range(WRITERS)]
    chance = random.Random(int(os.environ.get("NCA_SOAK_SEED", "1")))
    for kill in range(KILLS):
        place = chance.randrange(WRITERS)
        of_victim = said[running[place].session_id]
        of_victim.wait_for(chance.randrange(1, 6))
        match kill % 4:
            case 0:
                cluster.execute(END_ALL)
                continue
            case 1:
                with _unreachable(cluster):
                    of_victim.look()
                    running[place].kill()
            case _:
                running[place].kill()
        running[place] = started(place, 1 + kill)
    for one in said.values():
        one.wait_for(1)
    for writer in running:
        writer.kill()
    for path in machines:
        Store.open(path, url=url).close()  # stores what the killed ones kept
        assert not list(path.parent.glob("spool/*.jsonl"))
    _check(url, said)


@contextmanager
def _unreachable(cluster: Cluster) -> Iterator[None]:
    """A server that ends all connections and takes no new ones."""
    socket, away = cluster.folder / ".s.PGSQL.5432", cluster.folder / "away"
    with cluster.connected() as connection:
        socket.rename(away)
        try:
            connection.execute(END_ALL.encode())
            yield
        finally:
            away.rename(socket)


class _Said:
    """What the writers of one session say."""

    def __init__(self) -> None:
        self.tried: set[str] = set()
        self.stored: list[tuple[str, int]] = []
        self._stored = threading.Semaphore(0)

    def hear(self, what: str, text: str, seq: int) -> None:
        if what == "try":
            self.tried.add(text)
        else:
            self.stored.append((text, seq))
            self._stored.release()

    def wait_for(self, stored: int) -> None:
        """Until so much more is stored."""
        for _ in range(stored):
            assert self._stored.acquire(timeout=HANGS_SECONDS), "no writer stores anything any more"

    def look(self) -> None:
        """Until something more is stored, or a moment later: perhaps nobody has the session open now."""
        self._stored.acquire(timeout=MOMENT_SECONDS)


class _Writer:
    def __init__(
        self,
        context: multiprocessing.context.ForkServerContext,
        said: _Said,
        url: str,
        session_id: str,
        name: str,
        path: Path,
    ) -> None:
        self.session_id = session_id
        self._said = said
        self._heard, saying = context.Pipe(duplex=False)
        self._process = context.Process(target=write, args=(url, session_id, name, path, saying))
        self._process.start()
        saying.close()
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def kill(self) -> None:
        self._process.kill()
        self._process.join()
        self._reader.join()

    def _read(self) -> None:
        with self._heard:
            while True:
                try:
                    self._said.hear(*self._heard.recv())
                except EOFError:
                    return


def _check(url: str, said: dict[str, _Said]) -> None:
    """Each message that was said to be durable is in its session, or in a copy that ends with what was kept."""
    with Store.open(None, url=url) as store:
        logs = {info.id: [entry.message.text for entry in store.copy_of(info.id).entries] for info in store.list(None)}
    held: set[tuple[str, int]] = set()
    for texts in logs.values():
        firsts = [text.removesuffix(" a") for text in texts[::2]]
        assert texts == [f"{first} {part}" for first in firsts for part in "ab"], "interleaved"
        assert len(set(firsts)) == len(firsts), "doubled"
        held |= {(first, 2 * place + 1) for place, first in enumerate(firsts)}
    for session_id, one in said.items():
        assert not set(one.stored) - held, "lost"
        assert {text.removesuffix(" a") for text in logs[session_id][::2]} <= one.tried
