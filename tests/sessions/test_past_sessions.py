"""What was opened is known to be out of date when the file is another one, or was only copied and has changed."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from nca.messages import Message
from nca.sessions import Store
from nca.sessions.past_sessions import OWN_COLUMNS, PastSessions, Wanted


def test_a_file_that_comes_and_one_that_was_empty(path: Path) -> None:
    with closing(PastSessions.open(path)) as missing:
        assert missing.is_current(path)
        path.parent.mkdir()
        path.touch()
        assert not missing.is_current(path)
    with closing(PastSessions.open(path)) as empty:
        assert empty.is_current(path)
        with Store.open(path) as store, store.create(directory="/work", model="m") as session:
            session.log.append([Message("user", "hello")])
            assert not empty.is_current(path), "what is written is in the log beside the file"
            with closing(PastSessions.open(path)) as opened:
                assert [one.title for one in opened.listed(Wanted())] == ["hello"]
                session.log.append([Message("assistant", "there")])
                assert opened.is_current(path), "it reads what has been added"
                assert [one.messages for one in opened.listed(Wanted())] == [2]
    with closing(PastSessions.open(path)) as opened:
        path.with_name("other").write_bytes(path.read_bytes())
        path.with_name("other").replace(path)
        assert not opened.is_current(path)


def test_a_folder_has_its_own_sessions_and_those_below_it(path: Path) -> None:
    with Store.open(path) as store:
        for folder in ("/", "/work", "/work/shop", "/workshop"):
            with store.create(directory=folder, model="m") as session:
                session.log.append([Message("user", folder)])
    with closing(PastSessions.open(path)) as opened:
        found = {
            folder: {one.title for one in opened.listed(Wanted(directory=folder))}
            for folder in ("", "/", "/work/", "/work/shop", "/elsewhere")
        }
    everywhere = {"/", "/work", "/work/shop", "/workshop"}
    assert found == {
        "": everywhere,
        "/": everywhere,
        "/work/": {"/work", "/work/shop"},
        "/work/shop": {"/work/shop"},
        "/elsewhere": set(),
    }


def test_an_own_id_is_found_although_another_id_begins_so(path: Path) -> None:
    with Store.open(path) as store:
        ids = []
        for name in ("", ""):
            with store.create(directory="/", model="m", name=name) as session:
                session.log.append([Message("user", "hello")])
                ids.append(session.info.id)
        with store.open_session(ids[1]) as session:
            session.rename(ids[0][:4])
    columns = OWN_COLUMNS.replace("id AS own_id", "CASE WHEN name <> '' THEN name ELSE id END AS own_id")
    with closing(PastSessions.open(path, columns=columns)) as opened:
        found = {wanted: opened.find(wanted) for wanted in (ids[0], ids[0][:4], ids[0][:5], ids[1], "nobody")}
    assert {wanted: one and one.id for wanted, one in found.items()} == {
        ids[0]: ids[0],
        ids[0][:4]: ids[1],
        ids[0][:5]: ids[0],
        ids[1]: ids[1],
        "nobody": None,
    }
