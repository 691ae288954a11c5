"""Parameters that an endpoint refuses by name: its later requests leave them out, or name them otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nca.errors import ProviderFailure

_LIMIT, _NEWER_LIMIT = "max_tokens", "max_completion_tokens"
"""OpenAI's first name of the answer's limit, and the one that replaced it."""
_LIMITS = frozenset({_LIMIT, _NEWER_LIMIT, "max_output_tokens"})
_OPTIONAL = _LIMITS | {
    *("stream_options", "temperature", "return_progress"),
    *("reasoning_effort", "thinking", "enable_thinking"),
}
"""What a request can do without. Usage that is not reported is counted."""
_BY_LETTERS = {name.replace("_", ""): name for name in _OPTIONAL}


class RefusedParameters:
    """What one endpoint has refused of one model's requests."""

    def __init__(self) -> None:
        self.names: frozenset[str] = frozenset()

    def learn(self, failure: ProviderFailure, known: frozenset[str]) -> bool:
        """Whether the request, sent again, does without what was refused. `known`: `names` when it was sent."""
        # Some write reasoningEffort for reasoning_effort.
        name = _BY_LETTERS.get(failure.parameter.replace("_", ""), "")
        if not name or name in known:
            return False
        # litellm may have sent the limit by another name than it was given.
        is_translated = name in _LIMITS and _LIMIT not in known
        self.names |= {name, _LIMIT} if is_translated else {name}
        return True

    def without(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """The body of a request as the endpoint takes it."""
        kept = {name: value for name, value in body.items() if name not in self.names}
        if _LIMIT in body and _LIMIT in self.names and _NEWER_LIMIT not in self.names:
            kept[_NEWER_LIMIT] = body[_LIMIT]
        return kept
