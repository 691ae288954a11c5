"""API keys that the person gave to nca, in a private file of the data directory.

A stored key is like one in the environment, for nca alone: `use` adds it to nca's own, from which commands, hooks and
servers get no key. A variable that is set there wins.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, MutableMapping
from contextlib import suppress

from nca.config.document import alone, shown_path
from nca.config.paths import keys_file
from nca.errors import ConfigError, system_reason
from nca.models.providers import PROVIDERS, key_of
from nca.redact import FEWEST_CHARS
from nca.safe_files import write_atomically

_MAX_BYTES = 1 << 20
_MOST_CHARS = 1_000
_BEGINS = {
    "sk-ant-": "anthropic",
    "sk-or-": "openrouter",
    "sk-proj-": "openai",
    "sk-svcacct-": "openai",
    "AIza": "gemini",
    "gsk_": "groq",
    "xai-": "xai",
    "csk-": "cerebras",
    "fw_": "fireworks_ai",
    "pplx-": "perplexity",
    "hf_": "huggingface",
}
"""How the keys of one provider alone begin, as each documents it. Those of several begin with `sk-`."""

VARIABLES = {
    name: facts.key_variables[0]
    for name, facts in PROVIDERS.items()
    if facts.key_variables and facts.key_variables[0].endswith(("_API_KEY", "_TOKEN"))
}
"""The variable of each provider's key, for those that need a key and nothing else."""


def stored(env: Mapping[str, str]) -> dict[str, str]:
    """The keys by variable. Raises ConfigError if there is a file that cannot be read."""
    path = keys_file(env)
    try:
        with path.open("rb") as file:
            data = json.loads(file.read(_MAX_BYTES))
        keys = data["keys"].items()
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise ConfigError(f"{shown_path(path)}: the stored keys cannot be read ({system_reason(error)}).") from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ConfigError(
            f"{shown_path(path)}: the stored keys cannot be read (they are not as nca stores them).",
            advice="Remove the file, and store the keys again with `nca keys add`.",
        ) from error
    return {name: key for name, key in keys if name in VARIABLES.values() and is_key(key)}


PROVIDERS_BY_VARIABLE = {variable: name for name, variable in VARIABLES.items()}
_used: dict[str, str] = {}
"""The keys that this process has from the store, by variable: a newer one replaces them, and no other."""


def use(env: MutableMapping[str, str]) -> None:
    """Set the variables of stored keys, for providers without a key of the environment. Raises ConfigError."""
    for variable, key in stored(env).items():
        if key_of(PROVIDERS_BY_VARIABLE[variable], env) in ((variable, _used.get(variable, "")), (variable, "")):
            env[variable] = _used[variable] = key


def save(env: Mapping[str, str], variable: str, key: str) -> None:
    """Raises ConfigError if the file cannot be read or written; it is then unchanged."""
    with alone(keys_file(env)):
        _write(env, {**stored(env), variable: key})


def remove(env: Mapping[str, str], variable: str) -> bool:
    """Whether there was one. Raises as `save` does."""
    with alone(keys_file(env)):
        keys = stored(env)
        if keys.pop(variable, None) is None:
            return False
        _write(env, keys)
    return True


def origin(variable: str, env: Mapping[str, str]) -> str:
    """Where the key in this variable comes from."""
    with suppress(ConfigError):  # what cannot be read was not used
        if stored(env).get(variable) == env.get(variable):
            return "stored (nca keys)"
    return "in the environment"


def is_key(text: object) -> bool:
    """Whether it could be a key: one word of ASCII, and not the name of a provider."""
    is_word = isinstance(text, str) and text.isascii() and text.isprintable() and " " not in text
    return is_word and FEWEST_CHARS <= len(str(text)) <= _MOST_CHARS and text not in VARIABLES


def provider_by(key: str) -> str:
    """The provider whose keys begin so; "" if there may be several."""
    return next((name for begin, name in _BEGINS.items() if key.startswith(begin)), "")


def _write(env: Mapping[str, str], keys: Mapping[str, str]) -> None:
    write_atomically(keys_file(env), json.dumps({"version": 1, "keys": keys}, indent=1).encode())
