"""`nca config`: show, get and set settings."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nca.cli import flags
from nca.cli.early_questions import ask_trust, can_ask
from nca.cli.printing import echo
from nca.config.paths import project_config_file, user_config_file
from nca.errors import ConfigError, NcaError, UsageError, system_reason
from nca.safe_files import is_missing
from nca.terminal.render.sanitize import one_line
from nca.terminal.render.sessions import place

if TYPE_CHECKING:
    from nca.config.loaded import LoadedSettings
    from nca.config.overrides import SettingValue

app = typer.Typer(name="config", help="Show and change settings.", no_args_is_help=True)


@app.command()
def show(
    name: Annotated[
        str, typer.Argument(help="A setting, or a group such as context. Default: all.", autocompletion=flags.settings)
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object: value and origin by key.")] = False,
) -> None:
    """Show settings with their values and where each was set."""
    from nca.config.example import toml_value

    loaded = _load()
    found = {key: loaded.effective[key] for key in _named(loaded, name)}
    for pattern, values in loaded.patterns:
        found |= {f"for.{toml_value(pattern)}.{key}": values[key] for key in values if key in found}
    flags.say_notes(loaded.notes)
    if as_json:
        facts = {key: {"value": one.value, "origin": one_line(one.origin)} for key, one in found.items()}
        echo(json.dumps(facts, indent=2, default=_plain))
    elif sys.stdout.isatty():
        _show_table(found)
    else:
        width = max(len(key) for key in found)
        for key, one in found.items():
            echo(f"{key:<{width}} = {toml_value(one.value)}  ({one_line(one.origin)})")


def _plain(row: Any) -> dict[str, Any]:
    """A table of a list, for JSON."""
    plain: dict[str, Any] = row.plain()
    return plain


@app.command()
def get(
    key: Annotated[
        str, typer.Argument(help="A setting's name, such as context.compact_threshold.", autocompletion=flags.settings)
    ],
    as_json: flags.AsJson = False,
) -> None:
    """Print the value of one setting."""
    from nca.config.overrides import whole_name

    loaded, key = _load(), whole_name(key)
    value = loaded.value(key)
    _say_canonical(key)
    if as_json:
        echo(json.dumps(value, default=_plain))
        return
    # A script gets text unchanged. A terminal gets nothing that could move its cursor.
    if isinstance(value, str) and not sys.stdout.isatty():
        sys.stdout.write(f"{value}\n")
    elif isinstance(value, str) and value.isprintable():
        echo(value)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        echo(str(value))  # a program reads no underscores
    else:
        echo(_text(loaded, key))


@app.command(name="set", context_settings={"ignore_unknown_options": True})
def set_(
    key: Annotated[str, typer.Argument(help="A setting's name.", autocompletion=flags.settings)],
    value: Annotated[
        str, typer.Argument(help="The new value, such as 0.8, 80%, 80k or a,b,c.", autocompletion=flags.setting_values)
    ],
    user: Annotated[bool, typer.Option("--user", help="Save it in your own file, for all projects.")] = False,
) -> None:
    """Save a setting in the project's file, .nca/config.toml. The value default removes it, as unset does."""
    from nca.config.layers import unread_above
    from nca.config.overrides import key_meant
    from nca.config.schema import KEYS

    if value == "default" and (known := key_meant(key)) in KEYS and value not in KEYS[known].value_type.choices:
        unset(key, user)
        return
    file = _file(user=user)
    if not user:
        flags.say_notes(unread_above(Path.cwd(), os.environ))
    canonical, shown = _save(file, key, value, user=user), one_line(str(file))
    try:
        loaded = _load()
    except ConfigError as error:
        echo(f"Saved {canonical} in {shown}.")
        echo(f"But the settings cannot be used yet: {error}", err=True)
        return
    echo(f"Saved {canonical}{_saved_text(file, canonical)} in {shown}.")
    origin = loaded.origin(canonical)
    if Path(origin) != file.absolute():
        echo(f"It has no effect here: {one_line(origin)} sets {_text(loaded, canonical)}.", err=True)


@app.command()
def unset(
    key: Annotated[str, typer.Argument(help="A setting's name.", autocompletion=flags.settings)],
    user: Annotated[bool, typer.Option("--user", help="Remove it from your own file, for all projects.")] = False,
) -> None:
    """Remove a setting from the project's file, .nca/config.toml, so that another file or the default counts."""
    from nca.config.overrides import UNSET

    file = _file(user=user)
    before = file.read_bytes() if os.path.isfile(file) else b""
    canonical = _save(file, key, UNSET, user=user)
    loaded, shown = _load(), one_line(str(file))
    was_there = before != (file.read_bytes() if os.path.isfile(file) else b"")
    said = f"Removed {canonical} from {shown}." if was_there else f"{canonical} is not in {shown}."
    flags.say(f"{said} Now: {_text(loaded, canonical)} ({one_line(loaded.origin(canonical))})")


@app.command()
def path() -> None:
    """Show where the settings files are, and whether they exist."""
    from nca.config.layers import unread_above

    flags.say_notes(unread_above(Path.cwd(), os.environ))
    for owner, file in (("user", _file(user=True)), ("project", _file(user=False))):
        state = "does not exist" if is_missing(file) else "exists" if os.path.exists(file) else "cannot be read"
        flags.say(f"{owner:<7}  {one_line(str(file))}  ({state})", hang=9)


@app.command()
def init() -> None:
    """Write a commented example to .nca/config.toml. An existing file is never overwritten."""
    from nca.config.example import render_example

    file = _file(user=False)
    shown = one_line(str(file))
    try:
        file.parent.mkdir(exist_ok=True)
        with file.open("x", encoding="utf-8", newline="\n") as handle:
            handle.write(render_example())
    except FileExistsError:
        raise ConfigError(f"{shown} already exists; nothing was written.") from None
    except OSError as error:
        raise ConfigError(f"{shown}: cannot be written ({system_reason(error)}).") from error
    echo(f"Wrote {shown}: every setting with its default, commented out.")


@app.command()
def trust() -> None:
    """Show the settings of this project that need your trust, and ask. The answer holds until they change."""
    from nca.config.projects import TrustStore, read_project, trust_request

    what = trust_request(read_project(Path.cwd(), os.environ)[0], Path.cwd())
    if what is None:
        echo("This project has no settings that need trust.")
    elif not can_ask():
        raise UsageError("To trust a project, nca asks in a terminal.", advice="--trust accepts it for one run.")
    elif ask_trust(what, TrustStore(os.environ)):
        echo("They are trusted until they change.")
    else:
        echo("They are not trusted.")


def _file(*, user: bool) -> Path:
    """The person's own file, or the project's."""
    return user_config_file(os.environ) if user else project_config_file(Path.cwd())


def _save(file: Path, key: str, value: Any, *, user: bool) -> str:
    """Save a value, or UNSET; the setting's canonical name. A project's file stays as trusted as it was."""
    from nca.config.overrides import UNSET, whole_name
    from nca.config.projects import TrustStore
    from nca.config.saving import save_value

    key = whole_name(key)
    if key.startswith("tools.") and value is not UNSET:
        # Only what names tools needs nca's.
        from nca.agent.tool_selection import check_names
        from nca.config.loaded import defaults

        check_names(defaults().with_value(key, value, ""))
    with contextlib.nullcontext() if user else TrustStore(os.environ).saving(Path.cwd()):
        canonical = save_value(file, key, value, is_users_own=user or value is UNSET)
    _say_canonical(key)
    return canonical


def _load() -> LoadedSettings:
    """The settings as if this project were trusted; says which of them need trust to take effect."""
    from nca.config.layers import load
    from nca.config.projects import TrustRequest, TrustStore

    def trust_and_say(what: TrustRequest) -> bool:
        if not (answer := TrustStore(os.environ).decision(what)):
            echo(one_line(what.left_out(answer)), err=True)
        return True

    loaded = load(project=Path.cwd(), env=os.environ, trusts=trust_and_say)
    return loaded.for_model(_model(loaded)) if loaded.patterns else loaded


def _model(loaded: LoadedSettings) -> str:
    """The model that the settings or a key decide on; "" where a server would have to be asked."""
    from nca.models.choose import checked_endpoint, choose

    settings = loaded.settings.model
    try:
        if settings.name or not checked_endpoint("openai", settings.api_base, os.environ)[0]:
            choice = choose(settings, os.environ, servers=())
            return choice.model if settings.name or choice.api_key_variable else ""
    except NcaError:
        # What is wrong with the address is said where it is used.
        pass
    return settings.name


def _named(loaded: LoadedSettings, name: str) -> list[str]:
    """All settings, those of a group, one, or those that speak of it. Raises ConfigError if there is none."""
    from nca.config.overrides import canonical, whole_name
    from nca.config.schema import KEYS

    if found := [key for key in KEYS if not name or key.startswith(f"{name.lower()}.")]:
        return found
    written = whole_name(name)
    if canonical(written) is None:
        from nca.terminal.panels.config_browser import matching

        if found := matching(written):
            return found
    try:
        loaded.value(written)
    except ConfigError as error:
        if group := _group_meant(written):
            raise ConfigError(error.message, advice=f"Did you mean the group {group}?") from None
        raise
    _say_canonical(written)
    one = canonical(written)
    return [one.key if one is not None else written]


def _group_meant(name: str) -> str:
    """The group whose name is nearly this; "" if none is."""
    import difflib

    from nca.config.schema import KEYS

    groups = dict.fromkeys(key.partition(".")[0] for key in KEYS if "." in key)
    return next(iter(difflib.get_close_matches(name.lower(), groups, n=1, cutoff=0.7)), "")


def _text(loaded: LoadedSettings, key: str) -> str:
    from nca.config.example import toml_value

    return toml_value(loaded.value(key))


def _saved_text(file: Path, key: str) -> str:
    """` = ` and the value in the file, which another layer may override; "" if another nca has removed it since."""
    from nca.config.document import read_document
    from nca.config.example import toml_value
    from nca.config.saving import value_at

    document = read_document(file)
    value = value_at(document.data if document is not None else {}, key)
    return "" if value is None else f" = {toml_value(value)}"


def _say_canonical(written: str) -> None:
    """Say nca's name for a setting that was given by another program's name."""
    from nca.config.overrides import canonical

    found = canonical(written)
    if found is not None and found.foreign is not None:
        echo(f"{written} is {found.key} in nca.", err=True)


def _show_table(found: Mapping[str, SettingValue]) -> None:
    from rich.console import Console
    from rich.text import Text

    from nca.config.example import toml_value
    from nca.terminal.render.layout import fitting_table

    rows = [(one_line(key), toml_value(one.value), place(one.origin)) for key, one in found.items()]
    columns = {
        head: list(map(Text, cells))
        for head, cells in zip(("setting", "value", "from"), zip(*rows, strict=True), strict=True)
    }
    styles = ["dim" if origin.endswith("default") else "" for *_, origin in rows]
    Console().print(fitting_table(columns, gives_way="value", least=_VALUE_CELLS, wraps=True, styles=styles))


_VALUE_CELLS = 20
"""Cells of a column: longer texts wrap between words."""
