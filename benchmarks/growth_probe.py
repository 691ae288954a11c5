"""Measure one session in its own process: python -m benchmarks.growth_probe STORE SESSION [TURNS]

Prints one JSON object. In a process of its own, so that its memory is that of one session and nothing else.
"""

from __future__ import annotations

import asyncio
import json
import resource
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

from benchmarks.growth_sessions import MODEL, WINDOW_TOKENS
from benchmarks.sessions import generated
from nca.agent.conversation import Conversation
from nca.config.loaded import defaults
from nca.messages import Message, ToolCall, Usage
from nca.models.catalog import ModelFacts
from nca.models.client import ModelRequest, Reply
from nca.sessions import Store
from nca.testing.scripted import ScriptedModel

OPENINGS, CHECKS, SEARCHES = 5, 2_000, 9
TURNS = 120
"""Enough for several compactions."""
WARM_UP = 20
QUESTIONS = (
    "which message says budget before window",
    "src/part_17.py",
    "read_file path part_3",
    "summary of the tokens",
    "never write the log",
)
_FACTS = ModelFacts(name=MODEL, provider="scripted", window_tokens=WINDOW_TOKENS)
_CHARS_PER_TOKEN = 4


def probe(path: Path, session: str, turns: int = TURNS) -> dict[str, Any]:
    """Seconds, but for `…_bytes`; `…_cpu` and `check` are the processor's own, which other work leaves alone."""
    return asyncio.run(_probed(path, session, turns))


async def _probed(path: Path, session: str, turns: int) -> dict[str, Any]:
    project = path.parent / "work"
    project.mkdir(exist_ok=True)
    warm = path.with_name("warm.db")
    with Store.open(warm) as store:  # what the first conversation of a process loads is not the session's
        conversation = opened(store, None, project)
        await conversation.send("Hello.")
        await conversation.close()
    before = _resident_bytes()
    started = time.perf_counter()
    store = Store.open(path)
    found: dict[str, Any] = {"open_store": time.perf_counter() - started}
    openings, processor = [], []
    conversation = opened(store, session, project)
    found["resident_bytes"] = _resident_bytes() - before
    for _ in range(OPENINGS):
        await conversation.close()
        model = scripted()
        started, started_cpu = time.perf_counter(), time.process_time()
        conversation = opened(store, session, project, model)
        openings.append(time.perf_counter() - started)
        processor.append(time.process_time() - started_cpu)
    found["resume"], found["resume_cpu"] = statistics.median(openings), statistics.median(processor)
    found["check"] = _check(conversation)
    searches = [partial(conversation.context.search, question) for question in QUESTIONS]
    found["search"] = statistics.median(map(_timed, searches))
    found["search_cpu"] = statistics.median(_timed(search, time.process_time) for search in searches)
    found |= await _turns(conversation, turns)
    found["check_after_turns"] = _check(conversation)
    found["stats"] = statistics.median(_timed(conversation.context.stats) for _ in range(SEARCHES))
    found["list"] = statistics.median(_timed(store.list) for _ in range(SEARCHES))
    found["latest"] = statistics.median(_timed(lambda: store.latest("/project")) for _ in range(SEARCHES))
    found["latest_of_none"] = statistics.median(_timed(lambda: store.latest("/nowhere")) for _ in range(SEARCHES))
    found["find"] = statistics.median(_timed(lambda: store.find(session)) for _ in range(SEARCHES))
    found["compactions"] = len(conversation.context.history())
    await conversation.close()
    store.close()
    found["peak_bytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return found


async def _turns(conversation: Conversation, count: int) -> dict[str, float]:
    """Whole turns: message in, check, a file written and recorded, answer in, with the compactions that fall due."""
    questions = [message.text for message in generated(count * 6) if message.role == "user"]
    times, processor = [], []
    for number in range(count + WARM_UP):
        started, started_cpu = time.perf_counter(), time.process_time()
        finished = await conversation.send(f"{number}: {questions[number % len(questions)]}")
        times.append(time.perf_counter() - started)
        processor.append(time.process_time() - started_cpu)
        if finished.reason != "answered":
            raise RuntimeError(f"turn {number} ended as {finished.reason}")
        if not finished.files_changed:
            raise RuntimeError(f"turn {number} has no record of its file")
    first, times, processor = times[0], times[WARM_UP:], processor[WARM_UP:]
    return {
        "first_turn": first,
        "turn": statistics.median(times),
        "turn_mean": statistics.fmean(times),
        "turn_longest": max(times),
        "turn_cpu": statistics.fmean(processor),
    }


def opened(store: Store, session: str | None, project: Path, model: ScriptedModel | None = None) -> Conversation:
    """A conversation that continues the session, or a new one."""
    settings = defaults().with_value("agent.permission", "accept-edits", "the benchmark")
    return Conversation.open(settings, store=store, model=model or scripted(), directory=project, session=session)


def scripted() -> ScriptedModel:
    """A model that writes a file in each turn, whose answers fill the window and whose summaries are short."""
    answer = " ".join(message.text for message in generated(400) if message.role == "assistant")

    numbers = count()

    def reply(request: ModelRequest) -> Reply:
        chars = sum(len(str(message.get("content") or "")) for message in request.messages)
        text = answer[:1_200] if request.tools else f"### 1. Goal and intent\n{answer[:1_500]}"
        usage = Usage(chars // _CHARS_PER_TOKEN + 4_000, len(text) // _CHARS_PER_TOKEN)
        if request.tools and request.messages[-1]["role"] == "user":
            # A new file each time: one that another conversation wrote would have to be read first.
            written = {"path": f"{time.time_ns()}.md", "content": text}
            call = ToolCall(f"written_{next(numbers)}", "write_file", json.dumps(written))
            return Reply(message=Message("assistant", None, (call,)), usage=usage, finish_reason="tool_calls")
        return Reply(message=Message("assistant", text), usage=usage, finish_reason="stop")

    return ScriptedModel([reply] * 10_000, facts=_FACTS)


def _check(conversation: Conversation) -> float:
    conversation.context.due()
    started = time.process_time()
    for _ in range(CHECKS):
        conversation.context.due()
    return (time.process_time() - started) / CHECKS


def _timed(work: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    started = clock()
    work()
    return clock() - started


def _resident_bytes() -> int:
    """What the process holds now; where the system does not tell, the most that it has held."""
    status = Path("/proc/self/statm")
    if status.is_file():
        return int(status.read_text().split()[1]) * resource.getpagesize()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


if __name__ == "__main__":
    print(json.dumps(probe(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else TURNS)))
