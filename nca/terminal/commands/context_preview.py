"""/context compact --preview: look first, then accept, edit or drop."""

from __future__ import annotations

from rich.text import Text

from nca.agent.preview import Preview
from nca.context.view import Range
from nca.errors import UsageError
from nca.models.costs import money
from nca.terminal.commands.command import CommandContext
from nca.terminal.commands.context_edit import usage_line
from nca.terminal.commands.context_history import as_text
from nca.terminal.input.editor import edited
from nca.terminal.render.sanitize import to_terminal
from nca.terminal.render.tables import new_table
from nca.terminal.render.wording import messages

CHOICE = "/context accept applies it · /context edit opens its summary in your editor · /context drop forgets it"


async def preview(context: CommandContext, focus: str, only: Range | None = None) -> None:
    """Make a proposal and show it; the conversation's event says the two numbers."""
    context.preview = None
    made = await context.conversation.context.preview(focus, only)
    if made.proposal.compacted:
        context.preview = made
        _show(context, made)


async def edit(context: CommandContext) -> None:
    made = _held(context)
    summary = made.summary
    if summary is None:
        raise UsageError("This compaction writes no summary.", advice=CHOICE)
    prose = await edited(summary.prose, context.lend_terminal, name="nca-summary")
    if not prose.strip():
        raise UsageError("The summary is empty; the proposal is as it was.", advice=CHOICE)
    context.preview = made.with_prose(prose)
    _show(context, context.preview)


def accept(context: CommandContext) -> None:
    made = _held(context)
    context.preview = None
    context.conversation.context.accept(made)
    context.output.show(f"{usage_line(context)} /context undo takes it back.")


def drop(context: CommandContext) -> None:
    _held(context)
    context.preview = None
    context.output.show("Forgotten; nothing was changed.")


def _held(context: CommandContext) -> Preview:
    if context.preview is None:
        raise UsageError("There is no preview.", advice="/context compact --preview makes one.")
    return context.preview


def _show(context: CommandContext, made: Preview) -> None:
    proposal = made.proposal
    table = new_table(gap=2, indent=2)
    table.add_column(no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    for stage, tokens in proposal.saved_by_stage.items():
        table.add_row(Text(to_terminal(stage)), f"−{tokens:,} tokens")
    if made.goes:
        table.add_row("goes", Text(f"messages {as_text(made.goes)}"))
    if made.stubbed:
        table.add_row("shortened", messages(made.stubbed))
    if proposal.total_facts:
        table.add_row("facts kept", f"{proposal.kept_facts} of {proposal.total_facts}")
    table.add_row("each request", _change(made))
    context.output.show(table)
    if made.summary is not None:
        context.output.show(Text(to_terminal(made.summary.text)))
    context.output.show(CHOICE)


def _change(made: Preview) -> str:
    """Tokens before and after, with their price where one is known."""
    before, after = made.proposal.tokens_before, made.proposal.tokens_after
    tokens = f"{before:,} → {after:,} tokens"
    costs = made.request_cost(before), made.request_cost(after)
    if costs[0] is None or costs[1] is None:
        return tokens
    made_for = f", the summary cost {money(made.cost)}" if made.cost else ""
    return f"{tokens}, {money(costs[0])} → {money(costs[1])} without a cache{made_for}"
