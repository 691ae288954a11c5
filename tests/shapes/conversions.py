"""Chat messages as Anthropic's requests and as Responses requests: how other programs hold the same conversation."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nca.context.rules.calls import with_results_in_order, with_unique_ids, with_whole_pairs
from nca.context.rules.messages import with_user_first
from nca.wire import message_to_dict, messages_from_list

DATA = Path(__file__).parents[1] / "data"
Rows = list[dict[str, Any]]


def conversations() -> list[Rows]:
    """The transcripts of the tests, with every call answered once and the user first."""
    found: list[Rows] = []
    for name in ("airline-support", "issue-fixing"):
        lines = (DATA / f"{name}.jsonl").read_text().splitlines()
        found += [json.loads(line)["messages"] for line in lines]
    found.append([json.loads(line) for line in (DATA / "coding-session.jsonl").read_text().splitlines()])
    whole = (with_user_first(with_whole_pairs(with_results_in_order(messages_from_list(rows)))) for rows in found)
    return [[message_to_dict(message) for message in with_unique_ids(messages)] for messages in whole]


def to_anthropic(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """`system` apart, calls and results as blocks, the results of one step in one user message."""
    messages: Rows = []
    system = [{"type": "text", "text": str(row["content"])} for row in rows if row["role"] == "system"]
    for row in rows:
        match row["role"]:
            case "tool":
                block = {"type": "tool_result", "tool_use_id": row["tool_call_id"], "content": row["content"]}
                if not (messages[-1]["role"] == "user" and isinstance(messages[-1]["content"], list)):
                    messages.append({"role": "user", "content": []})
                messages[-1]["content"].append(block)
            case "assistant" if row.get("tool_calls"):
                text = [{"type": "text", "text": row["content"]}] if row.get("content") else []
                calls = [
                    {"type": "tool_use", "id": call["id"], "name": call["function"]["name"], "input": _input(call)}
                    for call in row["tool_calls"]
                ]
                messages.append({"role": "assistant", "content": text + calls, "stop_reason": "tool_use"})
            case "user" | "assistant" if row["content"]:
                messages.append({"role": row["role"], "content": row["content"]})
    return {"model": "claude", "max_tokens": 4_096, "system": system, "messages": messages}


def to_responses(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """`instructions` apart, each call and each output an item, reasoning before what it led to."""
    items: Rows = []
    for number, row in enumerate(rows):
        match row["role"]:
            case "tool":
                output = {"call_id": row["tool_call_id"], "output": row["content"]}
                items.append({"type": "function_call_output", **output})
            case "assistant" if row.get("content") or row.get("tool_calls"):
                items.append({"type": "reasoning", "id": f"rs_{number}", "summary": [], "encrypted_content": "Zm9v"})
                if row.get("content"):
                    text = {"type": "output_text", "text": row["content"], "annotations": []}
                    items.append({"type": "message", "role": "assistant", "id": f"msg_{number}", "content": [text]})
                items += [
                    {"type": "function_call", "id": f"fc_{number}", "call_id": call["id"], **call["function"]}
                    for call in row.get("tool_calls", ())
                ]
            case "user":
                items.append({"role": "user", "content": [{"type": "input_text", "text": row["content"]}]})
    system = "\n".join(str(row["content"]) for row in rows if row["role"] == "system")
    return {"model": "gpt", "instructions": system, "input": items}


def _input(call: dict[str, Any]) -> dict[str, Any]:
    given = json.loads(call["function"]["arguments"] or "{}")
    return given if isinstance(given, dict) else {}
