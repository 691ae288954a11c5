"""Steps, and open steps: an assistant message with calls, and the results that answer it.

A result answers a step only until the assistant speaks again: a later result is an orphan.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from nca.messages import Message

Span = tuple[int, int]
"""First and last position (from 0) in a sequence of messages; no cut may fall inside."""
Spans = Callable[[Sequence[Message]], Iterable[Span]]
"""The stretches of a conversation that must stay whole."""
Repair = Callable[[list[Message]], list[Message]]
"""The conversation so that it obeys the rule. The list handed in may be returned and is never changed."""


@dataclass(slots=True)
class Step:
    """`results` maps a call's place among the calls to the position of the result that answers it.

    `repeated` are the positions of further results for calls that have one already.
    """

    position: int
    calls: tuple[str, ...]
    results: dict[int, int] = field(default_factory=dict)
    repeated: list[int] = field(default_factory=list)
    _waiting: dict[str, list[int]] = field(init=False)
    """The places of the calls without a result, by id, the first of them last."""

    def __post_init__(self) -> None:
        self._waiting = {}
        for place in range(len(self.calls) - 1, -1, -1):
            self._waiting.setdefault(self.calls[place], []).append(place)

    @property
    def last(self) -> int:
        return max((*self.results.values(), *self.repeated), default=self.position)

    @property
    def is_open(self) -> bool:
        return len(self.results) < len(self.calls)

    def take(self, call_id: str, position: int) -> None:
        """Note a result, if it is for this step."""
        waiting = self._waiting.get(call_id)
        if waiting:
            self.results[waiting.pop()] = position
        elif waiting is not None:
            self.repeated.append(position)


def steps(messages: Sequence[Message]) -> Iterator[Step]:
    """The steps in order; positions are places in `messages`, from 0."""
    step: Step | None = None
    for position, message in enumerate(messages):
        if message.role == "assistant":
            if step is not None:
                yield step
            step = Step(position, tuple(call.id for call in message.tool_calls)) if message.tool_calls else None
        elif message.role == "tool" and step is not None:
            step.take(message.tool_call_id, position)
    if step is not None:
        yield step


def open_step_spans(messages: Sequence[Message]) -> Iterable[Span]:
    """The step that waits for results, to the end of the log. A request closes it (`tool_pairs`), the log does not."""
    position = open_step(messages)
    return () if position is None else ((position, len(messages) - 1),)


def open_step(messages: Sequence[Message]) -> int | None:
    """The position of the last assistant message if its calls wait for results, else None."""
    for position in range(len(messages) - 1, -1, -1):
        message = messages[position]
        if message.role == "assistant":
            answered = Counter(later.tool_call_id for later in messages[position + 1 :] if later.role == "tool")
            return position if Counter(call.id for call in message.tool_calls) - answered else None
    return None


def unseen_step(messages: Sequence[Message]) -> int | None:
    """The position of the last assistant message if it has all its results and nothing follows them yet.

    The model has asked for them and has not seen them: hidden now, it could only ask again.
    """
    for position in range(len(messages) - 1, -1, -1):
        message = messages[position]
        if message.role == "assistant":
            return position if message.tool_calls and open_step(messages) is None else None
        if message.role == "user" and not message.is_synthetic:
            return None
    return None
