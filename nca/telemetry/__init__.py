"""Whether OpenTelemetry's variables ask for traces and metrics, and what to do then.

Nothing of OpenTelemetry is imported before they do. The SDK and the exporter are the extra `nca[otel]`; a program that
embeds nca and has set a provider of its own keeps it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from nca.errors import install_command
from nca.events import Listener
from nca.humanize import one_line

CAPTURE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
PACKAGES = ("opentelemetry-exporter-otlp-proto-http", "opentelemetry-sdk")
_MISSING = "The environment asks for telemetry (OTEL_…), and the OpenTelemetry SDK is not installed. To install it:"
_ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
_EXPORTERS = ("otlp", "none")
_PROTOCOLS = ("", "http/protobuf")


class Switch(NamedTuple):
    """The environment's telemetry settings. `problems` are lines for the person."""

    traces: bool = False
    metrics: bool = False
    problems: tuple[str, ...] = ()


class Telemetry(NamedTuple):
    """The listener of one conversation, None if telemetry is off, and lines for the person."""

    hear: Listener | None = None
    problems: tuple[str, ...] = ()


def switch(env: Mapping[str, str]) -> Switch:
    """Read the variables. An exporter that is not OTLP over HTTP is refused in one line, and nothing is sent."""
    if _value(env, "OTEL_SDK_DISABLED") == "true":
        return Switch()
    found, problems = {}, []
    for kind in ("TRACES", "METRICS"):
        endpoint = env.get(f"OTEL_EXPORTER_OTLP_{kind}_ENDPOINT") or env.get(_ENDPOINT)
        name = f"OTEL_{kind}_EXPORTER"
        exporter = _value(env, name) or ("otlp" if endpoint else "none")
        protocol = _value(env, f"OTEL_EXPORTER_OTLP_{kind}_PROTOCOL") or _value(env, "OTEL_EXPORTER_OTLP_PROTOCOL")
        found[kind] = exporter == "otlp" and protocol in _PROTOCOLS
        if exporter not in _EXPORTERS:
            problems.append(f"{name}={one_line(exporter, 40)} is not supported; valid: {', '.join(_EXPORTERS)}.")
        elif exporter == "otlp" and protocol not in _PROTOCOLS:
            problems.append(
                f"OTEL_EXPORTER_OTLP_PROTOCOL={one_line(protocol, 40)} is not supported; valid: http/protobuf."
            )
    return Switch(found["TRACES"], found["METRICS"], tuple(dict.fromkeys(problems)))


def telemetry(env: Mapping[str, str], session_id: str) -> Telemetry:
    """The reports of a conversation to OpenTelemetry."""
    asked = switch(env)
    if not (asked.traces or asked.metrics):
        return Telemetry(problems=asked.problems)
    try:
        from nca.telemetry import spans
    except ImportError:
        return Telemetry(problems=(*asked.problems, f"{_MISSING} {install_command(*PACKAGES)}"))
    from nca.models.providers import known_secrets
    from nca.redact import Redactor

    tracer, meter = spans.instruments(env, has_traces=asked.traces, has_metrics=asked.metrics)
    captures = Redactor(known_secrets(env)) if _value(env, CAPTURE) == "true" else None
    return Telemetry(spans.Spans(tracer, meter, session_id, captures).hear, asked.problems)


def _value(env: Mapping[str, str], name: str) -> str:
    return env.get(name, "").strip().lower()
