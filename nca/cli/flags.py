"""Options and arguments that several commands share, each declared once.

An option that was not given is None and overrides no setting (see nca.cli.startup.settings_of). Numbers arrive as
text: the setting parses them and explains what is valid.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nca.cli import suggested_words

Model = Annotated[
    str | None,
    typer.Option("--model", "-m", help="The model, by its litellm name; NAME:high sets how much it reasons."),
]
CompactThreshold = Annotated[str | None, typer.Option(help="Compact from this usage on: 0.8, 80 or 80%.")]
DisableCompaction = Annotated[bool, typer.Option("--disable-compaction", help="Never compact.")]
ContextWindow = Annotated[str | None, typer.Option(help="The context window in tokens.")]
MaxOutputTokens = Annotated[str | None, typer.Option(help="Tokens to reserve for the answer.")]
Fit = Annotated[
    str | None,
    typer.Option(
        help="A newest message that is larger than the window: cut, or refuse (the default).",
        autocompletion=suggested_words.fits,
    ),
]
Permission = Annotated[
    str | None,
    typer.Option(
        help="Permission mode: ask, accept-edits, plan or auto.",
        autocompletion=suggested_words.modes,
    ),
]
MaxCost = Annotated[str | None, typer.Option(help="Stop before the session costs more than this, in US dollars.")]
Trust = Annotated[bool, typer.Option("--trust", help="Trust this project's settings for this run.")]
Plain = Annotated[bool, typer.Option("--plain", help="Plain lines without colours or animation, for screen readers.")]
Profile = Annotated[
    str | None,
    typer.Option(help="A named set of compaction settings, such as nexora.", autocompletion=suggested_words.profiles),
]
Config = Annotated[Path | None, typer.Option(help="A settings file to use instead of the project's.")]
OfTeam = Annotated[bool, typer.Option("--team", help="Of your whole team, in a store that it shares.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
SessionId = Annotated[
    str,
    typer.Argument(
        metavar="ID",
        help="A session's id, the start of its id, or its name.",
        autocompletion=suggested_words.sessions,
    ),
]
