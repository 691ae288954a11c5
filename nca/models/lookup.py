"""Look up the name of a model before it is used: at its endpoint, or among the models that litellm knows.

What cannot be known, such as a model that is newer than litellm, is said and not refused. Offline, nothing is asked.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from nca.errors import ModelNotFound
from nca.models import price_map
from nca.models.local_servers import LOCAL_SERVERS, list_models
from nca.models.providers import SPEAKS_OPENAI, provider_of

if TYPE_CHECKING:
    from nca.models.choose import Choice

_LIST_SECONDS = 2.0
_NEAR = 3
_NEAR_RATIO = 0.6
"""How alike (difflib) a name is that may be meant."""
_HOW_TO_NAME = "A name is PROVIDER/MODEL, as in openai/gpt-4.1. For an endpoint of your own, set model.api_base."


def look_up(choice: Choice) -> str:
    """A caution where nobody knows the model, with the nearest that is known; "" where it is known.

    Asks a server of the person's own what it has; one that does not answer or lists nothing may have any model.
    Raises ModelNotFound where the server lists others only, or where nobody could serve the model.
    """
    if choice.is_embedded:
        return ""
    where, listed = _listed(choice)
    if listed:
        bare = choice.model.partition("/")[2]
        if not any(_is(name, bare) for name in listed):
            near = _nearest(bare, listed) or f"It lists {', '.join(listed[:_NEAR])}{' …' * (len(listed) > _NEAR)}."
            raise ModelNotFound(f"{where} has no model {bare}.", advice=near)
        return ""
    require_provider(choice)
    match = price_map.find(choice.model)
    if choice.api_base or (match is not None and match.is_exact):
        return ""
    return f"nca does not know this model. {_nearest(choice.model, _known(choice.model))}".rstrip()


def require_provider(choice: Choice) -> None:
    """Raise ModelNotFound for a name that says no provider, that litellm does not know, and that has no endpoint."""
    if "/" in choice.model or choice.api_base or price_map.find(choice.model) is not None:
        return
    raise without_provider(choice.model)


def without_provider(model: str, providers: Iterable[str] = ()) -> ModelNotFound:
    """The error for a name that nobody could serve; `providers` are those that it may mean."""
    provider, slash, bare = model.partition("/")
    if slash:
        near = difflib.get_close_matches(provider.lower(), list(providers), n=1, cutoff=_NEAR_RATIO)
        advice = f"Did you mean {near[0]}/{bare}?" if near else _HOW_TO_NAME
        return ModelNotFound(f"nca knows no provider {provider!r}, so it cannot ask {model}.", advice=advice)
    advice = _nearest(model, _known(model)) or _HOW_TO_NAME
    return ModelNotFound(f"No provider is known for a model {model!r}.", advice=advice)


def _listed(choice: Choice) -> tuple[str, tuple[str, ...]]:
    """A server of the person's own, and the models that it lists."""
    provider = provider_of(choice.model)
    if choice.api_base and provider in SPEAKS_OPENAI:
        url = f"{choice.api_base.rstrip('/')}/models"
        return choice.api_base, list_models(url, api_key=choice.api_key, seconds=_LIST_SECONDS)
    own = "ollama_chat" if provider == "ollama" else provider
    for server in LOCAL_SERVERS if not choice.api_base else ():
        if server.prefix == own and own != "openai":
            return server.title, list_models(server.list_url, seconds=_LIST_SECONDS)
    return "", ()


def _known(name: str) -> list[str]:
    """The models of the provider that a name begins with, written as it is; else those that are named without one."""
    provider, slash, _ = name.lower().partition("/")
    if not slash:
        return [known for known in price_map.load() if "/" not in known]
    return [
        f"{provider}/{known.removeprefix(f'{provider}/')}"
        for known, entry in price_map.load().items()
        if entry.provider == provider
    ]


def _is(listed: str, wanted: str) -> bool:
    """Whether a listed name means the wanted one: the same, without Ollama's tag, or a proxy's `openai/*`."""
    return wanted in (listed, listed.partition(":")[0]) or fnmatchcase(wanted, listed)


def _nearest(wanted: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(wanted.lower(), list(known), n=_NEAR, cutoff=_NEAR_RATIO)
    return f"Did you mean {' or '.join(near)}?" if near else ""
