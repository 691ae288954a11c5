"""/show: print a tool call with its arguments and its whole output, or the model's thoughts."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from nca.errors import UsageError
from nca.humanize import counted, duration
from nca.messages import Entry, Message, ToolCall
from nca.terminal.commands.command import App, Command, Suggestion, takes_no
from nca.terminal.render.file_changes import diff_lines, left_out
from nca.terminal.render.sanitize import one_line, to_terminal

MOST_LINES, MOST_CHARS = 500, 60_000
"""The most of one output, or of one turn's thoughts, that a terminal shows."""
MOST_ARGUMENT_LINES = 60
DIFF_LINES = 2_000
SUGGESTED = 20
_ABOUT_CHARS = 70
_THOUGHTS = ("thoughts", "reasoning")


@dataclass(frozen=True, slots=True)
class Called:
    """A call in the log, and its result if there is one; `later` calls with the same id came after it."""

    call: ToolCall
    result: Entry | None
    later: int


class ShowCommand(Command):
    name = "show"
    aliases = ("output",)
    usage = "/show [N]\n/show thoughts"
    about = "Show the last tool call with its whole output, the Nth latest, or the model's thoughts"

    async def run(self, app: App, argument: str) -> None:
        word = argument.strip().lower()
        backwards = app.conversation.context.backwards
        if word in _THOUGHTS:
            _show_thoughts(app, backwards())
            return
        number = int(word) if word.isdecimal() and len(word) < 9 else 0
        if word and number < 1:
            raise takes_no(self.name, argument, "Valid: thoughts, or a number (1 is the last call).")
        found = next(islice(calls_backwards(backwards()), max(number, 1) - 1, None), None)
        if found is None and not word and _thoughts(backwards()):
            _show_thoughts(app, backwards())
        elif found is None:
            count = sum(1 for _ in calls_backwards(backwards()))
            has = f"This session has {counted(count, 'tool call')}; /show 1 is the last."
            raise UsageError(has if count else "No tool was called in this session yet.")
        else:
            app.output.show(Group(*_whole(app, found)))

    def complete(self, app: App, argument: str) -> Iterable[Suggestion]:
        backwards = app.conversation.context.backwards
        for number, found in enumerate(islice(calls_backwards(backwards()), SUGGESTED), 1):
            if str(number).startswith(argument):
                yield Suggestion(str(number), _about(found))
        if _THOUGHTS[0].startswith(argument.lower()) and (chars := sum(map(len, _thoughts(backwards())))):
            yield Suggestion(_THOUGHTS[0], f"what it thought in the last turn, {chars:,} characters")


def calls_backwards(entries: Iterable[Entry]) -> Iterator[Called]:
    """The calls of a conversation that is given newest first, the last one first.

    Results come after the message that asked for them.
    """
    results: dict[str, Entry] = {}
    seen: Counter[str] = Counter()
    for entry in entries:
        message = entry.message
        if message.role == "tool":
            results[message.tool_call_id] = entry
        elif message.role == "assistant":
            for call in reversed(message.tool_calls):
                yield Called(call, results.pop(call.id, None), seen[call.id])
                seen[call.id] += 1
            results.clear()


def _about(found: Called) -> str:
    text = _text_of(found.result.message) if found.result else "no result"
    failed = "failed: " if found.result and found.result.message.is_error else ""
    arguments = " ".join(value for _, value in _arguments(found.call))
    return one_line(f"{found.call.name} {one_line(arguments, 40)} → {failed}{text[:400]}", _ABOUT_CHARS)


def _whole(app: App, found: Called) -> Iterator[RenderableType]:
    yield Text(one_line(found.call.name, 200), style="bold")
    for name, value in _arguments(found.call):
        lines = to_terminal(value).rstrip("\n").split("\n")
        label = f"  {one_line(name, 60)}: " if name else "  "
        if len(lines) == 1:
            yield Padding(Text.assemble((label.lstrip(), "accent"), lines[0][:MOST_CHARS]), (0, 0, 0, 2), expand=False)
            continue
        yield Text(label.rstrip(), style="accent")
        yield from (Text(f"    {line}") for line in lines[:MOST_ARGUMENT_LINES])
        yield from left_out(len(lines) - MOST_ARGUMENT_LINES)
    ended = app.output.recent.of(found.call.id, later=found.later)
    if ended is not None and ended.diff:
        yield from diff_lines(ended.diff, DIFF_LINES)
    if found.result is None:
        yield Text("It has no result.", style="notice")
        return
    message = found.result.message
    took = f", {duration(ended.seconds)}" if ended is not None else ""
    what = "Failed" if message.is_error else "Result"
    yield Text(f"{what} (message {found.result.seq}{took}):", style="failure" if message.is_error else "quiet")
    yield from _bounded(_text_of(message), f"; /context show {found.result.seq} prints the whole")


def _arguments(call: ToolCall) -> list[tuple[str, str]]:
    """Names and values; an unnamed value if it is not an object."""
    try:
        values = json.loads(call.arguments or "{}")
    except (ValueError, RecursionError):
        values = None
    if not isinstance(values, dict):
        return [("", call.arguments)]
    return [(str(name), value if isinstance(value, str) else json.dumps(value)) for name, value in values.items()]


def _text_of(message: Message) -> str:
    return message.text or "(no text)"


def _bounded(text: str, where: str) -> Iterator[Text]:
    """The beginning and the end of a long text."""
    text = to_terminal(text)
    if len(text) > MOST_CHARS:
        half = MOST_CHARS // 2
        left_out = len(text) - MOST_CHARS
        yield from _bounded_lines(text[:half], where)
        yield Text(f"… {left_out:,} characters are left out{where}", style="notice")
        yield from _bounded_lines(text[-half:], where)
    else:
        yield from _bounded_lines(text, where)


def _bounded_lines(text: str, where: str) -> Iterator[Text]:
    lines = text.split("\n")
    if len(lines) <= MOST_LINES:
        yield Text(text)
        return
    half = MOST_LINES // 2
    yield Text("\n".join(lines[:half]))
    yield Text(f"… {len(lines) - 2 * half:,} lines are left out{where}", style="notice")
    yield Text("\n".join(lines[-half:]))


def _thoughts(entries: Iterable[Entry]) -> list[str]:
    """The reasoning since the person's last message."""
    found: list[str] = []
    for entry in entries:
        if entry.message.role == "user" and not entry.message.is_synthetic:
            break
        if entry.message.role == "assistant" and entry.message.reasoning.strip():
            found.append(entry.message.reasoning.strip())
    return found[::-1]


def _show_thoughts(app: App, entries: Iterable[Entry]) -> None:
    thoughts = _thoughts(entries)
    if not thoughts:
        raise UsageError("The last answer came without thoughts.")
    parts = _bounded("\n\n".join(thoughts), "; /export writes all of it")
    app.output.show(Group(*(part if part.style else Text(part.plain, "quiet") for part in parts)))
