"""The interface of a model: request, reply, and the protocol that litellm, embedded and scripted models implement."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable
from urllib.parse import urlsplit

from nca.config.schema import ModelSettings
from nca.messages import Message, ResponseFacts, Server, Usage
from nca.models.catalog import ModelFacts


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One request, OpenAI-shaped.

    max_output_tokens   None: the provider's default (some have none, so set it if possible)
    temperature         None: the one of the settings
    reasoning           one of nca.models.reasoning.LEVELS
    compact_at_tokens   above 0: the provider compacts from this many tokens on (see nca.models.claude)
    """

    messages: list[dict[str, Any]]
    tools: list[dict[str, Any]] = field(default_factory=list)
    max_output_tokens: int | None = None
    temperature: float | None = None
    compact_at_tokens: int = 0
    reasoning: str = "auto"


@dataclass(frozen=True, slots=True)
class CallSoFar:
    """A tool call that the model is still writing.

    piece   what came last of its arguments, as JSON
    begin   the beginning of its arguments
    chars   how long the arguments are so far
    lines   how many line ends their texts have so far
    """

    name: str
    piece: str
    begin: str
    chars: int
    lines: int


@dataclass(frozen=True, slots=True)
class Delta:
    """A piece of the answer: text, reasoning, or part of a tool call; or, before it, how much of the request's tokens a
    server has read."""

    text: str = ""
    reasoning: str = ""
    read_tokens: int = 0
    of_tokens: int = 0
    call: CallSoFar | None = None


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
    """A model that reports the rest of its rate limits: `limits` is that of the last answer, or ""."""

    limits: str


@runtime_checkable
class TakesSettings(Protocol):
    """A model that nca opened: its next request follows changed settings."""

    def take_settings(self, settings: ModelSettings) -> None: ...


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
