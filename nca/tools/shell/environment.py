"""The environment of a command that the model asked for: a list of what passes, and no key in anything that does.

Programs that pass on all of theirs hand the provider's key to every command (reliability, class E).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from urllib.parse import urlsplit

from nca.models.api_keys import known_secrets, provider_keys
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
    # Nobody is there to answer: no pager, no editor, no question for a password.
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "GIT_EDITOR": "true",
    "GIT_TERMINAL_PROMPT": "0",
}


def command_environment(env: Mapping[str, str], more: Iterable[str] = ()) -> dict[str, str]:
    """What of `env` a command gets.

    more  variables that the person's own settings name; a key of a provider does not pass even so
    """
    every = Redactor(known_secrets(env))
    providers = Redactor(provider_keys(env))
    kept = {name: value for name, value in env.items() if _is_usual(name, value) and every.text(value) == value}
    for name in more:
        value = env.get(name)
        if value is not None and not _holds(value, providers, provider_keys(env)):
            kept[name] = value
    # Every program needs a PATH, also where the person's own held something that may not pass.
    return {"PATH": os.defpath, **kept, **{name: value for name, value in _FIXED.items() if name not in more}}


def _is_usual(name: str, value: str) -> bool:
    if name.upper() in _PROXIES:
        return not _has_credentials(value)
    return name in _USUAL


def _has_credentials(address: str) -> bool:
    """Whether a proxy's address carries a name or a password; what cannot be read may."""
    try:
        parts = urlsplit(address if "//" in address else f"//{address}")
    except ValueError:
        return True
    return "@" in address or bool(parts.username or parts.password)


def _holds(value: str, providers: Redactor, keys: Mapping[str, str]) -> bool:
    """Whether a provider's key stands in the value. Short keys too: only here no word is taken for one by mistake."""
    return value.strip() in keys.values() or "[redacted " in providers.text(value)
