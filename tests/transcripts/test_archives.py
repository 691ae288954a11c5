"""Archives of sessions: what goes, what stays, and that everything comes back."""

from __future__ import annotations

import json
import shutil
import threading
import zipfile
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import cycle, repeat
from pathlib import Path

import apsw
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nca.config.schema import RewindSettings
from nca.errors import InvalidMessages, SessionLocked, SessionNotFound, StoreDamaged, StoreError
from nca.file_history.history import FileHistory
from nca.messages import AttachmentPart, Message, TextPart, Usage
from nca.sessions import Session, Store
from nca.sessions.transfer import SessionCopy
from nca.transcripts.archives import (
    MOST_OUTPUTS,
    SESSION,
    Limits,
    Moved,
    archive,
    archive_expired,
    archived,
    check_outputs,
    checked,
    restore,
)
from tests.sessions.samples import MANUAL, RICH_VIEW, calling, hiding, pin, result, said


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "data" / "sessions.db") as store:
        yield store


def talk(store: Store) -> str:
    """A closed session with all that one can have: compactions, one undone; pins, usage, and a file of output."""
    with store.create(directory="/work", model="m", name="the talk", kind="run") as session:
        parts = (
            TextPart("see"),
            AttachmentPart("a.py", "text\x1b", 9, is_cut=True),
            TextPart("note", source="nca"),
        )
        session.log.append([*said("first \ud800 ä", "yes"), Message("user", parts), calling("1")])
        session.log.append([result("1", f"some\n[The whole output is in {spilled(store, session)}]")])
        session.log.append(said(*"abcdef"))
        session.views.commit(hiding(2, "first"), MANUAL)
        session.views.commit(RICH_VIEW, msgspec.structs.replace(MANUAL, cost=0.25))
        session.views.undo()
        session.rewinds.append_beside(said("by the way?", "Yes."))
        pin(session, 3)
        session.usage.record(9, "m", Usage(100, 20, cost=0.5), 1)
        session.log.save_partial("half an answer")
        return session.info.id


def spilled(store: Store, session: Session) -> Path:
    folder = store.outputs_folder(session.info.id)
    assert folder is not None
    (folder / "task-1").mkdir(parents=True)
    (folder / "task-1" / "3.txt").write_text("all of task 1")
    (folder / "5.txt").write_text("all of it")
    return folder / "5.txt"


def plain(store: Store, count: int) -> list[str]:
    ids = []
    for number in range(count):
        with store.create(directory="/work", model="m") as session:
            session.log.append(said(f"question {number}", "answer"))
            ids.append(session.info.id)
    return ids


def held(store: Store, session_id: str) -> tuple[SessionCopy, list[str]]:
    """All of a session but when it was used last: as a value, and its messages as they are on the disk."""
    copy = store.copy_of(session_id)
    rows = store._database.rows(
        "SELECT body FROM messages JOIN sessions ON session = number WHERE sessions.id = ?", (session_id,)
    )
    info = msgspec.structs.replace(copy.info, updated_at=0.0)
    return msgspec.structs.replace(copy, info=info), [body for (body,) in rows]


def files(store: Store) -> dict[str, str]:
    folder = store.path.parent / "outputs" if store.path else Path()
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


def test_everything_comes_back_to_the_byte(store: Store) -> None:
    name = talk(store)
    store.open_session(name).close()  # completes the answer that a killed process left
    [other] = plain(store, 1)
    before, outputs = held(store, name), files(store)
    path, info = archive(store, name[:5])
    assert (info.id, path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (name, 0o600, 0o700)
    assert [info.id for info in store.list()] == [other]
    assert files(store) == {}
    assert [one.info.name for one in archived(store) if one.info] == ["the talk"]
    restored = restore(store, name)
    assert [info.id for info in store.list()] == [name, other]
    assert restored.updated_at >= before[0].info.updated_at
    assert held(store, name) == before
    assert files(store) == outputs
    assert archived(store) == []


def test_a_fork_brings_back_the_outputs_that_it_has_of_the_session_it_comes_from(store: Store) -> None:
    name = talk(store)
    fork, outputs = store.fork(name).id, files(store)
    for one in (name, fork):
        archive(store, one)
    assert files(store) == {}
    restore(store, fork)
    assert files(store) == outputs


def test_an_unfinished_answer_is_completed_first(store: Store) -> None:
    name = talk(store)
    archive(store, name)
    restore(store, name)
    last = store.copy_of(name).entries[-1].message
    assert (last.text, last.is_interrupted) == ("half an answer", True)


def test_a_file_from_elsewhere_is_restored_once_and_stays(store: Store, tmp_path: Path) -> None:
    name = talk(store)
    before = held(store, name)
    elsewhere = shutil.copy(archive(store, name)[0], tmp_path / "elsewhere.zip")
    with Store.open(tmp_path / "another" / "sessions.db") as another:
        restore(another, str(elsewhere))
        assert held(another, name)[1][: len(before[1])] == before[1]
        with pytest.raises(StoreError, match=f"Session {name} is already in the store"):
            restore(another, str(elsewhere))
    assert Path(elsewhere).exists()


def test_what_a_kill_left_in_both_places_is_restored_and_deleted_once(store: Store, tmp_path: Path) -> None:
    name = talk(store)
    path = archive(store, name)[0]
    left = shutil.copy(path, tmp_path / "left.zip")
    restore(store, name)
    shutil.copy(left, path)
    assert archived(store) == []
    for wanted in (name, str(path)):
        with pytest.raises(StoreError, match="already in the store"):
            restore(store, wanted)
        assert path.exists(), "it goes once the store has the session"
    archive(store, name)
    restore(store, name)
    shutil.copy(left, path)
    shutil.copy(left, path.with_name(f".{path.name}.0123abcd.tmp"))
    store.delete(name)
    assert list(path.parent.iterdir()) == []


def test_the_archive_of_another_session_is_not_overwritten(store: Store) -> None:
    """Two sessions that were recovered from two damaged databases may have one id."""
    path, info = archive(store, plain(store, 1)[0])
    [other] = plain(store, 1)
    with store._database.transaction() as connection:
        connection.execute("UPDATE sessions SET id = ? WHERE id = ?", (info.id, other))
    before = path.read_bytes()
    with pytest.raises(StoreError, match="is not an archive of this session"):
        archive(store, info.id)
    assert path.read_bytes() == before
    assert [info.id for info in store.list()] == [path.stem]


def test_changes_to_files_can_still_be_taken_back(store: Store, tmp_path: Path) -> None:
    name, work = talk(store), tmp_path / "work"
    work.mkdir()
    history = FileHistory(store, name, work, head=lambda: 3, limits=RewindSettings)
    with history.recorder.edit(work / "a", b"text", "write_file"):
        (work / "a").write_text("text")
    archive(store, name)
    restore(store, name)
    history.apply(history.plan(0))
    assert not (work / "a").exists()


def test_the_oldest_go_and_what_anybody_marked_stays(store: Store) -> None:
    ids = plain(store, 9)
    with store.open_session(ids[0]) as session:
        session.rename("named")
    with store.open_session(ids[1]) as session:
        session.set_pinned(True)
    with store.open_session(ids[2]) as session:
        pin(session, 1)
    store.delete(store.fork(ids[3]).id)
    before = {one: held(store, one) for one in ids}
    with store.open_session(ids[4]):  # as if another process had it
        moved = archive_expired(store, 0, 2, most=1)
        assert ([info.id for info in moved.sessions], moved.left) == (ids[5:6], 1)
        moved = archive_expired(store, 0, 2)
        assert ([info.id for info in moved.sessions], moved.left, moved.problem) == (ids[6:7], 0, None)
    assert [info.id for info in archive_expired(store, 0, 2).sessions] == ids[4:5]
    assert [info.id for info in store.list()] == [*ids[:6:-1], *ids[3::-1]]
    for one in ids[4:7]:
        restore(store, one)
    assert {one: held(store, one) for one in ids} == before


def test_two_that_archive_at_once_share_the_work(store: Store) -> None:
    ids = plain(store, 60)
    assert store.path is not None
    path, start = store.path, threading.Barrier(4)

    def work() -> Moved:
        with Store.open(path) as own:
            start.wait()
            return archive_expired(own, 0, 1)

    with ThreadPoolExecutor(4) as threads:
        found = [one.result() for one in [threads.submit(work) for _ in range(4)]]
    assert [one.problem for one in found] == [None] * 4
    assert sorted(info.id for one in found for info in one.sessions) == sorted(ids[:59])
    assert [info.id for info in store.list()] == ids[59:]
    assert {one.info.id for one in archived(store) if one.info} == set(ids[:59])


def test_a_damaged_session_stays_where_it_is(store: Store, tmp_path: Path) -> None:
    damaged, whole, _ = plain(store, 3)
    connection = apsw.Connection(str(store.path))
    connection.execute("DROP TRIGGER messages_never_change")
    connection.execute("UPDATE messages SET body = substr(body, 4) WHERE id = 1")
    connection.close()
    with pytest.raises(StoreDamaged, match=f"Session {damaged} is damaged"):
        archive(store, damaged)
    assert [info.id for info in archive_expired(store, 0, 1).sessions] == [whole]
    assert damaged in {info.id for info in store.list()}
    assert [path.stem for path, _ in archived(store)] == [whole]


def test_nothing_goes_where_no_archive_can_be_written(store: Store) -> None:
    [name, _] = plain(store, 2)
    assert store.path is not None
    (store.path.parent / "archives").write_text("in the way")
    with pytest.raises(StoreError, match="Cannot write"):
        archive(store, name)
    moved = archive_expired(store, 0, 1)
    assert (moved.sessions, moved.left) == ([], 1)
    assert moved.problem is not None
    with store.open_session(name), pytest.raises(SessionLocked):
        archive(store, name)
    assert len(store.list()) == 2
    with Store.open(None) as memory, pytest.raises(StoreError, match="in memory only"):
        archive(memory, plain(memory, 1)[0])


def test_a_damaged_archive_is_named_and_changes_nothing(store: Store, tmp_path: Path) -> None:
    path = archive(store, talk(store))[0]
    data = path.read_bytes()
    for place in range(0, len(data), 97):
        path.write_bytes(data[:place] + bytes([data[place] ^ 0xFF]) + data[place + 1 :])
        with suppress(InvalidMessages):
            store.delete(restore(store, str(path)).id)  # the byte did not matter
        assert store.list() == []
    for content in (b"", b"text", data[: len(data) // 2]):
        path.write_bytes(content)
        with pytest.raises(InvalidMessages, match="is not an archive of a session, or is damaged"):
            restore(store, str(path))
        assert archived(store) == [(path, None)]
    with pytest.raises(SessionNotFound, match="There is no archive of 'nowhere'"):
        restore(store, "nowhere")


@pytest.mark.parametrize("name", ["../../evil", "UPPER/case", "", "a" * 40])
def test_an_archive_cannot_name_a_file_outside(store: Store, tmp_path: Path, name: str) -> None:
    path = archive(store, talk(store))[0]
    forged = tmp_path / "forged.zip"
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(forged, "w") as target:
        whole = source.read("session.json").decode().replace(f'"id": "{path.stem}"', f'"id": "{name}"')
        target.writestr("session.json", whole)
    with pytest.raises(InvalidMessages, match="names no session that can be restored"):
        restore(store, str(forged))


@pytest.mark.parametrize("member", ["outputs/../../evil.txt", "/evil.txt", "outputs/.hidden", "locks/evil"])
def test_an_archive_with_a_foreign_file_is_refused(store: Store, member: str) -> None:
    path = archive(store, talk(store))[0]
    with zipfile.ZipFile(path, "a") as file:
        file.writestr(member, "evil")
    with pytest.raises(InvalidMessages, match="is not part of an archive"):
        restore(store, str(path))
    assert (files(store), store.list()) == ({}, [])


def test_an_output_of_another_session_is_not_replaced(store: Store) -> None:
    path = archive(store, talk(store))[0]
    kept = spilled(store, store.create(directory="/", model="m"))
    with zipfile.ZipFile(path, "a") as file:
        file.writestr(f"outputs/{kept.parent.name}/5.txt", "evil")
    restore(store, str(path))
    assert kept.read_text() == "all of it"


def forged(path: Path, content: bytes) -> Path:
    """An archive like that at `path`, whose session.json has this content."""
    other = path.with_name("forged.zip")
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(other, "w", zipfile.ZIP_DEFLATED) as target:
        for member in source.infolist():
            target.writestr(member, content if member.filename == "session.json" else source.read(member))
    return other


def refused(store: Store, path: Path) -> str:
    """The line of the error; nothing was restored or written."""
    before = files(store)
    with pytest.raises(InvalidMessages) as raised:
        restore(store, str(path))
    assert "\n" not in str(raised.value)
    assert (files(store), store.list()) == (before, [])
    return str(raised.value)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"[" + b"{}," * 16_000_000, "session.json: holds more than 30,000,000 values, the limit"),
        (b"[" * 1_000_000, "session.json: is nested deeper than 100 levels, the limit"),
        (b"{" + b'"a":[' * 101 + b"]" * 101 + b"}", "session.json: is nested deeper than 100 levels, the limit"),
    ],
    ids=["values", "depth", "depth-just"],
)
def test_a_bomb_is_refused_before_memory_is_full(store: Store, content: bytes, said: str) -> None:
    bomb = forged(archive(store, talk(store))[0], content)
    del content
    assert bomb.stat().st_size < 2 << 20
    assert said in refused(store, bomb)


def test_a_session_that_unpacks_to_terabytes_is_refused_at_the_limit() -> None:
    pieces = checked(repeat(b" " * (8 << 20)), SESSION, "x: session.json")
    with pytest.raises(InvalidMessages, match=r"^x: session\.json: unpacks to more than 512 MiB, the limit"):
        deque(pieces, maxlen=0)


def test_a_value_that_nests_within_the_limit_is_restored_and_can_be_read(store: Store) -> None:
    """What the store takes it must be able to give back, from anywhere in the program."""
    path = archive(store, plain(store, 1)[0])[0]
    whole = msgspec.json.decode(zipfile.ZipFile(path).read("session.json"))
    deep: list[object] = []
    for _ in range(95):
        deep = [deep]
    whole["messages"][1]["provider_data"] = deep
    info = restore(store, str(forged(path, msgspec.json.encode(whole))))
    assert store.copy_of(info.id).entries[1].message.extra == {"provider_data": deep}


def test_outputs_that_fill_the_disk_are_refused(store: Store) -> None:
    path = archive(store, talk(store))[0]
    with zipfile.ZipFile(path, "a") as file:
        file.writestr(f"outputs/{path.stem}/9.txt", "small")
        # The list of an archive may say anything.
        file.getinfo(f"outputs/{path.stem}/9.txt").file_size = 9 << 30
    assert "its outputs unpack to more than 8 GiB, the limit" in refused(store, path)


def test_too_many_outputs_are_refused() -> None:
    members = [zipfile.ZipInfo("outputs/x/1.txt")] * (MOST_OUTPUTS + 1)
    check_outputs(members[1:], "x")
    with pytest.raises(InvalidMessages, match="holds 200,001 outputs; valid: at most 200,000"):
        check_outputs(members, "x")


def test_a_list_of_members_that_fills_memory_is_not_read(store: Store) -> None:
    """zipfile reads the list in one piece, of the size that the archive's end states."""
    path = archive(store, talk(store))[0]
    data = path.read_bytes()
    end = data.rindex(b"PK\x05\x06")
    size = (65 << 20).to_bytes(4, "little")
    path.write_bytes(b"\0" * (65 << 20) + data[: end + 12] + size + data[end + 16 :])
    assert "its list of files is larger than 64 MiB" in refused(store, path)


def test_a_link_in_an_archive_is_refused(store: Store) -> None:
    path = archive(store, talk(store))[0]
    member = zipfile.ZipInfo(f"outputs/{path.stem}/9.txt")
    member.external_attr = 0o120777 << 16
    with zipfile.ZipFile(path, "a") as file:
        file.writestr(member, "/etc/passwd")
    assert "9.txt' is a link or no file" in refused(store, path)


def test_outputs_are_written_through_no_link(store: Store, tmp_path: Path) -> None:
    path = archive(store, talk(store))[0]
    assert store.path is not None
    outside = tmp_path / "outside"
    outside.mkdir()
    (store.path.parent / "outputs").mkdir(exist_ok=True)
    (store.path.parent / "outputs" / path.stem).symlink_to(outside)
    with pytest.raises(StoreError):
        restore(store, str(path))
    assert (list(outside.iterdir()), store.list()) == ([], [])
    (store.path.parent / "outputs" / path.stem).unlink()
    (store.path.parent / "outputs" / path.stem).mkdir()
    (outside / "5.txt").write_text("mine")
    (store.path.parent / "outputs" / path.stem / "5.txt").symlink_to(outside / "5.txt")
    restore(store, str(path))
    assert (outside / "5.txt").read_text() == "mine"
    assert files(store)[f"{path.stem}/5.txt"] == "all of it"


def test_no_file_is_added_to_the_outputs_of_a_session_in_the_store(store: Store) -> None:
    path = archive(store, talk(store))[0]
    [other] = plain(store, 1)
    with zipfile.ZipFile(path, "a") as file:
        file.writestr(f"outputs/{other}/9.txt", "evil")
    restore(store, str(path))
    assert not [name for name in files(store) if name.startswith(other)]


def test_a_session_that_could_not_be_restored_stays_in_the_store(store: Store) -> None:
    deep: list[object] = []
    for _ in range(120):
        deep = [deep]
    with store.create(directory="/work", model="m") as session:
        session.log.append([*said("question"), Message("assistant", "yes", extra={"data": deep})])
        name = session.info.id
    with pytest.raises(InvalidMessages, match="is nested deeper than 100 levels"):
        archive(store, name)
    assert ([info.id for info in store.list()], archived(store)) == ([name], [])


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.sampled_from('\\"[]{},x\n\u20ac')),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(st.sampled_from('\\"[{x'), max_size=3), inner),
    max_leaves=20,
)


def measured(value: object) -> tuple[int, int]:
    """The values in a JSON value as the limits count them, and its depth."""
    if not isinstance(value, list | dict):
        return 0, 0
    inner = [measured(one) for one in (value.values() if isinstance(value, dict) else value)]
    values = 1 + max(0, len(inner) - 1) + sum(count for count, _ in inner)
    return values, 1 + max((depth for _, depth in inner), default=0)


@given(JSON, st.lists(st.integers(1, 9), min_size=1), st.booleans())
def test_values_and_depth_are_counted_exactly_however_the_text_is_cut(
    value: object, sizes: list[int], is_ascii: bool
) -> None:
    text = json.dumps(value, ensure_ascii=is_ascii).encode()
    pieces, at = [], 0
    for size in cycle(sizes):
        pieces.append(text[at : at + size])
        at += size
        if at >= len(text):
            break
    values, depth = measured(value)
    limits = Limits(len(text), values, depth)
    assert list(checked(pieces, limits, "x")) == pieces
    for low in (limits._replace(size_bytes=len(text) - 1), *([limits._replace(depth=depth - 1)] if depth else [])):
        with pytest.raises(InvalidMessages):
            list(checked(pieces, low, "x"))
    if values:
        with pytest.raises(InvalidMessages, match="values"):
            list(checked(pieces, limits._replace(values=values - 1), "x"))
