"""Names of models: look one up before it is used, at its endpoint or among those that litellm knows; offer others.

An unknown model, such as one newer than litellm, gets a caution and is not refused. Offline, nothing is asked.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import islice

from nca.config.schema import ModelSettings
from nca.errors import ModelNotFound
from nca.models import price_map, providers
from nca.models.catalog import FROM_LIST, ModelFacts
from nca.models.price_map import PriceEntry
from nca.models.providers import (
    EMBEDDED,
    PROVIDERS,
    ProviderFacts,
    address_of,
    endpoint_of,
    is_loopback,
    key_of,
    provider_of,
)

_LIST_SECONDS = 2.0
_NEAR = 3
_NEAR_RATIO = 0.6
"""How alike (difflib) a name is that may be meant."""
_WORDS = re.compile(r"[a-z]+|\d+")
_HOW_TO_NAME = "A name is PROVIDER/MODEL, as in openai/gpt-4.1. For an endpoint of your own, set model.api_base."


def look_up(model: str, api_base: str, api_key: str) -> str:
    """A caution for an unknown model, with the nearest known one; "" for a known model.

    Asks a server of the person's own what it has; one that does not answer or lists nothing may have any model.
    Raises ModelNotFound if the server lists only others, or nobody could serve the model.
    """
    if model.startswith(EMBEDDED):
        return ""
    where, listed = _listed(model, api_base, api_key)
    if listed:
        bare = model.partition("/")[2]
        if not any(_is(name, bare) for name in listed):
            near = (
                _nearest(bare, listed) or f"It lists {', '.join(islice(listed, _NEAR))}{' …' * (len(listed) > _NEAR)}."
            )
            # Some gateways serve models that they do not list.
            anyway = f"To use it anyway: nca loop --continue -m {model}"
            raise ModelNotFound(f"{where} lists no model {bare}.", advice=f"{near} {anyway}")
        return ""
    require_provider(model, api_base)
    match = price_map.find(model)
    if api_base or (match is not None and match.is_exact):
        return ""
    return f"nca does not know this model. {_nearest(model, _models_of(model))}".rstrip()


def require_provider(model: str, api_base: str) -> None:
    """Raise ModelNotFound for a name that says no provider, that litellm does not know, and that has no endpoint."""
    if not model.rpartition("/")[2].strip():
        raise ModelNotFound(f"The name {model!r} names no model.", advice=_HOW_TO_NAME)
    if "/" in model or api_base or (price_map.find(model) is not None and not _served_by(model)):
        return
    raise without_provider(model)


def with_provider(name: str, env: Mapping[str, str]) -> str:
    """A bare name with its provider, if litellm's map has it for one alone, or for one alone whose key is set."""
    served = _served_by(name)
    fit = [one for one in served if key_of(provider_of(one), env)[1]] or served
    return fit[0] if len(fit) == 1 else name


def _served_by(name: str) -> list[str]:
    """The names PROVIDER/NAME in the map, of the providers that nca knows; none for a name that litellm takes bare."""
    known, bare = price_map.load(), name.lower()
    if "/" in name or bare in known:
        return []
    return [known[full].name for provider in PROVIDERS if (full := f"{provider}/{bare}") in known]


def without_provider(model: str, known_providers: Iterable[str] = ()) -> ModelNotFound:
    """The error for a name that nobody could serve; `known_providers`: those that it may mean."""
    provider, slash, bare = model.partition("/")
    if slash:
        near = difflib.get_close_matches(provider.lower(), list(known_providers), n=1, cutoff=_NEAR_RATIO)
        advice = f"Did you mean {near[0]}/{bare}?" if near else _HOW_TO_NAME
        return ModelNotFound(f"nca knows no provider {provider!r}, so it cannot ask {model}.", advice=advice)
    if served := _served_by(model):
        return ModelNotFound(f"Several providers have a model {model!r}.", advice=f"Name one: {' or '.join(served)}.")
    advice = _did_you_mean(_with_words(model)) or _nearest(model, _models_of(model)) or _HOW_TO_NAME
    return ModelNotFound(f"No provider is known for a model {model!r}.", advice=advice)


def with_listed_window(facts: ModelFacts, api_base: str, api_key: str, env: Mapping[str, str]) -> ModelFacts:
    """The facts with the window that the model's endpoint lists, if it lists one. It has two seconds to answer.

    A server on this computer is always asked: it may run a known model with another window, and answers at once. All
    others are asked only about a model of which nothing else is known, as each start would wait for them.
    """
    address = address_of(facts.provider, api_base, env) if facts.provider in providers.SPEAKS_OPENAI else ""
    if not address or not (is_loopback(address) or facts.is_window_guess):
        return facts
    key = api_key or key_of(facts.provider, env)[1]
    url = providers.window_list(facts.provider, address)
    windows = providers.list_windows(url, api_key=key, seconds=_LIST_SECONDS)
    bare = facts.name.partition("/")[2]
    tokens = windows.get(bare) or next((windows[name] for name in windows if _is(name, bare)), 0)
    return facts.with_window(tokens, FROM_LIST) if tokens else facts


def _listed(model: str, api_base: str, api_key: str) -> tuple[str, dict[str, int]]:
    """A server of the person's own, and the models that it lists; see `list_windows`."""
    provider = provider_of(model)
    if api_base and provider in providers.SPEAKS_OPENAI:
        url = f"{api_base.rstrip('/')}/models"
        return api_base, providers.list_windows(url, api_key=api_key, seconds=_LIST_SECONDS)
    own = "ollama_chat" if provider == "ollama" else provider
    for server in providers.LOCAL_SERVERS if not api_base else ():
        if server.prefix == own and own != "openai":
            return server.title, providers.list_windows(server.list_url, seconds=_LIST_SECONDS)
    return "", {}


def _models_of(name: str) -> list[str]:
    """The models of the provider that a name begins with, written as it is; else those that are named without one."""
    provider, slash, _ = name.lower().partition("/")
    if not slash:
        return [known for known in price_map.load() if "/" not in known]
    return [_full_name(entry) for entry in price_map.load().values() if entry.provider == provider]


def _full_name(entry: PriceEntry) -> str:
    return f"{entry.provider}/{entry.name.removeprefix(f'{entry.provider}/')}"


def _is(listed: str, wanted: str) -> bool:
    """Whether a listed name means the wanted one: the same, without Ollama's tag, or a proxy's `openai/*`."""
    return wanted in (listed, listed.partition(":")[0]) or fnmatchcase(wanted, listed)


def _with_words(name: str) -> list[str]:
    """Names that have all words of this one, such as `sonnet`: usual models first, then short names."""
    words, order = set(_WORDS.findall(name.lower())) or {name}, list(PROVIDERS)
    usual = {facts.model for facts in PROVIDERS.values()}
    found = {
        (full not in usual, order.index(entry.provider), len(full), full)
        for entry in price_map.load().values()
        if entry.provider in PROVIDERS and words <= set(_WORDS.findall((full := _full_name(entry)).lower()))
    }
    return [full for *_, full in sorted(found)[:_NEAR]]


def _nearest(wanted: str, known: Iterable[str]) -> str:
    return _did_you_mean(difflib.get_close_matches(wanted.lower(), list(known), n=_NEAR, cutoff=_NEAR_RATIO))


def _did_you_mean(near: Sequence[str]) -> str:
    return f"Did you mean {' or '.join(near)}?" if near else ""


@dataclass(frozen=True, slots=True)
class Offer:
    """One model by its name, and why it is offered. `window_tokens`: as its server lists it; 0 if it does not."""

    name: str
    why: str
    window_tokens: int = 0


def offers(
    settings: ModelSettings, env: Mapping[str, str], *, in_use: str, found: Iterable[str], recent: Iterable[str]
) -> list[Offer]:
    """Each model once, the likeliest first.

    found   models that the start of the chat came across, such as those of a server on this machine
    recent  models that answered in earlier sessions, the newest first
    """
    named = [("configured", settings.name), ("a fallback", *settings.fallbacks), ("summarizer", settings.summarizer)]
    listed = [Offer(in_use, "in use")]
    listed += [Offer(name, why) for why, *names in named for name in names if "/" in name]
    listed += [Offer(name, "found") for name in found]
    listed += [Offer(name, "used before") for name in recent]
    listed += [Offer(facts.model, f"{facts.title}'s key is set") for facts in _keyed(settings, env) if facts.model]
    return once(listed)


def once(listed: Iterable[Offer]) -> list[Offer]:
    """Each model once, for its first reason."""
    first: dict[str, Offer] = {}
    for offer in listed:
        first.setdefault(offer.name, offer)
    return list(first.values())


def served_beside(model: str, api_base: str, api_key: str) -> list[Offer]:
    """The models that the person's own server lists, if it has this model. It has two seconds to answer."""
    where, listed = _listed(model, api_base, api_key)
    provider = model.partition("/")[0]
    return [Offer(f"{provider}/{name}", f"at {where}", tokens) for name, tokens in listed.items() if "*" not in name]


def known(settings: ModelSettings, env: Mapping[str, str]) -> list[Offer]:
    """Every chat model that litellm knows of the providers whose keys are set, plain names before their variants."""
    titles = {facts.name: facts.title for facts in _keyed(settings, env)}
    found = [
        Offer(_full_name(entry), titles[entry.provider])
        for entry in price_map.load().values()
        if entry.provider in titles
    ]
    return sorted(found, key=lambda offer: (len(offer.name), offer.name))


def _keyed(settings: ModelSettings, env: Mapping[str, str]) -> Iterator[ProviderFacts]:
    """The providers whose key is set and who are asked at their own address, not at an endpoint of the person's own."""
    for facts in PROVIDERS.values():
        if key_of(facts.name, env)[1] and not endpoint_of(facts.name, settings.api_base, env)[0]:
            yield facts
