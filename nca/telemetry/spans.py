"""The events of one conversation as spans and metrics, and the SDK's providers, made once in a process.

Names and attributes are those of OpenTelemetry's conventions for generative AI (in development, late 2026); what they
have no name for begins with `nca.`. No text of a message is recorded unless the person asks for it.

Data is sent at intervals and when the program ends. An unreachable receiver disturbs nobody:
the SDK's messages about it do not go to the terminal.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Mapping
from importlib import metadata
from typing import Any

import requests
from opentelemetry import metrics, trace
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.metrics import Meter, MeterProvider
from opentelemetry.sdk.metrics import MeterProvider as SdkMeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider as SdkTracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, Tracer, TracerProvider, set_span_in_context

from nca import events
from nca.messages import ResponseFacts, Server, Usage
from nca.redact import Redactor

AGENT = "nca"
_PROVIDERS = {
    "gemini": "gcp.gemini",
    "vertex_ai": "gcp.vertex_ai",
    "bedrock": "aws.bedrock",
    "azure": "azure.ai.openai",
    "mistral": "mistral_ai",
    "xai": "x_ai",
}
"""litellm's names of providers that the conventions name otherwise."""
_TOKEN_BUCKETS = [4**power for power in range(14)]
_SECOND_BUCKETS = [0.01 * 2**power for power in range(14)]
"""Both as the conventions recommend."""


class Spans:
    """Listens to one conversation. A turn is a span; requests, calls and compactions within it are its children."""

    def __init__(self, tracer: Tracer, meter: Meter, session_id: str, captures: Redactor | None) -> None:
        """captures: redacts the texts that are recorded; None records none."""
        self._tracer = tracer
        self._session_id = session_id
        self._captures = captures
        self._turn: Span | None = None
        self._request: Span | None = None
        self._compaction: Span | None = None
        self._calls: dict[str, Span] = {}
        self._asked: dict[str, Any] = {}
        self._began = 0.0
        self._said: list[str] = []
        self._spent = Usage(0, 0)
        self._tokens = meter.create_histogram(
            "gen_ai.client.token.usage",
            unit="{token}",
            description="Number of input and output tokens used.",
            explicit_bucket_boundaries_advisory=_TOKEN_BUCKETS,
        )
        self._seconds = meter.create_histogram(
            "gen_ai.client.operation.duration",
            unit="s",
            description="GenAI operation duration.",
            explicit_bucket_boundaries_advisory=_SECOND_BUCKETS,
        )

    def hear(self, event: events.Event) -> None:
        match event:
            case events.TurnStarted():
                self._begin_turn(event)
            case events.RequestStarted() if self._turn is not None:
                self._begin_request(event)
            case events.TextDelta(text) if self._request is not None and self._captures is not None:
                self._said.append(text)
            case events.RetryScheduled() if self._request is not None:
                values = {"nca.retry.attempt": event.attempt, "nca.retry.wait_seconds": event.wait_seconds}
                self._request.add_event("retry", values)
            case events.UsageReported():
                self._end_request(event)
            case events.SideRequestFinished():
                self._count_beside(event)
            case events.ToolStarted():
                self._begin_call(event)
            case events.ToolFinished():
                self._end_call(event)
            case events.ContextCompaction():
                self._compact(event)
            case events.ErrorRaised():
                self._fail_request("error")
            case events.TurnFinished():
                self._end_turn(event)
            case _:
                pass

    def _begin_turn(self, event: events.TurnStarted) -> None:
        self._spent, self._turn = Usage(0, 0), None
        values: dict[str, Any] = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": AGENT,
            "nca.turn": event.turn,
        }
        self._turn = self._start(f"invoke_agent {AGENT}", values)

    def _end_turn(self, event: events.TurnFinished) -> None:
        self._fail_request(event.reason)
        for call in list(self._calls):
            span = self._calls.pop(call)
            span.set_attribute("error.type", event.reason)
            span.end()
        if self._turn is None:
            return
        self._turn.set_attributes(
            {**_used(self._spent), "nca.turn.end": event.reason, "nca.turn.requests": event.steps}
        )
        if self._captures is not None:
            self._turn.set_attribute("gen_ai.output.messages", self._output(event.text))
        _end(self._turn, event.reason if event.reason == "failed" else "")
        self._turn = None

    def _begin_request(self, event: events.RequestStarted) -> None:
        # The request before did not fit, or another model takes over.
        self._fail_request("superseded")
        self._asked = _asked(event.model, event.server)
        values: dict[str, Any] = {
            **self._asked,
            "nca.request.step": event.step,
            "nca.context.used_tokens": event.used_tokens,
            "nca.context.budget_tokens": event.budget_tokens,
        }
        self._request = self._start(f"chat {values['gen_ai.request.model']}", values, kind=SpanKind.CLIENT)
        self._began, self._said = time.monotonic(), []
        if self._turn is not None:
            self._turn.set_attribute("gen_ai.provider.name", values["gen_ai.provider.name"])
            self._turn.set_attribute("gen_ai.request.model", values["gen_ai.request.model"])

    def _end_request(self, event: events.UsageReported) -> None:
        if self._request is None:
            return
        measured = {**self._asked, **_model_of(event.response)}
        self._seconds.record(time.monotonic() - self._began, measured)
        self._request.set_attributes(_answered(event.response))
        if not event.is_estimate:
            self._spent += event.usage
            self._count_tokens(self._request, event.usage, measured)
        if self._captures is not None:
            self._request.set_attribute("gen_ai.output.messages", self._output("".join(self._said)))
        self._request.end()
        self._request = None

    def _fail_request(self, reason: str) -> None:
        """End the open request, which had no answer."""
        if self._request is None:
            return
        self._seconds.record(time.monotonic() - self._began, {**self._asked, "error.type": reason})
        _end(self._request, reason)
        self._request = None

    def _count_beside(self, event: events.SideRequestFinished) -> None:
        """The span of a request that is over: of a summary within its compaction, of a question by itself."""
        asked = {**_asked(event.model, event.server), **_model_of(event.response)}
        values = {**asked, **_answered(event.response), "nca.request.purpose": event.purpose}
        name, ended = f"chat {asked['gen_ai.request.model']}", time.time_ns()
        began = ended - int(event.seconds * 1e9)
        span = self._start(name, values, SpanKind.CLIENT, within=self._compaction, start_time=began)
        if event.usage is not None and not event.failure:
            self._count_tokens(span, event.usage, asked)
        self._seconds.record(event.seconds, {**asked, **({"error.type": event.failure} if event.failure else {})})
        _end(span, event.failure, at=ended)

    def _count_tokens(self, span: Span, usage: Usage, asked: dict[str, Any]) -> None:
        span.set_attributes(_used(usage))
        for kind, tokens in (("input", usage.prompt_tokens), ("output", usage.completion_tokens)):
            self._tokens.record(tokens, {**asked, "gen_ai.token.type": kind})

    def _begin_call(self, event: events.ToolStarted) -> None:
        values = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": event.name,
            "gen_ai.tool.call.id": event.call_id,
            "gen_ai.tool.type": "function",
        }
        if self._captures is not None:
            values["gen_ai.tool.call.arguments"] = self._captures.text(event.arguments)
        self._calls[event.call_id] = self._start(f"execute_tool {event.name}", values)

    def _end_call(self, event: events.ToolFinished) -> None:
        if (span := self._calls.pop(event.call_id, None)) is not None:
            _end(span, "tool_error" if event.is_error else "")

    def _compact(self, event: events.ContextCompaction) -> None:
        if event.phase == "preview":
            return
        if event.phase == "starting":
            # A compaction that answers an overflow ends the request that did not fit.
            self._fail_request("context_overflow")
            self._compaction = self._start("nca.compaction", {"nca.compaction.trigger": event.trigger})
            return
        span, self._compaction = self._compaction, None
        if span is None:
            return
        span.set_attributes(
            {
                "nca.compaction.result": event.phase,
                "nca.compaction.stages": event.stages,
                "nca.compaction.tokens_before": event.tokens_before,
                "nca.compaction.tokens_after": event.tokens_after,
                "nca.compaction.kept_facts": event.kept_facts,
                "nca.compaction.total_facts": event.total_facts,
            }
        )
        _end(span, event.phase if event.phase == "failed" else "")

    def _start(
        self,
        name: str,
        values: dict[str, Any],
        kind: SpanKind = SpanKind.INTERNAL,
        *,
        within: Span | None = None,
        start_time: int | None = None,
    ) -> Span:
        """within: the span that it belongs to; None: the turn's."""
        parent = within or self._turn
        context = set_span_in_context(parent) if parent is not None else None
        values = {**values, "gen_ai.conversation.id": self._session_id}
        return self._tracer.start_span(name, context=context, kind=kind, attributes=values, start_time=start_time)

    def _output(self, text: str) -> str:
        """An answer in the conventions' shape of messages."""
        shown = self._captures.text(text) if self._captures is not None else ""
        return json.dumps([{"role": "assistant", "parts": [{"type": "text", "content": shown}]}])


def _asked(model: str, server: Server | None) -> dict[str, Any]:
    """The attributes of a request in spans and metrics. The conventions want a port with every address."""
    provider, _, bare = model.partition("/")
    return {
        **({"server.address": server.address, "server.port": server.port} if server else {}),
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": _PROVIDERS.get(provider, provider),
        "gen_ai.request.model": bare or model,
    }


def _model_of(response: ResponseFacts) -> dict[str, Any]:
    """The attributes of a response in spans and metrics; an id has no place in a metric."""
    return {"gen_ai.response.model": response.model} if response.model else {}


def _answered(response: ResponseFacts) -> dict[str, Any]:
    """The provider's facts about its answer, without those that it left out."""
    said = {"gen_ai.response.id": response.id, "gen_ai.response.finish_reasons": response.finish_reasons}
    return _model_of(response) | {name: value for name, value in said.items() if value}


def _used(usage: Usage) -> dict[str, int]:
    """The conventions' input tokens include those of the cache, as nca's do."""
    return {
        "gen_ai.usage.input_tokens": usage.prompt_tokens,
        "gen_ai.usage.output_tokens": usage.completion_tokens,
        "gen_ai.usage.cache_read.input_tokens": usage.cache_read_tokens,
        "gen_ai.usage.cache_creation.input_tokens": usage.cache_write_tokens,
        "gen_ai.usage.reasoning.output_tokens": usage.reasoning_tokens,
    }


def _end(span: Span, failure: str = "", at: int | None = None) -> None:
    """failure: why it failed; "" if it did not. at: nanoseconds since the epoch; None: now."""
    if failure:
        span.set_attribute("error.type", failure)
        span.set_status(Status(StatusCode.ERROR))
    span.end(at)


NAME = "nca"
LAST_SECONDS = 5.0
"""How long the end of the program may take."""
_made: dict[str, TracerProvider | MeterProvider] = {}


def instruments(env: Mapping[str, str], *, has_traces: bool, has_metrics: bool) -> tuple[Tracer, Meter]:
    """The tracer and the meter; one that was not asked for does nothing."""
    logging.getLogger("opentelemetry").addHandler(logging.NullHandler())
    tracers = _tracers(env) if has_traces else trace.NoOpTracerProvider()
    meters = _meters(env) if has_metrics else metrics.NoOpMeterProvider()
    return tracers.get_tracer(NAME, _version()), meters.get_meter(NAME, _version())


class _Session(requests.Session):
    """Of an exporter. At the end no failed connection is tried again: between tries the SDK waits for seconds."""

    is_last = threading.Event()

    def send(self, *given: Any, **more: Any) -> Any:
        try:
            return super().send(*given, **more)
        except requests.ConnectionError as error:
            if self.is_last.is_set():
                raise requests.RequestException(str(error)) from error
            raise


def _session(env: Mapping[str, str]) -> requests.Session | None:
    """None if the environment names a maker of sessions."""
    return None if any(name.endswith("_CREDENTIAL_PROVIDER") for name in env) else _Session()


def send_rest() -> None:
    """Send what has been collected, before the program ends. A receiver that does not answer is not waited for."""
    _Session.is_last.set()

    def shut_down() -> None:
        for provider in _made.values():
            if isinstance(provider, SdkTracerProvider | SdkMeterProvider):
                provider.shutdown()

    sending = threading.Thread(target=shut_down, name="send-telemetry", daemon=True)
    sending.start()
    sending.join(LAST_SECONDS)


def _tracers(env: Mapping[str, str]) -> TracerProvider:
    """The embedding program's provider, if it has set one; else our own."""
    theirs = trace.get_tracer_provider()
    if isinstance(theirs, SdkTracerProvider):
        return theirs
    if not isinstance(made := _made.get("traces"), TracerProvider):
        made = SdkTracerProvider(resource=_resource(env))
        made.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(session=_session(env))))
        _made["traces"] = made
    return made


def _meters(env: Mapping[str, str]) -> MeterProvider:
    theirs = metrics.get_meter_provider()
    if isinstance(theirs, SdkMeterProvider):
        return theirs
    if not isinstance(made := _made.get("metrics"), MeterProvider):
        reader = PeriodicExportingMetricReader(OTLPMetricExporter(session=_session(env)))
        made = SdkMeterProvider([reader], resource=_resource(env))
        _made["metrics"] = made
    return made


def _version() -> str:
    # Not `nca.__version__`: the package's door imports the rooms above this one.
    try:
        return metadata.version("nca")
    except metadata.PackageNotFoundError:
        return ""


def _resource(env: Mapping[str, str]) -> Resource:
    """`service.name` is nca, unless the environment names it."""
    is_named = env.get("OTEL_SERVICE_NAME") or "service.name=" in env.get("OTEL_RESOURCE_ATTRIBUTES", "")
    return Resource.create({"service.version": _version(), **({} if is_named else {"service.name": NAME})})
