"""One wrong byte in the write-ahead log costs no message that was committed."""

from __future__ import annotations

import random
import shutil
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from nca.errors import StoreDamaged
from nca.sessions import Store
from nca.sessions.paths import log_of
from nca.sessions.rows import read_frames
from tests.sessions.damage import PAGE_BYTES
from tests.sessions.samples import said

FRAME_BYTES = 24 + PAGE_BYTES
HEADER_PLACES = (0, 3, 7, 10, 13, 17, 22, 25, 30)
FRAME_PLACES = (0, 3, 7, 9, 14, 17, 22, 24, 27, 29, 500, 4000)
"""Of a frame: its page, the size after a commit, both salts and checksums, then the page."""


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store as a killed process leaves it."""
    path = tmp_path_factory.mktemp("open") / "sessions.db"
    copy = path.parent.with_name("killed")
    with Store.open(path) as store, store.create(directory="/work", model="m") as session:
        for number in range(12):
            session.log.append(said(f"{number} " + "word " * number * 200, f"answer {number}"))
        shutil.copytree(path.parent, copy)
    return copy


def texts(store: Store) -> list[str]:
    found = []
    for info in store.list(None):
        with store.open_session(info.id) as session:
            found += [entry.message.text for entry in session.log.entries()]
    return sorted(found)


def places(log: Path) -> list[int]:
    frames = read_frames(log, PAGE_BYTES)
    chance = random.Random(1)
    return [
        *HEADER_PLACES,
        *(32 + chance.randrange(frames.checked - 1) * FRAME_BYTES + place for place in FRAME_PLACES),
        32 + (frames.checked - 1) * FRAME_BYTES + 1000,
    ]


@pytest.mark.parametrize("which", range(len(HEADER_PLACES) + len(FRAME_PLACES) + 1))
def test_one_wrong_byte_costs_no_message(killed: Path, tmp_path: Path, which: int) -> None:
    sound, damaged = (tmp_path / name / "sessions.db" for name in ("sound", "damaged"))
    for path in (sound, damaged):
        shutil.copytree(killed, path.parent)
    content = bytearray(log_of(damaged).read_bytes())
    content[places(log_of(damaged))[which]] ^= 0x10
    log_of(damaged).write_bytes(content)
    with Store.open(sound) as store:
        assert store.notes == ()
        wanted = texts(store)
    with pytest.raises(StoreDamaged, match="its write-ahead log has a wrong byte"):
        Store.open(damaged, read_only=True)
    with Store.open(damaged) as store:
        assert "its write-ahead log has a wrong byte" in store.notes[0]
        found = texts(store)
    assert len(found) == len(wanted)
    assert len(set(wanted) - set(found)) <= 1  # the message that the byte is in
    [aside] = (path for path in damaged.parent.glob("*.corrupt-*-wal"))
    assert aside.read_bytes() == content


def test_a_commit_that_was_never_completed_is_no_damage(killed: Path, tmp_path: Path) -> None:
    path = tmp_path / "data" / "sessions.db"
    shutil.copytree(killed, path.parent)
    frames = read_frames(log_of(path), PAGE_BYTES)
    content = bytearray(log_of(path).read_bytes())
    # The last commit without its last frame, whose place has what was written before the log began anew.
    last = 32 + (frames.checked - 1) * FRAME_BYTES
    content[last : last + FRAME_BYTES] = random.Random(1).randbytes(FRAME_BYTES)
    log_of(path).write_bytes(content)
    again = read_frames(log_of(path), PAGE_BYTES)
    assert 0 < again.checked < frames.checked
    assert not again.is_damaged
    with Store.open(path) as store:
        assert store.notes == ()


def test_what_was_rolled_back_is_no_damage(tmp_path: Path) -> None:
    path = tmp_path / "any.db"
    with closing(apsw.Connection(str(path))) as connection:
        connection.pragma("journal_mode", "WAL")
        connection.pragma("cache_size", 5)
        connection.execute("CREATE TABLE any (a); BEGIN")
        connection.executemany("INSERT INTO any VALUES (randomblob(3000 + ?))", [(number,) for number in range(200)])
        connection.execute("ROLLBACK")
        connection.execute("INSERT INTO any VALUES (1)")
        frames = read_frames(log_of(path), PAGE_BYTES)
        assert 0 < frames.checked < 10 < log_of(path).stat().st_size // FRAME_BYTES
        assert not frames.is_damaged


def test_a_log_that_is_not_there_or_is_short_has_no_frames(tmp_path: Path) -> None:
    log = tmp_path / "any-wal"
    for content in (None, b"", b"short", bytes(32), bytes(32 + FRAME_BYTES)):
        if content is not None:
            log.write_bytes(content)
        frames = read_frames(log, PAGE_BYTES)
        assert (frames.committed, frames.checked, frames.is_damaged) == ([], 0, False)


@pytest.mark.parametrize("length", [32, 200, 5_000, 20_000])
def test_random_bytes_at_the_head_of_the_log_cost_what_they_cover(killed: Path, tmp_path: Path, length: int) -> None:
    sound, damaged = (tmp_path / name / "sessions.db" for name in ("sound", "damaged"))
    for path in (sound, damaged):
        shutil.copytree(killed, path.parent)
    content = bytearray(log_of(damaged).read_bytes())
    content[:length] = random.Random(length).randbytes(length)
    log_of(damaged).write_bytes(content)
    covered = -(-(length - 32) // FRAME_BYTES)
    frames = read_frames(log_of(damaged), PAGE_BYTES)
    assert sum(frame.is_sound for frame in frames.committed) >= len(frames.committed) - covered - 1
    assert len(frames.committed) == len(read_frames(log_of(sound), PAGE_BYTES).committed)
    with Store.open(sound) as store:
        wanted = texts(store)
    with Store.open(damaged) as store:
        assert set(wanted) <= set(texts(store))


def test_a_log_that_began_anew_is_told_from_the_one_before(tmp_path: Path) -> None:
    """By their salts, also where the log's header is lost."""
    path = tmp_path / "any.db"
    with closing(apsw.Connection(str(path))) as connection:
        connection.pragma("journal_mode", "WAL")
        connection.execute("CREATE TABLE any (a)")
        connection.executemany("INSERT INTO any VALUES (randomblob(3000 + ?))", [(number,) for number in range(30)])
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_RESTART)
        connection.executemany("INSERT INTO any VALUES (randomblob(3000 + ?))", [(number,) for number in range(5)])
        frames = read_frames(log_of(path), PAGE_BYTES)
        content = bytearray(log_of(path).read_bytes())
        content[:32] = bytes(32)
        headless = tmp_path / "headless-wal"
        headless.write_bytes(content)
        again = read_frames(headless, PAGE_BYTES)
    assert 0 < len(frames.committed) < len(frames.loose)
    assert [frame.page for frame in again.committed] == [frame.page for frame in frames.committed]
    assert again.is_damaged
    assert not frames.is_damaged
