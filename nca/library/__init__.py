"""The engine as a library: OpenAI-shaped dicts in and out. Arguments are never changed.

These functions are `nca.compact`, `nca.check_context_budget` and so on; errors are `nca.NcaError` and its leaves.
docs/library.md shows them with examples.

inputs       what a call hands over, read and checked
compaction   compact
counting     check_context_budget, estimate_tokens, estimate_messages_tokens, truncate_to_token_budget
windows      context_window_size, output_reserve, available_input_tokens
files        truncate_tool_output, file_token_budget, fit_files
pairs        repair_tool_pairs, validate_request
"""

from nca.library.compaction import CompactionResult, Summarizer, compact, compact_loaded
from nca.library.counting import (
    BudgetCheck,
    TruncatedText,
    check_context_budget,
    estimate_messages_tokens,
    estimate_tokens,
    truncate_to_token_budget,
)
from nca.library.files import TruncatedOutput, file_token_budget, fit_files, truncate_tool_output
from nca.library.pairs import RepairResult, repair_tool_pairs, validate_request
from nca.library.windows import available_input_tokens, context_window_size, output_reserve

__all__ = [
    "BudgetCheck",
    "CompactionResult",
    "RepairResult",
    "Summarizer",
    "TruncatedOutput",
    "TruncatedText",
    "available_input_tokens",
    "check_context_budget",
    "compact",
    "compact_loaded",
    "context_window_size",
    "estimate_messages_tokens",
    "estimate_tokens",
    "file_token_budget",
    "fit_files",
    "output_reserve",
    "repair_tool_pairs",
    "truncate_to_token_budget",
    "truncate_tool_output",
    "validate_request",
]
