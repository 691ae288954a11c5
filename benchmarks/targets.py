"""How far a compaction should go: what each target keeps and costs. python -m benchmarks.targets [FOLDER]

Each recorded session is replayed in small windows, compacted by code alone, at thresholds of 0.80 and 0.95 of the
budget and at targets below them.
FOLDER has transcripts, one message a line; the longest is replayed in large windows. Default: the value of
NCA_TRANSCRIPTS.
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.recorded import readable
from benchmarks.requests import CACHE_READ, CACHE_WRITE
from benchmarks.stated import OWN, SPEAKERS, Recorded, sessions_in
from benchmarks.summed import table
from nca.config.loaded import defaults
from nca.library.replay import replay
from nca.messages import Message
from nca.wire import message_from_dict

TARGETS = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7)
SMALL = (
    *((0.80, target) for target in (0.2, 0.4, 0.5, 0.65, 0.7)),
    *((0.95, target) for target in (0.65, 0.7, 0.8, 0.85)),
)
"""Threshold and target in small windows."""
SMALL_WINDOWS = (8_000, 12_000, 16_000, 24_000, 32_000, 48_000)
LARGE_WINDOWS = (64_000, 200_000)
Row = tuple[str, ...]
Given = dict[str, float]


def main() -> None:
    given = sys.argv[1] if len(sys.argv) > 1 else os.environ.get("NCA_TRANSCRIPTS", "")
    sessions = sessions_in(OWN)
    head = ("window", "threshold", "target", *SPEAKERS.values(), "compactions", "read, with a cache", "read, without")
    rows = [row for window in SMALL_WINDOWS for row in _small(sessions, window)]
    print(table(head, rows))
    if given:
        found = [_messages(rows) for rows in map(_rows, sorted(Path(given).glob("*.jsonl"))) if rows]
        longest = max(found, key=len)
        rows = [row for window in LARGE_WINDOWS for row in _large(longest, window)]
        print(table(("window", "target", "compactions", "read, with a cache", "read, without"), rows))


def _small(sessions: Sequence[Recorded], window: int) -> Iterator[Row]:
    for threshold, target in SMALL:
        settings: Given = {"context.compact_threshold": threshold, "context.target_ratio": target}
        due, kept, compactions = Counter[str](), Counter[str](), 0
        read = [0.0, 0.0]
        for session in sessions:
            found = readable(session, window, has_tools=True, settings=settings)
            compactions += found.compactions
            for head, _, lost in found.requests:
                for fact in session.due(head):
                    speaker = session.speaker(fact)
                    due[speaker] += 1
                    kept[speaker] += fact.name not in lost
            more = _read(_messages(session.rows), window, settings)
            read = [one + other for one, other in zip(read, more, strict=True)]
        shares = (f"{100 * kept[one] / due[one]:.1f}%" if due[one] else "–" for one in SPEAKERS.values())
        costs = (f"{one:.2f} M" for one in read)
        yield (f"{window:,}", f"{threshold:.2f}", f"{target:.2f}", *shares, f"{compactions}", *costs)


def _large(messages: Sequence[Message], window: int) -> Iterator[Row]:
    for target in TARGETS:
        settings: Given = {"context.target_ratio": target}
        found = replay(messages, _settings(window, settings))
        read = _read(messages, window, settings)
        yield (
            f"{window:,}",
            f"{target:.2f}",
            f"{len(found.compactions)}",
            *(f"{one:.2f} M" for one in read),
        )


def _read(messages: Sequence[Message], window: int, settings: Given) -> tuple[float, float]:
    """Millions of tokens that all requests read, at the price of fresh ones: with a provider's cache, and without."""
    sent = replay(messages, _settings(window, settings)).with_nca
    fresh = sent.tokens - sent.cached_tokens
    return (fresh * CACHE_WRITE + sent.cached_tokens * CACHE_READ) / 1e6, sent.tokens / 1e6


def _settings(window: int, settings: Given) -> Any:
    return defaults().with_values({"model.context_window": window, **settings}, "the benchmark")


def _rows(file: Path) -> list[dict[str, Any]]:
    """The messages of a file that has one in each line."""
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]
    return [row for row in rows if "role" in row and not row["role"].startswith("_")]


def _messages(rows: Sequence[dict[str, Any]]) -> list[Message]:
    return [message_from_dict(row) for row in rows]


if __name__ == "__main__":
    main()
