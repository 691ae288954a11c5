"""/context collapse, expand, pin and unpin: messages in short, originals back in the view, and messages that stay."""

from __future__ import annotations

from collections.abc import Callable

from rich.text import Text

from nca.errors import UsageError
from nca.messages import Message
from nca.terminal.commands.command import CommandContext
from nca.terminal.render.sanitize import one_line
from nca.terminal.render.tables import new_table
from nca.terminal.render.wording import percent

OFFERED = 5
"""The heaviest messages that `/context collapse` names."""
MOST_AT_ONCE = 1_000
LISTED = 12
"""The newest messages that `/context pin` offers."""


def expand(context: CommandContext, wanted: str) -> None:
    if not wanted:
        raise UsageError(
            "What is to come back?", advice="/context expand ID, or a message's number; see /context show."
        )
    record = context.conversation.context.expand(wanted)
    if record is None:
        context.output.show("That is shown to the model already.")
    else:
        context.output.show(f"Put back. {usage_line(context)} /context undo hides it again.")


def collapse(context: CommandContext, wanted: str) -> None:
    """Show messages in short, by their numbers; `12-15` and several at once too."""
    seqs = [seq for word in wanted.replace(",", " ").split() for seq in _run(context, word)]
    if not seqs:
        heavy = [item for item in context.conversation.context.stats().heaviest if item.id.isdecimal()][:OFFERED]
        named = ", ".join(f"{item.id} ({item.tokens:,} tokens)" for item in heavy)
        raise UsageError(
            "What is to be shown in short?", advice=f"/context collapse NUMBER…; the heaviest: {named or 'none'}."
        )
    before = context.conversation.context.stats(with_details=False).used_tokens
    if context.conversation.context.collapse(seqs) is None:
        context.output.show("Nothing becomes shorter by that.")
        return
    # After a change the count is estimated anew, until the model has reported: a small saving may not show yet.
    saved = before - context.conversation.context.stats(with_details=False).used_tokens
    less = f": {saved:,} tokens less" if saved > 0 else ""
    back = f"/context expand {seqs[0]} or undo brings it back" if len(seqs) == 1 else "/context undo brings them back"
    context.output.show(f"Shown in short{less}. {usage_line(context)} {back}.")


def pin(context: CommandContext, wanted: str) -> None:
    """Pin a message by its number or, with `last`, what the person said last; without a word, show what there is."""
    _change(context, wanted, context.conversation.context.pin, "stays whatever is compacted", "is pinned already")


def unpin(context: CommandContext, wanted: str) -> None:
    _change(context, wanted, context.conversation.context.unpin, "may be compacted again", "is not pinned")


def _change(context: CommandContext, wanted: str, change: Callable[[int], bool], done: str, same: str) -> None:
    """`change` answers whether there was something to change."""
    if not wanted:
        _show_pins(context)
        return
    seq = _seq(context, wanted)
    if change(seq):
        context.output.show(f"Message {seq} {done}. {_pins_line(context)}")
    else:
        context.output.show(f"Message {seq} {same}.")


def usage_line(context: CommandContext) -> str:
    stats = context.conversation.context.stats(with_details=False)
    return f"Context: {percent(stats.usage_ratio)} used ({stats.used_tokens:,} / {stats.budget_tokens:,} tokens)."


def _seq(context: CommandContext, wanted: str) -> int:
    if wanted == "last":
        said = (e for e in reversed(context.conversation.context.entries) if e.message.role == "user")
        newest = next((entry.seq for entry in said if not entry.message.is_synthetic), None)
        if newest is None:
            raise UsageError("Nothing has been said yet.")
        return newest
    if not wanted.isdecimal():
        raise UsageError(
            f"{one_line(wanted, 40)} is no message's number.", advice="/context pin alone shows the numbers."
        )
    return int(wanted)


def _run(context: CommandContext, word: str) -> list[int]:
    """`12`, `last`, or `12-15`."""
    first, dash, last = word.replace("–", "-").partition("-")
    if not dash:
        return [_seq(context, word)]
    begin, end = _seq(context, first), _seq(context, last)
    if end - begin >= MOST_AT_ONCE:
        raise UsageError(f"{one_line(word, 40)} are too many messages; at most {MOST_AT_ONCE:,} at once.")
    return list(range(begin, end + 1))


def _pins_line(context: CommandContext) -> str:
    pinned = context.conversation.context
    used = sum(pin.tokens for pin in pinned.pins())
    return f"Pins: {used:,} of {pinned.pins_budget_tokens:,} tokens."


def _show_pins(context: CommandContext) -> None:
    """The pins with their budget, and the newest messages with their numbers."""
    conversation = context.conversation
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
        context.output.show(table)
    context.output.show(
        f"{_pins_line(context)} /context pin NUMBER protects a message, /context unpin NUMBER lets it go."
    )


def _described(message: Message) -> tuple[Text, Text]:
    what = message.text.strip() or ", ".join(f"→ {call.name}" for call in message.tool_calls)
    who = "you" if message.role == "user" else message.name or message.role
    return Text(one_line(who, 20)), Text(one_line(what, 90))
