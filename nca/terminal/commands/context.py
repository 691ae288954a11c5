"""/context: what is in the window, and what can be done about it."""

from __future__ import annotations

import shutil
from collections.abc import Iterable

from nca.errors import UsageError
from nca.terminal.commands.command import App, Command, Suggestion
from nca.terminal.commands.compact import chosen, compact
from nca.terminal.commands.context_edit import collapse, expand, pin, unpin, usage_line
from nca.terminal.commands.context_history import show_history, show_item
from nca.terminal.commands.context_preview import accept, drop, edit, preview
from nca.terminal.commands.context_search import search
from nca.terminal.panels.context import context_panel
from nca.terminal.render.sanitize import one_line

PREVIEW = "--preview"
_TAKES_IDS = {"show", "collapse", "expand", "pin", "unpin"}
_WORDS = {
    "clear": "start with an empty context; undo brings it back",
    "all": "everything of /context: more items, by tool, by file, each compaction",
    "compact": "make room now; a FOCUS may follow; --preview shows first what would go",
    "compact from": "N: summarize message N and all after it; a FOCUS may follow",
    "compact before": "N: summarize all before message N; a FOCUS may follow",
    "collapse": "show messages in short, by their numbers",
    "undo": "back to before the last compaction",
    "redo": "take the undo back",
    "history": "the compactions so far",
    "show": "read the newest summary; or the summary, marker or message whose ID or number follows",
    "expand": "put originals back: the ID of a summary or marker, or a message's number",
    "pin": "protect a message by its number, or the `last` you said; alone: what is pinned",
    "unpin": "let a pinned message go",
    "search": "find what was said and done, compacted away or not; --all in every session",
    "accept": "apply what /context compact --preview showed",
    "edit": "open the preview's summary in your editor",
    "drop": "forget the preview",
}


class ContextCommand(Command):
    name = "context"
    aliases = ("ctx",)
    usage = "/context\n" + "\n".join(f"/context {word}  ({about})" for word, about in _WORDS.items())
    about = "What fills the window; compact, undo, collapse, expand, pin, search, history"

    async def run(self, app: App, argument: str) -> None:
        word, _, rest = argument.partition(" ")
        match word.lower():
            case "":
                _show(app)
            case "all":
                _show(app, is_all=True)
            case "clear":
                if app.conversation.context.clear() is None:
                    raise UsageError("The context is empty already.")
                app.output.show("The context is empty; the session keeps everything. /context undo brings it back.")
            case "compact":
                await _compact(app, rest.strip())
            case "undo":
                self._undo(app)
            case "redo":
                self._redo(app)
            case "history":
                show_history(app)
            case "show":
                show_item(app, rest.strip())
            case "collapse":
                collapse(app, rest.strip())
            case "expand":
                expand(app, rest.strip())
            case "pin":
                pin(app, rest.strip())
            case "unpin":
                unpin(app, rest.strip())
            case "search":
                await search(app, rest.strip())
            case "accept":
                accept(app)
            case "edit":
                await edit(app)
            case "drop":
                drop(app)
            case _:
                raise UsageError(
                    f"/context {one_line(word, 40)} is not known.", advice=f"Valid: {', '.join(_WORDS)}, or nothing."
                )

    def complete(self, app: App, argument: str) -> Iterable[Suggestion]:
        word, blank, rest = argument.partition(" ")
        if blank and word.lower() in _TAKES_IDS:
            return _ids(app, rest)
        # The prompt replaces the last word only.
        done = argument.rpartition(" ")[0]
        found = {name.removeprefix(done).lstrip(): about for name, about in _WORDS.items() if name.startswith(done)}
        last = argument.rpartition(" ")[2].lower()
        return [Suggestion(name, about) for name, about in found.items() if name and name.startswith(last)]

    def _undo(self, app: App) -> None:
        record = app.conversation.context.undo()
        if record is None:
            raise UsageError("There is no compaction to undo.")
        app.output.show(f"Undone: the context is as it was before. {usage_line(app)} /context redo takes this back.")

    def _redo(self, app: App) -> None:
        record = app.conversation.context.redo()
        if record is None:
            raise UsageError("There is nothing to redo.")
        app.output.show(f"Done again. {usage_line(app)}")


def _show(app: App, *, is_all: bool = False) -> None:
    size = shutil.get_terminal_size()
    stats, records = app.conversation.context.stats(), app.conversation.context.history()
    app.output.show(context_panel(stats, size.columns, size.lines, records=records, is_all=is_all))


def _ids(app: App, typed: str) -> list[Suggestion]:
    """The heaviest items that the last word may mean."""
    last = typed.rpartition(" ")[2]
    return [
        Suggestion(item.id, f"{item.tokens:,} tokens · {item.label}")
        for item in app.conversation.context.stats().heaviest
        if item.id.startswith(last)
    ]


async def _compact(app: App, argument: str) -> None:
    words = argument.split()
    if PREVIEW not in words:
        await compact(app, argument)
        return
    words.remove(PREVIEW)
    focus, only = chosen(app, " ".join(words))
    await preview(app, focus, only)


COMMAND = ContextCommand()
