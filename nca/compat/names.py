"""The names that other programs, and older versions of nca, give to nca's settings; and profiles.

Every name is accepted wherever a setting is named, and answered with nca's own (`nca.config.overrides`). It is compared
without case, `_` and `-`, so `contextCompaction.enablePruning` and `NCA_CONTEXTCOMPACTION__ENABLEPRUNING` are one name.

A profile is the settings of one of the five programs, in place of nca's defaults. A setting that the program does not
have keeps its default. So do the model that writes summaries and whether sessions are kept: a person chooses those. A
threshold of 1.0 means: not before the budget is full.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
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


_SUMMARY = {
    "context.summarize.max_tokens": 2_000,
    "context.summarize.ledger_tokens": 1_000,
    "context.summarize.user_turns_tokens": 3_000,
}
"""These programs keep a number of messages or turns and one short summary, so the record is kept short too."""

PROFILES: Mapping[str, Mapping[str, Any]] = {
    "none": {},
    # nca's first design: a budget of its own, the newest 50 messages, the older ones to one concise system message.
    "nca": {
        **_SUMMARY,
        "context.stages": ("summarize",),
        "context.max_tokens": 32_000,
        "context.max_messages": 50,
        "context.keep_recent_ratio": 1.0,
        "context.idle_threshold": 0.75,
        "context.compact_threshold": 0.80,
        "context.auto": "on",
        "context.summarize.role": "system",
        "context.summarize.header": "## Conversation Summary (Earlier Context)",
        "context.summarize.form": "bullets",
        "memory.file_path": ".nca/memory.json",
        "memory.max_notes": 128,
        "memory.auto_compact_on_finish": False,
    },
    # NeuroLink: four stages at 80% before a request, and nothing earlier. At least four messages stay: two turns.
    "neurolink": {
        **_SUMMARY,
        "model.max_reserve_tokens": 64_000,
        "context.auto": "on",
        "context.stages": ("prune", "deduplicate", "summarize", "truncate"),
        "context.info_threshold": 0.60,
        "context.idle_threshold": 0.80,
        "context.compact_threshold": 0.80,
        "context.preserve_turns": 2,
        "context.keep_recent_ratio": 0.3,
        "context.prune.protect_tokens": 40_000,
        "context.prune.keep_results": 0,
        "context.prune.minimum_savings_tokens": 20_000,
        "context.prune.protected_tools": ("skill",),
        "context.prune.placeholder": "[Tool result cleared]",
        "context.deduplicate.minimum_ratio": 0.3,
        "context.summarize.role": "system",
        "context.summarize.header": "## Conversation Summary (Earlier Context)",
        "context.summarize.form": "sections",
        "context.truncate.fraction": 0.5,
        "context.admission.max_bytes": 51_200,
        "context.admission.max_lines": 2_000,
        "context.admission.direction": "tail",
        "context.admission.file_ratio": 0.6,
        "session.max_sessions": 50,
    },
    # CowAgent: trimming by turns; over the budget, short sessions are condensed and long ones halved once more.
    "cowagent": {
        "context.stages": ("condense", "trim", "truncate"),
        "context.max_tokens": 50_000,
        "context.max_turns": 20,
        "context.idle_threshold": 1.0,
        "context.compact_threshold": 1.0,
        "context.truncate.fraction": 0.5,
        "context.admission.history_chars": 20_000,
        "context.admission.shorten_each_turn": True,
        "agent.max_steps": 15,
        "session.restore": "text",
        "session.retention_days": 30,
    },
    # Neuron: the strategies of its examples, cheapest first, at 100,000 tokens; no share of anything.
    "neuron": {
        **_SUMMARY,
        "context.stages": ("prune", "summarize", "truncate"),
        "context.compact_tokens": 100_000,
        "context.idle_threshold": 1.0,
        "context.compact_threshold": 1.0,
        "context.max_messages": 5,
        "context.keep_recent_ratio": 1.0,
        "context.prune.protect_tokens": 0,
        "context.prune.keep_results": 2,
        "context.prune.minimum_savings_tokens": 0,
        "context.prune.protected_tools": (),
        "context.prune.placeholder": "[tool result cleared]",
        "context.summarize.header": "[Summary of earlier conversation]",
        "context.summarize.form": "bullets",
    },
    # Nexora: at 80% of the window, not of a budget in it, everything but the newest five turns becomes a summary. The
    # fifth that remains is the room for the answer.
    "nexora": {
        **_SUMMARY,
        "model.output_ratio": 0.20,
        "context.stages": ("summarize",),
        "context.idle_threshold": 1.0,
        "context.compact_threshold": 1.0,
        "context.preserve_turns": 5,
        "context.keep_recent_ratio": 0.01,
    },
}
