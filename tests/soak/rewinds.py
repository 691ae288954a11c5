"""A program that changes files, takes changes back, and is killed all the time.

`python -m tests.soak.rewinds KILLS SEED FOLDER`. This process opens no database. It forks a child for each step, kills
it at a place where the disk changes or after a moment, and looks at the folder. After each kill, everything that the
session ever did must be taken back to the byte, and brought again. It prints what is wrong; nothing else.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from nca.config.schema import RewindSettings
from nca.file_history.history import FileHistory
from nca.file_history.plan import Choice
from nca.sessions.store import Store
from tests.file_history.world import (
    COMMANDS,
    FOLDERS,
    NAMES,
    Snapshot,
    World,
    can_write,
    line,
    make_tree,
    shell,
    snapshot,
    write,
)
from tests.soak.points import Points

KILLS_IN_A_FOLDER = 20
MOST_PLACES = 45
MOST_SECONDS = 0.05
POLL_SECONDS = 0.001

Step = tuple[str, ...]


class Session:
    """The one session, in the child."""

    def __init__(self, folder: Path, head: int) -> None:
        self.root = folder / "work"
        store = Store.open(folder / "home/sessions.db")
        assert not store.notes, store.notes
        assert store.file_records.take_notes() == ()
        latest = store.list(limit=1)
        name = latest[0].id if latest else store.create(directory="", model="m").info.id
        self.history = FileHistory(store, name, self.root, head=lambda: head, limits=RewindSettings)

    def do(self, step: Step) -> None:
        match step:
            case ("edit", name, text):
                with self.history.recorder.edit(self.root / name, text.encode(), "write_file"):
                    write(self.root, name, text.encode())
            case ("command", command):
                asyncio.run(self._command(command))
            case ("rewind", moment):
                self._rewind(int(moment))
            case ("recover",):
                self.history.changed_since(0)
            case ("verify", first):
                before = snapshot(self.root)
                self._rewind(1)
                now, then = json.loads(_as_text(snapshot(self.root))), json.loads(Path(first).read_text())
                differing = {
                    path: (then.get(path), now.get(path)) for path in then | now if then.get(path) != now.get(path)
                }
                assert not differing, differing
                self.history.apply(self.history.plan_back(self.history.last_rewind()[0]))
                after = snapshot(self.root)
                assert after == before, {
                    p: (before.get(p), after.get(p)) for p in before | after if before.get(p) != after.get(p)
                }
        assert self.history.recorder.take_notices() == []

    async def _command(self, command: str) -> None:
        async with self.history.recorder.command("shell"):
            await asyncio.to_thread(shell, self.root, command)

    def _rewind(self, moment: int) -> None:
        plan = self.history.plan(moment)
        outcome = self.history.apply(plan, Choice(take=frozenset(one.path for one in plan.left if one.is_mixed)))
        assert (outcome.left, outcome.not_stored) == ((), ())


class Driver:
    def __init__(self, folder: Path, seed: int) -> None:
        self._folder, self._random = folder, random.Random(seed)
        self.kills = self._texts = 0
        self.problems: list[str] = []
        self._steps: list[Step] = []

    def run(self, kills: int) -> None:
        while self.kills < kills and not self.problems:
            target = min(kills, self.kills + KILLS_IN_A_FOLDER)
            shutil.rmtree(self._folder, ignore_errors=True)
            self._world = World(self._folder / "work")
            self._world.root.mkdir(parents=True)
            make_tree(self._world.root)
            while self.kills < target and not self.problems:
                self._one()

    def _one(self) -> None:
        world = self._world
        world.begin()
        if world.head == 1:
            (self._folder / "first").write_text(_as_text(world.moments[1]))
        before, step = snapshot(world.root), self._step()
        is_killed = self._child(step, is_killed=True)
        if is_killed:
            self._child(("recover",), is_killed=True)
        self._child(("recover",))
        after = snapshot(world.root)
        if step[0] == "rewind" and after != before and (wrong := world.wrong(int(step[1]), before)):
            self.problems.append(f"{step}: half done: {wrong}")
        if step[0] == "edit" and after.get(step[1]) != before.get(step[1]) and after[step[1]][1] != step[2].encode():
            self.problems.append(f"{step}: half written")
        self._child(("verify", str(self._folder / "first")))

    def _step(self) -> Step:
        chance, root = self._random, self._world.root
        self._texts += 1
        kind = chance.choice(("edit", "command", "command", "rewind"))
        one, other = chance.choices(NAMES, k=2)
        if kind == "rewind":
            return kind, str(chance.randint(1, self._world.head))
        if kind == "edit" and can_write(root, one):
            return kind, one, f"edited {self._texts}\n"
        return "command", line(chance.choice(COMMANDS), str(self._texts), one, other, chance.choice(FOLDERS))

    def _child(self, step: Step, *, is_killed: bool = False) -> bool:
        """Do a step in a child; whether it was killed."""
        chance = self._random
        at_place = chance.randint(1, MOST_PLACES) if is_killed and chance.random() < 0.7 else None
        seconds = chance.uniform(0, MOST_SECONDS) if is_killed and at_place is None else 0.0
        self._steps = [*self._steps[-4:], step]

        def work() -> None:
            points = Points(at_place)
            session = Session(self._folder, self._world.head)
            points.start()
            if seconds:
                signal.setitimer(signal.ITIMER_REAL, seconds)  # its default is to end the process
            session.do(step)

        try:
            is_killed = in_child(work)
        except ChildFailed:
            self.problems.append(f"{step}: the child failed; before it: {self._steps}")
            return False
        self.kills += is_killed
        return is_killed


class ChildFailed(Exception):
    """It ended with an error of its own, which it has printed."""


def in_child(work: Callable[[], None]) -> bool:
    """Do it in a forked process; whether that was killed. Raises ChildFailed."""
    child = os.fork()
    if child == 0:
        os.setsid()
        _work(work)
    _, status = os.waitpid(child, 0)
    _end_group(child)
    killed_by = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    if killed_by not in (0, signal.SIGKILL, signal.SIGALRM) or (not killed_by and status):
        raise ChildFailed
    return bool(killed_by)


def _work(step: Callable[[], None]) -> None:
    """In the child, which never returns."""
    try:
        step()
        os._exit(0)
    except BaseException:  # noqa: BLE001  the child must never go on as its parent
        traceback.print_exc()
        os._exit(1)


def _end_group(group: int) -> None:
    """As nca's guard does: what a killed nca had started is killed as well."""
    while True:
        try:
            os.killpg(group, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            return
        time.sleep(POLL_SECONDS)


def _as_text(found: Snapshot) -> str:
    return json.dumps({path: (mode, content.hex()) for path, (mode, content) in sorted(found.items())})


def main() -> None:
    kills, seed, folder = int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
    driver = Driver(folder / "world", seed)
    driver.run(kills)
    for problem in driver.problems:
        sys.stdout.write(f"seed {seed}, after {driver.kills} kills: {problem}\n")


if __name__ == "__main__":
    main()
