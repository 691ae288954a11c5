"""gptme: `reduce_log`, which shortens long messages until the log is below its limit."""

from __future__ import annotations

import re
from typing import Any

from gptme.message import Message, len_tokens
from gptme.util.reduce import reduce_log
from side import Adapter, Row, calls_of, serve

MODEL = "gpt-4"
FENCE = "```stdout\n"
"""Its tools show their output as a code block, and only such blocks are shortened."""
_CALL = re.compile(r"\n@(\w+)\(([^)]+)\): (.*)", re.DOTALL)


class Gptme(Adapter):
    variants = ("reduce_log",)
    counter = "len_tokens"

    def native(self, rows: list[Row]) -> Any:
        """Calls are text of the assistant there, results are messages of the system; both keep their ids beside it."""
        return [_message(row) for row in rows]

    def plain(self, native: Any) -> list[Row]:
        rows: list[Row] = []
        for message in native:
            if message.call_id:
                text = message.content.removeprefix(FENCE).removesuffix("\n```")
                rows.append({"role": "tool", "tool_call_id": message.call_id, "content": text})
                continue
            said, *calls = message.content.split("\n@") if message.role == "assistant" else [message.content]
            row: Row = {"role": message.role, "content": said}
            found = [_CALL.match(f"\n@{call}") for call in calls]
            if message.role == "assistant" and found and all(found):
                row["tool_calls"] = [
                    {"id": one[2], "type": "function", "function": {"name": one[1], "arguments": one[3]}}
                    for one in found
                    if one
                ]
                row["content"] = said or None
            rows.append(row)
        return rows

    def count(self, native: Any) -> int:
        return int(len_tokens(native, MODEL))

    def compact(self, native: Any, task: Row) -> Any:
        return list(reduce_log(native, limit=task["target_tokens"]))


def _message(row: Row) -> Message:
    calls = "".join(
        f"\n@{call['function']['name']}({call['id']}): {call['function']['arguments']}" for call in calls_of(row)
    )
    if row["role"] == "tool":
        return Message("system", f"{FENCE}{row['content']}\n```", call_id=row["tool_call_id"])
    return Message(row["role"], f"{row.get('content') or ''}{calls}", pinned=row["role"] == "system")


if __name__ == "__main__":
    serve(Gptme())
