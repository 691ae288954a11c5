"""The child process, without weights."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
from importlib import util
from pathlib import Path

import pytest

from nca.errors import ModelUnavailable
from nca.models.embedded.known import SMOLLM
from nca.models.embedded.process import CHILD, EmbeddedServer

HAS_RUNTIME = util.find_spec("xllamacpp") is not None


def server_of(tmp_path: Path) -> EmbeddedServer:
    weights = tmp_path / "broken.gguf"
    weights.write_bytes(b"GGUF" + b"\0" * 100)
    return EmbeddedServer(SMOLLM, weights, window_tokens=512, log_path=tmp_path / "llama.log")


@pytest.mark.skipif(not HAS_RUNTIME, reason="the embedded model's runtime is not installed (pip install 'nca[local]')")
async def test_weights_that_cannot_be_loaded_are_one_line(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    server = server_of(tmp_path)
    with pytest.raises(ModelUnavailable) as caught:
        await server.start()
    assert str(caught.value).startswith("The embedded model could not be loaded")
    assert "nca models get" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not server.is_alive
    assert capfd.readouterr() == ("", "")


async def test_a_start_that_is_cancelled_leaves_no_child(tmp_path: Path) -> None:
    server = server_of(tmp_path)
    starting = asyncio.create_task(server.start())
    while server.pid is None:
        await asyncio.sleep(0)
    pid = server.pid
    starting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await starting
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_a_child_that_hangs_is_killed(tmp_path: Path) -> None:
    server = server_of(tmp_path)
    starting = asyncio.create_task(server.start())
    while server.pid is None:
        await asyncio.sleep(0)
    pid = server.pid
    os.kill(pid, signal.SIGSTOP)
    try:
        starting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await starting
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


async def test_a_child_that_dies_before_its_word_is_explained(tmp_path: Path) -> None:
    server = server_of(tmp_path)
    starting = asyncio.create_task(server.start())
    while server.pid is None:
        await asyncio.sleep(0)
    os.kill(server.pid, signal.SIGKILL)
    with pytest.raises(ModelUnavailable, match="it was killed, most likely because memory ran out"):
        await starting


def test_without_the_runtime_the_child_says_so(tmp_path: Path) -> None:
    """-S: a Python without its site packages."""
    parameters = {"log_path": str(tmp_path / "log")}
    process = subprocess.run(
        [sys.executable, "-S", "-P", CHILD],
        input=json.dumps(parameters).encode() + b"\n",
        capture_output=True,
        env={},
        check=False,
    )
    assert json.loads(process.stdout) == {"kind": "runtime", "error": "No module named 'xllamacpp'"}
    assert (process.returncode, process.stderr) == (1, b"")


def test_nothing_of_the_working_directory_is_imported(tmp_path: Path) -> None:
    for name in ("json", "xllamacpp", "signal"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('hijacked')")
    process = subprocess.run(
        [sys.executable, "-S", "-P", CHILD],
        input=b'{"log_path": "log"}\n',
        capture_output=True,
        cwd=tmp_path,
        env={},
        check=False,
    )
    assert b"hijacked" not in process.stdout + process.stderr
    assert json.loads(process.stdout)["kind"] == "runtime"


def test_stop_may_be_called_twice(tmp_path: Path) -> None:
    server = server_of(tmp_path)
    server.stop()
    server.stop()
    assert server.how_it_ended() == ""
