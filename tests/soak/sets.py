"""A program that takes many files back and forward and is killed: the next start leaves all of them old, or all new.

`python -m tests.soak.sets KILLS FILES SEED FOLDER [git]`. This process opens no database. It forks a child that goes
back or forward, kills it at a place where the disk changes or after a moment, and then does what a start of nca does.
It prints what is wrong; then how many were killed, and how many of these in the middle.
"""

from __future__ import annotations

import random
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from nca.config.schema import RewindSettings
from nca.file_history.history import FileHistory
from nca.sessions.file_record import Change
from nca.sessions.store import Store
from tests.soak.points import Points
from tests.soak.rewinds import in_child

MOST_SECONDS = 1.5


class Folder:
    """Files of which the odd ones are changed, deleted or made, and the moments before and after."""

    def __init__(self, folder: Path, count: int, *, has_git: bool) -> None:
        self.folder, self.root = folder, folder / "work"
        self.root.mkdir(parents=True)
        self._names = [f"d{number % 7}/e{number % 3}/f{number}" for number in range(count)]
        if has_git:
            subprocess.run(["git", "init", "-q", "."], cwd=self.root, check=True)
        self._write("old", 0, (1, 2, 3))
        self.old = self.seen()
        in_child(self._record)
        self.new = self.seen()
        assert len(self.old) > 0.6 * count < len(self.new)

    def _write(self, text: str, gone: int, kinds: tuple[int, ...]) -> None:
        for number, name in enumerate(self._names):
            path = self.root / name
            if number % 4 in kinds:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(f"{text} {number}\n")
            elif number % 4 == gone:
                path.unlink(missing_ok=True)

    def _record(self) -> None:
        """As a command would: of four files one is made, one deleted, two are changed."""
        history = self.history()
        recorder = history.recorder
        recorder.begin()
        recorder._look_first()
        running = history.record.begin_command(1, "shell")
        recorder._running.append(running)
        self._write("new", 1, (0, 2, 3))
        recorder._look("")
        history.record.end_command(running)

    def history(self) -> FileHistory:
        store = Store.open(self.folder / "home/sessions.db")
        latest = store.list(limit=1)
        name = latest[0].id if latest else store.create(directory="", model="m").info.id
        return FileHistory(store, name, self.root, head=lambda: 1, limits=RewindSettings)

    def seen(self) -> dict[str, str]:
        return {name: path.read_text() for name in self._names if (path := self.root / name).exists()}

    def go(self, *, back: bool) -> None:
        history = self.history()
        plan = history.plan(1) if back else history.plan_back(history.last_rewind()[0])
        outcome = history.apply(plan)
        assert outcome.left == outcome.blocked == (), outcome

    def start(self) -> None:
        self.history().recorder.begin()

    def unfinished(self) -> list[Change]:
        return self.history().record.unfinished()


def main() -> None:
    kills, count, seed = (int(one) for one in sys.argv[1:4])
    rng, work, killed, mixed = random.Random(seed), Path(sys.argv[4]), 0, 0
    shutil.rmtree(work, ignore_errors=True)
    folder = Folder(work, count, has_git="git" in sys.argv[5:])
    is_old = False
    while killed < kills:
        at_place = rng.randint(1, 8 * count + 40) if rng.random() < 0.6 else None
        seconds = rng.uniform(0, MOST_SECONDS) if at_place is None else 0.0
        back = not is_old

        def go(back: bool = back, at_place: int | None = at_place, seconds: float = seconds) -> None:
            points = Points(at_place)
            points.start()
            if seconds:
                signal.setitimer(signal.ITIMER_REAL, seconds)  # its default is to end the process
            folder.go(back=back)

        is_killed = in_child(go)
        seen = folder.seen()
        mixed += is_killed and seen not in (folder.old, folder.new)
        killed += is_killed
        in_child(folder.start)
        seen = folder.seen()
        if seen not in (folder.old, folder.new):
            wrong = sum(seen.get(name) != text for name, text in folder.old.items())
            sys.stdout.write(f"seed {seed}, kill {killed}: {wrong} of {count} files are not as the others\n")
            return
        is_old = seen == folder.old
        left = list(folder.root.rglob(".nca-*"))
        if left:
            sys.stdout.write(f"seed {seed}, kill {killed}: {len(left)} temporary files stay\n")
            return
    sys.stdout.write(f"{killed} kills, {mixed} in the middle\n")


if __name__ == "__main__":
    main()
