"""Read aider's chat history: Markdown, in which each start of aider begins a chat.

What the person says stands behind `#### `, each line ending in two spaces; what aider shows behind `> `; the rest is
the model's. What aider showed was not sent; of its figures each answer's tokens are read. A heading of the fourth level
in an answer looks like the person's, but for the two spaces; where something has removed these from the file, each such
heading is taken for the person's
(Aider-AI/aider, aider/io.py and aider/utils.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from pathlib import Path

import msgspec

from nca.messages import Message, Usage, clean_text
from nca.transcripts.formats.building import some_messages
from nca.transcripts.formats.records import About, Record, Said, StoredSession
from nca.transcripts.formats.source import Source
from nca.transcripts.formats.stores import folders_above, stored

FILE_NAME = ".aider.chat.history.md"
_START = re.compile(r"# aider chat started at (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)")
_PERSON = re.compile(r"####( (.*))?$")
_NOT_SENT = re.compile(r"[/!](?!(ask|code|architect|context|help)\s+\S)")
"""A command of aider or of the shell, but for those that send what follows them."""
_TOKENS = re.compile(
    r"Tokens: (?P<sent>[\d.]+k?) sent,(?: (?P<written>[\d.]+k?) cache write,)?(?: (?P<read>[\d.]+k?) cache hit,)?"
    r" (?P<received>[\d.]+k?) received\.(?: Cost: \$(?P<cost>[\d.]+) message)?"
)
_MODEL = re.compile(r"(?:Main model|Model): (\S+)")


class Aider:
    name = "aider"
    title = "aider"

    def knows(self, source: Source) -> bool:
        return _START.match(source.head.decode("utf-8", "replace").lstrip("\ufeff\r\n ")) is not None

    def sessions(self, source: Source) -> Iterable[StoredSession]:
        for key, started in _starts(source):
            yield stored(self.name, source, key=key, directory=_directory(source), at=started)

    def read(self, source: Source, key: str = "") -> Iterator[Record]:
        key = key or next((last for last, _ in reversed(list(_starts(source)))), "")
        return some_messages(_records(source, key), source, self.title)

    def files(self, env: Mapping[str, str], home: Path) -> Iterable[Path]:
        """Those of the folder that one works in and of the folders above: aider writes one beside each repository."""
        found = [folder / FILE_NAME for folder in folders_above(env)] + [home / FILE_NAME]
        if given := env.get("AIDER_CHAT_HISTORY_FILE"):
            found.append(Path(given))
        return [path for path in dict.fromkeys(found) if path.is_file()]


FORMAT = Aider()


def _directory(source: Source) -> str:
    return str(source.path.parent) if source.path else ""


def _lines(source: Source) -> Iterator[tuple[int, str, str]]:
    """Each line with its number and the key of its chat; the line that starts a chat is the first of it."""
    key, keys = "", set[str]()
    with source.open() as file:
        for number, raw in enumerate(file, 1):
            line = raw.decode("utf-8", "replace").removeprefix("\ufeff").rstrip("\r\n")
            if start := _START.match(line):
                key = unused = start[1]
                while key in keys:
                    key = f"{unused} ({len([one for one in keys if one.startswith(unused)]) + 1})"
                keys.add(key)
            yield number, line, key


def _starts(source: Source) -> Iterator[tuple[str, float]]:
    seen = ""
    for _, _, key in _lines(source):
        if key and key != seen:
            seen = key
            yield key, _time(key)


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


def _blocks(source: Source, key: str) -> Iterator[_Block]:
    block: _Block | None = None
    is_marked = any(
        line.endswith("  ") for _, line, its_key in _lines(source) if its_key == key and _PERSON.match(line)
    )
    for number, line, its_key in _lines(source):
        if its_key != key or _START.match(line):
            continue
        said = _PERSON.match(line)
        if said and (line.endswith("  ") or not is_marked):
            speaker, text = "person", (said[2] or "").rstrip()
        elif line.startswith("> ") or line == ">":
            speaker, text = "aider", line[2:].rstrip()
        else:
            speaker, text = "model", line
        if block is None or block.speaker != speaker:
            if block is not None:
                yield block
            block = _Block(speaker, number, [])
        block.lines.append(text)
    if block is not None:
        yield block


def _records(source: Source, key: str) -> Iterator[Record]:
    at, model = _time(key), ""
    yield About(session=key, directory=_directory(source))
    waiting: Said | None = None
    for block in _blocks(source, key):
        text = clean_text("\n".join(block.lines)).strip()
        place = f"line {block.line}"
        if block.speaker == "aider":
            if found := _MODEL.search(text):
                model = found[1]
            if waiting is not None and (usage := _usage(text)):
                waiting = msgspec.structs.replace(waiting, usage=usage)
        if waiting is not None and text:
            yield waiting
            waiting = None
        if not text:
            continue
        if block.speaker == "model":
            waiting = Said(message=Message("assistant", text), at=at, model=model, place=place)
        else:
            is_aside = block.speaker == "aider" or _NOT_SENT.match(text) is not None
            yield Said(message=Message("user", text), at=at, is_aside=is_aside, place=place)
    if waiting is not None:
        yield waiting


def _usage(text: str) -> Usage | None:
    """Of an answer: aider rounds the figures, and writes 2.3k for 2,300."""
    found = _TOKENS.search(text)
    if found is None:
        return None
    read, written = _count(found["read"]), _count(found["written"])
    return Usage(
        _count(found["sent"]),
        _count(found["received"]),
        read,
        written,
        cost=float(found["cost"]) if found["cost"] else None,
    )


def _count(text: str | None) -> int:
    if not text:
        return 0
    try:
        return min(round(float(text.rstrip("k")) * (1000 if text.endswith("k") else 1)), 2**53)
    except (ValueError, OverflowError):
        return 0
