"""/cost: show the tokens and the cost of the session, by model and purpose."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from nca.humanize import percent
from nca.models.costs import money
from nca.terminal.commands.command import App, Command
from nca.terminal.render.sanitize import one_line
from nca.terminal.render.tables import fitting_table
from nca.terminal.render.word_wrap import Parted

if TYPE_CHECKING:
    from nca.agent.spending import Spent
    from nca.messages import Usage


class CostCommand(Command):
    name = "cost"
    aliases = ("usage",)
    usage = "/cost"
    about = "Tokens and cost of this session, by model and purpose"

    async def run(self, app: App, argument: str) -> None:
        conversation = app.conversation
        models, purposes = conversation.spending.by_model(), conversation.spending.by_purpose()
        if not models:
            app.output.show(Parted(" · ".join(filter(None, ("No request was sent in this session yet.", _more(app))))))
            return
        total = conversation.session.usage.totals()
        parts = [f"{total.prompt_tokens:,} tokens in", f"{total.completion_tokens:,} out"]
        if total.cache_read_tokens:
            parts.append(f"{_cached(total)} of the input from the provider's cache")
        if total.cache_write_tokens:
            parts.append(f"{total.cache_write_tokens:,} written to it")
        parts.append(money(total.cost) if total.cost is not None else "price unknown")
        app.output.show(Parted(" · ".join(parts)))
        if len(models) + len(purposes) > 2:
            _show_groups(app, models, purposes)
        if more := _more(app):
            app.output.show(Parted(more, style="quiet"))


def _show_groups(app: App, models: list[Spent], purposes: list[Spent]) -> None:
    spent = (*models, *(purposes if len(purposes) > 1 else ()))
    columns = {
        "": [Text(one_line(one.name, 60), "accent") for one in spent],
        "requests": [Text(f"{one.requests:,}") for one in spent],
        "in": [Text(f"{one.usage.prompt_tokens:,}") for one in spent],
        "cached": [Text(_cached(one.usage) if one.usage.cache_read_tokens else "") for one in spent],
        "out": [Text(f"{one.usage.completion_tokens:,}") for one in spent],
        "cost": [Text(money(one.usage.cost) if one.usage.cost is not None else "?") for one in spent],
    }
    app.output.show(fitting_table(columns, numbers=[*columns][1:], gives_way="", drops=("cached", "requests", "out")))
    if len(purposes) > 1:
        app.output.show(Text("Other requests: summaries, tasks and /btw.", style="quiet"))


def _more(app: App) -> str:
    """The last turn's share, the compactions', and the limit, as far as there are any."""
    conversation = app.conversation
    limit = conversation.loaded.settings.session.max_cost
    costs = [record.cost for record in conversation.context.history() if record.cost is not None]
    shares = [
        f"last turn {money(turn)}" if (turn := conversation.spending.of_turn) else "",
        f"compactions {money(sum(costs))}" if costs else "",
        f"limit {money(limit)} (session.max_cost)" if limit else "",
    ]
    return " · ".join(share for share in shares if share)


def _cached(usage: Usage) -> str:
    """The share of the input that came from the cache."""
    return percent(usage.cache_read_tokens / usage.prompt_tokens) if usage.prompt_tokens else "0%"
