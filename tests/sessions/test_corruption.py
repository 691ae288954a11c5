"""What can be read of a damaged database continues in a new one."""

from __future__ import annotations

import random
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from nca.context.view import View
from nca.messages import Entry, Usage
from nca.sessions import Learned, Store
from nca.sessions.corruption import _unknown
from nca.sessions.mended import MARK
from nca.sessions.places import Found
from tests.sessions.damage import Words, words_in
from tests.sessions.samples import MANUAL, RICH_VIEW, filled, hiding, pin, said

PAGE = 4096


def break_pages(path: Path, pages: list[int]) -> None:
    content = bytearray(path.read_bytes())
    for page in pages:
        content[page * PAGE : (page + 1) * PAGE] = b"\xff" * PAGE
    path.write_bytes(content)


def whole(entry: Entry) -> bool:
    return MARK not in entry.message.text


def suspect(path: Path) -> None:
    (path.parent / "locks" / "sessions.db.suspect").touch()


@pytest.mark.parametrize("before", ["", "assistant", MARK + "Passistant", MARK + "Passistant" * 9])
def test_what_stands_before_a_message_makes_no_second_one_of_it(before: str) -> None:
    """The last byte of a message's time may be a letter, and looks like text before its role."""
    body = '{"role":"assistant","content":"answer 5"}'
    known = Found(1, 1, 1, 0.0, "assistant", body, 7)
    assert list(_unknown([(115, before + body)], [known], "")) == []
    [other] = _unknown([(115, before + body)], [], "")
    assert other.body == body


def test_a_session_that_is_whole_keeps_everything(path: Path) -> None:
    with Store.open(path) as store:
        session = store.create(directory="/work", model="m", name="kept")
        entries = session.log.append(said(*"abcdefgh"))
        record = session.views.commit(RICH_VIEW, MANUAL)
        session.views.commit(hiding(8), MANUAL)
        session.views.undo()
        pin(session, 3)
        session.usage.record(8, "m", Usage(5, 6, cost=0.5), 1)
        session.log.save_partial("half")
        session.set_pinned(True)
        store.save_learned("m", Learned(1.5, 1000, 2, 1.0))
        info = session.info
    connection = apsw.Connection(str(path))
    connection.execute("DROP INDEX sessions_touched; DROP TABLE pins")
    connection.close()
    with Store.open(path) as store:
        assert "1 session with 8 messages could be read" in store.notes[0]
        assert store.list() == [info]
        assert store.learned("m") == Learned(1.5, 1000, 2, 1.0)
        with store.open_session(info.id) as again:
            assert again.log.entries(1)[:8] == entries
            assert again.recovered[0].message.text == "half"
            assert again.views.current() == RICH_VIEW
            assert again.views.compactions()[0] == record
            assert again.views.redo() is not None
            assert again.usage.totals() == Usage(5, 6, cost=0.5)


@pytest.mark.parametrize("seed", range(8))
def test_any_broken_pages_leave_a_working_store(path: Path, seed: int) -> None:
    filled(path, sessions=3, messages=300)
    pages = path.stat().st_size // PAGE
    rng = random.Random(seed)
    break_pages(path, rng.sample(range(1, pages), rng.randint(1, pages // 4)))
    suspect(path)
    with Store.open(path) as store:
        assert len(store.notes) <= 1
        for info in store.list():
            with store.open_session(info.id) as session:
                entries = session.log.entries()
                assert [entry.seq for entry in entries] == list(range(1, len(entries) + 1))
                assert all(entry.message.text.endswith(("word ", "is lost]")) for entry in entries if whole(entry))
                assert session.views.current().tail <= len(entries) + 1
                session.log.append(said("goes on"))
                session.views.commit(hiding(1, "new"), MANUAL)


def test_a_hole_at_the_end_says_how_many_are_lost(path: Path) -> None:
    """Their index names them: 300 messages, of which the last ones and their neighbours on the disk are gone."""
    filled(path, sessions=1, messages=300)
    with closing(apsw.Connection(str(path))) as connection:
        sql = "SELECT pageno FROM dbstat WHERE name = 'messages' AND pagetype = 'leaf' ORDER BY path DESC LIMIT 9"
        pages = [int(str(page)) - 1 for (page,) in connection.execute(sql)]
    break_pages(path, pages)
    with Store.open(path) as store:
        [note], [info] = store.notes, store.list()
        with store.open_session(info.id) as session:
            texts = [entry.message.text for entry in session.log.entries()]
        lost = sum(text.endswith("is lost]") for text in texts)
        assert len(texts) == 300
        assert texts[-1] == "[message 300 is lost]"
        assert f"1 session with {300 - lost} messages could be read, {lost} messages are lost" in note


def test_a_hole_in_the_middle_keeps_both_ends(path: Path) -> None:
    filled(path, sessions=1, messages=300)
    connection = apsw.Connection(str(path))
    leaves = connection.execute(
        "SELECT pageno FROM dbstat WHERE name = 'messages' AND pagetype = 'leaf' ORDER BY path"
    ).fetchall()
    connection.close()
    page = leaves[len(leaves) // 2][0]
    assert isinstance(page, int)
    break_pages(path, [page - 1])
    with Store.open(path) as store:
        [note], [info] = store.notes, store.list()
        with store.open_session(info.id) as session:
            texts = [entry.message.text.split(maxsplit=1)[0] for entry in session.log.entries()]
            lost = [seq for seq, text in enumerate(texts, 1) if text == "[message"]
            assert 0 < len(lost) < 40
            assert f"1 session with {300 - len(lost)} messages could be read, {len(lost)} messages are lost" in note
            assert [text for text in texts if text != "[message"] == [
                f"0/{seq - 1}" for seq in range(1, 301) if seq not in lost
            ]
            assert session.log.entries(lost[0], lost[0])[0].message.text == f"[message {lost[0]} is lost]"
            assert session.views.current() == hiding(4)


def test_messages_of_a_lost_session_are_kept_under_a_new_name(path: Path) -> None:
    filled(path, sessions=1)
    with closing(apsw.Connection(str(path))) as connection:
        root = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'sessions'").get
    assert isinstance(root, int)
    break_pages(path, [root - 1])
    with Store.open(path) as store:
        [info] = store.list()
        assert (info.name, info.messages) == ("recovered", 40)
        with store.open_session(info.id) as session:
            assert session.views.current() == View()
            session.views.redo()
            assert session.views.current() == hiding(4)


def test_a_session_whose_messages_are_left_is_described_by_what_was_deleted(path: Path) -> None:
    filled(path, sessions=1)
    with closing(apsw.Connection(str(path))) as connection:
        connection.execute("PRAGMA foreign_keys = OFF; DELETE FROM sessions")
    with Store.open(path) as store:
        assert [(info.name, info.messages) for info in store.list()] == [("number 0", 40)]


HEADER_FIELDS = (0, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 28, 31, 32, 40, 47, 52, 59, 63, 64, 68, 71, 72, 91, 92, 96)
"""Where each field of a database's header begins, or the byte of it that is not 0."""


@pytest.mark.parametrize("place", HEADER_FIELDS)
def test_a_wrong_byte_in_the_header_costs_nothing(path: Path, place: int) -> None:
    ids = filled(path)
    content = bytearray(path.read_bytes())
    content[place] ^= 0xFF
    path.write_bytes(content)
    with Store.open(path) as store:
        assert [info.id for info in store.list()] == ids[::-1]
        for id in ids:
            with store.open_session(id) as session:
                assert len(session.log.entries()) == 40
                assert session.views.current() == hiding(4)


def test_a_lost_first_page_costs_nothing(path: Path) -> None:
    ids = filled(path)
    break_pages(path, [0])
    with Store.open(path) as store:
        assert "2 sessions with 80 messages could be read" in store.notes[0]
        assert store.find(ids[0]).messages == 40


def test_a_store_cut_short_keeps_what_lies_before_the_cut(path: Path) -> None:
    filled(path, sessions=1, messages=400)
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size * 49 // 50)
    with Store.open(path) as store:
        assert "cut short" in store.notes[0]
        [info] = store.list()
        assert info.messages > 380


def test_what_lies_between_damaged_pages_is_kept(path: Path) -> None:
    filled(path, sessions=1, messages=300)
    connection = apsw.Connection(str(path))
    sql = "SELECT pageno FROM dbstat WHERE name = 'messages' AND pagetype = 'leaf' ORDER BY path"
    leaves = [int(page) for (page,) in connection.execute(sql)]
    connection.close()
    break_pages(path, [leaves[place] - 1 for place in (3, len(leaves) // 2, len(leaves) - 4)])
    suspect(path)
    with Store.open(path) as store:
        [info] = store.list()
        assert info.messages > 300 * (len(leaves) - 4) // len(leaves)


def test_two_sessions_that_claim_one_id_are_both_kept(path: Path) -> None:
    ids = filled(path)
    connection = apsw.Connection(str(path))
    connection.pragma("writable_schema", True)
    connection.execute("DELETE FROM sqlite_schema WHERE name = 'sqlite_autoindex_sessions_1'")
    connection.execute("UPDATE sqlite_schema SET sql = replace(sql, ' UNIQUE', '') WHERE name = 'sessions'")
    connection.close()
    connection = apsw.Connection(str(path))
    connection.execute("UPDATE sessions SET id = ?", (ids[0],))
    connection.execute("DROP TABLE learned")
    connection.close()
    with Store.open(path) as store:
        assert sorted(info.messages for info in store.list()) == [40, 40]


def test_a_schema_that_says_something_else_is_set_aside(path: Path) -> None:
    filled(path)
    connection = apsw.Connection(str(path))
    connection.pragma("writable_schema", True)
    connection.execute("UPDATE sqlite_schema SET sql = replace(sql, 'model ', 'modem ') WHERE name = 'usage'")
    connection.close()
    with Store.open(path) as store:
        assert "without its table usage" in store.notes[0]
        assert [info.messages for info in store.list()] == [40, 40]


def long_store(path: Path) -> tuple[str, list[int]]:
    """A session with three messages of 50 KB; its id, and the pages that the second one goes on in."""
    words = Words()
    with Store.open(path) as store, store.create(directory="/work", model="m") as session:
        for _ in range(3):
            session.log.append(said(words.take(4200)))
        id = session.info.id
    content = path.read_bytes()
    pages = [page for page in range(len(content) // PAGE) if b"W005000" in content[page * PAGE : (page + 1) * PAGE]]
    chain = [pages[0] + 1]
    while following := int.from_bytes(content[(chain[-1] - 1) * PAGE :][:4]):
        chain.append(following)
    return id, chain


@pytest.mark.parametrize("damage", ["zeroed", "no page", "another row's page"])
def test_a_message_that_goes_on_in_a_damaged_page_loses_that_page_only(path: Path, damage: str) -> None:
    id, chain = long_store(path)
    content = bytearray(path.read_bytes())
    wanted = words_in(bytes(content))
    place = (chain[3] - 1) * PAGE
    match damage:
        case "zeroed":
            wanted -= words_in(bytes(content[place - 20 : place + PAGE + 20]))
            content[place : place + PAGE] = bytes(PAGE)
        case "no page":
            content[place : place + 4] = b"\x7f\xff\xff\xff"
        case _:
            content[place : place + 4] = (chain[-1] + 5).to_bytes(4)
    path.write_bytes(content)
    with Store.open(path) as store, store.open_session(id) as session:
        entries = session.log.entries()
        assert len(entries) == 3
        found = words_in("\n".join(entry.message.text for entry in entries).encode())
        assert len(wanted - found) <= 4  # where one page ends and the next begins
        assert ("1 message only in part" in store.notes[0]) == (damage == "zeroed")


def test_a_page_whose_head_is_lost_gives_its_rows(path: Path) -> None:
    filled(path, sessions=1, messages=300)
    content = bytearray(path.read_bytes())
    place = content.index(b"0/150 word") // PAGE * PAGE
    content[place : place + 60] = random.Random(1).randbytes(60)
    path.write_bytes(content)
    with Store.open(path) as store:
        assert "1 session with 300 messages could be read;" in store.notes[0]


def test_a_message_whose_row_is_damaged_is_kept(path: Path) -> None:
    """One bit in how long its values are, and of what kind."""
    ids = filled(path, sessions=1, messages=300)
    sound = path.read_bytes()
    row = sound.index(b'{"role":"user","content":"0/150 word') - 30
    for place in range(row, row + 30):
        for bit in range(8):
            content = bytearray(sound)
            content[place] ^= 1 << bit
            if place % 3 == bit % 3:  # all of them take long
                path.write_bytes(content)
                with Store.open(path) as store:
                    texts = "\n".join(
                        entry.message.text
                        for info in store.list()
                        for entry in store.open_session(info.id, read_only=True).log.entries()
                    )
                    assert texts.count("/150 word") == 1, (place - row, bit)
                    assert store.find(ids[0]).messages >= 299
