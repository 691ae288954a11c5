"""Models to switch to: those in use, configured, found on this machine, and known of a provider."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from nca.config.schema import ModelSettings
from nca.models import price_map
from nca.models.providers import PROVIDERS, ProviderFacts, key_of


@dataclass(frozen=True, slots=True)
class Offer:
    """One model by its name, and why it is offered."""

    name: str
    why: str


def offers(
    settings: ModelSettings, env: Mapping[str, str], *, in_use: str, found: Iterable[str], recent: Iterable[str]
) -> list[Offer]:
    """Each model once, the likeliest first.

    found   models that the start of the chat came across, such as those of a server on this machine
    recent  models of earlier sessions, the newest first
    """
    named = [("configured", settings.name), ("a fallback", *settings.fallbacks), ("summarizer", settings.summarizer)]
    listed = [Offer(in_use, "in use")]
    listed += [Offer(name, why) for why, *names in named for name in names if "/" in name]
    listed += [Offer(name, "found") for name in found]
    listed += [Offer(name, "used before") for name in recent]
    listed += [Offer(facts.model, f"{facts.title}'s key is set") for facts in _keyed(env) if facts.model]
    first: dict[str, Offer] = {}
    for offer in listed:
        first.setdefault(offer.name, offer)
    return list(first.values())


def known(env: Mapping[str, str]) -> list[Offer]:
    """Every chat model that litellm knows of the providers whose keys are set, plain names before their variants."""
    titles = {facts.name: facts.title for facts in _keyed(env)}
    found = [
        Offer(f"{entry.provider}/{entry.name.removeprefix(f'{entry.provider}/')}", titles[entry.provider])
        for entry in price_map.load().values()
        if entry.provider in titles
    ]
    return sorted(found, key=lambda offer: (len(offer.name), offer.name))


def _keyed(env: Mapping[str, str]) -> Iterator[ProviderFacts]:
    return (facts for facts in PROVIDERS.values() if key_of(facts.name, env)[1])
