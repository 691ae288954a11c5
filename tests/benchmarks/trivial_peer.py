"""An adapter that keeps the newest messages, for tests of the protocol. Its variants fail in known ways."""

from __future__ import annotations

import contextlib
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from benchmarks.peers.side import Adapter, chars, plain_row, serve


class Trivial(Adapter):
    variants = ("last", "each", "raises", "sleeps", "computes", "changes")
    each_request = ("each",)
    counter = "a quarter of the characters"

    def native(self, rows: list[dict[str, Any]]) -> Any:
        return [plain_row(row) for row in rows]

    def plain(self, native: Any) -> list[dict[str, Any]]:
        return list(native)

    def count(self, native: Any) -> int:
        return chars(native) // 4

    def compact(self, native: Any, task: dict[str, Any]) -> Any:
        if task["variant"] == "raises":
            raise RuntimeError("it cannot")
        if task["variant"] == "sleeps":
            with contextlib.suppress(Exception):
                time.sleep(30)
            time.sleep(30)
        while task["variant"] == "computes":
            self.count(native)
        if task["variant"] == "changes":
            native[0]["content"] = "changed"
        kept = list(native)
        while len(kept) > 1 and self.count(kept) > task["target_tokens"]:
            kept.pop(0)
        return kept

    def is_overflow(self, error: dict[str, Any]) -> bool:
        return "too long" in error["body"]


if __name__ == "__main__":
    serve(Trivial())
