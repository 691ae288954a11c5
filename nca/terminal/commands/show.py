"""/show: print a tool call with its arguments and its whole output, or the model's thoughts.
/copy: copy an answer, or a code block of it, to the clipboard.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from nca.agent.turn import GOES_ON
from nca.context.file_reads import is_cut_off
from nca.errors import UsageError
from nca.humanize import counted, duration, natural
from nca.messages import Entry, Message, ToolCall
from nca.terminal.commands.command import App, Command, Suggestion, takes_no
from nca.terminal.input.pastes import installed, run_program
from nca.terminal.render.file_changes import diff_lines, left_out
from nca.terminal.render.markdown_blocks import BlockSplitter
from nca.terminal.render.sanitize import one_line, to_terminal

MOST_LINES, MOST_CHARS = 500, 60_000
"""The most of one output, or of one turn's thoughts, that a terminal shows."""
MOST_ARGUMENT_LINES = 60
DIFF_LINES = 2_000
SUGGESTED = 20
_ABOUT_CHARS = 70
_THOUGHTS = ("thoughts", "reasoning")
_LAST = "last"


@dataclass(frozen=True, slots=True)
class Called:
    """A call in the log, and its result if there is one; `later` calls with the same id came after it."""

    call: ToolCall
    result: Entry | None
    later: int


class ShowCommand(Command):
    name = "show"
    shows = "always"

    async def run(self, app: App, argument: str) -> None:
        word = argument.strip().lower()
        backwards = app.conversation.context.backwards
        if word in _THOUGHTS:
            _show_thoughts(app, backwards())
            return
        word = word if word != _LAST else "1"
        number = natural(word) or 0
        if word and not number:
            raise takes_no(self.name, argument, "Valid: thoughts, last, or a number (1 is the last call).")
        found = next(islice(calls_backwards(backwards()), max(number, 1) - 1, None), None)
        if found is None and not word and _thoughts(backwards()):
            _show_thoughts(app, backwards())
        elif found is None:
            count = sum(1 for _ in calls_backwards(backwards()))
            has = f"This conversation has {counted(count, 'tool call')}; /show 1 is the last."
            raise UsageError(has if count else "No tool was called in this conversation yet.")
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
    failed = "failed: " if found.result and _has_failed(found.result.message) else ""
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
    what, style = ("Failed", "failure") if _has_failed(message) else ("Result", "quiet")
    yield Text(f"{what} (message {found.result.seq}{took}):", style=style)
    yield from _bounded(_text_of(message), f"; /context show {found.result.seq} prints the whole")


def _has_failed(result: Message) -> bool:
    return result.is_error and not is_cut_off(result.text)


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
        yield from _bounded_lines(text[:half], where)
        yield Text(f"… {len(text) - MOST_CHARS:,} characters are left out{where}", style="notice")
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


OSC_52_MOST_BYTES = 74_994
"""xterm's limit: its whole sequence may have 100,000 bytes. Terminals silently drop a longer one."""


class Copied(NamedTuple):
    """Whether it was copied, and how or why not, for a person."""

    is_done: bool
    how: str


def copy_text(text: str, send_codes: Callable[[str], bool], environment: Mapping[str, str]) -> Copied:
    """Put `text`, which is safe already, on the clipboard."""
    for command in _programs(environment):
        encoding = "utf-16-le" if command[0].lower().endswith("clip.exe") else "utf-8"
        if run_program(command, text.encode(encoding, "replace")) is not None:
            return Copied(is_done=True, how=f"with {command[0]}")
    data = text.encode("utf-8", "replace")
    if len(data) > OSC_52_MOST_BYTES:
        return Copied(
            is_done=False, how=f"terminals take {OSC_52_MOST_BYTES:,} bytes at most, and this has {len(data):,}"
        )
    if send_codes(f"\x1b]52;c;{base64.b64encode(data).decode()}\x1b\\"):
        return Copied(is_done=True, how="through the terminal, if it allows that")
    return Copied(is_done=False, how="found no terminal and no program (pbcopy, wl-copy, xclip, xsel, clip)")


def _programs(environment: Mapping[str, str]) -> list[list[str]]:
    """Programs that may be installed, best first. Over ssh a program would fill the other machine's clipboard."""
    found: list[list[str]] = []
    if environment.get("TMUX"):
        found.append(["tmux", "load-buffer", "-w", "-"])
    if not any(environment.get(name) for name in ("SSH_CONNECTION", "SSH_TTY", "SSH_CLIENT")):
        if sys.platform == "darwin":
            found.append(["pbcopy"])
        if environment.get("WAYLAND_DISPLAY"):
            found.append(["wl-copy"])
        if environment.get("DISPLAY"):
            found += [["xclip", "-selection", "clipboard"], ["xsel", "--clipboard", "--input"]]
        if environment.get("WSL_DISTRO_NAME"):
            found.append(["clip.exe"])
    return installed(found, environment)


SUGGESTED_ANSWERS = 9
_ANSWER_CHARS = 60


class CopyCommand(Command):
    name = "copy"

    def needs_person(self, app: App, argument: str) -> str:
        return "starts a program"

    async def run(self, app: App, argument: str) -> None:
        words = argument.lower().split()
        is_code = words[:1] == ["code"]
        number = _number(words[1:] if is_code else words, argument)
        answers = answers_backwards(app.conversation.context.backwards())
        if is_code:
            blocks = [block for answer in answers for block in reversed(code_blocks(answer))]
            text, what = _pick(blocks, number, "block of code")
        else:
            text, what = _pick(list(islice(answers, number)), number, "answer")
        # Copied text is as safe as the text shown here: a terminal may take pasted controls for keys.
        text = to_terminal(text)
        copied = await asyncio.to_thread(copy_text, text, app.output.send_codes, os.environ)
        size = f"{len(text):,} characters"
        if not copied.is_done:
            raise UsageError(f"Not copied: {copied.how}.", advice="/export writes the session to a file.")
        app.output.show(f"Copied {what} ({size}) {copied.how}.")

    def complete(self, app: App, argument: str) -> Iterable[Suggestion]:
        if "code".startswith(argument.lower()):
            yield Suggestion("code", "the last block of code")
        answers = answers_backwards(app.conversation.context.backwards())
        for number, answer in enumerate(islice(answers, SUGGESTED_ANSWERS), 1):
            if str(number).startswith(argument):
                yield Suggestion(str(number), one_line(answer, _ANSWER_CHARS))


def answers_backwards(entries: Iterable[Entry]) -> Iterable[str]:
    """The model's answers to the person, last first; the conversation is given newest first.

    An answer that was asked to go on is one with what followed.
    """
    later, goes_on = "", False
    for message in (entry.message for entry in entries):
        if message.source == "nca" and message.text in GOES_ON:
            goes_on = True
        elif message.role == "assistant" and message.text.strip():
            if later and not goes_on:
                yield later.strip()
            later, goes_on = message.text + later if goes_on else message.text, False
    if later:
        yield later.strip()


def code_blocks(markdown: str) -> list[str]:
    """The blocks of code of an answer, in order, each with a newline at its end."""
    splitter = BlockSplitter()
    found: dict[int, list[str]] = {}
    for block in [*splitter.feed(markdown), *splitter.finish()]:
        if block.kind == "code":
            found.setdefault(block.fence, []).append(block.text)
    return ["\n".join(pieces) + "\n" for pieces in found.values()]


def _number(words: Sequence[str], argument: str) -> int:
    if not words:
        return 1
    if len(words) == 1 and (number := natural(words[0])):
        return number
    raise takes_no("copy", argument, "Valid: code, or a number (1 is the last).")


def _pick(texts: Sequence[str], number: int, what: str) -> tuple[str, str]:
    if len(texts) < number:
        few = f"{number:,} is too large: 1 is the last {what}, {len(texts):,} the first."
        raise UsageError(few if texts else f"There is no {what} yet.")
    return texts[number - 1], f"the last {what}" if number == 1 else f"{what} {number} from the end"
