"""What messages state and name, and what calls came to, looked for once in a session."""

from __future__ import annotations

from collections.abc import Iterable

from nca.context.record.outcomes import Outcome, outcome_of
from nca.context.record.statements import Names, Stated, names_of, stated
from nca.messages import Message, ToolCall


class Known:
    """By the identity of a message, which is held with what was found, so that no other can take that identity."""

    def __init__(self) -> None:
        self._stated: dict[int, tuple[Message, Stated]] = {}
        self._names: dict[int, tuple[Message, Names]] = {}
        self._outcomes: dict[int, tuple[Message, ToolCall, Outcome]] = {}

    def stated(self, message: Message) -> Stated:
        held = self._stated.get(id(message))
        if held is None:
            held = self._stated[id(message)] = (message, stated(message))
        return held[1]

    def names(self, message: Message) -> Names:
        held = self._names.get(id(message))
        if held is None:
            held = self._names[id(message)] = (message, names_of(message.text))
        return held[1]

    def outcome(self, call: ToolCall, result: Message) -> Outcome:
        held = self._outcomes.get(id(result))
        # In a broken log a result may stand behind more than one call of its id.
        if held is None or held[1] is not call:
            held = self._outcomes[id(result)] = (result, call, outcome_of(call, result))
        return held[2]

    def keep(self, messages: Iterable[Message]) -> None:
        """Forget all messages but these."""
        kept = set(map(id, messages))
        self._stated = {key: held for key, held in self._stated.items() if key in kept}
        self._names = {key: held for key, held in self._names.items() if key in kept}
        self._outcomes = {key: held for key, held in self._outcomes.items() if key in kept}
