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
FULL_LESSON_TOKENS = 2_000
"""Growth between two reports that teaches the ratio with full weight."""


class Anchor(msgspec.Struct, frozen=True):
    """A provider's count of one request: it reported `reported_tokens` for what was counted as `raw_tokens`.

    `subject` identifies what was sent besides the growing tail (view, system prompt, tools): an anchor of another
    subject is never used.
    """

    subject: tuple[object, ...]
    raw_tokens: int
    reported_tokens: int


class Calibration(msgspec.Struct, frozen=True):
    """What turns raw counts into a model's tokens.

    ratio         tokens per raw token
    samples       how many reports it rests on
    extra_tokens  what the provider adds to every request beside (a chat template's preamble, tool syntax); never
                  negative, so that a request that shrinks is not under-estimated
    """

    ratio: float
    samples: int = 0
    extra_tokens: int = 0

    @classmethod
    def unlearned(cls, provider: str = "") -> Calibration:
        return cls(multiplier(provider) * SAFETY_MARGIN)

    def tokens(self, raw_tokens: int) -> int:
        """Tokens of a whole request that counts `raw_tokens` raw."""
        return round(raw_tokens * self.ratio) + self.extra_tokens

    def learn(self, raw_tokens: int, reported_tokens: int, since: Anchor | None = None) -> Calibration:
        """The calibration after a report; unchanged where the report cannot be about this request.

        `since`: the report before it on the same growing request. What grew between the two teaches the ratio; what
        the ratio does not explain is extra.
        """
        if raw_tokens < SMALLEST_LESSON_TOKENS or not _believable(reported_tokens, raw_tokens):
            return self
        grown = raw_tokens - since.raw_tokens if since else 0
        more = reported_tokens - since.reported_tokens if since else 0
        if grown >= SMALLEST_LESSON_TOKENS and _believable(more, grown):
            seen, weight = more / grown, LEARNING_RATE * min(1.0, grown / FULL_LESSON_TOKENS)
        elif since is None:
            seen, weight = reported_tokens / raw_tokens, LEARNING_RATE if self.samples else 1.0
        else:
            seen, weight = self.ratio, 0.0
        ratio = self.ratio + weight * (seen - self.ratio)
        # What cannot be extra (the report is below what the ratio says) is the ratio's fault.
        ratio = min(ratio, max(LOWEST_RATIO, reported_tokens / raw_tokens))
        return Calibration(ratio, self.samples + 1, max(0, reported_tokens - round(raw_tokens * ratio)))


def _believable(tokens: int, raw_tokens: int) -> bool:
    return tokens > 0 and LOWEST_RATIO <= tokens / raw_tokens <= HIGHEST_RATIO


def tokens_used(raw_tokens: int, calibration: Calibration, anchor: Anchor | None, subject: tuple[object, ...]) -> int:
    """Tokens of a request that counts `raw_tokens` raw."""
    if anchor is not None and anchor.subject == subject and raw_tokens >= anchor.raw_tokens:
        return anchor.reported_tokens + round((raw_tokens - anchor.raw_tokens) * calibration.ratio)
    return calibration.tokens(raw_tokens)
