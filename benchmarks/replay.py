"""Replay a real session: estimates against reports, what compaction keeps, and what it costs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import nca
from benchmarks.extractors import facts, readable
from benchmarks.requests import CACHE_READ, CACHE_WRITE
from nca.config.loaded import defaults
from nca.context.history import History
from nca.context.meter import Meter
from nca.context.view import Summary, View
from nca.library.replay import replay
from nca.messages import Entry, Usage
from nca.wire import message_from_dict

MODEL, PROVIDER, WINDOW_TOKENS = "anthropic/claude-opus-4-5", "anthropic", 200_000

Rows = list[dict[str, Any]]


def estimates(rows: Rows) -> Iterator[str]:
    """Relative errors, call by call, with the views that the session really had."""
    history, meter, unlearning = History(), Meter(provider=PROVIDER), Meter(provider=PROVIDER)
    anchored: list[float] = []
    first: list[float] = []
    unlearned: list[float] = []
    fixed: int | None = None
    has_compacted = False
    for row in rows:
        if row["role"] == "_compaction":
            history.view = _their_view(rows, row)
            has_compacted = True
            continue
        reported = row.get("_usage", {}).get("prompt_tokens", 0)
        if row["role"] == "assistant" and reported:
            meter.look(history)
            unlearning.look(history)
            raw, used = meter.raw(history), meter.used(history)
            plain = (raw - history.call_raw * history.view_calls) * unlearning.calibration.ratio
            fixed = round(reported - plain) if fixed is None else fixed
            unlearned.append((plain + fixed - reported) / reported)
            if has_compacted:
                first.append((used - reported) / reported)
            elif meter.anchor is not None:
                anchored.append((used - reported) / reported)
            has_compacted = False
            meter.learn(raw, history, reported, history.view_calls)
        message = message_from_dict(row)
        history.append(Entry(history.head + 1, message))
        if row["role"] == "assistant" and reported:
            meter.answered(history, message, Usage(reported, row["_usage"].get("completion_tokens", 0)))
    yield f"estimate, anchored: p95 {_p95(anchored):.2%} of {len(anchored)} calls"
    yield "estimate, first call after a compaction: " + ", ".join(f"{error:+.1%}" for error in first)
    yield f"estimate, not calibrated (fixed part known): p95 {_p95(unlearned):.1%}, lowest {min(unlearned):+.1%}"


def facts_at_compactions(rows: Rows) -> Iterator[str]:
    """At the points where the session was compacted, with the summary that a frontier model wrote there."""
    for index, row in enumerate(rows):
        if row["role"] != "_compaction":
            continue
        before = [one for one in rows[:index] if not one["role"].startswith("_")]

        def recorded(_: list[dict[str, Any]], summary: str = row["summary"]) -> str:
            return summary

        result = nca.compact(before, model=MODEL, context_window=WINDOW_TOKENS, summarizer=recorded)
        text = "\n".join(_shown(message) for message in result.messages)
        kept = {name: "{}/{}".format(*readable(found, text)) for name, found in facts(before).items()}
        numbers = f"{result.tokens_before:,} → {result.tokens_after:,} (target {result.target_tokens:,})"
        yield f"compaction at message {index}: {numbers} · kept " + " · ".join(f"{k} {v}" for k, v in kept.items())


def saved_without_a_model(rows: Rows) -> Iterator[str]:
    """Prune and deduplicate alone, with all words of user and assistant kept."""
    messages = [row for row in rows if not row["role"].startswith("_")]
    settings = {"context.prune.minimum_savings_tokens": 0}
    result = nca.compact(
        messages,
        model=MODEL,
        context_window=600_000,
        target=0.01,
        stages=["prune", "deduplicate"],
        settings=settings,
    )
    yield f"prune and deduplicate alone: {result.tokens_saved / result.tokens_before:.0%} of the tokens saved"


def prefix_cost(rows: Rows, window: int = 128_000) -> Iterator[str]:
    """What the session costs with a prefix cache, as a share of sending its raw history at full price."""
    messages = [message_from_dict(row) for row in rows if not row["role"].startswith("_")]
    loaded = defaults().with_values({"model.context_window": window}, "the benchmark")
    found = replay(messages, loaded, model=MODEL)
    sent = found.with_nca
    cost = CACHE_READ * sent.cached_tokens + CACHE_WRITE * (sent.tokens - sent.cached_tokens)
    share, count = cost / found.without.tokens, len(found.compactions)
    yield f"prefix cache at a window of {window:,}: {share:.1%} of the raw history, {count} compactions"


def _their_view(rows: Rows, row: dict[str, Any]) -> View:
    kept = row["firstKeptEntryIndex"]
    notes = sum(one["role"].startswith("_") for one in rows[:kept])
    hidden = kept - notes
    return View((Summary("theirs", ((1, hidden),), row["summary"]),), hidden + 1)


def _shown(message: dict[str, Any]) -> str:
    calls = " ".join(call["function"]["arguments"] for call in message.get("tool_calls") or ())
    return f"{message['content'] or ''} {calls}"


def _p95(errors: list[float]) -> float:
    ordered = sorted(abs(error) for error in errors)
    return ordered[int(len(ordered) * 0.95)]
