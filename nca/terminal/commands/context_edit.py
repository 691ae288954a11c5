"""/context collapse, expand, pin and unpin."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice

from rich.text import Text

from nca.errors import UsageError
from nca.humanize import counted, percent
from nca.messages import Message
from nca.terminal.commands.command import App
from nca.terminal.render.sanitize import one_line
from nca.terminal.render.tables import fitting_table

OFFERED = 5
"""The largest messages that `/context collapse` suggests."""
MOST_AT_ONCE = 1_000
LISTED = 12
"""The newest messages that `/context pin` offers."""


async def expand(app: App, wanted: str) -> None:
    if not wanted:
        raise UsageError(
            "/context expand needs an ID or a message's number.", advice="/context all lists the largest items."
        )
    if app.conversation.context.expand(wanted) is None:
        what = f"Message {wanted}" if wanted.isdecimal() else one_line(wanted, 40)
        app.output.show(f"{what} is already in the context.")
    else:
        app.output.show(f"Restored. {usage_line(app)} /context undo removes it again.")


async def collapse(app: App, wanted: str) -> None:
    """Shorten messages, by their numbers: `12`, `12-15`, or several of these."""
    seqs = [seq for word in wanted.replace(",", " ").split() for seq in _run(app, word)]
    if not seqs:
        heavy = [item for item in app.conversation.context.stats().heaviest if item.id.isdecimal()][:OFFERED]
        named = ", ".join(f"{item.id} ({item.tokens:,} tokens)" for item in heavy)
        raise UsageError("/context collapse needs the numbers of messages.", advice=f"Largest: {named or 'none'}.")
    which = f"Message {seqs[0]} is" if len(seqs) == 1 else "These messages are"
    before = app.conversation.context.stats(with_details=False).used_tokens
    if app.conversation.context.collapse(seqs) is None:
        app.output.show(f"{which} too short to collapse.")
        return
    # After a change the count is estimated anew, until the model has reported: a small saving may not show yet.
    saved = before - app.conversation.context.stats(with_details=False).used_tokens
    less = f": {saved:,} tokens less" if saved > 0 else ""
    back = f"/context undo, or expand {seqs[0]}, restores it" if len(seqs) == 1 else "/context undo restores them"
    app.output.show(f"Collapsed {counted(len(seqs), 'message')}{less}. {usage_line(app)} {back}.")


async def pin(app: App, wanted: str) -> None:
    """Pin a message by its number, or the `last` one that the person sent. Without an argument, list the pins."""
    _change(app, wanted, app.conversation.context.pin, "is pinned", "is already pinned")


async def unpin(app: App, wanted: str) -> None:
    _change(app, wanted, app.conversation.context.unpin, "is no longer pinned", "is not pinned")


def _change(app: App, wanted: str, change: Callable[[int], bool], done: str, same: str) -> None:
    """`change` returns whether it changed anything."""
    if not wanted:
        _show_pins(app)
        return
    seq = _seq(app, wanted)
    if change(seq):
        app.output.show(f"Message {seq} {done}. {_pins_line(app)}")
    else:
        app.output.show(f"Message {seq} {same}.")


def usage_line(app: App) -> str:
    """How full the context is, and where that is above the compaction threshold, what follows."""
    stats = app.conversation.context.stats(with_details=False)
    used = f"Context: {percent(stats.usage_ratio)} used ({stats.used_tokens:,} / {stats.budget_tokens:,} tokens)."
    return f"{used} Next: {stats.next_rung}." if stats.is_high else used


def _seq(app: App, wanted: str) -> int:
    if wanted == "last":
        said = (e for e in app.conversation.context.backwards() if e.message.role == "user")
        newest = next((entry.seq for entry in said if not entry.message.is_synthetic), None)
        if newest is None:
            raise UsageError("You have not sent a message yet.")
        return newest
    if not wanted.isdecimal():
        raise UsageError(f"{one_line(wanted, 40)} is not a message number.", advice="/context pin lists the numbers.")
    return int(wanted)


def _run(app: App, word: str) -> list[int]:
    """`12`, `last`, or `12-15`."""
    first, dash, last = word.replace("–", "-").partition("-")
    if not dash:
        return [_seq(app, word)]
    begin, end = _seq(app, first), _seq(app, last)
    if end - begin >= MOST_AT_ONCE:
        raise UsageError(f"{one_line(word, 40)} is too many messages; the limit is {MOST_AT_ONCE:,} at once.")
    return list(range(begin, end + 1))


def _pins_line(app: App) -> str:
    pinned = app.conversation.context
    used = sum(pin.tokens for pin in pinned.pins())
    return f"Pins: {used:,} of {pinned.pins_budget_tokens:,} tokens."


def _show_pins(app: App) -> None:
    """Show the pins and their budget, and the newest messages with their numbers."""
    conversation = app.conversation
    pins = conversation.context.pins()
    newest = list(islice(conversation.context.backwards(), LISTED))[::-1]
    pinned = {one.seq for one in pins}
    earlier = [one for one in pins if not newest or one.seq < newest[0].seq]
    listed = [(one.seq, *_described(one.message)) for one in earlier]
    listed += [(entry.seq, *_described(entry.message)) for entry in newest]
    if listed:
        columns = {
            "number": [Text(f"● {seq}" if seq in pinned else str(seq)) for seq, _, _ in listed],
            "who": [who for _, who, _ in listed],
            "what": [what for _, _, what in listed],
        }
        app.output.show(fitting_table(columns, numbers=("number",), gives_way="what"))
    app.output.show(f"{_pins_line(app)} /context pin NUMBER protects a message; /context unpin NUMBER unpins it.")


def _described(message: Message) -> tuple[Text, Text]:
    what = message.text.strip() or ", ".join(f"→ {call.name}" for call in message.tool_calls)
    who = "you" if message.role == "user" else message.name or message.role
    return Text(one_line(who, 20)), Text(one_line(what, 90))
