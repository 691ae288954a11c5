"""`Store.vacuum` gives room back and loses nothing, whatever happens meanwhile."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from contextlib import closing, suppress
from pathlib import Path

import pytest

from nca.errors import StoreError
from nca.sessions import Store
from nca.sessions.lock import FileLock
from nca.sessions.opening import open_for_writing, rebuild
from nca.sessions.transfer import SessionCopy
from tests.file_history.room import Room, paths
from tests.sessions.samples import MANUAL, calling, filled, hiding, result, said
from tests.testing.forks import standing_code

_VACUUM = """
import os, sys
from pathlib import Path
from nca.sessions import Store
with Store.open(Path(sys.argv[1])) as store:
    print(os.getpid(), flush=True)
    store.vacuum()
"""


def copies(path: Path) -> dict[str, SessionCopy]:
    with Store.open(path, read_only=True) as store:
        return {info.id: store.copy_of(info.id) for info in store.list(None)}


def grown(path: Path) -> list[str]:
    """A store from which a large session was deleted; the ids of those that are left."""
    ids = filled(path, sessions=3, messages=60)
    with Store.open(path) as store:
        with store.create(directory="/", model="m") as session:
            session.log.append(said(*(f"{place} " + f"words of number {place} " * 200 for place in range(300))))
        store.delete(session.info.id)
    return ids


def test_what_is_kept_stays_and_the_file_shrinks(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    ids = grown(path)
    before, size = copies(path), path.stat().st_size
    with Store.open(path) as store:
        hits = [hit.id for hit in store.search("1/7 word")]
        unused = store.sizes().unused
        store.vacuum()
        assert store.sizes().unused < unused / 10
        assert [hit.id for hit in store.search("1/7 word")] == hits
        with store.open_session(ids[0]) as session:
            session.views.undo()
            session.views.redo()
            session.log.append(said("it goes on"))
    after = copies(path)
    assert path.stat().st_size < size / 2
    assert after.keys() == before.keys()
    assert {one: after[one] for one in ids[1:]} == {one: before[one] for one in ids[1:]}
    assert after[ids[0]].entries[:-1] == before[ids[0]].entries
    assert after[ids[0]].views == before[ids[0]].views


def test_another_process_keeps_it_from_running(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    grown(path)
    size = path.stat().st_size
    with Store.open(path), Store.open(path) as store:
        with pytest.raises(StoreError, match="Another nca has"):
            store.vacuum()
        assert path.stat().st_size == size


def test_one_that_is_refused_leaves_the_store_in_use(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    with Store.open(path) as store:
        with Store.open(path), pytest.raises(StoreError, match="Another nca has"):
            store.vacuum()
        assert FileLock.acquire(tmp_path / "locks" / "sessions.db.use") is None


def test_one_that_fails_leaves_the_store_shared(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"

    def fail() -> None:
        raise StoreError("Nothing can be removed")

    with closing(open_for_writing(path)) as opened:
        with pytest.raises(StoreError, match="Nothing can be removed"):
            rebuild(opened.database, path, opened.lock, fail)
        shared = FileLock.acquire(tmp_path / "locks" / "sessions.db.use", is_shared=True)
        assert shared is not None
        shared.release()


def test_it_is_killed_and_nothing_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    grown(path)
    before = copies(path)
    for pause in (0, 0.005, 0.01, 0.02, 0.04, 0.08):
        process = subprocess.Popen(standing_code(_VACUUM, os.fspath(path)), stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        pid = int(process.stdout.readline())
        time.sleep(pause)
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        process.communicate()
        with Store.open(path) as store:
            assert store.notes == ()
        assert copies(path) == before


def test_each_part_is_counted_once(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    with Store.open(path) as store, store.create(directory="/", model="m") as session:
        session_id = session.info.id
        folder = store.outputs_folder(session.info.id)
        assert folder is not None
        folder.mkdir(parents=True)
        (folder / "1.txt").write_bytes(b"x" * 5_000)
        session.log.append([*said("q" * 40_000), calling("1"), result("1")])
        session.views.commit(hiding(1), MANUAL)
    (tmp_path / "sessions.db.before-schema-9").write_bytes(b"x" * 700)
    with Store.open(path, read_only=True) as store:
        sizes = store.sizes()
    in_file = sizes.messages + sizes.summaries + sizes.search_index + sizes.unused
    assert in_file == path.stat().st_size
    assert sizes.messages > 40_000
    assert sizes.summaries > 0 < sizes.search_index
    assert (sizes.outputs, sizes.set_aside, sizes.file_history) == (5_000, 700, 0)
    assert [one.name for one in sizes.aside] == ["sessions.db.before-schema-9"]
    assert sizes.largest[0][0] == session_id
    assert sizes.total == in_file + 5_700


async def test_what_was_recorded_of_files_is_shrunk_too(tmp_path: Path) -> None:
    path = tmp_path / "home" / "sessions.db"
    with Store.open(path) as store:
        kept, gone = Room(tmp_path / "kept", store), Room(tmp_path / "gone", store)
        await kept.command("echo 1 > a; echo 2 > b")
        await kept.command("rm a")
        await gone.command("head -c 400000 /dev/urandom > large; echo 1 > a")
        await gone.command("rm large")
        store.delete(gone.session_id)
        plan = paths(kept.history.plan(0).restored)
    with Store.open(path) as store:
        unused = store.sizes().unused
        store.vacuum()
        sizes = store.sizes()
        assert sizes.unused < 50_000 < 300_000 < unused
        assert 0 < sizes.file_history < 200_000
        room = Room(tmp_path / "kept", store, session_id=kept.session_id)
        assert paths(room.history.plan(0).restored) == plan


def test_whoever_opens_it_afterwards_has_it_open(tmp_path: Path) -> None:
    path = tmp_path / "sessions.db"
    grown(path)
    store = Store.open(path)
    store.vacuum()
    with Store.open(path) as other:
        store.close()
        with Store.open(path) as third, pytest.raises(StoreError, match="Another nca has"):
            third.vacuum()
        assert other.list(None)
