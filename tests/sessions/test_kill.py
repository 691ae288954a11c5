"""A writer killed at any moment loses nothing acknowledged, and shows nothing partial."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from pathlib import Path

from nca.context.view import check_partition
from nca.sessions import Store
from tests.sessions.samples import sqlite_of
from tests.testing.forks import standing_code

KILLS = 15

CHILD = """
import os, sys
from pathlib import Path
from nca.context.view import Summary, View
from nca.messages import Message, ToolCall
from nca.sessions import CompactionRecord, Store
from nca.vocabulary import load

load()  # A chat has loaded it behind the prompt.
print(os.getpid(), flush=True)
with Store.open(Path(sys.argv[1])) as store:
    assert not store.notes, store.notes
    latest = store.latest()
    session = store.open_session(latest.id) if latest else store.create(directory="/", model="m")
    head = session.info.messages
    print("open", head, flush=True)
    turn = 0
    while True:
        turn += 1
        head = session.log.append([Message("user", f"question {turn}")])[-1].seq
        print("log", head, flush=True)
        session.log.save_partial(f"partial {turn} " + "x" * 4000)
        print("partial", turn, flush=True)
        calls = tuple(ToolCall(f"{head}-{n}", "f", "{}") for n in range(3))
        head = session.log.append([Message("assistant", f"answer {turn}", tool_calls=calls)])[-1].seq
        print("log", head, flush=True)
        results = [Message("tool", "y" * 5000, tool_call_id=call.id, name="f") for call in calls]
        head = session.log.append(results)[-1].seq
        print("log", head, flush=True)
        if turn % 3 == 0:
            view = View((Summary(f"s{head}", ((1, head - 1),), "summary"),), head)
            print("view", session.views.commit(view, CompactionRecord(trigger="manual")).view_after, flush=True)
        if turn % 7 == 0:
            session.views.undo()
            session.views.redo()
        if turn % 2 == 0:
            head = session.rewinds.append_beside([Message("user", "a question", name="beside")])[-1].seq
            print("log", head, flush=True)
            base, view = session.rewinds.before(head - 5)
            session.views.commit(view, CompactionRecord(trigger="rewind"), parent=base)
            newest = session.rewinds.newest
            base, view = session.rewinds.end_of(newest)
            session.views.commit(view, CompactionRecord(trigger="redo"), parent=base)
"""


def run_and_kill(path: Path, acknowledgements: int, seconds: float) -> dict[str, int]:
    """Let a child work until it has acknowledged so much, and a moment longer; kill it; what it acknowledged."""
    with subprocess.Popen(standing_code(CHILD, str(path)), stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        pid = int(child.stdout.readline())
        lines = [child.stdout.readline()]
        assert lines[0].startswith("open"), "the child could not open the session"
        lines += [child.stdout.readline() for _ in range(acknowledgements)]
        time.sleep(seconds)
        os.kill(pid, signal.SIGKILL)
        lines += child.stdout.readlines()
    acknowledged: dict[str, int] = {}
    for line in lines:
        if line.endswith("\n"):
            kind, number = line.split()
            acknowledged[kind] = int(number)
    return acknowledged


def test_nothing_acknowledged_is_lost(path: Path) -> None:
    rng = random.Random(4)
    last_head = last_view = 0
    for _ in range(KILLS):
        acknowledged = run_and_kill(path, rng.randrange(16), rng.uniform(0.0, 0.01))
        last_head = max(last_head, acknowledged.get("log", 0), acknowledged["open"])
        last_view = max(last_view, acknowledged.get("view", 0))
        with Store.open(path) as store:
            assert store.notes == ()
            assert sqlite_of(store).connection.pragma("integrity_check") == "ok"
            latest = store.latest()
            if latest is None:
                assert last_head == 0
                continue
            with store.open_session(latest.id) as session:
                entries = session.log.entries()
                assert len(entries) >= last_head
                assert [entry.seq for entry in entries] == list(range(1, len(entries) + 1))
                assert max((record.view_after for record in session.views.compactions()), default=0) >= last_view
                view = session.views.current()
                check_partition(view)
                # What is asked beside is never a part of the conversation, not even for a moment.
                assert not any(entry.message.name == "beside" for entry in entries[view.tail - 1 :])
                calls = [call.id for entry in entries for call in entry.message.tool_calls]
                results = [entry.message.tool_call_id for entry in entries if entry.message.role == "tool"]
                assert calls == results
                assert session.log.partial() is None
                last_head = len(entries)
    assert last_head > KILLS
