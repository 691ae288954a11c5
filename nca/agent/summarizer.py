"""Ask a model for the summaries of a compaction, within a deadline, and count what they cost."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from nca.agent.window import Window
from nca.config.extensions import load_stage
from nca.context.request import meant_for
from nca.context.stages.custom import StageReply, StageRequest, consult
from nca.context.summary import SummaryFailure, SummaryReply, SummaryRequest
from nca.errors import ProviderError
from nca.messages import Usage
from nca.models.catalog import describe
from nca.models.client import Model, ModelRequest
from nca.wire import message_to_dict


class Summarizer:
    """The model that the settings name, opened when first needed, else the chat's own.

    model  the chat's
    cost   what the current compaction's summaries cost so far, in US dollars; None where no price is known
    """

    def __init__(self, window: Window, model: Model, open_model: Callable[[str], Awaitable[Model]]) -> None:
        self.model = model
        self.cost: float | None = None
        self.refused_tokens = 0
        """A request of so many tokens overflowed although it should fit: the real window is smaller. 0: none did."""
        self._window = window
        self._open = open_model
        self._dedicated: Model | None = None

    @property
    def may_be_asked(self) -> bool:
        return self._named != "none" and (bool(self._named) or self.model.facts.can_summarize)

    @property
    def window_tokens(self) -> int:
        """Tokens: the smaller one of the chat's, as it is known by now, and a dedicated summarizer's.

        Both, because the chat's model is asked where the dedicated one cannot open.
        """
        own = min(self._window.budget.window_tokens, self.refused_tokens or self._window.budget.window_tokens)
        return own if self._named in ("", "none") else min(own, describe(self._named).window_tokens)

    async def ask(self, request: SummaryRequest, seconds: float) -> SummaryReply | SummaryFailure:
        """One summary within so many seconds; whatever goes wrong is a failure with its reason."""
        if self._named == "none":
            return SummaryFailure("no summarizer is set", is_final=True)
        if seconds <= 0:
            return SummaryFailure("the deadline is over", is_final=True)
        if 0 < self._window.settings.session.max_cost <= self._window.spent:
            return SummaryFailure("the session has cost what it may (session.max_cost)", is_final=True)
        try:
            async with asyncio.timeout(seconds):
                model = await self._chosen()
                if not model.facts.can_summarize:
                    return SummaryFailure(f"{model.facts.name} is too small to summarize", is_final=True)
                is_live = model is self.model and model.facts.reuses_prefix and bool(request.live)
                reply = await model.ask(self._question(request, model, is_live=is_live), lambda _: None)
        except TimeoutError:
            return SummaryFailure("the deadline is over", is_final=True)
        except ProviderError as error:
            return SummaryFailure(error.message)
        self._count(reply.usage, model.facts.name)
        return SummaryReply(reply.message.text, model.facts.name, bool(reply.message.tool_calls), is_live)

    async def consult_stage(self, request: StageRequest) -> StageReply:
        """Ask a stage of another package, on a thread: it may take its time, and the chat goes on meanwhile.

        One that takes longer than a summary may is left behind, since a thread cannot be ended.
        """
        seconds = self._window.context.summarize.deadline_seconds
        try:
            async with asyncio.timeout(seconds):
                return await asyncio.to_thread(consult, request, load_stage)
        except TimeoutError:
            return StageReply(failure=f"the stage {request.name} did not answer within {seconds:g} seconds")

    async def close(self) -> None:
        if self._dedicated is not None:
            await self._dedicated.close()

    @property
    def _named(self) -> str:
        return self._window.settings.model.summarizer

    async def _chosen(self) -> Model:
        """The summarizer that the settings name, else the chat's model; the chat's too where that one cannot open."""
        if not self._named or self._named == self.model.facts.name:
            return self.model
        if self._dedicated is None or self._dedicated.facts.name != self._named:
            try:
                self._dedicated = await self._open(self._named)
            except ProviderError:
                return self.model
        return self._dedicated

    def _question(self, request: SummaryRequest, model: Model, *, is_live: bool) -> ModelRequest:
        """Behind the unchanged turns for a model that keeps its evaluated prefix; else as one flattened text."""
        if is_live:
            system = [{"role": "system", "content": self._window.system_prompt}] if self._window.system_prompt else []
            live = [message_to_dict(meant_for(model.facts.name, message)) for message in request.live]
            ask = {"role": "user", "content": request.instruction}
            return ModelRequest([*system, *live, ask], self._window.tools, request.max_tokens)
        return ModelRequest([message_to_dict(message) for message in request.messages], [], request.max_tokens)

    def _count(self, usage: Usage | None, model: str) -> None:
        if usage is not None:
            self._window.record_beside(model, usage)
            self.cost = self.cost if usage.cost is None else (self.cost or 0.0) + usage.cost
