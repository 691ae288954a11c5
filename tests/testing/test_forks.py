"""A stand-in is to its parent what the program itself would be: streams, directory, exit code, signals, death."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.testing.forks import standing

PROGRAM = """
import json, os, signal, sys, time

signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))
print(json.dumps([os.getpid(), os.getcwd(), dict(os.environ), sys.argv]), flush=True)
for line in sys.stdin:
    print(line.upper(), end="", flush=True)
    if line == "end\\n":
        sys.exit(3)
    if line == "kill\\n":
        os.kill(os.getpid(), signal.SIGKILL)
print("no more", file=sys.stderr)
time.sleep(0 if sys.argv[1:] == ["leave"] else 600)
"""


def started(folder: Path, *arguments: str, in_earnest: bool = False) -> subprocess.Popen[str]:
    (folder / "a_program.py").write_text(PROGRAM)
    command = [sys.executable, "-m", "a_program", *arguments] if in_earnest else standing("a_program", *arguments)
    env = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "ODD": "§\n=x"}
    return subprocess.Popen(command, stdin=-1, stdout=-1, stderr=-1, text=True, encoding="utf-8", cwd=folder, env=env)


@pytest.mark.parametrize(
    ("written", "arguments", "code"), [("end\n", (), 3), ("kill\n", (), -9), ("one\n", ("leave",), 0)]
)
def test_it_reads_writes_and_ends_as_the_program_does(
    tmp_path: Path, written: str, arguments: tuple[str, ...], code: int
) -> None:
    found = []
    for in_earnest in (True, False):
        with started(tmp_path, *arguments, in_earnest=in_earnest) as process:
            out, errors = process.communicate(written)
        first, *lines = out.splitlines(keepends=True)
        _, directory, variables, argv = json.loads(first)
        found.append((directory, variables, argv[1:], lines, errors, process.returncode))
    assert found[0] == found[1]
    assert found[0][3:] == ([written.upper()], "" if code else "no more\n", code)


def test_a_signal_reaches_the_program_and_a_kill_takes_it_along(tmp_path: Path) -> None:
    with started(tmp_path) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        assert process.wait() == 7
    with started(tmp_path) as process:
        assert process.stdout is not None
        pid = json.loads(process.stdout.readline())[0]
        assert pid != process.pid
        process.kill()
        assert process.wait() == -9
        assert process.stdout.read() == "", "nobody holds its output any more"
        while Path(f"/proc/{pid}").exists():
            time.sleep(0.01)
