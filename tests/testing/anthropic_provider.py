"""Anthropic's Messages API on loopback: streamed, with tools, signed thoughts, a prompt cache and compaction.

    with AnthropicProvider(window_tokens=200_000) as provider:
        ...  # model anthropic/NAME, model.api_base = provider.url, any key

A model's name selects a failure: overloaded, overloaded-once, overloaded-in-stream, no-such-model.
"""

from __future__ import annotations

import json
from hashlib import blake2b
from typing import Any

from nca.testing.provider import LoopbackHandler, LoopbackProvider
from nca.testing.scripted import Answer, Script, prose, split_text
from nca.vocabulary import count
from tests.testing.anthropic_rules import body_problems

LOOK_BACK_BLOCKS = 20
"""Anthropic looks so many blocks back from a mark for what it has cached."""
CLAUDE_PER_O200K = 1.3
"""Claude's tokenizers make more of a text than o200k does."""
LEAST_TRIGGER_TOKENS = 50_000
"""Anthropic refuses a lower trigger for a compaction."""
SUMMARY = "Summary of the conversation: the work so far, its decisions and what is left to do. "
_Event = tuple[str, dict[str, Any]]


class AnthropicProvider(LoopbackProvider):
    """A server in a thread, from `with` to its end. `script` gets the request as it came in, Anthropic-shaped.

    betas        the anthropic-beta header of each request
    summary      what its compactions say
    billed       input tokens of every sampling so far
    """

    def __init__(self, script: Script = prose, *, window_tokens: int = 200_000, summary: str = SUMMARY) -> None:
        super().__init__(_Handler)
        self.script = script
        self.window_tokens = window_tokens
        self.summary = summary
        self.betas: list[str] = []
        self.billed = 0
        self._signed: set[str] = set()
        self._cached: set[bytes] = set()

    def take(self, body: dict[str, Any], betas: str) -> int:
        """Record a request; which one it is of its model, from 1."""
        self.betas.append(betas)
        return self.record(body, body_problems(body, betas, signed=self._signed))

    def refusal(self, body: dict[str, Any], attempt: int) -> tuple[int, str, str] | None:
        """Status, type and message of an error; None where the request is answered."""
        model = body.get("model")
        if model == "overloaded" or (model == "overloaded-once" and attempt == 1):
            return 529, "overloaded_error", "Overloaded"
        if model == "no-such-model":
            return 404, "not_found_error", f"model: {model}"
        trigger = _trigger(body)
        if trigger is not None and trigger < LEAST_TRIGGER_TOKENS:
            return 400, "invalid_request_error", f"context_management: trigger must be at least {LEAST_TRIGGER_TOKENS}"
        asked = sum(tokens for tokens, _ in _blocks(body))
        if asked > self.window_tokens:
            message = f"prompt is too long: {asked} tokens > {self.window_tokens} maximum"
            return 400, "invalid_request_error", message
        return None

    def events(self, body: dict[str, Any], attempt: int) -> list[_Event]:
        """The whole answer, event by event."""
        blocks = _blocks(body)
        asked = sum(tokens for tokens, _ in blocks)
        trigger = _trigger(body)
        self.billed += asked
        if trigger is not None and asked >= trigger:
            return self._compaction(body, asked)
        given = self.script(body)
        answer = Answer(text=given) if isinstance(given, str) else given
        usage = self._usage(blocks)
        said = _tokens(answer.text) + _tokens(answer.reasoning) + 1
        row = {"type": "message", **usage, "output_tokens": said}
        final = {"output_tokens": said} | ({"iterations": [row]} if trigger is not None else {})
        reason = answer.finish_reason or ("tool_use" if answer.tool_calls else "end_turn")
        return [_message_start(body, usage), *self._content(body, answer), *_message_end(reason, final)]

    def _content(self, body: dict[str, Any], answer: Answer) -> list[_Event]:
        """Thought, text and calls, a block each."""
        blocks: list[tuple[dict[str, Any], list[dict[str, Any]]]] = []
        if answer.reasoning:
            signature = blake2b(f"{body['model']}{answer.reasoning}".encode(), digest_size=12).hexdigest()
            self._signed.add(signature)
            deltas = [{"type": "thinking_delta", "thinking": piece} for piece in split_text(answer.reasoning)]
            signed = [*deltas, {"type": "signature_delta", "signature": signature}]
            blocks.append(({"type": "thinking", "thinking": "", "signature": ""}, signed))
        if answer.text:
            deltas = [{"type": "text_delta", "text": piece} for piece in split_text(answer.text)]
            blocks.append(({"type": "text", "text": ""}, deltas))
        for number, (name, arguments) in enumerate(answer.tool_calls):
            # An id is unique in a conversation: it counts the messages so far.
            call = {"type": "tool_use", "id": f"toolu_{len(body['messages'])}_{number}", "name": name, "input": {}}
            text = arguments if isinstance(arguments, str) else json.dumps(arguments)
            blocks.append((call, [{"type": "input_json_delta", "partial_json": text}]))
        return [event for index, (start, deltas) in enumerate(blocks) for event in _block(index, start, deltas)]

    def _compaction(self, body: dict[str, Any], asked: int) -> list[_Event]:
        """Its own summary and a stop; what it took is in the iterations only, as the real API has it."""
        row = {"type": "compaction", "input_tokens": asked, "output_tokens": _tokens(self.summary)}
        block = _block(
            0, {"type": "compaction", "content": None}, [{"type": "compaction_delta", "content": self.summary}]
        )
        start = _message_start(
            body, {"input_tokens": 0, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0}
        )
        usage = {"input_tokens": 0, "output_tokens": 0, "iterations": [row]}
        return [start, *block, *_message_end("compaction", usage)]

    def _usage(self, blocks: list[tuple[int, str]]) -> dict[str, int]:
        """Input, read from the cache and written to it, as marks and what was sent before make it."""
        keys, total, marks = [], 0, []
        state = blake2b(digest_size=12)
        for tokens, text in blocks:
            total += tokens
            state.update(text.removeprefix(_MARKED).encode())
            keys.append((state.digest(), total))
            if text.startswith(_MARKED):
                marks.append(len(keys) - 1)
        read = 0
        for mark in marks:
            looked_at = keys[max(0, mark - LOOK_BACK_BLOCKS) : mark + 1]
            read = max([read, *(upto for key, upto in looked_at if key in self._cached)])
        self._cached.update(keys[mark][0] for mark in marks)
        written = max([0, *(keys[mark][1] - read for mark in marks)])
        return {
            "input_tokens": total - read - written,
            "cache_read_input_tokens": read,
            "cache_creation_input_tokens": written,
            "output_tokens": 1,
        }


_MARKED = "\0marked\0"


def _tokens(text: str) -> int:
    return round(CLAUDE_PER_O200K * count(text))


def _blocks(body: dict[str, Any]) -> list[tuple[int, str]]:
    """Tokens and content of each block that the model reads: tools, system prompt, talk from the last compaction on.

    The content of a block with a cache mark has _MARKED before it; the mark itself is no part of it.
    """
    rows: list[Any] = [*body.get("tools", ()), *_listed(body.get("system"))]
    talk: list[Any] = []
    for message in body.get("messages", ()):
        for block in _listed(message["content"]):
            if block.get("type") == "compaction":
                talk.clear()
            talk.append({"role": message["role"], **block})
    return [_counted(row) for row in (*rows, *talk)]


def _counted(row: dict[str, Any]) -> tuple[int, str]:
    content = {key: value for key, value in row.items() if key != "cache_control"}
    text = json.dumps(content, sort_keys=True, ensure_ascii=False)
    return _tokens(_words(content)) + 3, (_MARKED if "cache_control" in row else "") + text


def _words(value: Any) -> str:
    if isinstance(value, dict):
        return " ".join(_words(item) for key, item in value.items() if key not in ("type", "signature", "id"))
    return " ".join(map(_words, value)) if isinstance(value, list) else str(value)


def _listed(content: Any) -> list[Any]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content or ())


def _trigger(body: dict[str, Any]) -> int | None:
    for edit in (body.get("context_management") or {}).get("edits", ()):
        if edit.get("type") == "compact_20260112":
            return int((edit.get("trigger") or {}).get("value", 150_000))
    return None


def _message_start(body: dict[str, Any], usage: dict[str, Any]) -> _Event:
    empty: dict[str, Any] = {"id": "msg_1", "type": "message", "role": "assistant", "content": [], "stop_reason": None}
    return "message_start", {"message": {**empty, "model": body["model"], "usage": usage}}


def _block(index: int, start: dict[str, Any], deltas: list[dict[str, Any]]) -> list[_Event]:
    return [
        ("content_block_start", {"index": index, "content_block": start}),
        *(("content_block_delta", {"index": index, "delta": delta}) for delta in deltas),
        ("content_block_stop", {"index": index}),
    ]


def _message_end(reason: str, usage: dict[str, Any]) -> list[_Event]:
    return [("message_delta", {"delta": {"stop_reason": reason}, "usage": usage}), ("message_stop", {})]


class _Handler(LoopbackHandler):
    def on_post(self, body: bytes) -> None:
        provider: AnthropicProvider = self.server.provider
        request: dict[str, Any] = json.loads(body)
        if self.path != "/v1/messages":
            self._send_error(404, "not_found_error", f"Not found: {self.path}")
            return
        attempt = provider.take(request, self.headers.get("anthropic-beta") or "")
        if (refused := provider.refusal(request, attempt)) is not None:
            self._send_error(*refused)
            return
        self._stream(provider.events(request, attempt), cut=request["model"] == "overloaded-in-stream")

    def _stream(self, events: list[_Event], *, cut: bool) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        if cut:
            events = [*events[:1], ("error", {"error": {"type": "overloaded_error", "message": "Overloaded"}})]
        for name, data in events:
            self.wfile.write(f"event: {name}\ndata: {json.dumps({'type': name, **data})}\n\n".encode())

    def _send_error(self, status: int, kind: str, message: str) -> None:
        data = json.dumps({"type": "error", "error": {"type": kind, "message": message}}).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.send_header("retry-after", "0")
        self.end_headers()
        self.wfile.write(data)
