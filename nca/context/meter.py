"""Measure the next request: the one number that everything shows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Any

import msgspec

from nca.context.budget import Budget, Measurement
from nca.context.calibration import (
    HIGHEST_RATIO,
    LOWEST_RATIO,
    MOST_CALL_TOKENS,
    MOST_EXTRA_TOKENS,
    Anchor,
    Calibration,
    Lessons,
    own_per_raw,
    tokens_used,
)
from nca.context.history import History
from nca.context.repair_cost import RepairCost, repair_cost_of
from nca.context.request import repair, resolve
from nca.context.rules.calls import is_valid
from nca.context.rules.messages import is_full
from nca.context.tokenizers import tools_text, tools_tokens
from nca.context.tokens import CONVERSATION_TOKENS, attachment_tokens, message_tokens
from nca.context.view import View
from nca.messages import Message, Usage

KEPT_ANCHORS = 8
FEWEST_LOOKED_AT = 200
"""Raw tokens of messages; of fewer the usual ratio is near enough, and a chat starts at once."""
ANSWER_FRAME_TOKENS = 40
"""Tokens that a provider may count of an answer beside its text."""


class Meter:
    """Knows a request's parts besides the view (system prompt, tools) and the lessons of its model about counts."""

    def __init__(
        self,
        *,
        model: str = "",
        provider: str = "",
        calibration: Calibration | None = None,
        system_prompt: str = "",
        tools: Sequence[dict[str, Any]] = (),
        anchor: Anchor | None = None,
    ) -> None:
        self.model = model
        self.provider = provider
        self.calibration = calibration or Calibration.unlearned(provider)
        self.anchor = anchor
        self._earlier: list[Anchor] = []
        """Anchors of other views, newest first: an undone compaction brings back its number too."""
        self.waiting_raw = 0
        """Raw tokens of what goes with the next message, which is not in the log yet."""
        self._system_prompt = system_prompt
        self._tools_text = tools_text(tools, self.calibration.tokenizer)
        self._seen: tuple[tuple[object, ...], float] = (), 1.0
        """The request whose text was looked at last, and what it showed."""
        self._repair_cost = RepairCost(provider)

    def take_tools(self, tools: Sequence[dict[str, Any]]) -> None:
        """Other tools go along from now on; reports of requests with the earlier ones anchor nothing."""
        self._tools_text = tools_text(tools, self.calibration.tokenizer)

    @property
    def system_raw(self) -> int:
        """Raw tokens of the system prompt. Nothing is counted before somebody asks, so that a chat starts at once."""
        return message_tokens(Message("system", self._system_prompt)) if self._system_prompt else 0

    @property
    def tools_raw(self) -> int:
        """Raw tokens of the tool definitions."""
        return tools_tokens(self._tools_text, self.calibration.tokenizer)

    def look(self, history: History, view: View | None = None) -> None:
        """Take the ratio from the text of the request with this view, None: the history's."""
        self.calibration = self._looked(history, view or history.view)

    def _looked(self, history: History, view: View) -> Calibration:
        """The calibration for a request with this view: of its own text, until the model has reported."""
        calibration, vocabulary = self.calibration, self.calibration.tokenizer.vocabulary
        if vocabulary == "o200k" or calibration.samples or self.anchor is not None or calibration.lessons.count:
            return calibration
        request = (history, history.head, view, self._tools_text)
        if self._seen[0] != request:
            sent, beside = repair(resolve(history, view), self.provider), (self._system_prompt, self._tools_text)
            is_enough = any(tokens >= FEWEST_LOOKED_AT for tokens in accumulate(map(message_tokens, sent)))
            own = own_per_raw(sent, vocabulary, beside) if is_enough else calibration.tokenizer.usual
            self._seen = request, own
        return calibration.for_text(self._seen[1])

    @property
    def fixed_raw(self) -> int:
        """Raw tokens of what no compaction of the log makes smaller."""
        return CONVERSATION_TOKENS + self.system_raw + self.tools_raw + self.waiting_raw

    def raw(self, history: History) -> int:
        """Raw tokens of the next request."""
        return self.fixed_raw + history.view_tokens + self._repair_cost.raw(history)

    def raw_with(self, history: History, view: View) -> int:
        """Raw tokens of the next request with another view."""
        return self.fixed_raw + history.tokens_of(view) + repair_cost_of(resolve(history, view), self.provider)

    def used_with(self, history: History, view: View) -> int:
        """The value of `used` once this view is the history's: no anchor is about it yet."""
        return self._looked(history, view).tokens(self.raw_with(history, view))

    def used_again(self, history: History, view: View) -> int:
        """The same for a view that may have been current before: its reports from then are still known."""
        subject = self._subject_of(view)
        anchors = [self.anchor, *self._earlier] if self.anchor is not None else self._earlier
        known = next((anchor for anchor in anchors if anchor.subject == subject), None)
        return tokens_used(self.raw_with(history, view), self._looked(history, view), known, subject)

    def used(self, history: History) -> int:
        self._find_anchor(history)
        self.look(history)
        return tokens_used(self.raw(history), self.calibration, self.anchor, self.subject(history))

    def total(self, raw_tokens: int) -> int:
        """Tokens of a whole request that counts `raw_tokens` raw."""
        return self.calibration.tokens(raw_tokens)

    def raw_for(self, tokens: int) -> int:
        """Raw tokens of a whole request that counts so many tokens: the inverse of `total`."""
        return int((tokens - self.calibration.extra_tokens) / self.calibration.ratio)

    def scaled(self, raw_tokens: int) -> int:
        """Tokens of a part of a request that counts `raw_tokens` raw."""
        return round(raw_tokens * self.calibration.ratio)

    def learn(self, history_raw: int, history: History, reported_tokens: int, calls: int | None = None) -> None:
        """Take a provider's count of a request that counted `history_raw` raw, and showed `calls`, when it was sent."""
        subject = self.subject(history)
        since = self.anchor if self.anchor is not None and self.anchor.subject == subject else None
        learned = self.calibration.learn(history_raw, reported_tokens, since)
        is_believed = learned is not self.calibration
        self.calibration = learned
        if calls is not None and 0 < reported_tokens <= HIGHEST_RATIO * history_raw + MOST_EXTRA_TOKENS:
            history_raw = self._fit(history_raw, calls, reported_tokens, history)
        if is_believed:
            self._put_anchor(Anchor(subject, history_raw, reported_tokens))

    def answered(self, history: History, message: Message, usage: Usage) -> None:
        """Take a provider's count of its answer, which is the log's newest message and a part of the next request.

        It ignores a count that cannot be about this text (an aborted stream, thoughts not reported apart), and
        one of an answer that the next request shows differently: an empty or stopped answer, or one with broken calls,
        which are repaired. The report before it then stays the anchor.
        """
        if not is_full(message) or message.is_interrupted or not all(map(is_valid, message.tool_calls)):
            return
        # Thoughts are sent again only if they came signed.
        thoughts = usage.reasoning_tokens if message.extra else 0
        tokens = usage.completion_tokens - usage.reasoning_tokens + thoughts
        subject, raw = self.subject(history), history.message_tokens(message)
        lowest = LOWEST_RATIO * raw - ANSWER_FRAME_TOKENS
        highest = HIGHEST_RATIO * raw + ANSWER_FRAME_TOKENS + MOST_CALL_TOKENS * len(message.tool_calls) + thoughts
        if self.anchor is not None and self.anchor.subject == subject and max(1, lowest) <= tokens <= highest:
            known = self.anchor
            self._put_anchor(Anchor(subject, known.raw_tokens + raw, known.reported_tokens + tokens))

    def _fit(self, history_raw: int, calls: int, reported_tokens: int, history: History) -> int:
        """Take a report as one of many; returns the request's raw tokens as the history counts from now on."""
        text_raw = history_raw - history.call_raw * calls
        self._take(self.calibration.lessons.add(text_raw, calls, reported_tokens), history)
        return text_raw + history.call_raw * calls

    def relearn(self, reports: Iterable[tuple[int, int, int]], history: History) -> None:
        """Take the reports that a session had before it was opened again, as `learn` took them one by one.

        Oldest first, each as the view's raw tokens with repairs and without those of calls, its calls, and the
        reported tokens. The ratio stays: it is the one that was learned last, and messages after the anchor are counted
        with it.
        """
        lessons, newest = self.calibration.lessons, (0, 0)
        for view_raw, calls, reported_tokens in reports:
            text_raw = self.fixed_raw - self.waiting_raw + view_raw
            if 0 < reported_tokens <= HIGHEST_RATIO * text_raw + MOST_EXTRA_TOKENS:
                lessons = lessons.add(text_raw, calls, reported_tokens)
            if self.calibration.learn(text_raw, reported_tokens) is not self.calibration:
                newest = text_raw, reported_tokens
        ratio = self.calibration.ratio
        self._take(lessons, history)
        self.calibration = msgspec.structs.replace(self.calibration, ratio=ratio)
        self._explain(*newest)

    def _take(self, lessons: Lessons, history: History) -> None:
        """Count from now on as the lessons say, once they say anything."""
        self.calibration = msgspec.structs.replace(self.calibration, lessons=lessons)
        fitted = lessons.fit(self.calibration.ratio)
        if fitted is not None:
            ratio, per_call, extra = fitted
            self.calibration = msgspec.structs.replace(self.calibration, ratio=ratio, extra_tokens=round(extra))
            history.call_raw = round(per_call / ratio)

    def forget(self, view: View) -> None:
        """A view that becomes current has no report yet, even if one like it had."""
        self._earlier = [anchor for anchor in self._earlier if anchor.subject[0] != view]

    def shows_same(self, before: View, after: View) -> None:
        """A view shows the same as another one: that one's reports hold for it."""
        if self.anchor is not None and self.anchor.subject == self._subject_of(before):
            self._put_anchor(msgspec.structs.replace(self.anchor, subject=self._subject_of(after)))

    def raw_until(self, history: History, seq: int) -> int:
        """Raw tokens of the request with this view when the log ended at `seq`, without later messages."""
        later = history.head - seq
        sent = resolve(history)[: -later or None]
        raw = history.view_tokens - history.run_tokens(seq + 1, history.head)
        return self.fixed_raw - self.waiting_raw + raw + repair_cost_of(sent, self.provider)

    def restore(self, history_raw: int, history: History, reported_tokens: int) -> None:
        """Take up the last report of a session that continues, without learning from it again.

        One that would not have been believed when it came is not taken up either.
        """
        if self.calibration.learn(history_raw, reported_tokens) is self.calibration:
            return
        self._explain(history_raw, reported_tokens)
        self.anchor = Anchor(self.subject(history), history_raw, reported_tokens)

    def _explain(self, history_raw: int, reported_tokens: int) -> None:
        """The part of the newest report that the ratio does not explain is extra, until a fit explains it."""
        if self.calibration.lessons.fit(self.calibration.ratio) is None:
            extra = max(0, reported_tokens - round(history_raw * self.calibration.ratio))
            self.calibration = msgspec.structs.replace(self.calibration, extra_tokens=extra)

    def measure(self, history: History, budget: Budget) -> Measurement:
        used, extra = self.used(history), self.calibration.extra_tokens
        attachments, input_raw = self.waiting_raw, 0
        newest = history.newest_user
        if newest is not None and newest == history.head:
            of_message = attachment_tokens(history.message(newest))
            input_raw = history.run_tokens(newest, newest) - of_message
            attachments += of_message
        breakdown = {
            "system_prompt": self.scaled(self.system_raw) + (0 if self.tools_raw else extra),
            "tool_definitions": self.scaled(self.tools_raw) + (extra if self.tools_raw else 0),
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

    def subject(self, history: History) -> tuple[object, ...]:
        """The subject of a report, besides the growing tail: view, system prompt, tools, model."""
        return self._subject_of(history.view)

    def _subject_of(self, view: View) -> tuple[object, ...]:
        return (view, self._system_prompt, self._tools_text, self.model)

    def _find_anchor(self, history: History) -> None:
        subject = self.subject(history)
        if self.anchor is not None and self.anchor.subject == subject:
            return
        found = next((anchor for anchor in self._earlier if anchor.subject == subject), None)
        if found is not None:
            self._put_anchor(found)

    def _put_anchor(self, anchor: Anchor) -> None:
        others = [self.anchor, *self._earlier] if self.anchor is not None else self._earlier
        self._earlier = [other for other in others if other.subject != anchor.subject][:KEPT_ANCHORS]
        self.anchor = anchor
