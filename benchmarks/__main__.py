"""The engine's figures: time of a check and of a compaction, and on a real transcript estimates and kept facts."""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import nca
from benchmarks.recall import recall
from benchmarks.replay import estimates, facts_at_compactions, prefix_cost, saved_without_a_model
from benchmarks.sessions import generated, history_of, rows_of
from nca.config.schema import ContextSettings
from nca.context.budget import Budget
from nca.context.history import History
from nca.context.meter import Meter
from nca.context.plan import compact, no_summarizer, run
from nca.messages import Entry

SESSION = "coding-session-opus.jsonl"
RUNS = 5


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--transcripts", type=Path, default=os.environ.get("NCA_TRANSCRIPTS"))
    folder = parser.parse_args().transcripts
    print(f"nca {nca.__version__} · Python {platform.python_version()} · {os.cpu_count()} cores · medians of {RUNS}")
    for length in (1_000, 10_000, 100_000):
        _times(length)
    if folder is None or not (Path(folder) / SESSION).is_file():
        print(f"No --transcripts FOLDER with {SESSION}: the figures on a real session are left out.")
        return
    rows = rows_of(Path(folder) / SESSION)
    _session(rows)
    for report in (estimates, facts_at_compactions, saved_without_a_model, prefix_cost):
        for line in report(rows):
            print(line)
    for line in recall(Path(folder)):
        print(line, flush=True)


def _times(length: int) -> None:
    """A warm check, a cold count, and a compaction without a model."""
    entries = [Entry(seq, message) for seq, message in enumerate(generated(length), 1)]
    cold = _median(lambda: History(entries))
    history, meter, budget = History(entries), Meter(), Budget.of(128_000)
    meter.measure(history, budget)
    warm = _median(lambda: [meter.measure(history, budget) for _ in range(100)]) / 100
    compaction = _median(
        lambda: run(compact(History(entries), meter, budget, ContextSettings()), no_summarizer), runs=3
    )
    print(
        f"{length:>7,} messages: check {warm * 1e3:.4f} ms · cold count {cold * 1e3:.1f} ms ·"
        f" compaction without a model {compaction * 1e3:.1f} ms"
    )


def _session(rows: list[dict[str, object]]) -> None:
    entries = history_of(rows).entries
    budget, meter = Budget.of(128_000), Meter()
    seconds = _median(lambda: run(compact(History(entries), meter, budget, ContextSettings()), no_summarizer))
    print(f"real session, {len(entries)} messages: compaction without a model {seconds * 1e3:.1f} ms")


def _median(work: Callable[[], object], runs: int = RUNS) -> float:
    times = []
    for _ in range(runs):
        started = time.perf_counter()
        work()
        times.append(time.perf_counter() - started)
    return statistics.median(times)


if __name__ == "__main__":
    main()
