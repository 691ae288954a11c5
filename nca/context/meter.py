"""Measures the next request: the one number that everything shows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nca.context.budget import Budget, Measurement
from nca.context.calibration import Anchor, Calibration, tokens_used
from nca.context.history import History
from nca.context.request import repair, resolve
from nca.context.rules.untouchable import newest_user
from nca.context.tokens import CONVERSATION_TOKENS, attachment_tokens, message_tokens, tools_tokens
from nca.context.view import View
from nca.messages import Message


class Meter:
    """Knows what a request holds besides the view (system prompt, tools) and what its model taught about counts."""

    def __init__(
        self,
        *,
        model: str = "",
        provider: str = "",
        calibration: Calibration | None = None,
        system_prompt: str = "",
        tools: Sequence[dict[str, Any]] = (),
    ) -> None:
        self.model = model
        self.provider = provider
        self.calibration = calibration or Calibration.unlearned(provider)
        self.anchor: Anchor | None = None
        self.system_raw = message_tokens(Message("system", system_prompt)) if system_prompt else 0
        self.tools_raw = tools_tokens(tools)
        self._identity = (system_prompt, len(tools), self.tools_raw)
        self._overhead: tuple[View, int, int] | None = None

    @property
    def fixed_raw(self) -> int:
        return CONVERSATION_TOKENS + self.system_raw + self.tools_raw

    def raw(self, history: History) -> int:
        """Raw tokens of the next request."""
        return self.fixed_raw + history.view_tokens + self._repair_raw(history)

    def raw_with(self, history: History, view: View) -> int:
        """Raw tokens of the next request with another view."""
        return self.fixed_raw + history.tokens_of(view) + repair_overhead(resolve(history, view), self.provider)

    def used_with(self, history: History, view: View) -> int:
        """What `used` will be once this view is the history's: no anchor speaks of it yet."""
        return self.scaled(self.raw_with(history, view))

    def used(self, history: History) -> int:
        return tokens_used(self.raw(history), self.calibration, self.anchor, self.subject(history))

    def scaled(self, raw_tokens: int) -> int:
        """Tokens of something that counts `raw_tokens` raw."""
        return round(raw_tokens * self.calibration.ratio)

    def learn(self, history_raw: int, history: History, reported_tokens: int) -> None:
        """Take a provider's count of a request that counted `history_raw` raw when it was sent."""
        learned = self.calibration.learn(history_raw, reported_tokens)
        if learned is not self.calibration:
            self.calibration = learned
            self.anchor = Anchor(self.subject(history), history_raw, reported_tokens)

    def measure(self, history: History, budget: Budget) -> Measurement:
        used = self.used(history)
        attachments = input_raw = 0
        newest = newest_user(history.entries)
        if newest is not None and newest == history.head:
            attachments = attachment_tokens(history.message(newest))
            input_raw = history.run_tokens(newest, newest) - attachments
        breakdown = {
            "system_prompt": self.scaled(self.system_raw),
            "tool_definitions": self.scaled(self.tools_raw),
            "conversation": 0,
            "current_input": self.scaled(input_raw),
            "attachments": self.scaled(attachments),
        }
        parts = sum(breakdown.values())
        if parts > used:
            # An anchored count knows better than the sum of estimates.
            breakdown = {name: tokens * used // parts for name, tokens in breakdown.items()}
        breakdown["conversation"] = used - sum(breakdown.values())
        is_anchored = self.anchor is not None and self.anchor.subject == self.subject(history)
        return Measurement(used, budget, breakdown, is_estimate=not is_anchored)

    def subject(self, history: History) -> object:
        """What a report is about, besides the growing tail: view, system prompt, tools, model."""
        return (history.view, self._identity, self.model)

    def _repair_raw(self, history: History) -> int:
        """What repairs of a broken log add (or take away), counted once for a view."""
        if self._overhead is None or self._overhead[0] is not history.view or self._overhead[1] > history.head:
            self._overhead = (history.view, history.head, repair_overhead(resolve(history), self.provider))
        return self._overhead[2]


def repair_overhead(messages: Sequence[Message], provider: str) -> int:
    """Raw tokens that the repair of these messages adds."""
    repaired = repair(messages, provider)
    before, after = {id(message) for message in messages}, {id(message) for message in repaired}
    added = sum(message_tokens(message) for message in repaired if id(message) not in before)
    return added - sum(message_tokens(message) for message in messages if id(message) not in after)
