"""Processes that write and are killed, and a server whose processes are ended: nothing is lost, mixed or doubled."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading

from nca.sessions import Store
from tests.postgres import Cluster
from tests.sessions.postgres.test_connection_lost import END_ALL

KILLS = int(os.environ.get("NCA_SOAK_KILLS", "24"))
WRITERS = 4
"""Half of them write sessions of their own, half fight for one."""

WRITER = """
import os, sys, time
from nca.errors import StoreError
from nca.messages import Message
from nca.sessions import Store
me = f"{sys.argv[3]}-{os.getpid()}"
with Store.open(None, url=sys.argv[1]) as store:
    number = 0
    while True:
        try:
            session = store.open_session(sys.argv[2])
        except StoreError:
            time.sleep(0.01)
            continue
        try:
            for _ in range(20):
                number += 1
                print("try", me, number, flush=True)
                first, second = (Message("user", f"{me} {number} {part}") for part in "ab")
                entries = session.log.append([first, second])
                print("stored", me, number, entries[0].seq, flush=True)
        except StoreError:
            pass
        finally:
            session.close()
"""


def test_nothing_is_lost_mixed_or_doubled(cluster: Cluster) -> None:
    url = cluster.new_database()
    with Store.open(None, url=url) as store:
        shared, *own = (store.create(directory="/", model="m", name=str(n)).info.id for n in range(1 + WRITERS // 2))
    ids = [own[number // 2] if number % 2 else shared for number in range(WRITERS)]
    said: dict[str, list[str]] = {session_id: [] for session_id in ids}
    running = [_Writer(url, ids[number], number, said) for number in range(WRITERS)]
    chance = random.Random(1)
    for kill in range(KILLS):
        victim = chance.choice(running)
        victim.wait_for(chance.randrange(1, 6))
        if kill % 3 == 2:
            cluster.execute(END_ALL)
        else:
            victim.kill()
            running[running.index(victim)] = _Writer(url, victim.session_id, WRITERS + kill, said)
    for one in running:
        one.wait_for(1)
        one.kill()
    with Store.open(None, url=url) as store:
        for session_id, lines in said.items():
            _check(store, session_id, lines)


class _Writer:
    def __init__(self, url: str, session_id: str, number: int, said: dict[str, list[str]]) -> None:
        self.session_id = session_id
        command = [sys.executable, "-c", WRITER, url, session_id, str(number)]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self._stored = threading.Semaphore(0)
        self._lines = said[session_id]
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def wait_for(self, stored: int) -> None:
        """Until it has stored so many more."""
        for _ in range(stored):
            self._stored.acquire()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        self._reader.join()

    def _read(self) -> None:
        assert self._process.stdout
        with self._process.stdout as lines:
            for line in lines:
                if line.endswith("\n"):
                    self._lines.append(line)
                    if line.startswith("stored"):
                        self._stored.release()


def _check(store: Store, session_id: str, lines: list[str]) -> None:
    with store.open_session(session_id, read_only=True) as session:
        texts = [entry.message.text for entry in session.log.entries()]
    firsts = [text.removesuffix(" a") for text in texts[::2]]
    assert texts == [f"{first} {part}" for first in firsts for part in "ab"], "interleaved"
    assert len(set(firsts)) == len(firsts), "doubled"
    for line in lines:
        match line.split():
            case ["stored", me, number, seq]:
                assert texts[int(seq) - 1] == f"{me} {number} a", "lost"
    tried = {" ".join(line.split()[1:3]) for line in lines if line.startswith("try")}
    assert set(firsts) <= tried
