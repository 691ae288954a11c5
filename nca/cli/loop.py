"""nca loop: the chat."""

from __future__ import annotations

from typing import Annotated

import typer

from nca.cli import flags


def loop(
    session: Annotated[str | None, typer.Argument(metavar="[ID]", help="With --resume: which session.")] = None,
    model: flags.Model = None,
    continue_: Annotated[
        bool, typer.Option("--continue", "-c", help="Go on with the last session of this directory.")
    ] = False,
    resume: Annotated[
        bool, typer.Option("--resume", "-r", help="Go on with an earlier session: --resume ID, or choose one.")
    ] = False,
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
    """Open the chat."""
    from nca.cli.chat import ChatWords, open_chat

    return open_chat(
        ChatWords(
            session=session,
            model=model,
            continue_=continue_,
            resume=resume,
            compact_threshold=compact_threshold,
            disable_compaction=disable_compaction,
            context_window=context_window,
            max_output_tokens=max_output_tokens,
            permission=permission,
            max_cost=max_cost,
            trust=trust,
            profile=profile,
            plain=plain,
            config=config,
        )
    )
