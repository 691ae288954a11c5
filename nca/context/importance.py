"""Score how much each message matters, by code: what a compaction gives up first.

A message has the score of its strongest mark. The scores are ranks, not measurements. Stages give up the lowest score
first, and among equals the oldest.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, field

from nca.context.file_reads import FileUse, file_use, main_argument
from nca.context.record.known import Known
from nca.context.record.outcomes import is_failed
from nca.context.record.statements import Stated, names_in
from nca.messages import Entry, Message, ToolCall

PINNED = (1.0, "pinned")
SYSTEM = (1.0, "a system message")
RULE = (1.0, "a rule you stated")
WORDS = (0.9, "your words")
UNFIXED = (0.85, "an error without a fix")
DECISION = (0.8, "a decision")
IN_PLAY = (0.7, "a file in play")
REFERRED = (0.6, "referred to later")
CHANGE = (0.55, "a change to a file")
ANSWER = (0.5, "an answer")
OUTPUT = (0.3, "tool output")
CHATTER = (0.2, "said between calls")
SYNTHETIC = (0.2, "added by nca")
FIXED = (0.1, "an error fixed later")
SUPERSEDED = (0.1, "superseded")

BULK_CHARS = 8_000
BULK_COSTS = 0.1
"""What a tool's output of more than so many characters loses: it takes the room of many others."""
FILES_IN_PLAY = 6
"""The files that were read or changed last."""
READS_COMPARED = 8
"""Later reads of one file that an earlier one is held against, so that the pass stays linear."""
ARGUMENT_CHARS = 400
"""How much of a call's main argument is searched for names."""

Mark = tuple[float, str]


@dataclass(frozen=True, slots=True)
class Importance:
    """`score` is 0 … 1; `reasons` say in a few words why, the strongest first."""

    score: float
    reasons: tuple[str, ...]


@dataclass(slots=True)
class _Later:
    """What comes after a message, gathered on the way back through the log."""

    succeeded: set[tuple[str, str]] = field(default_factory=set)
    """(tool, main argument) of calls that succeeded."""
    repeated: set[tuple[str, str]] = field(default_factory=set)
    """(tool, arguments) of calls that succeeded."""
    reads: dict[str, list[FileUse]] = field(default_factory=dict)
    files: set[str] = field(default_factory=set)
    mentioned: set[str] = field(default_factory=set)
    """Names and paths that talk and calls mention, and whose source has not come yet."""

    def use(self, path: str) -> None:
        if len(self.files) < FILES_IN_PLAY:
            self.files.add(path)

    def refers_to(self, names: Set[str]) -> bool:
        """Whether one of these is mentioned later; a mention counts for the nearest message before it."""
        held = names & self.mentioned
        self.mentioned -= held
        return bool(held)


def importances(entries: Iterable[Entry], known: Known, pins: Set[int] = frozenset()) -> dict[int, Importance]:
    """The importance of each message by its seq, by these messages alone; `known` as in `record.known`."""
    log = list(entries)
    answered = _answered(log)
    later = _Later()
    found: dict[int, Importance] = {}
    for entry in reversed(log):
        message = entry.message
        names = frozenset(name for name, _ in known.names(message))
        call = answered.get(entry.seq)
        if message.role == "tool":
            mark = _of_result(message, call, names, later)
        else:
            mark = _of_talk(message, known.stated(message), names, later)
        found[entry.seq] = _weighed(PINNED if entry.seq in pins else mark, message)
        if message.role == "tool" and call is not None and not is_failed(call, message):
            _note_success(call, later)
        elif message.role in ("user", "assistant"):
            _note_talk(message, names, later)
    return found


def _answered(log: Sequence[Entry]) -> dict[int, ToolCall]:
    """The call that each result answers, by the result's seq."""
    waiting: dict[str, ToolCall] = {}
    answered: dict[int, ToolCall] = {}
    for entry in log:
        message = entry.message
        for call in message.tool_calls:
            waiting[call.id] = call
        if message.role == "tool" and message.tool_call_id in waiting:
            answered[entry.seq] = waiting.pop(message.tool_call_id)
    return answered


def _of_result(message: Message, call: ToolCall | None, names: Set[str], later: _Later) -> Mark:
    if is_failed(call, message):
        is_fixed = call is not None and (call.name, main_argument(call)) in later.succeeded
        return FIXED if is_fixed else UNFIXED
    use = file_use(call) if call is not None else None
    if use is not None:
        later.use(use.path)
    is_referred = later.refers_to(names | {use.path} if use is not None else names)
    if call is not None and _is_superseded(call, use, later):
        return SUPERSEDED
    if use is not None and use.path in later.files:
        return IN_PLAY
    if is_referred:
        return REFERRED
    return CHANGE if use is not None and use.is_write else OUTPUT


def _is_superseded(call: ToolCall, use: FileUse | None, later: _Later) -> bool:
    """Whether a later call shows the same anew. What a change to a file says is no picture of anything."""
    if use is None:
        return (call.name, call.arguments) in later.repeated
    return not use.is_write and any(other.covers(use) for other in later.reads.get(use.path, ()))


def _of_talk(message: Message, facts: Stated, names: Set[str], later: _Later) -> Mark:
    """What a person, a model or nca said."""
    is_referred = later.refers_to(names)
    if message.role == "system":
        return SYSTEM
    if message.role == "user":
        own = RULE if facts.rules else WORDS
        return SYNTHETIC if message.is_synthetic else own
    if facts.decisions:
        return DECISION
    if is_referred:
        return REFERRED
    if any(use is not None and use.is_write for use in map(file_use, message.tool_calls)):
        return CHANGE
    return CHATTER if message.tool_calls else ANSWER


def _weighed(mark: Mark, message: Message) -> Importance:
    score, reason = mark
    if message.role != "tool" or mark is PINNED or len(message.text) <= BULK_CHARS:
        return Importance(score, (reason,))
    reasons = ("bulk",) if mark is OUTPUT else (reason, "bulk")
    return Importance(round(max(0.0, score - BULK_COSTS), 2), reasons)


def _note_success(call: ToolCall, later: _Later) -> None:
    later.succeeded.add((call.name, main_argument(call)))
    later.repeated.add((call.name, call.arguments))
    use = file_use(call)
    if use is not None and not use.is_write:
        reads = later.reads.setdefault(use.path, [])
        if len(reads) < READS_COMPARED:
            reads.append(use)


def _note_talk(message: Message, names: Set[str], later: _Later) -> None:
    """What a message and its calls mention, and the files that they use."""
    later.mentioned |= names
    for part in message.attachments:
        later.use(part.path)
    for call in message.tool_calls:
        use = file_use(call)
        if use is None:
            later.mentioned |= names_in(main_argument(call)[:ARGUMENT_CHARS])
        else:
            later.use(use.path)
            later.mentioned.add(use.path)
