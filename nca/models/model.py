"""The nouns of the models room: what is asked, what comes back, and who answers.

Everything above this room knows only these; litellm, the embedded model and the shipped doubles stand behind them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from nca.messages import Message, Usage
from nca.models.catalog import ModelFacts


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One request, OpenAI-shaped.

    max_output_tokens   None: the provider's own default (some have none, so callers usually say)
    temperature         None or negative: the provider's default
    compact_at_tokens   above 0: the provider compacts from this many tokens on (see nca.models.provider_compaction)
    """

    messages: list[dict[str, Any]]
    tools: list[dict[str, Any]] = field(default_factory=list)
    max_output_tokens: int | None = None
    temperature: float | None = None
    compact_at_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Delta:
    """A piece of the answer as it arrives: text for the person, or what the model thinks."""

    text: str = ""
    reasoning: str = ""


@dataclass(frozen=True, slots=True)
class Reply:
    """A whole answer.

    usage           None: the provider reported nothing that can be believed
    finish_reason   "stop", "tool_calls", "length", "content_filter", "refusal", or the provider's own word.
                    With "length" no tool call of the message may be run: its arguments may be cut.
                    "compaction": there is no answer yet; the provider stopped behind its summary of the conversation
    samplings       what each sampling used, where one answer took several; usage is their sum
    compaction      the provider's own block with its summary (`content`), where it made one
    """

    message: Message
    usage: Usage | None = None
    finish_reason: str = "stop"
    samplings: tuple[Usage, ...] = ()
    compaction: dict[str, Any] | None = None


OnDelta = Callable[[Delta], None]


@runtime_checkable
class Model(Protocol):
    """Something that answers. Requests may overlap: a summary in the background, and the chat's next."""

    facts: ModelFacts

    async def ask(self, request: ModelRequest, on_delta: OnDelta) -> Reply:
        """Answer, handing on each piece as it arrives.

        Raises ProviderError with .failure. Cancelling the task ends the call at once; what was handed on
        by then is the caller's to keep. After an error too: what `on_delta` was given is never given twice.
        """
        ...

    async def close(self) -> None:
        """Let go of connections and child processes; idempotent."""
        ...


@runtime_checkable
class KeepsPrefix(Protocol):
    """A model whose evaluated prompt stays: reading how the next request begins ahead of it saves that time later."""

    async def warm(self, prefix: ModelRequest | None = None) -> None: ...
