"""nca: a chat agent for the terminal that keeps its context within the window and never loses anything; and its engine.

`__all__` is the library. Each name is loaded on first use, so `import nca` costs next to
nothing and imports neither litellm nor the terminal.
"""

from __future__ import annotations

TYPE_CHECKING = False  # typing itself takes longer to import than all of `nca --version`
__version__ = "0.3.0"

if TYPE_CHECKING:
    from nca.agent import open_conversation
    from nca.agent.approvals import Answer, Person
    from nca.agent.conversation import Conversation
    from nca.compat.strategies import Composite, SlidingWindow, Strategy, Summarization, ToolResultClearing
    from nca.config.layers import load as load_settings
    from nca.config.loaded import LoadedSettings
    from nca.errors import (
        ConfigError,
        ContextDoesNotFit,
        CostLimitReached,
        InvalidMessages,
        ModelNotFound,
        ModelUnavailable,
        NcaError,
        ProviderError,
        ProviderFailure,
        StoreError,
        UsageError,
        ViewInUse,
    )
    from nca.events import ApprovalAsked, Event, Listener, TurnFinished
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
    from nca.models.choose import open_model
    from nca.models.failures import classify_provider_error, context_overflow_provider, is_context_overflow_error
    from nca.models.model import Model
    from nca.sessions.store import Store
    from nca.tools.tool import Tool, ToolError, ToolOutcome, TypedTool
    from nca.tools.toolbox import Toolbox

_MODULES = {
    "nca.agent": "open_conversation",
    "nca.agent.approvals": "Answer Person",
    "nca.agent.conversation": "Conversation",
    "nca.compat.strategies": "Composite SlidingWindow Strategy Summarization ToolResultClearing",
    "nca.config.layers": "load_settings",
    "nca.config.loaded": "LoadedSettings",
    "nca.errors": "ConfigError ContextDoesNotFit CostLimitReached InvalidMessages ModelNotFound ModelUnavailable"
    " NcaError ProviderError ProviderFailure StoreError UsageError ViewInUse",
    "nca.events": "ApprovalAsked Event Listener TurnFinished",
    "nca.library.compaction": "CompactionResult RepairResult compact repair_tool_pairs validate_request",
    "nca.library.context_view": "ContextView FittedRequest",
    "nca.library.counting": "BudgetCheck TruncatedText available_input_tokens check_context_budget context_window_size"
    " estimate_messages_tokens estimate_tokens output_reserve truncate_to_token_budget",
    "nca.library.files": "TruncatedOutput file_token_budget fit_files truncate_tool_output",
    "nca.library.inputs": "AnthropicMessage ChatMessage ChatToolCall ResponsesItem",
    "nca.models.choose": "open_model",
    "nca.models.failures": "classify_provider_error context_overflow_provider is_context_overflow_error",
    "nca.models.model": "Model",
    "nca.sessions.store": "Store",
    "nca.tools.tool": "Tool ToolError ToolOutcome TypedTool",
    "nca.tools.toolbox": "Toolbox",
}
"""Where each name is."""

__all__ = [
    "Answer",
    "AnthropicMessage",
    "ApprovalAsked",
    "BudgetCheck",
    "ChatMessage",
    "ChatToolCall",
    "CompactionResult",
    "Composite",
    "ConfigError",
    "ContextDoesNotFit",
    "ContextView",
    "Conversation",
    "CostLimitReached",
    "Event",
    "FittedRequest",
    "InvalidMessages",
    "Listener",
    "LoadedSettings",
    "Model",
    "ModelNotFound",
    "ModelUnavailable",
    "NcaError",
    "Person",
    "ProviderError",
    "ProviderFailure",
    "RepairResult",
    "ResponsesItem",
    "SlidingWindow",
    "Store",
    "StoreError",
    "Strategy",
    "Summarization",
    "Tool",
    "ToolError",
    "ToolOutcome",
    "ToolResultClearing",
    "Toolbox",
    "TruncatedOutput",
    "TruncatedText",
    "TurnFinished",
    "TypedTool",
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
    "open_conversation",
    "open_model",
    "output_reserve",
    "repair_tool_pairs",
    "truncate_to_token_budget",
    "truncate_tool_output",
    "validate_request",
]


if not TYPE_CHECKING:  # which would then let every misspelled name pass

    def __getattr__(name):  # noqa: ANN001, ANN202
        module = next((module for module, names in _MODULES.items() if name in names.split()), "")
        if not module:
            raise AttributeError(f"module 'nca' has no attribute {name!r}")
        from importlib import import_module

        value = getattr(import_module(module), "load" if name == "load_settings" else name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted(__all__)
