"""Track what a session costs and enforce its limit (`session.max_cost`); ask a model beside the conversation."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal

import msgspec

from nca.agent.window import Window
from nca.context.tokens import text_tokens
from nca.errors import CostLimitReached, NcaError, ProviderError, ProviderFailure
from nca.events import Listener, Notice, SideRequestFinished
from nca.messages import Usage
from nca.models.catalog import ModelFacts, cost_of, money
from nca.models.model import Delta, Model, ModelRequest, OnDelta, Reply, server_of
from nca.sessions.usage import BESIDE, UNREPORTED
from nca.wire import content_text

WARNING_RATIO = 0.8
ANSWERS_NAME = "answers"
BESIDE_NAME = "other requests"
"""Requests for summaries, subtasks, `/btw` and MCP servers."""
WITHOUT_TOOLS = "{model} takes no tools ({said}). In this session it answers without them."


@dataclass(frozen=True, slots=True)
class Spent:
    """The usage of a group of requests; `name` says which group."""

    name: str
    requests: int
    usage: Usage


class Spending:
    """Checks the limit before each request, and warns once when it is near."""

    def __init__(self, window: Window, emit: Listener) -> None:
        self._window = window
        self._emit = emit
        self._warned_of = 0.0
        self._unpriced = ""
        self._before: Usage | None = None

    def begin_turn(self) -> None:
        self._before = self._window.session.usage.totals()

    @property
    def of_turn(self) -> float | None:
        """US dollars for the current or last turn; None before the first turn, or if no price is known."""
        total, before = self._window.session.usage.totals().cost, self._before
        return None if total is None or before is None else total - (before.cost or 0.0)

    @property
    def usage_of_turn(self) -> Usage:
        """The usage of the current or last turn, summaries included: what it added to the session's."""
        totals = self._window.session.usage.totals()
        *now, _ = msgspec.structs.astuple(totals)
        *before, _ = msgspec.structs.astuple(self._before or totals)
        spent: list[Any] = [total - earlier for total, earlier in zip(now, before, strict=True)]
        return msgspec.structs.replace(Usage(*spent), cost=self.of_turn)

    def by_model(self) -> list[Spent]:
        """The usage of each model, in the order in which they were first asked."""
        return _grouped((row.model, row.usage) for row in self._window.session.usage.rows())

    def by_purpose(self) -> list[Spent]:
        """The usage of answers, and of everything else: summaries, subtasks, answers in several samplings."""
        rows = self._window.session.usage.rows()
        return _grouped((BESIDE_NAME if row.seq == BESIDE else ANSWERS_NAME, row.usage) for row in rows)

    def unreported(self) -> Spent | None:
        """nca's own count for answers that were stopped or broke off; None if there was none."""
        rows = [row for row in self._window.session.usage.rows() if row.seq == UNREPORTED]
        return next(iter(_grouped((ANSWERS_NAME, row.usage) for row in rows)), None)

    @property
    def limit(self) -> float:
        """US dollars; 0: no limit."""
        return self._window.settings.session.max_cost

    def check(self) -> None:
        """Raise CostLimitReached if the session has reached its limit. Call it before each request."""
        if not self.limit:
            return
        refuse_above_limit(self._window)
        facts = self._window.facts
        if facts.input_cost is None and self._unpriced != facts.name:
            self._unpriced = facts.name
            self._emit(Notice(f"The price of {facts.name} is not known, so session.max_cost does not apply to it."))

    def warn(self) -> None:
        """Warn once that the limit is near. Call it after each request."""
        if not self.limit or self._warned_of == self.limit:
            return
        spent = self._window.spent
        if spent >= WARNING_RATIO * self.limit:
            self._warned_of = self.limit
            self._emit(Notice(f"This session has cost {money(spent)} of {money(self.limit)} (session.max_cost)."))


def refuse_above_limit(window: Window, model: Model | None = None, count: Callable[[], int] = int) -> None:
    """Raise CostLimitReached if the session has reached its limit.

    model  also if a request to it with as many tokens as `count` says costs more than is left, whatever it answers
    """
    limit, spent = window.settings.session.max_cost, window.spent
    if 0 < limit <= spent:
        raise CostLimitReached(
            f"This session has cost {money(spent)}, and session.max_cost is {money(limit)}. Nothing was sent.",
            advice=_allowing(spent + _least_cost(window, window.facts, window.measure().used_tokens)),
        )

    if limit and model is not None and spent + (cost := _least_cost(window, model.facts, count())) > limit:
        raise CostLimitReached(
            f"This request alone costs about {money(cost)}, and {money(limit - spent)} is left of {money(limit)}"
            " (session.max_cost). Nothing was sent.",
            advice=_allowing(spent + cost),
        )


def _allowing(needed: float) -> str:
    """The advice to allow twice of what the session would have cost with the next request."""
    limit = float(f"{2 * needed:.2g}")
    return f"`--max-cost {limit:g}` allows more; the same message then continues."


def _least_cost(window: Window, facts: ModelFacts, prompt_tokens: int) -> float:
    """The cost of the prompt if the provider has as much of it cached as last time; 0 if no price is known."""
    last = window.session.usage.reports(1)
    kept = last[-1].usage.cache_read_tokens + last[-1].usage.cache_write_tokens if last else 0
    return cost_of(facts, Usage(prompt_tokens, 0, cache_read_tokens=min(kept, prompt_tokens))) or 0.0


def _grouped(rows: Iterable[tuple[str, Usage]]) -> list[Spent]:
    groups: dict[str, list[Usage]] = {}
    for name, usage in rows:
        groups.setdefault(name, []).append(usage)
    return [Spent(name, len(used), sum(used, Usage(0, 0))) for name, used in groups.items()]


async def ask_counted(
    window: Window, model: Model, request: ModelRequest, count: Callable[[], int], hear: OnDelta
) -> Reply:
    """The reply. If it is stopped or breaks off after it began, what was sent and came back is recorded anyway:
    the provider charges for it, and reports it only at the end.

    count  says what the request takes, by nca's own count
    """
    received: list[str] | None = None

    def take(delta: Delta) -> None:
        nonlocal received
        received = [] if received is None else received
        received.append(delta.reasoning + delta.text + (delta.call.piece if delta.call else ""))
        hear(delta)

    try:
        return await model.ask(request, take)
    except BaseException:
        if received is not None:
            used = Usage(count(), window.meter.scaled(text_tokens("".join(received))))
            used = msgspec.structs.replace(used, cost=cost_of(model.facts, used))
            with contextlib.suppress(NcaError):  # the answer's own error is the one to report
                window.record_beside(model.facts.name, used, seq=UNREPORTED)
        raise


def leave_out_tools(window: Window, facts: ModelFacts, failure: ProviderFailure, emit: Listener) -> None:
    """Note that a model refuses the tools of a request, and say so once."""
    if window.state.leave_out_tools(facts):
        emit(Notice(WITHOUT_TOOLS.format(model=facts.name, said=failure.message.rstrip("."))))


async def _ask_with_tools_or_without(
    window: Window, model: Model, request: ModelRequest, count: Callable[[], int], hear: OnDelta, emit: Listener
) -> Reply:
    """The reply to a request whose tools are there only because the conversation has them: a model may refuse them."""
    if window.state.as_met(model.facts).can_use_tools:
        try:
            return await ask_counted(window, model, request, count, hear)
        except ProviderError as error:
            if error.failure.parameter != "tools" or not request.tools:
                raise
            leave_out_tools(window, model.facts, error.failure, emit)
    return await ask_counted(window, model, replace(request, tools=[]), count, hear)


async def ask_beside(
    window: Window,
    model: Model,
    request: ModelRequest,
    purpose: Literal["summary", "question", "sampling"],
    emit: Listener,
    hear: OnDelta = lambda _: None,
) -> Reply:
    """The reply. Raises CostLimitReached and the model's errors; listeners hear of the request either way."""

    def count() -> int:
        return window.meter.scaled(sum(text_tokens(content_text(row.get("content") or "")) for row in request.messages))

    refuse_above_limit(window, model, count)
    name, server, started = model.facts.name, server_of(model), time.monotonic()
    try:
        reply = await _ask_with_tools_or_without(window, model, request, count, hear, emit)
    except BaseException as error:
        seconds, failure = time.monotonic() - started, type(error).__name__
        emit(SideRequestFinished(purpose, name, seconds, failure=failure, server=server))
        raise
    seconds = time.monotonic() - started
    emit(SideRequestFinished(purpose, name, seconds, reply.usage, server=server, response=reply.response))
    if reply.usage is not None:
        window.record_beside(name, reply.usage)
    return reply
