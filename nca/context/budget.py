"""Window, reserve and budget of a model, and the measured size of a request."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil

from nca.config.schema import Settings
from nca.errors import ConfigError

DEFAULT_WINDOW_TOKENS = 128_000
DEFAULT_RESERVE_RATIO = 0.35
"""NeuroLink's defaults for a window that is not known, and for the room that the answer gets."""
MAX_DEFAULT_RESERVE_TOKENS = Settings().model.max_reserve_tokens
"""Longer answers are rare, and one that ends for length is continued."""


def output_reserve(
    window_tokens: int, max_output_tokens: int = 0, max_reserve_tokens: int = MAX_DEFAULT_RESERVE_TOKENS
) -> int:
    """Room for the answer; never more than half the window."""
    wanted = max_output_tokens or min(max_reserve_tokens, ceil(DEFAULT_RESERVE_RATIO * window_tokens))
    return min(wanted, window_tokens // 2)


@dataclass(frozen=True, slots=True)
class Budget:
    """The room of a request, in tokens."""

    window_tokens: int
    reserve_tokens: int
    budget_tokens: int

    @classmethod
    def in_window(cls, window_tokens: int, settings: Settings) -> Budget:
        """The budget that the settings leave of a window. Raises ConfigError if they make none."""
        model = settings.model
        reserve = model.max_output_tokens or round(model.output_ratio * window_tokens)
        return cls.of(window_tokens, reserve, settings.context.max_tokens, model.max_reserve_tokens)

    @classmethod
    def of(
        cls,
        window_tokens: int,
        max_output_tokens: int = 0,
        max_tokens: int = 0,
        max_reserve_tokens: int = MAX_DEFAULT_RESERVE_TOKENS,
    ) -> Budget:
        """Raises ConfigError if a number makes no budget."""
        if window_tokens <= 0:
            raise ConfigError(f"context window: {window_tokens} is not valid; valid: a whole number above 0.")
        if max_output_tokens < 0:
            raise ConfigError(
                f"model.max_output_tokens: {max_output_tokens:,} is not valid; valid: 0 (35% of the window) and above."
            )
        reserve = output_reserve(window_tokens, max_output_tokens, max_reserve_tokens)
        budget = window_tokens - reserve
        return cls(window_tokens, reserve, min(budget, max_tokens) if max_tokens else budget)


@dataclass(frozen=True, slots=True)
class Measurement:
    """The tokens of the next request, measured once and shown everywhere."""

    used_tokens: int
    budget: Budget
    breakdown: dict[str, int] = field(default_factory=dict)
    """system_prompt, tool_definitions, conversation, current_input, attachments: they sum to used_tokens."""
    is_estimate: bool = True
    """False if the provider's own count is the anchor."""

    @property
    def usage_ratio(self) -> float:
        return self.used_tokens / self.budget.budget_tokens

    @property
    def fits(self) -> bool:
        return self.used_tokens <= self.budget.budget_tokens
