"""/context: show what is in the context window, and change it; /compact: make room in it."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from nca.errors import UsageError
from nca.humanize import counted, local_time
from nca.terminal.commands.command import App, Command, Suggestion, beginning_with, nearest, takes_no
from nca.terminal.commands.compact import (
    OF_PREVIEW,
    PREVIEW,
    accept,
    chosen,
    collapse,
    compact,
    drop,
    edit,
    expand,
    largest_collapsible,
    pin,
    preview,
    unpin,
    usage_line,
)
from nca.terminal.commands.context_completion import TAKES, can, compact_words, items_for
from nca.terminal.commands.context_history import ALL, search, show_diff, show_history, show_item
from nca.terminal.panels.context import context_head, context_panel, height, list_rows
from nca.terminal.render.sanitize import one_line

if TYPE_CHECKING:
    from nca.sessions.views import CompactionRecord
    from nca.terminal.panels.context_list import Change

_ONLY_SHOW = {"", "all", "diff", "history", "show", "search"}
_COMPACT_PARTS = {
    "compact from": "summarize message N and everything after it; a FOCUS may follow",
    "compact before": "summarize everything before message N; a FOCUS may follow",
}


async def _show(app: App, argument: str) -> None:
    """The panel; on a screen with the list of all items in the context. Marks are applied at the end."""
    context, size = app.conversation.context, shutil.get_terminal_size()
    if not app.can_walk or app.reader.is_typing or not context.entries:
        await _show_panel(app, is_all=False)
        return
    # Imported here: only a screen needs prompt_toolkit.
    from nca.terminal.panels.context_list import ContextList

    head = context_head(context.stats(), size.columns, size.lines)
    app.output.show(head)
    most_lines = max(list_rows(size.lines), size.lines - height(head, size.columns) - 2)
    theme = app.conversation.loaded.settings.terminal.theme
    panel = ContextList(context, lambda wanted: show_item(app, wanted), theme, most_lines)
    marks = await app.reader.walk(panel)
    if marks:
        await _apply(app, marks)
    elif panel.marks:
        app.output.notice("Nothing was changed.")


async def _show_panel(app: App, *, is_all: bool) -> None:
    size, context = shutil.get_terminal_size(), app.conversation.context
    records, has_bars = context.history(), app.reader.can_walk
    one = next((item.id for item in largest_collapsible(context)), "")
    stats = context.stats()
    # A change by hand shows more or less than the compaction before it kept.
    is_changed = next((record.is_by_hand for record in reversed(records) if not record.undone), False)
    kept = await asyncio.to_thread(context.kept) if is_changed else None
    panel = context_panel(
        stats, size.columns, size.lines, records=records, is_all=is_all, has_bars=has_bars, collapsible=one, kept=kept
    )
    app.output.show(panel)


async def _show_all(app: App, argument: str) -> None:
    await _show_panel(app, is_all=True)


async def _apply(app: App, marks: Mapping[str, Change]) -> None:
    """Apply the marks: those that free room first; a compaction last, after the pins."""

    def marked(change: Change) -> list[str]:
        return [wanted for wanted, other in marks.items() if other == change]

    if collapsing := marked("collapse"):
        await collapse(app, " ".join(collapsing))
    if unpinning := marked("unpin"):
        await unpin(app, " ".join(unpinning))
    for wanted in marked("expand"):
        await expand(app, wanted)
    if pinning := marked("pin"):
        await pin(app, " ".join(pinning))
    for wanted in marked("compact"):
        await compact(app, f"from {wanted}")


async def _clear(app: App, argument: str) -> None:
    context = app.conversation.context
    pins = context.stats(with_details=False).pinned_messages
    if context.clear() is None:
        raise UsageError("The context is already empty.")
    also = f", and the {counted(pins, 'pinned message')} left it as well" if pins else ""
    app.output.show(f"The context is empty{also}; the session keeps everything. /context undo brings it back.")


async def _undo(app: App, argument: str) -> None:
    _show_change(app, app.conversation.context.undo(), "undo", "Undid", " /context redo takes this back.")


async def _redo(app: App, argument: str) -> None:
    _show_change(app, app.conversation.context.redo(), "redo", "Redid")


def _show_change(app: App, record: CompactionRecord | None, word: str, done: str, then: str = "") -> None:
    if record is None:
        raise UsageError(f"There is nothing to {word}.")
    kind = "change" if record.is_by_hand else "compaction"
    app.output.show(f"{done} the {kind} of {local_time(record.at)}. {usage_line(app)}{then}")


async def _compact(app: App, argument: str) -> None:
    """Compact, or show what that would do. Raises UsageError for a subcommand of /context, and for a wrong option."""
    words = argument.split()
    if app.preview is not None and argument.strip() in OF_PREVIEW:
        await OF_PREVIEW[argument.strip()](app, "")
        return
    if len(words) == 1 and (meant := words[0].lower()) in SUBCOMMANDS:
        raise UsageError(f"{one_line(words[0], 40)} is no focus.", advice=f"Did you mean /context {meant}?")
    # Behind its first word, a focus may name an option of some other program.
    if words and words[0].startswith("--") and words[0] != PREVIEW:
        raise takes_no("compact", words[0], f"Valid: {PREVIEW}, or a focus in words.")
    if PREVIEW not in words:
        await compact(app, argument)
    else:
        words.remove(PREVIEW)
        await preview(app, *chosen(app, " ".join(words)))


class Subcommand(NamedTuple):
    """A word after `/context`: its line of help, and its action on the rest of the text.

    is_alone  it takes no such text
    """

    about: str
    run: Callable[[App, str], Awaitable[None]]
    is_alone: bool = False


SUBCOMMANDS = {
    "all": Subcommand("show everything: more items, by tool, by file, each compaction", _show_all, is_alone=True),
    "diff": Subcommand("what the last compaction took and kept, by kind", show_diff, is_alone=True),
    "history": Subcommand("list the compactions so far", show_history, is_alone=True),
    "show": Subcommand("print the newest summary, or the summary, marker or message with this ID or number", show_item),
    "search": Subcommand("find what was said and done, compacted or not; --all searches every session", search),
    "collapse": Subcommand("shorten messages, by their numbers", collapse),
    "expand": Subcommand("restore originals, by the IDs of summaries and markers or the numbers of messages", expand),
    "pin": Subcommand("protect messages, by their numbers; last: the last you sent; alone: list the pins", pin),
    "unpin": Subcommand("unpin messages", unpin),
    "compact": Subcommand("make room now; a FOCUS may follow; --preview shows what would go", _compact),
    "accept": Subcommand("apply what /context compact --preview showed", accept, is_alone=True),
    "edit": Subcommand("open the preview's summary in your editor", edit, is_alone=True),
    "drop": Subcommand("discard the preview", drop, is_alone=True),
    "undo": Subcommand("take back the last compaction or change, pins included", _undo, is_alone=True),
    "redo": Subcommand("take the undo back", _redo, is_alone=True),
    "clear": Subcommand("empty the context; undo brings it back", _clear, is_alone=True),
}
_WORDS = {word: one.about for word, one in SUBCOMMANDS.items()} | _COMPACT_PARTS


class ContextCommand(Command):
    name = "context"

    def __init__(self) -> None:
        super().__init__()
        for word, about in _WORDS.items():
            self.usage += f"\n/context {word}{' N' * (word in _COMPACT_PARTS)}  ({about})"

    def only_shows(self, argument: str) -> bool:
        return argument.partition(" ")[0].lower() in _ONLY_SHOW

    async def run(self, app: App, argument: str) -> None:
        word, _, rest = argument.partition(" ")
        if not word:
            await _show(app, "")
        elif (found := SUBCOMMANDS.get(word.lower())) is not None:
            if found.is_alone and rest.strip():
                raise takes_no(f"{self.name} {word.lower()}", rest.strip(), "It takes no argument.")
            await found.run(app, rest.strip())
        else:
            near = nearest(word, SUBCOMMANDS)
            valid = f"Did you mean /context {near}?" if near else f"Valid: {', '.join(_WORDS)}, or nothing."
            raise takes_no(self.name, word, valid)

    def complete(self, app: App, argument: str) -> Iterable[Suggestion]:
        word, blank, rest = argument.partition(" ")
        word = word.lower()
        if not blank:
            return beginning_with(word, ((name, about) for name, about in _WORDS.items() if can(app, name)))
        if word == "compact":
            return compact_words(app, rest)
        if word == "search" and " " not in rest:
            return beginning_with(rest, [(ALL, "look into every session")]) if rest else ()
        return items_for(app, word, rest) if word in TAKES else ()


class CompactCommand(Command):
    name = "compact"

    async def run(self, app: App, argument: str) -> None:
        await _compact(app, argument)

    def complete(self, app: App, argument: str) -> Iterable[Suggestion]:
        return compact_words(app, argument)
