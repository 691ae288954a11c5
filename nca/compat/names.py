"""The names that other programs, and older versions of nca, give to nca's settings.

Every name is accepted wherever a setting is named, and answered with nca's own (`nca.config.overrides`). It is compared
without case, `_` and `-`, so `contextCompaction.enablePruning` and `NCA_CONTEXTCOMPACTION__ENABLEPRUNING` are one name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

STAGES = ("condense", "trim")
"""CowAgent's stages, off by default: reduce finished turns to question and answer; summarize the older half."""
STAGE_ALIASES = {"clear_results": "prune", "sliding_window": "truncate"}
"""Neuron's names of stages."""


class ForeignName(NamedTuple):
    """One setting as another program calls it.

    names    every spelling, the best known first
    key      nca's name
    convert  what was written → what nca's setting reads; None: the value means the same
    valid    what it accepts, where that differs from nca's setting
    part     "provider" or "model": half of a value; the halves given together are joined
    stage    it switches this stage on or off
    """

    names: tuple[str, ...]
    key: str
    convert: Callable[[Any], Any] | None = None
    valid: str = ""
    part: str = ""
    stage: str = ""


def join_summarizer(provider: Any, model: Any, current: str) -> str:
    """`provider/model` from the two halves of another program; a half that is None is taken from the current value.

    Raises ValueError if a half is not text, or a provider stands alone.
    """
    for half in (provider, model):
        if half is not None and (not isinstance(half, str) or not half.strip() or "\0" in half):
            raise ValueError("not valid")
    before, _, after = current.partition("/")
    if provider is None:
        return f"{before}/{model}" if after else str(model)
    chosen = model if model is not None else (after or before)
    if chosen in ("", "none"):
        raise ValueError("not valid")
    return f"{_PROVIDERS.get(provider, provider)}/{chosen}"


_PROVIDERS = {"vertex": "vertex_ai", "google-ai": "gemini"}
"""NeuroLink's names of providers that litellm calls otherwise."""


def _percent(raw: Any) -> Any:
    """A percentage: 75 and "75" mean 75%, and 1 means 1%."""
    return str(raw).strip().rstrip("%").strip() + "%"


def _none_if_auto(raw: Any) -> Any:
    """NeuroLink's `auto`: the share alone decides."""
    return 0 if str(raw).strip().lower() == "auto" else raw


def _compaction(*fields: str, with_bare: bool = False) -> tuple[str, ...]:
    """NeuroLink's places of a field: its block, the block's full path, and alone (as an argument of a call)."""
    places = ("contextCompaction.", "conversationMemory.contextCompaction.", *([""] if with_bare else []))
    return tuple(place + one for place in places for one in fields)


def _summarizer(part: Literal["provider", "model"], valid: str) -> ForeignName:
    """One half of the name of the model that writes summaries."""
    field = f"summarization{part.title()}"
    names = (f"agent.summarization_{part}", f"conversationMemory.{field}", *_compaction(field, with_bare=True))
    return ForeignName((*names, f"NEUROLINK_SUMMARIZATION_{part.upper()}"), "model.summarizer", valid=valid, part=part)


def _switch(stage: str, *names: str) -> ForeignName:
    """NeuroLink's switch of a stage, which some versions call by other `names`."""
    switches = (*names, *_compaction(f"enable{stage.title()}", with_bare=True))
    return ForeignName(switches, "context.stages", valid="true or false", stage=stage)


_PERCENT = "a percentage above 0 up to 100"

FOREIGN_NAMES: tuple[ForeignName, ...] = (
    ForeignName(("memory.context.context_window_target", "agent_max_context_tokens"), "context.max_tokens"),
    ForeignName(("memory.context.max_retained_messages",), "context.max_messages"),
    ForeignName(("memory.context.auto_summarize_threshold",), "context.idle_threshold", _percent, _PERCENT),
    ForeignName(("memory.context.enable_auto_summarize", *_compaction("enabled")), "context.auto"),
    ForeignName((*_compaction("threshold"), "agent.summarization_threshold"), "context.compact_threshold"),
    ForeignName(("agent_max_context_turns",), "context.max_turns"),
    ForeignName(("agent_max_steps",), "agent.max_steps"),
    ForeignName(("agent.summarization_preserve_turns",), "context.preserve_turns"),
    _summarizer("provider", "a provider's name, given together with the model's"),
    _summarizer("model", "a model's name"),
    _switch("prune", *_compaction("enablePruning")),
    _switch("deduplicate", *_compaction("enableDeduplication")),
    _switch("summarize", "conversationMemory.enableSummarization", "NEUROLINK_SUMMARIZATION_ENABLED"),
    _switch("truncate", *_compaction("enableSlidingWindow")),
    ForeignName(_compaction("maxToolOutputBytes"), "context.admission.max_bytes"),
    ForeignName(_compaction("maxToolOutputLines"), "context.admission.max_lines"),
    ForeignName(_compaction("fileReadBudgetPercent"), "context.admission.file_ratio"),
    ForeignName(_compaction("pruneProtectTokens", with_bare=True), "context.prune.protect_tokens"),
    ForeignName(_compaction("pruneMinimumSavings", with_bare=True), "context.prune.minimum_savings_tokens"),
    ForeignName(_compaction("pruneProtectedTools", with_bare=True), "context.prune.protected_tools"),
    ForeignName(_compaction("keepRecentRatio", with_bare=True), "context.keep_recent_ratio"),
    ForeignName(_compaction("truncationFraction", with_bare=True), "context.truncate.fraction"),
    ForeignName(_compaction("provider", with_bare=True), "context.count_as"),
    ForeignName(("conversationMemory.enabled", "NEUROLINK_MEMORY_ENABLED"), "session.persist"),
    ForeignName(("NEUROLINK_TOKEN_THRESHOLD",), "context.compact_tokens", _none_if_auto, "a number of tokens, or auto"),
    ForeignName(("NEUROLINK_MEMORY_MAX_SESSIONS",), "session.max_sessions"),
    ForeignName(("agent.claude_hooks",), "agent.use_claude_home"),
    ForeignName(("permissions.mode",), "agent.permission"),
)
