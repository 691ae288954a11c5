"""pydantic-ai: the history compaction of its harness. The slim package itself has only the hook."""

from __future__ import annotations

import asyncio
from typing import Any

from pydantic_ai.messages import (
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import FunctionModel
from pydantic_ai_harness.compaction import (
    ClearToolResults,
    DeduplicateFileReads,
    SlidingWindowCompaction,
    SummarizingCompaction,
    TieredCompaction,
    compact_now,
    estimate_token_count,
)
from side import Adapter, Row, calls_of, is_error, serve

SUMMARY_TOKENS = 1_000


class Harness(Adapter):
    variants = ("clear, deduplicate", "clear, deduplicate, slide", "clear, deduplicate, summarize")
    counter = "estimate_token_count"

    def native(self, rows: list[Row]) -> Any:
        """Results of one step are parts of one request there."""
        messages: list[Any] = []
        names = {call["id"]: call["function"]["name"] for row in rows for call in calls_of(row)}
        for row in rows:
            if row["role"] == "assistant":
                parts: list[Any] = [TextPart(row["content"])] if row.get("content") else []
                for call in calls_of(row):
                    parts.append(ToolCallPart(call["function"]["name"], call["function"]["arguments"], call["id"]))
                messages.append(ModelResponse(parts))
            elif row["role"] == "tool":
                part = ToolReturnPart(names.get(row["tool_call_id"], "tool"), row["content"], row["tool_call_id"])
                part.outcome = "failed" if is_error(row) else "success"
                last = messages[-1] if messages else None
                if isinstance(last, ModelRequest) and all(isinstance(one, ToolReturnPart) for one in last.parts):
                    messages[-1] = ModelRequest([*last.parts, part])
                else:
                    messages.append(ModelRequest([part]))
            else:
                kind = SystemPromptPart if row["role"] == "system" else UserPromptPart
                messages.append(ModelRequest([kind(row["content"])]))
        return messages

    def plain(self, native: Any) -> list[Row]:
        return [row for message in native for row in _rows(message)]

    def count(self, native: Any) -> int:
        return int(estimate_token_count(native))

    def compact(self, native: Any, task: Row) -> Any:
        room = max(1, task["target_tokens"] - SUMMARY_TOKENS)
        tiers: list[Any] = [ClearToolResults(max_tokens=1), DeduplicateFileReads(file_key=_path, max_tokens=1)]
        if task["variant"].endswith("slide"):
            tiers.append(SlidingWindowCompaction(max_tokens=1, keep_tokens=room))
        if task["variant"].endswith("summarize"):
            tiers.append(SummarizingCompaction(max_tokens=1, keep_tokens=room))
        tiered = TieredCompaction(tiers, target_tokens=task["target_tokens"])
        model = FunctionModel(lambda *_: ModelResponse([TextPart(task["summary"])]))
        return asyncio.run(compact_now(tiered, list(native), model=model))


def _path(call: ToolCallPart) -> str | None:
    arguments = call.args_as_dict()
    return str(arguments["path"]) if call.tool_name.startswith("read") and "path" in arguments else None


def _rows(message: Any) -> list[Row]:
    if isinstance(message, ModelResponse):
        said = "".join(part.content for part in message.parts if isinstance(part, TextPart))
        calls = [
            {
                "id": part.tool_call_id,
                "type": "function",
                "function": {"name": part.tool_name, "arguments": part.args_as_json_str()},
            }
            for part in message.parts
            if isinstance(part, ToolCallPart)
        ]
        row: Row = {"role": "assistant", "content": said or None}
        return [{**row, "tool_calls": calls} if calls else row]
    rows: list[Row] = []
    for part in message.parts:
        if isinstance(part, ToolReturnPart):
            rows.append({"role": "tool", "tool_call_id": part.tool_call_id, "content": part.model_response_str()})
        else:
            role = "system" if isinstance(part, SystemPromptPart) else "user"
            content = part.content if isinstance(part.content, str) else str(part.content)
            rows.append({"role": role, "content": content})
    return rows


if __name__ == "__main__":
    serve(Harness())
