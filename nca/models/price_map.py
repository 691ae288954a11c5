"""Read litellm's price map: windows, output limits, prices and abilities of some three thousand models.

The file in litellm's package is read without importing litellm (seconds and 160 MB), once, when first needed. Models
that are newer than that release come from `newer_models.json`, in the same shape, each with its source and the day on
which it was checked; and from the table that `nca models refresh` fetched, which wins.
"""

from __future__ import annotations

import importlib.util
import os
import re
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from nca.models import fetched_prices
from nca.models.fetched_prices import ABOVE, CHATS, KINDS

FILE_NAME = "model_prices_and_context_window_backup.json"

_BOUNDARIES = "-:@/_"
"""Characters at which a known name may end inside a longer one. Not the dot: gpt-4.5 is not a gpt-4."""

_DATES = re.compile(r"(?:[-@](?:\d{8}|\d{4}-\d{2}-\d{2}|\d{2}-\d{4}|latest)|-v\d+:\d+)+$")
_BEDROCK = re.compile(r"^(?:(?:us|eu|ap|apac|au|jp|global|us-gov)\.)?[a-z0-9]+\.(?=[a-z])")
_DIGITS_DOT = re.compile(r"(?<=\d)\.(?=\d)")


class Prices(msgspec.Struct, frozen=True, kw_only=True):
    """US dollars per token; None if unknown, never 0 for that."""

    input_cost: float | None = None
    output_cost: float | None = None
    cache_read_cost: float | None = None
    cache_write_cost: float | None = None

    def prices(self) -> dict[str, float | None]:
        return {kind: getattr(self, kind) for kind in KINDS.values()}


class PriceTier(Prices, frozen=True):
    """Prices of a whole request with a prompt longer than `above_tokens`; None: the lower tier's."""

    above_tokens: int


class PriceEntry(Prices, frozen=True):
    """One model of the map.

    tiers         higher prices of long requests, lowest bound first
    can_compact   its provider can compact a conversation
    can_see       it accepts images
    can_reason    it can reason before it answers
    """

    name: str
    provider: str
    window_tokens: int | None
    max_output_tokens: int | None
    can_use_tools: bool | None
    tiers: tuple[PriceTier, ...] = ()
    can_compact: bool = False
    can_see: bool = False
    can_reason: bool = False


class Match(msgspec.Struct, frozen=True):
    """An entry, and whether its name is all of the requested one, or only its beginning."""

    entry: PriceEntry
    is_exact: bool


def locate() -> Path | None:
    """The file in litellm's package; None if litellm is not installed."""
    spec = importlib.util.find_spec("litellm")
    if spec is None or spec.origin is None:
        return None
    path = Path(spec.origin).with_name(FILE_NAME)
    return path if os.path.isfile(path) else None


@cache
def load() -> dict[str, PriceEntry]:
    """All chat models by lower-case name; a table that is missing or unreadable has none."""
    fetched = fetched_prices.read(os.environ)
    path = locate()
    return {
        **(_read(path) if path is not None else {}),
        **_read(fetched_prices.NEWER),
        **(_entries(fetched.models) if fetched is not None else {}),
    }


def _read(path: Path) -> dict[str, PriceEntry]:
    try:
        # One model at a time: decoding all at once takes six times the memory, which is never returned.
        return _entries(msgspec.json.decode(path.read_bytes(), type=dict[str, msgspec.Raw]))
    except (OSError, msgspec.MsgspecError):
        return {}


def _entries(raw: dict[str, msgspec.Raw]) -> dict[str, PriceEntry]:
    """Raises MsgspecError."""
    return {name.lower(): _entry(name, values) for name, row in raw.items() if (values := _chat(row)) is not None}


def _chat(row: msgspec.Raw) -> dict[str, Any] | None:
    """The values of a chat model, None for others. Raises MsgspecError."""
    values = msgspec.json.decode(row)
    return values if isinstance(values, dict) and values.get("mode") in CHATS else None


@cache
def providers() -> frozenset[str]:
    """All provider names."""
    prefixes_of_names = {name.split("/", 1)[0] for name in load() if "/" in name}
    return frozenset(prefixes_of_names | {entry.provider for entry in load().values()})


def find(name: str) -> Match | None:
    """The entry that matches most of `name`, ignoring case, with or without provider prefixes and dates."""
    asked = name.strip().lower()
    provider = asked.split("/", 1)[0] if "/" in asked else ""
    spellings = shorten(asked)
    for spelling in spellings:
        if entry := load().get(spelling):
            return Match(entry, is_exact=True)
    for spelling in spellings:
        if entry := _under_another_provider(spelling, provider):
            return Match(entry, is_exact=True)
    for start in prefixes(asked):
        if entry := load().get(start) or _under_another_provider(start, provider):
            return Match(entry, is_exact=False)
    return None


def shorten(name: str) -> list[str]:
    """A lower-case name with fewer and fewer provider prefixes; each also without its date and without dots."""
    variants = [variant for rest in _without_providers(name) for variant in (rest, _DATES.sub("", rest))]
    variants += [_DIGITS_DOT.sub("-", variant) for variant in variants]
    return list(dict.fromkeys(variant for variant in variants if variant))


def prefixes(name: str) -> list[str]:
    """The beginnings of a lower-case name, without providers, that end at a boundary, longest first.

    Only those with a version or two words. Versions are also written with a dash (claude-3.5 as claude-3-5), but only
    after cutting, so that gpt-4.5 never becomes gpt-4.
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
    """An entry of this name under any provider: the given one, otherwise one with the most common window."""
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
    """Every entry by its name without the provider, and without the date."""
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
        base = tiers.pop(0).prices()
    return PriceEntry(
        name=name,
        provider=str(values.get("litellm_provider", "")),
        window_tokens=count("max_input_tokens"),
        max_output_tokens=count("max_output_tokens"),
        can_use_tools=tools if isinstance(tools, bool) else None,
        tiers=tuple(tiers),
        can_compact=values.get("supports_anthropic_compaction") is True,
        can_see=values.get("supports_vision") is True,
        can_reason=values.get("supports_reasoning") is True,
        **base,
    )


def _tiers(values: dict[str, Any]) -> list[PriceTier]:
    """Price tiers. The map has them in two forms: `…_above_200k_tokens` keys, and a list of ranges from 0."""
    found: dict[int, dict[str, Any]] = {}
    for key in values:
        if named := ABOVE.fullmatch(key):
            found.setdefault(int(named[2]) * 1_000, {})[named[1]] = values[key]
    listed = values.get("tiered_pricing")
    for row in listed if isinstance(listed, list) else ():
        span = row.get("range") if isinstance(row, dict) else None
        if isinstance(span, list) and span and isinstance(span[0], int | float):
            found.setdefault(int(span[0]), row)
    return [PriceTier(above, **_prices(found[above])) for above in sorted(found)]


def _prices(values: dict[str, Any]) -> dict[str, float | None]:
    """The four prices under nca's names."""

    def price(key: str) -> float | None:
        value = values.get(key)
        return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None

    return {kind: price(key) for key, kind in KINDS.items()}
