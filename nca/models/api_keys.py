"""Find API keys and other secrets in the environment, so that they can be redacted."""

from __future__ import annotations

from collections.abc import Mapping

from nca.models.providers import PROVIDERS

_PATHS = frozenset({"GOOGLE_APPLICATION_CREDENTIALS"})
"""Variables that name a key file but contain no key."""
_OTHERS = frozenset({"AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"})
_ENDINGS = ("_API_KEY", "_TOKEN", "_SECRET", "_SECRET_KEY", "_PASSWORD")
"""Usual endings of such variables; a tool may have printed any of them."""


def known_secrets(env: Mapping[str, str]) -> dict[str, str]:
    """Secrets by variable name: providers' keys, and all variables with a usual ending."""
    named = {name: value.strip() for name, value in env.items() if value.strip() and name.upper().endswith(_ENDINGS)}
    return {**named, **provider_keys(env)}


def provider_keys(env: Mapping[str, str]) -> dict[str, str]:
    """Providers' keys by variable name."""
    names = {name for facts in PROVIDERS.values() for name in facts.key_variables} - _PATHS | _OTHERS
    return {name: value.strip() for name, value in env.items() if name in names and value.strip()}
