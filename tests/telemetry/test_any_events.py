"""Whatever order events come in, each span ends once, in its turn, and says how it ended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.metrics import NoOpMeterProvider
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from nca.events import (
    ContextCompaction,
    ErrorRaised,
    RequestStarted,
    RetryScheduled,
    SideRequestFinished,
    TextDelta,
    ToolFinished,
    ToolStarted,
    TurnFinished,
    TurnStarted,
    UsageReported,
)
from nca.messages import Usage
from nca.redact import Redactor
from nca.telemetry.spans import Spans

BEGIN, REQUEST = TurnStarted("s", 1), RequestStarted(1, "openai/small", 900, 4_000)
BETWEEN = (
    REQUEST,
    UsageReported(Usage(900, 50), "openai/small"),
    UsageReported(Usage(700, 0), "openai/small", is_estimate=True),
    ErrorRaised("no"),
    TextDelta("words"),
    RetryScheduled(1, 0.5, "overloaded"),
    SideRequestFinished("summary", "openai/side", 1.0, Usage(7, 1)),
    SideRequestFinished("summary", "openai/side", 1.0, Usage(7, 1), "OverloadedError"),
    *(ToolStarted(call, "grep", "{}", "") for call in "ab"),
    *(ToolFinished(call, "grep", is_error, "", 0.1) for call in "ab" for is_error in (True, False)),
    *(ContextCompaction(phase, "threshold") for phase in ("preview", "starting", "completed", "failed")),
)
ENDS = (
    TurnFinished("answered", "x", 1, 0.1),
    TurnFinished("failed", "", 1, 0.1),
    TurnFinished("interrupted", "", 1, 0.1),
)
TURNS = st.lists(st.tuples(st.lists(st.sampled_from(BETWEEN), max_size=9), st.sampled_from(ENDS)), max_size=3)


def sent(events: Sequence[Any], captures: Redactor | None) -> Sequence[ReadableSpan]:
    kept = InMemorySpanExporter()
    tracers = TracerProvider(shutdown_on_exit=False)
    tracers.add_span_processor(SimpleSpanProcessor(kept))
    spans = Spans(tracers.get_tracer("t"), NoOpMeterProvider().get_meter("t"), "s", captures)
    for event in events:
        spans.hear(event)
    return kept.get_finished_spans()


def ends(events: Sequence[Any]) -> Counter[tuple[str, Any]]:
    """Names and errors of the spans that these events end."""
    found: Counter[tuple[str, Any]] = Counter()
    has_turn = has_request = has_compaction = False
    calls: set[str] = set()
    for event in events:
        match event:
            case TurnStarted():
                has_turn = True
            case RequestStarted() if has_turn:
                found["chat small", "superseded"] += has_request
                has_request = True
            case UsageReported():
                found["chat small", None] += has_request
                has_request = False
            case ErrorRaised():
                found["chat small", "error"] += has_request
                has_request = False
            case SideRequestFinished(failure=failure):
                found["chat side", failure or None] += 1
            case ToolStarted(call_id=call):
                calls.add(call)
            case ToolFinished(call_id=call, is_error=is_error):
                found["execute_tool grep", "tool_error" if is_error else None] += call in calls
                calls.discard(call)
            case ContextCompaction(phase="starting"):
                found["chat small", "context_overflow"] += has_request
                has_request, has_compaction = False, True
            case ContextCompaction(phase="completed" | "failed" as phase):
                found["nca.compaction", "failed" if phase == "failed" else None] += has_compaction
                has_compaction = False
            case TurnFinished(reason=reason):
                found["chat small", reason] += has_request
                found["execute_tool grep", reason] += len(calls)
                found["invoke_agent nca", "failed" if reason == "failed" else None] += has_turn
                has_turn = has_request = False
                calls = set()
    return +found


@given(st.lists(st.sampled_from(BETWEEN), max_size=2), TURNS, st.booleans())
def test_each_span_ends_as_its_events_say(
    before: list[Any], turns: list[tuple[list[Any], Any]], captures: bool
) -> None:
    events = [*before, *(event for between, end in turns for event in (BEGIN, *between, end))]
    spans = sent(events, Redactor() if captures else None)
    assert Counter((span.name, (span.attributes or {}).get("error.type")) for span in spans) == ends(events)
    turn_ids = [span.context.span_id for span in spans if span.name.startswith("invoke_agent")]
    parents = {span.parent.span_id for span in spans if span.parent and span.name != "chat side"}
    assert parents <= set(turn_ids)
    said = [span for span in spans if "gen_ai.output.messages" in (span.attributes or {})]
    assert captures or not said


@given(st.lists(st.sampled_from(BETWEEN), max_size=9), st.sampled_from(ENDS))
def test_a_turn_adds_up_what_its_answers_used(between: list[Any], end: TurnFinished) -> None:
    (turn,) = [span for span in sent([BEGIN, *between, end], None) if span.name.startswith("invoke_agent")]
    has_request, used = False, 0
    for event in between:
        if isinstance(event, UsageReported) and has_request and not event.is_estimate:
            used += event.usage.prompt_tokens
        is_end = isinstance(event, UsageReported | ErrorRaised)
        is_end |= isinstance(event, ContextCompaction) and event.phase == "starting"
        has_request = isinstance(event, RequestStarted) or (has_request and not is_end)
    values = turn.attributes or {}
    assert values["gen_ai.usage.input_tokens"] == used
    assert values["nca.turn.end"] == end.reason
