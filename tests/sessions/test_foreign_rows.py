"""Databases of other programs: read as they are, in use or damaged, and never written."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from nca.errors import InvalidMessages
from nca.sessions.foreign_rows import foreign_database, foreign_tables


def state(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def make(path: Path, rows: int = 3) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute('CREATE TABLE "a ""b" (id INTEGER PRIMARY KEY, name TEXT, held BLOB)')
        values = [(number, f"n{number}", b"\xff\x00") for number in range(rows)]
        connection.executemany('INSERT INTO "a ""b" VALUES (?, ?, ?)', values)
        connection.commit()


def test_rows_are_read_in_order_and_nothing_is_written(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    make(path)
    before = state(tmp_path)
    assert foreign_tables(path) == {'a "b': ("id", "name", "held")}
    with foreign_database(path) as database:
        found = list(database.rows('a "b', {"name": "n1"}))
        assert found == [{"id": 1, "name": "n1", "held": b"\xff\x00"}]
        rows = list(database.rows('a "b', columns=("name", "lost"), order=("held", "lost", "id")))
        assert rows == [{"name": "n0"}, {"name": "n1"}, {"name": "n2"}]
        assert list(database.rows("lost")) == []
        assert list(database.rows('a "b', {"lost": 1})) == []
    assert state(tmp_path) == before


def test_a_database_in_use_is_read_with_its_log_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE t (name TEXT)")
        connection.execute("INSERT INTO t VALUES ('in the log')")
        connection.commit()
        before = state(tmp_path)
        assert {"x.db", "x.db-wal", "x.db-shm"} == set(before)
        assert foreign_tables(path)["t"] == ("name",)
        with foreign_database(path) as database:
            assert list(database.rows("t")) == [{"name": "in the log"}]
        assert state(tmp_path) == before


def test_the_log_of_a_program_that_was_killed_is_read_too(tmp_path: Path) -> None:
    made = tmp_path / "made"
    made.mkdir()
    with closing(sqlite3.connect(made / "x.db")) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE t (name TEXT)")
        connection.execute("INSERT INTO t VALUES ('in the log')")
        connection.commit()
        left = tmp_path / "left"
        left.mkdir()
        for name in ("x.db", "x.db-wal"):
            (left / name).write_bytes((made / name).read_bytes())
    before = state(left)
    with foreign_database(left / "x.db") as database:
        assert list(database.rows("t")) == [{"name": "in the log"}]
    assert state(left) == before


def test_a_text_that_is_not_utf8_costs_only_its_bad_bytes(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    make(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute('UPDATE "a ""b" SET name = CAST(? AS TEXT) WHERE id = 1', (b"caf\xe9",))
        connection.commit()
    with foreign_database(path) as database:
        found = [(row["id"], row["name"], row["held"]) for row in database.rows('a "b', order=("id",))]
    assert found == [(0, "n0", b"\xff\x00"), (1, "caf\ufffd", b"\xff\x00"), (2, "n2", b"\xff\x00")]


def test_damage_is_one_line_that_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    make(path, rows=5000)
    whole = path.read_bytes()
    middle = len(whole) // 2 // 4096 * 4096
    path.write_bytes(whole[:middle] + b"\x00" * 4096 + whole[middle + 4096 :])
    with (
        foreign_database(path) as database,
        pytest.raises(InvalidMessages, match=r"x\.db: cannot be read as a database"),
    ):
        list(database.rows('a "b'))
    for content in (b"", b"not a database" * 500, whole[:50]):
        path.write_bytes(content)
        if content:
            with pytest.raises(InvalidMessages, match="cannot be read"):
                foreign_tables(path)
    with pytest.raises(InvalidMessages, match="cannot be read"):
        foreign_tables(tmp_path / "missing.db")
    with pytest.raises(InvalidMessages, match="cannot be read"):
        foreign_tables(tmp_path)
