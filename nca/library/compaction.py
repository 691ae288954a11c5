"""`nca.compact`: compact a list of messages into a valid request within its target.

Its parts: repair tool calls and results that lack their other half, and validate a request.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import InitVar, dataclass
from typing import Any

import msgspec

from nca.config.loaded import LoadedSettings
from nca.config.schema import Fit
from nca.context.history import History
from nca.context.plan import Proposal
from nca.context.request import resolve
from nca.context.retention import KeptFacts
from nca.context.rules.calls import with_results_in_order, with_unique_ids, with_whole_pairs
from nca.context.validate import CHECKS, FAMILIES
from nca.context.validate import validate_request as check
from nca.context.view import View
from nca.errors import ContextDoesNotFit, InvalidMessages, UsageError
from nca.humanize import kind_name
from nca.library.engine import Engine, Summarizer
from nca.library.inputs import (
    history_of,
    in_library,
    is_list,
    read_conversation,
    read_text,
    read_tools,
    settings_of,
    shown,
)
from nca.messages import Message
from nca.models.catalog import describe
from nca.shapes.detect import shape_of
from nca.shapes.shaped import ShapedMessages, without_notes
from nca.wire import message_to_dict, plain_json


class _Counting:
    """Holds the counter of kept facts; not a field, so that the result can be written as JSON."""

    __slots__ = ("_facts",)
    _facts: KeptFacts | None


@dataclass(frozen=True, slots=True)
class CompactionResult(_Counting):
    """The result of a compaction. Counts in tokens.

    messages   a valid request, in the shape of the input; if `compacted` is False, the input, of which only
               that is repaired which the model's provider would refuse
    items      the view: the messages that are verbatim, stubbed, summarized or left out, by position from 1; a system
               prompt, and each tool result, counts as a message of its own
    notices    problems, one sentence each: a summarizer that failed, or what had to be cut
    shape      openai, anthropic or responses: the recognized shape of the messages
    request    the object that was passed in, with these messages instead of its own; None for a list
    """

    compacted: bool
    stages_used: tuple[str, ...]
    tokens_before: int
    tokens_after: int
    tokens_saved: int
    budget_tokens: int
    target_tokens: int
    items: list[dict[str, Any]]
    messages: list[Any]
    notices: tuple[str, ...] = ()
    shape: str = "openai"
    request: dict[str, Any] | None = None
    facts: InitVar[KeptFacts | None] = None

    def __post_init__(self, facts: KeptFacts | None) -> None:
        object.__setattr__(self, "_facts", facts)

    @property
    def kept_facts(self) -> dict[str, int]:
        """{"kept", "total"}: of the person's messages and the changed files, those of which the result shows something.

        A message counts from its first 80 characters on: `kept` says how many are whole. Counted on first access.
        """
        kept, total = self._facts.count() if self._facts else (0, 0)
        return {"kept": kept, "total": total}

    @property
    def kept(self) -> dict[str, tuple[int, int]]:
        """(kept, all) by kind: `words`, of these `whole`, `files`, `answers`, `answers_cut` (see docs/library.md).

        Kinds of which there is nothing are left out, and `whole` if all kept ones are. Counted on first access.
        """
        return dict(self._facts.by_kind()) if self._facts else {}


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
    fit: Fit | None = None,
) -> CompactionResult:
    """Bring a conversation to its target.

    messages     OpenAI's chat messages, Anthropic's messages or Responses items, as a list, or as an object that holds
                 them beside its system prompt and tools (see docs/library.md)
    model, context_window, max_output_tokens   determine the budget; "" and 0: what the object says, else what is
                 known of the model
    target       size limit of the result, as a share of the budget; None: the setting context.target_ratio
    stages       the stages, in order; None: the setting context.stages. What is still over the budget after them is
                 truncated down to the target, named or not, and a notice says so
    summarizer   takes a list of messages and returns the summary's text; None: the summary is an extract made by code.
                 Its input fits the window of the model that the setting model.summarizer names, else of `model`;
                 longer input is split into several calls
    focus        the subject that the summary should keep above all
    tools        the tool definitions of the request, which are counted; None: those of the object
    settings     by nca's names or another program's
    fit          "cut" or "refuse" (the default) a newest message that alone is larger than the window

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
    try:
        return compact_loaded(messages, loaded, model=model, summarizer=summarizer, focus=focus, tools=tools)
    except ContextDoesNotFit as error:
        raise in_library(error) from None


def compact_loaded(
    messages: Sequence[Mapping[str, Any]] | Mapping[str, Any],
    loaded: LoadedSettings,
    *,
    model: str,
    summarizer: Summarizer | None,
    focus: str,
    tools: Sequence[Mapping[str, Any]] | None,
) -> CompactionResult:
    """`compact` with settings that are already read; library and command both use it."""
    shaped = read_conversation(messages)
    history = history_of(shaped.messages)
    engine = Engine(loaded, model, tools=tools, summarizer=summarizer)
    engine.obey(shaped)
    planning = engine.planning(history, has_recall=False, focus=read_text(focus, "focus"))
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


@dataclass(frozen=True, slots=True)
class RepairResult:
    """A conversation in which every tool call has exactly one result, directly after it.

    repaired                whether anything was wrong
    messages                in the shape of the input; they carry no marks, because a provider refuses unknown
                            keys
    orphaned_calls_fixed    calls that got a made-up result
    orphaned_results_fixed  results that got a made-up call
    synthetic               positions of made-up messages in `messages`, from 0
    """

    repaired: bool
    messages: list[Any]
    orphaned_calls_fixed: int
    orphaned_results_fixed: int
    synthetic: tuple[int, ...] = ()


def repair_tool_pairs(messages: Sequence[Mapping[str, Any]] | Mapping[str, Any]) -> RepairResult:
    """Give every tool call one result and every result its call, in any shape that `compact` takes.

    A call without a result gets "[Tool result unavailable - conversation was compacted]"; a result without a call gets
    an assistant message "[Tool call for <tool> - conversation was compacted]" that makes it. A second result for one
    call is left out; results move up to their call, in the order of a parallel batch; ids shared by several calls
    become different ones. Nothing else changes: `validate_request` checks the other rules of providers.

    Raises InvalidMessages.
    """
    shaped = read_conversation(messages)
    read = shaped.messages
    whole = with_results_in_order(with_whole_pairs(with_results_in_order(read)))
    known = {id(message) for message in read}
    made = [position for position, message in enumerate(whole) if id(message) not in known]
    ids = [call.id for message in whole for call in message.tool_calls]
    renamed = with_unique_ids(whole) if len(set(ids)) < len(ids) else whole
    written = shaped.write(renamed, read)
    return RepairResult(
        repaired=_differs(read, renamed),
        messages=written.rows,
        orphaned_calls_fixed=sum(whole[position].role == "tool" for position in made),
        orphaned_results_fixed=sum(whole[position].role == "assistant" for position in made),
        synthetic=tuple(dict.fromkeys(written.places[position] for position in made)),
    )


def validate_request(
    messages: Sequence[Mapping[str, Any]] | Mapping[str, Any],
    provider: str,
    *,
    tools: Sequence[Mapping[str, Any]] | None = None,
) -> list[str]:
    """One line for each reason why the provider would refuse a request; empty if it is valid.

    messages   in any shape that `compact` takes; the lines number messages as in OpenAI's shape, where a system
               prompt and each tool result are messages of their own

    provider   openai, anthropic, gemini, mistral, a name of theirs (azure, bedrock, vertex, claude …), or a model's
               name; all others are held to OpenAI's rules

    Raises UsageError for a missing or misspelled provider, InvalidMessages for what `compact` cannot read and no rule
    names.
    """
    provider = _read_provider(provider)
    if isinstance(messages, Mapping) or (is_list(messages) and messages and shape_of(messages) != "openai"):
        shaped = read_conversation(messages)
        rows = [message_to_dict(message) for message in shaped.messages]
        return check(rows, provider, tools=read_tools(shaped.tools if tools is None else tools))
    if not is_list(messages):
        raise InvalidMessages(f"messages: expected a list of messages, found {kind_name(messages)}.")
    if not messages:
        return ["there are no messages"]
    sent = [_sent(message, f"message {index}") for index, message in enumerate(messages, 1)]
    problems = check(sent, provider, tools=read_tools(tools))
    if not problems:
        read_conversation(messages)
    return problems


def _read_provider(given: Any) -> str:
    """A provider, or a model's by its name. A name that is nearly a known one is a slip. Raises UsageError."""
    name, known = read_text(given, "provider").strip(), (*CHECKS, *FAMILIES)
    first = name.split("/", 1)[0].lower()
    if first in known:
        return first
    if not first or difflib.get_close_matches(first, known, n=1, cutoff=_NEAR_RATIO):
        wrong = f" = {shown(name)} is not known" if first else ": is missing"
        raise UsageError(f"provider{wrong}; valid: {', '.join(known)}, a model's name, or another provider.")
    return describe(name).provider or first


_NEAR_RATIO = 0.8
"""Above it, as difflib counts, a provider's name is a known one misspelled; none of litellm's providers is so near."""


def _differs(before: Sequence[Message], after: Sequence[Message]) -> bool:
    return len(before) != len(after) or any(one is not two for one, two in zip(before, after, strict=True))


def _sent(message: Any, place: str) -> dict[str, Any]:
    """What is sent of a message, without what JSON cannot hold and values of the wrong type: no rule applies to them.

    Raises InvalidMessages.
    """
    if not isinstance(message, Mapping):
        raise InvalidMessages(f"{place}: expected an object with role and content, found {kind_name(message)}.")
    sent = without_notes(message)
    plain_json(sent, place)
    content, calls = message.get("content"), message.get("tool_calls")
    if not (content is None or isinstance(content, str) or is_list(content)):
        raise InvalidMessages(f"{place}: content is {kind_name(content)}; valid: text, a list of parts, or null.")
    for part in content if isinstance(content, Sequence) and not isinstance(content, str) else ():
        texts = (part.get("type"), part.get("text", "")) if isinstance(part, Mapping) else (None,)
        if not all(isinstance(text, str) for text in texts):
            raise InvalidMessages(
                f'{place}: a part of the content is {kind_name(part)}; valid: an object with a "type".'
            )
    if not (calls is None or is_list(calls)):
        raise InvalidMessages(f"{place}: tool_calls is {kind_name(calls)}; valid: a list of calls.")
    for call in calls or ():
        called = [call.get(key) or {} for key in ("function", "custom")] if isinstance(call, Mapping) else [None]
        if not (all(isinstance(one, Mapping) for one in called) and isinstance(call.get("id", ""), str | None)):
            raise InvalidMessages(f'{place}: a tool call is no {{"id", "type", "function": {{"name", "arguments"}}}}.')
    return sent
