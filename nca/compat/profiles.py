"""Profiles: the settings of each of the five programs, in place of nca's defaults.

A setting that the program does not have keeps its default. So do the model that writes summaries and whether sessions
are kept: a person chooses those. A threshold of 1.0 means: not before the budget is full.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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
