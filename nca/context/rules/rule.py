"""The two kinds of function that a rule may have."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from nca.messages import Message

Span = tuple[int, int]
"""First and last position (from 0) in a sequence of messages; no cut may fall inside."""
Spans = Callable[[Sequence[Message]], Iterable[Span]]
"""The stretches of a conversation that must stay whole."""
Repair = Callable[[list[Message]], list[Message]]
"""The conversation so that it obeys the rule. The list handed in may be returned and is never changed."""
