"""Where a session comes from is stored, also in a file that an older nca began."""

from __future__ import annotations

from pathlib import Path

import apsw
import msgspec

from nca.messages import Entry, Message
from nca.sessions import Store
from nca.sessions.origin import Origin, as_origin, digest_of
from nca.sessions.transfer import new_copy
from tests.sessions.test_kinds import old_database

ENTRIES = (Entry(1, Message("user", "a")), Entry(2, Message("assistant", "b")))
ORIGIN = Origin(agent="claude", path="/x.jsonl", size_bytes=5, at=2.5, messages=2, digest=digest_of(ENTRIES))


def test_an_older_database_holds_sessions_of_nca_and_takes_others(tmp_path: Path) -> None:
    path = tmp_path / "data" / "sessions.db"
    old_database(path, 7)
    with Store.open(path, read_only=True) as reader:
        assert [info.origin for info in reader.list()] == [None]
        assert reader.imported() == []
    with Store.open(path) as store:
        assert [info.origin for info in store.list()] == [None]
        copy = new_copy(ENTRIES, directory="/")
        added = store.add(msgspec.structs.replace(copy, info=msgspec.structs.replace(copy.info, origin=ORIGIN)))
        assert [info.origin for info in store.imported()] == [ORIGIN]
        assert store.find(added.id).origin == ORIGIN
    (backup,) = path.parent.glob("*before-schema*")
    before = apsw.Connection(str(backup))
    assert before.pragma("user_version") == 7
    before.close()


def test_a_damaged_origin_is_none(tmp_path: Path) -> None:
    assert as_origin("") is None
    assert as_origin("{") is None
    assert as_origin('{"agent":5}') is None


def test_it_knows_what_it_begins() -> None:
    assert ORIGIN.begins((*ENTRIES, Entry(3, Message("user", "c"))))
    assert not ORIGIN.begins(ENTRIES[:1])
    assert not ORIGIN.begins((Entry(1, Message("user", "z")), ENTRIES[1]))
