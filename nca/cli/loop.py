"""`nca loop`: the chat."""

from __future__ import annotations

from typing import Annotated

import typer

from nca.cli import flags
from nca.cli.loop_arguments import LoopArguments


def loop(
    session: Annotated[
        str | None,
        typer.Argument(metavar="ID", help="The session to resume, with --resume.", autocompletion=flags.sessions),
    ] = None,
    model: flags.Model = None,
    continue_: Annotated[
        bool, typer.Option("--continue", "-c", help="Resume the last session of this directory.")
    ] = False,
    resume: Annotated[bool, typer.Option("--resume", "-r", help="Resume session ID, or pick one.")] = False,
    compact_threshold: flags.CompactThreshold = None,
    disable_compaction: flags.DisableCompaction = False,
    context_window: flags.ContextWindow = None,
    max_output_tokens: flags.MaxOutputTokens = None,
    permission: flags.Permission = None,
    max_cost: flags.MaxCost = None,
    trust: flags.Trust = False,
    profile: flags.Profile = None,
    plain: flags.Plain = False,
    config: flags.Config = None,
) -> int:
    """Open the chat. This is the default command."""
    arguments = LoopArguments(**locals())
    from nca.cli.chat import open_chat

    return open_chat(arguments)
