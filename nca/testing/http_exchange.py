"""One HTTP request to the loopback provider, with methods to answer it, correctly or not."""

from __future__ import annotations

import json
import socket
import struct
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any

from nca.testing.scripted import Answer, count_request_tokens, split_text
from nca.vocabulary import count

_CREATED = 1_700_000_000
"""Fixed, so that two runs write the same bytes."""


@dataclass(slots=True)
class Exchange:
    """A chat request, and the connection to answer it on.

    attempt        the number of this model's requests so far, from 1
    answer         the script's answer
    closing        set when the server stops
    note_refused   called with a request that is larger than the context window
    """

    handler: BaseHTTPRequestHandler
    request: dict[str, Any]
    attempt: int
    answer: Answer
    closing: threading.Event
    token_seconds: float = 0.0
    note_refused: Callable[[dict[str, Any]], None] = lambda request: None
    _is_chunked: bool = field(default=False, init=False)

    @property
    def model(self) -> str:
        return str(self.request.get("model", ""))

    @property
    def prompt_tokens(self) -> int:
        return count_request_tokens(self.request.get("messages") or [], self.request.get("tools") or ())

    @property
    def max_tokens(self) -> int:
        """The output limit of the request; 0 if it has none."""
        return self.request.get("max_tokens") or self.request.get("max_completion_tokens") or 0

    def refuse(self, window_tokens: int, *, counts_output: bool = False) -> bool:
        """Whether the request exceeds the window; it is then noted. `counts_output` adds the output limit."""
        if self.prompt_tokens + (self.max_tokens if counts_output else 0) <= window_tokens:
            return False
        self.note_refused(self.request)
        return True

    # Whole responses

    def reply(self) -> None:
        """The script's answer, streamed or not as the request asks."""
        if self.request.get("stream"):
            self.stream_answer()
        else:
            self.send_json(200, self.completion())

    def send_json(self, status: int, body: Any, headers: Mapping[str, str] | None = None) -> None:
        self.send(status, "application/json", json.dumps(body).encode(), headers)

    def error(self, status: int, message: str, *, kind: str, code: str | None = None, **headers: str) -> None:
        """An OpenAI-shaped error. Header names have underscores for dashes."""
        body = {"error": {"message": message, "type": kind, "param": None, "code": code}}
        self.send_json(status, body, {name.replace("_", "-"): value for name, value in headers.items()})

    def send(self, status: int, content_type: str, body: bytes, headers: Mapping[str, str] | None = None) -> None:
        self.handler.send_response(status)
        self.handler.send_header("Content-Type", content_type)
        self.handler.send_header("Content-Length", str(len(body)))
        for name, value in (headers or {}).items():
            self.handler.send_header(name, value)
        self.handler.end_headers()
        self.handler.wfile.write(body)

    def completion(self) -> dict[str, Any]:
        answer = self.answer
        message: dict[str, Any] = {"role": "assistant", "content": answer.text or None}
        if answer.tool_calls:
            message["tool_calls"] = [self.tool_call(index) for index in range(len(answer.tool_calls))]
        choice = {"index": 0, "message": message, "finish_reason": self.finish_reason}
        return self.envelope("chat.completion") | {"choices": [choice], "usage": self.usage()}

    # Pieces of a stream

    def stream_answer(self) -> None:
        """The script's answer token by token, with finish reason, usage if requested, and `[DONE]`."""
        self.begin()
        for token in split_text(self.answer.reasoning):
            self.delta({"reasoning_content": token})
        self.text(self.answer.text)
        self._end_with_calls()

    def begin(self, *, role: bool = True, chunked: bool = True, content_type: str = "text/event-stream") -> None:
        self.handler.send_response(200)
        self.handler.send_header("Content-Type", content_type)
        if chunked:
            self.handler.send_header("Transfer-Encoding", "chunked")
        self.handler.end_headers()
        self._is_chunked = chunked
        if role:
            self.delta({"role": "assistant", "content": ""})

    def text(self, text: str) -> None:
        for token in split_text(text):
            self.delta({"content": token})
            if self.token_seconds:
                time.sleep(self.token_seconds)

    def delta(self, delta: Any, finish_reason: str | None = None) -> None:
        self.event({"choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}]})

    def event(self, body: Any) -> None:
        """An event; a mapping is wrapped as a chunk, a string is sent as it is."""
        self.raw(f"data: {body if isinstance(body, str) else self.chunk(body)}\n\n".encode())

    def chunk(self, body: Mapping[str, Any], *, ascii: bool = True) -> str:
        """The data of an event."""
        return json.dumps(self.envelope("chat.completion.chunk") | dict(body), ensure_ascii=ascii)

    def raw(self, data: bytes) -> None:
        """Bytes of the response body."""
        self.handler.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n" if self._is_chunked else data)
        self.handler.wfile.flush()

    def calls(self, *calls: tuple[str, Mapping[str, Any] | str]) -> None:
        """Finish a stream with these tool calls."""
        self.answer = Answer(tool_calls=calls)
        self._end_with_calls()

    def _end_with_calls(self) -> None:
        for index in range(len(self.answer.tool_calls)):
            self.delta({"tool_calls": [{"index": index} | self.tool_call(index)]})
        self.finish()
        self.done()

    def finish(self, reason: str = "") -> None:
        """The finish reason, and the usage if requested."""
        self.delta({}, reason or self.finish_reason)
        if (self.request.get("stream_options") or {}).get("include_usage"):
            self.event({"choices": [], "usage": self.usage()})

    def done(self) -> None:
        self.raw(b"data: [DONE]\n\n")
        self.end()

    def end(self) -> None:
        """End the response without `[DONE]`."""
        self.handler.wfile.write(b"0\r\n\r\n" if self._is_chunked else b"")

    def cut(self) -> None:
        """Close the connection in the middle of the response."""
        self.handler.wfile.flush()
        self.handler.close_connection = True

    def reset(self) -> None:
        """Reset the connection."""
        self.handler.wfile.flush()
        self.handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.handler.close_connection = True

    def stall(self) -> None:
        """Send nothing more until the server stops."""
        self.handler.wfile.flush()
        self.closing.wait()
        self.handler.close_connection = True

    # Parts

    @property
    def finish_reason(self) -> str:
        return self.answer.finish_reason or ("tool_calls" if self.answer.tool_calls else "stop")

    def tool_call(self, index: int) -> dict[str, Any]:
        name, arguments = self.answer.tool_calls[index]
        text = arguments if isinstance(arguments, str) else json.dumps(arguments)
        # Unique as long as requests only grow: it includes the number of messages so far.
        call = self.answer.call or f"call_{len(self.request.get('messages') or [])}"
        return {"id": f"{call}_{index}", "type": "function", "function": {"name": name, "arguments": text}}

    def usage(self) -> dict[str, int]:
        calls = " ".join(f"{name} {arguments}" for name, arguments in self.answer.tool_calls)
        completion = sum(count(text) for text in (self.answer.text, self.answer.reasoning, calls))
        prompt = self.prompt_tokens
        return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}

    def envelope(self, kind: str) -> dict[str, Any]:
        return {"id": f"chatcmpl-{self.attempt}", "object": kind, "created": _CREATED, "model": self.model}
