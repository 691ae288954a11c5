"""The keys that this environment holds: what must not stand in anything that is handed on."""

from __future__ import annotations

from collections.abc import Mapping

from nca.models.providers import PROVIDERS

_PATHS = frozenset({"GOOGLE_APPLICATION_CREDENTIALS"})
"""Variables that name a file with a key, and hold none themselves."""
_OTHERS = frozenset({"AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"})
_ENDINGS = ("_API_KEY", "_TOKEN", "_SECRET", "_SECRET_KEY", "_PASSWORD")
"""How programs name the variables of keys; tools of the model may have printed any of them."""


def known_secrets(env: Mapping[str, str]) -> dict[str, str]:
    """The values of key variables by name, those of providers and all others that are named like one."""
    named = {name: value.strip() for name, value in env.items() if value.strip() and name.upper().endswith(_ENDINGS)}
    return {**named, **provider_keys(env)}


def provider_keys(env: Mapping[str, str]) -> dict[str, str]:
    """The values of the providers' own key variables, by name: what nca itself talks to models with."""
    names = {name for facts in PROVIDERS.values() for name in facts.key_variables} - _PATHS | _OTHERS
    return {name: value.strip() for name, value in env.items() if name in names and value.strip()}
