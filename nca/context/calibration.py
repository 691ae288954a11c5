"""From raw counts to tokens: what a model's own reports teach about it.

A ratio turns raw counts into the model's tokens. Until a model has reported, it is the provider's multiplier times
the safety margin. The last report is the anchor: only what came after it is estimated.
"""

from __future__ import annotations

import msgspec

from nca.context.tokens import SAFETY_MARGIN, multiplier

LOWEST_RATIO, HIGHEST_RATIO = 0.4, 3.0
"""A report that implies more than this is not about the request that was counted (reliability F27)."""
LEARNING_RATE = 0.3
"""Weight of the newest report in the moving average; the anchor follows it at once anyway."""
SMALLEST_LESSON_TOKENS = 200
"""Below this, framing dominates and teaches a wrong ratio."""


class Calibration(msgspec.Struct, frozen=True):
    """`ratio` = tokens per raw token; `samples` = how many reports it rests on."""

    ratio: float
    samples: int = 0

    @classmethod
    def unlearned(cls, provider: str = "") -> Calibration:
        return cls(multiplier(provider) * SAFETY_MARGIN)

    def learn(self, raw_tokens: int, reported_tokens: int) -> Calibration:
        """The calibration after a report; unchanged where the report cannot be about this request."""
        if raw_tokens < SMALLEST_LESSON_TOKENS or reported_tokens <= 0:
            return self
        seen = reported_tokens / raw_tokens
        if not LOWEST_RATIO <= seen <= HIGHEST_RATIO:
            return self
        weight = 1.0 if self.samples == 0 else LEARNING_RATE
        return Calibration(self.ratio + weight * (seen - self.ratio), self.samples + 1)


class Anchor(msgspec.Struct, frozen=True):
    """A provider's count of one request: it reported `reported_tokens` for what was counted as `raw_tokens`.

    `subject` identifies what was sent besides the growing tail (view, system prompt, tools): an anchor of another
    subject is never used.
    """

    subject: object
    raw_tokens: int
    reported_tokens: int


def tokens_used(raw_tokens: int, calibration: Calibration, anchor: Anchor | None, subject: object) -> int:
    """Tokens of a request that counts `raw_tokens` raw."""
    if anchor is not None and anchor.subject == subject and raw_tokens >= anchor.raw_tokens:
        return anchor.reported_tokens + round((raw_tokens - anchor.raw_tokens) * calibration.ratio)
    return round(raw_tokens * calibration.ratio)
