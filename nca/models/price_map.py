"""litellm's price map, read as data: windows, output caps, prices, abilities of some three thousand models.

The file lies in litellm's package and is read without importing litellm (which costs seconds and 160 MB).
It is parsed once, when first asked.
"""

from __future__ import annotations

import importlib.util
import re
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

FILE_NAME = "model_prices_and_context_window_backup.json"

_CHATS = frozenset({"chat", "responses"})
"""Modes that answer a conversation; embeddings, images and plain completions have windows of another kind."""

_BOUNDARIES = "-:@/_"
"""Where a known name may end inside a longer one. Not the dot: gpt-4 says nothing about gpt-4.5."""

_DATES = re.compile(r"(?:[-@](?:\d{8}|\d{4}-\d{2}-\d{2}|\d{2}-\d{4}|latest)|-v\d+:\d+)+$")
_BEDROCK = re.compile(r"^(?:(?:us|eu|ap|apac|au|jp|global|us-gov)\.)?[a-z0-9]+\.(?=[a-z])")
_DIGITS_DOT = re.compile(r"(?<=\d)\.(?=\d)")

_KINDS = {
    "input_cost_per_token": "input_cost",
    "output_cost_per_token": "output_cost",
    "cache_read_input_token_cost": "cache_read_cost",
    "cache_creation_input_token_cost": "cache_write_cost",
}
"""The map's names of the four prices, and ours."""
_ABOVE = re.compile(rf"({'|'.join(_KINDS)})_above_(\d+)k_tokens")


@dataclass(frozen=True, slots=True)
class PriceTier:
    """What a whole request costs for one token once its prompt is longer than `above_tokens`; None: as below it."""

    above_tokens: int
    input_cost: float | None = None
    output_cost: float | None = None
    cache_read_cost: float | None = None
    cache_write_cost: float | None = None


@dataclass(frozen=True, slots=True)
class PriceEntry:
    """One model of the map. Prices are US dollars for one token; None where the map does not say.

    tiers         dearer prices of long requests, lowest bound first
    can_compact   its provider can compact a conversation by itself
    can_see       it takes images
    """

    name: str
    provider: str
    window_tokens: int | None
    max_output_tokens: int | None
    input_cost: float | None
    output_cost: float | None
    cache_read_cost: float | None
    cache_write_cost: float | None
    can_use_tools: bool | None
    tiers: tuple[PriceTier, ...] = ()
    can_compact: bool = False
    can_see: bool = False


@dataclass(frozen=True, slots=True)
class Match:
    """An entry, and how much of the asked name it explains (`length` characters; exact: all of it)."""

    entry: PriceEntry
    length: int
    is_exact: bool


def locate() -> Path | None:
    """The file in litellm's package, None where litellm is not installed."""
    spec = importlib.util.find_spec("litellm")
    if spec is None or spec.origin is None:
        return None
    path = Path(spec.origin).with_name(FILE_NAME)
    return path if path.is_file() else None


@cache
def load() -> dict[str, PriceEntry]:
    """All models that chat, by lower-case name; empty where the file is missing or cannot be read."""
    path = locate()
    if path is None:
        return {}
    try:
        # One model at a time: all of them at once would be six times as much memory, which is never given back.
        raw = msgspec.json.decode(path.read_bytes(), type=dict[str, msgspec.Raw])
        return {name.lower(): _entry(name, values) for name, row in raw.items() if (values := _chat(row)) is not None}
    except (OSError, msgspec.MsgspecError):
        return {}


def _chat(row: msgspec.Raw) -> dict[str, Any] | None:
    """The values of a model that chats. Raises MsgspecError."""
    values = msgspec.json.decode(row)
    return values if isinstance(values, dict) and values.get("mode") in _CHATS else None


@cache
def providers() -> frozenset[str]:
    """Every first part of a name that is a provider's."""
    prefixes_of_names = {name.split("/", 1)[0] for name in load() if "/" in name}
    return frozenset(prefixes_of_names | {entry.provider for entry in load().values()})


def find(name: str) -> Match | None:
    """The entry that explains most of `name`, in any case, with or without provider prefixes and dates."""
    asked = name.strip().lower()
    provider = asked.split("/", 1)[0] if "/" in asked else ""
    spellings = shorten(asked)
    for spelling in spellings:
        if entry := load().get(spelling):
            return Match(entry, len(spelling), is_exact=True)
    for spelling in spellings:
        if entry := _under_another_provider(spelling, provider):
            return Match(entry, len(spelling), is_exact=True)
    for start in prefixes(asked):
        if entry := load().get(start) or _under_another_provider(start, provider):
            return Match(entry, len(start), is_exact=False)
    return None


def shorten(name: str) -> list[str]:
    """A lower-case name, then without its first provider prefix, and so on; each also without date and dots."""
    variants = [variant for rest in _without_providers(name) for variant in (rest, _DATES.sub("", rest))]
    variants += [_DIGITS_DOT.sub("-", variant) for variant in variants]
    return list(dict.fromkeys(variant for variant in variants if variant))


def prefixes(name: str) -> list[str]:
    """The beginnings of a lower-case name, without its providers, that end where a token ends, longest first.

    Only those that say enough (a version or two words). Versions with a dot also stand with a dash: claude-3.5 is
    claude-3-5; the cut comes before that, so that gpt-4.5 never becomes gpt-4.
    """
    starts = []
    for rest in _without_providers(name):
        cuts = (rest[:index] for index in range(len(rest) - 1, 0, -1) if rest[index] in _BOUNDARIES)
        says_enough = [start for start in cuts if any(char.isdigit() for char in start) or "-" in start]
        starts += [spelling for start in says_enough for spelling in (start, _DIGITS_DOT.sub("-", start))]
    return list(dict.fromkeys(starts))


def _without_providers(name: str) -> list[str]:
    parts = name.split("/")
    names = ["/".join(parts[index:]) for index in range(len(parts))]
    if _BEDROCK.match(parts[-1]):
        names.append(_BEDROCK.sub("", parts[-1]))
    return names


def _under_another_provider(spelling: str, provider: str) -> PriceEntry | None:
    """An entry that bears this name under some provider: the asked one's, else one with the usual window."""
    candidates = _by_last_part().get(spelling, [])
    own = [entry for entry in candidates if entry.provider == provider]
    candidates = own or [entry for entry in candidates if entry.window_tokens] or candidates
    if not candidates:
        return None
    windows = Counter(entry.window_tokens or 0 for entry in candidates)
    usual = min(windows, key=lambda window: (-windows[window], window))
    return next(entry for entry in candidates if (entry.window_tokens or 0) == usual)


@cache
def _by_last_part() -> dict[str, list[PriceEntry]]:
    """Every entry under its name without provider, and without date."""
    index: dict[str, list[PriceEntry]] = {}
    for key, entry in load().items():
        last = key.rsplit("/", 1)[-1]
        for alias in dict.fromkeys((last, _BEDROCK.sub("", last), _DATES.sub("", last))):
            index.setdefault(alias, []).append(entry)
    return index


def _entry(name: str, values: dict[str, Any]) -> PriceEntry:
    def count(key: str) -> int | None:
        value = values.get(key)
        return int(value) if isinstance(value, int | float) and not isinstance(value, bool) and value > 0 else None

    tools = values.get("supports_function_calling")
    tiers = _tiers(values)
    base = _prices(values)
    if tiers and tiers[0].above_tokens == 0:
        first = tiers.pop(0)
        base = {kind: getattr(first, kind) for kind in _KINDS.values()}
    return PriceEntry(
        name=name,
        provider=str(values.get("litellm_provider", "")),
        window_tokens=count("max_input_tokens"),
        max_output_tokens=count("max_output_tokens"),
        can_use_tools=tools if isinstance(tools, bool) else None,
        tiers=tuple(tiers),
        can_compact=values.get("supports_anthropic_compaction") is True,
        can_see=values.get("supports_vision") is True,
        **base,
    )


def _tiers(values: dict[str, Any]) -> list[PriceTier]:
    """Prices by length, which the map writes in two ways: `…_above_200k_tokens`, and a list of ranges from 0 on."""
    found: dict[int, dict[str, Any]] = {}
    for key in values:
        if named := _ABOVE.fullmatch(key):
            found.setdefault(int(named[2]) * 1_000, {})[named[1]] = values[key]
    listed = values.get("tiered_pricing")
    for row in listed if isinstance(listed, list) else ():
        span = row.get("range") if isinstance(row, dict) else None
        if isinstance(span, list) and span and isinstance(span[0], int | float):
            found.setdefault(int(span[0]), row)
    return [PriceTier(above, **_prices(found[above])) for above in sorted(found)]


def _prices(values: dict[str, Any]) -> dict[str, float | None]:
    """The four prices under our names."""

    def price(key: str) -> float | None:
        value = values.get(key)
        return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None

    return {kind: price(key) for key, kind in _KINDS.items()}
