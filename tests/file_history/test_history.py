"""Edits are recorded before they are made, and taken back without touching what anyone else did."""

from __future__ import annotations

import signal
import subprocess
import threading
from pathlib import Path

import pytest

from nca.errors import StoreError, UsageError
from nca.file_history.plan import Choice
from nca.file_history.restore import Watch
from nca.sessions.store import Store
from tests.file_history.room import Room, paths
from tests.file_history.world import snapshot
from tests.testing.forks import standing_code

KILLED = """
import os, signal, sys
from pathlib import Path
from nca.file_history.restore import Watch
from nca.sessions.store import Store
from tests.file_history.room import Room

def die(done, of):
    if done == int(sys.argv[4]):
        os.kill(os.getpid(), signal.SIGKILL)

with Store.open(Path(sys.argv[1])) as store:
    history = Room(Path(sys.argv[2]), store, session_id=sys.argv[3]).history
    history.apply(history.plan(0), watch=Watch(progress=die))
"""


def test_edits_are_taken_back_and_forth(room: Room) -> None:
    (room.root / "a").write_text("one\n")
    room.edit("a", "one\ntwo\n")
    room.edit("new/b", "b\n")
    room.edit("a", "two\n")
    after = room.texts()
    changes = room.history.changed_since(0)
    assert [(one.path, one.added, one.removed) for one in changes] == [("a", 1, 1), ("new/b", 1, 0)]

    plan = room.history.plan(1)
    assert (paths(plan.restored), paths(plan.deleted)) == (["a"], ["new/b"])
    assert "-two\n+one" in plan.diff()
    outcome = room.history.apply(plan)
    assert (paths(outcome.restored), paths(outcome.deleted)) == (["a"], ["new/b"])
    assert room.texts() == {"a": "one\n"}
    assert not (room.root / "new").exists()
    assert room.history.changed_since(0) == ()

    room.history.apply(room.history.plan_back(outcome.id))
    assert room.texts() == after
    room.history.apply(room.history.plan(3))
    assert room.texts() == {"a": "one\ntwo\n", "new/b": "b\n"}


def test_what_someone_else_changed_is_left_unless_it_is_taken(room: Room) -> None:
    room.edit("since", "nca")
    room.edit("between", "nca")
    (room.root / "between").write_text("mine")
    room.edit("between", "nca again")
    room.edit("own", "nca")
    (room.root / "since").write_text("mine")

    plan = room.history.plan(0)
    assert (paths(plan.left), paths(plan.deleted)) == (["between", "since"], ["own"])
    room.history.apply(plan)
    assert room.texts() == {"since": "mine", "between": "nca again"}

    outcome = room.history.apply(room.history.plan(0), Choice(take=frozenset(["since"])))
    assert room.texts() == {"between": "nca again"}
    room.history.apply(room.history.plan_back(outcome.id))
    assert room.texts() == {"since": "mine", "between": "nca again"}


@pytest.mark.parametrize("step", [1, 2, 3])
def test_a_rewind_that_was_killed_is_finished_and_leaves_nothing_half_written(
    tmp_path: Path, room: Room, store: Store, step: int
) -> None:
    for name in ("a", "b"):
        (room.root / name).write_text("one\n")
        room.edit(name, "two\n")
    words = (str(tmp_path / "home" / "sessions.db"), str(room.root), room.session_id, str(step))
    child = subprocess.run(standing_code(KILLED, *words), capture_output=True, check=False)
    assert child.returncode == -signal.SIGKILL, child.stderr
    assert len(room.texts()) > 2
    Room(room.root, store, session_id=room.session_id).history.recorder.recover()
    assert room.texts() == {"a": "one\n", "b": "one\n"}


def test_what_was_taken_back_has_not_changed(room: Room) -> None:
    room.edit("a", "one")
    room.edit("a", "two")
    room.edit("b", "new")
    (room.root / "d").mkdir()
    assert room.history.last_changes() == [(2, "a", "changed"), (3, "b", "changed")]
    outcome = room.history.apply(room.history.plan(2))
    assert room.texts() == {"a": "one"}
    assert room.history.last_changes() == [(1, "a", "changed")]
    room.history.apply(room.history.plan_back(outcome.id))
    assert room.history.last_changes() == [(2, "a", "changed"), (3, "b", "changed")]
    room.history.apply(room.history.plan(0))
    assert room.history.last_changes() == []


def test_what_a_person_made_of_a_file_is_no_change_of_the_session(room: Room) -> None:
    def net() -> list[str]:
        found = room.history.changed_since(0)
        return [line for one in found for line in one.diff().split("\n")[2:] if line[:1] in "+-"]

    (room.root / "a").write_text("1\n2\n3\n4\n5\n6\n")
    room.edit("a", "one\n2\n3\n4\n5\n6\n")
    (room.root / "a").write_text("one\n2\n3\n4\n5\n6\nmine\n")
    room.edit("a", "one\n2\n3\nfour\n5\n6\nmine\n")
    assert net() == ["-1", "+one", "-4", "+four"]
    (room.root / "a").write_text("one\n2\n3\nfour\n5\n6\nmine\nmore\n")
    back = {}
    for seq, left in ((2, ["-1", "+one"]), (1, [])):
        (merge, conflicts) = room.history.merged(room.history.plan(seq).left[0]) or pytest.fail("no merge")
        assert conflicts == 0
        back[seq] = room.history.apply(room.history.plan(seq), Choice(merges=(merge,))).id
        assert (net(), [path for _, path, _ in room.history.last_changes()]) == (left, ["a"] if left else [])
    assert room.texts() == {"a": "1\n2\n3\n4\n5\n6\nmine\nmore\n"}
    room.history.apply(room.history.plan_back(back[1]))
    room.history.apply(room.history.plan_back(back[2]))
    assert net() == ["-1", "+one", "-4", "+four"]


def test_what_changes_after_the_plan_is_left(room: Room) -> None:
    room.edit("a", "nca")
    plan = room.history.plan(0)
    (room.root / "a").write_text("mine")
    assert paths(room.history.apply(plan).left) == ["a"]
    assert room.texts() == {"a": "mine"}


def test_an_edit_that_failed_is_no_change(room: Room) -> None:
    with pytest.raises(OSError, match="full"), room.history.recorder.edit(room.root / "d/a", b"x", "write_file"):
        raise OSError("full")
    assert room.history.plan(0).is_empty


def test_a_rewind_of_another_session_is_none(room: Room) -> None:
    with pytest.raises(UsageError):
        room.history.plan_back(1)


async def test_a_file_that_a_command_deleted_is_known_as_deleted(room: Room) -> None:
    (room.root / "old").write_text("there from the start")
    await room.command("rm old; echo x > new")
    assert {(path, what) for _, path, what in room.history.last_changes()} == {("old", "deleted"), ("new", "changed")}


async def test_what_a_command_did_is_taken_back(room: Room) -> None:
    (room.root / "old").mkdir()
    (room.root / "old/a").write_text("a\n")
    (room.root / "old/b").write_text("b\n")
    (room.root / "link").symlink_to("old/a")
    (room.root / "mine").write_text("1")
    before = snapshot(room.root)
    await room.command(
        "sed -i s/a/A/ old/a; rm -r old/b link; mkdir -p new/in; echo x > new/in/x; chmod 755 old/a; mkdir empty"
    )
    (room.root / "mine").write_text("2")
    after = snapshot(room.root)
    plan = room.history.plan(1)
    assert (paths(plan.restored), paths(plan.deleted)) == (["link", "old/a", "old/b"], ["new/in/x"])
    outcome = room.history.apply(plan)
    assert snapshot(room.root) == before | {"mine": after["mine"]}
    room.history.apply(room.history.plan_back(outcome.id))
    assert snapshot(room.root) == after
    assert room.notices() == []


def test_files_go_back_with_the_chat_or_not_at_all(room: Room) -> None:
    room.edit("a", "new")
    plan = room.history.plan(0)

    def fail(_: int) -> None:
        raise StoreError("no room")

    with pytest.raises(StoreError, match="no room"):
        room.history.apply(plan, then=fail)
    assert (room.root / "a").read_text() == "new"
    assert room.history.last_rewind() == (0, "")
    told: list[tuple[int, bool]] = []
    outcome = room.history.apply(
        plan, chat="rewind 1", then=lambda number: told.append((number, (room.root / "a").exists()))
    )
    assert told == [(outcome.id, False)]
    assert room.history.last_rewind() == (outcome.id, "rewind 1")
    assert [one.path for one in room.history.changed_in(1, 1)] == ["a"]


def test_who_starts_in_the_folder_waits_for_a_rewind(room: Room, store: Store) -> None:
    for name in "abc":
        room.edit(name, "new")
    plan, begun, let_go = room.history.plan(0), threading.Event(), threading.Event()

    def progress(done: int, of: int) -> None:
        begun.set()
        let_go.wait()

    rewinding = threading.Thread(target=lambda: room.history.apply(plan, watch=Watch(progress)))
    rewinding.start()
    begun.wait()
    second, has_waited = Room(room.root, store).history.recorder, threading.Event()
    starting = threading.Thread(target=lambda: second.begin(Watch(lambda done, of: has_waited.set())))
    starting.start()
    assert has_waited.wait(60)
    assert starting.is_alive()
    let_go.set()
    for thread in (rewinding, starting):
        thread.join(60)
    assert (starting.is_alive(), room.texts()) == (False, {})
