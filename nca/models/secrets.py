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
    providers = {name for facts in PROVIDERS.values() for name in facts.key_variables} - _PATHS
    return {
        name: value.strip()
        for name, value in env.items()
        if value.strip() and (name in providers | _OTHERS or name.upper().endswith(_ENDINGS))
    }
