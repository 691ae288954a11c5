"""A step: an assistant message with tool calls, and the results that answer it.

A result answers a step only until the assistant speaks again: what comes later is an orphan.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from nca.messages import Message


@dataclass(slots=True)
class Step:
    """`results` maps a call's place among the calls to the position of the result that answers it.

    `repeated` are the positions of further results for calls that have one already.
    """

    position: int
    calls: tuple[str, ...]
    results: dict[int, int] = field(default_factory=dict)
    repeated: list[int] = field(default_factory=list)

    @property
    def last(self) -> int:
        return max((*self.results.values(), *self.repeated), default=self.position)

    @property
    def is_open(self) -> bool:
        return len(self.results) < len(self.calls)

    def take(self, call_id: str, position: int) -> None:
        """Note a result, where it is one for this step."""
        for place, waiting in enumerate(self.calls):
            if waiting == call_id and place not in self.results:
                self.results[place] = position
                return
        if call_id in self.calls:
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
