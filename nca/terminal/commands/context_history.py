"""/context history, show, search and diff: compactions, summaries, markers and messages; what a compaction did."""

from __future__ import annotations

import asyncio
import re
import shutil
from collections.abc import Container, Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Column, Table
from rich.text import Text

from nca.agent.compaction_diff import stages_in_words, writer_in_words
from nca.agent.manual_edits import no_message
from nca.context.parts import LABELS
from nca.context.retention import kept_in_words
from nca.context.view import Marker, Range, Stub, Summary, hidden_by, is_in, merge_ranges
from nca.errors import UsageError
from nca.humanize import counted, duration, local_time, natural
from nca.models.catalog import money
from nca.terminal.commands.command import App
from nca.terminal.panels.context_list import BLOCK, FREE
from nca.terminal.render.layout import BehindMark, Parted, fitting_table, new_table
from nca.terminal.render.sanitize import one_line, to_terminal
from nca.terminal.render.sessions import hit_line

if TYPE_CHECKING:
    from nca.agent.compaction_diff import CompactionDiff
    from nca.agent.context import Context
    from nca.messages import Entry, Message
    from nca.sessions.results import Hit
    from nca.sessions.views import CompactionRecord

_KEPT_CELLS = 40
"""Of a column: what was kept is said in a row for each kind."""


async def show_history(app: App, argument: str) -> None:
    records = app.conversation.context.history()
    if not records:
        app.output.show("No compactions yet.")
        return
    turns = app.conversation.context.stats(with_details=False).turns
    app.output.show(_table(app, records))
    for record in records:
        if reason := app.conversation.context.reason_asked(record):
            app.output.show(f"{local_time(record.at)}, asked for by the model: {one_line(reason)}")
    done = [record for record in records if not record.is_by_hand]
    undone, by_hand = sum(record.undone for record in records), len(records) - len(done)
    also = f", {counted(by_hand, 'change')} by hand" if by_hand else ""
    also += f", {undone:,} undone" if undone else ""
    if done:
        is_seldom = turns >= 1.5 * len(done)
        often = f", one every {turns / len(done):.0f} turns" if is_seldom else f" in {counted(turns, 'turn')}"
        app.output.show(f"{counted(len(done), 'compaction')}{often if len(done) > 1 else ''}{also}.")


def _table(app: App, records: Sequence[CompactionRecord]) -> RenderableType:
    heads = ("when", "cause", "stages", "tokens", "kept", "took")
    rows = [_row(record, app.conversation.context.summary_writer(record)) for record in records]
    columns = dict(zip(heads, map(list, zip(*rows, strict=True)), strict=True))
    styles = ["dim" if record.undone else "" for record in records]
    return fitting_table(columns, numbers=("tokens",), gives_way="kept", least=_KEPT_CELLS, wraps=True, styles=styles)


def _row(record: CompactionRecord, made_by: str) -> list[Text]:
    # A line each: a kind and its count must stay together even in a narrow column.
    facts = kept_in_words(record.kept, record.kept_facts, record.total_facts) if record.total_facts else ""
    kept = "\n".join(map(one_line, facts.split(", ")))
    took = duration(record.seconds) + (f", {money(record.cost)}" if record.cost else "")
    cause = one_line(record.trigger) + (" (undone)" if record.undone else "")
    change = f"{record.tokens_before:,} → {record.tokens_after:,}"
    stages = one_line(stages_in_words(record.stages, made_by))
    return [Text(part) for part in (local_time(record.at), cause, stages, change, kept, took)]


async def show_item(app: App, wanted: str) -> None:
    """A summary, a marker or a message, as stored; the newest summary if none is named."""
    conversation = app.conversation
    standing = [item for item in conversation.context.view.items if isinstance(item, Summary | Marker)]
    earlier = [item for item in conversation.session.views.summaries() if item.id not in {item.id for item in standing}]
    known = [*earlier, *standing]
    found = [item for item in known if item.id.startswith(wanted)]
    if is_number(wanted) and wanted not in {item.id for item in known}:
        _show_message(app, seq_of(app, wanted))
        return
    if not wanted:
        found = [item for item in standing if isinstance(item, Summary)]
        if not found:
            app.output.show("The context holds no summary.")
            return
    if not found:
        ids = ", ".join(item.id for item in known) or "there is none"
        raise UsageError(f"There is no summary {one_line(wanted, 40)}.", advice=f"Valid: {ids}, or a message's number.")
    _show_found(app, found[-1], is_standing=found[-1] in standing)


def _show_found(app: App, item: Summary | Marker, *, is_standing: bool) -> None:
    kind = "summary" if isinstance(item, Summary) else "marker"
    text = item.text or "(nothing is sent in their place)"
    made_by = f", written by {writer_in_words(item.made_by)}" if isinstance(item, Summary) and item.made_by else ""
    then = f"/context expand {item.id} restores them" if is_standing else "no longer in the context"
    foot = f"{kind} {item.id} of messages {as_text(item.ranges)}{made_by}; {then}"
    app.output.show(Text(to_terminal(f"{text}\n\n{foot}")))


def _show_message(app: App, seq: int) -> None:
    entries = app.conversation.context.entries
    if not 1 <= seq <= len(entries):
        raise no_message(seq, len(entries))
    message, view = entries[seq - 1].message, app.conversation.context.view
    stands = hidden_by(view, seq)
    if is_in(seq, view.aside):
        state = "not part of the conversation: you went back to before it, or asked it with /btw"
    elif stands is not None:
        kind = "summary" if isinstance(stands, Summary) else "marker"
        state = f"hidden: {kind} {stands.id} covers it; /context expand {seq} restores it"
    elif any(isinstance(item, Stub) and item.seq == seq for item in view.items):
        state = f"shortened in the context; /context expand {seq} restores it"
    else:
        state = "in the context in full"
    calls = "".join(f"\n→ {call.name} {call.arguments}" for call in message.tool_calls)
    app.output.show(Text(to_terminal(f"{message.text}{calls}\n\nmessage {seq}, {message.role}; {state}")))


LAST = "last"
"""The newest message that the person sent, where `/context` and `/compact` take a number."""


def is_number(word: str) -> bool:
    return word.isdecimal() or word == LAST


def seq_of(app: App, wanted: str) -> int:
    """The message with this number, or the `last`. Raises UsageError for another word."""
    if wanted == LAST:
        said = (entry for entry in app.conversation.context.backwards() if entry.message.role == "user")
        newest = next((entry.seq for entry in said if not entry.message.is_synthetic), None)
        if newest is None:
            raise UsageError("You have not sent a message yet.")
        return newest
    if (number := natural(wanted)) is None:
        raise UsageError(f"{one_line(wanted, 40)} is not a message number.", advice="/context pin lists the numbers.")
    return number


def as_text(ranges: Iterable[Range]) -> str:
    """`1–4, 7, 9–12`."""
    spans = merge_ranges(ranges)
    return ", ".join(str(first) if first == last else f"{first}–{last}" for first, last in spans)


ALL = "--all"
FOUND = 10
"""Messages that a search shows."""
LOOKED_AT = 100
"""The best of a search, of which those with the words are counted."""


async def search(app: App, argument: str) -> None:
    """Show the messages with the words, or if none has them those that resemble them, each under its number, which
    /context show takes.

    `--all` looks into every session.
    """
    question = argument.removeprefix(ALL).strip() if argument.split(" ")[0] == ALL else argument
    if not question:
        raise UsageError(
            "/context search needs a text.", advice=f"/context search TEXT, or /context search {ALL} TEXT."
        )
    is_everywhere = question != argument
    conversation = app.conversation
    exact, similar = await asyncio.to_thread(_search, conversation.context, question, is_everywhere=is_everywhere)
    if not exact and not similar:
        other = "" if is_everywhere else f" /context search {ALL} TEXT searches every session."
        app.output.show(f"Nothing was found.{other}")
        return
    words, session = question.casefold().split(), conversation.session.info.id
    lines = [_line(hit, session, words, _line_with(conversation.context, hit, words)) for hit in exact[:FOUND]]
    if not exact:
        app.output.show("Nothing has exactly these words. These are similar:")
        lines = [_line(hit, session, words, hit.snippet) for hit in similar[:FOUND]]
    app.output.show(Group(*lines))
    if len(exact) > FOUND:
        count = f"{len(exact)}{' or more' * (len(exact) + len(similar) >= LOOKED_AT)}"
        app.output.notice(f"The best {FOUND} of {count} matches. More words narrow the search.")


def _has(text: str, words: Sequence[str]) -> bool:
    return all(word in text.casefold() for word in words)


def _search(context: Context, question: str, *, is_everywhere: bool) -> tuple[list[Hit], list[Hit]]:
    """The hits with every word of the question as it was written, and the others; best first, neighbours last."""
    found = context.search(question, scope="all" if is_everywhere else "session", limit=LOOKED_AT)
    words = question.casefold().split()
    exact: list[Hit] = []
    similar: list[Hit] = []
    for hit in found:
        has_all = _has(hit.snippet, words) or (not hit.is_beside and _has(context.archive.expand(hit.id), words))
        (exact if has_all else similar).append(hit)
    return exact, sorted(similar, key=lambda hit: hit.is_beside)


_BEFORE_WORD_CHARS, _LINE_CHARS = 60, 300


def _line_with(context: Context, hit: Hit, words: Sequence[str]) -> str:
    """The line of the message that has the most of the words, from shortly before the first of them if it is long."""
    lines = context.archive.expand(hit.id).split("\n")
    line = max(lines, key=lambda line: sum(word in line.casefold() for word in words)).strip()
    places = [line.casefold().find(word) for word in words]
    start = max(0, min((place for place in places if place >= 0), default=0) - _BEFORE_WORD_CHARS)
    if len(line) <= _LINE_CHARS or not start:
        return line[:_LINE_CHARS] + "…" * (len(line) > _LINE_CHARS)
    return f"…{line[start : start + _LINE_CHARS]}{'…' * (start + _LINE_CHARS < len(line))}"


def _line(hit: Hit, session: str, words: Sequence[str], said: str) -> BehindMark:
    """A hit with the words marked. One in this session is shown by its number, which the other commands take."""
    number = str(hit.seq) if hit.session == session else hit.id
    text = Text(hit_line(hit, number, said), "quiet" if hit.is_beside else "")
    text.highlight_regex(re.compile("|".join(map(re.escape, words)), re.IGNORECASE), "bold")
    text.stylize("accent", 0, len(number))
    return BehindMark(text, len(number) + 2)


_BAR_CELLS, _NUMBERS_CELLS = 24, 50
"""Cells of the longest bar, and those of the columns before it."""


_BEGINNING_CELLS = 6
"""Of a message, beside its number: a list with a row for each is worth more than the rest of a word."""
NAMED = 12
"""The newest of the messages that a compaction took which are named."""


def message_table(listed: Sequence[tuple[int, Message]], pinned: Container[int] = ()) -> RenderableType:
    """Messages by number: who said it, and how it begins."""
    columns: dict[str, list[Text]] = {"number": [], "who": [], "what": []}
    for seq, message in listed:
        what = message.text.strip() or ", ".join(f"→ {call.name}" for call in message.tool_calls)
        who = "you" if message.role == "user" else message.name or message.role
        columns["number"].append(Text(f"● {seq}" if seq in pinned else str(seq)))
        columns["who"].append(Text(one_line(who, 20)))
        columns["what"].append(Text(one_line(what, 90)))
    return fitting_table(columns, numbers=("number",), gives_way="what", least=_BEGINNING_CELLS)


async def show_diff(app: App, argument: str) -> None:
    context = app.conversation.context
    records = [one for one in context.history() if not one.undone and not one.is_by_hand]
    if not records:
        raise UsageError("No compaction is in effect.", advice="/context history lists those that were undone.")
    diff = context.diff(records[-1])
    # A screen reader would read each block of a bar.
    bar_cells = min(_BAR_CELLS, shutil.get_terminal_size().columns - _NUMBERS_CELLS) if app.reader.can_walk else 0
    lines = _diff_lines(diff, context.entries)
    title = _title(diff.record, context.summary_writer(diff.record))
    app.output.show(Group(title, Text(), _diff_table(diff, bar_cells), Text(), *lines))


def _title(record: CompactionRecord, made_by: str) -> Text:
    text = Text(f"The last compaction: {record.tokens_before:,} → {record.tokens_after:,} tokens", "bold")
    stages = one_line(stages_in_words(record.stages, made_by))
    return text.append(f"  {local_time(record.at)}, {one_line(record.trigger)}: {stages}", style="not bold dim")


def _diff_table(diff: CompactionDiff, bar_cells: int) -> Table:
    """A row for each kind: before, difference, after; and both as a bar if it has room."""
    right = [Column(title, justify="right", no_wrap=True) for title in ("before", "change", "kept")]
    # In a narrow window only the label shrinks.
    bars = [Column("", no_wrap=True)] if bar_cells > 0 else []
    table = new_table("", *right, *bars, has_header=True, gap=1, indent=1)
    most = max(1, *diff.before.values(), *diff.after.values())
    for kind, before in diff.before.items():
        after = diff.after.get(kind, 0)
        change = f"{'−' if after < before else '+'}{abs(after - before):,}" if after != before else ""
        kept, cells = (-(-tokens * max(0, bar_cells) // most) for tokens in (after, max(before, after)))
        bar = Text(BLOCK * kept, style=f"part.{kind}").append(FREE * (cells - kept), style="quiet")
        label = Text(LABELS[kind], no_wrap=True, overflow="ellipsis")
        table.add_row(label, f"{before:,}", change, f"{after:,}", *([bar] if bars else []))
    return table


def _newest_gone(diff: CompactionDiff) -> list[int]:
    hidden = (seq for first, last in reversed(diff.hidden) for seq in range(last, first - 1, -1))
    return sorted((*islice(hidden, NAMED), *diff.stubs))[-NAMED:]


def _diff_lines(diff: CompactionDiff, entries: Sequence[Entry]) -> Iterator[RenderableType]:
    """The effect on the messages, the kept facts, and the possible next steps."""
    hidden = sum(last - first + 1 for first, last in diff.hidden)
    stubs = as_text((seq, seq) for seq in diff.stubs)
    shortened = [f"{counted(diff.shortened, 'message')} shortened ({stubs})"] if diff.shortened else []
    gone = [f"{counted(hidden, 'message')} hidden ({as_text(diff.hidden)})"] if hidden else []
    if gone or shortened:
        yield Text(", ".join((*gone, *shortened)) + ".")
        named = _newest_gone(diff)
        yield message_table([(seq, entries[seq - 1].message) for seq in named])
        if older := hidden + diff.shortened - len(named):
            yield Text(f"and {older:,} before these; /context show {named[0]} prints one.", style="quiet")
        yield Text()
    if diff.record.kept:
        yield Text(f"Can still be read: {one_line(kept_in_words(diff.record.kept))}.")
    summary = next((item.id for item in reversed(diff.made) if isinstance(item, Summary)), "")
    reads = f"/context show {one_line(summary, 20)} · " if summary else ""
    ids = [one_line(item.id, 20) for item in diff.made] or [str(diff.hidden[0][0])] if diff.hidden else []
    restores = f"/context expand {ids[-1]} · " if ids else ""
    yield Parted(f"Try: {reads}{restores}/context undo", style="quiet")
