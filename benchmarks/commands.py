"""Measure the start of each command-line program: time and memory of `--version`."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from typing import Any

from benchmarks.environments import Environment, plain_environment

Row = dict[str, Any]
RUNS = 5
LAUNCHER = """
import json, os, sys, time
nowhere = os.open(os.devnull, os.O_RDWR)
files = [(os.POSIX_SPAWN_DUP2, nowhere, number) for number in (0, 1, 2)]
started = time.perf_counter()
process = os.posix_spawnp(sys.argv[1], sys.argv[1:], os.environ, file_actions=files)
_, status, usage = os.wait4(process, 0)
seconds = time.perf_counter() - started
print(json.dumps([seconds, usage.ru_maxrss * 1024, os.waitstatus_to_exitcode(status)]))
"""
"""Started from something small: Linux counts the memory of who starts a process to it (here some 10 MB at most)."""


def commands(environments: Sequence[Environment]) -> Iterator[Row]:
    """Medians; each round starts every program once, so that what else the machine does falls on all."""
    found: dict[str, list[tuple[float, int]]] = {}
    failed: dict[str, str] = {}
    ready = [one for one in environments if one.is_ready and one.peer.command]
    with tempfile.TemporaryDirectory() as home:
        for _ in range(RUNS + 1):
            for one in ready:
                seconds, peak, code = _started([*one.started_by(), "--version"], home)
                if code:
                    failed[one.peer.name] = f"ended with {code}"
                found.setdefault(one.peer.name, []).append((seconds, peak))
    for name, runs in found.items():
        # The first start writes what later ones read.
        seconds, peaks = zip(*runs[1:], strict=True)
        row: Row = {"peer": name, "seconds": statistics.median(seconds), "peak_bytes": statistics.median(peaks)}
        yield {**row, **({"error": failed[name]} if name in failed else {})}


def _started(command: Sequence[str], home: str) -> tuple[float, int, int]:
    """Seconds, peak of memory in bytes, exit code; of a program that cannot be started, its exit code alone."""
    launch = [sys.executable, "-S", "-E", "-c", LAUNCHER, *command]
    done = subprocess.run(launch, check=False, env=plain_environment(home), cwd=home, capture_output=True, text=True)
    if done.returncode:
        return 0.0, 0, done.returncode
    seconds, peak, code = json.loads(done.stdout)
    return seconds, peak, code
