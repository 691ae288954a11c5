"""The models of other agents on loopback: each protocol streams the same answer, and every request is kept."""

from __future__ import annotations

import json
from typing import Any

from nca.testing.provider import LoopbackHandler, LoopbackProvider

ANSWER = "The tests pass."
Event = tuple[str, dict[str, Any]]


class LoopbackModels(LoopbackProvider):
    """Serves Anthropic's Messages, OpenAI's Responses and Google's contents, from `with` to its end."""

    def __init__(self) -> None:
        super().__init__(_Handler)


class _Handler(LoopbackHandler):
    def on_post(self, body: bytes) -> None:
        path = self.path.partition("?")[0]
        request: dict[str, Any] = json.loads(body) if body.startswith(b"{") else {}
        if path.endswith("/v1/messages"):
            self._answer(request, _anthropic(request))
        elif path.endswith("/responses"):
            self._answer(request, _responses())
        elif path.endswith(":streamGenerateContent"):
            self._answer(request, [("", _google())])
        elif path.endswith(":generateContent"):
            self._send("application/json", json.dumps(_google()).encode())
        else:
            self.send_error(404)

    def _answer(self, request: dict[str, Any], events: list[Event]) -> None:
        self.server.provider.record(request, [])
        lines = [(f"event: {name}\n" if name else "") + f"data: {json.dumps(data)}\n\n" for name, data in events]
        self._send("text/event-stream", "".join(lines).encode())

    def _send(self, content_type: str, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _anthropic(request: dict[str, Any]) -> list[Event]:
    usage = {"input_tokens": 100, "output_tokens": 5}
    message: dict[str, Any] = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "content": [],
        "stop_reason": None,
    }
    events: list[Event] = [
        ("message_start", {"message": {**message, "model": request.get("model"), "usage": usage}}),
        ("content_block_start", {"index": 0, "content_block": {"type": "text", "text": ""}}),
        ("content_block_delta", {"index": 0, "delta": {"type": "text_delta", "text": ANSWER}}),
        ("content_block_stop", {"index": 0}),
        ("message_delta", {"delta": {"stop_reason": "end_turn"}, "usage": usage}),
        ("message_stop", {}),
    ]
    return [(name, {"type": name, **data}) for name, data in events]


def _responses() -> list[Event]:
    said = {"type": "output_text", "text": ANSWER, "annotations": []}
    item = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [said]}
    usage = {"input_tokens": 100, "output_tokens": 5, "total_tokens": 105}
    done = {"id": "resp_1", "object": "response", "status": "completed", "output": [item], "usage": usage}
    events: list[Event] = [
        ("response.created", {"response": {"id": "resp_1", "status": "in_progress", "output": []}}),
        ("response.output_item.added", {"output_index": 0, "item": {**item, "content": []}}),
        ("response.output_text.delta", {"output_index": 0, "item_id": "msg_1", "delta": ANSWER}),
        ("response.output_item.done", {"output_index": 0, "item": item}),
        ("response.completed", {"response": done}),
    ]
    return [(name, {"type": name, **data}) for name, data in events]


def _google() -> dict[str, Any]:
    content = {"role": "model", "parts": [{"text": ANSWER}]}
    usage = {"promptTokenCount": 100, "candidatesTokenCount": 5, "totalTokenCount": 105}
    return {"candidates": [{"content": content, "finishReason": "STOP", "index": 0}], "usageMetadata": usage}
