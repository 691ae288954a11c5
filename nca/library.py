"""The engine for a program: OpenAI-shaped dicts in and out, nothing handed in is changed.

These functions are `nca.compact`, `nca.check_context_budget` and so on; errors are `nca.NcaError` and its leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from nca.config.loaded import LoadedSettings, defaults
from nca.context.budget import Budget, output_reserve
from nca.context.history import History
from nca.context.meter import Meter
from nca.context.plan import Proposal, no_summarizer, run
from nca.context.plan import compact as plan_compaction
from nca.context.request import request_messages
from nca.context.summary import SummaryFailure, SummaryReply, SummaryRequest
from nca.context.tokens import RESULT_CHARS_PER_TOKEN, text_tokens
from nca.errors import UsageError
from nca.messages import Entry, Message
from nca.models.catalog import ModelFacts, describe
from nca.wire import message_to_dict, messages_from_list

Summarizer = Callable[[list[dict[str, Any]]], str]


@dataclass(frozen=True, slots=True)
class CompactionResult:
    """What a compaction gave. Counts in tokens.

    messages   a valid request, OpenAI-shaped; where `compacted` is False the messages as they came, repaired
    items      the view, item by item: what is verbatim, stubbed, summarized or left out, by position from 1
    kept_facts {"kept", "total"}: facts of the messages that went, found by code in what is left
    """

    compacted: bool
    stages_used: tuple[str, ...]
    tokens_before: int
    tokens_after: int
    tokens_saved: int
    budget_tokens: int
    target_tokens: int
    kept_facts: dict[str, int]
    items: list[dict[str, Any]]
    messages: list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class BudgetCheck:
    """How full the next request is. Counts in tokens; `breakdown` sums to estimated_input_tokens."""

    within_budget: bool
    estimated_input_tokens: int
    available_input_tokens: int
    usage_ratio: float
    should_compact: bool
    breakdown: dict[str, int]


def compact(
    messages: Sequence[Mapping[str, Any]],
    *,
    model: str = "",
    context_window: int = 0,
    max_output_tokens: int = 0,
    target: float | None = None,
    stages: Sequence[str] | None = None,
    summarizer: Summarizer | None = None,
    focus: str = "",
    tools: Sequence[Mapping[str, Any]] | None = None,
    settings: Mapping[str, Any] | None = None,
) -> CompactionResult:
    """Bring a conversation to its target.

    model, context_window, max_output_tokens   what the budget follows from; 0: what is known of the model
    target       share of the budget; None: the setting context.target_ratio
    stages       which stages, in which order; None: the setting context.stages
    summarizer   takes a list of messages and returns the summary's text; None: the summary is an extract made by code
    settings     by canonical or seed names

    Raises InvalidMessages, ConfigError, ContextDoesNotFit.
    """
    loaded = _settings(settings, context_window, max_output_tokens, target, stages)
    return compact_loaded(messages, loaded, model=model, summarizer=summarizer, focus=focus, tools=tools)


def compact_loaded(
    messages: Sequence[Mapping[str, Any]],
    loaded: LoadedSettings,
    *,
    model: str,
    summarizer: Summarizer | None,
    focus: str,
    tools: Sequence[Mapping[str, Any]] | None,
) -> CompactionResult:
    """`compact` with settings that were read already: the one path of library and command."""
    history = _log(messages_from_list(messages))
    loaded = loaded.for_model(model)
    facts = _facts(model, loaded)
    budget = _budget(facts, loaded)
    meter = Meter(model=model, provider=facts.provider, tools=[dict(tool) for tool in tools or ()])
    planning = plan_compaction(history, meter, budget, loaded.settings.context, focus=focus)
    proposal = run(planning, _asking(summarizer))
    return _result(history, proposal, facts)


def check_context_budget(
    messages: Sequence[Mapping[str, Any]],
    *,
    model: str = "",
    context_window: int = 0,
    max_output_tokens: int = 0,
    system_prompt: str = "",
    current_prompt: str = "",
    tools: Sequence[Mapping[str, Any]] | None = None,
    files: Sequence[Mapping[str, Any]] | None = None,
    threshold: float | None = None,
    settings: Mapping[str, Any] | None = None,
) -> BudgetCheck:
    """Measure the next request. `files`: mappings with `content`; `threshold`: share of the budget, None: the setting.

    Raises InvalidMessages, ConfigError.
    """
    overrides = dict(settings or {})
    if threshold is not None:
        overrides["context.compact_threshold"] = threshold
    loaded = _settings(overrides, context_window, max_output_tokens, None, None)
    facts = _facts(model, loaded)
    budget = _budget(facts, loaded)
    read = messages_from_list(messages) if messages else []
    if current_prompt:
        read.append(Message("user", current_prompt))
    history = _log(read)
    meter = Meter(
        model=model, provider=facts.provider, system_prompt=system_prompt, tools=[dict(tool) for tool in tools or ()]
    )
    measured = meter.measure(history, budget)
    attached = sum(_file_tokens(meter, file) for file in files or ())
    used = measured.used_tokens + attached
    breakdown = {**measured.breakdown, "attachments": measured.breakdown["attachments"] + attached}
    return BudgetCheck(
        within_budget=used <= budget.budget_tokens,
        estimated_input_tokens=used,
        available_input_tokens=budget.budget_tokens,
        usage_ratio=used / budget.budget_tokens,
        should_compact=used >= budget.trigger_tokens(loaded.settings.context),
        breakdown=breakdown,
    )


def context_window_size(model: str, provider: str = "") -> int:
    """The window of a model, in tokens."""
    return describe(f"{provider}/{model}" if provider and "/" not in model else model).window_tokens


def available_input_tokens(model: str, provider: str = "", max_output_tokens: int = 0) -> int:
    """Window less the reserve for the answer, in tokens."""
    window = context_window_size(model, provider)
    return window - output_reserve(window, max_output_tokens)


def _log(messages: Sequence[Message]) -> History:
    return History(Entry(seq, message) for seq, message in enumerate(messages, 1))


def _settings(
    settings: Mapping[str, Any] | None,
    context_window: int,
    max_output_tokens: int,
    target: float | None,
    stages: Sequence[str] | None,
) -> LoadedSettings:
    given: dict[str, Any] = dict(settings or {})
    if context_window:
        given["model.context_window"] = context_window
    if max_output_tokens:
        given["model.max_output_tokens"] = max_output_tokens
    if target is not None:
        given["context.target_ratio"] = target
    if stages is not None:
        given["context.stages"] = list(stages)
    return defaults().with_values(given, "the call")


def _facts(model: str, loaded: LoadedSettings) -> ModelFacts:
    return describe(model, context_window=loaded.settings.model.context_window)


def _budget(facts: ModelFacts, loaded: LoadedSettings) -> Budget:
    settings = loaded.settings
    return Budget.of(facts.window_tokens, settings.model.max_output_tokens, settings.context.max_tokens)


def _asking(summarizer: Summarizer | None) -> Callable[[SummaryRequest], SummaryReply | SummaryFailure]:
    if summarizer is None:
        return no_summarizer

    def ask(request: SummaryRequest) -> SummaryReply | SummaryFailure:
        try:
            text = summarizer([message_to_dict(message) for message in request.messages])
        except Exception as error:  # noqa: BLE001 - a program's callable may raise anything; the summary survives it
            return SummaryFailure(f"the summarizer raised {type(error).__name__}")
        return SummaryReply(text, "summarizer") if isinstance(text, str) else SummaryFailure("the summary is not text")

    return ask


def _result(history: History, proposal: Proposal, facts: ModelFacts) -> CompactionResult:
    return CompactionResult(
        compacted=proposal.compacted,
        stages_used=proposal.stages_used,
        tokens_before=proposal.tokens_before,
        tokens_after=proposal.tokens_after,
        tokens_saved=proposal.tokens_saved,
        budget_tokens=proposal.budget_tokens,
        target_tokens=proposal.target_tokens,
        kept_facts={"kept": proposal.kept_facts, "total": proposal.total_facts},
        items=_items(history, proposal),
        messages=request_messages(history, view=proposal.view, provider=facts.provider),
    )


def _items(history: History, proposal: Proposal) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = [msgspec.to_builtins(item) for item in proposal.view.items]
    if proposal.view.tail <= history.head:
        items.append({"type": "verbatim", "first": proposal.view.tail, "last": history.head})
    return items


def _file_tokens(meter: Meter, file: Mapping[str, Any]) -> int:
    content: Any = file.get("content")
    if not isinstance(content, str):
        raise UsageError("files: each must be a mapping with text under `content`.")
    return meter.scaled(text_tokens(content, RESULT_CHARS_PER_TOKEN))
