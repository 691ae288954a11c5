"""/cost: what the session has used so far."""

from __future__ import annotations

from collections.abc import Iterable

from rich.text import Text

from nca.terminal.commands.command import CommandContext, Suggestion
from nca.terminal.wording import money


class CostCommand:
    name = "cost"
    aliases = ("usage",)
    usage = "/cost"
    about = "Tokens and money of this session"

    async def run(self, context: CommandContext, argument: str) -> None:
        total = context.conversation.costs()
        parts = [f"{total.prompt_tokens:,} tokens in", f"{total.completion_tokens:,} out"]
        if total.cache_read_tokens:
            parts.append(f"{total.cache_read_tokens:,} of the input from the provider's cache")
        parts.append(money(total.cost) if total.cost is not None else "price unknown")
        context.output.show(Text(" · ".join(parts)))

    def complete(self, context: CommandContext, argument: str) -> Iterable[Suggestion]:
        return ()
