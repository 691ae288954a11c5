"""What the killed program reports: one JSON line for each thing that the person has seen, and its texts."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable

import msgspec

from nca.messages import Message
from nca.sessions.encoding import encode

PIPE_BYTES = 4_096
"""A write of at most so much to a pipe is whole or not there (POSIX: at least 512; Linux: 4,096)."""


class Fact(msgspec.Struct, frozen=True, tag_field="fact"):
    pass


class Began(Fact, frozen=True, tag="began"):
    """Something was begun; until `Done`, both the state before and the one after are right.

    expected   of what is added: the digest of its whole log; of what is written: that of the file
    """

    what: str
    session: str = ""
    expected: str = ""


class Done(Fact, frozen=True, tag="done"):
    """What was begun has been seen to end."""


class Logged(Fact, frozen=True, tag="logged"):
    session: str
    seq: int
    digest: str


class Seen(Fact, frozen=True, tag="seen"):
    """So many characters of the answer have been shown."""

    session: str
    chars: int


class Ran(Fact, frozen=True, tag="ran"):
    """A call of the tool with a side effect has been seen to end."""

    call: str


class Stands(Fact, frozen=True, tag="stands"):
    """A session as it was seen: how many views, which one is in force, its name, its pins."""

    session: str
    views: int
    view: int
    name: str
    pins: tuple[int, ...]


class Added(Fact, frozen=True, tag="added"):
    session: str
    digest: str


class Deleted(Fact, frozen=True, tag="deleted"):
    session: str


class Written(Fact, frozen=True, tag="written"):
    file: str
    digest: str


class Ended(Fact, frozen=True, tag="ended"):
    """The program is over; `points` is how many places it could have been killed at."""

    points: int


class Gone(Fact, frozen=True, tag="gone"):
    """The zygote's word: the process is no more. `signal` 0: it ended by itself, with `status`."""

    signal: int
    status: int


AnyFact = Began | Done | Logged | Seen | Ran | Stands | Added | Deleted | Written | Ended | Gone

_decoder: msgspec.json.Decoder[AnyFact] = msgspec.json.Decoder(AnyFact)


def tell(fact: Fact, descriptor: int = 1) -> None:
    """At once and whole: a process that is killed next has told it."""
    line = msgspec.json.encode(fact) + b"\n"
    assert len(line) <= PIPE_BYTES
    os.write(descriptor, line)


def hear(line: bytes) -> AnyFact:
    return _decoder.decode(line)


def digest_of(message: Message) -> str:
    return hashlib.sha256(encode(message).encode()).hexdigest()


def digest_of_all(messages: Iterable[Message]) -> str:
    return hashlib.sha256("".join(digest_of(message) for message in messages).encode()).hexdigest()


def prose(name: str, chars: int) -> str:
    """A text that can be made again from its first word. Not all of it is ASCII."""
    words = [f"{name}:{chars}"]
    size = len(words[0])
    while size < chars:
        words.append(f"{name.partition('-')[2] or name}wörd{len(words)}")
        size += 1 + len(words[-1])
    return " ".join(words)[:chars]


def whole_of(text: str) -> str:
    """The text that this one is the beginning of."""
    name, _, chars = text.split(" ", 1)[0].rpartition(":")
    return prose(name, int(chars))
