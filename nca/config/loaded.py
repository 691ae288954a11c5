"""The settings as they are in force, and where each value came from.

Every value was read by its kind (nca.config.value_types) when it arrived, so a LoadedSettings is always valid; whether
values suit each other is the engine's business.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType
from typing import Any

from nca.compat.profiles import PROFILES
from nca.config.names import canonical, is_section
from nca.config.overrides import UNSET, Layer, Override, SettingValue, apply_overrides, fixed_place, resolve
from nca.config.schema import KEYS, Settings


@dataclass(frozen=True, slots=True)
class Pattern:
    """What a `[for."pattern"]` table sets, for models whose name matches without regard to case."""

    pattern: str
    values: Mapping[str, SettingValue]

    def matches(self, model: str) -> bool:
        """With a provider's prefix or without: `claude-*` matches anthropic/claude-…"""
        name, wanted = model.lower(), self.pattern.lower()
        return any(fnmatch.fnmatchcase(one, wanted) for one in (name, name.partition("/")[2]) if one)


@dataclass(frozen=True, slots=True)
class LoadedSettings:
    """All settings with their origins. `notes` are lines for a person: what was renamed, refused or overruled.

    `base` holds the values without the pattern tables, `settings` and `effective` with those of `model`.
    """

    base: Mapping[str, SettingValue]
    patterns: tuple[Pattern, ...] = ()
    model: str = ""
    notes: tuple[str, ...] = ()
    covered: Mapping[str, SettingValue] = field(default_factory=dict)
    """What lies below the values that were set in the chat."""
    effective: Mapping[str, SettingValue] = field(init=False)
    settings: Settings = field(init=False)

    def __post_init__(self) -> None:
        effective = dict(self.base)
        for pattern in self.patterns:
            if self.model and pattern.matches(self.model):
                effective |= {
                    key: setting for key, setting in pattern.values.items() if self.base[key].layer <= setting.layer
                }
        object.__setattr__(self, "effective", MappingProxyType(effective))
        object.__setattr__(self, "settings", _build(Settings, "", effective))

    def origin(self, key: str) -> str:
        """Where a value came from: "default", a file's path, "environment NCA_…", "flag --…", "set in this chat"."""
        return self.effective[resolve(key, "").key].origin

    def value(self, key: str) -> Any:
        """The value of a key, under its nca's or another program's name. Raises ConfigError for an unknown one."""
        return self.effective[resolve(key, "").key].value

    def with_value(self, name: str, raw: Any, origin: str) -> LoadedSettings:
        """The same settings with one value set over everything else; UNSET takes back what was set so.

        Raises ConfigError; the original stays.
        """
        if raw is UNSET:
            return self._without(resolve(name, "").key)
        return self.with_values({name: raw}, origin)

    def with_values(self, values: Mapping[str, Any], origin: str) -> LoadedSettings:
        """Several at once, so that another program's halves (summarization_provider and _model) meet.

        Settings may be grouped as in another program: {"contextCompaction": {"threshold": 0.8}}.
        """
        values = dict(_flat(values))
        if chosen := {name: raw for name, raw in values.items() if _is_profile(name)}:
            # First, because a switch such as enablePruning starts from what the profile sets.
            rest = {name: raw for name, raw in values.items() if name not in chosen}
            return self._with(chosen, origin)._with(rest, origin)
        return self._with(values, origin)

    def _with(self, values: Mapping[str, Any], origin: str) -> LoadedSettings:
        overrides = [Override(name, raw, origin, fixed_place("")) for name, raw in values.items()]
        # What a person sees in `effective` is what a switch such as enablePruning starts from.
        base = dict(self.base)
        notes = apply_overrides(overrides, base, Layer.CHAT, current=self.effective)
        below = {key: self.base[key] for key, setting in base.items() if setting.layer == Layer.CHAT}
        covered = {key: self.covered.get(key, setting) for key, setting in below.items()}
        profile = MappingProxyType(profiled(base))
        return replace(self, base=profile, notes=merged_notes(self.notes, notes), covered=MappingProxyType(covered))

    def _without(self, key: str) -> LoadedSettings:
        """As if this had not been set in the chat."""
        if key not in self.covered:
            return self
        base = {**self.base, key: self.covered[key]}
        covered = {name: setting for name, setting in self.covered.items() if name != key}
        return replace(self, base=MappingProxyType(profiled(base)), covered=MappingProxyType(covered))

    def saved(self, key: str, origin: str) -> LoadedSettings:
        """What was set in the chat stands in the project's file now, and comes from there; the values stay.

        Where something stronger than that file is below it, the chat's word has to stay as well.
        """
        below = self.covered.get(key)
        if below is None or below.layer > Layer.PROJECT:
            return self
        base = {**self.base, key: replace(self.base[key], origin=origin, layer=Layer.PROJECT)}
        covered = {name: setting for name, setting in self.covered.items() if name != key}
        kept = replace(self, base=MappingProxyType(base), covered=MappingProxyType(covered))
        return kept if kept.settings == self.settings else self

    def taken_out(self, key: str, origin: str, files: LoadedSettings) -> LoadedSettings:
        """What was below the chat's word stands in the file `origin` no more: now it is what all `files` say."""
        below = self.covered.get(key)
        if below is None or below.origin != origin:
            return self
        return replace(self, covered=MappingProxyType({**self.covered, key: files.base[key]}))

    def for_model(self, name: str) -> LoadedSettings:
        """The settings for this model: files' pattern tables count, what env, flags and chat say stays stronger."""
        return replace(self, model=name)


def defaults() -> LoadedSettings:
    """The defaults alone: no file, no environment."""
    base = {name: SettingValue(key.default, "default", Layer.DEFAULT) for name, key in KEYS.items()}
    return LoadedSettings(MappingProxyType(base))


def profiled(base: Mapping[str, SettingValue]) -> dict[str, SettingValue]:
    """The same values with the profile that they name laid between the defaults and the rest."""
    name = base["profile"].value
    values = PROFILES[name]
    return {
        key: setting
        if setting.layer > Layer.PROFILE
        else SettingValue(values[key], f"profile {name}", Layer.PROFILE)
        if key in values
        else SettingValue(KEYS[key].default, "default", Layer.DEFAULT)
        for key, setting in base.items()
    }


def _is_profile(name: str) -> bool:
    found = canonical(name)
    return found is not None and found.key == "profile"


def _flat(values: Mapping[str, Any], section: str = "") -> Iterator[tuple[str, Any]]:
    for name, raw in values.items():
        dotted = f"{section}{name}"
        if isinstance(raw, Mapping) and is_section(dotted):
            yield from _flat(raw, f"{dotted}.")
        else:
            yield dotted, raw


def _build(node: type, prefix: str, values: Mapping[str, SettingValue]) -> Any:
    arguments: dict[str, Any] = {}
    for item in fields(node):
        name = f"{prefix}{item.name}"
        section: Any = item.default_factory
        arguments[item.name] = values[name].value if name in values else _build(section, f"{name}.", values)
    return node(**arguments)


def merged_notes(old: tuple[str, ...], new: list[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*old, *new)))
