"""The losses of another agent's compaction, as text for its hook: the person's words, effects, failures, open work.

The text is made by the engine that makes nca's own records, over the log before the compaction.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import msgspec

from nca.context.file_reads import arguments_of
from nca.context.history import History
from nca.context.record.compose import plain_record
from nca.context.record.past import is_answer
from nca.context.record.piece import Section
from nca.context.record.said import said_in
from nca.context.record.text import HEADINGS
from nca.context.repeats import FAILED_BEFORE
from nca.context.view import Range, without_ranges
from nca.messages import Entry, Message, ToolCall
from nca.sessions.transfer import SessionCopy

_LISTS = ("TodoWrite", "todowrite", "todo_write", "write_todos", "update_plan", "todo")
"""Tools of Claude Code, opencode, Qwen Code, Gemini CLI, Codex and nca. A call holds the whole list."""
_CREATE, _UPDATE = "TaskCreate", "TaskUpdate"
"""Tools of Claude Code. A call is about one task; the result of the first one says its number."""
_NUMBER = re.compile(r"#(\w+)")
_SAYS = ("content", "step", "subject", "title", "description")
_DOING = ("in_progress", "doing")
_OVER = ("completed", "done", "cancelled", "deleted")


def keeps_lists(call: ToolCall) -> bool:
    """Whether a call only keeps such a list."""
    return call.name in (*_LISTS, _CREATE, _UPDATE)


def open_work(messages: Iterable[Message]) -> list[str]:
    """One line for each item that is not done, as of the newest call that worked; what is being done is marked."""
    waiting: dict[str, ToolCall] = {}
    whole: list[tuple[str, str]] = []
    tasks: dict[str, tuple[str, str]] = {}
    for message in messages:
        waiting |= {call.id: call for call in message.tool_calls if keeps_lists(call)}
        call = waiting.pop(message.tool_call_id, None) if message.role == "tool" and not message.is_error else None
        if call is None:
            continue
        arguments = arguments_of(call)
        if call.name in _LISTS:
            whole = _items(arguments) or whole
        elif call.name == _CREATE and (number := _NUMBER.search(message.text)):
            tasks[number[1]] = _said(arguments), "pending"
        elif (task := str(arguments.get("taskId", ""))) in tasks:
            subject, status = tasks[task]
            tasks[task] = _said(arguments) or subject, str(arguments.get("status") or status)
    rows = ((text, status) for text, status in (*whole, *tasks.values()) if text and status not in _OVER)
    return [f"- {text} (in progress)" if status in _DOING else f"- {text}" for text, status in rows]


def _items(arguments: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The items of a list, with the status of each."""
    found: list[tuple[str, str]] = []
    for key, value in arguments.items():
        for item in value if isinstance(value, list) else ():
            if isinstance(item, dict):
                found.append((_said(item), str(item.get("status", "pending"))))
            elif isinstance(item, str) and key in ("doing", "open", "done"):
                found.append((item, key))
    return found


def _said(item: Mapping[str, Any]) -> str:
    return next(
        (" ".join(text.split()) for key in _SAYS if isinstance(text := item.get(key), str) and text.strip()), ""
    )


MOST_CHARS = 10_000
"""Claude Code keeps a longer text in a file, and its model sees only the beginning."""
MOST_WORK_CHARS = 2_000
WORDS_RATIO = 0.9
"""The person's words have so much of the room before all else: a compaction keeps what was done far better."""
CHARS_PER_TOKEN = 4.2
"""The first guess of the room; prose has so many."""
TRIES = 5
FULL_RATIO, ALMOST_RATIO = 0.95, 0.98
"""A text that fills so much of the room is long enough; the next room is aimed at so much of it."""
START = (
    "[A record that nca made of this session before the compaction. It is data, and no new message of the user: look up"
    " here what the summary leaves out. What the user said is in their own words.]"
)
_FAILED = FAILED_BEFORE.partition("{")[0]
_NAMES = f"\n\n{HEADINGS[Section.NAMES]}"
OPEN_WORK = "### What is open on your list"
CUT = "\n[cut]"


class Handover:
    """The log before a compaction, ready to be told of.

    clean     takes keys and passwords out of a text
    standing  the text that the agent's model can read after the compaction, if it has been made
    """

    def __init__(self, copy: SessionCopy, clean: Callable[[str], str], standing: str = "") -> None:
        self._clean = clean
        self._aside = copy.view(copy.head_view).aside
        self._history = History(Entry(one.seq, without_handovers(one.message), one.at) for one in copy.entries)
        self._words = [entry.seq for entry in copy.entries if said_in(entry.message) is not None]
        self.text = self.beside(standing)

    def beside(self, standing: str) -> str:
        """The text for a model that can read `standing`: messages in it are left out. "" if nothing is left."""
        spans = without_ranges([(1, self._history.head)], [*self._aside, *self._seen(standing)])
        work = "\n".join(line for line in self._open_work() if line.removeprefix("- ") not in standing)
        start = f"{START}\n\n{OPEN_WORK}\n{_cut(work, MOST_WORK_CHARS)}\n\n" if work else f"{START}\n\n"
        left = MOST_CHARS - len(start)
        rest = without_ranges(spans, [(seq, seq) for seq in self._words])
        words = self._record(without_ranges(spans, rest), int(WORDS_RATIO * left)).partition(_NAMES)[0]
        effects = self._record(rest, left - len(words) - 2)
        return start + "\n\n".join(filter(None, (words, effects))) if work or words or effects else ""

    def _record(self, spans: tuple[Range, ...], chars: int) -> str:
        """The record of these messages in at most this many characters."""
        best, room = "", int(chars / CHARS_PER_TOKEN)
        for _ in range(TRIES if spans else 0):
            text = self._clean(plain_record(self._history, spans, room))
            if len(best) < len(text) <= chars:
                best = text
            elif len(text) <= chars:
                break  # more room tells nothing more
            if FULL_RATIO * chars <= len(text) <= chars:
                break
            room = max(1, int(room * ALMOST_RATIO * chars / max(len(text), 1)))
        return best or (_cut(text, chars) if spans else "")

    def _seen(self, standing: str) -> Iterator[Range]:
        """Words of the person and answers that can be read there from end to end, and calls that keep a list."""
        folded = " ".join(standing.split())
        kept: set[str] = set()
        for entry in self._history.entries:
            message = entry.message
            if message.tool_calls and not message.text.strip() and all(map(keeps_lists, message.tool_calls)):
                kept |= {call.id for call in message.tool_calls}
                yield entry.seq, entry.seq
            elif message.tool_call_id in kept or (folded and (said := _words(message)) and said in folded):
                yield entry.seq, entry.seq

    def _open_work(self) -> list[str]:
        live = without_ranges([(1, self._history.head)], self._aside)
        messages = (self._history.message(seq) for first, last in live for seq in range(first, last + 1))
        return [self._clean(line) for line in open_work(messages)]


def without_handovers(message: Message) -> Message:
    """The message without an earlier handover, which some agents put after a result or a prompt."""
    places = [place for mark in (START, _FAILED) if (place := message.text.find(mark)) >= 0]
    if not places:
        return message
    kept = message.text[: min(places)].rstrip().removesuffix("<hook_context>").rstrip()
    return msgspec.structs.replace(message, content=kept)


def _words(message: Message) -> str:
    said = said_in(message) if message.role == "user" else None
    text = said.typed if said is not None and not said.beside else message.text if is_answer(message) else ""
    return " ".join(text.split())


def _cut(text: str, chars: int) -> str:
    """The beginning, cut at a line."""
    return text if len(text) <= chars else text[: chars - len(CUT)].rpartition("\n")[0] + CUT
