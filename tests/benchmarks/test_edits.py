"""The tasks of small edits: every check fails before the change, because of what the task says."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.edits import FURTHER, TASKS, Task, is_right


@pytest.mark.parametrize("task", [*TASKS, *FURTHER], ids=lambda task: task.file)
def test_a_check_fails_before_the_change(task: Task, tmp_path: Path) -> None:
    (tmp_path / task.file).write_text(task.text)
    assert not is_right(task, tmp_path)


def test_a_check_passes_after_the_change(tmp_path: Path) -> None:
    task = next(task for task in TASKS if task.file == "config.py")
    (tmp_path / task.file).write_text(task.text.replace("8080", "9000"))
    assert is_right(task, tmp_path)
    assert len({task.file for task in (*TASKS, *FURTHER)}) == len(TASKS) + len(FURTHER)
