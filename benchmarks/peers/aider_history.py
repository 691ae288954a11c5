"""aider: `ChatSummary` with a scripted model. It has no tool calls, so calls and results are converted to text."""

from __future__ import annotations

from typing import Any

from aider.history import ChatSummary
from aider.models import Model
from side import Adapter, Row, serve, text_of


class Scripted(Model):
    """Its counts and its window are a real model's, its answer is the task's."""

    answer = ""

    def simple_send_with_retries(self, messages: Any) -> str:
        return self.answer


class Aider(Adapter):
    variants = ("ChatSummary",)
    counter = "Model.token_count"

    def __init__(self) -> None:
        self.model = Scripted("gpt-4o")

    def native(self, rows: list[Row]) -> Any:
        return [
            {"role": "assistant" if row["role"] == "assistant" else "user", "content": text_of(row)}
            if row["role"] != "system"
            else {"role": "system", "content": row["content"]}
            for row in rows
        ]

    def plain(self, native: Any) -> list[Row]:
        return [dict(row) for row in native]

    def count(self, native: Any) -> int:
        return sum(self.model.token_count(message) for message in native)

    def first_estimate(self, native: Any, model: str) -> int:
        named = Scripted(model)
        return sum(named.token_count(message) for message in native)

    def compact(self, native: Any, task: Row) -> Any:
        self.model.answer = task["summary"]
        # Its system prompt is put together anew for each request.
        system = [message for message in native[:1] if message["role"] == "system"]
        summary = ChatSummary([self.model], max_tokens=task["target_tokens"])
        rest = native[len(system) :]
        return [*system, *(summary.summarize(rest) if summary.too_big(rest) else rest)]


if __name__ == "__main__":
    serve(Aider())
