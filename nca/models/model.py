"""The interface of a model: request, reply, and the protocol that litellm, embedded and scripted models implement.

And how much it reasons: what `model.reasoning` becomes in a request to each provider. litellm translates
`reasoning_effort` for Claude (a budget, or adaptive thinking), Gemini and Ollama. Providers that nca calls directly get
what their own API names; one that would refuse the argument does not get it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable
from urllib.parse import urlsplit

from nca.messages import Message, ResponseFacts, Server, Usage
from nca.models.catalog import ModelFacts


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One request, OpenAI-shaped.

    max_output_tokens   None: the provider's default (some have none, so set it if possible)
    temperature         None: the one of the settings
    reasoning           one of nca.models.model.LEVELS
    compact_at_tokens   above 0: the provider compacts from this many tokens on (see nca.models.claude)
    """

    messages: list[dict[str, Any]]
    tools: list[dict[str, Any]] = field(default_factory=list)
    max_output_tokens: int | None = None
    temperature: float | None = None
    compact_at_tokens: int = 0
    reasoning: str = "auto"


@dataclass(frozen=True, slots=True)
class Delta:
    """A piece of the answer: text, or reasoning; or, before it, how much of the request's tokens a server has read."""

    text: str = ""
    reasoning: str = ""
    read_tokens: int = 0
    of_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Reply:
    """A complete answer.

    usage           None without a plausible report by the provider
    finish_reason   "stop", "tool_calls", "length", "content_filter", "refusal", or the provider's own word.
                    "length": do not run the tool calls, because their arguments may be cut.
                    "compaction": no answer yet; the provider stopped after summarizing the conversation
    samplings       the usage of each sampling, if the answer took several; `usage` is the total
    compaction      the provider's block with its summary (`content`), if it made one
    response        what the provider said about the answer
    """

    message: Message
    usage: Usage | None = None
    finish_reason: str = "stop"
    samplings: tuple[Usage, ...] = ()
    compaction: dict[str, Any] | None = None
    response: ResponseFacts = field(default_factory=ResponseFacts)


_PORTS = {"http": 80, "https": 443}

OnDelta = Callable[[Delta], None]


@runtime_checkable
class Model(Protocol):
    """A model. Requests may overlap: a summary in the background, and the next one of the chat."""

    facts: ModelFacts

    async def ask(self, request: ModelRequest, on_delta: OnDelta) -> Reply:
        """Answer, and call `on_delta` with each piece as it arrives.

        Raises ProviderError with .failure. Cancelling the task ends the request at once. Text passed to `on_delta` is
        never passed again, so a caller may keep it after an error.
        """
        ...

    async def close(self) -> None:
        """Close connections and child processes. Idempotent."""
        ...


@runtime_checkable
class KeepsPrefix(Protocol):
    """A model that keeps the evaluated prompt: evaluating the beginning of the next request early saves time."""

    async def warm(self, prefix: ModelRequest | None = None) -> None: ...


@runtime_checkable
class ReportsLimits(Protocol):
    """A model whose provider says what is left of its rate limits: `limits` is that of the last answer, or ""."""

    limits: str


@runtime_checkable
class HasEndpoint(Protocol):
    """A model at an HTTP endpoint."""

    @property
    def endpoint(self) -> str:
        """The URL of the endpoint; "" if unknown."""
        ...


def server_of(model: Model) -> Server | None:
    """The host and port of the model's endpoint; None if unknown."""
    try:
        parts = urlsplit(model.endpoint if isinstance(model, HasEndpoint) else "")
        port = parts.port or _PORTS.get(parts.scheme)
    except ValueError:
        return None
    return Server(parts.hostname, port) if parts.hostname and port else None


AUTO, OFF = "auto", "off"
LEVELS = (AUTO, OFF, "low", "medium", "high")
LEAST_ANSWER_TOKENS = 8_192
"""Claude's thinking counts as output: at its high level litellm gives it 4,096 tokens, and an answer has to follow."""
_SWITCHED = {"deepseek": "thinking", "zai": "thinking", "moonshot": "thinking", "dashscope": "enable_thinking"}
"""Providers whose models reason or do not: the argument that says so."""
_BY_MODEL = frozenset({"openai", "groq", "xai", "cerebras", "fireworks_ai", "together_ai"})
"""Providers of which some models refuse the argument: the price map knows which."""
_NEVER = frozenset({"mistral", "embedded"})
_CLAUDE = "claude"
_THINKING = "thinking_blocks"


def split_level(name: str) -> tuple[str, str]:
    """A model's name and the level behind it, as in `openai/gpt-5:high`; "" without one."""
    bare, colon, level = name.rpartition(":")
    return (bare, level) if colon and bare and level in LEVELS else (name, "")


def arguments(
    level: str, *, provider: str, name: str, is_own_endpoint: bool, max_output_tokens: int | None
) -> dict[str, Any]:
    """The request's arguments for a level; empty where the model is left to its default, or takes none."""
    if level == AUTO or provider in _NEVER:
        return {}
    bare = name.split("/", 1)[-1]
    effort = "none" if level == OFF else level
    if (key := _SWITCHED.get(provider)) is not None and not is_own_endpoint:
        is_on = level != OFF
        return {"extra_body": {key: is_on if key != "thinking" else {"type": "enabled" if is_on else "disabled"}}}
    if provider in _BY_MODEL and not is_own_endpoint:
        from nca.models import price_map

        match = price_map.find(f"{provider}/{bare}")
        if match is None or not match.entry.can_reason:
            return {}
    is_small = max_output_tokens is not None and max_output_tokens < LEAST_ANSWER_TOKENS
    if _CLAUDE in name and (is_small or level == OFF):
        # Without the argument Claude does not think.
        return {}
    return {"reasoning_effort": effort}


def is_thinking(found: Mapping[str, Any], name: str) -> bool:
    """Whether these arguments make Claude think: then it takes no temperature, and wants its blocks back."""
    return _CLAUDE in name and "reasoning_effort" in found


def has_all_blocks(messages: Sequence[Mapping[str, Any]]) -> bool:
    """Whether each call of the turn in progress has its signed thinking, without which Claude refuses to think."""
    for place in range(len(messages) - 1, -1, -1):
        message = messages[place]
        if message.get("role") == "assistant":
            if not message.get("tool_calls"):
                return True
            if not message.get(_THINKING):
                return False
        elif message.get("role") == "user" and (place == 0 or messages[place - 1].get("role") != "tool"):
            # What is typed behind results belongs to their turn.
            return True
    return True
