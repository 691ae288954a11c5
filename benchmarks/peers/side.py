"""The program's side: an adapter is a script that reads a task and writes an answer, both JSON, in its environment.

Needs nothing but the standard library, since what else there is differs from peer to peer. A compaction is timed twice:
from dicts to dicts, with bringing them into the peer's shape and back, and of messages that have that shape already.
Neither the start nor reading the file is timed.

A case that needs `most_seconds` of the processor, and as long by the clock, is lost. Where other work on the machine
takes the processor it may take PATIENCE times as long by the clock; then it is not known what it would have needed.

Task    {"op", "variant", "summary", "runs", "most_seconds", "cases"}; a case is {"file", "window_tokens",
        "budget_tokens", "target_tokens", "trigger_tokens"}, and what else its op needs
Answer  {"answers": one a case}, each what the op says or {"error": why}
"""

from __future__ import annotations

import copy
import gc
import json
import resource
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

Row = dict[str, Any]
FROM_DICTS, NATIVE = "from dicts", "native"
"""What is timed: a compaction from dicts to dicts, and one of messages that have the peer's own form already."""
ENOUGH_SECONDS = 2.0
"""After so long nothing is repeated."""
PATIENCE = 10
SHORTEST_WAIT_SECONDS = 0.05
NO_END = "no end in"
"""How the error begins that says nothing of the program."""


class OutOfTime(BaseException):
    """No Exception, which some peers catch and go on."""


class Adapter:
    """What a peer does. Native messages are whatever the peer works on."""

    variants: tuple[str, ...] = ("",)
    each_request: tuple[str, ...] = ()
    """Variants that are made to be called before every request, with the whole history."""
    counter = ""
    """Whose counter the peer's own numbers come from."""

    def native(self, rows: list[Row]) -> Any:
        raise NotImplementedError

    def plain(self, native: Any) -> list[Row]:
        raise NotImplementedError

    def compact(self, native: Any, task: Row) -> Any:
        raise NotImplementedError

    def from_dicts(self, rows: list[Row], task: Row) -> list[Row]:
        """The whole way for who has dicts and wants dicts: nothing is known of the messages before."""
        return self.plain(self.compact(self.native(rows), task))

    def count(self, native: Any) -> int:
        raise NotImplementedError

    def first_estimate(self, native: Any, model: str) -> int:
        """The count for a model that has reported nothing yet."""
        return self.count(native)

    def check(self, native: Any, task: Row) -> Any:
        """What is asked before every request, of a history that it was asked of before."""
        return self.count(native)

    def is_overflow(self, error: Row) -> bool:
        raise NotImplementedError

    def replayed(self, task: Row) -> Replayed:
        return Replayed(self, task)


class Replayed:
    """An agent's working list: compacted when it is too full, and that is what the next request begins with."""

    def __init__(self, adapter: Adapter, task: Row) -> None:
        self.adapter, self.task, self.rows = adapter, task, []
        self.compactions = 0

    def append(self, row: Row) -> None:
        self.rows.append(row)

    def request(self) -> list[Row]:
        task = self.task
        native = self.adapter.native(self.rows)
        if self.adapter.count(native) <= task["trigger_tokens"]:
            return list(self.rows)
        self.compactions += 1
        if task["variant"] in self.adapter.each_request:
            target = {**task, "target_tokens": task["budget_tokens"]}
            return self.adapter.plain(self.adapter.compact(native, target))
        self.rows = self.adapter.plain(self.adapter.compact(native, task))
        return list(self.rows)


def serve(adapter: Adapter) -> None:
    """`adapter.py TASK ANSWER`: both are files."""
    task = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    answers = [_answered(adapter, {**task, **case}) for case in task["cases"]]
    Path(sys.argv[2]).write_text(json.dumps({"answers": answers}), encoding="utf-8")


def _answered(adapter: Adapter, task: Row) -> Row:
    most = task["most_seconds"]
    begun, used_before = time.monotonic(), time.process_time()

    def look(*_: object) -> None:
        passed, used = time.monotonic() - begun, time.process_time() - used_before
        if used >= most:
            raise OutOfTime(f"more than {most:.0f} s")
        if passed >= PATIENCE * most:
            raise OutOfTime(f"{NO_END} {passed:.0f} s, {used:.0f} s of them on the processor")
        signal.setitimer(signal.ITIMER_REAL, max(most - used, SHORTEST_WAIT_SECONDS))

    signal.signal(signal.SIGALRM, look)
    signal.setitimer(signal.ITIMER_REAL, most)
    try:
        return dict(OPS[task["op"]](adapter, task))
    except OutOfTime as error:
        return {"error": str(error)[:120]}
    except Exception as error:  # noqa: BLE001 - whatever a peer raises is what is reported of it
        traceback.print_exc()
        return {"error": f"{type(error).__name__}: {error}".splitlines()[0][:160]}
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def read_rows(path: str) -> list[Row]:
    """Messages whose long texts stand in a pool; keys with an underscore are notes."""
    held = json.loads(Path(path).read_text(encoding="utf-8"))
    pool = held["pool"]
    rows = []
    for row in held["messages"]:
        content = row.get("content")
        if isinstance(content, dict):
            row["content"] = pool[content["$"]]
        rows.append(row)
    return rows


def is_error(row: Row) -> bool:
    """Whether a result is marked as failed, for peers that have a place for it."""
    return bool(row.get("_error"))


def plain_row(row: Row) -> Row:
    """Without notes: what a provider is sent."""
    return {key: value for key, value in row.items() if not key.startswith("_")}


def _compact(adapter: Adapter, task: Row) -> Row:
    """One compaction: the messages that come out, the peer's own counts, and whether its input was changed."""
    rows = read_rows(task["file"])
    native = adapter.native(rows)
    before = adapter.count(native)
    kept = copy.deepcopy(native)
    result = adapter.compact(native, task)
    return {
        "messages": adapter.plain(result),
        "tokens_before": before,
        "tokens_after": adapter.count(result),
        "mutated": adapter.plain(native) != adapter.plain(kept),
        "counter": adapter.counter,
    }


def _time(adapter: Adapter, task: Row) -> Row:
    """Seconds of what is in `times`, and the peak of memory; a native one is of a check and of a compaction.

    The first compaction from dicts is the first thing that the process does: nothing is cached or compiled.
    """
    found: Row = {}
    if FROM_DICTS in task["times"]:
        seconds, rows = _repeated(lambda rows: adapter.from_dicts(rows, task), lambda: read_rows(task["file"]), task)
        found |= {"from_dicts_seconds": seconds, "tokens_after": adapter.count(adapter.native(rows))}
    if NATIVE in task["times"]:
        native = adapter.native(read_rows(task["file"]))
        gc.collect()
        gc.freeze()
        adapter.check(native, task)
        found["check_seconds"] = _times(lambda: adapter.check(native, task), task["runs"])
        if found["check_seconds"][0] > task["most_seconds"] / 4:
            return {**found, "error": f"a single check takes {found['check_seconds'][0]:.1f} s"}
        found["seconds"], result = _repeated(
            lambda fresh: adapter.compact(fresh, task), lambda: copy.copy(native), task
        )
        found["tokens_after"] = adapter.count(result)
    return {**found, "peak_bytes": peak_bytes()}


def _repeated(work: Callable[[Any], Any], prepared: Callable[[], Any], task: Row) -> tuple[list[float], Any]:
    """Seconds of each run, without preparing it, and the last result; at least one run, at most `runs`."""
    seconds: list[float] = []
    result = None
    while len(seconds) < task["runs"] and sum(seconds) < ENOUGH_SECONDS:
        given = prepared()
        gc.collect()
        begun = time.perf_counter()
        result = work(given)
        seconds.append(time.perf_counter() - begun)
    return seconds, result


def peak_bytes() -> int:
    """The most memory that this process had. Linux counts who started it into ru_maxrss too, so not that there."""
    status = Path("/proc/self/status")
    if status.is_file():
        line = next(line for line in status.read_text(encoding="utf-8").splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _times(work: Any, runs: int) -> list[float]:
    """Each the mean of some calls, so that what takes microseconds can be told."""
    begun = time.perf_counter()
    work()
    once = time.perf_counter() - begun
    calls = max(1, min(200, int(0.01 / max(once, 1e-7))))
    found = []
    for _ in range(runs if once < 1 else 1):
        begun = time.perf_counter()
        for _ in range(calls):
            work()
        found.append((time.perf_counter() - begun) / calls)
    return found


def _replay(adapter: Adapter, task: Row) -> Row:
    """A session, request by request: every message once in `pool`, of each request the places of its messages there."""
    replayed, pool = adapter.replayed(task), dict[str, int]()
    requests = []
    for row in read_rows(task["file"]):
        if row["role"] == "assistant":
            parts = [json.dumps(plain_row(one), sort_keys=True) for one in replayed.request()]
            requests.append([pool.setdefault(part, len(pool)) for part in parts])
        replayed.append(row)
    return {"compactions": replayed.compactions, "pool": [json.loads(part) for part in pool], "requests": requests}


def _count(adapter: Adapter, task: Row) -> Row:
    """The peer's count of the first so many messages, for each number in `ends`."""
    rows = read_rows(task["file"])
    counts = [adapter.first_estimate(adapter.native(rows[:end]), task["model"]) for end in task["ends"]]
    return {"counts": counts, "counter": adapter.counter}


def _errors(adapter: Adapter, task: Row) -> Row:
    return {"overflows": [adapter.is_overflow(error) for error in task["errors"]]}


OPS = {"compact": _compact, "time": _time, "replay": _replay, "count": _count, "errors": _errors}


def text_of(row: Row) -> str:
    """All that a message says, its calls included."""
    content = row.get("content")
    if isinstance(content, list):
        content = "\n".join(str(part.get("text", "")) for part in content if isinstance(part, dict))
    calls = " ".join(f"{call['function']['name']} {call['function']['arguments']}" for call in calls_of(row))
    return f"{content or ''} {calls}".strip()


def calls_of(row: Row) -> list[Row]:
    return list(row.get("tool_calls") or ())


def chars(rows: list[Row]) -> int:
    return sum(len(text_of(row)) for row in rows)


def pair_faults(rows: list[Row]) -> list[str]:
    """What is wrong with calls and results: every call is answered once, right behind it. Written apart from nca."""
    faults: list[str] = []
    waiting: list[str] = []
    for place, row in enumerate(rows):
        if row.get("role") == "tool":
            id = row.get("tool_call_id")
            if id in waiting:
                waiting.remove(id)
            else:
                faults.append(f"message {place}: a result without its call")
            continue
        if waiting:
            faults.append(f"message {place}: {len(waiting)} calls before it have no result")
        waiting = [call["id"] for call in calls_of(row)] if row.get("role") == "assistant" else []
    if waiting:
        faults.append(f"the end: {len(waiting)} calls have no result")
    return faults
