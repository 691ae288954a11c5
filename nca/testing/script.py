"""Scripts that make the loopback provider's answers, and the default one, which writes prose."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

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
