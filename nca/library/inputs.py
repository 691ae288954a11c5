"""Read and check the arguments of library calls; messages as type checkers see them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NotRequired, TypedDict

import msgspec

from nca.config.loaded import LoadedSettings, defaults
from nca.config.value_types import whole
from nca.context.budget import Budget
from nca.context.history import History
from nca.context.stages.truncate import TRUNCATED
from nca.context.summary import is_summary
from nca.errors import ConfigError, ContextDoesNotFit, InvalidMessages, UsageError
from nca.humanize import kind_name
from nca.messages import Entry, Message, clean_text
from nca.models.catalog import ModelFacts, describe
from nca.shapes.detect import read_shape, shape_of
from nca.shapes.shaped import ShapedMessages
from nca.wire import messages_from_list


def read_messages(messages: Any) -> list[Message]:
    """A list or tuple of OpenAI-shaped dicts, at least one. Raises InvalidMessages.

    A generator is refused, because reading would exhaust it.
    """
    if not is_list(messages):
        raise InvalidMessages(f"messages: expected a list of messages, found {kind_name(messages)}.")
    shape = shape_of(messages)
    if shape != "openai":
        raise InvalidMessages(f"messages: are of the shape {shape}; valid here: openai (nca.compact takes the others).")
    return messages_from_list(messages)


def read_conversation(given: Any, *, may_be_empty: bool = False) -> ShapedMessages:
    """A conversation in any shape of `nca.shapes`, as a list or an object; at least one message.

    Raises InvalidMessages, which names the unknown message, block or item.
    """
    return read_shape(given, may_be_empty=may_be_empty)


def history_of(messages: Sequence[Message]) -> History:
    """The messages as a log; text of an earlier compaction in them counts as nobody's words."""
    return History(
        Entry(seq, _marked(message) if message.role in ("user", "system") else message)
        for seq, message in enumerate(messages, 1)
    )


def _marked(message: Message) -> Message:
    """Mark a summary or marker as nobody's words; otherwise it could pass for the newest message."""
    is_left_behind = is_summary(message) or (message.role == "user" and message.text.startswith(TRUNCATED))
    return msgspec.structs.replace(message, source="nca") if is_left_behind else message


def read_text(value: Any, name: str) -> str:
    """A text, as UTF-8 can hold it. Raises UsageError."""
    if not isinstance(value, str):
        raise UsageError(f"{name}: expected text, found {kind_name(value)}.")
    return clean_text(value)


def read_choice(value: Any, name: str, valid: Sequence[str]) -> str:
    if not isinstance(value, str) or value not in valid:
        raise UsageError(f"{name} = {shown(value)} is not valid; valid: {', '.join(valid)}.")
    return value


def read_whole(value: Any, name: str, minimum: int = 0) -> int:
    """A whole number, even as people write it (80_000, "80k"). Raises UsageError."""
    kind = whole(minimum)
    try:
        number: int = kind.read(value)
    except ValueError:
        raise UsageError(f"{name} = {shown(value)} is not valid; valid: {kind.valid}.") from None
    return number


def read_number(value: Any, name: str, minimum: float, maximum: float) -> float:
    """A number within both bounds; NaN is invalid. Raises UsageError."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not minimum <= value <= maximum:
        raise UsageError(f"{name} = {shown(value)} is not valid; valid: a number from {minimum:g} to {maximum:g}.")
    return float(value)


def read_tools(tools: Any) -> list[dict[str, Any]]:
    """JSON-serializable tool definitions; None: none. Raises UsageError."""
    rows = read_mappings(tools, "tools")
    for index, row in enumerate(rows, 1):
        try:
            msgspec.json.encode(row)
        except (TypeError, ValueError, RecursionError, msgspec.EncodeError) as error:
            raise UsageError(f"tools, entry {index}: holds a value that JSON cannot ({error}).") from error
    return rows


def read_mappings(rows: Any, name: str) -> list[dict[str, Any]]:
    """A list of objects; None: an empty one. Raises UsageError."""
    if rows is None:
        return []
    if not is_list(rows):
        raise UsageError(f"{name}: expected a list of objects, found {kind_name(rows)}.")
    for index, row in enumerate(rows, 1):
        if not isinstance(row, Mapping):
            raise UsageError(f"{name}, entry {index}: expected an object, found {kind_name(row)}.")
    return [dict(row) for row in rows]


def settings_of(
    settings: Any,
    *,
    context_window: Any = 0,
    max_output_tokens: Any = 0,
    target: Any = None,
    stages: Any = None,
    threshold: Any = None,
    fit: Any = None,
) -> LoadedSettings:
    """The defaults, overridden by the settings, then by the call's own arguments. Raises ConfigError."""
    if settings is not None and not isinstance(settings, Mapping):
        raise ConfigError(f"settings: expected names with their values, found {kind_name(settings)}.")
    given = dict(settings or {})
    for name in given:
        if not isinstance(name, str):
            raise ConfigError(f"settings: {shown(name)} is not a name of a setting; valid: text.")
    # A plain 0 means "not given"; anything else is the person's word, and wrong words are refused by their setting.
    sizes = {"context_window": context_window, "max_output_tokens": max_output_tokens}
    passed = {name: size for name, size in sizes.items() if type(size) is not int or size}
    named = {"target": target, "stages": stages, "threshold": threshold, "fit": fit}
    passed |= {name: value for name, value in named.items() if value is not None}
    given |= {_SETTINGS[name]: value for name, value in passed.items()}
    try:
        return defaults().with_values(given, "the call")
    except ConfigError as error:
        message = error.message
        for name in passed:
            message = re.sub(rf"^{re.escape(_SETTINGS[name])}(?= = )", name, message)
        raise ConfigError(message, advice=error.advice) from None


_SETTINGS = {
    "context_window": "model.context_window",
    "max_output_tokens": "model.max_output_tokens",
    "target": "context.target_ratio",
    "stages": "context.stages",
    "threshold": "context.compact_threshold",
    "fit": "context.fit",
}
"""The arguments of calls, and the settings that they set."""


def in_library(error: ContextDoesNotFit) -> ContextDoesNotFit:
    """The error with the advice that a program can follow."""
    error.advice = error.advice.replace('--fit cut, fit="cut", context.fit', 'fit="cut"')
    return error


def facts_of(model: Any, loaded: LoadedSettings) -> ModelFacts:
    return describe(read_text(model, "model"), context_window=loaded.settings.model.context_window)


def budget_of(facts: ModelFacts, loaded: LoadedSettings) -> Budget:
    """Raises ConfigError if the reserve leaves no budget."""
    return Budget.in_window(facts.window_tokens, loaded.settings)


def is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray)


def shown(value: Any) -> str:
    """A value in an error, cut to one line."""
    text = repr(value)
    return text if len(text) <= 60 else text[:59] + "…"


Content = str | Sequence[Mapping[str, Any]]
"""Text, or parts such as {"type": "text", "text": …}."""


class ChatFunction(TypedDict):
    """The function of a tool call. `arguments`: an object as JSON text."""

    name: str
    arguments: str


class ChatToolCall(TypedDict):
    """A tool call of an assistant's `ChatMessage`."""

    id: str
    type: Literal["function"]
    function: ChatFunction


class ChatMessage(TypedDict):
    """A message in OpenAI's chat shape. A tool's message names the call that it answers by `tool_call_id`."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: Content | None
    tool_calls: NotRequired[Sequence[ChatToolCall]]
    tool_call_id: NotRequired[str]
    name: NotRequired[str]


class AnthropicMessage(TypedDict):
    """A message in Anthropic's shape. The system prompt is a separate field; calls and results are blocks."""

    role: Literal["user", "assistant"]
    content: Content


class ResponsesItem(TypedDict, total=False):
    """An item of the Responses API: a message (`role`, `content`), a call, its output, or reasoning."""

    type: str
    id: str
    status: str
    role: Literal["system", "developer", "user", "assistant"]
    content: Content
    call_id: str
    name: str
    arguments: str
    input: str
    output: Content
    summary: Sequence[Mapping[str, Any]]
    encrypted_content: str | None
