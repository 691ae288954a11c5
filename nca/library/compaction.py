"""`nca.compact`: compact a list of messages into a valid request within its target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import InitVar, dataclass
from typing import Any

import msgspec

from nca.collector import collector_paused
from nca.config.loaded import LoadedSettings
from nca.context.history import History
from nca.context.plan import Proposal
from nca.context.request import resolve
from nca.context.retention import KeptFacts
from nca.context.view import View
from nca.library.engine import Engine, Summarizer
from nca.library.inputs import history_of, read_conversation, read_text, read_tools, settings_of
from nca.shapes.shaped import ShapedMessages


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
        """{"kept", "total"}: of the person's messages and the changed files, what can be read in what is left.

        Counted when asked for.
        """
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
    fit: str | None = None,
) -> CompactionResult:
    """Bring a conversation to its target.

    messages     OpenAI's chat messages, Anthropic's messages or Responses items, as a list, or as an object that holds
                 them beside its system prompt and tools (see docs/library.md)
    model, context_window, max_output_tokens   what the budget follows from; 0: what is known of the model
    target       share of the budget, a limit to the result; None: the setting context.target_ratio
    stages       which stages, in which order; None: the setting context.stages
    summarizer   takes a list of messages and returns the summary's text; None: the summary is an extract made by code.
                 What it is asked fits the window of the model that the setting model.summarizer names, else of `model`;
                 what does not fit into one question is asked in several
    focus        what the summary should keep above all
    tools        the tool definitions that go along with the request; they are counted; None: those of the object
    settings     by nca's names or those of another program
    fit          a newest message that alone is larger than the window: "cut" it, or "refuse" it, as by default

    Raises InvalidMessages, UsageError, ConfigError, ContextDoesNotFit.
    """
    loaded = settings_of(
        settings,
        context_window=context_window,
        max_output_tokens=max_output_tokens,
        target=target,
        stages=stages,
        fit=fit,
    )
    return compact_loaded(messages, loaded, model=model, summarizer=summarizer, focus=focus, tools=tools)


@collector_paused()
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
    engine = Engine(
        loaded,
        read_text(model, "model"),
        provider=shaped.provider,
        tools=read_tools(shaped.tools if tools is None else tools),
        summarizer=summarizer,
    )
    planning = engine.planning(
        history,
        has_recall=False,
        focus=read_text(focus, "focus"),
    )
    proposal = engine.run(planning)
    return _result(shaped, history, proposal, engine)


def _result(shaped: ShapedMessages, history: History, proposal: Proposal, engine: Engine) -> CompactionResult:
    shown = shaped.repair(resolve(history, proposal.view), engine.facts.provider)
    rows = shaped.write(shown, [entry.message for entry in history.entries]).rows
    return CompactionResult(
        compacted=proposal.compacted,
        stages_used=proposal.stages_used,
        tokens_before=proposal.tokens_before,
        tokens_after=proposal.tokens_after,
        tokens_saved=proposal.tokens_saved,
        budget_tokens=proposal.budget_tokens,
        target_tokens=proposal.target_tokens,
        items=items_of(history, proposal.view),
        messages=rows,
        notices=engine.notices(proposal),
        shape=shaped.shape,
        request=shaped.request(rows),
        facts=proposal.facts,
    )


def items_of(history: History, view: View) -> list[dict[str, Any]]:
    """The items of a view, and its tail as the last of them."""
    items: list[dict[str, Any]] = [msgspec.to_builtins(item) for item in view.items]
    if view.tail <= history.head:
        items.append({"type": "verbatim", "first": view.tail, "last": history.head})
    return items
