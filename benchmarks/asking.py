"""Ask another program's adapter, through two files. Any failure there becomes an answer with an error."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.environments import Environment, plain_environment
from benchmarks.peers.side import NO_END, PATIENCE

Row = dict[str, Any]
MARKS = ("_error", "_interrupted", "_source")
"""What a program knows of its own messages beside their text; whoever has no place for a mark passes over it."""
POOLED_CHARS = 200
MOST_SECONDS = 20
"""Of the processor: a peer that needs longer for one case is reported to need longer."""
START_SECONDS = 60


def packed(rows: Sequence[Row], path: Path) -> Path:
    """Messages as a file, each long text once. The marks of messages go, the judge's notes stay here."""
    places: dict[str, int] = {}
    messages = []
    for noted in rows:
        row = {key: value for key, value in noted.items() if key in MARKS or not key.startswith("_")}
        content = row.get("content")
        if isinstance(content, str) and len(content) > POOLED_CHARS:
            messages.append({**row, "content": {"$": places.setdefault(content, len(places))}})
        else:
            messages.append(row)
    path.write_text(json.dumps({"pool": list(places), "messages": messages}), encoding="utf-8")
    return path


def ask(environment: Environment, task: Row, cases: Sequence[Row], *, most_seconds: float = MOST_SECONDS) -> list[Row]:
    """The answers of the peer's adapter, one a case."""
    command, extra = environment.adapter()
    return asked(command, task, cases, extra=extra, most_seconds=most_seconds)


def asked(
    command: Sequence[str],
    task: Row,
    cases: Sequence[Row],
    *,
    extra: dict[str, str] | None = None,
    most_seconds: float = MOST_SECONDS,
) -> list[Row]:
    """The answers of any program that speaks the protocol of `peers.side`; each case may take `most_seconds`."""
    longest = START_SECONDS + PATIENCE * most_seconds * len(cases)
    with tempfile.TemporaryDirectory() as folder:
        question, answer = Path(folder) / "task.json", Path(folder) / "answer.json"
        question.write_text(json.dumps({"most_seconds": most_seconds, **task, "cases": list(cases)}), encoding="utf-8")
        try:
            done = subprocess.run(
                [*command, str(question), str(answer)],
                env={**plain_environment(folder), **(extra or {})},
                capture_output=True,
                text=True,
                timeout=longest,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return [{"error": f"{NO_END} {longest:.0f} s"}] * len(cases)
        if not answer.is_file():
            lines = [line for line in done.stderr.splitlines() if line.strip()]
            return [{"error": (lines[-1] if lines else f"ended with {done.returncode}")[:160]}] * len(cases)
        found: list[Row] = json.loads(answer.read_text(encoding="utf-8"))["answers"]
        return found
