"""Context windows that are known without litellm's price map: seed 2's table and its provider defaults.

Source: the context window registry of seed 2 (`MODEL_CONTEXT_WINDOWS`); sizes in tokens.
The price map is asked first, because it is newer (gpt-5 is 272,000 there and 1,047,576 here).
"""

from __future__ import annotations

DEFAULT_WINDOW_TOKENS = 128_000
"""What is assumed, and said to be assumed, where nothing is known (spec section 1)."""

MODEL_WINDOWS: dict[str, int] = {
    "claude-opus-4-20250514": 200_000,
    "claude-sonnet-4-20250514": 200_000,
    "claude-3-7-sonnet-20250219": 200_000,
    "claude-3-5-sonnet-20241022": 200_000,
    "claude-3-5-haiku-20241022": 200_000,
    "claude-3-opus-20240229": 200_000,
    "claude-3-sonnet-20240229": 200_000,
    "claude-3-haiku-20240307": 200_000,
    "gpt-4o": 128_000,
    "gpt-4o-mini": 128_000,
    "gpt-4-turbo": 128_000,
    "gpt-4": 8_192,
    "gpt-3.5-turbo": 16_385,
    "o1": 200_000,
    "o1-mini": 128_000,
    "o1-pro": 200_000,
    "o3": 200_000,
    "o3-mini": 200_000,
    "o4-mini": 200_000,
    "gpt-4.1": 1_047_576,
    "gpt-4.1-mini": 1_047_576,
    "gpt-4.1-nano": 1_047_576,
    "gpt-5": 1_047_576,
    "gemini-2.5-pro": 1_048_576,
    "gemini-2.5-flash": 1_048_576,
    "gemini-2.0-flash": 1_048_576,
    "gemini-1.5-pro": 2_097_152,
    "gemini-1.5-flash": 1_048_576,
    "gemini-3-flash-preview": 1_048_576,
    "gemini-3-pro-preview": 1_048_576,
    "anthropic.claude-3-5-sonnet-20241022-v2:0": 200_000,
    "anthropic.claude-3-5-haiku-20241022-v1:0": 200_000,
    "anthropic.claude-3-opus-20240229-v1:0": 200_000,
    "anthropic.claude-3-sonnet-20240229-v1:0": 200_000,
    "amazon.nova-pro-v1:0": 300_000,
    "amazon.nova-lite-v1:0": 300_000,
    "mistral-large-latest": 128_000,
    "mistral-medium-latest": 32_000,
    "mistral-small-latest": 128_000,
    "codestral-latest": 256_000,
}

PROVIDER_WINDOWS: dict[str, int] = {
    "anthropic": 200_000,
    "openai": 128_000,
    "gemini": 1_048_576,
    "google-ai": 1_048_576,
    "vertex": 1_048_576,
    "vertex_ai": 1_048_576,
    "bedrock": 200_000,
    "azure": 128_000,
    "mistral": 128_000,
    "ollama": 128_000,
    "litellm": 128_000,
    "huggingface": 32_000,
    "sagemaker": 128_000,
}
"""By provider, under seed 2's names and litellm's."""
