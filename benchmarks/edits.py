"""Ten small edits by the embedded model: how many are right, judged by running the changed code.

    python -m benchmarks.edits [--runs 1] [--further] [--verbose]

Each task is a file, a wish, and a check that fails on the file as it is. `--further` takes six others, whose results
nobody looked at while the model's instructions and its edit_file were written. The weights must be here
(`nca models get qwen2.5-coder-1.5b`). One child process serves all tasks, so the tools are read once.
"""

from __future__ import annotations

import argparse
import asyncio
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
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


FURTHER = (
    Task(
        "inventory.py",
        "from dataclasses import dataclass, field\n\n\n"
        "@dataclass\nclass Item:\n    name: str\n    price: float\n    count: int = 0\n\n\n"
        "@dataclass\nclass Inventory:\n    items: dict[str, Item] = field(default_factory=dict)\n\n"
        "    def add(self, item: Item) -> None:\n        self.items[item.name] = item\n\n"
        "    def remove(self, name: str) -> None:\n        del self.items[name]\n\n"
        "    def value(self) -> float:\n        return sum(item.price for item in self.items.values())\n\n"
        "    def names(self) -> list[str]:\n        return sorted(self.items)\n",
        "value in inventory.py forgets the count of each item. Fix it.",
        "from inventory import *; i = Inventory(); i.add(Item('a', 2.0, 3)); i.add(Item('b', 1.0, 4));"
        "assert i.value() == 10 and i.names() == ['a', 'b']",
    ),
    Task(
        "settings.toml",
        '[server]\nhost = "127.0.0.1"\nport = 8000\n\n[log]\nlevel = "info"\nfile = "app.log"\n',
        "In settings.toml, change the log level to debug.",
        "import tomllib; d = tomllib.load(open('settings.toml', 'rb'));"
        "assert d['server'] == {'host': '127.0.0.1', 'port': 8000};"
        "assert d['log'] == {'level': 'debug', 'file': 'app.log'} and len(d) == 2",
    ),
    Task(
        "clock.py",
        "def seconds(hours, minutes):\n    return hours * 3600 + minutes * 60\n\n\n"
        "def describe(hours, minutes):\n    return str(hours) + ':' + str(minutes)\n",
        "describe in clock.py must show two digits for the minutes, so that describe(7, 5) gives '7:05'. Change it.",
        "from clock import *; assert describe(7, 5) == '7:05' and describe(12, 30) == '12:30';"
        "assert seconds(1, 1) == 3660",
    ),
    Task(
        "queue_.py",
        "class Queue:\n    def __init__(self):\n        self.items = []\n\n"
        "    def push(self, item):\n        self.items.append(item)\n\n"
        "    def pop(self):\n        return self.items.pop(0)\n",
        "Add a method size to the class Queue in queue_.py that returns how many items it has.",
        "from queue_ import Queue; q = Queue(); assert q.size() == 0; q.push(1); q.push(2);"
        "assert q.size() == 2 and q.pop() == 1 and q.size() == 1",
    ),
    Task(
        "path.py",
        "import os\n\n\ndef extension(name):\n    return name.split('.')[1]\n\n\n"
        "def folder(path):\n    return os.path.dirname(path)\n",
        "extension('a.b.txt') in path.py returns 'b', but it should return 'txt'. Correct the function.",
        "from path import *; assert extension('a.b.txt') == 'txt' and extension('x.py') == 'py';"
        "assert folder('/a/b') == '/a'",
    ),
    Task(
        "grades.py",
        "def grade(points):\n    if points > 90:\n        return 'A'\n"
        "    if points > 75:\n        return 'B'\n    return 'C'\n",
        "Change grade in grades.py: fewer than 50 points must give 'F'.",
        "from grades import grade; assert [grade(x) for x in (95, 80, 60, 50, 49, 0)] == list('ABCCFF')",
    ),
)
"""Kept back: a gain on the ten may come from looking at them."""


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


async def measure(tasks: Sequence[Task], runs: int, folder: Path, *, is_verbose: bool) -> None:
    model = await open_embedded("qwen2.5-coder-1.5b")
    try:
        for run in range(1, runs + 1):
            right = 0
            for task in tasks:
                started = time.perf_counter()
                outcome = await attempt(task, model, folder, is_verbose=is_verbose)
                right += outcome == "right"
                print(f"{task.file:<16} {time.perf_counter() - started:5.0f} s  {outcome}", flush=True)
            print(f"Run {run}: {right} of {len(tasks)} right", flush=True)
    finally:
        await model.close()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.edits", description=__doc__)
    parser.add_argument("--runs", type=int, default=1, help="how often each task is tried")
    parser.add_argument("--further", action="store_true", help="try the six tasks that were kept back")
    parser.add_argument("--verbose", action="store_true", help="show every event")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        tasks = FURTHER if given.further else TASKS
        asyncio.run(measure(tasks, given.runs, Path(folder), is_verbose=given.verbose))


if __name__ == "__main__":
    main()
