"""nca: a chat agent for the terminal whose context never overflows and never loses anything; and its engine.

What stands in `__all__` is the library. Each name is loaded when it is first used, so `import nca` costs next to
nothing; neither litellm nor the terminal is imported by it.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing itself takes longer to import than all of `nca --version`
    from typing import Any

__version__ = "0.3.0"

if TYPE_CHECKING:
    from nca.agent.conversation import Conversation
    from nca.compat.strategies import Composite, SlidingWindow, Strategy, Summarization, ToolResultClearing
    from nca.config.layers import load as load_settings
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
        ViewInUse,
    )
    from nca.library.compaction import CompactionResult, RepairResult, compact, repair_tool_pairs, validate_request
    from nca.library.context_view import ContextView, FittedRequest
    from nca.library.counting import (
        BudgetCheck,
        TruncatedText,
        available_input_tokens,
        check_context_budget,
        context_window_size,
        estimate_messages_tokens,
        estimate_tokens,
        output_reserve,
        truncate_to_token_budget,
    )
    from nca.library.files import TruncatedOutput, file_token_budget, fit_files, truncate_tool_output
    from nca.library.inputs import AnthropicMessage, ChatMessage, ChatToolCall, ResponsesItem
    from nca.models.failures import classify_provider_error, context_overflow_provider, is_context_overflow_error
    from nca.sessions.store import Store

_HOMES = {
    "Conversation": "nca.agent.conversation",
    "load_settings": "nca.config.layers:load",
    "ConfigError": "nca.errors",
    "ContextDoesNotFit": "nca.errors",
    "InvalidMessages": "nca.errors",
    "ModelUnavailable": "nca.errors",
    "NcaError": "nca.errors",
    "ProviderError": "nca.errors",
    "ProviderFailure": "nca.errors",
    "StoreError": "nca.errors",
    "UsageError": "nca.errors",
    "ViewInUse": "nca.errors",
    "AnthropicMessage": "nca.library.inputs",
    "BudgetCheck": "nca.library.counting",
    "ChatMessage": "nca.library.inputs",
    "ChatToolCall": "nca.library.inputs",
    "CompactionResult": "nca.library.compaction",
    "ContextView": "nca.library.context_view",
    "FittedRequest": "nca.library.context_view",
    "RepairResult": "nca.library.compaction",
    "ResponsesItem": "nca.library.inputs",
    "TruncatedOutput": "nca.library.files",
    "TruncatedText": "nca.library.counting",
    "available_input_tokens": "nca.library.counting",
    "check_context_budget": "nca.library.counting",
    "compact": "nca.library.compaction",
    "context_window_size": "nca.library.counting",
    "estimate_messages_tokens": "nca.library.counting",
    "estimate_tokens": "nca.library.counting",
    "file_token_budget": "nca.library.files",
    "fit_files": "nca.library.files",
    "output_reserve": "nca.library.counting",
    "repair_tool_pairs": "nca.library.compaction",
    "truncate_to_token_budget": "nca.library.counting",
    "truncate_tool_output": "nca.library.files",
    "validate_request": "nca.library.compaction",
    "classify_provider_error": "nca.models.failures",
    "context_overflow_provider": "nca.models.failures",
    "is_context_overflow_error": "nca.models.failures",
    "Store": "nca.sessions.store",
    "Composite": "nca.compat.strategies",
    "SlidingWindow": "nca.compat.strategies",
    "Strategy": "nca.compat.strategies",
    "Summarization": "nca.compat.strategies",
    "ToolResultClearing": "nca.compat.strategies",
}

__all__ = [
    "AnthropicMessage",
    "BudgetCheck",
    "ChatMessage",
    "ChatToolCall",
    "CompactionResult",
    "Composite",
    "ConfigError",
    "ContextDoesNotFit",
    "ContextView",
    "Conversation",
    "FittedRequest",
    "InvalidMessages",
    "ModelUnavailable",
    "NcaError",
    "ProviderError",
    "ProviderFailure",
    "RepairResult",
    "ResponsesItem",
    "SlidingWindow",
    "Store",
    "StoreError",
    "Strategy",
    "Summarization",
    "ToolResultClearing",
    "TruncatedOutput",
    "TruncatedText",
    "UsageError",
    "ViewInUse",
    "available_input_tokens",
    "check_context_budget",
    "classify_provider_error",
    "compact",
    "context_overflow_provider",
    "context_window_size",
    "estimate_messages_tokens",
    "estimate_tokens",
    "file_token_budget",
    "fit_files",
    "is_context_overflow_error",
    "load_settings",
    "output_reserve",
    "repair_tool_pairs",
    "truncate_to_token_budget",
    "truncate_tool_output",
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
