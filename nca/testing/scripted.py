"""A model that answers from a list, without a network; and scripts that make the loopback provider's answers.

For the tests of nca and of programs that embed it. The default script writes prose.
"""

from __future__ import annotations

import asyncio
import json
import re
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from nca.messages import Message, Usage
from nca.models.catalog import ModelFacts
from nca.models.model import Delta, ModelRequest, OnDelta, Reply
from nca.vocabulary import count

ScriptedAnswer = Reply | Message | str | BaseException
ScriptedReply = ScriptedAnswer | Callable[[ModelRequest], ScriptedAnswer]
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


SECTIONS = (
    "Goal and intent",
    "Constraints and rules the user set",
    "Decisions and findings",
    "Key concepts",
    "Files and code",
    "Errors and fixes",
    "Pending and done",
    "Current work",
    "Next step",
)

_OPENINGS = (
    "That depends on what you want to keep.",
    "There are two ways to look at it.",
    "In short, yes, with one reservation.",
    "The plain answer is shorter than the question.",
    "Let us take it one step at a time.",
    "Most people start at the other end.",
)
_MIDDLES = (
    "The first thing to settle is who reads the result, because that decides how much detail it can carry.",
    "A small change made early costs less than a large one made late, and it is easier to take back.",
    "What looks like one problem is often two that happen to share a name.",
    "Measurements come first; an opinion about speed that was never measured is a guess.",
    "It helps to write down what must not change before changing anything at all.",
    "The old behaviour was not wrong, it was made for a smaller house.",
    "If both parts fail in the same way, look for what they have in common.",
    "A name that needs a comment is usually the wrong name.",
    "Keep the record of how it was, so that the way back stays open.",
    "Whatever is done twice will at some point be done differently, and then nobody knows which one is right.",
)
_ENDINGS = (
    "Tell me which of these matters most and I will go into it.",
    "That is where I would begin.",
    "Everything else can wait until this is clear.",
    "If that fits, the next step is small.",
)


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer of the provider.

    tool_calls      name and arguments (an object, or a string that is sent as it is)
    finish_reason   "": stop, tool_calls, or length if the answer was cut
    call            how the ids of its tool calls begin; "": the number of messages in the request says it
    """

    text: str = ""
    tool_calls: Sequence[tuple[str, Mapping[str, Any] | str]] = field(default_factory=tuple)
    reasoning: str = ""
    finish_reason: str = ""
    call: str = ""


class Script(Protocol):
    """A function from the OpenAI-shaped request to the answer. Called on the server's threads."""

    def __call__(self, request: dict[str, Any]) -> Answer | str: ...


def in_order(*answers: Answer | str) -> Script:
    """A script that gives these answers in order and then repeats the last one."""
    waiting = list(answers)

    def script(request: dict[str, Any]) -> Answer | str:
        return waiting.pop(0) if len(waiting) > 1 else waiting[0]

    return script


def prose(request: dict[str, Any]) -> Answer:
    """The default script: prose that quotes the user and differs from turn to turn, or a summary if asked for one."""
    messages = request.get("messages") or []
    asked = text_of(messages[-1]) if messages else ""
    if is_summary_request(request):
        return Answer(text=_summary(asked))
    seed = zlib.crc32(f"{len(messages)} {asked}".encode("utf-8", "replace"))
    words = " ".join(re.findall(r"\w+", asked)[:8]) or "nothing"
    middles = [_MIDDLES[(seed // 7 + step * 3) % len(_MIDDLES)] for step in range(3 + seed % 4)]
    opening, ending = _OPENINGS[seed % len(_OPENINGS)], _ENDINGS[seed % len(_ENDINGS)]
    return Answer(text="\n\n".join([f"{opening} You asked about “{words}”.", " ".join(middles), ending]))


def is_summary_request(request: Mapping[str, Any]) -> bool:
    """Whether the request asks for a summary, and is not part of the conversation."""
    messages = request.get("messages") or []
    asked = text_of(messages[-1]) if messages else ""
    return (
        len(messages) <= 3
        and not request.get("tools")
        and bool(re.search(r"<transcript>|\bsummar", asked, re.IGNORECASE))
    )


def text_of(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, str):
        return content
    return json.dumps(content, ensure_ascii=False) if content else ""


def _summary(asked: str) -> str:
    """Nine sections, each with a line of the transcript, so that different conversations get different summaries."""
    told = asked.partition("<transcript>")[2] or asked
    lines = [line.strip() for line in told.splitlines() if len(line.strip()) > 20]
    step = max(1, len(lines) // len(SECTIONS))
    picked = [lines[index * step][:160] if index * step < len(lines) else "None." for index in range(len(SECTIONS))]
    return "\n\n".join(f"## {title}\n{line}" for title, line in zip(SECTIONS, picked, strict=True))
