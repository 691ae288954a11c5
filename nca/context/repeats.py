"""Repeated calls: a failure with nothing changed since, or a circle of calls that bring nothing new.

One law for every log: it reads messages in their order and knows nothing else. It looks back to the person's newest
message, because the person may have changed anything before they wrote it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import takewhile
from posixpath import basename
from typing import NamedTuple

import msgspec

from nca.context.file_reads import NOT_RUN, arguments_of, changes_file, only_reads
from nca.context.record.excerpt import excerpt, on_one_line
from nca.messages import Message, ToolCall

MOST_ROUNDS = 3
"""After so many rounds without anything new the model is told; one more ends the turn."""
MOST_ROUNDS_COMPACTED = 5
"""The same with a compaction between the rounds: after one the model may need to read the same again."""
MOST_STEPS = 400
"""The newest steps in which a circle is looked for."""
NUDGE = (
    "[You have made the same calls with the same results three times. "
    "Do something else, or say what is missing; once more, and the turn ends.]"
)
NUDGE_COMPACTED = (
    "[You have made the same calls with the same results {rounds} times; compactions lie between them. Nothing new "
    "came of it. Write down what you need from these results, read less at once, or say what is missing.]"
)
NOTICE = (
    "The model has made the same calls {rounds} times, with compactions between them, and nothing new came of it. "
    "A larger window, or a smaller task, may help."
)
FAILED_BEFORE = "[This call failed before{where}, and nothing that was done since can have changed that: {result}]"
RESULT_TOKENS = 60
_REMARKS = ("description",)
"""Arguments with the purpose of a call, not its action."""
_RUNS_ON = re.compile(r"(?<![&>|\\])&(?![&>])|\b(?:nohup|setsid|disown)\b")
"""A command that leaves something running. It may change things at any time."""
_TOOK = re.compile(r"\b\d+(?:\.\d+)? ?(?:m?s|sec(?:onds?)?)\b")
"""A duration is no news."""

Asked = tuple[str, str]
"""A call's request: the tool's name, and its arguments in one spelling."""


class Failure(NamedTuple):
    """A call that failed: its result in short, and the number of the message with it; 0 if nobody can look it up."""

    text: str
    seq: int = 0

    def line(self) -> str:
        """One line that tells the model of it."""
        where = f" (message {self.seq})" if self.seq else ""
        return FAILED_BEFORE.format(where=where, result=on_one_line(self.text))


class Round(NamedTuple):
    """The state of the newest step: how many times its circle has been walked, and whether a compaction was within.

    is_new  it is the first step with this number of rounds
    """

    rounds: int
    is_new: bool = False
    is_compacted: bool = False

    @property
    def is_stuck(self) -> bool:
        return self.rounds > (MOST_ROUNDS_COMPACTED if self.is_compacted else MOST_ROUNDS)

    @property
    def nudge(self) -> str:
        """The text for the model, or ""."""
        if not self.is_new or self.rounds < MOST_ROUNDS or self.is_stuck:
            return ""
        return NUDGE_COMPACTED.format(rounds=self.rounds) if self.is_compacted else NUDGE

    @property
    def notice(self) -> str:
        """The text for the person if the model was told and still continues, or ""."""
        return NOTICE.format(rounds=self.rounds) if self.nudge and self.rounds > MOST_ROUNDS else ""


class _Step(NamedTuple):
    """A step that brought nothing new: its requests, and the view at that time."""

    asked: frozenset[Asked]
    view_id: int


class Repeats:
    """Reads a log message by message.

    reads            says of a call whether it is known to change nothing
    marks_refusals   the tools mark a change that they refused because the file was not read. If they do not, a look
                     at the file may be all that any failed change of it waits for.
    """

    def __init__(self, reads: Callable[[ToolCall], bool] = only_reads, *, marks_refusals: bool = True) -> None:
        self._reads = reads
        self._marks_refusals = marks_refusals
        self._forget()

    def _forget(self) -> None:
        self._open: dict[str, ToolCall] = {}
        self._failed: dict[Asked, Failure] = {}
        self._unread: dict[Asked, str] = {}
        """Names of files by the calls that may change them only once they were read."""
        self._runs_on = False
        self._seen: set[tuple[Asked, int]] = set()
        self._step: dict[Asked, int] = {}
        self._idle: list[_Step] = []
        self._round = Round(1)

    def failed_before(self, call: ToolCall) -> Failure | None:
        """How this call failed before, if nothing that ran since can have changed what it will find."""
        ahead = takewhile(lambda one: one.id != call.id, self._open.values())
        return None if self._runs_on or not all(map(self._reads, ahead)) else self._failed.get(asked(call))

    def open_call(self, call_id: str) -> ToolCall | None:
        """The call of this id, while it has no result."""
        return self._open.get(call_id)

    @property
    def round(self) -> Round:
        """As of the newest step with all its results."""
        return self._round

    def note(self, message: Message, seq: int = 0, view_id: int = 0) -> None:
        """Read the next message. A result that has been read already counts once.

        view_id  the view in which the model saw it: another one means a compaction between
        """
        if message.role == "user" and not message.is_synthetic:
            self._forget()
        elif message.role == "assistant":
            # Some programs write a message for each call of one answer.
            self._open = {**({} if self._step else self._open), **{call.id: call for call in message.tool_calls}}
            self._step = {}
        elif message.role == "tool" and (call := self._open.pop(message.tool_call_id, None)) is not None:
            self._note_result(call, message, seq)
            self._step[asked(call)] = hash(_TOOK.sub("", message.text))
            if not self._open:
                self._note_step(view_id)

    def _note_result(self, call: ToolCall, result: Message, seq: int) -> None:
        if result.text.startswith(NOT_RUN):
            return
        # A change of one file is made whole or not at all.
        if not (self._reads(call) or (result.is_error and changes_file(call))):
            self._failed.clear()
            self._runs_on = self._runs_on or runs_on(call)
        if not result.is_error:
            self._note_read(call)
        if result.is_error and not result.is_synthetic:
            if (path := changes_file(call)) and (result.asks_to_read or not self._marks_refusals):
                self._unread[asked(call)] = basename(path)
            self._failed[asked(call)] = Failure(excerpt(result.text.strip(), RESULT_TOKENS), seq)
        else:
            self._failed.pop(asked(call), None)

    def _note_read(self, call: ToolCall) -> None:
        """A file that may be changed only after it was read has been read now."""
        for one in [one for one, name in self._unread.items() if name in call.arguments]:
            self._failed.pop(one, None)
            del self._unread[one]

    def _note_step(self, view_id: int) -> None:
        news = set(self._step.items()) - self._seen
        self._seen |= news
        if news:
            self._idle, self._round = [], Round(1)
            return
        self._idle = [*self._idle[1 - MOST_STEPS :], _Step(frozenset(self._step), view_id)]
        rounds, is_compacted = max(_rounds(self._idle))
        self._round = Round(rounds, rounds > self._round.rounds, is_compacted)


def _rounds(idle: Sequence[_Step]) -> Iterator[tuple[int, bool]]:
    """For each number of newest steps: how many times their requests were made, and whether in several views."""
    distinct: set[Asked] = set()
    views: set[int] = set()
    made = 0
    for step in reversed(idle):
        made += len(step.asked)
        distinct |= step.asked
        views.add(step.view_id)
        # The first time of all was no repetition, so it is not among these steps.
        yield 1 + made // len(distinct), len(views) > 1


def asked(call: ToolCall) -> Asked:
    """Calls that ask for the same have the same."""
    arguments = arguments_of(call)
    if not arguments:
        return call.name, call.arguments.strip()
    said = {key: value for key, value in arguments.items() if key not in _REMARKS or len(arguments) == 1}
    return call.name, msgspec.json.encode(said, order="deterministic").decode()


def runs_on(call: ToolCall) -> bool:
    """Whether a call leaves something running."""
    arguments = arguments_of(call)
    is_behind = any(arguments.get(key) in (True, "true") for key in ("background", "run_in_background", "isBackground"))
    return is_behind or any(
        isinstance(text := arguments.get(key), str) and _RUNS_ON.search(text) is not None for key in ("command", "cmd")
    )
