"""Files that are large, linked, unreadable or in the way, and bounds that are reached: clear, and never half done."""

from __future__ import annotations

import codecs
import os
import resource
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from nca.config.schema import RewindSettings
from nca.errors import StoreError, UsageError
from nca.file_history.last_seen import refusal, scan
from nca.file_history.plan import Choice
from nca.file_history.restore import Watch, whole_flush
from nca.sessions.store import Store
from tests.file_history.room import Room, paths
from tests.file_history.world import snapshot

NOBODY = 65_534


@pytest.fixture
def person_room() -> Iterator[Room]:
    """The room of somebody whom permissions bind, also where the tests run as root."""
    with tempfile.TemporaryDirectory() as folder:
        is_root = os.geteuid() == 0
        # Whoever loses their rights may not be able to load anything any more.
        whole_flush()
        codecs.lookup("ascii")
        if is_root:
            os.chown(folder, NOBODY, NOBODY)
            os.seteuid(NOBODY)
        try:
            with Store.open(Path(folder) / "home/sessions.db") as store:
                yield Room(Path(folder) / "work", store)
        finally:
            if is_root:
                os.seteuid(0)


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="only /proc tells what is open")
def test_no_folder_stays_open(tmp_path: Path) -> None:
    """A chat looks at the project again and again; the system lets it open about a thousand files."""
    for name in ("one/two/three", "other", "venv"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "venv/pyvenv.cfg").touch()
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    found = scan(tmp_path, (), (), RewindSettings(), threading.Event())
    assert {"one", "one/two", "other"} <= found.found.keys()
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208


@contextmanager
def no_larger_than(size: int) -> Iterator[None]:
    """No file can grow beyond this size, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


async def test_a_file_larger_than_the_bound_is_named_and_left(tmp_path: Path, store: Store) -> None:
    room = Room(tmp_path / "work", store, RewindSettings(max_file_bytes=100))
    (room.root / "large").write_text("x" * 101)
    await room.command("echo more >> large; echo y > small; head -c 200 /dev/zero > made; rm -f nothing")
    plan = room.history.plan(1)
    assert [(one.path, one.reason) for one in plan.not_stored] == [
        ("large", "larger than 100 bytes"),
        ("made", "larger than 100 bytes"),
    ]
    assert paths(room.history.apply(plan).deleted) == ["small"]
    assert sorted(room.texts()) == ["large", "made"]


async def test_a_large_build_folder_costs_nothing(room: Room) -> None:
    for name in ("build/huge", "target/huge"):
        (room.root / name).parent.mkdir()
        with (room.root / name).open("wb") as file:
            file.truncate(300 << 20)
    (room.root / "target/CACHEDIR.TAG").touch()
    await room.command("echo 1 > build/a; echo 1 > target/a; mkdir node_modules; echo 1 > node_modules/a")
    plan = room.history.plan(1)
    assert (paths(plan.deleted), plan.not_stored, room.notices()) == (["build/a"], (), [])
    assert (room.root.parent / "home/files.db").stat().st_size < 1 << 20


async def test_a_folder_stays_covered_or_not_while_a_command_runs(room: Room) -> None:
    (room.root / "cache").mkdir()
    (room.root / "cache/CACHEDIR.TAG").touch()
    (room.root / "cache/old").write_text("mine")
    (room.root / "src").mkdir()
    (room.root / "src/old").write_text("mine")
    await room.command("rm cache/CACHEDIR.TAG; touch src/CACHEDIR.TAG; echo 2 > src/old")
    plan = room.history.plan(1)
    assert (paths(plan.restored), paths(plan.deleted), plan.left) == (["src/old"], ["src/CACHEDIR.TAG"], ())


async def test_a_workspace_that_a_command_removed_comes_back(room: Room) -> None:
    (room.root / "d").mkdir()
    (room.root / "d/a").write_text("1")
    before = snapshot(room.root)
    await room.command(f"rm -r {room.root}")
    assert not room.root.exists()
    room.history.apply(room.history.plan(1))
    assert snapshot(room.root) == before


async def test_hard_links_are_not_parted(room: Room) -> None:
    (room.root / "a").write_text("1")
    os.link(room.root / "a", room.root / "b")
    await room.command("echo 2 > a")
    plan = room.history.plan(1)
    assert paths(plan.left) == ["a", "b"]
    assert "hard links" in plan.left[0].reason


@pytest.mark.skipif(os.geteuid() != 0, reason="only an administrator may give files away")
async def test_a_file_keeps_its_owner(room: Room) -> None:
    (room.root / "a").write_text("1")
    os.chown(room.root / "a", NOBODY, NOBODY)
    await room.command("echo 2 > a")
    room.history.apply(room.history.plan(1))
    assert ((room.root / "a").read_text(), (room.root / "a").stat().st_uid) == ("1", NOBODY)


async def test_a_link_that_differs_in_case_only_is_another_file(room: Room) -> None:
    await room.command("echo 1 > name; ln name NAME; mv name Name")
    room.history.apply(room.history.plan(1), Choice(take=frozenset(["NAME", "Name"])))
    assert room.texts() == {}


@pytest.mark.parametrize("has_moved_before", [False, True])
async def test_nothing_is_written_through_a_link(room: Room, tmp_path: Path, has_moved_before: bool) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a").write_text("2")
    (room.root / "d").mkdir()
    (room.root / "d/a").write_text("1")
    await room.command("printf 2 > d/a; printf x > d/new")
    plan = room.history.plan(1)
    (room.root / "d").rename(room.root / "real")
    (room.root / "d").symlink_to(outside)
    plan = room.history.plan(1) if has_moved_before else plan
    outcome = room.history.apply(plan, Choice(take=frozenset(["d/a", "d/new"])))
    assert "d/a" in paths((*outcome.left, *outcome.blocked))
    assert ((outside / "a").read_text(), list(outside.iterdir())) == ("2", [outside / "a"])


async def test_where_one_file_has_no_room_none_is_restored(room: Room) -> None:
    for number in range(40):
        (room.root / f"small{number}").write_text("1")
    (room.root / "large").write_text("x" * 4_000_000)
    await room.command("for one in *; do printf 2 > $one; done; rm small3; mkdir new; touch new/a")
    before = snapshot(room.root)
    plan = room.history.plan(1)
    with no_larger_than(1 << 20), pytest.raises(UsageError, match="large could not be restored: file too large"):
        room.history.apply(plan)
    assert snapshot(room.root) == before
    assert room.history.last_rewind() == (0, "")
    assert len(room.history.apply(room.history.plan(1)).restored) == 41
    assert (len(room.texts()), len(room.texts()["large"])) == (41, 4_000_000)


async def test_where_the_chat_cannot_go_back_the_files_do_not(room: Room) -> None:
    (room.root / "d").mkdir()
    (room.root / "d/a").write_text("1")
    await room.command("rm -r d; echo 2 > d; chmod 711 .; mkdir -p e/f; ln -s x e/l")
    before = snapshot(room.root)

    def full(_: int) -> None:
        raise StoreError("Disk full")

    with pytest.raises(StoreError):
        room.history.apply(room.history.plan(1), then=full)
    assert snapshot(room.root) == before
    room.history.apply(room.history.plan(1))
    assert room.texts() == {"d/a": "1"}


@pytest.mark.parametrize("place", [0, 1, 7, 30, 79, 82])
async def test_what_is_stopped_goes_back(room: Room, place: int) -> None:
    for number in range(40):
        (room.root / f"a{number}").write_text("1")
    await room.command("for one in *; do printf 2 > $one; done; mkdir -p new/in; touch new/in/a; rm a3")
    before = snapshot(room.root)
    stop = threading.Event()
    told: list[tuple[int, int]] = []

    def progress(done: int, of: int) -> None:
        told.append((done, of))
        if done >= place:
            stop.set()

    with pytest.raises(UsageError, match="Stopped"):
        room.history.apply(room.history.plan(1), watch=Watch(progress, stop))
    assert snapshot(room.root) == before
    assert len(told) == max(1, place)
    room.history.apply(room.history.plan(1))
    assert (sorted(room.texts()), set(room.texts().values())) == (sorted(f"a{n}" for n in range(40)), {"1"})


@pytest.mark.parametrize("place", [3, 6])
async def test_what_somebody_changes_in_the_middle_stays_and_all_else_goes_back(room: Room, place: int) -> None:
    for name in "abc":
        (room.root / name).write_text("1")
    await room.command("for one in *; do printf 2 > $one; done")

    def progress(done: int, of: int) -> None:
        if done == place - 1:
            (room.root / "c").write_text("mine")

    with pytest.raises(UsageError, match="c could not be restored: changed meanwhile"):
        room.history.apply(room.history.plan(1), watch=Watch(progress))
    assert room.texts() == {"a": "2", "b": "2", "c": "mine"}
    assert (room.history.last_rewind(), room.history.changed_since(0)[0].path) == ((0, ""), "a")


async def test_a_new_file_that_somebody_saves_in_the_middle_is_not_deleted(room: Room) -> None:
    (room.root / "a").write_text("1")
    await room.command("printf 2 > a; touch new")

    def progress(done: int, of: int) -> None:
        if done == 1:
            (room.root / "new").write_text("mine")

    with pytest.raises(UsageError, match="new could not be restored: changed meanwhile"):
        room.history.apply(room.history.plan(1), watch=Watch(progress))
    assert room.texts() == {"a": "2", "new": "mine"}


async def test_a_file_of_somebody_else_s_in_the_way_is_named_before_anything_changes(room: Room) -> None:
    (room.root / "d").mkdir()
    (room.root / "d/a").write_text("1")
    (room.root / "e").write_text("1")
    await room.command("rm -r d; rm e; mkdir e; echo 2 > e/b")
    (room.root / "d").write_text("mine")
    (room.root / "e/mine").write_text("mine")
    plan = room.history.plan(1)
    assert [(one.path, one.reason) for one in plan.blocked] == [
        ("d/a", "d is in the way"),
        ("e", "e/mine is in the way"),
    ]
    room.history.apply(plan)
    assert room.texts() == {"d": "mine", "e/mine": "mine"}


async def test_a_record_that_is_full_stops_nothing(room: Room, store: Store) -> None:
    room.edit("a", "1")
    connection = store.file_records._database.connection
    connection.pragma("max_page_count", connection.pragma("page_count"))
    room.edit("b", "".join(map(str, range(100_000))))
    await room.command("echo 1 > c")
    assert sorted(room.texts()) == ["a", "b", "c"]
    [notice] = room.notices()
    assert notice.startswith("Changes of files are not recorded from here on: Disk full")


async def test_what_may_not_be_read_or_written(person_room: Room) -> None:
    room = person_room
    for name in ("closed", "frozen", "hidden", "secret"):
        (room.root / name).mkdir()
        (room.root / name / "a").write_text("1")
    (room.root / "secret/a").chmod(0)
    (room.root / "hidden").chmod(0)
    await room.command("chmod 700 hidden; chmod 600 secret/a; echo 2 > secret/a; echo 2 > closed/a; echo 2 > frozen/a")
    (room.root / "frozen").chmod(0o500)
    (room.root / "closed").chmod(0)
    plan = room.history.plan(1)
    outcome = room.history.apply(plan)
    left = {one.path: one.reason for one in (*outcome.blocked, *outcome.not_stored)}
    assert left == {"closed/a": "permission denied", "frozen/a": "permission denied", "secret/a": "permission denied"}
    (room.root / "closed").chmod(0o700)
    assert (room.root / "hidden/a").read_text() == "1"


async def test_what_can_go_neither_forth_nor_back_is_named_with_its_state(person_room: Room) -> None:
    room = person_room
    for name in ("d/a", "d/b", "e/c"):
        (room.root / name).parent.mkdir(exist_ok=True)
        (room.root / name).write_text("1")
    await room.command("printf 2 > d/a; printf 2 > d/b; printf 2 > e/c")

    def progress(done: int, of: int) -> None:
        if done == 4:  # three contents are staged, and the first is switched
            (room.root / "d").chmod(0o500)

    with pytest.raises(UsageError, match="d/b could not be restored: permission denied") as failed:
        room.history.apply(room.history.plan(1), watch=Watch(progress))
    assert "These could not go back and have their other state: d/a (permission denied)." in failed.value.advice
    assert room.texts() == {"d/a": "1", "d/b": "2", "e/c": "2"} | {
        name: text for name, text in room.texts().items() if ".nca-rewind" in name
    }
    assert room.history.last_rewind()[1] == ""
    (room.root / "d").chmod(0o700)
    assert paths(room.history.apply(room.history.plan(1)).restored) == ["d/b", "e/c"]


@pytest.mark.parametrize(
    ("limits", "why"),
    [
        (RewindSettings(max_files=2), "it has more than 2 files (rewind.max_files)"),
        (RewindSettings(max_project_bytes=3), "its files are larger than rewind.max_project_bytes"),
        (RewindSettings(max_scan_seconds=0.0), "looking at it takes longer than 0 s (rewind.max_scan_seconds)"),
    ],
)
async def test_beyond_the_bounds_only_edits_are_recorded(
    tmp_path: Path, store: Store, limits: RewindSettings, why: str
) -> None:
    room = Room(tmp_path / "work", store, limits)
    for name in "abc":
        (room.root / name).write_text("12")
    await room.command("echo 1 > new")
    await room.command("echo 2 > new")
    assert room.notices() == [f"Not recorded: changes that commands make here: {why}. They cannot be taken back."]
    room.edit("edited", "1")
    plan = room.history.plan(0)
    assert (paths(plan.deleted), plan.unrecorded) == (["edited"], (f"here: {why}",))
    assert room.history.plan(3).unrecorded == ()


async def test_of_a_folder_that_is_too_large_the_rest_is_recorded(tmp_path: Path, store: Store) -> None:
    room = Room(tmp_path / "work", store, RewindSettings(max_files=20))
    for name in ("a.txt", "src/b.txt", *(f"data/part/{number}" for number in range(30))):
        (room.root / name).parent.mkdir(exist_ok=True, parents=True)
        (room.root / name).write_text("old")
    await room.command("echo new > a.txt; echo new > src/b.txt; echo new > data/part/7")
    gap = "in data/part/: it has more than 20 files (rewind.max_files)"
    assert room.notices() == [f"Not recorded: changes that commands make {gap}. They cannot be taken back."]
    await room.command("mkdir src/c; rm data/part/*")
    plan = room.history.plan(1)
    assert (paths(plan.restored), plan.unrecorded) == (["a.txt", "src/b.txt"], (gap,))
    assert [one.path for one in plan.folders] == ["src/c"]
    room.history.apply(plan)
    assert room.texts() == {"a.txt": "old", "src/b.txt": "old"}


async def test_a_project_whose_store_is_full_keeps_what_it_has(tmp_path: Path, store: Store) -> None:
    room = Room(tmp_path / "work", store, RewindSettings(max_project_bytes=20_000))
    (room.root / "a").write_text("1")
    for number in range(4):
        await room.command(f"head -c 9000 /dev/urandom > r{number}; rm r{number - 1} 2>/dev/null; true")
    assert ["rewind.max_project_bytes" in one for one in room.notices()] == [True]
    assert "a" not in paths(room.history.plan(1).restored)


async def test_a_bound_of_no_files_asks_for_no_record_and_is_named_at_a_rewind(tmp_path: Path, store: Store) -> None:
    room = Room(tmp_path / "work", store, RewindSettings(max_files=0))
    await room.command("echo 1 > a")
    assert (room.history.changed_since(0), room.notices()) == ((), [])
    assert room.history.plan(0).unrecorded == ("here: rewind.max_files is 0",)


def test_some_folders_are_never_looked_at_whole(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home/me"))
    (tmp_path / "home/me/project").mkdir(parents=True)
    assert refusal(Path("/"))
    assert refusal(tmp_path / "home")
    assert refusal(tmp_path / "home/me")
    assert refusal(Path(os.path.realpath("/tmp")))
    assert not refusal(tmp_path / "home/me/project")
    monkeypatch.setenv("NCA_HOME", str(tmp_path / "own"))
    assert [refusal(tmp_path / one) for one in ("own", "own/data", "own/data/x")] == ["", *["it is nca's own data"] * 2]


@pytest.mark.parametrize(
    ("bits", "named"), [(0o4000, "setuid"), (0o2000, "setgid"), (0o7000, "setuid, setgid, sticky")]
)
async def test_a_file_comes_back_without_special_bits_and_is_named(room: Room, bits: int, named: str) -> None:
    """Going back must make no program run as somebody else."""
    tool = room.root / "tool"
    tool.write_text("old")
    tool.chmod(0o755 | bits)
    await room.command("rm tool; echo new > tool; chmod 644 tool")
    outcome = room.history.apply(room.history.plan(1))
    assert paths(outcome.restored) == ["tool"]
    assert [(one.path, one.reason) for one in outcome.unset] == [("tool", named)]
    assert (tool.read_text(), tool.stat().st_mode & 0o7777) == ("old", 0o755)
    forth = room.history.apply(room.history.plan_back(outcome.id))
    assert (tool.read_text(), tool.stat().st_mode & 0o7777, forth.unset) == ("new\n", 0o644, ())
    again = room.history.plan(1)
    assert (paths(again.restored), again.left) == (["tool"], ())
    room.history.apply(again)
    done = room.history.plan(1)
    assert (done.is_empty, paths(done.unset)) == (True, ["tool"])


async def test_special_bits_that_the_session_set_are_taken_back_and_not_set_again(room: Room) -> None:
    tool = room.root / "tool"
    tool.write_text("same")
    tool.chmod(0o755)
    await room.command("chmod u+s tool")
    back = room.history.apply(room.history.plan(1))
    assert (paths(back.restored), back.unset) == (["tool"], ())
    assert tool.stat().st_mode & 0o7777 == 0o755
    assert paths(room.history.plan_back(back.id).unset) == ["tool"]
    room.history.apply(room.history.plan_back(back.id))
    assert tool.stat().st_mode & 0o7777 == 0o755


async def test_what_is_not_changed_keeps_its_special_bits(room: Room) -> None:
    (room.root / "shared").mkdir()
    (room.root / "shared").chmod(0o2775)
    (room.root / "tool").write_text("same")
    (room.root / "tool").chmod(0o4755)
    await room.command("echo x > shared/a; chmod 2755 shared")
    outcome = room.history.apply(room.history.plan(1))
    assert (paths(outcome.deleted), outcome.unset) == (["shared/a"], ())
    assert (room.root / "shared").stat().st_mode & 0o7777 == 0o2775
    assert (room.root / "tool").stat().st_mode & 0o7777 == 0o4755


async def test_a_new_folder_keeps_the_bit_that_the_folder_above_gives_it(room: Room) -> None:
    (room.root / "shared").mkdir()
    (room.root / "shared").chmod(0o2775)
    (room.root / "shared/inner").mkdir()
    (room.root / "shared/inner/a").write_text("x")
    (room.root / "public").mkdir()
    (room.root / "public").chmod(0o1777)
    await room.command("rm -r shared/inner; rmdir public")
    outcome = room.history.apply(room.history.plan(1))
    assert (room.root / "shared/inner").stat().st_mode & 0o2000
    assert (room.root / "public").stat().st_mode & 0o7777 == 0o777
    assert [(one.path, one.reason) for one in outcome.unset] == [("public", "sticky")]
