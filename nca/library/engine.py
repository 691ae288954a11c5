"""The engine as a program uses it: what follows from settings and model, made once, and the planning with it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from nca.compat.stages import MORE_STAGES
from nca.config.extensions import is_built_in, load_stage
from nca.config.loaded import LoadedSettings
from nca.context.calibration import Calibration
from nca.context.driver import run
from nca.context.history import History
from nca.context.meter import Meter
from nca.context.plan import Proposal, no_summarizer
from nca.context.plan import compact as plan_compaction
from nca.context.summary import SummaryFailure, SummaryReply, SummaryRequest
from nca.errors import UsageError
from nca.library.inputs import budget_of, facts_of, kind_of
from nca.models.catalog import describe
from nca.wire import message_to_dict

Summarizer = Callable[[list[dict[str, Any]]], str]
"""Takes what a model is to be asked, OpenAI-shaped, and returns the summary's text."""


class Engine:
    """Plans compactions for one model. Raises UsageError, ConfigError when it is made.

    provider       whose rules the requests obey; "": the model's
    tools          the tool definitions that go along, and are counted
    system_prompt  the same, where it is no message of the conversation
    """

    def __init__(
        self,
        loaded: LoadedSettings,
        model: str,
        *,
        provider: str = "",
        tools: Sequence[dict[str, Any]] = (),
        system_prompt: str = "",
        summarizer: Summarizer | None = None,
    ) -> None:
        loaded = loaded.for_model(model)
        self.facts = facts_of(model, loaded)
        self.budget = budget_of(self.facts, loaded)
        self.settings = loaded.settings.context
        self.has_own_target = loaded.origin("context.target_ratio") != "default"
        self.has_summarizer = summarizer is not None
        self._model, self._system_prompt, self._tools = model, system_prompt, tools
        self.meter = self._meter_for(provider)
        self._ask = asking(summarizer)
        self._summarizer_window = _window_of_summarizer(loaded)
        # Loaded before anything else is done, so that a stage which cannot be is an error here and not a silence later.
        self._stages = {name: load_stage(name) for name in self.settings.stages if not is_built_in(name)}

    def obey(self, provider: str) -> None:
        """Measure requests by the rules of this provider from now on; "": the model's."""
        if (provider or self.facts.provider) != self.meter.provider:
            self.meter = self._meter_for(provider)

    def compact(
        self,
        history: History,
        *,
        target_ratio: float = 0.0,
        target_tokens: int = 0,
        has_recall: bool = True,
        focus: str = "",
    ) -> Proposal:
        """Plan a compaction and ask the summarizer. Raises ContextDoesNotFit.

        target_tokens  the size to reach; 0: the ratio decides, and with 0 for both the default
        has_recall     whoever reads the view can look up what it leaves out (see `nca.context.plan.compact`)
        """
        self.meter.look(history)
        planning = plan_compaction(
            history,
            self.meter,
            self.budget,
            self.settings,
            focus=focus,
            target_ratio=target_ratio,
            target_tokens=target_tokens,
            has_recall=has_recall,
            summarizer_window=self._summarizer_window,
            has_summarizer=self.has_summarizer,
            more_stages=MORE_STAGES,
        )
        return run(planning, self._ask, self._stages.__getitem__)

    def notices(self, proposal: Proposal) -> tuple[str, ...]:
        """Without a summarizer, nothing about a summary that no model wrote."""
        return tuple(proposal.notices if self.has_summarizer else proposal.stage_notices)

    def _meter_for(self, provider: str) -> Meter:
        return Meter(
            model=self._model,
            provider=provider or self.facts.provider,
            calibration=Calibration.unlearned(self.facts.provider, self._model, count_as=self.settings.count_as),
            system_prompt=self._system_prompt,
            tools=self._tools,
        )


def _window_of_summarizer(loaded: LoadedSettings) -> int:
    """Tokens: the window of the model that model.summarizer names; 0, which stands for the budget's own, for none."""
    name = loaded.settings.model.summarizer
    return describe(name).window_tokens if name not in ("", "none") else 0


def asking(summarizer: Summarizer | None) -> Callable[[SummaryRequest], SummaryReply | SummaryFailure]:
    """A program's callable as the engine asks it; whatever it does, it gives a reply or a failure."""
    if summarizer is None:
        return no_summarizer
    if not callable(summarizer):
        raise UsageError(f"summarizer: expected something to call with messages, found {kind_of(summarizer)}.")

    def ask(request: SummaryRequest) -> SummaryReply | SummaryFailure:
        try:
            text = summarizer([message_to_dict(message) for message in request.messages])
        except Exception as error:  # noqa: BLE001 - a program's callable may raise anything; the summary survives it
            return SummaryFailure(f"the summarizer raised {type(error).__name__}")
        return SummaryReply(text, "summarizer") if isinstance(text, str) else SummaryFailure("the summary is not text")

    return ask
