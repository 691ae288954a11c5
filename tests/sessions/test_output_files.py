"""Saved outputs are deleted with their session, unless a fork still names them."""

from __future__ import annotations

from pathlib import Path

from nca.sessions import Session, Store
from tests.sessions.samples import calling, result, said


def spill(store: Store, session: Session) -> Path:
    folder = store.outputs_folder(session.info.id)
    assert folder is not None
    folder.mkdir(parents=True)
    (folder / "3.txt").write_text("all of it")
    session.log.append(
        [*said("q"), calling("1"), result("1", f"some of it\n[The whole output is in {folder / '3.txt'}]")]
    )
    return folder


def test_it_goes_with_its_session(store: Store, session: Session) -> None:
    other = store.create(directory="/", model="m")
    folder, stays = spill(store, session), spill(store, other)
    name = session.info.id
    session.close()
    store.delete(name)
    assert not folder.exists()
    assert stays.exists()


def test_outputs_of_another_store_in_the_folder_stay(store: Store, session: Session, path: Path) -> None:
    theirs = spill(store, session)
    with Store.open(path.with_name("other.db")) as other:
        other.create(directory="/", model="m").close()
        other.delete_empty()
        with other.create(directory="/", model="m") as filled:
            own, name = spill(other, filled), filled.info.id
        other.delete(name)
        assert other.list(None) == []
    assert not own.exists()
    assert (theirs / "3.txt").exists()


def test_it_stays_while_a_fork_names_it(store: Store, session: Session) -> None:
    folder, session_id = spill(store, session), session.info.id
    fork = store.fork(session_id)
    session.close()
    store.delete(session_id)
    assert (folder / "3.txt").read_text() == "all of it"
    store.delete(fork.id)
    assert not folder.exists()


def test_nothing_but_folders_of_sessions_is_touched(store: Store, session: Session, tmp_path: Path) -> None:
    outputs = spill(store, session).parent
    (outputs / "a file").write_text("stays")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (outputs / "link").symlink_to(elsewhere)
    with store.create(directory="/", model="m") as empty:
        name = empty.info.id
    store.delete(name)
    assert sorted(path.name for path in outputs.iterdir()) == sorted([session.info.id, "a file", "link"])
    assert elsewhere.exists()


def test_a_store_in_memory_has_none() -> None:
    with Store.open(None) as store:
        session = store.create(directory="/", model="m")
        assert store.outputs_folder(session.info.id) is None
        session.close()
        store.delete(store.list()[0].id)
        assert store.list() == []


def test_a_file_in_the_folder_s_place_is_left(store: Store, session: Session, path: Path) -> None:
    (path.parent / "outputs").write_text("a file")
    name = session.info.id
    session.close()
    store.delete(name)
    assert (path.parent / "outputs").read_text() == "a file"
