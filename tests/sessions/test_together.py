"""Several processes in one database, each with its own session: no long waits."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from nca.sessions import Store
from tests.sessions.samples import sqlite_of
from tests.testing.forks import standing_code

WRITERS, APPENDS, OPENERS, OPENINGS = 5, 100, 2, 15

WRITER = """
import sys
from pathlib import Path
from nca.context.view import Summary, View
from nca.messages import Message
from nca.sessions import CompactionRecord, Store
with Store.open(Path(sys.argv[1])) as store, store.create(directory="/", model="m", name=sys.argv[2]) as session:
    print("ready", flush=True)
    sys.stdin.readline()
    for number in range(int(sys.argv[3])):
        head = session.log.append([Message("user", f"{sys.argv[2]} {number} " + "word " * 50)])[-1].seq
        session.log.save_partial(f"answer {number}")
        if number % 20 == 19:
            view = View((Summary(f"s{number}", ((1, head),), "s"),), head + 1)
            session.views.commit(view, CompactionRecord(trigger="x"))
            session.views.undo()
"""

OPENER = """
import sys
from pathlib import Path
from nca.sessions import Store
print("ready", flush=True)
sys.stdin.readline()
for number in range(int(sys.argv[3])):
    with Store.open(Path(sys.argv[1])) as store:
        assert not store.notes, store.notes
        with store.create(directory="/", model="m") as session:
            session.log.append([])
        store.delete_empty()
    with Store.open(Path(sys.argv[1]), read_only=True) as store:
        for info in store.list():
            if info.messages:
                copy = store.copy_of(info.id)
                assert len(copy.entries) >= info.messages
"""


def start(code: str, *arguments: str) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    return subprocess.Popen(standing_code(code, *arguments), stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def let_go(processes: list[subprocess.Popen[str]]) -> None:
    """All of them at the same moment."""
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()


def complaints(processes: list[subprocess.Popen[str]]) -> list[str]:
    """What went wrong in any, once all have ended."""
    errors = [process.communicate()[1] for process in processes]
    return [error for error, process in zip(errors, processes, strict=True) if process.returncode]


def test_writers_of_different_sessions_never_meet(path: Path) -> None:
    writers = [start(WRITER, str(path), f"writer {number}", str(APPENDS)) for number in range(WRITERS)]
    openers = [start(OPENER, str(path), "", str(OPENINGS)) for _ in range(OPENERS)]
    let_go([*writers, *openers])
    assert complaints([*writers, *openers]) == []
    with Store.open(path) as store:
        assert store.notes == ()
        assert sqlite_of(store).connection.pragma("integrity_check") == "ok"
        for number in range(WRITERS):
            copy = store.copy_of(f"writer {number}")
            said = [entry.message.text.split(" word")[0] for entry in copy.entries]
            assert said == [f"writer {number} {place}" for place in range(APPENDS)]
            assert len(copy.compactions) == APPENDS // 20


def test_a_backup_is_whole_while_others_write(path: Path, tmp_path: Path) -> None:
    writers = [start(WRITER, str(path), f"writer {number}", "60") for number in range(4)]
    with Store.open(path) as store:
        let_go(writers)
        targets = [tmp_path / f"backup-{number}.db" for number in range(5)]
        for target in targets:
            store.back_up(target)
    assert complaints(writers) == []
    for target in targets:
        assert target.stat().st_mode & 0o777 == 0o600
        with Store.open(target) as copy:
            assert sqlite_of(copy).connection.pragma("integrity_check") == "ok"
            for info in copy.list():
                assert len(copy.copy_of(info.id).entries) == info.messages
    assert not list(tmp_path.glob(".*"))


@pytest.mark.parametrize("read_only", [True, False])
def test_a_backup_of_a_store_that_nobody_uses(path: Path, tmp_path: Path, read_only: bool) -> None:
    with Store.open(path) as store, store.create(directory="/", model="m", name="one"):
        pass
    with Store.open(path, read_only=read_only) as store:
        store.back_up(tmp_path / "copy.db")
    with Store.open(tmp_path / "copy.db", read_only=True) as store:
        assert [info.name for info in store.list()] == ["one"]
