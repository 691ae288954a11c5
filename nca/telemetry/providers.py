"""The providers of OpenTelemetry's SDK, made once in a process. Imported only when telemetry is on.

What is collected is sent at intervals and when the program ends. A receiver that cannot be reached is nobody's concern:
the SDK's messages about it do not go to the terminal.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from importlib import metadata

from opentelemetry import metrics, trace
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.metrics import Meter, MeterProvider
from opentelemetry.sdk.metrics import MeterProvider as SdkMeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider as SdkTracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Tracer, TracerProvider

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


def send_rest() -> None:
    """Send what has been collected, before the program ends. A receiver that does not answer is not waited for."""

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
        made.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        _made["traces"] = made
    return made


def _meters(env: Mapping[str, str]) -> MeterProvider:
    theirs = metrics.get_meter_provider()
    if isinstance(theirs, SdkMeterProvider):
        return theirs
    if not isinstance(made := _made.get("metrics"), MeterProvider):
        made = SdkMeterProvider([PeriodicExportingMetricReader(OTLPMetricExporter())], resource=_resource(env))
        _made["metrics"] = made
    return made


def _version() -> str:
    try:
        return metadata.version("nca")
    except metadata.PackageNotFoundError:
        return ""


def _resource(env: Mapping[str, str]) -> Resource:
    """`service.name` is nca, unless the environment names it."""
    is_named = env.get("OTEL_SERVICE_NAME") or "service.name=" in env.get("OTEL_RESOURCE_ATTRIBUTES", "")
    return Resource.create({"service.version": _version(), **({} if is_named else {"service.name": NAME})})
