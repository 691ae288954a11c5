"""Count tokens as other programs do, to the token. nca's own count is another: that of nca.context.meter.

The presets repeat the formulas of other programs, mistakes included, for people who compare or move. A length is what
the program's language takes for one: UTF-16 units in JavaScript, bytes of UTF-8 in Rust, code points in Python.

| preset    | text                                                     | a message              | image / document |
| --------- | -------------------------------------------------------- | ---------------------- | ---------------- |
| nca       | characters / 4, / 3.5 in a tool message (first design)   | + 10, + 50 a call      | as their names   |
| neurolink | ceil(ceil(UTF-16 units / 4 or 3) × multiplier × 1.15)    | + 4, calls not counted | 1,024 / 1,024    |
| neuron    | ceil(bytes / 4.0)                                        | + 4, and calls         | 300 / 500        |
| cowagent  | int(1.5 × non-ASCII + 0.25 × ASCII) + 1, 0 for no text   | + 50 a call, 30 a result | 1,200 / 10     |

The formulas are those of the programs. NeuroLink rounds the product up once more than its documentation says, and
Neuron rounds each text up in single precision.
"""

from __future__ import annotations

import json
import struct
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import ceil
from typing import Any, Literal, get_args

import msgspec

from nca.messages import MediaPart, Message, Part, ToolCall
from nca.wire import content_text, part_text

PROSE_CHARS_PER_TOKEN = 4.0
"""NeuroLink's CHARS_PER_TOKEN, and nca's first design."""
CODE_CHARS_PER_TOKEN = 3.0
"""NeuroLink's CODE_CHARS_PER_TOKEN."""
RESULT_CHARS_PER_TOKEN = 3.5
"""From nca's first design, for tool messages."""
NEUROLINK_MESSAGE_TOKENS = 4
NEUROLINK_CONVERSATION_TOKENS = 24
NEUROLINK_IMAGE_TOKENS = 1_024
NEUROLINK_MARGIN = 1.15
NEUROLINK_MULTIPLIERS: Mapping[str, float] = {
    "anthropic": 1.23,
    "bedrock": 1.23,
    "google-ai": 1.18,
    "gemini": 1.18,
    "vertex": 1.18,
    "vertex_ai": 1.18,
    "mistral": 1.26,
    "codestral": 1.26,
}
"""NeuroLink's framing, flat estimate, TOKEN_SAFETY_MARGIN and multipliers, with litellm's names of the providers."""
FIRST_DESIGN_MESSAGE_TOKENS = 10
FIRST_DESIGN_CALL_TOKENS = 50
"""Characters that nca's first design adds for a message, and for each of its calls."""
NEURON_MESSAGE_TOKENS = 4
NEURON_IMAGE_TOKENS = 300
NEURON_DOCUMENT_TOKENS = 500
"""From the table of Neuron's counter."""
COWAGENT_IMAGE_TOKENS = 1_200
COWAGENT_CALL_TOKENS = 50
COWAGENT_RESULT_TOKENS = 30
COWAGENT_OTHER_TOKENS = 10
"""CowAgent's counts for the structure of a call, of a result, and for a part of an unknown kind."""

Tools = Sequence[Mapping[str, Any]]


class Preset(ABC):
    """A way to count. `provider` and `density`, the characters per token, are for formulas that use them."""

    @abstractmethod
    def text(self, text: str, provider: str, density: float) -> int: ...

    def message(self, message: Message, provider: str, density: float) -> int:
        return 0

    def tool(self, tool: Mapping[str, Any]) -> int:
        return 0

    def request(self, messages: Sequence[Message], tools: Tools, provider: str, density: float) -> int:
        """Tokens of one request."""
        counted = sum(self.message(message, provider, density) for message in messages)
        return counted + sum(map(self.tool, tools))


class FirstDesign(Preset):
    """nca's first design: characters over 4, over 3.5 in a tool message, 10 a message and 50 a call; no tools."""

    def text(self, text: str, provider: str, density: float) -> int:
        return int(len(text) / density)

    def message(self, message: Message, provider: str, density: float) -> int:
        if message.role == "tool" and density == PROSE_CHARS_PER_TOKEN:
            density = RESULT_CHARS_PER_TOKEN
        text = self.text(content_text(message.content), "", density)
        return FIRST_DESIGN_MESSAGE_TOKENS + text + FIRST_DESIGN_CALL_TOKENS * len(message.tool_calls)


class Neurolink(Preset):
    """NeuroLink: estimateTokens, estimateMessagesTokens, and the budget checker's tool definitions."""

    def text(self, text: str, provider: str, density: float) -> int:
        # The order of the products is the program's: another gives another last bit, and so another token.
        return ceil(
            ceil(_utf16_units(text) / density) * NEUROLINK_MULTIPLIERS.get(provider.lower(), 1.0) * NEUROLINK_MARGIN
        )

    def request(self, messages: Sequence[Message], tools: Tools, provider: str, density: float) -> int:
        framing = NEUROLINK_CONVERSATION_TOKENS if messages else 0
        return framing + super().request(messages, tools, provider, density)

    def message(self, message: Message, provider: str, density: float) -> int:
        count = partial(self.text, provider=provider, density=density)
        media = NEUROLINK_IMAGE_TOKENS
        return NEUROLINK_MESSAGE_TOKENS + _content(message.content, count, image=media, other=media)

    def tool(self, tool: Mapping[str, Any]) -> int:
        """Neither multiplied nor with the margin: the length of the JSON over 4, rounded up."""
        return ceil(_utf16_units(_compact(tool)) / PROSE_CHARS_PER_TOKEN)


class Neuron(Preset):
    """Neuron: TokenCounter."""

    def text(self, text: str, provider: str, density: float) -> int:
        return ceil(_single(_single(_utf8_bytes(text)) / _single(density)))

    def message(self, message: Message, provider: str, density: float) -> int:
        count = partial(self._plain, density=density)
        calls = sum(count(call.name) + count(_arguments(call)) for call in message.tool_calls)
        said = _content(message.content, count, image=NEURON_IMAGE_TOKENS, other=NEURON_DOCUMENT_TOKENS)
        return NEURON_MESSAGE_TOKENS + count(message.reasoning) + said + calls

    def tool(self, tool: Mapping[str, Any]) -> int:
        described = tool.get("function", tool)
        schema = described.get("parameters", described.get("input_schema", {}))
        names = (str(described.get(key) or "") for key in ("name", "description"))
        return sum(map(self._plain, (*names, _compact(schema))))

    def _plain(self, text: str, density: float = PROSE_CHARS_PER_TOKEN) -> int:
        return self.text(text, "", density)


class Cowagent(Preset):
    """CowAgent's estimate. It counts no tool definitions and no framing of a message."""

    def text(self, text: str, provider: str = "", density: float = PROSE_CHARS_PER_TOKEN) -> int:
        if not text:
            return 0
        ascii_chars = len(text) if text.isascii() else sum(char < "\x80" for char in text)
        return int((len(text) - ascii_chars) * 1.5 + ascii_chars * 0.25) + 1

    def message(self, message: Message, provider: str, density: float) -> int:
        content = message.content
        if message.role == "tool":
            # Only a result that is one text is counted; of a list of parts the program counts the frame.
            return COWAGENT_RESULT_TOKENS + (self.text(content) if isinstance(content, str) else 0)
        said = _content(content, self.text, image=COWAGENT_IMAGE_TOKENS, other=COWAGENT_OTHER_TOKENS)
        return max(1, said + sum(self._call(call) for call in message.tool_calls))

    def _call(self, call: ToolCall) -> int:
        given = _decoded(call)
        counted = json.dumps(given, ensure_ascii=False) if isinstance(given, dict) else ""
        return COWAGENT_CALL_TOKENS + self.text(counted)


PresetName = Literal["nca", "neurolink", "neuron", "cowagent"]
"""nca: the formula of its first design."""
_FORMULAS = (FirstDesign(), Neurolink(), Neuron(), Cowagent())
PRESETS: Mapping[str, Preset] = dict(zip(get_args(PresetName), _FORMULAS, strict=True))
CODE_PRESETS: Mapping[str, float] = {"neurolink": CODE_CHARS_PER_TOKEN}
"""The presets that count code denser than prose, with their characters a token."""
FIXED_PRESETS = ("cowagent",)
"""The presets with a formula without characters per token."""


def _content(content: str | tuple[Part, ...] | None, count: Callable[[str], int], *, image: int, other: int) -> int:
    """Tokens of a content: of its texts, and a number for each image and for each other file."""
    if not isinstance(content, tuple):
        return count(content or "")
    media = ((image if part.kind == "image" else other) for part in content if isinstance(part, MediaPart))
    return sum(media) + sum(count(part_text(part)) for part in content if not isinstance(part, MediaPart))


def _utf16_units(text: str) -> int:
    return len(text) if text.isascii() else len(text) + sum(char > "\uffff" for char in text)


def _utf8_bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _single(number: float) -> float:
    """The nearest number of single precision; a quotient of two such, rounded so, is the program's own."""
    rounded: float = struct.unpack("f", struct.pack("f", number))[0]
    return rounded


def _arguments(call: ToolCall) -> str:
    """A call's arguments as compact JSON; what is none, as it was written."""
    given = _decoded(call)
    return call.arguments if given is None else _compact(given)


def _decoded(call: ToolCall) -> Any:
    try:
        return msgspec.json.decode(call.arguments)
    except (msgspec.DecodeError, RecursionError):
        return None


def _compact(value: Any) -> str:
    return msgspec.json.encode(value).decode("utf-8", "replace")
