"""The engine for programs: built once from settings and model, then plans compactions."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from inspect import isawaitable, iscoroutine, iscoroutinefunction
from typing import Any, TypeVar

from nca.compat.stages import MORE_STAGES
from nca.config.extensions import BUILT_IN, load_stage
from nca.config.loaded import LoadedSettings
from nca.context.calibration import Calibration
from nca.context.driver import run
from nca.context.history import History
from nca.context.meter import Meter
from nca.context.plan import Asking, Proposal, Question, no_summarizer
from nca.context.plan import compact as plan_compaction
from nca.context.request import of_a_program
from nca.context.stages.custom import StageReply, consult, reason_of
from nca.context.summary import SummaryFailure, SummaryReply, SummaryRequest
from nca.errors import UsageError
from nca.humanize import kind_name
from nca.library.inputs import budget_of, facts_of, read_text, read_tools, shown
from nca.models.catalog import describe
from nca.shapes.shaped import ShapedMessages
from nca.wire import message_to_dict

T = TypeVar("T")
Summarizer = Callable[[list[dict[str, Any]]], str]
"""Takes what a model is to be asked, OpenAI-shaped, and returns the summary's text."""
AsyncSummarizer = Callable[[list[dict[str, Any]]], Awaitable[str]]


class Engine:
    """Plans compactions for one model. Raises UsageError, ConfigError when it is made.

    model          "": the one that a request's object names
    tools          the tool definitions of the request, which are counted; None: those of the object
    system_prompt  the same, if it is not a message of the conversation
    is_chat        see ContextSettings.decided
    """

    def __init__(
        self,
        loaded: LoadedSettings,
        model: str,
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        system_prompt: str = "",
        summarizer: Summarizer | AsyncSummarizer | None = None,
        is_chat: bool = False,
    ) -> None:
        self._loaded, self._named, self._system_prompt = loaded, read_text(model, "model"), system_prompt
        self._is_chat = is_chat
        self._own_tools = None if tools is None else read_tools(tools)
        self.has_summarizer = summarizer is not None
        self._ask, self._ask_async = asking(summarizer), asking_async(summarizer)
        self._take(model, 0, self._own_tools or [])

    def _take(self, model: str, answer_tokens: int, tools: list[dict[str, Any]]) -> None:
        """Work for this model and these tools; `answer_tokens`: the longest answer, where no setting says one."""
        loaded = self._loaded.with_default("model.max_output_tokens", answer_tokens).for_model(model)
        self._taken, self._model, self._tools = (model, answer_tokens, tools), model, tools
        self.facts = facts_of(model, loaded)
        self.budget = budget_of(self.facts, loaded)
        self.settings = loaded.settings.context.decided(is_chat=self._is_chat)
        self._asked_tokens = loaded.settings.model.max_output_tokens
        self.meter = self._meter_for("")
        self._summarizer_window = _window_of_summarizer(loaded)
        # Loaded before anything else is done, so that a stage which cannot be is an error here and not a silence later.
        self._stages = {name: load_stage(name) for name in self.settings.stages if name not in BUILT_IN}

    def obey(self, request: ShapedMessages) -> None:
        """Work for this request from now on: by its shape's rules, else those of the model's provider.

        The model, the longest answer and the tools that its object names count where nothing else says them.
        """
        tools = read_tools(request.tools) if self._own_tools is None else self._own_tools
        if (asked := (self._named or request.model, request.answer_tokens, tools)) != self._taken:
            self._take(*asked)
        if of_a_program(request.rules or self.facts.provider) != self.meter.provider:
            self.meter = self._meter_for(request.rules)

    def planning(
        self,
        history: History,
        *,
        target_tokens: int = 0,
        is_repeated: bool = False,
        has_recall: bool = True,
        focus: str = "",
    ) -> Asking[Proposal]:
        """A compaction, which yields its questions: for `run`, or with `answer`. Raises ContextDoesNotFit.

        target_tokens  the size to reach; 0: the settings' ratio decides
        is_repeated    as of `nca.context.plan.compact`
        has_recall     the view's reader can look up the messages that it leaves out (see `nca.context.plan.compact`)
        """
        return plan_compaction(
            history,
            self.meter,
            self.budget,
            self.settings,
            focus=focus,
            target_tokens=target_tokens,
            is_repeated=is_repeated,
            has_recall=has_recall,
            summarizer_window=self._summarizer_window,
            has_summarizer=self.has_summarizer,
            more_stages=MORE_STAGES,
        )

    def run(self, planning: Asking[T]) -> T:
        """Answer all its questions and return its result. Raises UsageError if the summarizer is asynchronous."""
        return run(planning, self._ask, self._stages.__getitem__)

    async def answer(self, question: Question) -> SummaryReply | SummaryFailure | StageReply:
        """The answer in an event loop; a program's synchronous code runs in a thread."""
        if isinstance(question, SummaryRequest):
            return await self._ask_async(question)
        return await _in_thread(consult, question, self._stages.__getitem__)

    def notices(self, proposal: Proposal | None = None) -> tuple[str, ...]:
        """What a program should know: of its settings, and of a compaction."""
        said = list(proposal.notices) if proposal else []
        if self.facts.is_window_guess:
            window = f"{self.facts.window_tokens:,} tokens"
            named = f"The window of {shown(self._model)} is not known: {window} are assumed"
            unnamed = f"No model is named: a window of {window} is assumed"
            said.insert(0, f"{named if self._model else unnamed}; context_window sets it.")
        if self._asked_tokens > (reserved := self.budget.reserve_tokens):
            asked = f"{self._asked_tokens:,} to {reserved:,}"
            said.insert(0, f"max_output_tokens is lowered from {asked}: the answer may take half of the window.")
        stages = self.settings.stages
        if proposal and proposal.cut_newest:
            said.append("The newest message is larger than the window and was cut.")
        elif proposal and "truncate" in proposal.stages_used and "truncate" not in stages:
            left = f"After {', '.join(stages)} it was still over the budget" if stages else "No stage is named"
            said.append(f"{left}, so the last resort (truncate) hid or cut the oldest.")
        return tuple(said)

    def _meter_for(self, rules: str) -> Meter:
        return Meter(
            model=self._model,
            provider=of_a_program(rules or self.facts.provider),
            calibration=Calibration.unlearned(self.facts.provider, self._model, count_as=self.settings.count_as),
            system_prompt=self._system_prompt,
            tools=self._tools,
        )


def _window_of_summarizer(loaded: LoadedSettings) -> int:
    """Tokens: the window of the model that model.summarizer names; 0 (the budget's own window) if it names none."""
    name = loaded.settings.model.summarizer
    return describe(name).window_tokens if name not in ("", "none") else 0


def asking(
    summarizer: Summarizer | AsyncSummarizer | None,
) -> Callable[[SummaryRequest], SummaryReply | SummaryFailure]:
    """Wrap a program's callable so that it returns a reply or a failure, whatever it raises.

    Raises UsageError, even when it is called, if its result must be awaited.
    """
    if summarizer is None:
        return no_summarizer
    if not callable(summarizer):
        raise UsageError(f"summarizer: expected something to call with messages, found {kind_name(summarizer)}.")

    def ask(request: SummaryRequest) -> SummaryReply | SummaryFailure:
        try:
            text = summarizer(_rows(request))
        except Exception as error:  # noqa: BLE001 - a program's callable may raise anything; the summary survives it
            return _failed(error)
        if isawaitable(text):
            if iscoroutine(text):
                text.close()
            raise UsageError(
                "summarizer: is asynchronous; valid here: one that returns text.",
                advice="`await ContextView.afit(messages)` takes both.",
            )
        return _replied(text)

    return ask


def asking_async(
    summarizer: Summarizer | AsyncSummarizer | None,
) -> Callable[[SummaryRequest], Coroutine[Any, Any, SummaryReply | SummaryFailure]]:
    """The same for an event loop. A synchronous callable runs in a thread of the loop."""
    is_async = iscoroutinefunction(summarizer) or iscoroutinefunction(type(summarizer).__call__)

    async def ask(request: SummaryRequest) -> SummaryReply | SummaryFailure:
        if summarizer is None:
            return no_summarizer(request)
        try:
            said: Any = summarizer(_rows(request)) if is_async else await _in_thread(summarizer, _rows(request))
            return _replied(await said if isawaitable(said) else said)
        except Exception as error:  # noqa: BLE001 - as above
            return _failed(error)

    return ask


async def _in_thread(function: Callable[..., T], *arguments: object) -> T:
    # Imported here: nothing else of a compaction needs it, and it takes 20 ms.
    import asyncio

    return await asyncio.to_thread(function, *arguments)


def _rows(request: SummaryRequest) -> list[dict[str, Any]]:
    return [message_to_dict(message) for message in request.messages]


def _replied(text: object) -> SummaryReply | SummaryFailure:
    return SummaryReply(text, "summarizer") if isinstance(text, str) else SummaryFailure("the summary is not text")


def _failed(error: Exception) -> SummaryFailure:
    return SummaryFailure(f"the summarizer {reason_of(error)}")
