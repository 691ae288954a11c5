"""When telemetry is on, and what is said where it cannot be."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from nca.errors import install_command
from nca.telemetry import PACKAGES, Switch, switch
from tests.cli.command import environment

ENDPOINT = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:4318"}


@pytest.mark.parametrize(
    ("env", "asked"),
    [
        ({}, Switch()),
        ({"OTEL_SERVICE_NAME": "x"}, Switch()),
        (ENDPOINT, Switch(traces=True, metrics=True)),
        ({**ENDPOINT, "OTEL_SDK_DISABLED": "TRUE"}, Switch()),
        ({**ENDPOINT, "OTEL_METRICS_EXPORTER": "none"}, Switch(traces=True)),
        ({"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "http://127.0.0.1:1"}, Switch(metrics=True)),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, Switch(traces=True)),
        (
            {"OTEL_TRACES_EXPORTER": "console"},
            Switch(problems=("OTEL_TRACES_EXPORTER=console is not supported; valid: otlp, none.",)),
        ),
        (
            {**ENDPOINT, "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"},
            Switch(problems=("OTEL_EXPORTER_OTLP_PROTOCOL=grpc is not supported; valid: http/protobuf.",)),
        ),
    ],
)
def test_the_variables_decide(env: dict[str, str], asked: Switch) -> None:
    assert switch(env) == asked


@pytest.mark.parametrize("name", ["OTEL_TRACES_EXPORTER", "OTEL_EXPORTER_OTLP_PROTOCOL"])
def test_of_a_value_that_is_refused_only_the_beginning_is_said(name: str) -> None:
    (said,) = switch({**ENDPOINT, name: "x" * 1_000}).problems
    assert said.startswith(f"{name}={'x' * 39}… is not supported; ")


def test_without_the_sdk_it_is_one_line(tmp_path: Path) -> None:
    """The installation is one whose SDK cannot be imported."""
    (tmp_path / "opentelemetry" / "sdk").mkdir(parents=True)
    (tmp_path / "opentelemetry" / "sdk" / "__init__.py").write_text("raise ImportError('not here')")
    asks = "from nca.telemetry import telemetry; import os; print(telemetry(os.environ, 'id').problems)"
    env = {**environment(tmp_path), **ENDPOINT, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", asks], env=env, capture_output=True, text=True, check=True)
    assert done.stdout.strip().endswith(f"is not installed. To install it: {install_command(*PACKAGES)}',)")


def test_while_it_is_off_nothing_of_opentelemetry_is_imported(tmp_path: Path) -> None:
    asks = (
        "import os, sys, nca.agent.conversation; from nca.telemetry import telemetry;"
        "assert telemetry(os.environ, 'id') == (None, ());"
        "print([name for name in sys.modules if name.startswith('opentelemetry')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", asks], env=environment(tmp_path), capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
