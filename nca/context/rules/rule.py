"""The protocol of a rule."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from nca.messages import Message

Span = tuple[int, int]
"""First and last position (from 0) in a sequence of messages; no cut may fall inside."""


class Rule(Protocol):
    """One demand of providers on a request."""

    def spans(self, messages: Sequence[Message]) -> Iterable[Span]:
        """The stretches that must stay whole."""
        ...

    def repair(self, messages: list[Message]) -> list[Message]:
        """The same conversation so that it obeys; the list handed in may be returned, never changed."""
        ...
