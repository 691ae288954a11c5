"""A model that answers from a list, without a network.

For the tests of nca and of programs that embed it.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from nca.messages import Message, Usage
from nca.models.catalog import ModelFacts
from nca.models.model import Delta, ModelRequest, OnDelta, Reply
from nca.vocabulary import count

Answer = Reply | Message | str | BaseException
ScriptedReply = Answer | Callable[[ModelRequest], Answer]
"""A reply, a message, a text, an exception to raise, or a function of the request that returns one."""

_PIECES = re.compile(r"\s*\S{1,12}|\s+")


class ScriptedModel:
    """Answers with `replies` in order and records every request in `requests`.

    A request after the last reply raises IndexError. Texts and messages get a token count as their usage, unless
    `reports_usage` is False.
    """

    def __init__(
        self, replies: Sequence[ScriptedReply], *, facts: ModelFacts | None = None, reports_usage: bool = True
    ) -> None:
        self.facts = facts or ModelFacts(name="scripted/model", provider="scripted", window_source="the script")
        self.requests: list[ModelRequest] = []
        self.is_closed = False
        self._replies = list(replies)
        self._reports_usage = reports_usage

    async def ask(self, request: ModelRequest, on_delta: OnDelta) -> Reply:
        """Answer with the next reply, in pieces. The event loop runs between two pieces, so it can be cancelled."""
        self.requests.append(request)
        if len(self.requests) > len(self._replies):
            raise IndexError(f"the script has {len(self._replies)} replies, this is request {len(self.requests)}")
        answer = self._replies[len(self.requests) - 1]
        if callable(answer):
            answer = answer(request)
        if isinstance(answer, BaseException):
            raise answer
        reply = self._complete(request, answer)
        for piece in _PIECES.findall(reply.message.reasoning):
            on_delta(Delta(reasoning=piece))
            await asyncio.sleep(0)
        for piece in _PIECES.findall(reply.message.text):
            on_delta(Delta(text=piece))
            await asyncio.sleep(0)
        return reply

    async def close(self) -> None:
        self.is_closed = True

    def _complete(self, request: ModelRequest, answer: Reply | Message | str) -> Reply:
        if isinstance(answer, Reply):
            return answer
        message = Message(role="assistant", content=answer) if isinstance(answer, str) else answer
        usage = None
        if self._reports_usage:
            calls = " ".join(f"{call.name} {call.arguments}" for call in message.tool_calls)
            usage = Usage(
                prompt_tokens=count_request_tokens(request.messages, request.tools),
                completion_tokens=count(message.text) + count(calls),
            )
        return Reply(message=message, usage=usage, finish_reason="tool_calls" if message.tool_calls else "stop")


MESSAGE_TOKENS = 4
"""Overhead of a message in common chat templates."""
REQUEST_TOKENS = 3

_PIECE = re.compile(r" ?(?:[^\W\d_]{1,6}|\d{1,3}|[^\s])|\s")


def split_text(text: str) -> list[str]:
    """Split the text into words, numbers and signs, as a stream brings them; joined, they are the text."""
    return _PIECE.findall(text)


def count_request_tokens(messages: Sequence[Mapping[str, Any]], tools: Sequence[Mapping[str, Any]] = ()) -> int:
    """Tokens of an OpenAI-shaped request: texts, tool calls and tool definitions. Media are not counted."""
    total = REQUEST_TOKENS + sum(count(json.dumps(tool, ensure_ascii=False)) for tool in tools)
    for message in messages:
        total += MESSAGE_TOKENS + count(_text(message.get("content")))
        for call in message.get("tool_calls") or ():
            function = call.get("function") or {}
            total += count(f"{function.get('name')} {function.get('arguments')}")
    return total


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list | tuple) else ()
    return "\n".join(str(part.get("text", "")) for part in parts if isinstance(part, Mapping))
