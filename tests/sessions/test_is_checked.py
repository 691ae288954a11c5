"""Looking whether a database is whole."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

from nca.errors import StoreDamaged
from nca.messages import Message
from nca.sessions import Store
from nca.sessions.corruption import is_checked


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "sessions.db"
    with Store.open(path) as store, store.create(directory="/work", model="m") as session:
        session.log.append([Message("user", f"{number} " + "word " * 400) for number in range(200)])
    return path


def test_it_is_looked_at_for_as_long_as_is_allowed(path: Path) -> None:
    assert is_checked(path, 60)
    assert not is_checked(path, 0)


def test_what_another_process_writes_meanwhile_is_no_damage(path: Path) -> None:
    with Store.open(path) as store, store.create(directory="/work", model="m") as session:
        session.log.append([Message("user", "one more")])
        assert is_checked(path, 60)


def test_damage_is_found_and_left(path: Path) -> None:
    with path.open("r+b") as file:
        file.seek(path.stat().st_size // 2)
        file.write(b"x" * 3_000)
    before = path.read_bytes()
    with pytest.raises(StoreDamaged):
        is_checked(path, 60)
    assert path.read_bytes() == before
    assert not list(path.parent.glob("locks/*.suspect"))


def test_an_index_that_is_behind_its_table_is_damage(path: Path) -> None:
    """As after a write of which the disk lost a page: each page by itself is sound."""
    connection = apsw.Connection(str(path))
    connection.execute("PRAGMA writable_schema = ON")
    where = "type = 'index' AND sql IS NOT NULL"
    rows = connection.execute(f"SELECT * FROM sqlite_schema WHERE {where}").fetchall()
    connection.execute(f"DELETE FROM sqlite_schema WHERE {where}")
    connection.close()
    connection = apsw.Connection(str(path))
    connection.execute("PRAGMA writable_schema = ON")
    connection.execute("UPDATE sessions SET touched = touched + 5")
    connection.executemany("INSERT INTO sqlite_schema VALUES (?, ?, ?, ?, ?)", rows)
    connection.close()
    assert rows
    with pytest.raises(StoreDamaged):
        is_checked(path, 60)
