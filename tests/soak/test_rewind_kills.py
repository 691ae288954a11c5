"""Killed at any place while it records files and goes back: nothing is lost, and no rewind stays half done.

`make soak` kills 2,000 times (NCA_SOAK_KILLS).
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

USUAL_KILLS = 16
KILLS = int(os.environ.get("NCA_SOAK_KILLS") or USUAL_KILLS)
ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.timeout(0 if KILLS > USUAL_KILLS else 600)


def test_everything_can_be_taken_back_after_any_kill(folder: Path) -> None:
    seed = os.environ.get("NCA_SOAK_SEED") or str(time.time_ns() % 10**9)
    command = [sys.executable, "-m", "tests.soak.rewinds", str(KILLS), seed, str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, ""), f"seed {seed}: {done.stdout}{done.stderr}"


@pytest.mark.parametrize(("files", "git"), [(67, ()), (67, ("git",)), (2_000, ())])
def test_a_set_of_files_is_wholly_one_or_the_other_after_the_next_start(
    folder: Path, files: int, git: tuple[str, ...]
) -> None:
    seed = os.environ.get("NCA_SOAK_SEED") or str(time.time_ns() % 10**9)
    kills = max(2, KILLS * 5 // (10 if files < 1_000 else 100))
    command = [sys.executable, "-m", "tests.soak.sets", str(kills), str(files), seed, str(folder / "set"), *git]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout.startswith(f"{kills} kills, "), f"{done.stdout}{done.stderr}"
    assert done.returncode == 0
