"""Where a session comes from is stored, also in a file that an older nca began."""

from __future__ import annotations

from pathlib import Path

import apsw
import msgspec

from nca.messages import AttachmentPart, Entry, Message, TextPart, ToolCall
from nca.sessions import Store
from nca.sessions.access import Origin, as_origin, goes_on
from nca.sessions.transfer import new_copy
from tests.sessions.test_kinds import old_database

ENTRIES = (Entry(1, Message("user", "a")), Entry(2, Message("assistant", "b")))
ORIGIN = Origin(agent="claude", path="/x.jsonl", size_bytes=5, at=2.5, messages=2)


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


def test_that_of_an_older_nca_is_read() -> None:
    assert (
        as_origin('{"agent":"claude","path":"/x.jsonl","size_bytes":5,"at":2.5,"messages":2,"digest":"12"}') == ORIGIN
    )


def test_a_log_goes_on_where_it_begins_with_what_was_imported() -> None:
    assert goes_on(ENTRIES, (*ENTRIES, Entry(3, Message("user", "c"))))
    assert not goes_on(ENTRIES, ENTRIES[:1])
    assert not goes_on(ENTRIES, (Entry(1, Message("user", "z")), ENTRIES[1]))
    assert not goes_on(ENTRIES, (ENTRIES[0], Entry(2, Message("assistant", "b", (ToolCall("1", "x", "{}"),)))))


def test_what_is_said_counts_and_not_how_it_is_read() -> None:
    def is_same(old: str, *parts: TextPart | AttachmentPart) -> bool:
        return goes_on([Entry(1, Message("user", old))], [Entry(1, Message("user", parts))])

    fix, file = TextPart("Fix it.", source="typed"), AttachmentPart("a.py", "x = 1", 5)
    assert is_same("<task>\nFix it.\n</task>", TextPart("<task>", source="nca"), fix, TextPart("</task>", source="nca"))
    assert is_same("Fix it.\n<content path=a.py>\nx = 1\n</content>", fix, file)
    assert not is_same("Fix it.\n<content path=a.py>\nx = 2\n</content>", fix, file)
    assert not is_same("x = 1 Fix it.", fix, file)
    assert not is_same("Fix it. Now.", fix)
