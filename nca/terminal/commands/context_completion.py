"""What Tab offers after /context and /compact: what they would take now, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from nca.context.view import Marker, Stub, Summary
from nca.terminal.commands.command import App, Suggestion, beginning_with
from nca.terminal.commands.compact import OF_PREVIEW, PLACES, PREVIEW

if TYPE_CHECKING:
    from nca.agent.usage_breakdown import ContextItem

OFFERED = 20
"""Messages, the largest first."""


def can(app: App, name: str) -> bool:
    """Whether `/context NAME` would find something to do now."""
    context, views = app.conversation.context, app.conversation.session.views
    match name:
        case "accept" | "edit" | "drop":
            return app.preview is not None
        case "undo":
            return bool(views.current_id)
        case "redo":
            return views.redo_id is not None
        case "diff":
            return any(not one.undone and not one.is_by_hand for one in context.history())
        case "expand":
            return any(isinstance(item, Summary | Marker | Stub) for item in context.view.items)
        case "unpin":
            return bool(context.pins())
        case "collapse" | "clear" | "compact from" | "compact before":
            return bool(context.entries)
        case _:
            return True


def compact_words(app: App, typed: str) -> list[Suggestion]:
    """The words of a compaction, the numbers behind `from` and `before`, and what can be done with a preview."""
    *done, last = typed.lower().split(" ")
    done = list(filter(None, done))
    is_preview = PREVIEW in done
    part = [word for word in done if word != PREVIEW]
    if len(part) == 1 and part[0] in PLACES:
        return items_for(app, part[0], last)
    words: dict[str, str] = {}
    if not part and can(app, "compact from"):
        words = {"from": "message N and everything after it", "before": "everything before message N"}
    if not is_preview and (not part or part[0] in PLACES or last.startswith("-")):
        words[PREVIEW] = "show first what would go"
    if not done and app.preview is not None:
        words |= dict.fromkeys(OF_PREVIEW, "of the preview")
    return beginning_with(last, words.items())


def _is_message(item: ContextItem) -> bool:
    return item.id.isdecimal()


TAKES: dict[str, Callable[[ContextItem], bool]] = {
    "show": lambda item: True,
    "collapse": lambda item: item.is_collapsible,
    "expand": lambda item: not item.is_whole,
    "pin": _is_message,
    "unpin": _is_message,
    "from": _is_message,
    "before": lambda item: _is_message(item) and item.id != "1",
}
"""Which items of the context each word takes."""


def items_for(app: App, word: str, typed: str) -> list[Suggestion]:
    """The largest items that this word would take, with an id that begins with the last one typed."""
    *done, last = typed.split(" ")
    context = app.conversation.context
    if word == "show" and done:
        return []
    pinned = {str(pin.seq) for pin in context.pins()}
    found = (
        item
        for item in sorted(context.items(), key=lambda item: -item.tokens)
        if TAKES[word](item)
        and item.id.startswith(last)
        and item.id not in done
        and (word not in ("pin", "unpin") or (item.id in pinned) == (word == "unpin"))
    )
    return [Suggestion(item.id, f"{item.tokens:,} tokens · {item.label}") for item in found][:OFFERED]
