"""Pages read one by one give the rows that SQLite gives, and nothing makes the reader stop."""

from __future__ import annotations

import random
from contextlib import closing
from pathlib import Path

import apsw
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nca.sessions import Store
from nca.sessions.pages import Pages
from nca.sessions.rows import Frame, Value
from tests.sessions.samples import filled
from tests.sessions.test_corruption import suspect

VALUES = st.one_of(
    st.none(),
    st.integers(-(2**63), 2**63 - 1),
    st.sampled_from((0, 1, -1, 127, 128, 2**15, 2**23, 2**31, 2**47)),
    st.floats(allow_nan=False),
    st.text(max_size=30),
    st.integers(0, 9000).map(lambda length: "é" * length),
    st.binary(max_size=30),
)
ROWS = st.dictionaries(st.integers(-(2**63), 2**63 - 1), st.tuples(VALUES, VALUES, VALUES), max_size=30)


def database(path: Path, page_bytes: int) -> apsw.Connection:
    path.unlink(missing_ok=True)
    connection = apsw.Connection(str(path))
    connection.pragma("page_size", page_bytes)
    connection.pragma("synchronous", "OFF")
    connection.execute("CREATE TABLE plain (id INTEGER PRIMARY KEY, a, b, c)")
    connection.execute("CREATE TABLE indexed (a, b, PRIMARY KEY (a, b)) WITHOUT ROWID")
    return connection


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=ROWS, page_bytes=st.sampled_from((512, 4096, 65_536)))
def test_every_row_that_sqlite_gives_is_read(
    tmp_path: Path, rows: dict[int, tuple[Value, ...]], page_bytes: int
) -> None:
    path = tmp_path / "any.db"
    with closing(database(path, page_bytes)) as connection, connection:
        connection.executemany("INSERT INTO plain VALUES (?, ?, ?, ?)", [(id, *row) for id, row in rows.items()])
        wanted = {id: row for id, *row in connection.execute("SELECT * FROM plain")}
    with path.open("rb") as file:
        found = [
            (record.rowid, list(record.values[1:])) for record, is_live in Pages(file, page_bytes).records() if is_live
        ]
    # What a long row goes on in may look like another row: whoever asks knows what the rows of a table are.
    assert [id for id, row in wanted.items() if (id, row) not in found] == []


@pytest.mark.parametrize("page_bytes", [512, 4096])
def test_a_tree_without_rowids_is_read_whole(tmp_path: Path, page_bytes: int) -> None:
    path = tmp_path / "any.db"
    # Of each length: one byte decides whether a row goes on in another page, and how much of it.
    rows = [(number, "x" * number) for number in range(1500)]
    with closing(database(path, page_bytes)) as connection, connection:
        connection.executemany("INSERT INTO indexed VALUES (?, ?)", rows)
        [(root,)] = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'indexed'")
    assert isinstance(root, int)
    with path.open("rb") as file:
        assert sorted(record.values for record in Pages(file, page_bytes).index(root)) == rows


@pytest.mark.parametrize("page_bytes", [512, 4096])
def test_rows_of_any_length_about_a_pages_are_read(tmp_path: Path, page_bytes: int) -> None:
    path = tmp_path / "any.db"
    rows = [(pages * page_bytes + more,) * 2 for pages in (1, 2) for more in range(-80, 80)]
    with closing(database(path, page_bytes)) as connection, connection:
        connection.executemany("INSERT INTO plain (id, a) VALUES (?, zeroblob(?))", rows)
    with path.open("rb") as file:
        found = {record.rowid: record.values[1] for record, is_live in Pages(file, page_bytes).records() if is_live}
    assert {length: found.get(length) for length, _ in rows} == {length: bytes(length) for length, _ in rows}


@pytest.mark.parametrize("seed", range(20))
def test_no_bytes_stop_the_reader(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    path = tmp_path / "any.db"
    content = bytearray(chance.randbytes(16 * 512 + 7))
    for number in range(1, 16):
        content[number * 512] = chance.choice((2, 10, 13))
        # References that lead somewhere: to other pages and into this one.
        content[number * 512 + 8 : number * 512 + 11] = bytes(3)
    path.write_bytes(content)
    with path.open("rb") as file:
        frame = Frame(40, bytes(content[:512]), True)
        pages = Pages(file, 512, [frame], [frame])
        list(pages.records())
        list(pages.fragments())
        for root in range(18):
            list(pages.index(root))
        pages.freed()


def test_a_deleted_session_stays_deleted(path: Path) -> None:
    ids = filled(path, sessions=3, messages=200)
    with Store.open(path) as store:
        store.delete(ids[1])
    suspect(path)
    with Store.open(path) as store:
        assert "2 sessions with 400 messages could be read" in store.notes[0]
        assert [info.id for info in store.list()] == [ids[2], ids[0]]


def test_a_page_that_the_list_of_free_pages_names_by_mistake_is_read(path: Path) -> None:
    filled(path, sessions=1, messages=300)
    with closing(apsw.Connection(str(path))) as connection:
        sql = "SELECT pageno FROM dbstat WHERE name = 'messages' AND pagetype = 'leaf'"
        leaves = [int(page) for (page,) in connection.execute(sql)]
    content = bytearray(path.read_bytes())
    trunk = len(content) // 4096 + 1
    content[32:36] = trunk.to_bytes(4)
    content += b"".join(number.to_bytes(4) for number in (0, len(leaves), *leaves)).ljust(4096, b"\0")
    path.write_bytes(content)
    suspect(path)
    with Store.open(path) as store:
        assert "1 session with 300 messages could be read" in store.notes[0]
