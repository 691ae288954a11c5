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

KILLS = int(os.environ.get("NCA_SOAK_KILLS", "12"))
HANGS_SECONDS = 100
WRITERS = 4
"""Half of them write sessions of their own, half fight for one."""

WRITER = """
import os, sys, time
from nca.errors import StoreError
from nca.messages import Message
from nca.sessions import Store
me = f"{sys.argv[3]}-{os.getpid()}"
number = 0
while True:
    try:
        with Store.open(None, url=sys.argv[1]) as store, store.open_session(sys.argv[2]) as session:
            for _ in range(20):
                number += 1
                print("try", me, number, flush=True)
                first, second = (Message("user", f"{me} {number} {part}") for part in "ab")
                entries = session.log.append([first, second])
                print("stored", me, number, entries[0].seq, flush=True)
    except StoreError:  # another one has it, or the server ended the connection while it was made
        pass
    time.sleep(0.05)  # or the others would never find it free
"""


def test_nothing_is_lost_mixed_or_doubled(cluster: Cluster) -> None:
    url = cluster.new_database()
    with Store.open(None, url=url) as store:
        shared, *own = (store.create(directory="/", model="m", name=str(n)).info.id for n in range(1 + WRITERS // 2))
    ids = [own[number // 2] if number % 2 else shared for number in range(WRITERS)]
    sessions = {session_id: _Said() for session_id in ids}
    running = [_Writer(url, ids[number], number, sessions) for number in range(WRITERS)]
    chance = random.Random(1)
    for kill in range(KILLS):
        victim = chance.choice(running)
        sessions[victim.session_id].wait_for(chance.randrange(1, 6))
        if kill % 3 == 2:
            cluster.execute(END_ALL)
        else:
            victim.kill()
            running[running.index(victim)] = _Writer(url, victim.session_id, WRITERS + kill, sessions)
    for one in sessions.values():
        one.wait_for(1)
    for writer in running:
        writer.kill()
    with Store.open(None, url=url) as store:
        for session_id, one in sessions.items():
            _check(store, session_id, one.lines)


class _Said:
    """What the writers of one session say."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._stored = threading.Semaphore(0)

    def add(self, line: str) -> None:
        self.lines.append(line)
        if line.startswith("stored"):
            self._stored.release()

    def wait_for(self, stored: int) -> None:
        """Until so much more is stored."""
        for _ in range(stored):
            assert self._stored.acquire(timeout=HANGS_SECONDS), "no writer stores anything any more"


class _Writer:
    def __init__(self, url: str, session_id: str, number: int, sessions: dict[str, _Said]) -> None:
        self.session_id = session_id
        command = [sys.executable, "-c", WRITER, url, session_id, str(number)]
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self._said = sessions[session_id]
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
        self._reader.join()

    def _read(self) -> None:
        assert self._process.stdout
        with self._process.stdout as lines:
            for line in lines:
                if line.endswith("\n"):
                    self._said.add(line)


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
