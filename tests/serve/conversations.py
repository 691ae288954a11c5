"""Random conversations in every shape, as other programs hold them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from nca.context.rules.calls import with_results_in_order, with_unique_ids, with_whole_pairs
from nca.context.rules.messages import with_user_first
from nca.messages import Message, ToolCall
from nca.wire import message_to_dict
from tests.context.logs import logs

Rows = list[dict[str, Any]]
NOTE = {"role": "_note", "at": 1}


@st.composite
def conversations(draw: st.DrawFn) -> tuple[str, Rows]:
    """A shape and its rows, with notes between them. Each call has its result; the results of a step stand apart."""
    messages = with_user_first(with_whole_pairs(with_results_in_order(draw(logs()))))
    shape = draw(st.sampled_from(["openai", "anthropic", "responses"]))
    chance = draw(st.randoms())
    told = {"openai": chats, "anthropic": blocks, "responses": items}[shape](with_unique_ids(messages), chance)
    return shape, [row for one in told for row in ([NOTE, one] if chance.random() < 0.05 else [one])]


def chats(messages: Sequence[Message], chance: random.Random) -> Rows:
    rows = [message_to_dict(message) for message in messages]
    for row in rows:
        if isinstance(row["content"], str) and row["role"] == "user" and chance.random() < 0.2:
            row["content"] = [{"type": "text", "text": row["content"]}]
    return rows


def blocks(messages: Sequence[Message], chance: random.Random) -> Rows:
    """Anthropic's: the results of a step in one row, some with what is said next; thoughts; searches on the server."""
    rows: Rows = []
    for number, message in enumerate(messages):
        match message.role:
            case "tool":
                result = {"type": "tool_result", "tool_use_id": message.tool_call_id, "content": message.text}
                if not rows or rows[-1]["role"] != "user" or chance.random() < 0.1:
                    rows.append({"role": "user", "content": []})
                rows[-1]["content"].append(result)
            case "assistant":
                said = [{"type": "text", "text": message.text}] if message.text.strip() else []
                if chance.random() < 0.1:
                    said = [*_searched(number), *said]
                if said and chance.random() < 0.2:
                    said = [{"type": "thinking", "thinking": "Let me see.", "signature": "Zm9v"}, *said]
                calls = [
                    {"type": "tool_use", "id": call.id, "name": call.name, "input": {"a": call.arguments}}
                    for call in message.tool_calls
                ]
                rows.append({"role": "assistant", "content": [*said, *calls]} if said or calls else SAID_NOTHING)
            case _ if rows and rows[-1]["role"] == "user" and isinstance(rows[-1]["content"], list):
                rows[-1]["content"].append({"type": "text", "text": message.text or "."})
            case _:
                text = message.text or "."
                rows.append(
                    {"role": "user", "content": chance.choice([text, [{"type": "text", "text": text, "_n": 1}]])}
                )
    return rows


SAID_NOTHING = {"role": "assistant", "content": "Well."}


def _searched(number: int) -> Rows:
    found = {"type": "web_search_result", "title": "A page", "url": "https://a.example", "encrypted_content": "e" * 300}
    return [
        {"type": "server_tool_use", "id": f"srv{number}", "name": "web_search", "input": {"query": "a page"}},
        {"type": "web_search_tool_result", "tool_use_id": f"srv{number}", "content": [found]},
    ]


def items(messages: Sequence[Message], chance: random.Random) -> Rows:
    """Of the Responses API: calls of each kind, reasoning, searches of the server between two texts of an answer."""
    rows: Rows = []
    kinds: dict[str, str] = {}
    for number, message in enumerate(messages):
        if message.role == "tool":
            kind = kinds.get(message.tool_call_id, "function_call")
            rows.append({"type": f"{kind}_output", "call_id": message.tool_call_id, "output": message.text})
            if kind == "shell_call":
                rows[-1]["output"] = [
                    {"stdout": message.text, "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}
                ]
            elif kind == "apply_patch_call":
                rows[-1]["status"] = "completed"
            continue
        if message.role == "assistant" and chance.random() < 0.3:
            rows.append({"type": "reasoning", "id": f"rs_{number}", "summary": [], "encrypted_content": "Zm9v"})
        said = "output_text" if message.role == "assistant" else "input_text"
        content = chance.choice([message.text, [{"type": said, "text": message.text}]])
        if message.text or not number:
            rows.append({"type": "message", "role": message.role, "content": content})
        if message.role == "assistant" and chance.random() < 0.1:
            rows.append({"type": "web_search_call", "id": f"ws_{number}", "status": "completed", "action": {}})
            rows.append({"type": "message", "role": "assistant", "content": "Found. " * chance.randrange(200)})
        for call in message.tool_calls:
            rows.append(_call(call, chance.choice(["function_call", "custom_tool_call", "shell_call", "patch"])))
            kinds[call.id] = rows[-1]["type"]
    return rows


def _call(call: ToolCall, kind: str) -> dict[str, Any]:
    match kind:
        case "function_call":
            return {"type": kind, "call_id": call.id, "name": call.name, "arguments": call.arguments}
        case "custom_tool_call":
            return {"type": kind, "call_id": call.id, "name": call.name, "input": call.arguments}
        case "shell_call":
            return {"type": kind, "call_id": call.id, "action": {"commands": [f"echo {call.arguments}"]}}
    operation = {"type": "update_file", "path": "a.py", "diff": call.arguments}
    return {"type": "apply_patch_call", "call_id": call.id, "status": "completed", "operation": operation}
