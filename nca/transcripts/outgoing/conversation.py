"""A session as other agents keep one: its messages in order, and at most one compaction among them.

The compaction is what the current view hides. Its summary stands for all messages before it; a message that the view
still shows there (a pinned one) is in the summary as text.

The session is written to a file that the agent does not have yet.
"""

from __future__ import annotations

import json
import os
import shlex
import uuid
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import msgspec

from nca.context.record.text import HOW_TO_READ
from nca.context.rules import BLOCK_REPAIRS
from nca.context.rules.calls import with_results_in_order, with_unique_ids
from nca.context.rules.messages import with_one_assistant, with_user_first
from nca.context.view import Marker, Stub, Summary, without_recall
from nca.errors import NcaError, UsageError, system_reason
from nca.messages import SIGNED_THOUGHTS, Entry, Message, Usage
from nca.sessions.transfer import SessionCopy
from nca.sessions.usage import UsageRow
from nca.shapes.shaped import Origins, as_chat_message
from nca.transcripts.descriptions import replacements
from nca.transcripts.export_formats import refuse_existing, write_private
from nca.transcripts.formats.records import Format
from nca.wire import content_text, content_to_wire

_RULES = (*BLOCK_REPAIRS, with_results_in_order, with_one_assistant)
_LOOK_UP = " (N) is the number of a message: `nca sessions show {session}` shows all."
_WHOLE = "`nca sessions show {session}` shows the whole conversation."
_LATEST = 32_503_680_000.0
"""The year 3000, in seconds."""
_LEFT_OUT = "The earlier conversation was left out."


class Sent(msgspec.Struct, frozen=True):
    """A message. `at`: seconds since the epoch, later than the message before by a millisecond or more.

    model, usage  of an answer, if they are known
    """

    message: Message
    at: float
    model: str = ""
    usage: Usage | None = None


class Outgoing(msgspec.Struct, frozen=True, kw_only=True):
    """A session that is to be written.

    id        a new UUID: each export is a session of its own
    name      as the person named it; "" if they did not
    earlier   the messages that the compaction replaced; empty without one
    summary   what stands for them; "" without a compaction
    later     the messages after it
    left_out  how many of what no agent has a place for, by its noun, which takes the s of the plural at its end
    cut       how many messages the view shows shortened; they are written so
    """

    id: str
    directory: str
    name: str
    earlier: tuple[Sent, ...]
    summary: str
    later: tuple[Sent, ...]
    left_out: dict[str, int]
    cut: int = 0

    @property
    def sent(self) -> tuple[Sent, ...]:
        """All messages."""
        return (*self.earlier, *self.later)

    @property
    def began_at(self) -> float:
        return self.sent[0].at

    @property
    def compacted_at(self) -> float:
        """Between the last message before the compaction and the first after it."""
        return self.earlier[-1].at + 0.0005

    def new_id(self, name: object) -> str:
        """A UUID for a part of the session. The same name gives the same one."""
        return str(uuid.uuid5(uuid.UUID(self.id), str(name)))


class Media(NamedTuple):
    """A picture or a file: its base64 data, or where it is."""

    media_type: str
    data: str
    address: str
    name: str = ""

    @property
    def named(self) -> str:
        """What stands for it where it cannot be shown."""
        return f"[{self.name or self.address or self.media_type}, not shown]"


def outgoing(copy: SessionCopy) -> Outgoing:
    """The whole conversation: the log without what was rewound or asked beside it. Raises UsageError for none."""
    replaced = replacements(copy)
    talk = copy.conversation
    said = [entry for entry in talk if entry.message.role != "system"]
    if not said:
        raise UsageError("This session has no conversation to write: nothing was said, or all of it was taken back.")
    hidden = [entry.seq for entry in said if isinstance(replaced.get(entry.seq), Summary | Marker)]
    last = hidden[-1] if hidden else 0
    stubs = {seq: item for seq, item in replaced.items() if isinstance(item, Stub)}
    shown = [_as_shown(entry, stubs.get(entry.seq)) for entry in said if entry.seq > last]
    earlier = _repaired([entry for entry in said if entry.seq <= last])
    later = _repaired(shown)
    is_compacted = bool(hidden and earlier)
    sent = _dated(copy, said, with_unique_ids(with_user_first([*earlier, *later])))
    begin = len(sent) - len(later) if is_compacted else 0
    left_out = {"system prompt": len(talk) - len(said), "set-aside message": len(copy.entries) - len(talk)}
    return Outgoing(
        id=str(uuid.uuid4()),
        directory=copy.info.directory,
        name=copy.info.name,
        earlier=sent[:begin],
        summary=_summary(copy, said, last) if is_compacted else "",
        later=sent[begin:],
        left_out={**left_out, "pin": len(copy.pins)},
        cut=len([entry for entry in said if entry.seq > last and entry.seq in stubs]),
    )


def _as_shown(entry: Entry, stub: Stub | None) -> Entry:
    if stub is None:
        return entry
    return Entry(entry.seq, msgspec.structs.replace(entry.message, content=without_recall(stub.text)), entry.at)


def _repaired(entries: Sequence[Entry]) -> list[Message]:
    """The messages so that each call has its result, none is empty, and answers do not follow one another."""
    messages = [entry.message for entry in entries]
    for rule in _RULES:
        messages = rule(messages)
    return messages


def _dated(copy: SessionCopy, entries: Sequence[Entry], messages: Sequence[Message]) -> tuple[Sent, ...]:
    """The messages with the time, model and usage of what they were made of."""
    origins = Origins([entry.message for entry in entries])
    reports: dict[int, UsageRow] = {row.seq + 1: row for row in copy.usage if row.seq}
    sent: list[Sent] = []
    at = _possible(copy.info.created_at)
    for message in messages:
        place = origins.find(message)
        entry = None if place is None else entries[place]
        at = _possible(max(entry.at if entry else 0.0, at + 0.001))
        report = reports.get(entry.seq) if entry else None
        is_answer = message.role == "assistant"
        model = (report.model if report else copy.info.model) if is_answer else ""
        sent.append(Sent(message, at, model, report.usage if report and is_answer else None))
    return tuple(sent)


def _possible(at: float) -> float:
    """A time that every agent can read, whatever an imported file says."""
    return max(0.0, min(at, _LATEST))


def _summary(copy: SessionCopy, entries: Sequence[Entry], last: int) -> str:
    """What stands for the messages up to `last`, in the order of the conversation."""
    replaced = replacements(copy)
    texts: dict[str, None] = {}
    for entry in entries:
        if entry.seq > last:
            break
        item = replaced.get(entry.seq)
        if isinstance(item, Summary | Marker):
            texts[without_recall(item.text)] = None
        else:
            shown = without_recall(item.text) if isinstance(item, Stub) else content_text(entry.message.content)
            calls = "".join(f"\n{call.name}({call.arguments})" for call in entry.message.tool_calls)
            texts[f"{entry.message.role}: {shown}{calls}"] = None
    text = "\n\n".join(filter(None, texts)) or _LEFT_OUT
    session = copy.info.id
    if HOW_TO_READ in text:
        return text.replace(HOW_TO_READ, _LOOK_UP.format(session=session))
    return f"{text}\n\n{_WHOLE.format(session=session)}" if session else text


def pieces(message: Message) -> list[str | Media]:
    """What a message says as the model saw it in nca: texts, and pictures and files."""
    given: Any = content_to_wire(as_chat_message(message).content)
    if not isinstance(given, list):
        return [given] if given else []
    return [_piece(row) for row in given]


def _piece(row: Mapping[str, Any]) -> str | Media:
    if row["type"] == "text":
        return str(row["text"])
    file: Mapping[str, Any] = row.get("file") or {}
    address = str((row.get("image_url") or {}).get("url") or file.get("file_data") or "")
    if address.startswith("data:"):
        kind, _, data = address.removeprefix("data:").partition(";base64,")
        return Media(kind, data, "", str(file.get("filename") or ""))
    return Media("", "", address) if address else f"[{row['type']}, not shown]"


def thoughts(out: Outgoing) -> int:
    """How many messages have thoughts."""
    return len([sent for sent in out.sent if sent.message.reasoning or sent.message.extra.get(SIGNED_THOUGHTS)])


def counts(usage: Usage) -> tuple[int, int, int, int]:
    """The tokens sent without what a cache took or gave, the answer's, those from the cache, and those into it."""
    read, written = usage.cache_read_tokens, usage.cache_write_tokens
    return max(0, usage.prompt_tokens - read - written), usage.completion_tokens, read, written


def iso(at: float) -> str:
    """A time as JavaScript writes it: 2026-11-27T09:30:00.123Z."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


AGENTS = ("claude", "codex", "gemini", "pi")
"""The modules of this package that hold a format, as `AGENT`."""


class Agent(Protocol):
    """An agent whose sessions can be written. `format` reads them again."""

    format: Format

    def place(self, out: Outgoing, env: Mapping[str, str], home: Path) -> Path:
        """Where the agent looks for the session."""

    def beside(self, out: Outgoing, place: Path) -> dict[Path, str]:
        """Files that the agent needs to find the session, and what they hold if they are missing."""
        return {}

    def command(self, out: Outgoing, file: Path) -> str:
        """What resumes the session, in its directory. `file`: where it is."""

    def left_out(self, out: Outgoing) -> dict[str, int]:
        """How many of what this agent has no place for, by name."""

    def rows(self, out: Outgoing) -> Iterator[dict[str, Any]]:
        """The lines of the file."""


class Written(msgspec.Struct, frozen=True, kw_only=True):
    """What was written. `left_out` and `cut` as in `Outgoing`; `place`: where the agent looks for it."""

    file: Path
    place: Path
    agent: str
    command: str
    messages: int
    left_out: dict[str, int]
    cut: int


def agent_named(name: str) -> Agent:
    """Raises UsageError."""
    if name not in AGENTS:
        raise UsageError(f"--as: {name!r} is not valid; valid: {', '.join(AGENTS)}.")
    agent: Agent = import_module(f"{__package__}.{name}").AGENT
    return agent


def write_for(name: str, copy: SessionCopy, env: Mapping[str, str], home: Path, file: str = "") -> Written:
    """Write the session where the agent of this name looks for it, or to `file`. Raises UsageError, NcaError."""
    agent, out = agent_named(name), outgoing(copy)
    place = agent.place(out, env, home)
    target = Path(file) if file else place
    refuse_existing(target, advice="Name another FILE.")
    lines = (json.dumps(row, ensure_ascii=False, separators=(",", ":")) for row in agent.rows(out))
    data = "".join(f"{line}\n" for line in lines).encode("utf-8", "replace")
    if not file:
        _make_folder(place.parent)
        for marker, text in agent.beside(out, place).items():
            if not os.path.exists(marker):
                write_private(marker, text.encode())
    write_private(target, data)
    return Written(
        file=target,
        place=place,
        agent=agent.format.title,
        command=f"cd {shlex.quote(out.directory)} && {agent.command(out, target)}",
        messages=len(out.sent),
        left_out={name: count for name, count in {**out.left_out, **agent.left_out(out)}.items() if count},
        cut=out.cut,
    )


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise NcaError(
            f"{folder} cannot be made ({system_reason(error)}).", advice="Name a FILE to write to."
        ) from error
