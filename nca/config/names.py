"""The names of settings: nca's own, and those that its five seeds use for the same things.

A seed's name is accepted wherever a setting is named, and answered with the canonical one. It is compared without
case, `_` and `-`, so `contextCompaction.enablePruning`, `context_compaction.enable_pruning` and the environment's
`NCA_CONTEXTCOMPACTION__ENABLEPRUNING` are one name. Source of the table: the design's section on settings.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from nca.config.schema import KEYS, STAGES
from nca.config.value_types import boolean

Converter = Callable[[Any, Any], Any]
"""(what was written, the setting's current value) -> what the setting's kind reads. Raises ValueError."""

_LONGEST_NAME_CHARS = 80


@dataclass(frozen=True, slots=True)
class Seed:
    """One setting as a seed calls it.

    names    every spelling, the best known first
    key      the canonical name
    convert  None where the value means the same
    valid    what it accepts, where that differs from the canonical setting
    part     "provider" or "model": half of a value; nca.config.layers joins the halves given together
    """

    names: tuple[str, ...]
    key: str
    convert: Converter | None = None
    valid: str = ""
    part: str = ""


@dataclass(frozen=True, slots=True)
class Name:
    """A name that was understood: `key` is canonical; `seed` is None where the name itself was."""

    key: str
    seed: Seed | None = None


def canonical(name: str) -> Name | None:
    """What a written name means, or None. Dots separate tables: `memory.context.max_retained_messages`."""
    lowered = name.strip().lower()
    if lowered in KEYS:
        return Name(lowered)
    seed = _BY_NAME.get(_plain(lowered))
    return Name(seed.key, seed) if seed else None


def is_section(name: str) -> bool:
    """Whether the name is a table that holds settings, nca's or a seed's: `context`, `memory.context`."""
    return _plain(name.strip()) in _SECTIONS


def nearest(name: str) -> str | None:
    """The canonical or seed name that was probably meant, or None where none is near."""
    import difflib

    wanted = name.strip().lower()[:_LONGEST_NAME_CHARS]
    last = wanted.rpartition(".")[2]
    same_end = [key for key in KEYS if key.rpartition(".")[2] == last]
    if len(same_end) == 1:
        return same_end[0]
    candidates = {key: key for key in KEYS} | {one.lower(): one for seed in SEEDS for one in seed.names}
    matches = difflib.get_close_matches(wanted, candidates, n=1, cutoff=0.7)
    if not matches:
        ends = {key.rpartition(".")[2]: key for key in KEYS}
        return next((ends[end] for end in difflib.get_close_matches(last, ends, n=1, cutoff=0.8)), None)
    return candidates[matches[0]]


def join_summarizer(provider: Any, model: Any, current: str) -> str:
    """`provider/model` from a seed's two halves; a half that is None is taken from the current value.

    Raises ValueError where a half is no text, or a provider stands alone.
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
"""Seed 2's names of providers where litellm's differ."""


def _percent(raw: Any, current: Any) -> Any:
    """A percentage: 75 and "75" mean 75 %, and 1 means 1 %."""
    return str(raw).strip().rstrip("%").strip() + "%"


def _none_if_auto(raw: Any, current: Any) -> Any:
    """Seed 2's `auto`: by the share alone."""
    return 0 if str(raw).strip().lower() == "auto" else raw


def _stage(stage: str) -> Converter:
    def convert(raw: Any, current: tuple[str, ...]) -> tuple[str, ...]:
        if boolean().read(raw) == (stage in current):
            return current
        if stage in current:
            return tuple(one for one in current if one != stage)
        # It comes back at its usual place: before the first stage that usually follows it.
        rest = STAGES[STAGES.index(stage) + 1 :]
        at = next((index for index, one in enumerate(current) if one in rest), len(current))
        return (*current[:at], stage, *current[at:])

    return convert


def _compaction(*fields: str, with_bare: bool = False) -> tuple[str, ...]:
    """Seed 2's places of a field: its block, the block's full path, and alone (as an argument of a call)."""
    places = ("contextCompaction.", "conversationMemory.contextCompaction.", *([""] if with_bare else []))
    return tuple(place + one for place in places for one in fields)


_SWITCH = "true or false"
_PERCENT = "a percentage above 0 up to 100"

SEEDS: tuple[Seed, ...] = (
    Seed(("memory.context.context_window_target", "agent_max_context_tokens"), "context.max_tokens"),
    Seed(("memory.context.max_retained_messages",), "context.max_messages"),
    Seed(("memory.context.auto_summarize_threshold",), "context.idle_threshold", _percent, _PERCENT),
    Seed(("memory.context.enable_auto_summarize", *_compaction("enabled")), "context.auto"),
    Seed((*_compaction("threshold"), "agent.summarization_threshold"), "context.compact_threshold"),
    Seed(("agent_max_context_turns",), "context.max_turns"),
    Seed(("agent_max_steps",), "agent.max_steps"),
    Seed(("agent.summarization_preserve_turns",), "context.preserve_turns"),
    Seed(
        (
            "agent.summarization_provider",
            "conversationMemory.summarizationProvider",
            *_compaction("summarizationProvider", with_bare=True),
            "NEUROLINK_SUMMARIZATION_PROVIDER",
        ),
        "model.summarizer",
        valid="a provider's name, given together with the model's",
        part="provider",
    ),
    Seed(
        (
            "agent.summarization_model",
            "conversationMemory.summarizationModel",
            *_compaction("summarizationModel", with_bare=True),
            "NEUROLINK_SUMMARIZATION_MODEL",
        ),
        "model.summarizer",
        valid="a model's name",
        part="model",
    ),
    Seed(
        (*_compaction("enablePruning"), *_compaction("enablePrune", with_bare=True)),
        "context.stages",
        _stage("prune"),
        _SWITCH,
    ),
    Seed(
        (*_compaction("enableDeduplication"), *_compaction("enableDeduplicate", with_bare=True)),
        "context.stages",
        _stage("deduplicate"),
        _SWITCH,
    ),
    Seed(
        (
            "conversationMemory.enableSummarization",
            *_compaction("enableSummarize", with_bare=True),
            "NEUROLINK_SUMMARIZATION_ENABLED",
        ),
        "context.stages",
        _stage("summarize"),
        _SWITCH,
    ),
    Seed(
        (*_compaction("enableSlidingWindow"), *_compaction("enableTruncate", with_bare=True)),
        "context.stages",
        _stage("truncate"),
        _SWITCH,
    ),
    Seed(_compaction("maxToolOutputBytes"), "context.admission.max_bytes"),
    Seed(_compaction("maxToolOutputLines"), "context.admission.max_lines"),
    Seed(_compaction("fileReadBudgetPercent"), "context.admission.file_ratio"),
    Seed(_compaction("pruneProtectTokens", with_bare=True), "context.prune.protect_tokens"),
    Seed(_compaction("pruneMinimumSavings", with_bare=True), "context.prune.minimum_savings_tokens"),
    Seed(_compaction("pruneProtectedTools", with_bare=True), "context.prune.protected_tools"),
    Seed(_compaction("keepRecentRatio", with_bare=True), "context.keep_recent_ratio"),
    Seed(_compaction("truncationFraction", with_bare=True), "context.truncate.fraction"),
    Seed(_compaction("provider", with_bare=True), "context.count_as"),
    Seed(("conversationMemory.enabled", "NEUROLINK_MEMORY_ENABLED"), "session.persist"),
    Seed(("NEUROLINK_TOKEN_THRESHOLD",), "context.compact_tokens", _none_if_auto, "a number of tokens, or auto"),
    Seed(("NEUROLINK_MEMORY_MAX_SESSIONS",), "session.max_sessions"),
)


def _plain(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "")


_BY_NAME: dict[str, Seed] = {_plain(name): seed for seed in SEEDS for name in seed.names}

_SECTIONS = frozenset(
    _plain(name[:at])
    for name in (*KEYS, *(one for seed in SEEDS for one in seed.names))
    for at, char in enumerate(name)
    if char == "."
)
