"""What /compact and /context compact do, and the preview of a compaction.
/context collapse, expand, pin and unpin.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from rich.table import Column
from rich.text import Text

from nca.agent.compaction_diff import Preview
from nca.context.retention import kept_in_words
from nca.context.summary_writer import BY_CODE
from nca.context.view import Range
from nca.errors import UsageError
from nca.humanize import counted, used_in_words
from nca.models.catalog import money
from nca.terminal.commands.command import App
from nca.terminal.commands.context_history import as_text, is_number, message_table, seq_of
from nca.terminal.input.editor import edited
from nca.terminal.interrupts import IS_SAID
from nca.terminal.render.layout import BehindMark, Parted, new_table
from nca.terminal.render.sanitize import one_line, to_terminal

if TYPE_CHECKING:
    from nca.agent.context import Context
    from nca.agent.usage_breakdown import ContextItem

CHOICE = "/context accept applies it · /context edit opens its summary in your editor · /context drop discards it"


async def preview(app: App, focus: str, only: Range | None = None) -> None:
    """Make a proposal and show it; the conversation's event says the two numbers."""
    app.hold_preview(None)
    app.output.status("Planning the compaction")
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


OF_PREVIEW = {"accept": accept, "edit": edit, "drop": drop}
"""What can be done with a preview. While there is one, these words are no focus."""


def _held(app: App) -> Preview:
    if app.preview is None:
        raise UsageError("There is no preview.", advice="/context compact --preview makes one.")
    return app.preview


def _show(app: App, made: Preview) -> None:
    proposal = made.proposal
    # In a narrow window the right one is broken between words; the names on the left are whole.
    table = new_table(Column(no_wrap=True), Column(justify="right"), gap=2, indent=2)
    for stage, tokens in proposal.saved_by_stage.items():
        table.add_row(Text(to_terminal(stage)), f"−{tokens:,} tokens")
    if made.goes:
        table.add_row("goes", Text(f"messages {as_text(made.goes)}"))
    if made.stubbed:
        table.add_row("shortened", counted(made.stubbed, "message"))
    table.add_row("each request", _change(made))
    app.output.show(table)
    if proposal.facts and (kinds := proposal.facts.by_kind()):
        app.output.show(BehindMark(Text(f"  keeps {one_line(kept_in_words(kinds))}"), 0))
    if made.summary is not None and made.summary.prose:
        app.output.show(Text("\nThe summary:\n", style="bold"))
        app.output.show(Text(to_terminal(f"{made.summary.text}\n")))
    app.output.show(Parted(CHOICE))


def _change(made: Preview) -> str:
    """Tokens before and after, with their price if known."""
    before, after = made.proposal.tokens_before, made.proposal.tokens_after
    tokens = f"{before:,} → {after:,} tokens"
    costs = made.request_cost(before), made.request_cost(after)
    if costs[0] is None or costs[1] is None:
        return tokens
    made_for = f", the summary cost {money(made.cost)}" if made.cost else ""
    return f"{tokens}, {money(costs[0])} → {money(costs[1])} without a cache{made_for}"


PREVIEW = "--preview"
PLACES = {"from": True, "before": False}
"""The word before a message number, and whether it means the later messages."""


async def compact(app: App, argument: str) -> None:
    """Compact. The conversation's events report the result, as for every compaction, and also that it was stopped."""
    focus, only = chosen(app, argument)
    context = app.conversation.context
    try:
        outcome = await context.compact(focus, only)
    except asyncio.CancelledError:
        raise asyncio.CancelledError(IS_SAID) from None
    if focus and outcome.compacted and context.summary_writer(context.history()[-1]) in ("", BY_CODE):
        app.output.notice("The focus was not used: no model wrote the summary.")


def chosen(app: App, argument: str) -> tuple[str, Range | None]:
    """The focus and the only messages to summarize: `from 12 the parser`, `before 12`.

    Raises UsageError for a message that does not exist.
    """
    word, _, rest = argument.partition(" ")
    number, _, focus = rest.strip().partition(" ")
    if word.lower() in PLACES and not is_number(number):
        raise UsageError(f"{word} needs a message's number.", advice=f"/compact {word.lower()} NUMBER [FOCUS].")
    if argument and not any(map(str.isalpha, argument)):
        raise UsageError(f"{one_line(argument, 40)} is not a focus in words.", advice=f"Valid: {PREVIEW}, or a focus.")
    if word.lower() not in PLACES:
        return argument, None
    return focus.strip(), app.conversation.context.part(seq_of(app, number), is_later=PLACES[word.lower()])


OFFERED = 5
"""The largest messages that `/context collapse` suggests."""
MOST_AT_ONCE = 1_000
LISTED = 12
"""The newest messages that `/context pin` offers."""
MOST_NAMED = 8
"""Of those that are in the context already."""


async def expand(app: App, wanted: str) -> None:
    """Restore originals: `12`, `12-15`, `last`, the ID of a summary or marker, or several of these."""
    if not wanted:
        raise UsageError(
            "/context expand needs an ID or a message's number.", advice="/context all lists the largest items."
        )
    restored, whole = 0, list[str]()
    try:
        for one in _items(app, wanted):
            if app.conversation.context.expand(one) is not None:
                restored += 1
            else:
                whole.append(f"Message {one}" if one.isdecimal() else one_line(one, 40))
    finally:
        if restored:
            back = "/context undo removes it again." if restored == 1 else "/context undo removes the last again."
            app.output.show(f"Restored. {usage_line(app)} {back}")
    if whole:
        said = f"{', '.join(whole[:MOST_NAMED])} {'is' if len(whole) == 1 else 'are'} already in the context."
        if not restored:
            raise UsageError(said)
        app.output.notice(said)


def _items(app: App, wanted: str) -> Iterable[str]:
    """IDs and numbers, with `last` and ranges such as `12-15` as their numbers."""
    for word in wanted.replace(",", " ").split():
        ends = word.replace("–", "-").split("-", 1)
        # An ID may have digits alone, and begin with 0.
        is_run = all(map(is_number, ends)) and not word.isdecimal()
        yield from map(str, _run(app, word)) if is_run else (word,)


async def collapse(app: App, wanted: str) -> None:
    """Shorten messages, by their numbers: `12`, `12-15`, or several of these."""
    seqs = _seqs(app, wanted)
    if not seqs:
        heavy = largest_collapsible(app.conversation.context)[:OFFERED]
        named = ", ".join(f"{item.id} ({item.tokens:,} tokens)" for item in heavy)
        raise UsageError("/context collapse needs the numbers of messages.", advice=f"Largest: {named or 'none'}.")
    can = {int(item.id) for item in largest_collapsible(app.conversation.context)}
    shortened, whole = [seq for seq in seqs if seq in can], [seq for seq in seqs if seq not in can]
    entries = app.conversation.context.entries
    before = app.conversation.context.stats(with_details=False).used_tokens
    if app.conversation.context.collapse(seqs) is None:
        calls = any(entries[seq - 1].message.tool_calls for seq in seqs)
        why = "only texts and results are shortened, and calls stay whole" if calls else "too short"
        raise UsageError(f"{_are(seqs)} not collapsed: {why}.")
    # After a change the count is an estimate until the model has reported: a small saving may not show yet.
    saved = before - app.conversation.context.stats(with_details=False).used_tokens
    less = f": {saved:,} tokens less" if saved > 0 else ""
    back = f"/context undo, or expand {seqs[0]}, restores it" if len(seqs) == 1 else "/context undo restores them"
    app.output.show(f"Collapsed {counted(len(shortened), 'message')}{less}. {usage_line(app)} {back}.")
    if whole:
        app.output.notice(f"{_are(whole)} as before.")


def largest_collapsible(context: Context) -> list[ContextItem]:
    """What collapsing would shorten, the largest first."""
    return sorted((item for item in context.items() if item.is_collapsible), key=lambda item: -item.tokens)


async def pin(app: App, wanted: str) -> None:
    """Pin messages by their numbers, or the `last` one that the person sent. Without an argument, list the pins."""
    _set_pins(app, wanted, app.conversation.context.pin, "pinned", "already pinned")


async def unpin(app: App, wanted: str) -> None:
    _set_pins(app, wanted, app.conversation.context.unpin, "no longer pinned", "not pinned")


def _set_pins(app: App, wanted: str, change: Callable[..., bool], done: str, same: str) -> None:
    """`change` pins or unpins messages."""
    seqs, before = _seqs(app, wanted), {one.seq for one in app.conversation.context.pins()}
    if not seqs:
        _show_pins(app)
        return
    change(*seqs)
    differ = before.symmetric_difference(one.seq for one in app.conversation.context.pins())
    changed, unchanged = [seq for seq in seqs if seq in differ], [seq for seq in seqs if seq not in differ]
    if not changed:
        raise UsageError(f"{_are(unchanged)} {same}.")
    if unchanged:
        app.output.show(f"{_are(unchanged)} {same}.")
    app.output.show(f"{_are(changed)} {done}. {_pins_line(app)} /context undo takes it back.")


def _are(seqs: Sequence[int]) -> str:
    which = as_text((seq, seq) for seq in seqs)
    return f"Message {which} is" if len(seqs) == 1 else f"Messages {which} are"


def _seqs(app: App, wanted: str) -> list[int]:
    """The messages that are named, each once."""
    return list(dict.fromkeys(seq for word in wanted.replace(",", " ").split() for seq in _run(app, word)))


def usage_line(app: App) -> str:
    """The usage of the context, and above the compaction threshold the next action."""
    stats = app.conversation.context.stats(with_details=False)
    used = f"Context: {used_in_words(stats.usage_ratio)} ({stats.used_tokens:,} / {stats.budget_tokens:,} tokens)."
    return f"{used} Next: {stats.next_rung}." if stats.is_high else used


def _run(app: App, word: str) -> list[int]:
    """`12`, `last`, or `12-15`."""
    first, dash, last = word.replace("–", "-").partition("-")
    if not dash:
        return [seq_of(app, word)]
    begin, end = sorted((seq_of(app, first), seq_of(app, last)))
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
    newest = list(islice(conversation.context.backwards(), LISTED + 1))[::-1]
    has_more, newest = len(newest) > LISTED, newest[-LISTED:]
    pinned = {one.seq for one in pins}
    earlier = [one for one in pins if not newest or one.seq < newest[0].seq]
    listed = [(one.seq, one.message) for one in earlier] + [(entry.seq, entry.message) for entry in newest]
    if listed:
        app.output.show(message_table(listed, pinned))
    if has_more:
        app.output.show(
            f"Before message {newest[0].seq}: /context search TEXT finds one, /context show NUMBER prints it."
        )
    app.output.show(f"{_pins_line(app)} /context pin 3 5-8 protects messages; /context unpin takes it back.")
