"""The flags that several commands have, each declared once; what they set: nca.cli.opening.settings_of.

A flag that is None was not given and overrides nothing. A number is taken as text: the setting reads it and says what
is valid.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Model = Annotated[str | None, typer.Option("--model", "-m", help="The model, as litellm names it.")]
CompactThreshold = Annotated[str | None, typer.Option(help="The usage at which compaction happens: 0.8, 80 or 80%.")]
DisableCompaction = Annotated[bool, typer.Option("--disable-compaction", help="Never compact.")]
ContextWindow = Annotated[str | None, typer.Option(help="The context window in tokens.")]
MaxOutputTokens = Annotated[str | None, typer.Option(help="Room kept for the answer, in tokens.")]
Permission = Annotated[str | None, typer.Option(help="ask, accept-edits, plan or auto.")]
MaxCost = Annotated[str | None, typer.Option(help="What the session may cost in US dollars before nothing is sent.")]
Trust = Annotated[bool, typer.Option("--trust", help="Take over what this project's settings would run, this once.")]
Plain = Annotated[
    bool, typer.Option("--plain", help="Plain lines: no colours, nothing that moves; for a screen reader.")
]
Profile = Annotated[str | None, typer.Option(help="A set of numbers and stages by name, such as nexora.")]
Config = Annotated[Path | None, typer.Option(help="A settings file in place of the project's.")]
