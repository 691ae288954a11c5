"""The four numbers: window, reserve, budget, used; and the one usage that everything shows."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil

from nca.config.schema import ContextSettings
from nca.errors import ConfigError

DEFAULT_WINDOW_TOKENS = 128_000
MAX_DEFAULT_RESERVE_TOKENS = 64_000
DEFAULT_RESERVE_RATIO = 0.35
"""Seed 2: DEFAULT_CONTEXT_WINDOW, MAX_DEFAULT_OUTPUT_RESERVE, DEFAULT_OUTPUT_RESERVE_RATIO."""
USUAL_TARGET = 0.625
"""The default target over the default threshold (0.50 / 0.80): kept where the threshold is set lower."""
NEAREST_TARGET = 0.8
"""A target nearer to the trigger than this would make compaction a dribble."""
REARM_RATIO = 0.05
"""Spec 1: no second compaction before the usage has grown by this share of the budget."""


def output_reserve(window_tokens: int, max_output_tokens: int = 0) -> int:
    """Room for the answer; never more than half the window."""
    wanted = max_output_tokens or min(MAX_DEFAULT_RESERVE_TOKENS, ceil(DEFAULT_RESERVE_RATIO * window_tokens))
    return min(wanted, window_tokens // 2)


@dataclass(frozen=True, slots=True)
class Budget:
    """What a request may cost, in tokens."""

    window_tokens: int
    reserve_tokens: int
    budget_tokens: int

    @classmethod
    def of(cls, window_tokens: int, max_output_tokens: int = 0, max_tokens: int = 0) -> Budget:
        """Raises ConfigError where a number makes no budget."""
        if window_tokens <= 0:
            raise ConfigError(f"context window: {window_tokens} is not valid; valid: a whole number above 0.")
        if max_output_tokens < 0 or max_output_tokens >= window_tokens:
            raise ConfigError(
                f"model.max_output_tokens: {max_output_tokens:,} does not fit the window of {window_tokens:,} tokens;"
                f" valid: 0 (a share of the window) up to {window_tokens - 1:,}."
            )
        reserve = output_reserve(window_tokens, max_output_tokens)
        budget = window_tokens - reserve
        return cls(window_tokens, reserve, min(budget, max_tokens) if max_tokens else budget)

    def target_tokens(self, fixed_tokens: int, target_ratio: float) -> int:
        """Where compaction aims (spec 1): never below what cannot shrink plus a quarter of the rest."""
        floor = fixed_tokens + max(0, self.budget_tokens - fixed_tokens) // 4
        return max(int(target_ratio * self.budget_tokens), floor)

    def aim_ratio(self, settings: ContextSettings) -> float:
        """The share that compaction by itself comes down to: well below its trigger, so that it is rare and large."""
        trigger_ratio = self.trigger_tokens(settings) / self.budget_tokens
        if settings.target_ratio <= NEAREST_TARGET * trigger_ratio:
            return settings.target_ratio
        return USUAL_TARGET * trigger_ratio

    def idle_tokens(self, settings: ContextSettings) -> int:
        """The usage, in tokens, from which on a compaction is prepared after a turn; never above the trigger."""
        return min(ceil(settings.idle_threshold * self.budget_tokens - 1e-6), self.trigger_tokens(settings))

    def trigger_tokens(self, settings: ContextSettings) -> int:
        """The usage, in tokens, from which on compaction happens before a request."""
        # Less a hair: 0.55 * 100 is 55.000000000000007, and 55 of 100 is at the threshold.
        by_ratio = ceil(settings.compact_threshold * self.budget_tokens - 1e-6)
        return min(by_ratio, settings.compact_tokens) if settings.compact_tokens else by_ratio


@dataclass(frozen=True, slots=True)
class Measurement:
    """The tokens of the next request, measured once and shown everywhere."""

    used_tokens: int
    budget: Budget
    breakdown: dict[str, int] = field(default_factory=dict)
    """system_prompt, tool_definitions, conversation, current_input, attachments: they sum to used_tokens."""
    is_estimate: bool = True
    """False where the provider's own count is the anchor."""

    @property
    def usage_ratio(self) -> float:
        return self.used_tokens / self.budget.budget_tokens

    @property
    def fits(self) -> bool:
        return self.used_tokens <= self.budget.budget_tokens
