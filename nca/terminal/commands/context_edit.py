"""/context collapse, expand, pin and unpin: messages in short, originals back in the view, and messages that stay."""

from __future__ import annotations

from collections.abc import Callable

from rich.text import Text

from nca.errors import UsageError
from nca.messages import Message
from nca.terminal.commands.command import App
from nca.terminal.render.humanize import percent
from nca.terminal.render.sanitize import one_line
from nca.terminal.render.tables import new_table

OFFERED = 5
"""The heaviest messages that `/context collapse` names."""
MOST_AT_ONCE = 1_000
LISTED = 12
"""The newest messages that `/context pin` offers."""


async def expand(app: App, wanted: str) -> None:
    if not wanted:
        raise UsageError(
            "What is to come back?", advice="/context expand ID, or a message's number; see /context show."
        )
    record = app.conversation.context.expand(wanted)
    if record is None:
        app.output.show("That is shown to the model already.")
    else:
        app.output.show(f"Put back. {usage_line(app)} /context undo hides it again.")


async def collapse(app: App, wanted: str) -> None:
    """Show messages in short, by their numbers; `12-15` and several at once too."""
    seqs = [seq for word in wanted.replace(",", " ").split() for seq in _run(app, word)]
    if not seqs:
        heavy = [item for item in app.conversation.context.stats().heaviest if item.id.isdecimal()][:OFFERED]
        named = ", ".join(f"{item.id} ({item.tokens:,} tokens)" for item in heavy)
        raise UsageError(
            "What is to be shown in short?", advice=f"/context collapse NUMBER…; the heaviest: {named or 'none'}."
        )
    before = app.conversation.context.stats(with_details=False).used_tokens
    if app.conversation.context.collapse(seqs) is None:
        app.output.show("Nothing becomes shorter by that.")
        return
    # After a change the count is estimated anew, until the model has reported: a small saving may not show yet.
    saved = before - app.conversation.context.stats(with_details=False).used_tokens
    less = f": {saved:,} tokens less" if saved > 0 else ""
    back = f"/context expand {seqs[0]} or undo brings it back" if len(seqs) == 1 else "/context undo brings them back"
    app.output.show(f"Shown in short{less}. {usage_line(app)} {back}.")


async def pin(app: App, wanted: str) -> None:
    """Pin a message by its number or, with `last`, what the person said last; without a word, show what there is."""
    _change(app, wanted, app.conversation.context.pin, "stays whatever is compacted", "is pinned already")


async def unpin(app: App, wanted: str) -> None:
    _change(app, wanted, app.conversation.context.unpin, "may be compacted again", "is not pinned")


def _change(app: App, wanted: str, change: Callable[[int], bool], done: str, same: str) -> None:
    """`change` answers whether there was something to change."""
    if not wanted:
        _show_pins(app)
        return
    seq = _seq(app, wanted)
    if change(seq):
        app.output.show(f"Message {seq} {done}. {_pins_line(app)}")
    else:
        app.output.show(f"Message {seq} {same}.")


def usage_line(app: App) -> str:
    stats = app.conversation.context.stats(with_details=False)
    return f"Context: {percent(stats.usage_ratio)} used ({stats.used_tokens:,} / {stats.budget_tokens:,} tokens)."


def _seq(app: App, wanted: str) -> int:
    if wanted == "last":
        said = (e for e in reversed(app.conversation.context.entries) if e.message.role == "user")
        newest = next((entry.seq for entry in said if not entry.message.is_synthetic), None)
        if newest is None:
            raise UsageError("Nothing has been said yet.")
        return newest
    if not wanted.isdecimal():
        raise UsageError(
            f"{one_line(wanted, 40)} is no message's number.", advice="/context pin alone shows the numbers."
        )
    return int(wanted)


def _run(app: App, word: str) -> list[int]:
    """`12`, `last`, or `12-15`."""
    first, dash, last = word.replace("–", "-").partition("-")
    if not dash:
        return [_seq(app, word)]
    begin, end = _seq(app, first), _seq(app, last)
    if end - begin >= MOST_AT_ONCE:
        raise UsageError(f"{one_line(word, 40)} are too many messages; at most {MOST_AT_ONCE:,} at once.")
    return list(range(begin, end + 1))


def _pins_line(app: App) -> str:
    pinned = app.conversation.context
    used = sum(pin.tokens for pin in pinned.pins())
    return f"Pins: {used:,} of {pinned.pins_budget_tokens:,} tokens."


def _show_pins(app: App) -> None:
    """The pins with their budget, and the newest messages with their numbers."""
    conversation = app.conversation
    pins = conversation.context.pins()
    newest = conversation.context.entries[-LISTED:]
    table = new_table(has_header=True)
    table.add_column("number", justify="right", no_wrap=True)
    table.add_column("who", no_wrap=True)
    table.add_column("what", overflow="ellipsis", no_wrap=True)
    pinned = {one.seq for one in pins}
    for one in pins:
        if not newest or one.seq < newest[0].seq:
            table.add_row(f"● {one.seq}", *_described(one.message))
    for entry in newest:
        table.add_row(f"● {entry.seq}" if entry.seq in pinned else str(entry.seq), *_described(entry.message))
    if table.row_count:
        app.output.show(table)
    app.output.show(f"{_pins_line(app)} /context pin NUMBER protects a message, /context unpin NUMBER lets it go.")


def _described(message: Message) -> tuple[Text, Text]:
    what = message.text.strip() or ", ".join(f"→ {call.name}" for call in message.tool_calls)
    who = "you" if message.role == "user" else message.name or message.role
    return Text(one_line(who, 20)), Text(one_line(what, 90))
