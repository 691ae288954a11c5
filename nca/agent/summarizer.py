"""Ask a model for the summaries of a compaction, within a deadline, and count their cost."""

from __future__ import annotations

import asyncio

from nca.agent.fallbacks import Fallbacks
from nca.agent.spending import ask_beside
from nca.agent.window import Window
from nca.config.extensions import load_stage
from nca.context.request import meant_for
from nca.context.stages.custom import StageReply, StageRequest, consult
from nca.context.summary import SummaryFailure, SummaryReply, SummaryRequest
from nca.errors import CostLimitReached, NcaError, ProviderError
from nca.events import Listener, Notice
from nca.models.catalog import describe
from nca.models.client import Model, ModelRequest
from nca.wire import message_to_dict


class Summarizer:
    """The model that `model.summarizer` names, or else the one that answers in the chat.

    cost   what the current compaction's summaries cost so far, in US dollars; None if no price is known
    """

    def __init__(self, window: Window, models: Fallbacks, emit: Listener) -> None:
        self.cost: float | None = None
        self._window = window
        self._models = models
        self._emit = emit
        self._said_of = ""
        """The summarizer that cannot be opened, as the person was told."""

    def start(self, cost: float | None = None) -> None:
        """Begin a compaction, for which `cost` was paid already."""
        self.cost = cost

    @property
    def may_be_asked(self) -> bool:
        return self._named != "none" and (bool(self._named) or self._models.active.facts.can_summarize)

    @property
    def window_tokens(self) -> int:
        """Tokens: the smaller one of the chat's, as it is known by now, and a dedicated summarizer's.

        Both, because the chat's model is asked where the dedicated one cannot open.
        """
        own = min(self._window.budget.window_tokens, self._window.refused_tokens or self._window.budget.window_tokens)
        return own if self._named in ("", "none") else min(own, describe(self._named).window_tokens)

    async def ask(self, request: SummaryRequest, seconds: float) -> SummaryReply | SummaryFailure:
        """Ask for one summary within this many seconds. Any error becomes a failure with its reason."""
        if self._named == "none":
            return SummaryFailure("no summarizer is set", is_final=True)
        if seconds <= 0:
            return SummaryFailure("the deadline is over", is_final=True)
        try:
            async with asyncio.timeout(seconds):
                model = await self._chosen()
                if not model.facts.can_summarize:
                    return SummaryFailure(f"{model.facts.name} is too small to summarize", is_final=True)
                is_live = model is self._models.active and model.facts.reuses_prefix and bool(request.live)
                question = self._question(request, model, is_live=is_live)
                reply = await ask_beside(self._window, model, question, "summary", self._emit)
        except TimeoutError:
            return SummaryFailure("the deadline is over", is_final=True)
        except CostLimitReached:
            return SummaryFailure("the session has reached its cost limit (session.max_cost)", is_final=True)
        except ProviderError as error:
            return SummaryFailure(error.message)
        if reply.usage is not None and reply.usage.cost is not None:
            self.cost = (self.cost or 0.0) + reply.usage.cost
        has_calls, is_cut = bool(reply.message.tool_calls), reply.finish_reason == "length"
        return SummaryReply(reply.message.text, model.facts.name, has_calls, is_live, is_cut)

    async def consult_stage(self, request: StageRequest) -> StageReply:
        """Ask a stage of another package on a thread, so that the chat continues meanwhile.

        After the deadline of a summary it is abandoned, since a thread cannot be stopped.
        """
        seconds = self._window.context.summarize.deadline_seconds
        try:
            async with asyncio.timeout(seconds):
                return await asyncio.to_thread(consult, request, load_stage)
        except TimeoutError:
            return StageReply(failure=f"the stage {request.name} did not answer within {seconds:g} seconds")

    @property
    def _named(self) -> str:
        return self._window.settings.model.summarizer

    async def _chosen(self) -> Model:
        """The named summarizer, or the chat's model if none is named or it cannot be opened."""
        if not self._named or self._named == self._models.active.facts.name:
            return self._models.active
        try:
            return await self._models.open(self._named)
        except NcaError as error:
            if self._said_of != self._named:
                self._said_of = self._named
                self._emit(
                    Notice(f"{self._models.active.facts.name} summarizes in place of {self._named}: {error.message}")
                )
            return self._models.active

    def _question(self, request: SummaryRequest, model: Model, *, is_live: bool) -> ModelRequest:
        """The question after the unchanged turns, for a model that reuses its evaluated prefix; else as one text."""
        if is_live:
            prompt = self._window.prompt.text
            system = [{"role": "system", "content": prompt}] if prompt else []
            live = [message_to_dict(meant_for(model.facts.name, message)) for message in request.live]
            ask = {"role": "user", "content": request.instruction}
            return ModelRequest([*system, *live, ask], self._window.tools, request.max_tokens)
        return ModelRequest([message_to_dict(message) for message in request.messages], [], request.max_tokens)
