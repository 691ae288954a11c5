"""Tests that run in several processes are told of as those of one are."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.testing.forks import shared

FILES = {
    "test_fails.py": """
import sys

HELD = sys.stderr

def test_good(): print("nobody reads this")
def test_bad():
    print("said before it failed")
    print("said through what was there at first", file=HELD)
    assert [1] == [2]
""",
    "test_ends.py": """
import os

def test_before(): pass
def test_kills(tmp_path): os._exit(7)
def test_behind(): pass
""",
    **{
        f"test_shares_{number}.py": """
import os, pytest

def test_alone(tmp_path): (tmp_path / "written").touch()
def test_together(made): assert made == os.getpid()
@pytest.mark.skip(reason="as it is")
def test_never(): pass
"""
        for number in range(5)
    },
    "conftest.py": """
import os, pytest
from pathlib import Path

pytest_plugins = ("tests.testing.workers",)

@pytest.fixture(scope="session")
def made():
    with Path("made").open("a") as file:
        print(os.getpid(), file=file)
    yield os.getpid()
    with Path("ended").open("a") as file:
        print(os.getpid(), file=file)
""",
    "pytest.ini": "[pytest]\ntmp_path_retention_policy = failed\n",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def ran(folder: Path, *arguments: str, errors: str = "") -> tuple[str, int]:
    """What pytest wrote, and its exit code."""
    variables = {"PATH": os.environ["PATH"], "TMPDIR": str(folder)}
    command = ("-p", "no:asyncio", "-p", "no:cacheprovider", "--workers", "2", *arguments)
    done = shared().start_module("pytest", *command, env=variables, cwd=folder).wait()
    assert errors in done.stderr if errors else done.stderr == ""
    return done.stdout, done.returncode


def test_each_test_runs_once_and_one_that_ends_its_worker_has_failed(folder: Path) -> None:
    written, code = ran(folder, "-rs")
    assert " 2 failed, 13 passed, 5 skipped" in written, written
    assert code == 1
    assert written.count("\nsaid before it failed\n") == written.count("At index 0 diff: 1 != 2") == 1
    assert "\nsaid through what was there at first\n" in written
    assert "nobody reads this" not in written
    assert written.count("as it is") == 5
    assert "_ test_kills _" in written
    assert "The worker ended here, with exit code 7." in written
    made, ended = (sorted((folder / name).read_text().split()) for name in ("made", "ended"))
    assert made == ended == sorted(set(made))
    assert len(made) <= 3


def test_what_ends_with_the_worker_can_fail_too(folder: Path) -> None:
    for path in folder.glob("test_*"):
        path.unlink()
    (folder / "test_one.py").write_text("""
import pytest

@pytest.fixture(scope="session")
def made():
    yield
    raise ValueError("it did not end")

def test_it(made): pass
""")
    written, code = ran(folder, errors="ValueError: it did not end")
    assert " 1 failed, 1 passed" in written, written
    assert code == 1


def test_all_stop_after_as_many_failures_as_may_be(folder: Path) -> None:
    (folder / "test_ends.py").unlink()
    written, code = ran(folder, "--maxfail", "1")
    assert "stopping after 1 failures" in written, written
    assert "1 failed" in written
    assert code == 1
