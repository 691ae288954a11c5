"""Codex, which is a program in Rust: the rule of its local compaction (`codex-rs/core/src/compact.rs`), written anew.

The person's words stay, from the newest back to 20,000 tokens of them; the first that does not fit is cut in its
middle. Then comes the model's summary, as a message of the person's. Replies, calls and results go. Of the target,
the words have what the summary leaves.
"""

from __future__ import annotations

from typing import Any

from side import Adapter, Row, plain_row, serve, text_of

MOST_TOKENS = 20_000
CHARS_PER_TOKEN = 4
PREFACE = "Another model worked on this before. Its summary:\n"


class Codex(Adapter):
    variants = ("local",)
    counter = "a quarter of the characters"

    def native(self, rows: list[Row]) -> Any:
        return [plain_row(row) for row in rows]

    def plain(self, native: Any) -> list[Row]:
        return list(native)

    def count(self, native: Any) -> int:
        return sum(map(_tokens, native))

    def compact(self, native: Any, task: Row) -> Any:
        system = [row for row in native[:1] if row["role"] == "system"]
        summary = {"role": "user", "content": PREFACE + task["summary"]}
        left = min(MOST_TOKENS, task["target_tokens"] - self.count([*system, summary]))
        kept: list[Row] = []
        for row in reversed(native):
            if row["role"] != "user" or text_of(row).startswith(PREFACE):
                continue
            if left <= 0:
                break
            size = _tokens(row)
            kept.append(row if size <= left else {"role": "user", "content": _cut(text_of(row), left)})
            left -= size
        return [*system, *reversed(kept), summary]


def _tokens(row: Row) -> int:
    return -(-len(text_of(row)) // CHARS_PER_TOKEN)


def _cut(text: str, most_tokens: int) -> str:
    half = most_tokens * CHARS_PER_TOKEN // 2
    return f"{text[:half]}…{_tokens({'content': text}) - most_tokens} tokens truncated…{text[len(text) - half :]}"


if __name__ == "__main__":
    serve(Codex())
