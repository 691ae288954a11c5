"""nca: a chat agent for the terminal whose context never overflows and never loses anything; and its engine.

What stands in `__all__` is the library. Each name is loaded when it is first used, so `import nca` costs next to
nothing; neither litellm nor the terminal is imported by it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nca.agent.conversation import Conversation
    from nca.config.layers import load as load_settings
    from nca.context.budget import output_reserve
    from nca.context.validate import validate_request
    from nca.errors import (
        ConfigError,
        ContextDoesNotFit,
        InvalidMessages,
        ModelUnavailable,
        NcaError,
        ProviderError,
        ProviderFailure,
        StoreError,
        UsageError,
    )
    from nca.library import (
        BudgetCheck,
        CompactionResult,
        available_input_tokens,
        check_context_budget,
        compact,
        context_window_size,
    )
    from nca.models.failures import classify_provider_error, context_overflow_provider, is_context_overflow_error
    from nca.sessions.store import Store

_HOMES = {
    "Conversation": "nca.agent.conversation",
    "load_settings": "nca.config.layers:load",
    "output_reserve": "nca.context.budget",
    "validate_request": "nca.context.validate",
    "ConfigError": "nca.errors",
    "ContextDoesNotFit": "nca.errors",
    "InvalidMessages": "nca.errors",
    "ModelUnavailable": "nca.errors",
    "NcaError": "nca.errors",
    "ProviderError": "nca.errors",
    "ProviderFailure": "nca.errors",
    "StoreError": "nca.errors",
    "UsageError": "nca.errors",
    "BudgetCheck": "nca.library",
    "CompactionResult": "nca.library",
    "available_input_tokens": "nca.library",
    "check_context_budget": "nca.library",
    "compact": "nca.library",
    "context_window_size": "nca.library",
    "classify_provider_error": "nca.models.failures",
    "context_overflow_provider": "nca.models.failures",
    "is_context_overflow_error": "nca.models.failures",
    "Store": "nca.sessions.store",
}

__all__ = [
    "BudgetCheck",
    "CompactionResult",
    "ConfigError",
    "ContextDoesNotFit",
    "Conversation",
    "InvalidMessages",
    "ModelUnavailable",
    "NcaError",
    "ProviderError",
    "ProviderFailure",
    "Store",
    "StoreError",
    "UsageError",
    "available_input_tokens",
    "check_context_budget",
    "classify_provider_error",
    "compact",
    "context_overflow_provider",
    "context_window_size",
    "is_context_overflow_error",
    "load_settings",
    "output_reserve",
    "validate_request",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'nca' has no attribute {name!r}")
    from importlib import import_module

    module, _, attribute = _HOMES[name].partition(":")
    value = getattr(import_module(module), attribute or name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
