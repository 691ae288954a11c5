"""Read aider's chat history: Markdown, in which each start of aider begins a chat.

The person's lines begin with `#### ` and end in two spaces; aider's own begin with `> `; the rest is
the model's. What aider showed was not sent. It says how many tokens an answer took, and to which files aider applied
the edits in its text: each of these is read as a call of a tool.

A heading of the fourth level in an answer looks like the person's, except for the two spaces; if something has
removed these from the file, each such heading is taken for the person's
(Aider-AI/aider, aider/io.py and aider/utils.py).
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path

import msgspec

from nca.messages import Message, ToolCall, Usage, clean_text
from nca.transcripts.formats import building as make
from nca.transcripts.formats.records import About, Format, Record, Said, StoredSession
from nca.transcripts.formats.source import Source, folders_above

FILE_NAME = ".aider.chat.history.md"
_START = re.compile(r"^# aider chat started at (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)", re.MULTILINE)
_PERSON = re.compile(r"####( (.*))?$")
_NOT_SENT = re.compile(r"[/!](?!(ask|code|architect|context|help)\s+\S)")
"""A command of aider or of the shell, except for those that send what follows them."""
_TOKENS = re.compile(
    r"Tokens: (?P<sent>[\d.]+k?) sent,(?: (?P<written>[\d.]+k?) cache write,)?(?: (?P<read>[\d.]+k?) cache hit,)?"
    r" (?P<received>[\d.]+k?) received\.(?: Cost: \$(?P<cost>[\d.]+) message)?"
)
_MODEL = re.compile(r"(?:Main model|Model): (\S+)")
_APPLIED = re.compile(r"^Applied edit to (.+)$", re.MULTILINE)
APPLY = "apply_edit"
"""The name of the tool for aider itself, which finds the edits in the answer's text."""


class Aider(Format):
    def knows(self, source: Source) -> bool:
        return _START.match(source.head.decode("utf-8", "replace").lstrip("\ufeff\r\n ")) is not None

    def sessions(self, source: Source) -> Iterable[StoredSession]:
        """Without those in which nobody said anything: aider also writes down that it was started."""
        for chat in filter(_is_said, _chats(source)):
            about = About(directory=_directory(source), title=_first_said(chat), at=_time(chat.key))
            yield self.stored(source, about, chat.key)

    def records(self, source: Source, key: str) -> Iterable[Record]:
        asked = [chat for chat in _chats(source) if (chat.key == key if key else _is_said(chat))]
        return _records(asked[-1], _directory(source)) if asked else ()

    def files(self, env: Mapping[str, str], home: Path) -> Iterable[Path]:
        """Those of the folder that one works in and of the folders above: aider writes one beside each repository."""
        found = [folder / FILE_NAME for folder in folders_above(env)] + [home / FILE_NAME]
        if given := env.get("AIDER_CHAT_HISTORY_FILE"):
            found.append(Path(given))
        return [path for path in dict.fromkeys(found) if os.path.isfile(path)]


FORMAT = Aider("aider")


def _directory(source: Source) -> str:
    return str(source.path.parent) if source.path else ""


class _Chat(msgspec.Struct):
    """The text between two starts. `line`: the number of its first line."""

    key: str
    line: int
    lines: list[str]


def _chats(source: Source) -> Iterator[_Chat]:
    """The chats of the file; those that started in the same second get a number."""
    text = source.read().decode("utf-8", "replace").removeprefix("\ufeff").replace("\r\n", "\n")
    starts = list(_START.finditer(text))
    counts: Counter[str] = Counter()
    line = 1 + text.count("\n", 0, starts[0].start() if starts else None)
    for place, start in enumerate(starts, 1):
        body = text[start.start() : starts[place].start() if place < len(starts) else None]
        counts[start[1]] += 1
        key = start[1] if counts[start[1]] == 1 else f"{start[1]} ({counts[start[1]]})"
        yield _Chat(key, line + 1, body.split("\n")[1:])
        line += body.count("\n")


def _time(key: str) -> float:
    """When the chat started; aider writes the time of the place."""
    try:
        return datetime.strptime(key[:19], "%Y-%m-%d %H:%M:%S").astimezone().timestamp()
    except (ValueError, OverflowError, OSError):
        return 0.0


class _Block(msgspec.Struct):
    """Lines of one speaker: person, aider or model."""

    speaker: str
    line: int
    lines: list[str]


def _blocks(chat: _Chat) -> Iterator[_Block]:
    block: _Block | None = None
    is_marked = any(line.endswith("  ") for line in chat.lines if _PERSON.match(line))
    for number, line in enumerate(chat.lines, chat.line):
        said = _PERSON.match(line)
        if said and (line.endswith("  ") or not is_marked):
            speaker, text = "person", (said[2] or "").rstrip()
        elif line.startswith("> ") or line == ">":
            speaker, text = "aider", line[2:].rstrip()
        elif not line.strip() and block and block.speaker == "aider":
            speaker, text = "aider", ""
        else:
            speaker, text = "model", line
        if block is None or block.speaker != speaker:
            if block is not None:
                yield block
            block = _Block(speaker, number, [])
        block.lines.append(text)
    if block is not None:
        yield block


def _is_said(chat: _Chat) -> bool:
    """Whether there is a line that is not aider's own."""
    return any(line.strip() and not line.startswith(">") for line in chat.lines)


def _first_said(chat: _Chat) -> str:
    """What the person sent first; "" if nothing was sent."""
    said = (one for one in _records(chat, "") if isinstance(one, Said) and one.message.role == "user")
    return next((one.message.text for one in said if not one.is_aside), "")


def _records(chat: _Chat, directory: str) -> Iterator[Record]:
    at, model = _time(chat.key), ""
    yield About(session=chat.key, directory=directory)
    waiting: Said | None = None
    for block in _blocks(chat):
        text = clean_text("\n".join(block.lines)).strip()
        place = f"line {block.line}"
        if not text:
            continue
        if block.speaker == "aider" and (found := _MODEL.search(text)):
            model = found[1]
        if waiting is not None:
            yield from _answered(waiting, text if block.speaker == "aider" else "", block.line)
            waiting = None
        if block.speaker == "model":
            waiting = Said(message=Message("assistant", text), at=at, model=model, place=place)
        else:
            is_aside = block.speaker == "aider" or _NOT_SENT.match(text) is not None
            said = make.printed(text) if block.speaker == "aider" else make.person(text, "typed")
            if said is not None:
                yield Said(message=said, at=at, is_aside=is_aside, place=place)
    if waiting is not None:
        yield waiting


def _answered(answer: Said, shown: str, line: int) -> Iterator[Said]:
    """The answer with its tokens and a call for each edit that was applied, and their results.

    shown, line  what aider showed after it, and the number of its first line
    """
    edits = [(f"edit-{line}-{number}", found) for number, found in enumerate(_APPLIED.finditer(shown), 1)]
    calls = tuple(ToolCall(call_id, APPLY, make.as_json({"path": found[1]})) for call_id, found in edits)
    message = msgspec.structs.replace(answer.message, tool_calls=calls)
    yield msgspec.structs.replace(answer, message=message, usage=_usage(shown))
    for call_id, found in edits:
        yield Said(message=make.tool_result(call_id, APPLY, found[0]), at=answer.at, place=f"line {line}")


def _usage(text: str) -> Usage | None:
    """Of an answer: aider rounds the figures, and writes 2.3k for 2,300."""
    found = _TOKENS.search(text)
    if found is None:
        return None
    sent, received, read, written = (_count(found[name]) for name in ("sent", "received", "read", "written"))
    return Usage(sent, received, read, written, cost=float(found["cost"]) if found["cost"] else None)


def _count(text: str | None) -> int:
    if not text:
        return 0
    try:
        return min(round(float(text.rstrip("k")) * (1000 if text.endswith("k") else 1)), 2**53)
    except (ValueError, OverflowError):
        return 0
