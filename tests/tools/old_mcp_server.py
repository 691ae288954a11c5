"""A hand-written server for protocol 2025-11-25: it notifies unasked, and does what the SDK would not do."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

OBJECT = {"type": "object", "properties": {"text": {"type": "string"}}}
tools: list[dict[str, Any]] = [
    {"name": "grow", "description": "One more tool.", "inputSchema": OBJECT},
    {"name": "deaf", "description": "Read nothing more for a long time.", "inputSchema": OBJECT},
    {"name": "echo", "description": "Say it again.", "inputSchema": OBJECT},
    {"name": "ask", "description": "Ask the client something, and say its answer.", "inputSchema": {"type": "object"}},
    {"name": "task", "description": "A task.", "inputSchema": OBJECT, "execution": {"taskSupport": "required"}},
]


def say(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def text(words: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": words}]}


def call(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    match name:
        case "grow":
            tools.append({"name": f"grown{len(tools)}", "description": "New.", "inputSchema": OBJECT})
            say({"method": "notifications/tools/list_changed"})
        case "deaf":
            time.sleep(600)
        case "ask":
            for message in arguments["params"].get("messages", ()):
                message["content"]["text"] *= arguments.get("times", 1)
            say({"id": "q1", "method": arguments["method"], "params": arguments["params"]})
            for line in sys.stdin:
                answered = json.loads(line)
                if answered.get("id") == "q1":
                    return text(json.dumps(answered.get("result") or answered.get("error")))
    return text(str(arguments.get("text", "")))


def answer(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    match method:
        case "initialize":
            about = {"name": "old", "version": "1"}
            offered = {"tools": {"listChanged": True}}
            return {"protocolVersion": "2025-11-25", "serverInfo": about, "capabilities": offered}
        case "tools/list":
            return {"tools": tools}
        case "tools/call":
            return call(params["name"], params.get("arguments") or {})
    return None


for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        continue
    result = answer(request["method"], request.get("params") or {})
    missing = {"error": {"code": -32601, "message": "Method not found"}}
    say({"id": request["id"], **({"result": result} if result is not None else missing)})
