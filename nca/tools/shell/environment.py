"""The environment of a command that the model runs: an allowlist of variables, without any key in their values.

With the whole environment, every command could read the provider's API key.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from urllib.parse import urlsplit

from nca.models.providers import known_secrets, provider_keys
from nca.redact import Redactor
from nca.tools.shell.command_words import word_set

_USUAL = word_set(
    "PATH HOME USER LOGNAME SHELL TMPDIR TZ TERM COLORTERM LANG LANGUAGE LC_ALL LC_ADDRESS LC_COLLATE LC_CTYPE"
    " LC_IDENTIFICATION LC_MEASUREMENT LC_MESSAGES LC_MONETARY LC_NAME LC_NUMERIC LC_PAPER LC_TELEPHONE LC_TIME"
    " XDG_CACHE_HOME XDG_CONFIG_HOME XDG_DATA_HOME XDG_STATE_HOME"
    " VIRTUAL_ENV CONDA_PREFIX CONDA_DEFAULT_ENV PYENV_ROOT NVM_DIR NVM_BIN JAVA_HOME GOPATH GOROOT CARGO_HOME"
    " RUSTUP_HOME SSL_CERT_FILE SSL_CERT_DIR REQUESTS_CA_BUNDLE CURL_CA_BUNDLE NODE_EXTRA_CA_CERTS"
)
_PROXIES = frozenset({"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"})
_FIXED = {
    # Nobody can answer, so no pager, no editor and no password prompt.
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "GIT_EDITOR": "true",
    "GIT_TERMINAL_PROMPT": "0",
}


def command_environment(
    env: Mapping[str, str], more: Iterable[str] = (), variables: Iterable[str] = ()
) -> dict[str, str]:
    """The variables of `env` that a command gets.

    more       further variables, from the person's own settings
    variables  NAME=VALUE, from the settings; a provider's key is removed even from these
    """
    extra = {
        name: value for name, value in (one.split("=", 1) for one in variables) if not provider_keys({name: value})
    }
    env, more = {**env, **extra}, {*more, *extra}
    every = Redactor(known_secrets(env))
    providers = Redactor(provider_keys(env))
    kept = {name: value for name, value in env.items() if _is_usual(name, value) and every.text(value) == value}
    for name in more:
        value = env.get(name)
        if value is not None and not _holds(value, providers, provider_keys(env)):
            kept[name] = value
    # Every program needs a PATH, even if the person's own was removed.
    return {"PATH": os.defpath, **kept, **{name: value for name, value in _FIXED.items() if name not in more}}


def _is_usual(name: str, value: str) -> bool:
    if name.upper() in _PROXIES:
        return not _has_credentials(value)
    return name in _USUAL


def _has_credentials(address: str) -> bool:
    """Whether a proxy address carries a name or password; True if it cannot be parsed."""
    try:
        parts = urlsplit(address if "//" in address else f"//{address}")
    except ValueError:
        return True
    return "@" in address or bool(parts.username or parts.password)


def _holds(value: str, providers: Redactor, keys: Mapping[str, str]) -> bool:
    """Whether the value holds a provider's key, even a short one that redaction would not touch."""
    return value.strip() in keys.values() or "[redacted " in providers.text(value)
