"""Turn raw counts, which are tokens of o200k, into a model's tokens, by what its own reports teach about its tokenizer.

Until a model has reported, the ratio is the known one of its tokenizer (`nca.context.tokenizers`). The last report is
the anchor: only later messages are estimated.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from itertools import accumulate

import msgspec

from nca.context.tokenizers import Tokenizer, tokenizer_of
from nca.messages import AttachmentPart, Message, TextPart
from nca.vocabulary import Name, count, count_in

LOWEST_RATIO, HIGHEST_RATIO = 0.4, 3.0
"""A report that implies more than this is not about the request that was counted."""
LEARNING_RATE = 0.3
"""Weight of the newest report in the moving average; the anchor follows it at once anyway."""
SMALLEST_LESSON_TOKENS = 200
"""Below this, framing dominates and teaches a wrong ratio."""
FEWEST_LESSONS = 8
"""Reports before a fit of three numbers is believed."""
PRIOR_WEIGHT = 0.001
"""The prior weighs as one report of one token: it decides only questions that the reports leave open."""
MOST_EXTRA_TOKENS = 20_000
"""More than this is not a preamble, and a report that implies it is not about this request."""
MOST_CALL_TOKENS = 400
"""More than this is not the syntax of a call."""
FULL_LESSON_TOKENS = 2_000
"""Growth between two reports that teaches the ratio with full weight."""
OWN_EXTRA_TOKENS, OWN_EXTRA_SHARE = 1_000, 0.03
"""The tokens or share that a provider with an exact tokenizer may add to a request. A report of more, or of fewer by
that share, is of another tokenizer than the model's name says, such as behind an endpoint that only looks
like OpenAI's."""


class Anchor(msgspec.Struct, frozen=True):
    """A provider's count of one request: it reported `reported_tokens` where nca counted `raw_tokens`.

    `subject` identifies the request without its growing tail (view, system prompt, tools): an anchor of another
    subject is never used.
    """

    subject: tuple[object, ...]
    raw_tokens: int
    reported_tokens: int


class Lessons(msgspec.Struct, frozen=True):
    """All reports on one kind of request, as the sums of a weighted least-squares fit.

    tokens = ratio × raw + per_call × calls + extra: the density of the text, the cost of a call's syntax, and what
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
        # The error of the three numbers adds up along a request, so its variance grows with the request.
        weight = 1 / y
        squares = tuple(weight * one for one in (x * x, x * c, x, c * c, c, 1.0))
        products = tuple(weight * one for one in (x * y, c * y, y))
        return Lessons(
            self.count + 1,
            tuple(map(sum, zip(self.squares, squares, strict=True))),
            tuple(map(sum, zip(self.products, products, strict=True))),
        )

    def fit(self, ratio: float) -> tuple[float, float, float] | None:
        """(ratio, tokens per call, extra tokens), None if there is too little to tell; `ratio` is the prior."""
        if self.count < FEWEST_LESSONS:
            return None
        xx, xc, x1, cc, c1, n = self.squares
        prior = (PRIOR_WEIGHT * ratio, 0.0, 0.0)
        rows = [
            [xx + PRIOR_WEIGHT, xc, x1, self.products[0] + prior[0]],
            [xc, cc + PRIOR_WEIGHT, c1, self.products[1] + prior[1]],
            [x1, c1, n + PRIOR_WEIGHT, self.products[2] + prior[2]],
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
    """Turns raw counts into a model's tokens.

    ratio         tokens per raw token
    samples       how many reports it rests on
    extra_tokens  added by the provider to every request (a chat template's preamble, tool syntax); never
                  negative, so that a request that shrinks is not under-estimated
    tokenizer     the model's, by its name
    is_exact      the tokenizer is the model's own, and no report has contradicted that
    """

    ratio: float
    samples: int = 0
    extra_tokens: int = 0
    lessons: Lessons = Lessons()
    """The reports of this session. Beside the ratio they are not kept: a reopened session adds up its usage again."""
    tokenizer: Tokenizer = Tokenizer()
    is_exact: bool = False

    @classmethod
    def unlearned(cls, provider: str = "", model: str = "", *, count_as: str = "") -> Calibration:
        """The assumption until a model has reported; `count_as` names the provider with the tokenizer that a
        person asked for (context.count_as)."""
        tokenizer = tokenizer_of(count_as) if count_as else tokenizer_of(provider, model)
        is_exact = tokenizer.is_exact and tokenizer.vocabulary == "o200k"
        return cls(tokenizer.factor * tokenizer.usual, tokenizer=tokenizer, is_exact=is_exact)

    def taught(self, ratio: float, samples: int) -> Calibration:
        """With the lessons of earlier sessions about this model; unchanged if there are none."""
        if not samples:
            return self
        is_exact = self.is_exact and abs(ratio - 1) <= OWN_EXTRA_SHARE
        return msgspec.structs.replace(self, ratio=1.0 if is_exact else ratio, samples=samples, is_exact=is_exact)

    def for_text(self, own_per_raw: float) -> Calibration:
        """With samples of the text looked at: tokens of the tokenizer's vocabulary for each of o200k."""
        ratio = min(HIGHEST_RATIO, max(LOWEST_RATIO, self.tokenizer.factor * own_per_raw))
        return msgspec.structs.replace(self, ratio=ratio)

    def tokens(self, raw_tokens: int) -> int:
        """Tokens of a whole request that counts `raw_tokens` raw."""
        return round(raw_tokens * self.ratio) + self.extra_tokens

    def learn(self, raw_tokens: int, reported_tokens: int, since: Anchor | None = None) -> Calibration:
        """The calibration after a report; unchanged if the report cannot be about this request.

        `since`: the report before it on the same growing request. The growth between the two teaches the ratio; what
        the ratio does not explain is extra.
        """
        if raw_tokens < SMALLEST_LESSON_TOKENS or not _believable(reported_tokens, raw_tokens):
            return self
        if self.is_exact and _is_own(reported_tokens, raw_tokens):
            extra = max(0, reported_tokens - round(raw_tokens * self.ratio))
            return msgspec.structs.replace(self, samples=self.samples + 1, extra_tokens=extra)
        grown = raw_tokens - since.raw_tokens if since else 0
        more = reported_tokens - since.reported_tokens if since else 0
        if grown >= SMALLEST_LESSON_TOKENS and _believable(more, grown):
            seen, weight = more / grown, LEARNING_RATE * min(1.0, grown / FULL_LESSON_TOKENS)
        elif since is None:
            seen, weight = reported_tokens / raw_tokens, LEARNING_RATE if self.samples else 1.0
        else:
            seen, weight = self.ratio, 0.0
        ratio = self.ratio + weight * (seen - self.ratio)
        # A report below the ratio's estimate cannot be extra: it is the ratio's fault.
        ratio = min(ratio, max(LOWEST_RATIO, reported_tokens / raw_tokens))
        extra = max(0, reported_tokens - round(raw_tokens * ratio))
        return msgspec.structs.replace(self, ratio=ratio, samples=self.samples + 1, extra_tokens=extra, is_exact=False)


def _believable(tokens: int, raw_tokens: int) -> bool:
    return tokens > 0 and LOWEST_RATIO <= tokens / raw_tokens <= HIGHEST_RATIO


def _is_own(tokens: int, raw_tokens: int) -> bool:
    """Whether a report can be of the tokenizer that counted."""
    more = OWN_EXTRA_SHARE * raw_tokens
    return -more <= tokens - raw_tokens <= max(OWN_EXTRA_TOKENS, more)


def tokens_used(raw_tokens: int, calibration: Calibration, anchor: Anchor | None, subject: tuple[object, ...]) -> int:
    """Tokens of a request that counts `raw_tokens` raw."""
    if anchor is not None and anchor.subject == subject and raw_tokens >= anchor.raw_tokens:
        return anchor.reported_tokens + round((raw_tokens - anchor.raw_tokens) * calibration.ratio)
    return calibration.tokens(raw_tokens)


MOST_SAMPLES, SAMPLE_CHARS = 128, 800
"""Places of a request that are looked at, and the characters around each: some 50 ms with the slowest tokenizer."""


def own_per_raw(messages: Iterable[Message], vocabulary: Name, beside: Iterable[str] = ()) -> float:
    """Tokens of a vocabulary for each token of o200k, over a request of these messages.

    Places are spread evenly over its characters, so each counts the same, however long its message is.
    beside: texts that go along with every request
    """
    samples = _samples([*filter(None, beside), *_texts(messages)])
    raw = sum(map(count, samples))
    return count_in(vocabulary, samples) / raw if raw else 1.0


def _samples(texts: Sequence[str]) -> list[str]:
    ends = list(accumulate(map(len, texts)))
    total = ends[-1] if ends else 0
    if total <= MOST_SAMPLES * SAMPLE_CHARS:
        return list(texts)
    # A request that grows is looked at in the same places as before, whose counts are known, until it is twice as long.
    apart = SAMPLE_CHARS
    while apart * MOST_SAMPLES < total:
        apart *= 2
    samples = []
    for place in range(apart // 2, total, apart):
        index = bisect_right(ends, place)
        start = max(0, place - (ends[index] - len(texts[index])) - SAMPLE_CHARS // 2)
        samples.append(texts[index][start : start + SAMPLE_CHARS])
    return samples


def _texts(messages: Iterable[Message]) -> list[str]:
    texts: list[str] = []
    for message in messages:
        if isinstance(message.content, str):
            texts.append(message.content)
        elif message.content:
            texts += [part.text for part in message.content if isinstance(part, TextPart | AttachmentPart)]
        texts += [call.arguments for call in message.tool_calls]
    return texts
