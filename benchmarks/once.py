"""Compact each real session once, in windows of 8,000 to 200,000 tokens: how much room is used, and what is kept.

    python -m benchmarks.once FOLDER

FOLDER has transcripts, one message or one conversation a line. Code alone writes the record. What counts as kept is
decided by `benchmarks.extractors`, without anything of nca.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nca
from benchmarks.extractors import ERROR_CHARS, facts, readable
from benchmarks.peers.side import plain_row, text_of

Row = dict[str, Any]
WINDOWS = (8_000, 16_000, 32_000, 64_000, 128_000, 200_000)
KINDS = {"user turns": 0, "rules of the user": 0, "paths touched": 0, "error lines": ERROR_CHARS}


def sessions(folder: Path) -> Iterator[tuple[str, list[Row]]]:
    """Every conversation of the folder's files, by name; notes between messages are left out."""
    for path in sorted(folder.glob("*.jsonl")):
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        whole = [rows] if "role" in rows[0] else [row["messages"] for row in rows]
        for number, session in enumerate(whole):
            messages = [row for row in session if not str(row["role"]).startswith("_")]
            yield (path.stem if len(whole) == 1 else f"{path.stem}/{number}"), messages


def lines(folder: Path) -> Iterator[str]:
    """A line for each window: sums over all sessions that are compacted in it."""
    found = list(sessions(folder))
    for window in WINDOWS:
        kept: dict[str, list[int]] = {kind: [0, 0] for kind in KINDS}
        fills, repeated = list[float](), 0
        for _name, rows in found:
            try:
                result = nca.compact([plain_row(row) for row in rows], context_window=window)
            except nca.ContextDoesNotFit:
                # Its system prompt or its newest message alone is larger.
                continue
            if not result.compacted:
                continue
            fills.append(result.tokens_after / result.target_tokens)
            shown = [text_of(row) for row in result.messages]
            record = next((text for text in shown if "## Conversation Summary" in text), "")
            said = Counter(line for line in record.splitlines() if len(line) > 20)
            repeated += sum(count - 1 for count in said.values())
            wanted = facts(rows)
            for kind, chars in KINDS.items():
                held, total = readable(wanted[kind], "\n".join(shown), most_chars=chars)
                kept[kind][0] += held
                kept[kind][1] += total
        if fills:
            shares = " · ".join(f"{kind} {held}/{total}" for kind, (held, total) in kept.items())
            full = f"{min(fills):.0%}–{max(fills):.0%}, mean {sum(fills) / len(fills):.0%}"
            yield f"{window:,}: {len(fills)} sessions · {full} of the target · {shares} · {repeated} lines twice"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.once", description=__doc__)
    parser.add_argument("folder", type=Path)
    for line in lines(parser.parse_args().folder):
        print(line, flush=True)


if __name__ == "__main__":
    main()
