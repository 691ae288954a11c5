"""The settings in effect, and where each value comes from.

Each value was validated by its type (nca.config.value_types), but not whether values fit each other: the engine does
that.
"""

from __future__ import annotations

import fnmatch
import functools
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from nca.config.claude_permissions import Decision, HeldRule
from nca.config.overrides import (
    UNSET,
    Layer,
    Override,
    SettingValue,
    apply_overrides,
    canonical,
    fixed_place,
    is_section,
    resolve,
)
from nca.config.paths import FILE_NAME, PROJECT_FOLDER, data_dir, user_config_file
from nca.config.schema import KEYS, Settings

CHOICE = "/model in this session"
"""The origin of a level of reasoning that was chosen with a model."""
_LEVEL = "model.reasoning"
_HELD: Mapping[str, Decision] = {"permissions.deny": "deny", "permissions.ask": "ask", "permissions.allow": "allow"}


class Pattern(NamedTuple):
    """The settings of a `[for."pattern"]` table, for models with a matching name, ignoring case."""

    pattern: str
    values: Mapping[str, SettingValue]

    def matches(self, model: str) -> bool:
        """Whether the name matches, with or without the provider: `claude-*` matches anthropic/claude-…"""
        name, wanted = model.lower(), self.pattern.lower()
        return any(fnmatch.fnmatchcase(one, wanted) for one in (name, name.partition("/")[2]) if one)


@dataclass(frozen=True, slots=True)
class LoadedSettings:
    """All settings with their origins. `notes` are lines to display: what was renamed, ignored or overridden.

    `base` has the values without pattern tables, `settings` and `effective` include those for `model`.
    """

    base: Mapping[str, SettingValue]
    patterns: tuple[Pattern, ...] = ()
    model: str = ""
    notes: tuple[str, ...] = ()
    held: tuple[HeldRule, ...] = ()
    """Rules of other programs' settings. They are in `settings.permissions` whatever the layers say, and in no file."""
    covered: Mapping[str, SettingValue] = field(default_factory=dict)
    """The values that were replaced in the chat."""
    env: Mapping[str, str] = field(default_factory=lambda: os.environ, repr=False, compare=False)
    """The environment that they were loaded from, which leads to the person's own files."""
    named_file: Path | None = None
    """The file that replaces the person's."""
    address_of: str = ""
    """The provider of the model that the files name: an address in a file is that provider's. "": any model's."""
    effective: Mapping[str, SettingValue] = field(init=False)
    settings: Settings = field(init=False)

    def __post_init__(self) -> None:
        effective = dict(self.base)
        for pattern in self.patterns:
            if self.model and pattern.matches(self.model):
                effective |= {
                    key: setting for key, setting in pattern.values.items() if self.base[key].layer < setting.layer
                }
        if self._is_elsewhere(effective["model.api_base"]):
            effective["model.api_base"] = _default("model.api_base")
        object.__setattr__(self, "effective", MappingProxyType(effective))
        object.__setattr__(self, "settings", _build(Settings, "", self._with_held(effective)))

    def _is_elsewhere(self, address: SettingValue) -> bool:
        """Whether an address is another provider's than the model's, who would get a key that is not its own."""
        model = self.model or self.base["model.name"].value
        is_of_file = address.layer in (Layer.USER, Layer.PROJECT)
        return is_of_file and bool(self.address_of) and "/" in model and provider_in(model) != self.address_of

    def _with_held(self, values: Mapping[str, SettingValue]) -> Mapping[str, SettingValue]:
        if not self.held:
            return values
        joined = dict(values)
        for key, decision in _HELD.items():
            more = tuple(rule for one in self.held for rule in one.of(decision))
            joined[key] = values[key]._replace(value=(*values[key].value, *more))
        return joined

    @property
    def user_file(self) -> Path:
        """The person's own settings file, which may not exist: what holds for good is written there."""
        return self.named_file or user_config_file(self.env)

    @property
    def data_dir(self) -> Path:
        """The folder of the person's own data, which may not exist."""
        return data_dir(self.env)

    def own_places(self) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
        """Settings files, and folders of data, that no tool may change: the person's, and those of whoever runs nca."""
        files = self.user_file, user_config_file(self.env), user_config_file(os.environ)
        return tuple(dict.fromkeys(files)), tuple(dict.fromkeys((self.data_dir, data_dir(os.environ))))

    def is_own(self, path: Path) -> bool:
        """Whether the path is, or would be, a settings or data file of nca's."""
        path, (files, folders) = path.resolve(), self.own_places()
        return (
            (path.parent.name.lower() == PROJECT_FOLDER and path.name.lower().startswith(FILE_NAME))
            or path in {file.resolve() for file in files}
            or any(path.is_relative_to(folder.resolve()) for folder in folders)
        )

    def origin(self, key: str) -> str:
        """Its origin: "default", a file (and its table), "environment NCA_…", "flag --…", "set in this chat"."""
        return self.effective[resolve(key, "").key].origin

    def value(self, key: str) -> Any:
        """The value of a setting, also by another program's name for it. Raises ConfigError for an unknown name."""
        return self.effective[resolve(key, "").key].value

    def with_value(self, name: str, raw: Any, origin: str) -> LoadedSettings:
        """A copy with one value set in the chat's layer; UNSET removes it from there. Raises ConfigError."""
        if raw is UNSET:
            return self._without(resolve(name, "").key)
        return self.with_values({name: raw}, origin)

    def with_values(self, values: Mapping[str, Any], origin: str) -> LoadedSettings:
        """Set several values at once, such as summarization_provider and _model, which are joined.

        Settings may be nested as in other programs: {"contextCompaction": {"threshold": 0.8}}.
        """
        values = dict(_flat(values))
        if chosen := {name: raw for name, raw in values.items() if (key := canonical(name)) and key.key == "profile"}:
            # First, because a switch such as enablePruning modifies what the profile sets.
            rest = {name: raw for name, raw in values.items() if name not in chosen}
            return self._with(chosen, origin)._with(rest, origin)
        return self._with(values, origin)

    def with_default(self, key: str, value: Any) -> LoadedSettings:
        """A copy with another default: what somebody has set stays."""
        if self.origin(key) != "default":
            return self
        base = {**self.base, key: SettingValue(value, "default", Layer.DEFAULT)}
        return replace(self, base=MappingProxyType(base))

    def _with(self, values: Mapping[str, Any], origin: str) -> LoadedSettings:
        overrides = [Override(name, raw, origin, fixed_place("")) for name, raw in values.items()]
        # A switch such as enablePruning modifies the value in effect.
        base = dict(self.base)
        notes = apply_overrides(overrides, base, Layer.CHAT, current=self.effective)
        below = {key: self.base[key] for key, setting in base.items() if setting.layer == Layer.CHAT}
        covered = {key: self.covered.get(key, setting) for key, setting in below.items()}
        in_effect = MappingProxyType(profiled(base))
        return replace(self, base=in_effect, notes=merged_notes(self.notes, notes), covered=MappingProxyType(covered))

    def _without(self, key: str) -> LoadedSettings:
        """A copy in which the chat did not set this."""
        if key not in self.covered:
            return self
        base = {**self.base, key: self.covered[key]}
        covered = {name: setting for name, setting in self.covered.items() if name != key}
        return replace(self, base=MappingProxyType(profiled(base)), covered=MappingProxyType(covered))

    def saved(self, key: str, origin: str) -> LoadedSettings:
        """A copy after a chat's value was saved to the project's file, so that it comes from there.

        If a stronger layer sets it too, the chat's value stays.
        """
        below = self.covered.get(key)
        if below is None or below.layer > Layer.PROJECT:
            return self
        base = {**self.base, key: self.base[key]._replace(origin=origin, layer=Layer.PROJECT)}
        covered = {name: setting for name, setting in self.covered.items() if name != key}
        kept = replace(self, base=MappingProxyType(base), covered=MappingProxyType(covered))
        return kept if kept.settings == self.settings else self

    def taken_out(self, key: str, origin: str, files: LoadedSettings) -> LoadedSettings:
        """A copy after a setting was removed from the file `origin`; `files` has the new value below the chat's."""
        below = self.covered.get(key)
        if below is None or below.origin != origin:
            return self
        return replace(self, covered=MappingProxyType({**self.covered, key: files.base[key]}))

    @property
    def has_chosen_model(self) -> bool:
        """Whether the model is the one that was chosen with /model in an earlier chat of this project."""
        return self.base["model.name"].layer == Layer.CHOSEN

    def without_chosen_model(self) -> LoadedSettings:
        """A copy without what was chosen with /model, in this session or in an earlier chat of this project."""
        base, covered = (
            {key: _default(key) if setting.layer == Layer.CHOSEN else setting for key, setting in values.items()}
            for values in (self.base, self.covered)
        )
        kept = replace(self, base=MappingProxyType(profiled(base)), covered=MappingProxyType(covered))
        return kept._without(_LEVEL) if kept.base[_LEVEL].origin == CHOICE else kept

    def with_chosen_level(self, level: str) -> LoadedSettings:
        """A copy with the level of reasoning of a model that is chosen now, in place of that of an earlier choice."""
        kept = self.without_chosen_model()
        base = {**self.base, _LEVEL: kept.base[_LEVEL]}
        kept = replace(kept, base=MappingProxyType(profiled(base)))
        return kept.with_value(_LEVEL, level, CHOICE) if level else kept

    def for_model(self, name: str) -> LoadedSettings:
        """The settings for this model, with matching pattern tables of the files."""
        return replace(self, model=name)


def provider_in(model: str) -> str:
    """The provider that a model's name begins with; openai's, as at an endpoint of one's own, if it has none."""
    return model.lower().partition("/")[0] if "/" in model else "openai"


@functools.cache
def defaults() -> LoadedSettings:
    """The default settings."""
    return LoadedSettings(MappingProxyType({key: _default(key) for key in KEYS}))


def _default(key: str) -> SettingValue:
    return SettingValue(KEYS[key].default, "default", Layer.DEFAULT)


@functools.cache
def profile(name: str) -> Mapping[str, Any]:
    """The settings of one of the five programs, in place of nca's defaults; nothing for "none".

    Each is a settings file. A setting that the program does not have keeps its default. So do the model that writes
    summaries and whether sessions are kept: a person chooses those. A threshold of 1.0 means: not before the budget is
    full.
    """
    if name == "none":
        return {}
    import tomllib

    table = tomllib.loads((Path(__file__).with_name("profiles") / f"{name}.toml").read_text(encoding="utf-8"))
    return {key: KEYS[key].value_type.read(raw) for key, raw in _flat(table)}


def profiled(base: Mapping[str, SettingValue]) -> dict[str, SettingValue]:
    """The values with the profile that they name applied over the defaults.

    User-only settings are left out of a profile that a project or a flag names: neither may archive
    the user's sessions.
    """
    name, is_own = base["profile"].value, base["profile"].layer not in (Layer.PROJECT, Layer.FLAG)
    values = {key: value for key, value in profile(name).items() if is_own or not KEYS[key].user_only}
    applied = {key: SettingValue(value, f"profile {name}", Layer.PROFILE) for key, value in values.items()}
    return {
        key: setting if setting.layer > Layer.PROFILE else applied.get(key) or _default(key)
        for key, setting in base.items()
    }


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
