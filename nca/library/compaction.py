"""`nca.compact`: compact a list of messages into a valid request within its target."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import InitVar, dataclass
from typing import Any

import msgspec

from nca.compat.stages import MORE_STAGES
from nca.config.extensions import is_built_in, load_stage
from nca.config.loaded import LoadedSettings
from nca.context.calibration import Calibration
from nca.context.driver import run
from nca.context.history import History
from nca.context.meter import Meter
from nca.context.plan import Proposal, no_summarizer
from nca.context.plan import compact as plan_compaction
from nca.context.request import resolve
from nca.context.retention import KeptFacts
from nca.context.summary import SummaryFailure, SummaryReply, SummaryRequest
from nca.errors import UsageError
from nca.library.inputs import (
    budget_of,
    facts_of,
    history_of,
    kind_of,
    read_conversation,
    read_text,
    read_tools,
    settings_of,
)
from nca.models.catalog import ModelFacts, describe
from nca.shapes.shaped import ShapedMessages
from nca.wire import message_to_dict

Summarizer = Callable[[list[dict[str, Any]]], str]
"""Takes what a model is to be asked, OpenAI-shaped, and returns the summary's text."""


class _Counting:
    """Holds what counts the kept facts; it is no field, so that the result can be written as JSON."""

    __slots__ = ("_facts",)
    _facts: KeptFacts | None


@dataclass(frozen=True, slots=True)
class CompactionResult(_Counting):
    """What a compaction gave. Counts in tokens.

    messages   a valid request, in the shape that was handed in; where `compacted` is False as they came, repaired
    items      the view, item by item: what is verbatim, stubbed, summarized or left out, by position from 1; a system
               prompt, and each tool result, counts as a message of its own
    notices    what did not go as it was asked for, a sentence each: a summarizer or a stage of a package that failed
    shape      openai, anthropic or responses: what the messages were recognized as
    request    the object that was handed in, with these messages instead of its own; None for a list
    """

    compacted: bool
    stages_used: tuple[str, ...]
    tokens_before: int
    tokens_after: int
    tokens_saved: int
    budget_tokens: int
    target_tokens: int
    items: list[dict[str, Any]]
    messages: list[dict[str, Any]]
    notices: tuple[str, ...] = ()
    shape: str = "openai"
    request: dict[str, Any] | None = None
    facts: InitVar[KeptFacts | None] = None

    def __post_init__(self, facts: KeptFacts | None) -> None:
        object.__setattr__(self, "_facts", facts)

    @property
    def kept_facts(self) -> dict[str, int]:
        """{"kept", "total"}: of all that was ever stated, what can be read in what is left. Counted when asked for."""
        kept, total = self._facts.count() if self._facts else (0, 0)
        return {"kept": kept, "total": total}


def compact(
    messages: Sequence[Mapping[str, Any]] | Mapping[str, Any],
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

    messages     OpenAI's chat messages, Anthropic's messages or Responses items, as a list, or as an object that holds
                 them beside its system prompt and tools (see docs/library.md)
    model, context_window, max_output_tokens   what the budget follows from; 0: what is known of the model
    target       share of the budget; None: the setting context.target_ratio
    stages       which stages, in which order; None: the setting context.stages
    summarizer   takes a list of messages and returns the summary's text; None: the summary is an extract made by code.
                 What it is asked fits the window of the model that the setting model.summarizer names, else of `model`;
                 what does not fit into one question is asked in several
    focus        what the summary should keep above all
    tools        the tool definitions that go along with the request; they are counted; None: those of the object
    settings     by nca's names or those of another program

    Raises InvalidMessages, UsageError, ConfigError, ContextDoesNotFit.
    """
    loaded = settings_of(
        settings, context_window=context_window, max_output_tokens=max_output_tokens, target=target, stages=stages
    )
    return compact_loaded(messages, loaded, model=model, summarizer=summarizer, focus=focus, tools=tools)


def compact_loaded(
    messages: Sequence[Mapping[str, Any]] | Mapping[str, Any],
    loaded: LoadedSettings,
    *,
    model: str,
    summarizer: Summarizer | None,
    focus: str,
    tools: Sequence[Mapping[str, Any]] | None,
) -> CompactionResult:
    """`compact` with settings that were read already: the one path of library and command."""
    shaped = read_conversation(messages)
    history = history_of(shaped.messages)
    ask = asking(summarizer)
    loaded = loaded.for_model(read_text(model, "model"))
    facts = facts_of(model, loaded)
    budget = budget_of(facts, loaded)
    calibration = Calibration.unlearned(facts.provider, count_as=loaded.settings.context.count_as)
    meter = Meter(
        model=model,
        provider=shaped.provider or facts.provider,
        calibration=calibration,
        tools=read_tools(shaped.tools if tools is None else tools),
    )
    context = loaded.settings.context
    # Loaded before anything else is done, so that a stage which cannot be is an error here and not a silence later.
    stages = {name: load_stage(name) for name in context.stages if not is_built_in(name)}
    is_default = loaded.origin("context.target_ratio") == "default"
    planning = plan_compaction(
        history,
        meter,
        budget,
        context,
        focus=read_text(focus, "focus"),
        target_ratio=0.0 if is_default else context.target_ratio,
        summarizer_window=summarizer_window(loaded),
        has_summarizer=summarizer is not None,
        more_stages=MORE_STAGES,
    )
    proposal = run(planning, ask, stages.__getitem__)
    notices = proposal.notices if summarizer is not None else proposal.stage_notices
    return _result(shaped, history, proposal, facts, notices)


def summarizer_window(loaded: LoadedSettings) -> int:
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


def _result(
    shaped: ShapedMessages, history: History, proposal: Proposal, facts: ModelFacts, notices: Sequence[str]
) -> CompactionResult:
    shown = shaped.repair(resolve(history, proposal.view), facts.provider)
    rows = shaped.write(shown, [entry.message for entry in history.entries]).rows
    return CompactionResult(
        compacted=proposal.compacted,
        stages_used=proposal.stages_used,
        tokens_before=proposal.tokens_before,
        tokens_after=proposal.tokens_after,
        tokens_saved=proposal.tokens_saved,
        budget_tokens=proposal.budget_tokens,
        target_tokens=proposal.target_tokens,
        items=_items(history, proposal),
        messages=rows,
        notices=tuple(notices),
        shape=shaped.shape,
        request=shaped.request(rows),
        facts=proposal.facts,
    )


def _items(history: History, proposal: Proposal) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = [msgspec.to_builtins(item) for item in proposal.view.items]
    if proposal.view.tail <= history.head:
        items.append({"type": "verbatim", "first": proposal.view.tail, "last": history.head})
    return items
