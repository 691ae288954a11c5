"""Context windows, output reserves and the input that they leave."""

from __future__ import annotations

from nca.context.budget import Budget
from nca.library.inputs import read_text, read_whole
from nca.models.catalog import describe


def context_window_size(model: str, provider: str = "") -> int:
    """The window of a model, in tokens: from litellm's price map, else NeuroLink's table and its provider defaults.

    model      with or without its provider's prefix; "" for the provider's default
    provider   litellm's or NeuroLink's name; "": the model's name says it

    128,000 where nothing is known. Raises UsageError for what is no text.
    """
    name, prefix = read_text(model, "model").strip(), read_text(provider, "provider").strip()
    if prefix and not name.lower().startswith(f"{prefix.lower()}/"):
        name = f"{prefix}/{name}"
    return describe(name).window_tokens


def output_reserve(context_window: int, max_output_tokens: int = 0) -> int:
    """Tokens of a window that are kept for the answer; never more than half of it.

    max_output_tokens   the longest answer; 0: 35% of the window, at most 32,000

    Raises UsageError for what is no number of tokens.
    """
    return _budget(context_window, max_output_tokens).reserve_tokens


def available_input_tokens(
    model: str = "", provider: str = "", max_output_tokens: int = 0, *, context_window: int = 0
) -> int:
    """Window less reserve, in tokens. `context_window`, where it is given, overrules what is known of the model.

    Raises UsageError, ConfigError.
    """
    known = context_window_size(model, provider)
    return _budget(read_whole(context_window, "context_window") or known, max_output_tokens).budget_tokens


def _budget(context_window: int, max_output_tokens: int) -> Budget:
    window = read_whole(context_window, "context_window", 1)
    return Budget.of(window, read_whole(max_output_tokens, "max_output_tokens"))
