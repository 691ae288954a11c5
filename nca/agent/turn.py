"""One turn: ask the model, run its tools, until it answers. Everything is on disk before the next step."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from typing import Any, Literal

from nca import errors
from nca.agent.approvals import STOPPED
from nca.agent.calls import Calls
from nca.agent.partial import PartialAnswer
from nca.agent.parts import Parts
from nca.agent.reply_checks import ASKED_AGAIN, cut_notice, ending, is_cut
from nca.agent.spending import ask_counted, leave_out_tools, refuse_above_limit
from nca.agent.window import Window
from nca.context.file_reads import CUT_OFF, CUT_OFF_BY_USER, NOT_RUN
from nca.context.validate import validate_request
from nca.errors import ContextDoesNotFit, NcaError, OnlyReasoned, ProviderError, ProviderFailure, sentence
from nca.events import (
    ErrorRaised,
    Failure,
    Notice,
    RequestStarted,
    TurnFinished,
    UsageReported,
)
from nca.messages import Message, Usage
from nca.models.client import Delta, Model, ModelRequest, Reply
from nca.models.failures import PassingFailure
from nca.models.model import server_of

RECOVERY_SHARES = (0.7, 0.5)
"""After an overflow, compact to 0.7 of the true limit; after a second one, to 0.5; then give up."""
NEAR_WINDOW_RATIO = 0.8
"""From this share of the budget on, a refusal without a word is taken for an overflow."""
MOST_STOPS = 2
"""How often in one step a provider may stop to compact. Then it is asked once more, without leave to compact."""
NEVER_TOKENS = 1_000_000_000
"""No request is so long, so a provider told to compact from here on never does."""
FAILED = f"{NOT_RUN} the turn failed]"
STEP_LIMIT = "[not run: the turn reached its limit of {steps} steps]"
CUT_CALL = (
    "[not run: the answer reached its length limit of {tokens:,} tokens, so the arguments may be incomplete. "
    "Make a shorter call, such as a file in several parts.]"
)
LENGTHEN = "[The answer reached its length limit here. Go on exactly where it ended, without repeating any of it.]"
ANSWER_NOW = "[Your reasoning reached the length limit of the answer. Answer now.]"
GO_ON = "[The connection broke off here. Go on exactly where your answer ended, without repeating any of it.]"
GOES_ON = frozenset({LENGTHEN, GO_ON})
"""The text for the model between two parts of one answer."""
NOTHING_HELPS = (
    "Compacting did not help. Unpin messages, shorten the input, or use a model with a larger window (/model)."
)
EXIT_CODES = {"answered": 0, "max_steps": 1, "stuck": 1, "length": 1, "content_filter": 1, "interrupted": 130}
"""The exit code of a program after such a turn."""
_End = Literal["answered", "interrupted", "max_steps", "stuck", "length", "content_filter"]
_ENDS: dict[str, _End] = {"length": "length", "content_filter": "content_filter"}
"""How a turn ends with an answer that the provider ended for this reason; else it is answered."""


def request_of(window: Window, messages: list[dict[str, Any]], *, may_compact: bool) -> ModelRequest:
    """A request of these messages with all that goes along with those of the conversation."""
    at, model = window.provider_compacts_at, window.settings.model
    # Without a wish to compact the blocks of earlier ones could not go back.
    compact_at = at if may_compact else at and NEVER_TOKENS
    answer_tokens = window.answer_tokens()
    return ModelRequest(messages, window.tools, answer_tokens, model.own_temperature, compact_at, model.reasoning)


class Turn:
    """One turn while it runs. `text` is the last answer as far as it came, with all its parts if it was continued.

    `_partial` is the part that is being streamed, `_begun` the text of those before it.
    """

    def __init__(self, parts: Parts, within: str = "") -> None:
        """within: the beginning of the calls' ids in events."""
        self.window, self.compactor, self.models = parts.window, parts.compactor, parts.models
        self.spending, self.user_input, self.emit = parts.spending, parts.user_input, parts.emit
        self.calls = Calls(parts, within)
        self.text, self.steps = "", 0
        self._partial, self._begun = PartialAnswer(self.window.session.log, self.emit), ""
        self._has_gone = False
        self._told: list[str] = []

    async def run(self, missing: Callable[[], str] = str) -> TurnFinished:
        """Ask and run tools until the model answers. Raises NcaError. To interrupt, cancel it and call `interrupt`.

        missing: asked once, when the model has answered: the text for it if it has not done its task, or "".
        """
        started = time.monotonic()
        limit = self.window.settings.agent.max_steps
        self.models.begin_turn()
        self.spending.check()
        await self.compactor.before_turn()
        was_cut = False
        while True:
            self.steps += 1
            self._take_as_met()
            reply = await self._step()
            calls, is_second_cut = reply.message.tool_calls, was_cut
            was_cut = reply.finish_reason == "length"
            if not calls:
                if self.steps < limit and await self.user_input.goes_on(self.text):
                    continue
                if self.steps < limit and self._is_told(missing):
                    missing = str
                    continue
                return self._finished(_ENDS.get(reply.finish_reason, "answered"), started)
            if was_cut:
                self._close_calls(CUT_CALL.format(tokens=self.window.answer_tokens()))
                if is_second_cut:
                    return self._finished("length", started)
            elif self.steps >= limit:
                self._close_calls(STEP_LIMIT.format(steps=limit))
            else:
                await self.calls.run(calls)
                self.calls.hooks.check()
                if self.calls.repeats.round.is_stuck:
                    return self._finished("stuck", started)
            if self.steps >= limit:
                return self._finished("max_steps", started)
            await self.user_input.enter_typed_ahead()

    def _is_told(self, missing: Callable[[], str]) -> bool:
        """Whether the model continues because it was told what is missing."""
        if said := missing():
            self.window.append(Message("user", said, source="nca"))
            self.emit(Notice(ASKED_AGAIN))
        return bool(said)

    def interrupt(self, started: float) -> TurnFinished:
        """Keep the partial answer, marked as interrupted, and give every open call a result."""
        self._close_log(CUT_OFF_BY_USER, STOPPED)
        return self._finished("interrupted", started)

    def fail(self, error: BaseException, started: float) -> TurnFinished:
        """As `interrupt`, for a turn that failed."""
        if not self.window.session.is_read_only:
            self._close_log(CUT_OFF, FAILED, ended_by=error)
        took, why, is_filtered = time.monotonic() - started, Failure.of(error), isinstance(error, errors.AnswerFiltered)
        reason: Literal["content_filter", "failed"] = "content_filter" if is_filtered else "failed"
        return TurnFinished(reason, self.text, self.steps, took, exit_code=why.exit_code, error=why)

    def _close_log(self, cut_off: str, not_begun: str, *, ended_by: BaseException | None = None) -> None:
        """As `keep_partial`. A store that fails must not hide how the turn ended: its error is an event.

        ended_by  the error that ended the turn, which is told elsewhere: a second one of its kind says nothing new
        """
        try:
            self.keep_partial(cut_off, not_begun)
        except NcaError as error:
            if type(error) is not type(ended_by):
                self.emit(ErrorRaised.of(error))

    def keep_partial(self, cut_off: str = CUT_OFF_BY_USER, not_begun: str = STOPPED) -> None:
        """Append the partial answer, marked as interrupted, and a result for every open call, begun or not."""
        # Given up even if the store fails now: saved later, it would come after newer messages.
        if (part := self._partial.take_out()) is not None:
            self.text = self._begun + part.text
            self.window.append(part)
        self._close_calls(cut_off, not_begun)

    @property
    def model(self) -> Model:
        """The model that answers now."""
        return self.models.active

    async def _step(self) -> Reply:
        """One answer, in the log. A continued answer is one text, so notices about it come after it."""
        try:
            return await self._answer()
        except ProviderError as error:
            self._leave_out(sentence(error.message))
            raise
        finally:
            for said in self._told:
                self.emit(Notice(said))
            self._told.clear()

    async def _answer(self) -> Reply:
        """Ask until there is an answer.

        Recovers if the provider reports an overflow, lets another model take over if the provider is down, and asks
        again if the provider stops to compact, or the answer breaks off or ends for length.
        """
        shares, stops = iter(RECOVERY_SHARES), 0
        has_gone_on, is_lengthened, self._begun = False, False, ""
        while True:
            self.spending.check()
            await self.compactor.before_request()
            try:
                reply = await self._ask(may_compact=stops < MOST_STOPS)
            except ProviderError as error:
                if self._partial.text:
                    if has_gone_on or not self._can_go_on(error):
                        raise
                    self.keep_partial()
                    has_gone_on, self._begun = True, self.text
                    self._ask_on(GO_ON, sentence(error.message))
                elif isinstance(error, OnlyReasoned) and not is_lengthened:
                    is_lengthened = True
                    self._ask_on(ANSWER_NOW, sentence(error.message))
                elif await self.models.take_over(error, self.window.settings.model.fallbacks):
                    shares = iter(RECOVERY_SHARES)
                elif self._goes_on_without_tools(error.failure):
                    continue
                elif not await self._recovered(failure := self._explained(error.failure), next(shares, None)):
                    if failure.is_overflow:
                        raise ContextDoesNotFit(error.message, advice=NOTHING_HELPS) from error
                    raise
                continue
            self.spending.warn()
            if reply.finish_reason == "compaction":
                # If the summary replaced nothing, the same request would end in the same stop.
                stops = stops + 1 if self._has_gone else MOST_STOPS
                continue
            said = ending(reply, self.window.answer_tokens())
            if reply.finish_reason == "length" and not reply.message.tool_calls and not is_lengthened:
                is_lengthened, self._begun = True, self.text
                self._ask_on(LENGTHEN, said)
                continue
            self._leave_out(said)
            self._told = [f"{asked.removesuffix('.')}, and did." for asked in self._told] + [said] * bool(said)
            return reply

    def _ask_on(self, asked: str, why: str) -> None:
        """Let the next request ask the model to continue."""
        self.window.append(Message("user", asked, source="nca"))
        self._told.append(f"{why} The model was asked to continue.")

    def _leave_out(self, why: str) -> None:
        """Of what is told: this reason comes behind it, and is said once."""
        self._told = [said.removeprefix(why).lstrip() for said in self._told]

    def _can_go_on(self, error: ProviderError) -> bool:
        """Whether the model can be asked to continue with an answer that broke off."""
        is_broken = isinstance(error, PassingFailure) and error.most_retries is None
        return is_broken and bool(self._partial.text.strip() and self.window.settings.model.max_retries)

    def _goes_on_without_tools(self, failure: ProviderFailure) -> bool:
        """Whether the next request has none, because the model refuses those it was offered. The person is told."""
        if failure.parameter != "tools" or not self.window.tools:
            return False
        leave_out_tools(self.window, self.window.facts, failure, self.emit)
        self._take_as_met()
        return True

    def _take_as_met(self) -> None:
        """Offer no tools to a model that has refused them, here or in a question beside the conversation."""
        if self.window.tools and not self.window.state.as_met(self.window.facts).can_use_tools:
            self.window.use_model(self.window.facts)

    def _explained(self, failure: ProviderFailure) -> ProviderFailure:
        """The failure; a refusal without a word is an overflow if the request was near the window."""
        measured = self.window.measure()
        if not failure.is_unexplained or measured.used_tokens < NEAR_WINDOW_RATIO * measured.budget.budget_tokens:
            return failure
        return dataclasses.replace(failure, action="compact", is_overflow=True)

    async def _recovered(self, failure: ProviderFailure, share: float | None) -> bool:
        """Whether the next request asks for less. The person is told of the refusal.

        share  the part of the limit to aim for; None after the last round
        """
        before, told = self.window.budget.window_tokens, False

        def explain() -> None:
            nonlocal told
            told = True
            self.emit(Notice(self._refusal(failure, before)))

        asks_less = await self._asks_less(failure, share, explain)
        if asks_less and not told:
            self.emit(Notice(f"{self._refusal(failure, before)} The request is sent again."))
        elif self.window.budget.window_tokens < before and not told:
            self.emit(Notice(self._refusal(failure, before)))
        return asks_less

    def _refusal(self, failure: ProviderFailure, before: int) -> str:
        """What the provider refused. `before`: the window's tokens before this refusal named others."""
        tokens, name = self.window.budget.window_tokens, self.model.facts.name
        if tokens < before:
            origin = self.window.facts.window_origin or "known by its name"
            known = "are set (model.context_window)" if self.window.settings.model.context_window else f"were {origin}"
            return f"The window of {name} is {tokens:,} tokens, its provider says; {before:,} {known}."
        if failure.is_overflow:
            return f"{name} refused the request as too large."
        return f"{name} allows only shorter answers than it was asked for."

    async def _asks_less(self, failure: ProviderFailure, share: float | None, explain: Callable[[], None]) -> bool:
        if failure.action == "lower_max_tokens" and share is not None:
            return self.window.shorten_answer(failure)
        can_compact = failure.action in ("compact", "lower_max_tokens_then_compact") and failure.is_overflow
        if share is None or not can_compact:
            return False
        if await self.compactor.recover(failure, share=share, explain=explain):
            return True
        # Nothing more can be compacted, so the answer must get less room.
        return failure.action == "lower_max_tokens_then_compact" and self.window.shorten_answer(failure)

    async def _ask(self, *, may_compact: bool) -> Reply:
        self._partial.begin()
        started = time.monotonic()
        measured = self.window.measure()
        refuse_above_limit(self.window, self.model, lambda: measured.used_tokens)
        request = self._request(may_compact=may_compact)
        history = self.window.history
        raw, calls, head = self.window.meter.raw(history), history.view_calls, history.head
        known = self.window.meter.anchor.reported_tokens if self.window.meter.anchor is not None else 0
        name, server = self.model.facts.name, server_of(self.model)
        self.emit(RequestStarted(self.steps, name, measured.used_tokens, measured.budget.budget_tokens, server))
        reply = await ask_counted(self.window, self.model, request, lambda: measured.used_tokens, self._take)
        self._partial.begin()
        has_stopped = reply.finish_reason == "compaction"
        if not has_stopped:
            self.window.append(reply.message)
        usage = reply.usage or Usage(measured.used_tokens, 0)
        if reply.usage is not None and (has_stopped or reply.compaction):
            self.window.record_beside(self.model.facts.name, usage)
        elif reply.usage is not None and is_cut(measured, raw, known, usage.prompt_tokens):
            self.window.record_beside(self.model.facts.name, usage)
            if self.window.note_cut():  # every further request is cut in the same way
                self.emit(Notice(cut_notice(name, measured.used_tokens, usage.prompt_tokens)))
        elif reply.usage is not None:
            last = reply.samplings[-1].prompt_tokens if reply.samplings else None
            self.window.learn(raw, calls, head, usage, last)
        self.emit(UsageReported(usage, name, is_estimate=reply.usage is None, response=reply.response))
        self._has_gone = self.compactor.adopt(reply, self.model.facts.name, time.monotonic() - started)
        self.text = self.text if has_stopped else self._begun + reply.message.text
        return reply

    def _request(self, *, may_compact: bool) -> ModelRequest:
        messages = self.window.request_messages()
        problems = validate_request(messages, self.model.facts.provider or "openai", tools=self.window.tools)
        if problems:
            raise ProviderError(
                f"The request would be refused: {problems[0]}.",
                advice="This is a fault in nca; the session is unharmed. /context clear starts a fresh context.",
                failure=ProviderFailure("repair_history", is_overflow=False, message="; ".join(problems)),
            )
        return request_of(self.window, messages, may_compact=may_compact)

    def _take(self, delta: Delta) -> None:
        self._partial.take(delta)
        if delta.call is not None:
            self.calls.tell_written(delta.call)

    def _close_calls(self, text: str, not_begun: str = "") -> None:
        """Give every open call a result that says why it did not run; `not_begun`: of those that did not begin."""
        results = [
            Message(
                "tool",
                text if self.calls.has_begun(call) else not_begun or text,
                tool_call_id=call.id,
                name=call.name,
                is_error=True,
                source="nca",
            )
            for call in self.window.history.open_calls()
        ]
        if results:
            self.window.append(*results)

    def _finished(self, reason: _End, started: float) -> TurnFinished:
        seconds = time.monotonic() - started
        return TurnFinished(reason, self.text, self.steps, seconds, exit_code=EXIT_CODES[reason])
