"""Log and index are one transaction: after a kill, exactly the stored messages are found."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

from nca.sessions import Store
from tests.testing.forks import standing_code

CHILD = """
import os, sys
from pathlib import Path
from nca.messages import Message
from nca.sessions import Store

print(os.getpid(), flush=True)
with Store.open(Path(sys.argv[1])) as store:
    session = store.create(directory="/", model="m")
    number = 0
    while True:
        number += 1
        session.log.append([Message("user", f"w{number}w " + "many other words " * 200)])
        print(number, flush=True)
"""


def test_every_message_that_survives_is_found(path: Path) -> None:
    for appended in (1, 7, 23):
        child = subprocess.Popen(standing_code(CHILD, str(path)), stdout=subprocess.PIPE, text=True)
        assert child.stdout is not None
        pid = int(child.stdout.readline())
        for line in child.stdout:
            if int(line) >= appended:
                break
        os.kill(pid, signal.SIGKILL)
        child.stdout.close()
        child.wait()
        with Store.open(path) as store, store.open_session(store.list()[0].id) as session:
            head = session.info.messages
            assert head >= appended
            assert [session.search(f"w{number}w", 1)[0].seq for number in range(1, head + 1)] == [*range(1, head + 1)]
            assert session.search(f"w{head + 1}w") == []
            with store._database.transaction() as connection:
                connection.execute("INSERT INTO passages (passages) VALUES ('integrity-check')")
