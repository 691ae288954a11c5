"""hermes: the compressor of its agent. The first messages stay, and a tail as large as the target has place for.

Between them stands a summary: a scripted model's, or the index of what went, which hermes makes itself where no model
answers.
"""

from __future__ import annotations

import copy
from typing import Any

from agent.context_compressor import ContextCompressor
from agent.model_metadata import estimate_messages_tokens_rough
from side import Adapter, Replayed, Row, plain_row, serve

ROUNDS = 5
"""The size of an index shows only when it is made: the largest tail that fits is looked for in so many halvings."""
PROMPT = "You are hermes."
SOFT = 1.5
"""hermes lets a tail be so much larger than asked for."""


class Scripted(ContextCompressor):
    """A compressor whose model says this text; "" if there is no model."""

    text = ""

    def _generate_summary(self, *_: Any, **__: Any) -> str | None:
        if not self.text:
            return None
        self._previous_summary = self.text
        return str(self._with_summary_prefix(self.text))


class Hermes(Adapter):
    variants = ("tail, index", "tail, summary")
    counter = "estimate_messages_tokens_rough"

    def native(self, rows: list[Row]) -> Any:
        """With a system prompt, as an agent always has one there: behind it the summary is the person's message."""
        has_prompt = any(row["role"] == "system" for row in rows[:1])
        return [*([] if has_prompt else [{"role": "system", "content": PROMPT}]), *map(plain_row, rows)]

    def plain(self, native: Any) -> list[Row]:
        is_added = native[0]["content"].startswith(PROMPT)
        return [plain_row(row) for row in native[is_added:]]

    def count(self, native: Any) -> int:
        return int(estimate_messages_tokens_rough(native))

    def replayed(self, task: Row) -> Replayed:
        """With one compressor for the whole session: it protects the first messages once only."""
        return Replayed(self, {**task, "compressor": _compressor(task)})

    def compact(self, native: Any, task: Row) -> Any:
        compressor = task.get("compressor") or _compressor(task)
        low, high = 0, task["target_tokens"]
        found = self._tried(compressor, native, low)
        # Where the smallest tail is too large, every other is.
        rounds = ROUNDS if self.count(found[1]) < task["target_tokens"] else 0
        for _ in range(rounds):
            middle = (low + high) // 2
            tried = self._tried(compressor, native, middle)
            if self.count(tried[1]) > task["target_tokens"]:
                high = middle
            else:
                low, found = middle, tried
        compressor.__dict__.update(found[0].__dict__)
        return found[1]

    def _tried(self, compressor: Scripted, native: Any, tail_tokens: int) -> tuple[Scripted, Any]:
        tried = copy.copy(compressor)
        tried.tail_token_budget = max(1, int(tail_tokens / SOFT))
        return tried, tried.compress(list(map(dict, native)), force=True)


def _compressor(task: Row) -> Scripted:
    made = Scripted("gpt-4o", quiet_mode=True, config_context_length=task["window_tokens"])
    made.text = task["summary"] if task["variant"] == "tail, summary" else ""
    return made


if __name__ == "__main__":
    serve(Hermes())
