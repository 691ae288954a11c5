"""/cost: what the session has used so far."""

from __future__ import annotations

from collections.abc import Iterable

from rich.text import Text

from nca.models.costs import money
from nca.terminal.commands.command import CommandContext, Suggestion


def _more(context: CommandContext) -> str:
    """The last turn's share, the compactions', and the limit, as far as there are any."""
    conversation = context.conversation
    limit = conversation.loaded.settings.session.max_cost
    costs = [record.cost for record in conversation.history() if record.cost is not None]
    shares = [
        f"last turn {money(turn)}" if (turn := conversation.spending.of_turn) else "",
        f"compactions {money(sum(costs))}" if costs else "",
        f"limit {money(limit)} (session.max_cost)" if limit else "",
    ]
    return " · ".join(share for share in shares if share)


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
        if total.cache_write_tokens:
            parts.append(f"{total.cache_write_tokens:,} written to it")
        parts.append(money(total.cost) if total.cost is not None else "price unknown")
        text = Text(" · ".join(parts))
        if more := _more(context):
            text.append(f"\n{more}", style="quiet")
        context.output.show(text)

    def complete(self, context: CommandContext, argument: str) -> Iterable[Suggestion]:
        return ()
