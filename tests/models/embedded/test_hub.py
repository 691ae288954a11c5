"""Downloads with huggingface_hub from a loopback server that answers like Hugging Face."""

from __future__ import annotations

import hashlib
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from nca.models.embedded.known import KnownModel
from tests.models.embedded.wheels import pip_environment, tiny_model, wheel_of

REPOSITORY = Path(__file__).parents[3]
PROGRAM = Path(__file__).with_name("fetch_program.py")


@contextmanager
def hub(content: bytes) -> Iterator[tuple[str, list[str]]]:
    """The address of a hub with one file, and the requests that came."""
    requests: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self._answer(b"")

        def do_GET(self) -> None:
            self._answer(content)

        def _answer(self, body: bytes) -> None:
            requests.append(f"{self.command} {self.path} {self.headers.get('Authorization')}")
            self.send_response(200)
            self.send_header("ETag", f'"{hashlib.sha256(content).hexdigest()}"')
            self.send_header("X-Repo-Commit", "0" * 40)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", requests
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def fetch(
    model: KnownModel, tmp_path: Path, address: str, source: str, *, offline: str = "0"
) -> subprocess.CompletedProcess[str]:
    pickled = tmp_path / "model.pickle"
    pickled.write_bytes(pickle.dumps(model))
    env = pip_environment(tmp_path / "index") | {
        "PYTHONPATH": str(REPOSITORY),
        "HF_ENDPOINT": address,
        "HF_HOME": str(tmp_path / "hf"),
        "HF_TOKEN": "hf_not_for_this",
        "HF_HUB_OFFLINE": offline,
        "NO_PROXY": "127.0.0.1",
    }
    return subprocess.run(
        [sys.executable, PROGRAM, pickled, tmp_path / "models", source],
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )


def made(tmp_path: Path) -> tuple[KnownModel, bytes]:
    """A model and its content; its wheels are gone."""
    model = tiny_model(tmp_path / "index", parts=2)
    content = os.urandom(5_700)
    for number in (1, 2):
        wheel_of(tmp_path / "index", number).unlink()
    return replace(model, sha256=hashlib.sha256(content).hexdigest()), content


def test_the_file_comes_from_the_hub_without_a_token(tmp_path: Path) -> None:
    model, content = made(tmp_path)
    with hub(content) as (address, requests):
        process = fetch(model, tmp_path, address, "hub")
    assert process.returncode == 0, process.stdout + process.stderr
    assert (tmp_path / "models" / "tiny.gguf").read_bytes() == content
    assert sorted(path.name for path in (tmp_path / "models").iterdir()) == ["tiny.gguf", "tiny.lock"]
    assert f"GET /maker/tiny/resolve/{'0' * 40}/tiny.gguf None" in requests
    assert not [request for request in requests if "hf_not_for_this" in request]
    assert "downloading" in process.stdout


def test_auto_takes_the_hub_where_pip_finds_nothing(tmp_path: Path) -> None:
    model, content = made(tmp_path)
    with hub(content) as (address, _):
        process = fetch(model, tmp_path, address, "auto")
    assert process.returncode == 0, process.stdout + process.stderr
    assert (tmp_path / "models" / "tiny.gguf").read_bytes() == content


def test_another_file_is_refused(tmp_path: Path) -> None:
    model, content = made(tmp_path)
    with hub(content[::-1]) as (address, _):
        process = fetch(model, tmp_path, address, "hub")
    assert process.returncode == 3
    assert "has the wrong size or sha256" in process.stdout


def test_offline_is_one_line(tmp_path: Path) -> None:
    model, _ = made(tmp_path)
    process = fetch(model, tmp_path, "http://127.0.0.1:9", "auto", offline="1")
    lines = [line for line in process.stdout.splitlines() if line != "downloading"]
    assert (process.returncode, len(lines), process.stderr) == (3, 1, "")
    assert "pip could not download tiny" in lines[0]
    assert "maker/tiny could not be downloaded from Hugging Face" in lines[0]
    assert "to resume" in lines[0]
