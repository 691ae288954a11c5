"""Ten small edits by the embedded model: how many are right, judged by running the changed code.

    python -m benchmarks.edits [--runs 1] [--verbose]

Each task is a file, a wish, and a check that fails on the file as it is. The weights must be here
(`nca models get qwen2.5-coder-1.5b`). One child process serves all tasks, so the tools are read once.
"""

from __future__ import annotations

import argparse
import asyncio
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from nca.agent.conversation import Conversation
from nca.config.loaded import defaults
from nca.events import Event, ToolFinished
from nca.models.embedded.server import open_embedded
from nca.models.model import Model
from nca.sessions.store import Store

MOST_SECONDS = 300
"""For one task: the model reads 100 tokens a second on two idle cores and writes 20."""


@dataclass(frozen=True, slots=True)
class Task:
    """A file, what to change in it, and code that fails before the change and passes after it."""

    file: str
    text: str
    wish: str
    check: str


TASKS = (
    Task(
        "stats.py",
        "def mean(values):\n    return sum(values) / len(values)\n\n\ndef largest(values):\n    return max(values)\n",
        "mean([]) in stats.py fails. Change the file so that it returns 0.",
        "from stats import *; assert mean([]) == 0 and mean([1, 3]) == 2 and largest([1, 2]) == 2",
    ),
    Task(
        "shop.py",
        "TAX = 0.19\n\n\ndef total(prices):\n    return sum(prices)\n",
        "Change total in shop.py so that it adds TAX to the sum.",
        "from shop import *; assert abs(total([100]) - 119) < 0.01",
    ),
    Task(
        "greet.py",
        'def greet(name):\n    return "Hello " + name\n',
        "In greet.py, rename the function greet to welcome.",
        "import greet; assert greet.welcome('A') == 'Hello A' and not hasattr(greet, 'greet')",
    ),
    Task(
        "config.py",
        "HOST = 'localhost'\nPORT = 8080\nDEBUG = True\n",
        "Set PORT to 9000 in config.py.",
        "import config; assert (config.HOST, config.PORT, config.DEBUG) == ('localhost', 9000, True)",
    ),
    Task(
        "lists.py",
        "def last(items):\n    return items[len(items)]\n\n\ndef first(items):\n    return items[0]\n",
        "Fix the bug in last in lists.py.",
        "from lists import *; assert last([1, 2, 3]) == 3 and first([1, 2]) == 1",
    ),
    Task(
        "words.py",
        "def count(text):\n    return len(text.split(' '))\n",
        "count in words.py counts empty words when there are two spaces. Correct the file.",
        "from words import *; assert count('a  b') == 2 and count('a b c') == 3",
    ),
    Task(
        "area.py",
        "def square(side):\n    return side * side\n",
        "Add a function cube(side) to area.py that returns the volume of a cube.",
        "from area import *; assert cube(2) == 8 and square(3) == 9",
    ),
    Task(
        "temperature.py",
        "def to_fahrenheit(celsius):\n    return celsius * 9 / 5 + 23\n",
        "to_fahrenheit in temperature.py adds the wrong number. Fix it.",
        "from temperature import *; assert to_fahrenheit(100) == 212",
    ),
    Task(
        "users.py",
        "def names(users):\n    found = []\n    for one in users:\n        found += [one['name']]\n    return found\n",
        "Change names in users.py so that the names are sorted.",
        "from users import *; assert names([{'name': 'b'}, {'name': 'a'}]) == ['a', 'b']",
    ),
    Task(
        "parse.py",
        "def number(text):\n    return int(text)\n",
        "number in parse.py fails on text that is no number. Change the file so that it returns None then.",
        "from parse import *; assert number('x') is None and number('7') == 7",
    ),
)


def is_right(task: Task, folder: Path) -> bool:
    """Whether the check passes on the folder's file, in a process of its own."""
    command = [sys.executable, "-B", "-c", task.check]
    return subprocess.run(command, cwd=folder, capture_output=True, timeout=30, check=False).returncode == 0


async def attempt(task: Task, model: Model, folder: Path, *, is_verbose: bool) -> str:
    """What came of one task, in a few words: "right", or how it went wrong.

    The folder is the same for all, because the instructions name it: the model reads them once.
    """
    failed: list[str] = []

    def hear(event: Event) -> None:
        if is_verbose:
            print("   ", str(event)[:300], flush=True)
        if isinstance(event, ToolFinished) and event.is_error:
            failed.append(event.summary)

    with Store.open(None) as store:
        (folder / task.file).write_text(task.text, encoding="utf-8")
        assert not is_right(task, folder), f"the check of {task.file} passes before the change"
        loaded = defaults().with_values({"agent.permission": "accept-edits"}, "the benchmark")
        conversation = Conversation.open(loaded, store=store, model=model, directory=folder, listener=hear)
        try:
            await asyncio.wait_for(conversation.send(task.wish), MOST_SECONDS)
        except TimeoutError:
            failed.append(f"no end after {MOST_SECONDS} s")
        finally:
            await conversation.close(keeps_model=True)
        if is_right(task, folder):
            return "right"
        is_same = (folder / task.file).read_text(encoding="utf-8") == task.text
        return "; ".join(["not changed" if is_same else "changed, but wrong", *failed])


async def measure(runs: int, folder: Path, *, is_verbose: bool) -> None:
    model = await open_embedded("qwen2.5-coder-1.5b")
    right = 0
    try:
        for _ in range(runs):
            for task in TASKS:
                started = time.perf_counter()
                outcome = await attempt(task, model, folder, is_verbose=is_verbose)
                right += outcome == "right"
                print(f"{task.file:<16} {time.perf_counter() - started:5.0f} s  {outcome}", flush=True)
    finally:
        await model.close()
    print(f"{right} of {runs * len(TASKS)} right")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.edits", description=__doc__)
    parser.add_argument("--runs", type=int, default=1, help="how often each task is tried")
    parser.add_argument("--verbose", action="store_true", help="show every event")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(measure(given.runs, Path(folder), is_verbose=given.verbose))


if __name__ == "__main__":
    main()
