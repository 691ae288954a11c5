"""A row that cannot be read costs that row: the session opens, and says what is missing."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import apsw
import pytest

from nca.context.view import View
from nca.errors import StoreDamaged
from nca.messages import Message, Usage
from nca.sessions import Store
from tests.sessions.damage import unnoticed
from tests.sessions.samples import MANUAL, calling, hiding, result, said


def overwrite(path: Path, table: str, text: bytes, where: str, column: str = "body") -> None:
    """Put these bytes in the place of a text, past every trigger."""
    with unnoticed(path), closing(apsw.Connection(str(path))) as connection:
        name = f"{table}_never_change"
        guard = connection.execute("SELECT sql FROM sqlite_schema WHERE name = ?", (name,)).get
        connection.execute(f"DROP TRIGGER IF EXISTS {name}")
        connection.execute(f"UPDATE {table} SET {column} = CAST(? AS TEXT) WHERE {where}", (text,))
        if guard:
            connection.execute(str(guard))


def stored(path: Path, table: str, where: str) -> bytes:
    connection = apsw.Connection(str(path))
    body = connection.execute(f"SELECT CAST(body AS BLOB) FROM {table} WHERE {where}").get
    connection.close()
    assert isinstance(body, bytes)
    return body


@pytest.fixture
def compacted(path: Path) -> str:
    """A session with two compactions; its id."""
    with Store.open(path) as store, store.create(directory="/work", model="m", name="old") as session:
        session.log.append([*said("Where?", "Here."), calling("a"), result("a", "found it"), *said("And?", "There.")])
        session.views.commit(hiding(2, "one"), MANUAL)
        session.views.commit(hiding(4, "two"), MANUAL)
        session.usage.record(6, "m", Usage(50, 5), 2)
        return session.info.id


def test_one_bad_byte_in_a_message_costs_one_character(path: Path, compacted: str) -> None:
    overwrite(path, "messages", stored(path, "messages", "seq = 2").replace(b"Here", b"H\xffre"), "seq = 2")
    with Store.open(path) as store, store.open_session(compacted) as session:
        assert [entry.message.text for entry in session.log.entries(1, 2)] == ["Where?", "H\ufffdre."]


@pytest.mark.parametrize("seq", range(1, 7))
@pytest.mark.parametrize(
    "bytes_", [b'{"role":"us\xff', b"", b"\xff" * 412, b"[" * 5000], ids=["cut", "none", "ff", "deep"]
)
def test_a_damaged_message_is_named_and_the_session_goes_on(
    path: Path, compacted: str, seq: int, bytes_: bytes
) -> None:
    overwrite(path, "messages", bytes_, f"seq = {seq}")
    with Store.open(path) as store:
        assert store.list()[0].messages == 6
        store.preview(compacted)
        with store.open_session(compacted) as session:
            entries = session.log.entries()
            assert entries[seq - 1].message.text == f"[message {seq} is damaged; {len(bytes_):,} bytes]"
            assert sum("damaged" in entry.message.text for entry in entries) == 1
            assert session.views.current() == hiding(4, "two")
            assert session.log.append(said("goes on"))[0].seq == len(entries) + 1
        copy = store.fork(compacted)
        assert copy.messages == len(entries) + 1


def test_a_damaged_summary_falls_back_to_the_view_before(path: Path, compacted: str) -> None:
    overwrite(path, "summaries", b'{"id":"\xfe"}', "number = 2")
    with Store.open(path, read_only=True) as reading, reading.open_session(compacted, read_only=True) as session:
        assert session.views.is_damaged
        assert session.views.current() == hiding(2, "one")
    with Store.open(path) as store:
        assert store.fork(compacted).messages == 6
        with store.open_session(compacted) as session:
            assert session.views.is_damaged
            assert session.views.redo() is None
            assert session.views.totals_in_effect() == (600, None)
            assert [record.undone for record in session.views.compactions()] == [False, True]
            assert [summary.id for summary in session.views.summaries()] == ["one"]
            session.views.commit(hiding(5, "three"), MANUAL)
            assert session.views.current() == hiding(5, "three")
            session.views.undo()
            assert session.views.current() == hiding(2, "one")
            session.views.undo()
            assert session.views.current() == View()


@pytest.mark.parametrize(
    ("table", "where"), [("messages", "seq = 2"), ("views", "number = 1"), ("summaries", "number = 2")]
)
def test_a_session_of_which_a_part_is_damaged_is_not_deleted_for_its_copy(
    path: Path, compacted: str, table: str, where: str
) -> None:
    """Somebody may yet mend it by hand."""
    overwrite(path, table, b"\x80", where)
    with Store.open(path) as store:
        with pytest.raises(StoreDamaged, match="no copy can hold all of it"):
            store.delete_kept(compacted, lambda copy: copy)
        assert [info.id for info in store.list()] == [compacted]


@pytest.mark.parametrize("body", [b"\x80", b'{"items":[],"tail":9}', b'{"items":[],"tail":1'])
def test_a_damaged_view_falls_back_as_well(path: Path, compacted: str, body: bytes) -> None:
    for number, wanted in ((2, hiding(2, "one")), (1, View()), (0, View())):
        overwrite(path, "views", body, f"number = {number}")
        with Store.open(path) as store, store.open_session(compacted) as session:
            assert session.views.current() == wanted
            assert session.log.entries()[0].message == Message("user", "Where?")


@pytest.mark.parametrize(
    ("table", "column"),
    [
        *(("sessions", column) for column in ("name", "directory", "model", "title", "kind")),
        *(("compactions", column) for column in ("trigger", "stages")),
        ("usage", "model"),
    ],
)
def test_no_other_text_keeps_a_session_from_opening(path: Path, compacted: str, table: str, column: str) -> None:
    overwrite(path, table, b"a\xf0b", "1", column)
    with Store.open(path) as store:
        assert [info.id for info in store.list()] == [compacted]
        assert store.latest() is not None
        store.search("where")
        assert store.fork(compacted).messages == 6
        with store.open_session(compacted) as session:
            assert len(session.views.compactions()) == 2
            assert session.usage.totals() == Usage(50, 5)
            assert session.usage.rows()[0].usage == Usage(50, 5)


def test_a_damaged_partial_answer_is_dropped(path: Path, compacted: str) -> None:
    with Store.open(path) as store, store.open_session(compacted) as session:
        session.log.save_partial("half")
    overwrite(path, "partials", b'{"text":"\xff', "1")
    with Store.open(path) as store, store.open_session(compacted) as session:
        assert session.recovered == ()
        assert len(session.log.entries()) == 6
        assert session.log.partial() is None


def test_messages_in_disorder_are_noticed_and_mended(path: Path, compacted: str) -> None:
    """As an index shows them that leads to other rows."""
    for seq, wrong in ((2, 20), (5, 2)):
        overwrite(path, "messages", b"%d" % wrong, f"seq = {seq}", "seq")
    with Store.open(path, read_only=True) as store, pytest.raises(StoreDamaged, match="missing or in disorder"):
        store.copy_of(compacted)
    with Store.open(path) as store, pytest.raises(StoreDamaged, match="missing or in disorder"):
        store.open_session(compacted).log.entries()
    with Store.open(path) as store, store.open_session(compacted) as session:
        assert "1 session with 6 messages could be read" in store.notes[0]
        assert [entry.seq for entry in session.log.entries()] == [1, 2, 3, 4, 5, 6]


def test_an_index_that_lost_its_last_messages_is_noticed_and_mended(path: Path, compacted: str) -> None:
    overwrite(path, "messages", b"9", "seq = 6", "seq")
    with Store.open(path) as store, pytest.raises(StoreDamaged, match="missing or in disorder"):
        store.open_session(compacted).log.entries(1, 6)
    with Store.open(path) as store, store.open_session(compacted) as session:
        assert len(session.log.entries(1, 6)) == 6


def test_one_that_cannot_be_opened_is_not_left_locked(path: Path) -> None:
    with Store.open(path) as store, store.create(directory="/work", model="m") as session:
        session.log.append([*said("Where?"), calling("a", "b"), result("a", "here"), result("b", "there")])
        session_id = session.info.id
    overwrite(path, "messages", b"5", "seq = 4", "seq")
    with Store.open(path) as store:
        for _ in range(2):
            with pytest.raises(StoreDamaged, match="missing or in disorder"):
                store.open_session(session_id)
        assert not list(path.parent.glob("locks/*.lock"))


def test_a_damaged_search_index_is_made_again(path: Path, compacted: str) -> None:
    with unnoticed(path), closing(apsw.Connection(str(path))) as connection:
        connection.execute("UPDATE passages_data SET block = zeroblob(40) WHERE id > 10")
    with Store.open(path) as store, pytest.raises(StoreDamaged):
        store.search("where")
    with Store.open(path) as store:
        assert "1 session with 6 messages could be read" in store.notes[0]
        assert store.search("where")[0].seq == 1


def test_a_compaction_whose_record_is_lost_can_be_undone(path: Path, compacted: str) -> None:
    connection = apsw.Connection(str(path))
    connection.execute("DELETE FROM compactions WHERE view = 2")
    connection.close()
    with Store.open(path) as store, store.open_session(compacted) as session:
        undone = session.views.undo()
        assert undone is not None
        assert (undone.view_before, undone.view_after) == (1, 2)
        assert session.views.current() == hiding(2, "one")
