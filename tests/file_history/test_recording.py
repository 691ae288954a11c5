"""What is recorded of whom: several commands, sessions and processes in one folder."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

import pytest

from nca.errors import UsageError
from nca.file_history.plan import Choice
from nca.file_history.recording import is_named
from nca.sessions.store import Store
from tests.file_history.room import Room, paths


async def test_another_session_s_changes_are_not_taken_back(room: Room, store: Store) -> None:
    other = Room(room.root, store)
    await room.command("echo 1 > a")
    await other.command("echo 2 > b; echo 2 >> a")
    assert paths(other.history.changed_since(0)) == ["a", "b"]
    plan = room.history.plan(0)
    assert (paths(plan.left), plan.deleted) == (["a"], ())
    assert paths(other.history.plan(0).restored) == ["a"]


async def test_what_two_sessions_changed_at_once_is_mixed_and_left(room: Room, store: Store) -> None:
    other = Room(room.root, store)
    async with room.history.recorder.command("shell"):
        async with other.history.recorder.command("shell"):
            (room.root / "a").write_text("1")
        other.edit("b", "1")
        (room.root / "c").write_text("1")
    assert [(one.path, one.is_mixed) for one in other.history.changed_since(0)] == [("a", True), ("b", False)]
    plan = room.history.plan(0)
    assert (paths(plan.left), paths(plan.deleted)) == (["a", "b"], ["c"])
    assert plan.left[0].reason == "somebody else may have changed it at the same time"


async def test_parallel_commands_and_edits_of_one_session_are_its_own(room: Room) -> None:
    async with room.history.recorder.command("shell"):
        (room.root / "a").write_text("1")
        await asyncio.to_thread(room.edit, "edited", "1")
        async with room.history.recorder.command("shell"):
            (room.root / "b").write_text("1")
        await asyncio.to_thread(room.edit, "edited", "2")
        (room.root / "c").write_text("1")
    plan = room.history.plan(0)
    assert (paths(plan.deleted), plan.left) == (["a", "b", "c", "edited"], ())


async def test_what_changes_while_a_command_runs_on_may_be_anyone_s(room: Room) -> None:
    await room.command("true", runs_on=True)
    (room.root / "found").write_text("1")
    await room.command("echo 1 > own")
    plan = room.history.plan(0)
    assert (paths(plan.left), paths(plan.deleted)) == (["found"], ["own"])
    assert paths(room.history.apply(plan, Choice(take=frozenset(["found"]))).deleted) == ["found", "own"]


async def test_edits_and_rewinds_while_a_command_runs_on_are_the_session_s_own(room: Room) -> None:
    (room.root / "old").write_text("1")
    await room.command("true", runs_on=True)
    room.edit("d/new", "1")
    room.edit("old", "2")
    await room.command("echo 3 > old")
    outcome = room.history.apply(room.history.plan(2))
    assert room.texts() == {"old": "1"}
    await room.command("true")
    room.history.apply(room.history.plan_back(outcome.id))
    await room.command("true")
    assert room.texts() == {"old": "3\n", "d/new": "1"}
    assert room.history.plan(2).left == ()


async def test_what_changes_while_a_job_runs_may_be_anyone_s_and_edits_are_not(room: Room) -> None:
    (room.root / "old").write_text("1")
    async with room.history.recorder.background("make serve"):
        await room.command("echo 1 > own")
        (room.root / "found").write_text("1")
        await asyncio.to_thread(room.edit, "edited", "1")
        await room.command("true")
        (room.root / "last").write_text("1")
    (room.root / "after").write_text("1")
    await room.command("echo 1 > own_after")
    plan = room.history.plan(0)
    assert (paths(plan.left), paths(plan.deleted)) == (["found", "last", "own"], ["edited", "own_after"])


async def test_no_rewind_while_a_command_runs(room: Room) -> None:
    await room.command("echo 1 > a")
    plan = room.history.plan(0)
    async with room.history.recorder.command("shell"):
        with pytest.raises(UsageError, match="being changed just now"):
            room.history.apply(plan)
    room.history.apply(plan)
    assert room.texts() == {}


async def test_a_cancelled_command_is_recorded(room: Room) -> None:
    async def run() -> None:
        async with room.history.recorder.command("shell"):
            (room.root / "a").write_text("1")
            await asyncio.sleep(60)

    task = asyncio.create_task(run())
    while not (room.root / "a").exists():
        await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert paths(room.history.plan(0).deleted) == ["a"]


async def test_a_command_that_is_cancelled_before_it_begins_leaves_nothing_open(room: Room) -> None:
    room.edit("a", "1")
    for turns in range(4):
        task = asyncio.create_task(room.command("echo 1 > b"))
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert room.history.recorder._running == []
    assert paths(room.history.apply(room.history.plan(1)).deleted) == ["a"]


async def test_a_settled_file_that_changes_unseen_by_size_and_time_is_seen(room: Room) -> None:
    path = room.root / "a"
    path.write_text("1")
    time.sleep(2.1)
    await room.command("true")
    before = path.stat()
    await room.command(f"printf 2 > a; touch -d @{before.st_mtime_ns / 1e9:.9f} a")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    room.history.apply(room.history.plan(2))
    assert path.read_text() == "1"


async def test_the_first_look_is_taken_in_the_background_and_stops_when_the_session_closes(
    tmp_path: Path, store: Store
) -> None:
    room = Room(tmp_path / "work", store)
    (room.root / "a").write_text("1")
    room.history.recorder.start()
    await room.command("rm a")
    assert paths(room.history.plan(0).restored) == ["a"]
    room.history.recorder.start()
    room.history.recorder.close()


@pytest.mark.parametrize("place", [None, "talk.db", "data/talk.db", "[odd] name/talk.db"])
async def test_what_a_command_changes_is_recorded_wherever_the_store_is(tmp_path: Path, place: str | None) -> None:
    root = tmp_path / "work"
    with Store.open(place and root / place) as store:
        beside = (root / (place or "x")).parent
        room = Room(root, store)
        names = ["a", "locks/a", "outputs/run1/a", "talk.db.md"]
        for name in names:
            (beside / name).parent.mkdir(exist_ok=True, parents=True)
            (beside / name).write_text("old")
        store.create(directory=str(root), model="m").close()
        await room.command("true")
        if (outputs := store.outputs_folder(room.session_id)) is not None:
            outputs.mkdir(parents=True)
            (outputs / "1.txt").write_text("nca's own")
        names = [(beside / one).relative_to(root).as_posix() for one in names]
        await room.command("; ".join(f"rm '{one}'" for one in names))
        plan = room.history.plan(2)
        assert (sorted(paths(plan.restored)), plan.deleted, plan.unrecorded, room.notices()) == (names, (), (), [])
        room.history.apply(plan)
        assert [(root / one).read_text() for one in names] == ["old"] * 4
        assert store.list()


async def test_two_stores_in_one_folder_leave_each_other_and_themselves(tmp_path: Path) -> None:
    """They share the record of files, in which each finds the other's file as one of the workspace."""
    root = tmp_path / "work"
    with Store.open(root / "a.db") as first, Store.open(root / "b.db") as second:
        for store in (first, second):
            await Room(root, store).command("true")
        room = Room(root, first)
        await room.command("echo 1 > made")
        assert paths(room.history.changed_since(0)) == ["made"]


async def test_nca_s_data_in_a_workspace_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NCA_HOME", str(tmp_path / "work/home"))
    with Store.open(None) as store:
        room = Room(tmp_path / "work", store)
        await room.command("mkdir -p home/data; echo key > home/data/keys.json; echo 1 > made")
        assert paths(room.history.changed_since(0)) == ["made"]


async def test_in_memory_no_rewind_changes_files_while_a_command_does(tmp_path: Path) -> None:
    with Store.open(None) as store:
        room = Room(tmp_path / "work", store)
        await room.command("echo 1 > a")
        plan = room.history.plan(0)
        async with room.history.recorder.command("shell"):
            with pytest.raises(UsageError, match="being changed just now"):
                room.history.apply(plan)
        assert paths(room.history.apply(plan).deleted) == ["a"]


async def test_a_file_that_no_command_mentions_may_be_anyone_s(room: Room) -> None:
    (room.root / "e.txt").write_text("old")
    (room.root / "f.txt").write_text("old")
    await room.command(
        "printf 1 > made.txt; printf 2 > f.txt; for n in 1 2; do touch own$n; done; for f in e*; do echo 2 > $f; done"
    )
    plan = room.history.plan(0)
    assert [(one.path, one.is_unnamed) for one in plan.deleted] == [("made.txt", False), ("own1", True), ("own2", True)]
    assert [(one.path, one.is_unnamed) for one in plan.restored] == [("e.txt", True), ("f.txt", False)]


async def test_a_folder_that_a_command_mentions_stands_for_all_that_comes_or_goes_with_it(room: Room) -> None:
    (room.root / "old" / "deep").mkdir(parents=True)
    (room.root / "stays").mkdir()
    for path in ("old/a", "old/deep/b", "stays/c1", "stays/c2"):
        (room.root / path).write_text("1")
    inside = "touch stays/new-$n; rm stays/?1; for f in stays/?2; do echo 2 > $f; done"
    await room.command(f"cp -r old new; n=1; {inside}; rm -r old")
    plan = room.history.plan(0)
    deleted = {one.path: one.is_unnamed for one in plan.deleted}
    assert deleted == {"new/a": False, "new/deep/b": False, "stays/new-1": True}
    restored = {one.path: one.is_unnamed for one in plan.restored}
    assert restored == {"old/a": False, "old/deep/b": False, "stays/c1": True, "stays/c2": True}


@pytest.mark.parametrize(
    ("path", "said", "named"),
    [
        ("d/a.txt", "rm a.txt", True),
        ("d/a.txt", "cat d/a.txt", True),
        ("a", "make all", False),
        ("a", "make a", True),
        ("a.txt", "cp aa.txt xa.txt a.txt.bak", False),
        ("a b", "rm 'a b'", True),
        ("x", "", False),
    ],
)
def test_a_name_stands_by_itself(path: str, said: str, named: bool) -> None:
    assert is_named(path, said) == named


async def test_a_file_that_the_output_mentions_is_the_command_s(room: Room) -> None:
    async with room.history.recorder.command("shell") as recorded:
        (room.root / "a.out").write_text("1")
        (room.root / "b.out").write_text("1")
        recorded.said = "make\nlinking a.out"
    assert [(one.path, one.is_unnamed) for one in room.history.plan(0).deleted] == [("a.out", False), ("b.out", True)]


async def test_a_file_that_an_interrupted_command_mentions_is_the_command_s(room: Room) -> None:
    async def run() -> None:
        async with room.history.recorder.command("shell", "echo 1 > a; sleep 9"):
            (room.root / "a").write_text("1")
            (room.root / "b").write_text("1")
            raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await run()
    assert [(one.path, one.is_unnamed) for one in room.history.plan(0).deleted] == [("a", False), ("b", True)]


async def test_a_file_that_a_killed_command_mentions_is_the_command_s(room: Room, store: Store) -> None:
    """The next start finds what it changed, and its line in the record."""
    await room.command("true")
    room.history.record.begin_command(1, "shell", "echo 1 > a\nsleep 9")
    (room.root / "a").write_text("1")
    (room.root / "b").write_text("1")
    again = Room(room.root, store, session_id=room.session_id)
    again.history.recorder.recover()
    found = {(one.actor, one.path, one.is_unnamed) for one in again.history.record.changes()}
    assert found == {("shell", "a", False), ("shell", "b", True)}
    assert again.history.record.commands() == []


async def test_what_runs_on_and_writes_is_named(room: Room) -> None:
    await room.command("echo 1 > a; true & ", runs_on=True)
    (room.root / "late").write_text("1")
    await room.command("true")
    (left,) = room.history.plan(0).left
    assert left.reason == "changed while this ran on in the background: echo 1 > a; true & "
