"""/context: what is in the window, and what can be done about it."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING

from rich.text import Text

from nca.errors import UsageError
from nca.terminal.commands.command import CommandContext, Suggestion
from nca.terminal.commands.compact import compact
from nca.terminal.context_panel import context_panel
from nca.terminal.sanitize import one_line, to_terminal
from nca.terminal.tables import new_table
from nca.terminal.wording import duration, money, percent

if TYPE_CHECKING:
    from nca.sessions.views import CompactionRecord

_WORDS = {
    "clear": "start with an empty context; undo brings it back",
    "compact": "make room now; a FOCUS may follow",
    "undo": "back to before the last compaction",
    "redo": "take the undo back",
    "history": "the compactions so far",
    "show": "read a summary: the newest, or the one whose ID follows",
}


class ContextCommand:
    name = "context"
    aliases = ("ctx",)
    usage = "/context\n" + "\n".join(f"/context {word}  ({about})" for word, about in _WORDS.items())
    about = "What fills the window; clear, compact, undo, redo, history, show"

    async def run(self, context: CommandContext, argument: str) -> None:
        word, _, rest = argument.partition(" ")
        match word.lower():
            case "":
                width = shutil.get_terminal_size().columns
                context.output.show(context_panel(context.conversation.stats(), width))
            case "clear":
                if context.conversation.clear() is None:
                    raise UsageError("The context is empty already.")
                context.output.show("The context is empty; the session keeps everything. /context undo brings it back.")
            case "compact":
                await compact(context, rest.strip())
            case "undo":
                self._undo(context)
            case "redo":
                self._redo(context)
            case "history":
                _show_history(context)
            case "show":
                _show_summary(context, rest.strip())
            case _:
                raise UsageError(
                    f"/context {one_line(word, 40)} is not known.", advice=f"Valid: {', '.join(_WORDS)}, or nothing."
                )

    def complete(self, context: CommandContext, argument: str) -> Iterable[Suggestion]:
        return [Suggestion(word, about) for word, about in _WORDS.items() if word.startswith(argument.lower())]

    def _undo(self, context: CommandContext) -> None:
        record = context.conversation.undo()
        if record is None:
            raise UsageError("There is no compaction to undo.")
        context.output.show(f"Undone: the context is as it was before. {_now(context)} /context redo takes this back.")

    def _redo(self, context: CommandContext) -> None:
        record = context.conversation.redo()
        if record is None:
            raise UsageError("There is nothing to redo.")
        context.output.show(f"Done again. {_now(context)}")


def _now(context: CommandContext) -> str:
    stats = context.conversation.stats()
    return f"Context: {percent(stats.usage_ratio)} used ({stats.used_tokens:,} / {stats.budget_tokens:,} tokens)."


def _show_summary(context: CommandContext, wanted: str) -> None:
    summaries = context.conversation.summaries()
    found = [one for one in summaries if one.id.startswith(wanted)]
    if not summaries:
        context.output.show("No summary stands in the context.")
    elif not found:
        ids = ", ".join(one.id for one in summaries)
        raise UsageError(f"There is no summary {one_line(wanted, 40)}.", advice=f"Valid: {ids}.")
    else:
        newest = found[-1]
        ranges = ", ".join(f"{first}–{last}" for first, last in newest.ranges)
        context.output.show(Text(to_terminal(f"{newest.text}\n\nsummary {newest.id} of messages {ranges}")))


def _show_history(context: CommandContext) -> None:
    records = context.conversation.history()
    if not records:
        context.output.show("No compaction so far.")
        return
    table = new_table(has_header=True)
    for title in ("when", "cause", "stages"):
        table.add_column(title, overflow="fold")
    table.add_column("tokens", justify="right", no_wrap=True)
    for title in ("kept", "took"):
        table.add_column(title, overflow="fold")
    for record in records:
        table.add_row(*_row(record), style="dim" if record.undone else None)
    context.output.show(table)


def _row(record: CompactionRecord) -> list[Text]:
    when = datetime.fromtimestamp(record.at).astimezone().strftime("%Y-%m-%d %H:%M")
    kept = f"{record.kept_facts} of {record.total_facts} facts" if record.total_facts else ""
    took = duration(record.seconds) + (f", {money(record.cost)}" if record.cost else "")
    cause = one_line(record.trigger) + (" (undone)" if record.undone else "")
    change = f"{record.tokens_before:,} → {record.tokens_after:,}"
    return [Text(part) for part in (when, cause, one_line(", ".join(record.stages)), change, kept, took)]
