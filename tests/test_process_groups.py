"""Programs that nca started: whether one still runs, and how all are ended."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from nca import process_groups

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="process groups are of Unix")
WAIT_SECONDS = 20.0


@pytest.fixture
def leader() -> Iterator[subprocess.Popen[bytes]]:
    """A shell with a child, both in a group of their own."""
    with subprocess.Popen(["/bin/sh", "-c", "sleep 60 & echo on; wait"], stdout=-1, start_new_session=True) as process:
        assert process.stdout
        assert process.stdout.readline() == b"on\n"
        yield process
        process_groups.send(process.pid, signal.SIGKILL)


def gone(pid: int) -> bool:
    """Looks so often, and not for so long: a machine that stands still between two looks proves nothing."""
    for _ in range(2_000):
        if not process_groups.is_alive(pid):
            return True
        time.sleep(0.01)
    return False


def members(group: int) -> list[str]:
    """What the system says of each process in the group, for a test that failed."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if (stat := (process / "stat").read_text()).rpartition(")")[2].split()[2] == str(group):
                found.append(stat)
    return found


def test_all_groups_end_with_what_they_started(leader: subprocess.Popen[bytes]) -> None:
    process_groups.began(leader.pid)
    try:
        assert process_groups.is_alive(leader.pid)
        process_groups.end_all()
        assert leader.wait(WAIT_SECONDS) == -signal.SIGKILL
        assert gone(leader.pid)
    finally:
        process_groups.ended(leader.pid)


def test_a_group_that_has_ended_is_left_alone(leader: subprocess.Popen[bytes]) -> None:
    process_groups.began(leader.pid)
    process_groups.ended(leader.pid)
    process_groups.end_all()
    # A process that was killed is not gone at once.
    with pytest.raises(subprocess.TimeoutExpired):
        leader.wait(0.2)
    assert process_groups.is_alive(leader.pid)


async def test_who_waits_for_a_killed_program_waits_whatever_is_cancelled() -> None:
    process = await process_groups.start("sleep", "60")
    waiting = asyncio.create_task(process_groups.gone(process))
    for _ in range(3):
        await asyncio.sleep(0.02)
        waiting.cancel()
    await asyncio.sleep(0.02)
    assert not waiting.done()
    process_groups.send(process.pid, signal.SIGKILL)
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert process.returncode == -signal.SIGKILL
    process_groups.ended(process.pid)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="only /proc tells the states of processes")
def test_one_that_nobody_waits_for_does_not_run() -> None:
    process = subprocess.Popen(["true"], start_new_session=True)
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert not process_groups.is_alive(process.pid)
    os.killpg(process.pid, 0)  # it is still there
    assert process.wait() == 0


def test_children_end_too_where_they_are_known() -> None:
    code = (
        "import subprocess, sys, time; from nca import process_groups;"
        "child = subprocess.Popen(['sleep', '60']); process_groups.end_all(children=True);"
        "print(child.wait(20))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == ("-15\n" if Path("/proc/self/task").exists() else "")


LEFT = """
import subprocess, sys, time
from nca import process_groups
for is_over in (True, False):
    process = subprocess.Popen(["/bin/sh", "-c", "sleep 60 & wait"], start_new_session=True)
    process_groups.began(process.pid)
    if is_over:
        process_groups.ended(process.pid)
    print(process.pid, flush=True)
time.sleep(60)
"""


def test_a_program_does_not_outlive_one_that_is_killed() -> None:
    with subprocess.Popen([sys.executable, "-c", LEFT], stdout=-1) as process:
        assert process.stdout
        over, left = (int(process.stdout.readline()) for _ in range(2))
        process.kill()
    assert gone(left)
    assert process_groups.is_alive(over)
    process_groups.send(over, signal.SIGKILL)


def started() -> list[asyncio.SubprocessTransport]:
    """All programs that asyncio has started in this process and that something still holds."""
    return [found for found in gc.get_objects() if isinstance(found, asyncio.SubprocessTransport)]


@pytest.mark.parametrize("steps", range(8))
@pytest.mark.parametrize("times", [1, 3, 100_000])
async def test_work_that_is_stopped_as_its_program_starts_leaves_nothing(
    steps: int, times: int, tmp_path: Path
) -> None:
    """At each step of the event loop, however often, and the program is fast: it has a child of its own by then."""
    leader, before = tmp_path / "leader", started()
    work = asyncio.create_task(
        process_groups.start("/bin/sh", "-c", f"sleep 60 & echo $$ >'{leader}'; wait", stdin=subprocess.PIPE)
    )
    for _ in range(steps):
        await asyncio.sleep(0)
    time.sleep(0.1)  # the loop is busy, and the program is not
    for _ in range(times):
        if not work.done():
            work.cancel()
            await asyncio.sleep(0)
    try:
        process = await work
    except asyncio.CancelledError:
        assert None not in {one.get_returncode() for one in started() if one not in before}, "nobody waited for its end"
    else:
        process_groups.send(process.pid, signal.SIGKILL)
        process_groups.ended(process.pid)
        await process.communicate()
    # The shell creates the file before it writes the number.
    number = leader.read_text() if leader.exists() else ""
    assert not number or gone(int(number)), members(int(number))


async def test_one_that_cannot_be_started_does_not_hide_that_the_work_was_stopped() -> None:
    work = asyncio.create_task(process_groups.start("/nowhere/program"))
    await asyncio.sleep(0)
    work.cancel("why")
    with pytest.raises(asyncio.CancelledError, match="why"):
        await work
    with pytest.raises(FileNotFoundError):
        await process_groups.start("/nowhere/program")


@pytest.mark.parametrize(
    ("code", "said"),
    [(3, "ended with exit code 3"), (-9, "was ended by SIGKILL"), (-1_000, "was ended by signal 1000")],
)
def test_how_a_program_ended_is_said_in_words(code: int, said: str) -> None:
    assert process_groups.how_ended(code) == said
