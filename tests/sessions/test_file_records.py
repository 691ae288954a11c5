"""The database of file changes: private, gone with its sessions, and no danger to any chat when it is damaged."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from nca.sessions.store import Store
from tests.file_history.room import Room, paths
from tests.sessions.samples import once_read

ROWS = "SELECT (SELECT count(*) FROM contents), (SELECT count(*) FROM known), (SELECT count(*) FROM changes)"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return tmp_path / "home/sessions.db"


def rows(store: Store) -> tuple[int, ...]:
    [found] = store.file_records._database.rows(ROWS)
    return found


async def test_it_is_private(home: Path, tmp_path: Path) -> None:
    with Store.open(home) as store:
        await Room(tmp_path / "work", store).command("echo 1 > a")
        files = list(home.parent.rglob("*files*"))
        assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
        assert len(files) >= 3


async def test_what_no_session_refers_to_goes(home: Path, tmp_path: Path) -> None:
    with Store.open(home) as store:
        room, other = Room(tmp_path / "work", store), Room(tmp_path / "work", store)
        (room.root / "same").write_text("same")
        await room.command("echo 1 > a; echo 2 > b")
        await other.command("echo 1 > c; echo 3 > d; rm b")
        assert rows(store) == (4, 4, 5)
        store.delete(room.session_id)
        assert rows(store) == (4, 4, 3)
        assert paths(other.history.plan(0).restored) == ["b"]
        store.delete(other.session_id)
        assert rows(store) == (0, 0, 0)


def test_what_comes_into_use_while_the_unused_is_removed_stays(home: Path, tmp_path: Path) -> None:
    with Store.open(home) as store, Store.open(home) as other:
        room, later = Room(tmp_path / "work", store), Room(tmp_path / "elsewhere", other)
        room.edit("a", "1")
        room.edit("b", "2")
        given = once_read(
            store.file_records._database, "SELECT number FROM contents WHERE ", lambda: later.edit("c", "1")
        )
        store.delete(room.session_id)
        assert given == [None]
        assert rows(store) == (1, 0, 1), "the other content has gone"
        later.edit("c", "3")
        later.history.apply(later.history.plan(2))
        assert later.texts() == {"c": "1"}


async def test_a_damaged_record_is_set_aside_and_the_sessions_stay(home: Path, tmp_path: Path) -> None:
    with Store.open(home) as store:
        room = Room(tmp_path / "work", store)
        await room.command("echo 1 > a")
    path = home.with_name("files.db")
    path.write_bytes(b"\0" * 5_000)
    with Store.open(home) as store:
        room = Room(tmp_path / "work", store, session_id=room.session_id)
        assert store.notes == ()
        room.edit("b", "1")
        [notice] = room.notices()
        assert "not a database" in notice
        assert "changes to files before now cannot be taken back" in notice
        assert paths(room.history.plan(0).deleted) == ["b"]


async def test_a_damaged_content_leaves_its_file(home: Path, tmp_path: Path) -> None:
    with Store.open(home) as store:
        room = Room(tmp_path / "work", store)
        (room.root / "a").write_text("1")
        (room.root / "b").write_text("2")
        await room.command("rm a b")
        with store.file_records._database.transaction() as connection:
            connection.execute("UPDATE contents SET packed = zeroblob(9) WHERE number = 1")
        outcome = room.history.apply(room.history.plan(0))
        assert len(outcome.blocked) == 1
        assert "is damaged or missing" in outcome.blocked[0].reason
        assert len(room.texts()) == 1


def test_a_record_that_was_deleted_keeps_no_session_from_closing(home: Path, tmp_path: Path) -> None:
    with Store.open(home) as store:
        room = Room(tmp_path / "work", store)
        room.edit("a", "1")
        home.with_name("files.db").unlink()
        room.edit("a", "2")
        assert ["was deleted or replaced" in one for one in room.notices()] == [True]
    with Store.open(home) as store:
        assert len(store.list()) == 1


async def test_what_someone_replaced_and_nobody_needs_is_collected(home: Path, tmp_path: Path) -> None:
    with Store.open(home) as store:
        room = Room(tmp_path / "work", store)
        (room.root / "a").write_text("1")
        await room.command("true")
        (room.root / "a").write_text("2")
        await room.command("true")
        assert rows(store)[0] == 2
        again = Room(room.root, store, session_id=room.session_id)
        again.history.recorder.start()
        await again.command("echo 3 > b")
        again.history.recorder.close()
        assert rows(store) == (2, 2, 1)


def test_a_session_goes_although_its_record_is_damaged(home: Path, tmp_path: Path) -> None:
    with Store.open(home) as store:
        Room(tmp_path / "work", store).edit("a", "1")
    home.with_name("files.db").write_bytes(b"garbage")
    with Store.open(home) as store:
        store.delete(store.list()[0].id)
        assert store.list() == []
