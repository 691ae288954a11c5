"""A call with its result, and both in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import msgspec

from nca.context.admission import SAVED
from nca.context.file_reads import (
    NOT_RUN,
    arguments_of,
    changes_file,
    is_cut_off,
    only_reads,
    path_of,
    runs_program,
    says_failed,
    texts_in,
)
from nca.context.record.excerpt import GAP, excerpt, on_one_line, whole_parts
from nca.messages import Message, ToolCall

ASKED_CHARS = 150
IDENTITY_CHARS = 800
"""Calls that ask for the same in so many characters are the same call."""
LONG_ARGUMENT_CHARS = 200
"""A longer argument is content: it says less about the call than the others do."""
_MAIN = ("command", "cmd", "script", "code", "input", "pattern", "query", "regex", "url", "question")
CHARS_PER_TOKEN = 5
"""Characters of a call's request, and of the result's fields, for each token of a line's form."""
SHORT_FIELD_CHARS = 40
MOST_DEPTH = 16
"""An object nested deeper stands as it is."""
JSON_CHARS, RESULTS_REMEMBERED = 20_000, 1_024


class Others(NamedTuple):
    """The results of one tool, among which a field is told: how many have each field, and how many there are."""

    fields: Counter[str]
    results: int


NO_OTHERS = Others(Counter(), 0)


@dataclass(frozen=True)
class Called:
    """A call with its result, which is None while the call is open. `place` counts the calls of one message.

    is_repeated  it failed, and the same call was made again since
    is_left      it has no result although the conversation went on
    """

    seq: int
    place: int
    call: ToolCall
    result: Message | None = None
    result_seq: int = 0
    is_repeated: bool = False
    is_left: bool = False

    @property
    def has_run(self) -> bool:
        """Whether it was made: it has a result, and nobody refused it."""
        return self.result is not None and not self.result.text.startswith(NOT_RUN)

    @cached_property
    def is_cut_off(self) -> bool:
        """Whether it was stopped, or its process killed: nobody knows whether it failed, or what it changed."""
        return self.is_left or (self.result is not None and self.result.is_error and is_cut_off(self.result.text))

    @cached_property
    def has_failed(self) -> bool:
        return self.has_run and self.result is not None and self.result.is_error and not self.is_cut_off

    @cached_property
    def only_reads(self) -> bool:
        return only_reads(self.call)

    @cached_property
    def changed_file(self) -> str:
        """The file that it writes, by its arguments; "" for another call."""
        return changes_file(self.call)

    @property
    def is_seen(self) -> bool:
        """Whether its effect can be seen elsewhere: it only read, or it changed a file."""
        return self.only_reads or bool(self.changed_file)

    @cached_property
    def is_effect(self) -> bool:
        """Whether it may have changed something that nothing else tells of, even if it failed: a payment that got no
        answer in time may be made."""
        return not self.is_seen and not runs_program(self.call) and (self.has_run or self.is_left)

    @cached_property
    def has_worked(self) -> bool:
        """Whether nothing says that it failed: neither a mark nor the result itself, as many programs keep no mark."""
        if self.result is None or not self.has_run or self.has_failed:
            return False
        return not self.is_cut_off and not says_failed(self.result.text)

    @property
    def still_fails(self) -> bool:
        return self.has_failed and not self.is_repeated


def asked(call: ToolCall, chars: int = ASKED_CHARS, *, has_content: bool = False) -> str:
    """A call's request: its tool, the argument that says most, and the other short ones.

    has_content  its long arguments are shown beside this
    """
    arguments = arguments_of(call)
    main = next((str(arguments[key]) for key in _MAIN if arguments.get(key)), "") or path_of(arguments)
    if has_content and len(main) > LONG_ARGUMENT_CHARS:
        main = ""
    rest = [
        f"{key}={_flat(value)}"
        for key, value in arguments.items()
        if value not in (None, "", main) and len(str(value)) <= LONG_ARGUMENT_CHARS
    ]
    parts = [main, *rest] if arguments else [call.arguments]
    return f"{call.name} {whole_parts([one for one in parts if one], chars)}".strip()


def long_arguments(call: ToolCall) -> str:
    """The content in a call's arguments, which `asked` leaves out. Of a change only what is there now: tools name what
    was there before it."""
    values = [value for value in texts_in(arguments_of(call)) if len(value) > LONG_ARGUMENT_CHARS]
    return "\n".join(values[-1:] if changes_file(call) else values)


def brought(result: Message | None) -> str:
    """A result's text, without the note on nca's own file: the message's number leads to that as well."""
    text = result.told.strip() if result is not None else ""
    before, _, note = text.rpartition("\n")
    return before.rstrip() if note.startswith(SAVED) else text


def came_of(called: Called, tokens: int, others: Others = NO_OTHERS) -> str:
    """A call's result, in a line: for a JSON object those whole fields that are not in the call."""
    text = brought(called.result)
    given = {"", *texts_in(arguments_of(called.call))}
    new = [said for value, said in _fields(text) if value not in given]
    return whole_fields(new, CHARS_PER_TOKEN * tokens, others) or on_one_line(excerpt(text, tokens)) or "nothing"


def whole_fields(fields: Sequence[str], chars: int, others: Others = NO_OTHERS) -> str:
    """As many fields as have room, those first that say most."""
    left, kept = chars + 1, set[int]()
    for place in _by_weight(fields, others):
        left -= len(fields[place]) + 1
        if left < 0:
            break
        kept.add(place)
    if not kept:
        return whole_parts(fields, chars)
    said = [field if place in kept else GAP for place, field in enumerate(fields)]
    return " ".join(one for one, before in zip(said, ["", *said], strict=False) if not one == before == GAP)


def _by_weight(fields: Sequence[str], others: Others) -> list[int]:
    """The places of fields: short ones first, which are names, numbers and states, and last what every result says.

    By turns one that no other result of the tool has, such as a number, and one that some have, such as a state.
    """
    ranks: list[tuple[bool, bool, int, bool]] = []
    turns: Counter[bool] = Counter()
    for field in fields:
        count = others.fields[field]
        is_shared, is_usual = count > 1, 1 < count == others.results
        ranks.append((len(field) > SHORT_FIELD_CHARS, is_usual, turns[is_shared], is_shared))
        turns[is_shared] += not is_usual
    return sorted(range(len(fields)), key=ranks.__getitem__)


def others_of(results: Iterable[Called]) -> Others:
    """The fields of these results."""
    fields: Counter[str] = Counter()
    count = 0
    for called in results:
        if called.result is not None:
            count += 1
            fields.update({said for _, said in _fields(brought(called.result))})
    return Others(fields, count)


@lru_cache(maxsize=RESULTS_REMEMBERED)
def _fields(text: str) -> list[tuple[str, str]]:
    """Of a JSON object each field that holds something, also in objects within it: its value, and both in words."""
    if not text.startswith("{") or len(text) > JSON_CHARS:
        return []
    try:
        return list(_leaves(msgspec.json.decode(text, type=dict[str, object])))
    except (msgspec.DecodeError, RecursionError):
        return []


def _leaves(fields: Mapping[str, object], depth: int = 1) -> Iterator[tuple[str, str]]:
    if depth > MOST_DEPTH:
        raise RecursionError
    for key, value in fields.items():
        if isinstance(value, dict):
            yield from _leaves(value, depth + 1)
        elif value not in (None, "", []):
            yield _flat(value), " ".join(f"{key}:{_flat(value)}".split())


def _flat(value: object) -> str:
    if isinstance(value, dict):
        return " ".join(f"{key}:{_flat(one)}" for key, one in value.items())
    return ",".join(map(_flat, value)) if isinstance(value, list) else str(value)
