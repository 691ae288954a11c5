"""One writer per session; the kernel releases the lock when the process dies."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from nca.errors import SessionLocked, StoreError
from nca.sessions import Store
from nca.sessions.lock import FileLock, HeldHere, lock_session
from tests.sessions.samples import filled, said

HOLDER = """
import sys
from pathlib import Path
from nca.sessions import Store
with Store.open(Path(sys.argv[1])) as store, store.open_session(sys.argv[2]) as session:
    print("open", flush=True)
    sys.stdin.read()
"""

LATE = """
import sys
from pathlib import Path
from nca.sessions.lock import FileLock
path, deleted = Path(sys.argv[1]), []
def delete_once(event, arguments):
    if event == "fcntl.flock" and not deleted:
        deleted.append(path.unlink())
sys.addaudithook(delete_once)
lock = FileLock.acquire(path)
print(len(deleted), path.exists() and FileLock.acquire(path) is None)
"""
"""Its lock file is deleted after it is opened and before it is locked."""


@contextmanager
def other_process(path: Path, session_id: str) -> Iterator[subprocess.Popen[str]]:
    """Another process that has the session open until its input ends."""
    command = [sys.executable, "-c", HOLDER, str(path), session_id]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
        yield process


def test_a_second_process_is_told_who_has_the_session(path: Path) -> None:
    ids = filled(path)
    with other_process(path, ids[0]) as other, Store.open(path) as store:
        with pytest.raises(SessionLocked, match=f"already open in process {other.pid}, since 20") as caught:
            store.open_session(ids[0])
        assert f"nca sessions fork {ids[0]}" in caught.value.advice
        assert len(store.open_session(ids[0], read_only=True).log.entries()) == 40
        with store.open_session(ids[1]) as session:
            session.log.append(said("another session is free"))
        copy = store.copy_of(ids[0])
        for change in (
            lambda: store.delete(ids[0]),
            lambda: store.delete_kept(ids[0], lambda copy: copy),
            lambda: store.extend(ids[0], copy),
            lambda: store.refuse_held(ids[0]),
        ):
            with pytest.raises(SessionLocked):
                change()
        assert store.copy_of(ids[0]) == copy
    with Store.open(path) as store:
        store.open_session(ids[0]).close()


def test_a_killed_owner_holds_nothing(path: Path) -> None:
    ids = filled(path)
    with other_process(path, ids[0]) as other, Store.open(path) as store:
        other.send_signal(signal.SIGKILL)
        other.wait()
        with store.open_session(ids[0]) as session:
            assert len(session.log.entries()) == 40


def test_a_session_is_open_once_in_one_process_too(store: Store) -> None:
    session = store.create(directory="/", model="m")
    with pytest.raises(SessionLocked, match=f"process {os.getpid()}"):
        store.open_session(session.info.id)


def test_closing_the_store_lets_go_and_leaves_no_lock_files(path: Path) -> None:
    with Store.open(path) as store:
        ids = [store.create(directory="/", model="m").info.id for _ in range(3)]
    assert not list(path.parent.glob("locks/*.lock"))
    with Store.open(path) as store:
        for name in ids:
            store.open_session(name)


def test_a_lock_file_that_says_nothing_is_still_a_lock(tmp_path: Path) -> None:
    path = tmp_path / "locks" / "x.lock"
    held = FileLock.acquire(path)
    assert held is not None
    for content in (b"", b"{", b"[]", b'{"pid": "x", "start": 1}', b'{"pid": 1, "start": 1e300}'):
        path.write_bytes(content)
        with pytest.raises(SessionLocked, match="in another process"):
            lock_session(path, "x")
    held.release()
    lock_session(path, "x").release()


def test_many_who_remove_the_file_never_hold_it_together(tmp_path: Path) -> None:
    path = tmp_path / "x.lock"
    holders, most = [0], [0]

    def work() -> None:
        for _ in range(100):
            lock = FileLock.wait(path, 30)
            holders[0] += 1
            most[0] = max(most[0], holders[0])
            holders[0] -= 1
            lock.release(remove=True)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1]


def test_a_lock_on_a_deleted_file_does_not_count(tmp_path: Path) -> None:
    command = [sys.executable, "-c", LATE, str(tmp_path / "x.lock")]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "1 True\n"


def test_waiting_ends(tmp_path: Path) -> None:
    held = FileLock.acquire(tmp_path / "x")
    assert held is not None
    with pytest.raises(StoreError, match="Another process has been preparing"):
        FileLock.wait(tmp_path / "x", 0.05)
    held.release()
    held.release()
    FileLock.wait(tmp_path / "x", 0.05).release()


def test_readers_share_and_writers_do_not(tmp_path: Path) -> None:
    first = FileLock.acquire(tmp_path / "x")
    assert first is not None
    assert FileLock.acquire(tmp_path / "x", is_shared=True) is None
    first.share()
    second = FileLock.acquire(tmp_path / "x", is_shared=True)
    assert second is not None
    assert FileLock.acquire(tmp_path / "x") is None
    assert not second.take_alone()
    first.release()
    assert FileLock.acquire(tmp_path / "x") is None, "it is shared as before"
    assert second.take_alone()
    assert FileLock.acquire(tmp_path / "x", is_shared=True) is None
    second.release()


def test_threads_share_a_lock_as_processes_do(tmp_path: Path) -> None:
    here = HeldHere()
    first, second = (here.acquire(tmp_path, is_shared=True) for _ in range(2))
    assert first is not None
    assert second is not None
    first.close()
    assert here.acquire(tmp_path, is_shared=False) is None
    second.close()
    with here.acquire(tmp_path, is_shared=False) or pytest.fail("nobody has it"):
        assert here.acquire(tmp_path, is_shared=True) is None


def test_a_lock_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "locks").write_text("a file")
    with pytest.raises(StoreError, match="Cannot write"):
        FileLock.acquire(tmp_path / "locks" / "x")
