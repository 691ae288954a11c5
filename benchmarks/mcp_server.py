"""Measure the MCP server's search: python -m benchmarks.mcp_server FOLDER_OF_TRANSCRIPTS

A store of 200,000 messages in 2,000 sessions and 20 folders, on disk; questions by code from the transcripts. Measured
is the whole call of the tool, with reading, redaction and the text of the answer, without the pipe. And how fast the
sessions of another agent are indexed: files as Claude Code writes them, with the messages of the transcripts.
"""

from __future__ import annotations

import asyncio
import random
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.questions import questions_of, sessions_in
from nca.context.tokens import text_tokens
from nca.mcp_server.answers import MAX_TOKENS
from nca.mcp_server.history import History, OwnStore
from nca.mcp_server.other_agents import OtherAgents
from nca.mcp_server.tools import Recall, Sessions
from nca.messages import Entry, Message
from nca.redact import Redactor
from nca.sessions import Store
from nca.sessions.transfer import new_copy
from nca.transcripts.formats.registry import formats
from tests.mcp_server.other_sessions import claude_session

MESSAGES, SESSIONS, DIRECTORIES, TIMED = 200_000, 2_000, 20, 300
INDEXED_BYTES = 100_000_000


def mcp_server(folder: Path) -> Iterator[str]:
    """Lines of figures."""
    transcripts = sessions_in(folder)
    chance = random.Random(5)
    questions = [one.text for one in chance.sample(questions_of(transcripts), TIMED)]
    with tempfile.TemporaryDirectory() as made:
        path = Path(made) / "sessions.db"
        ids = _fill(path, transcripts, chance)
        history = History([OwnStore(path)], Redactor().text)
        longest = 0
        for name, only in (
            ("all", {}),
            ("a folder of 20", {"directory": "/work/7"}),
            ("one session", {"session": ids[700]}),
            ("since half of them", {"since": "2026-02-15"}),
        ):
            times = []
            for text in questions:
                seconds, answer = _timed(Recall(history), {"query": text, **only})
                times.append(seconds)
                longest = max(longest, text_tokens(answer))
            yield f"recall at {MESSAGES:,} messages, {name}: {_percentiles(times)}"
        times = [_timed(Sessions(history), {})[0] for _ in range(50)]
        yield f"sessions, {SESSIONS:,} of them: {_percentiles(times)}"
        yield f"longest answer: {longest:,} tokens of {MAX_TOKENS:,}"
    yield from _indexing(transcripts, chance)


def _indexing(transcripts: Sequence[Sequence[Message]], chance: random.Random) -> Iterator[str]:
    texts = [message.text for messages in transcripts for message in messages if message.text]
    with tempfile.TemporaryDirectory() as made:
        home, written, sessions = Path(made), 0, 0
        while written < INDEXED_BYTES:
            said = [f"{chance.choice(texts)} {chance.random()}" for _ in range(chance.randint(50, 600))]
            path = claude_session(home, f"s{sessions}", f"/work/{sessions % DIRECTORIES}", said)
            written, sessions = written + path.stat().st_size, sessions + 1
        index = home / "index.db"
        others = OtherAgents(index, formats(), {"HOME": made}, home, version="")
        started, used = time.perf_counter(), time.process_time()
        others.index()
        seconds, cpu = time.perf_counter() - started, time.process_time() - used
        megabytes = written / 1e6
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        yield (
            f"indexing {megabytes:.0f} MB of JSON in {sessions} files: {megabytes / seconds:.1f} MB/s"
            f" ({megabytes / cpu:.1f} MB per second of CPU), at most {memory:.0f} MB of memory in this process,"
            f" index {index.stat().st_size / 1e6:.0f} MB"
        )
        started = time.perf_counter()
        others.index()
        yield f"looking again, nothing has changed: {(time.perf_counter() - started) * 1e3:.0f} ms"


def _fill(path: Path, transcripts: Sequence[Sequence[Message]], chance: random.Random) -> list[str]:
    words = [word for messages in transcripts for message in messages for word in message.text[:3_000].split()]
    first = time.mktime((2026, 1, 1, 0, 0, 0, 0, 0, -1))
    ids = []
    with Store.open(path) as store:
        for number in range(SESSIONS):
            said = [Entry(seq, _said(seq, words, chance), first) for seq in range(1, MESSAGES // SESSIONS + 1)]
            info = store.add(new_copy(said, directory=f"/work/{number % DIRECTORIES}", model="m"))
            ids.append(info.id)
    _spread(path, first)
    return ids


def _spread(path: Path, first: float) -> None:
    """Spread the sessions over 90 days. The log is append-only for nca, not for a benchmark."""
    import apsw

    connection = apsw.Connection(str(path))
    connection.execute("DROP TRIGGER messages_never_change")
    connection.execute("UPDATE messages SET at = ? + session * 86400.0 * 90 / ?", (first, SESSIONS))
    connection.execute("UPDATE sessions SET updated_at = ? + number * 86400.0 * 90 / ?", (first, SESSIONS))
    connection.close()


def _said(place: int, words: Sequence[str], chance: random.Random) -> Message:
    return Message("assistant" if place % 2 else "user", " ".join(chance.choices(words, k=chance.randint(5, 120))))


def _timed(tool: Any, arguments: dict[str, Any]) -> tuple[float, str]:
    started = time.perf_counter()
    outcome = asyncio.run(tool.run(arguments))
    return time.perf_counter() - started, outcome.text


def _percentiles(times: Sequence[float]) -> str:
    return f"p50 {statistics.median(times) * 1e3:.1f} ms · p95 {statistics.quantiles(times, n=20)[-1] * 1e3:.1f} ms"


if __name__ == "__main__":
    for line in mcp_server(Path(sys.argv[1])):
        print(line, flush=True)
