"""`nca config`: show, get, set, path, init."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from nca.config.loaded import LoadedSettings

app = typer.Typer(name="config", help="Show and change settings.", no_args_is_help=True)


@app.command()
def show(
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object: key → value and origin.")] = False,
) -> None:
    """Every setting with its value and where it came from."""
    from nca.config.schema import KEYS

    loaded = _load()
    _say_notes(loaded)
    if as_json:
        facts = {key: {"value": loaded.value(key), "origin": _printable(loaded.origin(key))} for key in KEYS}
        typer.echo(json.dumps(facts, indent=2, default=lambda row: row.plain()))
    elif sys.stdout.isatty():
        _show_table(loaded)
    else:
        width = max(len(key) for key in KEYS)
        for key in KEYS:
            typer.echo(f"{key:<{width}} = {_text(loaded, key)}  ({_printable(loaded.origin(key))})")


@app.command()
def get(key: Annotated[str, typer.Argument(help="A setting's name, such as context.compact_threshold.")]) -> None:
    """One setting's value."""
    loaded = _load()
    value = loaded.value(key)
    _say_canonical(key)
    # A script gets a text as it is; a terminal gets nothing that could move its cursor.
    if isinstance(value, str) and (value.isprintable() or not sys.stdout.isatty()):
        typer.echo(value)
    else:
        typer.echo(_text(loaded, key))


@app.command(name="set", context_settings={"ignore_unknown_options": True})
def set_(
    key: Annotated[str, typer.Argument(help="A setting's name.")],
    value: Annotated[str, typer.Argument(help="Its new value, such as 0.8, 80%, 80k or a,b,c.")],
    user: Annotated[bool, typer.Option("--user", help="For all projects, in your own file.")] = False,
) -> None:
    """Save a setting in the project's file, .nca/config.toml."""
    from nca.config.paths import project_config_file, user_config_file
    from nca.config.saving import save_value
    from nca.config.trust import TrustStore
    from nca.errors import ConfigError

    file = user_config_file(os.environ) if user else project_config_file(Path.cwd())
    with contextlib.nullcontext() if user else TrustStore(os.environ).saving(Path.cwd()):
        canonical = save_value(file, key, value, is_users_own=user)
    _say_canonical(key)
    try:
        loaded = _load()
    except ConfigError as error:
        typer.echo(f"{canonical} is saved in {_printable(str(file))}.")
        typer.echo(f"But the settings cannot be used yet: {error}", err=True)
        return
    typer.echo(f"{canonical} = {_saved_text(file, canonical)} is saved in {_printable(str(file))}.")
    origin = loaded.origin(canonical)
    if not _is_same_file(origin, file):
        typer.echo(f"In force is {_text(loaded, canonical)}, from {_printable(origin)}.", err=True)


@app.command()
def path() -> None:
    """The settings files, and whether they exist."""
    from nca.config.paths import project_config_file, user_config_file

    for owner, file in (("user", user_config_file(os.environ)), ("project", project_config_file(Path.cwd()))):
        typer.echo(f"{owner:<7}  {_printable(str(file))}  ({'exists' if file.exists() else 'does not exist'})")


@app.command()
def init() -> None:
    """Write the commented example as .nca/config.toml. An existing file is never overwritten."""
    from nca.config.example import render_example
    from nca.config.paths import project_config_file
    from nca.errors import ConfigError

    file = project_config_file(Path.cwd())
    shown = _printable(str(file))
    try:
        file.parent.mkdir(exist_ok=True)
        with file.open("x", encoding="utf-8", newline="\n") as handle:
            handle.write(render_example())
    except FileExistsError:
        raise ConfigError(f"{shown} is already there and was left as it is.") from None
    except OSError as error:
        raise ConfigError(f"{shown}: cannot be written ({error.strerror}).") from error
    typer.echo(f"{shown} is written: every setting with its default, commented out.")


def _load() -> LoadedSettings:
    """What the layers say, also what of the project's counts only once it is trusted; that is said."""
    from nca.config.layers import UNTRUSTED, load
    from nca.config.trust import TrustRequest, TrustStore

    def shows(what: TrustRequest) -> bool:
        if not TrustStore(os.environ).is_trusted(what):
            typer.echo(f"{_printable(what.names)} will not count: {UNTRUSTED}", err=True)
        return True

    return load(project=Path.cwd(), env=os.environ, trusts=shows)


def _text(loaded: LoadedSettings, key: str) -> str:
    from nca.config.example import toml_value

    return toml_value(loaded.value(key))


def _saved_text(file: Path, key: str) -> str:
    """What the file now says, which a stronger layer may overrule."""
    from nca.config.document import read_document
    from nca.config.example import toml_value

    document = read_document(file)
    table = document.data if document is not None else {}
    *sections, last = key.split(".")
    for section in sections:
        table = table[section]
    return toml_value(table[last])


def _is_same_file(origin: str, file: Path) -> bool:
    return Path(origin) == file.absolute()


def _say_notes(loaded: LoadedSettings) -> None:
    for note in loaded.notes:
        typer.echo(note, err=True)


def _say_canonical(written: str) -> None:
    """Answer another program's name with nca's own."""
    from nca.config.names import canonical

    found = canonical(written)
    if found is not None and found.foreign is not None:
        typer.echo(f"{written} is {found.key} in nca.", err=True)


def _show_table(loaded: LoadedSettings) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from nca.config.schema import KEYS

    table = Table(box=None, pad_edge=False)
    for title in ("setting", "value", "from"):
        table.add_column(title, overflow="fold")
    for key in KEYS:
        origin = _printable(loaded.origin(key))
        style = "dim" if origin == "default" else ""
        table.add_row(Text(key, style), Text(_text(loaded, key), style), Text(origin, style))
    Console().print(table)


def _printable(text: str) -> str:
    """A path or an origin on one line, without anything that could move a terminal's cursor."""
    return text if text.isprintable() else ascii(text)[1:-1]
