"""What the record of files costs a command, in a workspace of 20,000 files: python -m benchmarks.recording

The first command waits for the first look at the workspace, which a chat takes in the background of its first turn.
Both the time that passes and the processor's are printed, in milliseconds: other programs lengthen only the former.
"""

from __future__ import annotations

import asyncio
import random
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from nca.config.schema import RewindSettings
from nca.file_history.history import FileHistory
from nca.sessions.store import Store

FILES, FOLDERS, FILE_CHARS, CHANGED, ROUNDS = 20_000, 400, 6_100, 20, 9
SETTLE_SECONDS = 2.1
"""Files that changed less than 2 seconds ago are read twice; those of a workspace seldom did."""
_WORDS = ("self", "return", "def", "import", "class", "value", "none", "true", "path", "name", "list", "for", "in")

Times = tuple[float, float]
"""Milliseconds that passed, and of the processor."""


def recording() -> dict[str, Times]:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "work"
        _make_tree(root)
        time.sleep(SETTLE_SECONDS)
        with Store.open(Path(folder) / "home/sessions.db") as store:
            history = FileHistory(store, "recorded", root, head=lambda: 1, limits=RewindSettings)
            found = {
                "first look": _timed(lambda: _command(history, lambda: None)),
                "nothing changed": _median(lambda _: _command(history, lambda: None)),
                f"{CHANGED} files changed": _median(lambda number: _command(history, lambda: _change(root, number))),
                "plan to go back": _timed(lambda: history.plan(0)),
            }
            plan = history.plan(0)
            return found | {"go back": _timed(lambda: history.apply(plan))}


def _make_tree(root: Path) -> None:
    """Files that pack like sources."""
    chance = random.Random(1)
    for folder in range(FOLDERS):
        (root / f"package{folder}").mkdir(parents=True)
    for number in range(FILES):
        words = " ".join(chance.choices(_WORDS, k=40))
        text = "".join(f"{words[at:]}{chance.random()}\n" for at in range(0, 120, 2))
        (root / f"package{number % FOLDERS}/module{number}.py").write_text(text[:FILE_CHARS])


def _command(history: FileHistory, work: Callable[[], None]) -> None:
    async def run() -> None:
        async with history.recorder.command("shell"):
            work()

    asyncio.run(run())


def _change(root: Path, number: int) -> None:
    for place in range(CHANGED):
        (root / f"package{place}/module{place}.py").write_text(f"changed {number} {place}\n" * 200)


def _median(work: Callable[[int], None]) -> Times:
    passed, used = zip(*(_timed(lambda number=number: work(number)) for number in range(ROUNDS)), strict=True)
    return statistics.median(passed), statistics.median(used)


def _timed(work: Callable[[], object]) -> Times:
    passed, used = time.perf_counter(), time.process_time()
    work()
    return (time.perf_counter() - passed) * 1000, (time.process_time() - used) * 1000


if __name__ == "__main__":
    for what, (passed, used) in recording().items():
        print(f"{what:18} {passed:7,.0f} ms   processor {used:7,.0f} ms")
