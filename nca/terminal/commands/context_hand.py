"""/context expand, pin and unpin: originals back in the view, and messages that stay."""

from __future__ import annotations

from rich.text import Text

from nca.errors import UsageError
from nca.messages import Message
from nca.terminal.commands.command import CommandContext
from nca.terminal.sanitize import one_line
from nca.terminal.tables import new_table
from nca.terminal.wording import percent

LISTED = 12
"""The newest messages that `/context pin` offers."""


def expand(context: CommandContext, wanted: str) -> None:
    if not wanted:
        raise UsageError(
            "What is to come back?", advice="/context expand ID, or a message's number; see /context show."
        )
    record = context.conversation.by_hand.expand(wanted)
    if record is None:
        context.output.show("That is shown to the model already.")
    else:
        context.output.show(f"Put back. {usage_line(context)} /context undo hides it again.")


def pin(context: CommandContext, wanted: str) -> None:
    """Pin a message by its number or, with `last`, what the person said last; without a word, show what there is."""
    if not wanted:
        _show_pins(context)
        return
    seq = _seq(context, wanted)
    if context.conversation.by_hand.pin(seq):
        context.output.show(f"Message {seq} stays whatever is compacted. {_pins_line(context)}")
    else:
        context.output.show(f"Message {seq} is pinned already.")


def unpin(context: CommandContext, wanted: str) -> None:
    if not wanted:
        _show_pins(context)
        return
    seq = _seq(context, wanted)
    if context.conversation.by_hand.unpin(seq):
        context.output.show(f"Message {seq} may be compacted again. {_pins_line(context)}")
    else:
        context.output.show(f"Message {seq} is not pinned.")


def usage_line(context: CommandContext) -> str:
    stats = context.conversation.stats(with_scores=False)
    return f"Context: {percent(stats.usage_ratio)} used ({stats.used_tokens:,} / {stats.budget_tokens:,} tokens)."


def _seq(context: CommandContext, wanted: str) -> int:
    if wanted == "last":
        said = [e.seq for e in context.conversation.entries if e.message.role == "user" and not e.message.is_synthetic]
        if not said:
            raise UsageError("Nothing has been said yet.")
        return said[-1]
    if not wanted.isdecimal():
        raise UsageError(
            f"{one_line(wanted, 40)} is no message's number.", advice="/context pin alone shows the numbers."
        )
    return int(wanted)


def _pins_line(context: CommandContext) -> str:
    by_hand = context.conversation.by_hand
    used = sum(pin.tokens for pin in by_hand.pins())
    return f"Pins: {used:,} of {by_hand.pins_budget_tokens:,} tokens."


def _show_pins(context: CommandContext) -> None:
    """The pins with their budget, and the newest messages with their numbers."""
    conversation = context.conversation
    pins = conversation.by_hand.pins()
    newest = conversation.entries[-LISTED:]
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
