"""Measure how long Ctrl-C takes to end `nca run` in each of its waits: python -m benchmarks.interrupts"""

from __future__ import annotations

import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from nca.config.paths import data_dir
from nca.messages import Message
from nca.sessions.store import Store
from nca.testing.faults import rate_limit
from nca.testing.http_exchange import Exchange
from nca.testing.provider import Provider
from nca.testing.scripted import is_summary_request, prose

RUNS = 5


def _stalls_for_summaries(exchange: Exchange) -> None:
    (Exchange.stall if is_summary_request(exchange.request) else Exchange.reply)(exchange)


OWN = {
    "waits": rate_limit(retry_after="30"),
    "summary-stalls": _stalls_for_summaries,
}
WAITS = {
    "first token": ("stalls-at-first", ""),
    "back-off": ("waits", "retry_scheduled"),
    "stall in the answer": ("stalls-in-the-middle", "text_delta"),
    "stream": ("streams", "text_delta"),
    "summary": ("summary-stalls", "starting"),
}
"""The model, and what is written when the wait has begun."""


def main() -> None:
    for wait, seconds in _waits():
        print(f"{wait:20} {statistics.median(seconds) * 1e3:5.0f} ms (at most {max(seconds) * 1e3:.0f} ms)", flush=True)


def _waits() -> Iterator[tuple[str, list[float]]]:
    for wait, (model, sign) in WAITS.items():
        yield wait, [_waiting(model, sign) for _ in range(RUNS)]
    yield "connection", [_connecting() for _ in range(RUNS)]


def _waiting(model: str, sign: str) -> float:
    with (
        Provider(lambda request: "A word. " * 1_000, faults=OWN, token_seconds=0.01) as provider,
        _running(model, provider.url) as process,
    ):
        assert process.stdout is not None
        while sign and sign not in process.stdout.readline():
            pass
        _until(lambda: bool(provider.requests))
        return _interrupted(process)


def _connecting() -> float:
    """The server takes the connection and never speaks TLS."""
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        _running("any", f"https://127.0.0.1:{server.getsockname()[1]}/v1") as process,
    ):
        connection, _ = server.accept()
        with connection:
            return _interrupted(process)


def _interrupted(process: subprocess.Popen[str]) -> float:
    time.sleep(0.2)
    started = time.perf_counter()
    process.send_signal(signal.SIGINT)
    code = process.wait()
    seconds = time.perf_counter() - started
    assert code == 130, code
    return seconds


@contextmanager
def _running(model: str, address: str) -> Iterator[subprocess.Popen[str]]:
    with tempfile.TemporaryDirectory() as home:
        session = _talk(Path(home))
        env = {
            **{name: os.environ[name] for name in ("PATH", "LANG", "PYTHONPATH") if name in os.environ},
            **{"HOME": home, "NCA_HOME": home, "OPENAI_API_KEY": "k", "OPENAI_API_BASE": address},
            **({"NCA_MODEL__CONTEXT_WINDOW": "8000"} if model.startswith("summary") else {}),
        }
        words = ["run", "Hello", "--model", f"openai/{model}", "--session", session, "--stream", "ndjson"]
        command = [sys.executable, "-m", "nca", *words]
        with subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as process:
            try:
                yield process
            finally:
                process.kill()


def _talk(home: Path) -> str:
    """A session that fills a window of 8,000 tokens."""
    path = data_dir({"NCA_HOME": str(home)}) / "sessions.db"
    with Store.open(path) as store, store.create(directory=str(home), model="openai/any") as session:
        for number in range(60):
            asked = f"Question {number}?"
            answer = prose({"messages": [{"role": "user", "content": asked}]}).text
            session.log.append([Message("user", asked), Message("assistant", answer)])
        return session.info.id


def _until(condition: Callable[[], bool]) -> None:
    while not condition():
        time.sleep(0.005)


if __name__ == "__main__":
    main()
