"""Load settings from all layers.

Later layers win: defaults, the profile, the model chosen in an earlier chat here, the user's file, the project's file,
`[for."pattern"]` tables of both for the model in use, environment, flags, and the chat (LoadedSettings.with_value).
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from nca.config.claude_permissions import held_rules
from nca.config.claude_settings import ALLOW, claude_documents
from nca.config.document import Document, KeyPath, leaves, read_document, read_folder, shown_name, shown_path
from nca.config.loaded import LoadedSettings, Pattern, defaults, merged_notes, profiled, provider_in
from nca.config.overrides import (
    Layer,
    Override,
    SettingValue,
    apply_overrides,
    canonical,
    fixed_place,
    is_section,
    prefix,
)
from nca.config.paths import PathLike, config_file_above, project_config_file, read_path, user_config_file, user_home
from nca.config.projects import ChosenModel, TrustCheck, TrustStore, read_project, trust_request, waits_for_trust
from nca.config.schema import KEYS, NAMED
from nca.errors import ConfigError
from nca.humanize import check_kind

__all__ = ["FLAGS", "LoadedSettings", "defaults", "load"]

FLAGS = MappingProxyType(
    {
        "profile": "--profile",
        "model.name": "--model",
        "model.context_window": "--context-window",
        "model.max_output_tokens": "--max-output-tokens",
        "model.summarizer": "--summarizer",
        "context.auto": "--disable-compaction",
        "context.compact_threshold": "--compact-threshold",
        "context.target_ratio": "--target",
        "context.fit": "--fit",
        "context.stages": "--stages",
        "agent.max_steps": "--max-steps",
        "agent.permission": "--permission",
        "agent.system_prompt": "--system",
        "session.max_cost": "--max-cost",
        "terminal.plain": "--plain",
    }
)
"""The flag of each key, for the text of its origin."""

_PATTERN_TABLE = "for"


def load(
    *,
    project: PathLike | None,
    env: Mapping[str, str],
    user_file: PathLike | None = None,
    flags: Mapping[str, Any] = MappingProxyType({}),
    config_file: PathLike | None = None,
    trusts: TrustCheck | None = None,
    chosen: ChosenModel | None = None,
) -> LoadedSettings:
    """Read every layer; no file is changed.

    Raises ConfigError for the first invalid setting, UsageError for an argument of the wrong type.

    project      the project's directory, or None
    env          the environment, also for the keys and addresses of models that are opened with these settings
    user_file    replaces the file that `env` leads to; it may not exist yet
    flags        settings by name; None for a flag that was not given
    config_file  replaces the project's file, and is trusted because the user named it
    trusts       called if the project's file has settings that need trust; None: use the stored decisions
    chosen       the model that the person chose in an earlier chat of the project; what they wrote wins
    """
    _check_arguments(env, flags)
    project = None if project is None else read_folder(project, "project")
    user_file, config_file = (
        None if path is None else read_path(path, name)
        for path, name in ((user_file, "user_file"), (config_file, "config_file"))
    )
    user_path = (user_file or user_config_file(env)).absolute()
    own = list[_File]()
    files = [_File(read_document(user_path), Layer.USER, True)]
    found, untrusted, may_act = _of_project(project, user_path, config_file, env, trusts or TrustStore(env).is_trusted)
    files += found

    def lay(start: Mapping[str, SettingValue]) -> _Draft:
        draft = _Draft(user_path, start)
        for file in (*own, *files):
            draft.add_file(file)
        draft.address_of = provider_in(name) if (name := draft.base["model.name"].value) else ""
        draft.add(_environment(env, draft.notes), Layer.ENVIRONMENT)
        draft.add([_flag(name, raw) for name, raw in flags.items() if raw is not None], Layer.FLAG)
        return draft

    start = dict(defaults().base)
    said: list[str] = []
    draft = lay(start)
    if uses_own := draft.base["agent.use_claude_home"].value:
        theirs = claude_documents(user_home(env), env, said, is_own=True)
        own += [_File(document, Layer.USER, True) for document in theirs]
        draft = lay(start)
    if draft.base["profile"].layer > Layer.DEFAULT:
        # Any layer may set the profile, but a switch such as enablePruning modifies what the profile sets.
        draft = lay(profiled({**start, "profile": draft.base["profile"]}))
    if chosen is not None and draft.base["model.name"].layer < Layer.CHOSEN:
        draft.add_chosen(chosen)
    home = user_home(env) if "HOME" in env or sys.platform == "win32" else None
    held = held_rules(project, home, said, projects_allow=may_act, own_allow=uses_own)
    notes = merged_notes((), [*draft.notes, *untrusted, *said])
    base, patterns = MappingProxyType(draft.base), tuple(draft.patterns)
    named = user_path if user_file else None
    return LoadedSettings(base, patterns, "", notes, held, env=env, named_file=named, address_of=draft.address_of)


def _check_arguments(env: Mapping[str, str], flags: Mapping[str, Any]) -> None:
    """Raises UsageError for what is no mapping of texts, or of settings by name."""
    check_kind(env, Mapping, "env", "the environment (os.environ), or another mapping")
    for text in (text for variable in env.items() for text in variable):
        check_kind(text, str, "env", "names and values of text")
    check_kind(flags, Mapping, "flags", "settings by name")
    for name in flags:
        check_kind(name, str, "flags", "names of settings")


def _of_project(
    project: Path | None, user_path: Path, config_file: Path | None, env: Mapping[str, str], trusts: TrustCheck
) -> tuple[list[_File], list[str], bool]:
    """The file that replaces the project's, or else what `_project_files` finds."""
    if config_file is not None:
        document = read_document(config_file.absolute())
        if document is None:
            raise ConfigError(f"{shown_path(config_file)}: there is no such file.")
        return [_File(document, Layer.PROJECT, True)], [], False
    # With NCA_HOME=~/.nca, the project file of ~ is the user's file, which is already read.
    if project is None or _same(project_config_file(project.absolute()), user_path):
        return [], [], False
    return _project_files(project, env, trusts)


class _File(NamedTuple):
    """One settings file. `may_act`: whether settings that need trust are used."""

    document: Document | None
    layer: Layer
    is_trusted: bool
    may_act: bool = True


def _project_files(project: Path, env: Mapping[str, str], trusts: TrustCheck) -> tuple[list[_File], list[str], bool]:
    """The files of a project, notes about them, and whether their settings that need trust are used."""
    documents, notes = read_project(project.absolute(), env)
    notes += unread_above(project.absolute(), env)
    would_act = trust_request(documents, project)
    may_act = would_act is None or trusts(would_act)
    if would_act is not None and not may_act:
        waiting = (document for document in documents if trust_request([document], project) is not None)
        where = ", ".join(dict.fromkeys(shown_path(document.path) for document in waiting))
        notes.append(would_act.left_out(TrustStore(env).decision(would_act), f" ({where})"))
    return [_File(document, Layer.PROJECT, False, may_act=may_act) for document in documents], notes, may_act


def unread_above(project: Path, env: Mapping[str, str]) -> list[str]:
    """The line about a settings file above a sub-folder of a repository, if there is one."""
    path = config_file_above(project)
    if path is None or _same(path, user_config_file(env)):
        return []
    what = f"{shown_path(path)} does not count here: a project's settings are those of the folder where nca starts"
    return [f"{what} (--config with this file takes them)."]


class _Draft:
    """Settings while the layers are applied."""

    def __init__(self, user_file: Path, start: Mapping[str, SettingValue]) -> None:
        self.user_file = user_file
        self.base: dict[str, SettingValue] = dict(start)
        self.patterns: list[Pattern] = []
        self.notes: list[str] = []
        self.address_of = ""

    def add(self, overrides: list[Override], layer: Layer) -> None:
        self.notes += apply_overrides(overrides, self.base, layer)

    def add_chosen(self, chosen: ChosenModel) -> None:
        """The level of reasoning goes with the model, unless it is set in a file, the environment or by a flag."""
        place = fixed_place(chosen.origin)
        overrides = [Override("model.name", chosen.name, chosen.origin, place)]
        if chosen.level and self.base["model.reasoning"].layer < Layer.CHOSEN:
            overrides.append(Override("model.reasoning", chosen.level, chosen.origin, place))
        self.add(overrides, Layer.CHOSEN)

    def add_file(self, file: _File) -> None:
        document = file.document
        if document is None:
            return
        if not file.may_act:
            # An invalid value is refused even if the setting is ignored.
            _Draft(self.user_file, self.base).add_file(file._replace(may_act=True))
        general: list[Override] = []
        tables: dict[str, list[Override]] = {}
        for path, raw in leaves(document.data, document.path, NAMED):
            if path[0] != _PATTERN_TABLE:
                self._take(general, document, path, path, raw, file)
            elif len(path) > 2:
                self._take(tables.setdefault(path[1], []), document, path, path[2:], raw, file)
            elif raw != {}:
                raise ConfigError(
                    f"{document.place(path)}: [{_PATTERN_TABLE}] holds tables: "
                    f'[{_PATTERN_TABLE}."anthropic/*".context].'
                )
        self.add(general, file.layer)
        for pattern, overrides in tables.items():
            values = dict(self.base)
            self.notes += apply_overrides(overrides, values, Layer.MODEL, check=_suits_pattern)
            ours = {key: setting for key, setting in values.items() if setting.layer == Layer.MODEL}
            self.patterns.append(Pattern(pattern, MappingProxyType(ours)))

    def _take(
        self, overrides: list[Override], document: Document, path: KeyPath, name: KeyPath, raw: Any, file: _File
    ) -> None:
        dotted = ".".join(name)
        if raw == {} and is_section(dotted):
            return
        found = canonical(dotted)
        if document.is_grant:
            if not file.may_act or dotted == ALLOW:
                return
        elif found and KEYS[found.key].user_only and not file.is_trusted:
            self.notes.append(
                f"{document.place(path)}: {found.key} was ignored: a project's own file may not set it; "
                f"{shown_path(self.user_file)} may."
            )
            return
        elif not file.may_act and waits_for_trust(dotted, raw):
            return
        is_trusted = file.is_trusted or document.is_grant
        origin = str(document.path) if path == name else f'{document.path} [{_PATTERN_TABLE}."{path[1]}"]'
        overrides.append(Override(dotted, raw, origin, partial(document.place, path), is_trusted))


def _suits_pattern(key: str, override: Override) -> None:
    if key == "model.name" or not key.startswith(("model.", "context.")):
        raise ConfigError(
            f"{prefix(override.place())}{key} cannot be set for one model; valid: settings of model and context "
            "except model.name."
        )


def _environment(env: Mapping[str, str], notes: list[str]) -> list[Override]:
    """Settings in the environment: NCA_SECTION__KEY, and names of other programs. Sorted, to be deterministic.

    An empty variable is as one that is not set. Other NCA_ variables (NCA_HOME, NCA_EMBEDDED) are not settings;
    likely typing errors are noted.
    """
    overrides = []
    for variable in sorted(env):
        upper = variable.upper()
        origin = f"environment {variable}"
        if upper.startswith("NCA_") and "__" in variable:
            name = variable[4:].lower().replace("__", ".")
        elif upper.startswith("NCA_") and canonical(variable[4:]):
            name = variable[4:].lower()
        elif upper.startswith("NEUROLINK_") and canonical(variable):
            name = variable
        else:
            if meant := _MISTYPED.get(upper):
                notes.append(f"environment {shown_name(variable)} is not a setting; did you mean {meant}?")
            continue
        if env[variable]:
            overrides.append(Override(name, env[variable], origin, fixed_place(shown_name(origin))))
    return overrides


_MISTYPED = {f"NCA_{key.upper().replace('.', '_')}": f"NCA_{key.upper().replace('.', '__')}" for key in KEYS}


def _flag(name: str, raw: Any) -> Override:
    found = canonical(name)
    origin = f"flag {FLAGS.get(found.key, name) if found else name}"
    return Override(name, raw, origin, fixed_place(origin))


def _same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return False
