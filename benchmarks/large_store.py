"""Measure what a person does in a store of 10,000 sessions, one of 200,000 messages: python -m benchmarks.large_store

Every command is a whole `nca` process on a real store, so what is measured is what a person does, in seconds of the
processor: other work on the machine leaves these alone. The long session came from elsewhere: it was never compacted,
and nothing in it was counted. Beside it stands the same in a store of ten sessions of a hundred messages.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.growth import DIRECTORIES, MESSAGES_A_SESSION
from benchmarks.growth_probe import opened, scripted
from benchmarks.growth_sessions import MODEL
from benchmarks.sessions import generated
from nca.messages import Entry
from nca.sessions import Store
from nca.sessions.transfer import new_copy

SMALL, LARGE = (10, 100), (10_000, 200_000)
"""Sessions of a store, and messages of its longest one."""
RUNS = 5
MOST_GROWTH = 1.5
"""The goal: each takes at most so many times what it takes in a small store."""
CHAT_MODEL = "anthropic/claude-sonnet-4"
"""With a window of 200,000 tokens. It is never asked."""
QUESTION = "which message says budget before window"
_POOL = 10_000
_TURN = 6

Figures = dict[str, Any]


def make(folder: Path, sessions: int, messages: int) -> str:
    """A store with so many short sessions and one long one; gives that one's id."""
    with Store.open(folder / "data" / "sessions.db") as store:
        short = [Entry(seq, message) for seq, message in enumerate(generated(MESSAGES_A_SESSION), 1)]
        for number in range(sessions - 1):
            store.add(new_copy(short, directory=f"/project/{number % DIRECTORIES}", model=MODEL))
        system, *talk = generated(min(messages, _POOL))
        whole = talk[: len(talk) - len(talk) % _TURN] or talk
        entries = [Entry(1, system), *(Entry(seq, whole[(seq - 2) % len(whole)]) for seq in range(2, messages + 1))]
        return store.add(new_copy(entries, directory="/project", model=MODEL)).id


def measured(folder: Path, session: str) -> Figures:
    """Seconds of the processor for each command, the median of RUNS.

    first_resume   the first of all, which puts what is more than the window holds behind a marker
    first_message  in a process that has answered another one already; once, since it compacts the long session
    memory_bytes   the most that this process took
    """
    chat = ("loop", "--resume", session, "-m", CHAT_MODEL)
    works: Mapping[str, tuple[tuple[str, ...], str]] = {
        "start": (("loop", "-m", CHAT_MODEL), "/exit\n"),
        "list": (("sessions", "list"), ""),
        "search": (("sessions", "search", QUESTION), ""),
        "search_messages": (("sessions", "search", "--all", QUESTION), ""),
        "resume": (chat, "/exit\n"),
        "context": (chat, "/context\n"),
    }
    opening = _seconds(folder, *works["resume"])
    found = {name: statistics.median(_seconds(folder, *work) for _ in range(RUNS)) for name, work in works.items()}
    first = json.loads(_run(folder, ("-m", "benchmarks.large_store", "--first", str(folder), session)).stdout)
    return {"first_resume": opening, **found, **first}


def first_message(folder: Path, session: str) -> Figures:
    """Open the long session and answer one message in it, which compacts it."""

    async def answered() -> float:
        with Store.open(
            folder / "warm.db"
        ) as warm:  # what the first conversation of a process loads is not the session's
            conversation = opened(warm, None, folder)
            await conversation.send("Hello.")
            await conversation.close()
        with Store.open(folder / "data" / "sessions.db") as store:
            started = time.process_time()
            conversation = opened(store, session, folder, scripted())
            finished = await conversation.send("And now?")
            took = time.process_time() - started
            if finished.reason != "answered":
                raise RuntimeError(f"the first message ended as {finished.reason}")
            await conversation.close()
            return took

    took = asyncio.run(answered())
    return {"first_message": took, "memory_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}


def _seconds(folder: Path, arguments: tuple[str, ...], typed: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    _run(folder, ("-m", "nca", *arguments), typed)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _run(folder: Path, arguments: tuple[str, ...], typed: str = "") -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "NCA_HOME": str(folder), "ANTHROPIC_API_KEY": "none"}
    command = [sys.executable, *arguments]
    done = subprocess.run(command, input=typed, capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(arguments)}: {(done.stderr or done.stdout).strip().splitlines()[-1]}")
    return done


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.large_store", description=__doc__)
    parser.add_argument("--json", type=Path, help="write the figures there")
    parser.add_argument("--first", nargs=2, metavar=("FOLDER", "SESSION"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.first:
        print(json.dumps(first_message(Path(given.first[0]), given.first[1])))
        return
    found = {}
    for name, (sessions, messages) in {"small": SMALL, "large": LARGE}.items():
        with tempfile.TemporaryDirectory() as folder:
            found[name] = measured(Path(folder), make(Path(folder), sessions, messages))
    ratios = {name: found["large"][name] / value for name, value in found["small"].items()}
    for name, value in found["small"].items():
        shown = [
            f"{one / 2**20:,.0f} MB" if name.endswith("_bytes") else f"{one:.3f} s"
            for one in (value, found["large"][name])
        ]
        print(f"{name:16} {shown[0]:>10} {shown[1]:>10}  x {ratios[name]:.2f}  (goal {MOST_GROWTH})")
    if given.json is not None:
        given.json.write_text(json.dumps({**found, "ratios": ratios}, indent=2) + "\n")


if __name__ == "__main__":
    main()
