"""A whole task in a git repository through `nca run`: find the failure, read, edit, run, report, and compact."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nca.testing.provider import Provider
from nca.testing.scripted import Answer, is_summary_request, prose
from tests.testing.forks import forked

WINDOW_TOKENS = 8_000
CHAPTERS = 20

PROGRAM = '''"""Adds up what an order costs."""


def total(prices: list[int], discount: int) -> int:
    """The sum, less the discount, never below nothing."""
    return sum(prices) + discount
'''
TEST = """import unittest

from shop import total


class TotalTest(unittest.TestCase):
    def test_a_discount_is_taken_off(self):
        self.assertEqual(total([40, 2], 2), 40)


unittest.main()
"""


def repository(root: Path) -> Path:
    root.mkdir()
    (root / "shop.py").write_text(PROGRAM)
    (root / "test_shop.py").write_text(TEST)
    (root / "notes").mkdir()
    for number in range(CHAPTERS):
        line = f"Chapter {number} tells of order {number * 37} and why nothing in it is wrong.\n"
        (root / "notes" / f"chapter_{number}.md").write_text(line * 60)
    for command in (
        ["init", "-q"],
        ["add", "."],
        ["-c", "user.name=t", "-c", "user.email=t@t", "commit", "-qm", "all"],
    ):
        subprocess.run(["git", *command], cwd=root, check=True, capture_output=True)
    return root


class Worker:
    """Does what an agent would do, step by step, and looks at what came back where it matters."""

    def __init__(self) -> None:
        run = ("shell", {"command": f"{sys.executable} test_shop.py"})
        reading = [("read_file", {"path": f"notes/chapter_{number}.md"}) for number in range(CHAPTERS)]
        fix = {"path": "shop.py", "old_text": "sum(prices) + discount", "new_text": "max(0, sum(prices) - discount)"}
        self.steps: list[tuple[str, Mapping[str, Any]]] = [
            ("grep", {"pattern": "discount", "path": "."}),
            run,
            *reading,
            ("read_file", {"path": "shop.py"}),
            ("edit_file", fix),
            run,
            ("shell", {"command": "git diff --stat"}),
        ]
        self.seen: list[str] = []

    def __call__(self, request: dict[str, Any]) -> Answer | str:
        if is_summary_request(request):
            return prose(request)
        last = request["messages"][-1]
        if last["role"] == "tool":
            self.seen.append(str(last["content"]))
        if len(self.seen) < len(self.steps):
            return Answer(tool_calls=[self.steps[len(self.seen)]])
        return f"Done. The tests say: {'OK' if 'OK' in self.seen[-2] else 'no'}."


def test_a_task_of_many_steps_is_carried_out_while_the_context_is_compacted(tmp_path: Path) -> None:
    root = repository(tmp_path / "shop")
    worker = Worker()
    with Provider(worker, window_tokens=WINDOW_TOKENS) as provider:
        keys: dict[str, Any] = {"OPENAI_API_KEY": "k", "OPENAI_API_BASE": provider.url}
        done = forked(
            *("run", "The tests fail; find out why, mend it, and report.", "-m", "openai/test-model"),
            *(
                "--context-window",
                str(WINDOW_TOKENS),
                "--permission",
                "auto",
                "--max-steps",
                "40",
                "--stream",
                "ndjson",
            ),
            home=tmp_path,
            cwd=root,
            **keys,
        )
        assert provider.overflows == []
    assert done.returncode == 0, done.stderr
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert "FAILED" in worker.seen[1], "it did fail before"
    assert events[-1]["text"] == "Done. The tests say: OK."
    assert "max(0, sum(prices) - discount)" in (root / "shop.py").read_text()
    assert "shop.py" in worker.seen[-1]
    assert events[-1]["steps"] == len(worker.steps) + 1
    completed = [one for one in events if one["type"] == "context_compaction" and one["phase"] == "completed"]
    assert len(completed) >= 3
    assert all(one["tokens_after"] < one["tokens_before"] for one in completed)


def test_without_a_permission_nothing_is_changed_and_the_exit_code_says_so(tmp_path: Path) -> None:
    root = repository(tmp_path / "shop")
    with Provider(Worker(), window_tokens=32_000) as provider:
        keys: dict[str, Any] = {"OPENAI_API_KEY": "k", "OPENAI_API_BASE": provider.url}
        words = ("run", "Mend it.", "-m", "openai/test-model", "--context-window", "32000", "--max-steps", "40")
        done = forked(*words, home=tmp_path, cwd=root, **keys)
    assert done.returncode == 1
    assert "--permission" in done.stderr
    assert (root / "shop.py").read_text() == PROGRAM
