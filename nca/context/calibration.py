"""Turn raw counts into tokens: what a model's own reports teach about its tokenizer.

A ratio turns raw counts into the model's tokens. Until a model has reported, it is the provider's multiplier times
the safety margin, or what the text itself says (`nca.context.density`). The last report is the anchor: only what came
after it is estimated.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from nca.context.tokens import SAFETY_MARGIN, multiplier

LOWEST_RATIO, HIGHEST_RATIO = 0.4, 3.0
"""A report that implies more than this is not about the request that was counted."""
LEARNING_RATE = 0.3
"""Weight of the newest report in the moving average; the anchor follows it at once anyway."""
SMALLEST_LESSON_TOKENS = 200
"""Below this, framing dominates and teaches a wrong ratio."""
FEWEST_LESSONS = 8
"""Reports before a fit of three numbers is believed."""
PRIOR_WEIGHT = 1.0
"""The prior weighs as one request of a thousand tokens."""
MOST_EXTRA_TOKENS = 20_000
"""More than this is not a preamble, and a report that implies it is not about this request."""
MOST_CALL_TOKENS = 400
"""More than this is not the syntax of a call."""
FULL_LESSON_TOKENS = 2_000
"""Growth between two reports that teaches the ratio with full weight."""
MEASURED_RATIOS: Mapping[str, float] = {"anthropic": 1.15, "bedrock": 1.15}
"""Tokens per raw token of whole requests, margin included, where real sessions were measured: Claude reported 1.03 to
1.16 on two sets of them. NeuroLink's 1.23 belongs to its one density of four characters. Code and results are counted
denser here, so both together would count the same thing twice, and with the margin a request would look a third larger.
"""
FAMILY_MARGINS: Mapping[str, float] = {"gpt": 1.02, "claude": 1.08, "other": 1.05}
"""What the tokens that `nca.context.density` finds are multiplied by, so that a request is rather counted too large:
its error; what Claude reported of real sessions beyond its published tokenizer, 1.01 to 1.11 times; and how far
tokenizers are apart that nothing is known about."""
_GPT = re.compile(r"gpt|codex|\bo\d\b")


def family_of(provider: str, model: str = "") -> str:
    """Whose tokenizer a model has, as `nca.context.density` names it. Without a model, the provider's own is meant."""
    name = f"{provider}/{model}".lower()
    if "claude" in name or provider.lower() == "anthropic":
        return "claude"
    is_gpt = _GPT.search(name) if model else provider.lower() in ("openai", "azure")
    return "gpt" if is_gpt else "other"


def text_ratio(provider: str = "") -> float:
    """Tokens per raw token of a text alone: NeuroLink's multiplier and its margin."""
    return multiplier(provider) * SAFETY_MARGIN


class Anchor(msgspec.Struct, frozen=True):
    """A provider's count of one request: it reported `reported_tokens` for what was counted as `raw_tokens`.

    `subject` identifies what was sent besides the growing tail (view, system prompt, tools): an anchor of another
    subject is never used.
    """

    subject: tuple[object, ...]
    raw_tokens: int
    reported_tokens: int


class Lessons(msgspec.Struct, frozen=True):
    """All reports on one kind of request, as the sums of an ordinary least-squares fit.

    tokens = ratio × raw + per_call × calls + extra: how dense the text is, what the syntax of a call adds, and what
    the provider adds to every request. One number cannot hold these three: a session's end has more calls than its
    beginning, and after a compaction the wrong one would be scaled down.
    """

    count: int = 0
    squares: tuple[float, ...] = (0.0,) * 6
    """Σ of raw², raw·calls, raw, calls², calls, 1 (in thousands of tokens and tens of calls)."""
    products: tuple[float, ...] = (0.0,) * 3
    """Σ of raw·reported, calls·reported, reported."""

    def add(self, raw_tokens: int, calls: int, reported_tokens: int) -> Lessons:
        x, c, y = raw_tokens / 1_000, calls / 10, reported_tokens / 1_000
        squares = (x * x, x * c, x, c * c, c, 1.0)
        products = (x * y, c * y, y)
        return Lessons(
            self.count + 1,
            tuple(map(sum, zip(self.squares, squares, strict=True))),
            tuple(map(sum, zip(self.products, products, strict=True))),
        )

    def fit(self, ratio: float) -> tuple[float, float, float] | None:
        """(ratio, tokens per call, extra tokens), None where there is too little to tell; `ratio` is the prior."""
        if self.count < FEWEST_LESSONS:
            return None
        xx, xc, x1, cc, c1, n = self.squares
        prior = (PRIOR_WEIGHT * ratio, 0.0, 0.0)
        rows = [
            [xx + PRIOR_WEIGHT, xc, x1, self.products[0] + prior[0]],
            [xc, cc + PRIOR_WEIGHT, c1, self.products[1] + prior[1]],
            [x1, c1, n + PRIOR_WEIGHT / 10, self.products[2] + prior[2]],
        ]
        slope, per_call, extra = _solve(rows)
        per_call, extra = per_call * 100, extra * 1_000
        if not LOWEST_RATIO <= slope <= HIGHEST_RATIO:
            return None
        if not -MOST_CALL_TOKENS / 40 <= per_call <= MOST_CALL_TOKENS:
            return None
        # A little below zero is noise; more than a little is a model that these three numbers do not describe.
        return (slope, max(0.0, per_call), max(0.0, extra)) if abs(extra) <= MOST_EXTRA_TOKENS else None


def _solve(rows: list[list[float]]) -> tuple[float, float, float]:
    """Three equations by elimination; the prior keeps them regular."""
    for pivot in range(3):
        best = max(range(pivot, 3), key=lambda row: abs(rows[row][pivot]))
        rows[pivot], rows[best] = rows[best], rows[pivot]
        for row in range(3):
            if row != pivot:
                factor = rows[row][pivot] / rows[pivot][pivot]
                rows[row] = [a - factor * b for a, b in zip(rows[row], rows[pivot], strict=True)]
    return rows[0][3] / rows[0][0], rows[1][3] / rows[1][1], rows[2][3] / rows[2][2]


class Calibration(msgspec.Struct, frozen=True):
    """What turns raw counts into a model's tokens.

    ratio         tokens per raw token
    samples       how many reports it rests on
    extra_tokens  what the provider adds to every request beside (a chat template's preamble, tool syntax); never
                  negative, so that a request that shrinks is not under-estimated
    family        whose tokenizer it is (`nca.context.density`), until the text has been looked at for the ratio
    """

    ratio: float
    samples: int = 0
    extra_tokens: int = 0
    lessons: Lessons = Lessons()
    """The reports of this session. Beside the ratio they are not kept: a reopened session adds up its usage again."""
    family: str = ""

    @classmethod
    def unlearned(cls, provider: str = "", model: str = "", *, count_as: str = "") -> Calibration:
        """What is assumed of a whole request until a model has reported; `count_as` names the provider whose
        multiplier a person asked for (context.count_as)."""
        if count_as:
            return cls(text_ratio(count_as))
        ratio = MEASURED_RATIOS.get(provider.lower(), text_ratio(provider))
        return cls(ratio, family=family_of(provider, model))

    def for_text(self, density: float) -> Calibration:
        """What is assumed of a request of this density (`nca.context.density`) until the model has reported."""
        ratio = min(HIGHEST_RATIO, max(LOWEST_RATIO, FAMILY_MARGINS[self.family] * density))
        return msgspec.structs.replace(self, ratio=ratio, family="")

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
        extra = max(0, reported_tokens - round(raw_tokens * ratio))
        return Calibration(ratio, self.samples + 1, extra, self.lessons)


def _believable(tokens: int, raw_tokens: int) -> bool:
    return tokens > 0 and LOWEST_RATIO <= tokens / raw_tokens <= HIGHEST_RATIO


def tokens_used(raw_tokens: int, calibration: Calibration, anchor: Anchor | None, subject: tuple[object, ...]) -> int:
    """Tokens of a request that counts `raw_tokens` raw."""
    if anchor is not None and anchor.subject == subject and raw_tokens >= anchor.raw_tokens:
        return anchor.reported_tokens + round((raw_tokens - anchor.raw_tokens) * calibration.ratio)
    return calibration.tokens(raw_tokens)
