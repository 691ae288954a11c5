"""Replay a conversation turn by turn, to measure what nca would have sent, kept and saved in a given window.

Each answer of the transcript follows a request. Each request is measured as nca would have measured it,
compacted where it would have been, and counted with and without. The same transcript and settings give the same
figures, except for times.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nca.config.loaded import LoadedSettings
from nca.context.budget import Budget, Measurement
from nca.context.history import History
from nca.context.policy import FRESH, decide, thresholds
from nca.context.request import repair, resolve
from nca.context.retention import KeptFacts
from nca.context.tokens import message_tokens
from nca.context.view import View
from nca.errors import ContextDoesNotFit
from nca.library.engine import Engine, Summarizer
from nca.messages import Entry, Message, Usage
from nca.models.catalog import ModelFacts, cost_of
from nca.shapes.shaped import ShapedMessages
from nca.wire import message_from_dict

Watch = Callable[[int, Sequence[Message]], None]
"""Takes each request when it would have been sent: the number of messages before it, and the messages in it."""


@dataclass(frozen=True, slots=True)
class ReplayedCompaction:
    """A compaction that would have happened before the request after message `after_message`. Counts in tokens.

    made_by   who wrote its summary: "extract" is code; "" where there is none
    """

    after_message: int
    stages: tuple[str, ...]
    tokens_before: int
    tokens_after: int
    kept_facts: int
    total_facts: int
    made_by: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Sent:
    """All requests together, in tokens; the answers are the same on both sides.

    cached_tokens    of `tokens`, those at the beginning that equal the request before, as in a provider's prompt cache
    over_budget      requests that would not have fitted; first_over_budget: the message that the first of them follows
    cost             US dollars, answers included, at full price; None if the model's prices are unknown
    cost_cached      with the prompt cache, as long as it stays warm; None if its price is unknown
    """

    tokens: int
    cached_tokens: int
    largest_tokens: int
    over_budget: int
    first_over_budget: int
    cost: float | None
    cost_cached: float | None


@dataclass(frozen=True, slots=True)
class Replay:
    """The result of a replay. `kept_facts` and `kept_turns` count what the last view still holds of the log:
    facts found by code, and the person's messages word for word.

    summaries_tokens   input and output of a summarizer, beside the requests; 0 without one
    """

    model: str
    window_tokens: int
    window_is_assumed: bool
    budget_tokens: int
    trigger_tokens: int
    messages: int
    turns: int
    requests: int
    with_nca: Sent
    without: Sent
    compactions: tuple[ReplayedCompaction, ...]
    kept_facts: int
    total_facts: int
    kept_turns: int
    summaries_tokens: int
    longest_check_seconds: float
    longest_compaction_seconds: float


def replay(
    messages: Sequence[Message],
    loaded: LoadedSettings,
    *,
    model: str = "",
    tools: Sequence[Mapping[str, Any]] | None = None,
    system_prompt: str = "",
    summarizer: Summarizer | None = None,
    watch: Watch | None = None,
    request: ShapedMessages | None = None,
) -> Replay:
    """Replay a conversation in the window of `model`, or in that of the settings.

    tools, system_prompt   the other parts of each request; tools None: those of `request`
    summarizer   as for `nca.compact`; None: code writes the summaries as extracts
    watch        called with the messages of each request, after a compaction that was due before it
    request      the object that held the messages: its model, longest answer, tools and rules count as in `nca.compact`

    Raises UsageError, ConfigError.
    """
    counted = _Counted(summarizer) if summarizer is not None else None
    engine = Engine(loaded, model, tools=tools, system_prompt=system_prompt, summarizer=counted, is_chat=True)
    if request is not None:
        engine.obey(request)
    replaying = _Replaying(engine, counted, watch)
    for seq, message in enumerate(messages, 1):
        replaying.take(Entry(seq, message))
    return replaying.found()


class _Tally:
    """One side's requests."""

    def __init__(self, facts: ModelFacts, budget: Budget) -> None:
        self._facts = facts
        self._budget = budget
        self._costs: list[float | None] = []
        self._cached_costs: list[float | None] = []
        self._sent = {"tokens": 0, "cached_tokens": 0, "largest_tokens": 0, "over_budget": 0, "first_over_budget": 0}

    def add(self, head: int, tokens: int, cached_tokens: int, answer_tokens: int) -> None:
        sent = self._sent
        sent["tokens"] += tokens
        sent["cached_tokens"] += cached_tokens
        sent["largest_tokens"] = max(sent["largest_tokens"], tokens)
        if tokens > self._budget.budget_tokens:
            sent["over_budget"] += 1
            sent["first_over_budget"] = sent["first_over_budget"] or head
        self._costs.append(cost_of(self._facts, Usage(tokens, answer_tokens)))
        cached = Usage(tokens, answer_tokens, cached_tokens, tokens - cached_tokens)
        self._cached_costs.append(cost_of(self._facts, cached) if self._facts.cache_read_cost is not None else None)

    def sent(self) -> Sent:
        return Sent(**self._sent, cost=_sum(self._costs), cost_cached=_sum(self._cached_costs))


class _Replaying:
    """The conversation so far."""

    def __init__(self, engine: Engine, summarizer: _Counted | None, watch: Watch | None) -> None:
        self._engine, self._summarizer, self._watch = engine, summarizer, watch
        self._facts, self._budget, self._context = engine.facts, engine.budget, engine.settings
        self._meter = engine.meter
        self._history = History()
        self._raw = self._without_before = self._with_before = 0
        self._repairs_raw = 0
        """Raw tokens that the repair of a broken log adds to a request that shows all of it."""
        self._policy = FRESH
        self._kept_prefix: int | None = None
        """Tokens that the next request begins with as the last did, where a compaction has come between them."""
        self._with, self._without = _Tally(self._facts, self._budget), _Tally(self._facts, self._budget)
        self._compactions: list[ReplayedCompaction] = []
        self._requests = 0
        self._longest = {"check": 0.0, "compaction": 0.0}

    def take(self, entry: Entry) -> None:
        if entry.message.role == "assistant" and self._history.head:
            self._request(self._meter.scaled(message_tokens(entry.message)))
        self._history.append(entry)
        self._raw += self._history.message_tokens(entry.message)

    def found(self) -> Replay:
        history, budget = self._history, self._budget
        kept, total = KeptFacts(history, history.view).count()
        shown = "\n".join(message.text for message in resolve(history))
        said = [e.message for e in history.entries if e.message.role == "user" and not e.message.is_synthetic]
        return Replay(
            model=self._facts.name,
            window_tokens=budget.window_tokens,
            window_is_assumed=self._facts.is_window_guess,
            budget_tokens=budget.budget_tokens,
            trigger_tokens=thresholds(budget, self._context).compact,
            messages=history.head,
            turns=len(said),
            requests=self._requests,
            with_nca=self._with.sent(),
            without=self._without.sent(),
            compactions=tuple(self._compactions),
            kept_facts=kept,
            total_facts=total,
            kept_turns=sum(message.text.strip() in shown for message in said),
            summaries_tokens=self._meter.scaled(self._summarizer.raw) if self._summarizer is not None else 0,
            longest_check_seconds=self._longest["check"],
            longest_compaction_seconds=self._longest["compaction"],
        )

    def _request(self, answer_tokens: int) -> None:
        """One request, after a compaction if one is due."""
        history, meter, head = self._history, self._meter, self._history.head
        self._requests += 1
        used = self._check()
        if not self._compactions:
            self._repairs_raw = meter.raw(history) - meter.fixed_raw - history.view_tokens
        if self._context.auto == "on":
            decision = decide(Measurement(used, self._budget), self._policy, self._context, "before request")
            if decision.action == "compact":
                self._compact()
                used = meter.used(history)
        if self._watch is not None:
            self._watch(head, repair(resolve(history), self._meter.provider))
        # Between two compactions a request only grows at its end; over one, it begins alike as far as both do.
        cached = self._with_before if self._kept_prefix is None else self._kept_prefix
        self._with.add(head, used, min(cached, used), answer_tokens)
        self._with_before, self._kept_prefix = used, None
        whole = meter.total(meter.fixed_raw + self._raw + self._repairs_raw)
        self._without.add(head, whole, min(self._without_before, whole), answer_tokens)
        self._without_before = whole

    def _check(self) -> int:
        started = time.perf_counter()
        used = self._meter.used(self._history)
        self._longest["check"] = max(self._longest["check"], time.perf_counter() - started)
        return used

    def _compact(self) -> None:
        history, before = self._history, self._history.view
        started = time.perf_counter()
        try:
            proposal = self._engine.run(self._engine.planning(history, is_repeated=True))
        except ContextDoesNotFit:
            proposal = None
        seconds = time.perf_counter() - started
        self._longest["compaction"] = max(self._longest["compaction"], seconds)
        if proposal is not None and proposal.compacted:
            history.view = proposal.view
            self._kept_prefix = self._prefix(before)
            numbers = (proposal.tokens_before, proposal.tokens_after, proposal.kept_facts, proposal.total_facts)
            self._compactions.append(
                ReplayedCompaction(history.head, proposal.stages_used, *numbers, proposal.made_by, seconds)
            )
            self._policy = self._policy.compacted(self._measured())
        else:
            self._policy = self._policy.compacted_in_vain(self._measured())

    def _measured(self) -> Measurement:
        return Measurement(self._meter.used(self._history), self._budget)

    def _prefix(self, view: View) -> int:
        """Tokens of the messages at the beginning that a request with this view shares with one of the current view."""
        provider = self._meter.provider
        earlier, now = (repair(resolve(self._history, one), provider) for one in (view, self._history.view))
        raw = self._meter.fixed_raw
        for one, other in zip(earlier, now, strict=False):
            if one != other:
                break
            raw += self._history.message_tokens(one)
        return self._meter.scaled(raw)


class _Counted:
    """A summarizer, and the raw tokens of all that it read and wrote."""

    def __init__(self, summarizer: Summarizer) -> None:
        self._summarizer = summarizer
        self.raw = 0

    def __call__(self, messages: list[dict[str, Any]]) -> str:
        self.raw += sum(message_tokens(message_from_dict(row)) for row in messages)
        text = self._summarizer(messages)
        self.raw += message_tokens(Message("assistant", text))
        return text


def _sum(costs: Sequence[float | None]) -> float | None:
    known = [cost for cost in costs if cost is not None]
    return sum(known) if known and len(known) == len(costs) else None
