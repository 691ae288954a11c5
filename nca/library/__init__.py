"""The engine as a library: OpenAI-shaped dicts in and out. Arguments are never changed.

These functions are `nca.compact`, `nca.check_context_budget` and so on; errors are `nca.NcaError` and its leaves.
docs/library.md shows them with examples.

inputs          what a call hands over, read and checked
message_types   messages as type checkers see them
compaction      compact
context_view    ContextView; its state is in view_state
counting        check_context_budget, estimate_tokens, estimate_messages_tokens, truncate_to_token_budget
windows         context_window_size, output_reserve, available_input_tokens
files           truncate_tool_output, file_token_budget, fit_files
pairs           repair_tool_pairs, validate_request
"""
