"""Context windows that litellm's price map does not have: a few models, and a default for each provider.

Source: NeuroLink's context window registry (`MODEL_CONTEXT_WINDOWS`). Sizes are in tokens. The map is asked first, so
models that it has are not repeated here.
"""

from __future__ import annotations

DEFAULT_WINDOW_TOKENS = 128_000
"""Assumed for an unknown model; the user is told."""

MODEL_WINDOWS: dict[str, int] = {
    "gemini-2.0-flash": 1_048_576,
    "gemini-1.5-pro": 2_097_152,
    "gemini-1.5-flash": 1_048_576,
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
"""Under NeuroLink's provider names and litellm's."""
