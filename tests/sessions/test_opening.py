"""Anything in the place of the database: one clear line, and nothing overwritten."""

from __future__ import annotations

import os
import random
import resource
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw
import pytest

from nca.errors import NotAStore, StoreDamaged, StoreError, StoreTooNew
from nca.sessions import Store, sql
from nca.sessions.paths import is_as_left
from tests.sessions.damage import unnoticed
from tests.sessions.samples import MANUAL, filled, hiding, said
from tests.testing.forks import standing_code


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def _cut_in_the_header(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:50])


def _garbage(path: Path) -> None:
    path.write_bytes(random.Random(1).randbytes(20_000))


def _other_header(path: Path) -> None:
    path.write_bytes(b"not SQLite at all" + path.read_bytes()[17:])


def _no_schema(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[100:4096] = bytes(3996)
    path.write_bytes(content)


def _without_a_table(path: Path) -> None:
    connection = apsw.Connection(str(path))
    connection.execute("DROP TABLE learned")
    connection.close()


def _empty_with_a_log(path: Path) -> None:
    path.write_bytes(b"")
    path.with_name(path.name + "-wal").write_bytes(b"something" * 100)


def _emptied(path: Path) -> None:
    path.write_bytes(b"")


def _emptied_after_a_kill(path: Path) -> None:
    path.write_bytes(b"")
    (path.parent / "locks" / "sessions.db.closed").unlink()
    (path.parent / "locks" / "0123abcd.lock").touch()


DAMAGES = [
    _emptied,
    _emptied_after_a_kill,
    _cut,
    _cut_in_the_header,
    _garbage,
    _other_header,
    _no_schema,
    _without_a_table,
    _empty_with_a_log,
]
SEEN_BY_READERS = [damage for damage in DAMAGES if damage is not _without_a_table]


def snapshot(directory: Path) -> dict[str, bytes]:
    """The content of every file but the locks, by path."""
    files = [file for file in directory.rglob("*") if file.is_file() and file.parent.name != "locks"]
    return {str(file): file.read_bytes() for file in files}


def read_everything(path: Path) -> None:
    with Store.open(path, read_only=True) as store:
        for info in store.list():
            store.open_session(info.id, read_only=True).log.entries()


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_set_aside_and_said(path: Path, damage: Callable[[Path], None]) -> None:
    filled(path)
    damage(path)
    before = set(snapshot(path.parent).values())
    with Store.open(path) as store:
        [note] = store.notes
        assert "is damaged" in note
        assert "set aside" in note
        assert "\n" not in note
        with store.create(directory="/", model="m") as session:
            session.log.append(said("goes on"))
    aside = [file for file in path.parent.iterdir() if ".corrupt-" in file.name]
    assert {file.read_bytes() for file in aside} == before
    assert any(file.name in note for file in aside)
    with Store.open(path) as store:
        assert store.notes == ()
        assert store.list()[0].title == "goes on"


@pytest.mark.parametrize("read_only", [False, True])
def test_an_empty_file_that_was_never_used_is_a_new_one(path: Path, read_only: bool) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with Store.open(path.with_name("other.db")) as store, store.create(directory="/", model="m"):
        pass
    path.touch()
    with Store.open(path, read_only=read_only) as store:
        assert (store.notes, store.list()) == ((), [])


@pytest.mark.parametrize("damage", SEEN_BY_READERS)
def test_a_reader_refuses_a_damaged_file_and_touches_nothing(path: Path, damage: Callable[[Path], None]) -> None:
    filled(path)
    damage(path)
    before = snapshot(path.parent)
    with pytest.raises(StoreDamaged, match="is damaged") as caught:
        read_everything(path)
    assert "never overwrites" in caught.value.advice
    assert snapshot(path.parent) == before


def _of_sqlite_cut_short(path: Path) -> None:
    connection = apsw.Connection(str(path))
    connection.execute("CREATE TABLE theirs (x); INSERT INTO theirs VALUES (zeroblob(90000))")
    connection.close()
    _cut(path)


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize(
    "make",
    [
        lambda path: path.write_text("my notes\n"),
        lambda path: path.write_text("x" * 68 + "nca\n"),  # where a database says whose it is
        lambda path: path.write_bytes(random.Random(1).randbytes(20_000)),
        lambda path: path.with_name(path.name + "-wal").write_bytes(b"something" * 100),
        _of_sqlite_cut_short,
    ],
)
def test_a_file_that_was_never_ncas_is_refused_and_stays_as_it_is(
    path: Path, make: Callable[[Path], object], read_only: bool
) -> None:
    path.parent.mkdir()
    make(path)
    before = {file: (file.read_bytes(), file.stat().st_mode) for file in path.parent.iterdir()}
    with pytest.raises(NotAStore, match="it was left alone") as caught:
        Store.open(path, read_only=read_only)
    assert str(path) in str(caught.value)
    assert caught.value.advice == "Name another file."
    assert {file: (file.read_bytes(), file.stat().st_mode) for file in path.parent.iterdir()} == before


def test_at_ncas_own_place_no_other_file_is_expected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NCA_HOME", str(tmp_path))
    own = tmp_path / "data" / "sessions.db"
    own.parent.mkdir()
    own.write_text("no database")
    beside = own.with_name("notes.db")
    beside.write_text("no database")
    with Store.open(own) as store:
        assert "is damaged (not a database)" in store.notes[0]
    with pytest.raises(NotAStore):
        Store.open(beside)


def test_a_file_with_the_name_of_a_half_made_store_is_not_taken_for_one(path: Path) -> None:
    path.parent.mkdir()
    other = path.with_name(path.name + ".new")
    other.write_text("what is new")
    with Store.open(path) as store:
        assert (store.notes, store.list()) == ((), [])
    assert other.read_text() == "what is new"


def test_what_a_killed_opening_left_half_made_is_in_nobodys_way(path: Path) -> None:
    [name] = filled(path, sessions=1)
    _without_a_table(path)
    for ending in ("", "-wal", "-shm"):
        path.with_name(path.name + ".new" + ending).write_bytes(b"half")
    with Store.open(path) as store:
        assert "1 session with 40 messages" in store.notes[0]
        assert store.find(name).messages == 40
    assert not list(path.parent.glob("*.new*"))


def test_an_opening_that_was_killed_between_its_two_moves_is_finished(path: Path) -> None:
    ids = filled(path)
    path.rename(path.with_name(path.name + ".new"))
    with Store.open(path) as store:
        assert "set aside" in store.notes[0]
        assert [info.id for info in store.list()] == ids[::-1]
    assert not list(path.parent.glob("*.new*"))
    with Store.open(path) as store:
        assert store.notes == ()


def test_two_damaged_files_in_one_second_are_both_kept(path: Path) -> None:
    for _ in range(2):
        filled(path)
        _garbage(path)
        Store.open(path).close()
    assert len([file for file in path.parent.iterdir() if ".corrupt-" in file.name]) == 2


def test_damage_that_another_process_works_on_is_left_alone(path: Path) -> None:
    with Store.open(path) as first:
        first.create(directory="/", model="m").log.append(said("a"))
        content = path.read_bytes()
        path.write_bytes(b"garbage")
        with pytest.raises(StoreDamaged):
            Store.open(path)
        path.write_bytes(content)
    assert not [file for file in path.parent.iterdir() if ".corrupt-" in file.name]


def test_a_file_that_something_else_wrote_to_is_checked_at_once(path: Path) -> None:
    ids = filled(path, sessions=1, messages=400)
    content = bytearray(path.read_bytes())
    place = content.index(b"0/200 word") // 4096 * 4096
    content[place : place + 8] = b"\xff" * 8
    path.write_bytes(content)
    with Store.open(path) as store:
        assert "1 session with 400 messages could be read" in store.notes[0]
        assert len(store.open_session(ids[0]).log.entries()) == 400
    with Store.open(path) as store:
        assert store.notes == ()


def test_a_file_is_not_marked_as_whole_while_its_log_holds_a_part_of_it(path: Path) -> None:
    """If the log were lost, the file would not be checked."""
    other = Store.open(path)
    filled(path, sessions=1, messages=20)
    assert not is_as_left(path)
    other.close()
    assert is_as_left(path)


def test_damage_met_on_the_way_is_looked_into_at_the_next_opening(path: Path) -> None:
    ids = filled(path, sessions=1, messages=400)
    content = bytearray(path.read_bytes())
    for place in range(len(content) // 2, len(content), 4096):
        content[place // 4096 * 4096 : place // 4096 * 4096 + 8] = b"\xff" * 8
    with unnoticed(path):
        path.write_bytes(content)
    with Store.open(path) as store:
        assert store.notes == ()
        with pytest.raises(StoreDamaged):
            store.open_session(ids[0]).log.entries()
    with Store.open(path) as store:
        assert "is damaged" in store.notes[0]
        assert len(store.list()) == 1
    with Store.open(path) as store:
        assert store.notes == ()


@pytest.mark.parametrize("read_only", [False, True])
def test_a_newer_schema_is_refused_politely(path: Path, read_only: bool) -> None:
    filled(path)
    connection = apsw.Connection(str(path))
    connection.pragma("user_version", len(sql.MIGRATIONS) + 2)
    connection.close()
    before = path.read_bytes()
    newer = len(sql.MIGRATIONS) + 2
    with pytest.raises(StoreTooNew, match=f"newer nca .schema {newer}") as caught:
        Store.open(path, read_only=read_only)
    assert "Upgrade nca" in caught.value.advice
    assert path.read_bytes() == before


@pytest.mark.parametrize("read_only", [False, True])
@pytest.mark.parametrize(
    "sql",
    ["PRAGMA application_id = 77", "PRAGMA user_version = 1", "CREATE TABLE theirs (x); INSERT INTO theirs VALUES (1)"],
)
def test_another_programs_database_is_left_alone(path: Path, sql: str, read_only: bool) -> None:
    path.parent.mkdir()
    connection = apsw.Connection(str(path))
    connection.execute(sql)
    connection.close()
    before = path.read_bytes()
    with pytest.raises(StoreError, match="another program's database"):
        Store.open(path, read_only=read_only)
    assert path.read_bytes() == before


@pytest.mark.parametrize("make", [lambda path: None, lambda path: path.touch(0o644)])
def test_nothing_and_an_empty_file_become_a_new_store(path: Path, make: Callable[[Path], None]) -> None:
    path.parent.mkdir()
    make(path)
    with Store.open(path, read_only=True) as reader:
        assert reader.list() == []
    assert not [file for file in path.parent.iterdir() if file.stat().st_size]
    with Store.open(path) as store:
        assert store.notes == ()
        store.create(directory="/", model="m").log.append(said("first"))
        assert len(store.list()) == 1


@pytest.mark.parametrize("read_only", [False, True])
def test_a_directory_is_not_a_database(path: Path, read_only: bool) -> None:
    path.mkdir(parents=True)
    with pytest.raises(StoreError, match="is a directory"):
        Store.open(path, read_only=read_only)


@pytest.mark.parametrize("read_only", [False, True])
def test_a_pipe_is_not_a_database(path: Path, read_only: bool) -> None:
    path.parent.mkdir()
    os.mkfifo(path)
    with pytest.raises(StoreError, match="is not a file"):
        Store.open(path, read_only=read_only)


def test_a_home_that_is_a_file_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("I am a file")
    with pytest.raises(StoreError, match="Cannot write"):
        Store.open(tmp_path / "home" / "data" / "sessions.db")


@contextmanager
def without_privileges(*, owned: Path) -> Iterator[None]:
    """As somebody whom permissions bind, also where the tests run as root."""
    if os.geteuid() != 0:
        yield
        return
    for file in [owned, *owned.rglob("*")]:
        os.chown(file, 65_534, 65_534)
    owned.parent.chmod(0o755)
    os.seteuid(65_534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def open_path() -> Iterator[Path]:
    """A store's place whose parents anybody may enter."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder) / "data" / "sessions.db"


def test_a_read_only_home_can_be_read_but_not_written(open_path: Path) -> None:
    ids = filled(open_path)
    open_path.chmod(0o400)
    for folder in (open_path.parent / "locks", open_path.parent):
        folder.chmod(0o500)
    with without_privileges(owned=open_path.parent):
        with pytest.raises(StoreError, match="Cannot write"):
            Store.open(open_path)
        with Store.open(open_path, read_only=True) as store:
            assert [info.id for info in store.list()] == ids[::-1]
    open_path.parent.chmod(0o700)


def test_a_home_without_a_store_that_cannot_be_written(open_path: Path) -> None:
    open_path.parent.mkdir(mode=0o500)
    with without_privileges(owned=open_path.parent):
        with pytest.raises(StoreError, match="Cannot write"):
            Store.open(open_path)
        with Store.open(open_path, read_only=True) as store:
            assert store.list() == []
    open_path.parent.chmod(0o700)


@pytest.mark.parametrize("read_only", [False, True])
def test_an_unreadable_file_is_said(open_path: Path, read_only: bool) -> None:
    filled(open_path)
    with without_privileges(owned=open_path.parent):
        open_path.chmod(0)
        with pytest.raises(StoreError, match="Cannot read"):
            Store.open(open_path, read_only=read_only)
        open_path.chmod(0o600)


def test_looking_writes_nothing(path: Path) -> None:
    ids = filled(path)
    before = {file: (file.stat().st_mtime_ns, file.read_bytes()) for file in path.parent.rglob("*") if file.is_file()}
    with Store.open(path, read_only=True) as store:
        assert store.latest() == store.list()[0] == store.find(ids[1][:4])
        with store.open_session(ids[0], read_only=True) as session:
            assert len(session.log.entries()) == 40
            assert session.views.current() == hiding(4)
    after = {file: (file.stat().st_mtime_ns, file.read_bytes()) for file in path.parent.rglob("*") if file.is_file()}
    assert after == before


def test_a_reader_sees_what_is_written_meanwhile(path: Path) -> None:
    ids = filled(path)
    with Store.open(path, read_only=True) as reader:
        assert len(reader.list()) == 2
        with Store.open(path) as store:
            with store.open_session(ids[0]) as session:
                session.log.append(said("new"))
            assert reader.list()[0].messages == 41
            store.create(directory="/", model="m").log.append(said("x" * 3_000_000))
            assert len(reader.list()) == 3
        assert len(reader.list()) == 3
        with Store.open(path) as store:
            store.delete(ids[1])
        assert len(reader.list()) == 2


def test_a_reader_of_an_older_schema_migrates_a_copy(path: Path) -> None:
    path.parent.mkdir()
    connection = apsw.Connection(str(path))
    connection.pragma("application_id", sql.APPLICATION_ID)
    connection.close()
    before = path.read_bytes()
    with Store.open(path, read_only=True) as store:
        assert store.list() == []
    assert path.read_bytes() == before
    Store.open(path).close()
    with Store.open(path, read_only=True) as store:
        assert store._database.path == path


def test_in_memory_there_is_the_same_store() -> None:
    with Store.open(None) as store:
        session = store.create(directory="/", model="m")
        session.log.append(said("a", "b"))
        session.views.commit(hiding(1), MANUAL)
        assert store.list()[0].messages == 2
        with pytest.raises(StoreError, match="already open"):
            store.open_session(session.info.id)
        session.close()
        assert store.open_session(session.info.id).views.current() == hiding(1)
        store.delete_empty()
        assert store.list()[0].messages == 2


def test_many_processes_may_make_the_store_at_once(path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from nca.sessions import Store; from nca.messages import Message\n"
        "with Store.open(Path(sys.argv[1])) as store:\n"
        "    with store.create(directory='/', model='m') as session:\n"
        "        for n in range(20): session.log.append([Message('user', str(n))])\n"
    )
    processes = [subprocess.Popen(standing_code(script, str(path))) for _ in range(4)]
    assert [process.wait(60) for process in processes] == [0, 0, 0, 0]
    with Store.open(path) as store:
        assert [info.messages for info in store.list()] == [20, 20, 20, 20]


def _deleted(path: Path) -> None:
    shutil.rmtree(path.parent)


def _replaced(path: Path) -> None:
    other = path.parent / "other"
    shutil.copyfile(path, other)
    other.replace(path)


@pytest.mark.parametrize("lose", [_deleted, _replaced])
def test_a_file_that_is_lost_while_it_is_open_is_noticed_at_the_next_write(
    path: Path, lose: Callable[[Path], None]
) -> None:
    store = Store.open(path)
    session = store.create(directory="/", model="m")
    session.log.append(said("kept"))
    lose(path)
    with pytest.raises(StoreError, match="deleted or replaced") as caught:
        session.log.append(said("lost"))
    assert "/export" in caught.value.advice
    assert [entry.message.text for entry in store.copy_of(session.info.id).entries] == ["kept"]
    with Store.open(path) as other:
        other.create(directory="/", model="m").log.append(said("new"))
        with pytest.raises(StoreError, match="deleted or replaced"):
            store.close()
    with Store.open(path) as other:
        assert other.notes == ()
        assert other.list()[0].title == "new"


@pytest.mark.parametrize("room", [0, 100, 4_096, 8_192, 32_767, 32_768, 40_000, 100_000, 200_000])
def test_a_new_store_on_a_full_disk_is_one_line(tmp_path: Path, room: int) -> None:
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, before[1]))
    try:
        with Store.open(tmp_path / "data" / "store.db") as store:
            store.create(directory="/", model="m").close()
    except StoreError as error:
        assert "store.db" in str(error)  # noqa: PT017  the limit is raised again before anything else is written
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    with Store.open(tmp_path / "data" / "store.db") as store:
        assert store.notes == ()
