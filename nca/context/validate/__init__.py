"""Check what a provider would refuse, before a request is sent. One provider a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from nca.context.validate import anthropic, gemini, mistral, openai
from nca.errors import UsageError

Messages = Sequence[Mapping[str, Any]]
Check = Callable[[Messages, Sequence[Mapping[str, Any]]], list[str]]

CHECKS: Mapping[str, Check] = {
    "openai": openai.check,
    "anthropic": anthropic.check,
    "gemini": gemini.check,
    "mistral": mistral.check,
}
FAMILIES: Mapping[str, str] = {
    "azure": "openai",
    "bedrock": "anthropic",
    "google-ai": "gemini",
    "google": "gemini",
    "vertex": "gemini",
    "vertex_ai": "gemini",
    "codestral": "mistral",
}
"""Providers that speak another one's rules; all others speak OpenAI's."""


def validate_request(
    messages: Messages, provider: str, *, tools: Sequence[Mapping[str, Any]] | None = None
) -> list[str]:
    """One line for each thing that the provider would refuse; empty where the request is valid.

    `messages` are OpenAI-shaped. Raises UsageError for an empty provider.
    """
    if not provider:
        raise UsageError("validate_request: the provider is missing; valid: " + ", ".join(CHECKS) + ".")
    family = FAMILIES.get(provider.lower(), provider.lower())
    return CHECKS.get(family, openai.check)(messages, tools or ())
