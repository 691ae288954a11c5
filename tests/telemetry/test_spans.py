"""What a conversation sends to a receiver of OTLP over HTTP."""

from __future__ import annotations

import json
import socketserver
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

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
from nca.messages import ResponseFacts, Server, Usage
from nca.redact import Redactor
from nca.telemetry.spans import NAME, Spans, _resource
from nca.testing.http_exchange import Exchange
from nca.testing.provider import Provider
from tests.cli.command import keys, nca
from tests.telemetry.receiver import Receiver, values_of
from tests.testing.forks import forked

SECRET = "sk-abcdefghijklmnopqrstuvwxyz123456"
ERROR = 2
"""The code of a failed span."""


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as receiving:
        yield receiving


class Sender:
    """Spans that go to the receiver as they end."""

    def __init__(self, receiver: Receiver, captures: Redactor | None = None) -> None:
        self._tracers = TracerProvider(shutdown_on_exit=False)
        self._tracers.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter(f"{receiver.url}/v1/traces")))
        reader = PeriodicExportingMetricReader(OTLPMetricExporter(f"{receiver.url}/v1/metrics"))
        self._meters = MeterProvider([reader], shutdown_on_exit=False)
        self.spans = Spans(self._tracers.get_tracer("t"), self._meters.get_meter("t"), "session-1", captures)

    def send(self, *events: Any) -> None:
        for event in events:
            self.spans.hear(event)
        self._meters.shutdown()
        self._tracers.shutdown()


REQUEST = RequestStarted(1, "gemini/gemini-3-pro", 900, 4_000)
USAGE = UsageReported(Usage(900, 50, cache_read_tokens=300, reasoning_tokens=20), "gemini/gemini-3-pro")
PLAIN = ("gemini-3-pro", "side")
DONE = TurnFinished("answered", f"The key is {SECRET}.", 1, 0.1)


def test_tokens_that_nobody_reported_are_not_counted(receiver: Receiver) -> None:
    estimated = UsageReported(Usage(900, 0), "gemini/gemini-3-pro", is_estimate=True)
    Sender(receiver).send(TurnStarted("session-1", 1), REQUEST, estimated, DONE)
    (chat,) = receiver.named("chat gemini-3-pro")
    assert "gen_ai.usage.input_tokens" not in values_of(chat.attributes)
    assert "gen_ai.client.token.usage" not in receiver.metrics


def test_a_turn_has_its_requests_calls_and_compactions_as_children(receiver: Receiver) -> None:
    Sender(receiver).send(
        TurnStarted("session-1", 1),
        ContextCompaction("starting", "threshold", tokens_before=5_000),
        ContextCompaction("completed", "threshold", ("prune", "trim"), 5_000, 2_000, kept_facts=9, total_facts=10),
        REQUEST,
        RetryScheduled(1, 0.5, "overloaded"),
        TextDelta("private words"),
        USAGE,
        ToolStarted("c1", "grep", '{"pattern": "private words"}', "grep private words"),
        ToolFinished("c1", "grep", True, "no", 0.1),
        DONE,
    )
    (turn,) = receiver.named("invoke_agent nca")
    (chat,) = receiver.named("chat gemini-3-pro")
    (call,) = receiver.named("execute_tool grep")
    (compaction,) = receiver.named("nca.compaction")
    assert {span.parent_span_id for span in (chat, call, compaction)} == {turn.span_id}
    assert len({span.trace_id for span in receiver.spans}) == 1
    assert values_of(turn.attributes)["gen_ai.conversation.id"] == "session-1"
    values = values_of(chat.attributes)
    assert values["gen_ai.provider.name"] == "gcp.gemini"
    assert (values["gen_ai.usage.input_tokens"], values["gen_ai.usage.output_tokens"]) == (900, 50)
    assert (values["gen_ai.usage.cache_read.input_tokens"], values["gen_ai.usage.reasoning.output_tokens"]) == (300, 20)
    assert values_of(chat.events[0].attributes) == {"nca.retry.attempt": 1, "nca.retry.wait_seconds": 0.5}
    assert call.status.code == ERROR
    values = values_of(compaction.attributes)
    assert (values["nca.compaction.tokens_before"], values["nca.compaction.tokens_after"]) == (5_000, 2_000)
    assert (values["nca.compaction.kept_facts"], values["nca.compaction.stages"]) == (9, ["prune", "trim"])
    assert "private words" not in str(receiver.spans)
    assert SECRET not in str(receiver.spans)
    tokens = {
        values_of(point.attributes)["gen_ai.token.type"]: point.sum
        for point in receiver.metrics["gen_ai.client.token.usage"]
    }
    assert tokens == {"input": 900, "output": 50}
    (duration,) = receiver.metrics["gen_ai.client.operation.duration"]
    assert (duration.count, values_of(duration.attributes)["gen_ai.request.model"]) == (1, "gemini-3-pro")


def test_each_turn_has_the_tokens_of_its_own_requests(receiver: Receiver) -> None:
    turns = [(TurnStarted("session-1", number), *(REQUEST, USAGE) * number, DONE) for number in (1, 2)]
    Sender(receiver).send(*(event for turn in turns for event in turn))
    tokens = [values_of(turn.attributes)["gen_ai.usage.input_tokens"] for turn in receiver.named("invoke_agent nca")]
    assert tokens == [900, 1_800]


def test_the_response_and_the_server_are_named_and_nothing_that_was_not_reported(receiver: Receiver) -> None:
    server = Server("model.example", 443)
    asked = RequestStarted(1, "openai/small", 900, 4_000, server)
    used = UsageReported(Usage(9, 5), "openai/small", response=ResponseFacts("small-2099", "r-1", ("stop",)))
    Sender(receiver).send(
        *(TurnStarted("s", 1), asked, used, asked, ErrorRaised("no"), REQUEST, USAGE, DONE),
        SideRequestFinished("question", "openai/side", 1.0, Usage(1, 1), "", server, ResponseFacts("side-2099")),
    )
    answered, failed = (values_of(span.attributes) for span in receiver.named("chat small"))
    (plain,), (side,) = ([values_of(span.attributes) for span in receiver.named(f"chat {name}")] for name in PLAIN)
    assert (answered["server.address"], answered["server.port"]) == ("model.example", 443)
    assert (failed["server.address"], failed["server.port"]) == ("model.example", 443)
    assert (side["server.address"], side["gen_ai.response.model"]) == ("model.example", "side-2099")
    assert (answered["gen_ai.response.model"], answered["gen_ai.response.id"]) == ("small-2099", "r-1")
    assert answered["gen_ai.response.finish_reasons"] == ["stop"]
    assert not [name for name in (*plain, *failed) if name.startswith("gen_ai.response")]
    assert not [name for name in plain if name.startswith("server")]
    assert not {"gen_ai.response.id", "gen_ai.response.finish_reasons"} & side.keys()
    for points in receiver.metrics.values():
        measured = [values_of(point.attributes) for point in points]
        (named,) = {
            (one["server.address"], one["server.port"])
            for one in measured
            if one.get("gen_ai.response.model") == "small-2099"
        }
        assert named == ("model.example", 443)
        assert not [one for one in measured if "gen_ai.response.id" in one or "gen_ai.response.finish_reasons" in one]


def test_requests_for_summaries_and_beside_the_chat_are_counted(receiver: Receiver) -> None:
    Sender(receiver).send(
        TurnStarted("session-1", 1),
        ContextCompaction("starting", "threshold"),
        SideRequestFinished("summary", "openai/small", 2.0, failure="OverloadedError"),
        SideRequestFinished("summary", "openai/small", 3.0, Usage(700, 40)),
        ContextCompaction("completed", "threshold"),
        DONE,
        SideRequestFinished("question", "openai/large", 1.0, Usage(100, 10)),
    )
    failed, summary = receiver.named("chat small")
    (question,) = receiver.named("chat large")
    (compaction,) = receiver.named("nca.compaction")
    assert {failed.parent_span_id, summary.parent_span_id} == {compaction.span_id}
    assert not question.parent_span_id
    assert failed.status.code == ERROR
    assert summary.end_time_unix_nano - summary.start_time_unix_nano == 3_000_000_000
    assert values_of(question.attributes)["nca.request.purpose"] == "question"
    spent = sum(point.sum for point in receiver.metrics["gen_ai.client.token.usage"])
    assert spent == 700 + 40 + 100 + 10


def test_contents_only_where_they_are_asked_for_and_never_a_key(receiver: Receiver) -> None:
    arguments = json.dumps({"command": f"curl -H 'x: {SECRET}'"})
    events = (TurnStarted("s", 1), REQUEST, TextDelta("I look."), USAGE, ToolStarted("c", "shell", arguments, ""))
    Sender(receiver, Redactor()).send(*events, DONE)
    assert SECRET not in str(receiver.spans)
    said = json.loads(values_of(receiver.named("chat gemini-3-pro")[0].attributes)["gen_ai.output.messages"])
    assert said == [{"role": "assistant", "parts": [{"type": "text", "content": "I look."}]}]
    assert "curl" in values_of(receiver.named("execute_tool shell")[0].attributes)["gen_ai.tool.call.arguments"]
    assert "[redacted]" in values_of(receiver.named("invoke_agent nca")[0].attributes)["gen_ai.output.messages"]


def test_what_fails_or_is_stopped_ends_too(receiver: Receiver) -> None:
    started = TurnStarted("s", 1)
    sender = Sender(receiver)
    for events in (
        (started, REQUEST, ErrorRaised("no"), TurnFinished("failed", "", 1, 0.1)),
        (
            started,
            REQUEST,
            ContextCompaction("starting", "overflow"),
            ContextCompaction("failed", "overflow"),
            REQUEST,
            USAGE,
            DONE,
        ),
        (started, REQUEST, TextDelta("I"), TurnFinished("interrupted", "I", 1, 0.1)),
        (started, ToolStarted("c", "shell", "{}", ""), TurnFinished("interrupted", "I", 1, 0.1)),
        # What belongs to no turn: a question beside the chat, the end of a turn that sent nothing.
        (REQUEST, TextDelta("x"), TurnFinished("failed", "", 0, 0.0), ToolFinished("?", "x", False, "", 0.0)),
    ):
        for event in events:
            sender.spans.hear(event)
    sender.send()
    reasons = [values_of(span.attributes).get("error.type") for span in receiver.named("chat gemini-3-pro")]
    assert reasons == ["error", "context_overflow", None, "interrupted"]
    turns = receiver.named("invoke_agent nca")
    assert [span.status.code for span in turns] == [ERROR, 0, 0, 0]
    assert [values_of(span.attributes)["nca.turn.end"] for span in turns] == [
        "failed",
        "answered",
        "interrupted",
        "interrupted",
    ]
    assert values_of(receiver.named("execute_tool shell")[0].attributes)["error.type"] == "interrupted"
    assert receiver.named("nca.compaction")[0].status.code == ERROR


def test_nca_run_sends_its_turn_when_it_ends(receiver: Receiver, tmp_path: Path) -> None:
    with Provider(lambda _: "Hello there.") as provider:
        extra: dict[str, Any] = {**keys(provider), "OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url}
        done = nca("run", "Hi.", home=tmp_path, **extra)
    assert (done.returncode, done.stdout) == (0, "Hello there.\n")
    (turn,) = receiver.named("invoke_agent nca")
    (chat,) = receiver.named("chat test-model")
    assert chat.parent_span_id == turn.span_id
    assert "Hello" not in str(receiver.spans)
    assert receiver.resources[0]["service.name"] == "nca"
    assert "gen_ai.client.token.usage" in receiver.metrics


def test_the_provider_names_its_response(receiver: Receiver, tmp_path: Path) -> None:
    """The model that answers is not the one that was asked for, and the finish reason is not OpenAI's word."""

    def answer(exchange: Exchange) -> None:
        exchange.begin(role=False)
        for delta, reason in (({"content": "Hello there."}, None), ({}, "END_TURN")):
            choice = {"index": 0, "delta": delta, "finish_reason": reason}
            exchange.event({"id": "resp-9", "model": "served-2099", "choices": [choice]})
        exchange.done()

    with Provider(faults={"asked": answer}) as provider:
        extra: dict[str, Any] = {**keys(provider), "OTEL_EXPORTER_OTLP_ENDPOINT": receiver.url}
        done = forked("run", "Hi.", "--model", "openai/asked", home=tmp_path, **extra)
    assert (done.returncode, done.stdout) == (0, "Hello there.\n")
    values = values_of(receiver.named("chat asked")[0].attributes)
    assert (values["server.address"], values["server.port"]) == ("127.0.0.1", provider.port)
    assert (values["gen_ai.response.model"], values["gen_ai.response.id"]) == ("served-2099", "resp-9")
    assert values["gen_ai.response.finish_reasons"] == ["END_TURN"]


def test_a_receiver_that_is_gone_is_no_words_on_the_terminal(tmp_path: Path) -> None:
    with Provider(lambda _: "Hello there.") as provider:
        extra: dict[str, Any] = {**keys(provider), "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"}
        done = forked("run", "Hi.", home=tmp_path, **extra)
    assert (done.returncode, done.stdout, done.stderr) == (0, "Hello there.\n", "")


def test_a_receiver_that_takes_no_connection_is_not_asked_again_at_the_end(tmp_path: Path) -> None:
    taken: list[int] = []

    class Closing(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            taken.append(1)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Closing) as server, Provider(lambda _: "Hello.") as provider:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"http://127.0.0.1:{server.server_address[1]}"
        extra: dict[str, Any] = {**keys(provider), "OTEL_EXPORTER_OTLP_ENDPOINT": address}
        forked("run", "Hi.", home=tmp_path, **extra)
        server.shutdown()
    assert 2 <= len(taken) <= 4, "the SDK itself tries twice at once, for spans and for metrics"


@pytest.mark.parametrize(
    ("env", "name"),
    [
        ({}, NAME),
        ({"OTEL_SERVICE_NAME": "ours"}, "ours"),
        ({"OTEL_RESOURCE_ATTRIBUTES": "service.name=theirs"}, "theirs"),
    ],
)
def test_the_service_is_nca_unless_the_environment_names_it(
    monkeypatch: pytest.MonkeyPatch, env: dict[str, str], name: str
) -> None:
    for variable in ("OTEL_SERVICE_NAME", "OTEL_RESOURCE_ATTRIBUTES"):
        monkeypatch.delenv(variable, raising=False)
    for variable, value in env.items():
        monkeypatch.setenv(variable, value)
    assert _resource(env).attributes["service.name"] == name


def test_each_request_has_its_own_words(receiver: Receiver) -> None:
    asked = [event for text in ("First.", "Second.") for event in (REQUEST, TextDelta(text), USAGE)]
    lost = (REQUEST, TextDelta("Lost."), ErrorRaised("no"), REQUEST, TextDelta("Third."), USAGE)
    Sender(receiver, Redactor()).send(TurnStarted("s", 1), *asked, *lost, DONE)
    values = [values_of(span.attributes) for span in receiver.named("chat gemini-3-pro")]
    said = [
        json.loads(one["gen_ai.output.messages"])[0]["parts"][0]["content"] for one in values if "error.type" not in one
    ]
    assert said == ["First.", "Second.", "Third."]
    assert [one.get("error.type") for one in values] == [None, None, "error", None]
