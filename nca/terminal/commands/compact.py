"""/compact: compact everything, or the messages from or before a number; and the preview of a compaction."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from rich.text import Text

from nca.agent.compaction_diff import Preview
from nca.context.retention import kept_in_words
from nca.context.view import Range
from nca.errors import UsageError
from nca.humanize import counted
from nca.models.costs import money
from nca.terminal.commands.command import App, Command, Suggestion, beginning_with
from nca.terminal.commands.context_edit import usage_line
from nca.terminal.commands.context_history import as_text
from nca.terminal.input.editor import edited
from nca.terminal.interrupts import IS_SAID
from nca.terminal.render.sanitize import one_line, to_terminal
from nca.terminal.render.tables import new_table
from nca.terminal.render.word_wrap import Parted

CHOICE = "/context accept applies it · /context edit opens its summary in your editor · /context drop discards it"


async def preview(app: App, focus: str, only: Range | None = None) -> None:
    """Make a proposal and show it; the conversation's event says the two numbers."""
    app.hold_preview(None)
    made = await app.conversation.context.preview(focus, only)
    if made.proposal.compacted:
        app.hold_preview(made)
        _show(app, made)


async def edit(app: App, argument: str) -> None:
    made = _held(app)
    summary = made.summary
    if summary is None:
        raise UsageError("This compaction writes no summary.", advice=CHOICE)
    prose = await edited(summary.prose, app.reader.lend_terminal(), name="nca-summary")
    if not prose.strip():
        raise UsageError("The summary is empty; the preview is unchanged.", advice=CHOICE)
    changed = made.with_prose(prose)
    app.hold_preview(changed)
    _show(app, changed)


async def accept(app: App, argument: str) -> None:
    made = _held(app)
    app.hold_preview(None)
    outcome = await app.conversation.context.accept(made)
    app.output.show(f"{usage_line(app)}{' /context undo takes it back.' if outcome.compacted else ''}")


async def drop(app: App, argument: str) -> None:
    _held(app)
    app.hold_preview(None)
    app.output.show("Discarded the preview.")


def _held(app: App) -> Preview:
    if app.preview is None:
        raise UsageError("There is no preview.", advice="/context compact --preview makes one.")
    return app.preview


def _show(app: App, made: Preview) -> None:
    proposal = made.proposal
    table = new_table(gap=2, indent=2)
    table.add_column(no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    for stage, tokens in proposal.saved_by_stage.items():
        table.add_row(Text(to_terminal(stage)), f"−{tokens:,} tokens")
    if made.goes:
        table.add_row("goes", Text(f"messages {as_text(made.goes)}"))
    if made.stubbed:
        table.add_row("shortened", counted(made.stubbed, "message"))
    table.add_row("each request", _change(made))
    app.output.show(table)
    if proposal.facts and (kinds := proposal.facts.by_kind()):
        app.output.show(f"  keeps {kept_in_words(kinds)}")
    if made.summary is not None:
        app.output.show(Text(to_terminal(made.summary.text)))
    app.output.show(Parted(CHOICE))


def _change(made: Preview) -> str:
    """Tokens before and after, with their price where one is known."""
    before, after = made.proposal.tokens_before, made.proposal.tokens_after
    tokens = f"{before:,} → {after:,} tokens"
    costs = made.request_cost(before), made.request_cost(after)
    if costs[0] is None or costs[1] is None:
        return tokens
    made_for = f", the summary cost {money(made.cost)}" if made.cost else ""
    return f"{tokens}, {money(costs[0])} → {money(costs[1])} without a cache{made_for}"


PREVIEW = "--preview"
_PLACES = {"from": True, "before": False}
"""The word before a message number, and whether it means the later messages."""


class CompactCommand(Command):
    name = "compact"
    usage = "\n".join(
        (
            "/compact",
            "/compact FOCUS",
            "/compact from NUMBER [FOCUS]",
            "/compact before NUMBER [FOCUS]",
            "/compact --preview",
        )
    )
    about = (
        "Compact now; FOCUS says what matters; from NUMBER or before NUMBER compacts only that part; "
        "--preview shows first what would go"
    )

    async def run(self, app: App, argument: str) -> None:
        await compact_or_preview(app, argument)

    def complete(self, app: App, argument: str) -> Iterable[Suggestion]:
        words = {"from": "message N and everything after it", "before": "everything before message N"}
        words[PREVIEW] = "show first what would go"
        return beginning_with(argument, words.items()) if argument else ()


async def compact_or_preview(app: App, argument: str) -> None:
    """Compact, or show what that would do. Raises UsageError for an option that does not exist."""
    words = argument.split()
    # Behind its first word, a focus may name an option of some other program.
    if words and words[0].startswith("--") and words[0] != PREVIEW:
        raise UsageError(
            f"/compact takes no {one_line(words[0], 40)}.", advice=f"Valid: {PREVIEW}, or a focus in words."
        )
    if PREVIEW not in words:
        await compact(app, argument)
    else:
        words.remove(PREVIEW)
        await preview(app, *chosen(app, " ".join(words)))


async def compact(app: App, argument: str) -> None:
    """Compact. The conversation's events report the result, as for every compaction, and also that it was stopped."""
    focus, only = chosen(app, argument)
    try:
        await app.conversation.context.compact(focus, only)
    except asyncio.CancelledError:
        raise asyncio.CancelledError(IS_SAID) from None


def chosen(app: App, argument: str) -> tuple[str, Range | None]:
    """The focus and the only messages to summarize: `from 12 the parser`, `before 12`.

    Without a number after it, the word belongs to the focus. Raises UsageError for a message that does not exist.
    """
    word, _, rest = argument.partition(" ")
    number, _, focus = rest.strip().partition(" ")
    if word.lower() not in _PLACES or not number.isdecimal():
        return argument, None
    return focus.strip(), app.conversation.context.part(int(number), is_later=_PLACES[word.lower()])
