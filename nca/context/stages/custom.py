"""Stages from other packages: hand them OpenAI-shaped messages and turn their answer into changes of the view.

A stage gets copies of the messages that the view shows. Messages missing from its answer are hidden in whole blocks,
after the text that it put in their place. Changed contents become stubs. nca ignores changes to locked messages, to
half a tool pair, and those that save nothing, and drops an answer that does not match the messages. So no stage can
break a request.

The engine runs no foreign code: `act` yields the question, and `consult`, on any thread, asks the stage. An answer or a
reason comes back, whatever the stage does.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from traceback import format_exception_only
from typing import Any, Literal, Protocol, cast, runtime_checkable

import msgspec

from nca.context.draft import Block, Draft, Part, covered
from nca.context.rules.calls import CALL_UNAVAILABLE, RESULT_UNAVAILABLE
from nca.context.rules.messages import BEGINNING, INTERRUPTED
from nca.context.view import Marker, Summary
from nca.errors import ConfigError, InvalidMessages, NcaError
from nca.humanize import one_line
from nca.messages import Message, clean_text
from nca.wire import content_text, message_from_dict, message_to_dict

Rows = list[dict[str, Any]]
MAX_REASON_CHARS = 300
"""The most that is shown of an exception: a person reads one line."""


@runtime_checkable
class Strategy(Protocol):
    """Neuron's protocol. Messages are OpenAI-shaped; `compact` returns new ones and changes none of those given.

    should_compact   whether to act on these messages, which count `token_count` tokens
    compact          the messages as they should be; a valid request
    token_estimate   tokens of the messages
    """

    def should_compact(self, messages: Sequence[Mapping[str, Any]], token_count: int) -> bool: ...

    def compact(self, messages: Sequence[Mapping[str, Any]]) -> Rows: ...

    def token_estimate(self, messages: Sequence[Mapping[str, Any]]) -> int: ...


@dataclass(slots=True)
class ShownMessage:
    """One message that the view shows: its part, and its seq if it is a message of the log."""

    part: Part
    seq: int
    message: Message


@dataclass(slots=True)
class StageEdits:
    """The meaning of a stage's answer for the messages handed out, by their positions.

    changed    position → the new message, if it is not the old one
    gone       positions that the answer left out
    inserted   new messages in place of gone ones: their positions, from the first to before the last
    """

    changed: dict[int, Message] = field(default_factory=dict)
    gone: set[int] = field(default_factory=set)
    inserted: list[tuple[range, Message]] = field(default_factory=list)


class StageRequest(msgspec.Struct, frozen=True):
    """One question to the stage of this name: the shown messages, and the tokens of the whole request."""

    name: str
    messages: tuple[Message, ...]
    token_count: int


class StageReply(msgspec.Struct, frozen=True):
    """The messages as the stage wants them, or None to leave them as they are; `failure` says why it failed."""

    messages: tuple[Message, ...] | None = None
    failure: str = ""


def act(draft: Draft, name: str) -> Generator[StageRequest, StageReply, str]:
    """Let a stage act on the draft. Returns why its answer was not used, or ""."""
    handed = _shown(draft)
    reply = yield StageRequest(name, tuple(one.message for one in handed), draft.tokens)
    if reply.messages is None:
        return reply.failure
    edits = _read([one.message for one in handed], [one for one in reply.messages if not _is_repair(one)])
    if edits is None:
        return f"the stage {name} gave messages that are not those of the conversation"
    before = draft.raw
    kept = [replace(part, stubs=dict(part.stubs)) if isinstance(part, Block) else part for part in draft.parts]
    _grant(draft, handed, edits, name)
    if draft.raw >= before:
        draft.parts, draft.raw = kept, before
    return ""


def consult(request: StageRequest, load: Callable[[str], Strategy]) -> StageReply:
    """Ask a stage. `load` gives the stage of a name, or raises a ConfigError."""
    name = request.name
    try:
        stage = load(name)
        if not stage.should_compact(_copies(request), request.token_count):
            return StageReply()
        answer: Any = stage.compact(_copies(request))
    except ConfigError as error:
        return StageReply(failure=error.message)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - another's code may raise anything; all continues without it
        return StageReply(failure=f"the stage {name} {reason_of(error)}")
    if isinstance(answer, str | bytes) or not isinstance(answer, Sequence):
        return StageReply(failure=f"the stage {name} gave no list of messages")
    try:
        return StageReply(tuple(message_from_dict(row, index) for index, row in enumerate(answer)))
    except InvalidMessages as error:
        return StageReply(failure=f"the stage {name} returned something that is not a message: {error.message}")
    except Exception as error:  # noqa: BLE001 - its answer may be an object of its own that cannot even be read
        return StageReply(failure=f"the stage {name} returned something that cannot be read: {type(error).__name__}")


def reason_of(error: BaseException) -> str:
    """How foreign code failed, on one line: the kind and message of what it raised, or what an error of nca's says."""
    if isinstance(error, NcaError):
        return f"failed: {one_line(clean_text(str(error)), MAX_REASON_CHARS)}"
    line = next(line for line in format_exception_only(error) if not line[:1].isspace())
    return f"raised {one_line(clean_text(line), MAX_REASON_CHARS)}"


def _copies(request: StageRequest) -> Rows:
    """The messages as dicts that share nothing with the log: a stage may do with them as it likes."""
    return [deepcopy(message_to_dict(message)) for message in request.messages]


def _shown(draft: Draft) -> list[ShownMessage]:
    """The messages that the view shows, the system's first, as they are sent."""
    handed: list[ShownMessage] = []
    for part in draft.parts:
        if isinstance(part, Block):
            handed += [ShownMessage(part, seq, one) for seq, one in zip(part.seqs, draft.shown(part), strict=True)]
        elif (message := draft.history.shown(part)) is not None:
            handed.append(ShownMessage(part, 0, message))
    return sorted(handed, key=lambda one: one.message.role != "system")


def _read(handed: Sequence[Message], answered: Sequence[Message]) -> StageEdits | None:
    """Match the answer with the messages handed out; None if that needs guessing."""
    pairs = _matched(handed, answered)
    known = {_key(message) for message in handed}
    edits = StageEdits(gone=set(range(len(handed))) - set(pairs.values()))
    for place, position in pairs.items():
        if _key(answered[place]) != _key(handed[position]):
            edits.changed[position] = answered[place]
    for new, old in _gaps(pairs, len(answered), len(handed)):
        for place in new:
            # It replaces the messages that are gone here; if none are, it would be something new.
            message = answered[place]
            is_text = message.role in ("user", "system") and isinstance(message.content, str)
            if not old or not is_text or _key(message) in known:
                return None
            edits.inserted.append((old, message))
    return edits


def _matched(handed: Sequence[Message], answered: Sequence[Message]) -> dict[int, int]:
    """The pairs of answered and handed messages, in order: equal ones first, then those with changed content."""
    pairs: dict[int, int] = {}
    places: dict[bytes, list[int]] = {}
    for position, message in enumerate(handed):
        places.setdefault(_key(message), []).append(position)
    limit = len(handed)
    # From the end, because stages mostly leave the newest messages alone.
    for place in range(len(answered) - 1, -1, -1):
        found = [position for position in places.get(_key(answered[place]), ()) if position < limit]
        if found:
            limit = pairs[place] = found[-1]
    for match in (_same_ids, _same_shape):
        for new, old in list(_gaps(pairs, len(answered), len(handed))):
            pairs.update(match(handed, answered, new, old))
    return pairs


def _gaps(pairs: Mapping[int, int], answered: int, handed: int) -> Iterator[tuple[range, range]]:
    """The stretches between neighbours that are matched: places in the answer, positions of messages handed out."""
    place = position = 0
    for next_place, next_position in [*sorted(pairs.items()), (answered, handed)]:
        if place < next_place:
            yield range(place, next_place), range(position, next_position)
        place, position = next_place + 1, next_position + 1


def _same_ids(handed: Sequence[Message], answered: Sequence[Message], new: range, old: range) -> dict[int, int]:
    """Messages that make the same calls, or answer the same one, if that is not ambiguous."""
    pairs: dict[int, int] = {}
    names = [_name(handed[position]) for position in old]
    least = old.start
    for place in new:
        name = _name(answered[place])
        if name[1] and names.count(name) == 1 and (position := old.start + names.index(name)) >= least:
            pairs[place] = position
            least = position + 1
    return pairs


def _same_shape(handed: Sequence[Message], answered: Sequence[Message], new: range, old: range) -> dict[int, int]:
    """As many messages of the same roles: each is the one in its place."""
    is_same = [_name(answered[place]) for place in new] == [_name(handed[position]) for position in old]
    return dict(zip(new, old, strict=True)) if is_same else {}


def _name(message: Message) -> tuple[str, str]:
    """The identity of a message when its content changes: role, and the ids of its calls or of the one it answers."""
    return message.role, message.tool_call_id or "\0".join(call.id for call in message.tool_calls)


def _is_repair(message: Message) -> bool:
    """A text that the engine itself puts into a request if needed."""
    text = message.content if isinstance(message.content, str) else ""
    before, _, after = CALL_UNAVAILABLE.partition("{tool}")
    is_call = message.role == "assistant" and text.startswith(before) and text.endswith(after)
    return is_call or text in (BEGINNING, INTERRUPTED, RESULT_UNAVAILABLE)


def _key(message: Message) -> bytes:
    return msgspec.json.encode(message_to_dict(message))


def _grant(draft: Draft, handed: Sequence[ShownMessage], edits: StageEdits, name: str) -> None:
    for position, message in edits.changed.items():
        one, text = handed[position], content_text(message.content)
        if not isinstance(one.part, Block) or one.part.is_locked or not text.strip():
            continue
        if message.tool_calls == one.message.tool_calls and draft.saving(one.part, one.seq, text) > 0:
            draft.put_stub(one.part, one.seq, text, name)
    leaving = _leaving(handed, edits.gone)
    waiting = list(edits.inserted)
    run: list[Part] = []
    texts: list[Message] = []
    for part in list(draft.parts):
        if id(part) in leaving:
            run.append(part)
            texts += [message for gap, message in waiting if leaving[id(part)] in gap]
            waiting = [(gap, message) for gap, message in waiting if leaving[id(part)] not in gap]
        else:
            _replace(draft, run, texts, name)
            run, texts = [], []
    _replace(draft, run, texts, name)


def _leaving(handed: Sequence[ShownMessage], gone: set[int]) -> dict[int, int]:
    """The parts that may go, with their last position: all of them is gone, and nothing in them is untouchable."""
    last: dict[int, int] = {}
    staying: set[int] = set()
    for position, one in enumerate(handed):
        last[id(one.part)] = position
        if position not in gone or (isinstance(one.part, Block) and one.part.is_locked):
            staying.add(id(one.part))
    return {part: position for part, position in last.items() if part not in staying}


def _replace(draft: Draft, gone: Sequence[Part], texts: Sequence[Message], name: str) -> None:
    if not gone:
        return
    ranges = covered(gone)
    text = "\n\n".join(message.text for message in texts)
    digest = blake2b(f"{name}{ranges}{text}".encode("utf-8", "replace"), digest_size=4).hexdigest()
    if not text:
        draft.replace(gone, Marker(digest, ranges, ""))
        return
    role = cast('Literal["user", "system"]', texts[0].role)
    draft.replace(gone, Summary(digest, ranges, text, prose=text, made_by=name, role=role))
