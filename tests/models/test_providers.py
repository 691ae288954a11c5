"""Providers of models, and which environment variables hold keys."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BufferedIOBase
from threading import Event, Thread

import pytest

from nca.models.providers import LOCAL_SERVERS, known_secrets, list_windows, read_models, start_of


def test_keys_are_found_by_provider_and_by_name() -> None:
    env = {
        "OPENAI_API_KEY": " sk-1 ",
        "AWS_ACCESS_KEY_ID": "id",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "HF_TOKEN": "hf",
        "MY_DB_PASSWORD": "pw",
        "GEMINI_API_KEY": "",
        "GOOGLE_APPLICATION_CREDENTIALS": "/a/file.json",
        "HOME": "/home/me",
        "TOKENIZER": "x",
    }
    assert known_secrets(env) == {
        "OPENAI_API_KEY": "sk-1",
        "AWS_ACCESS_KEY_ID": "id",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "HF_TOKEN": "hf",
        "MY_DB_PASSWORD": "pw",
    }


def test_a_server_is_started_as_its_provider_or_its_port_says() -> None:
    assert start_of("hosted_vllm", "http://gpu.example:1") == "vllm serve MODEL"
    for server in LOCAL_SERVERS:
        assert start_of("openai", server.api_base) == server.start
    assert start_of("openai", "http://127.0.0.1:1") == ""


@contextmanager
def server(write: Callable[[BufferedIOBase], object], *, has_head: bool = True) -> Iterator[str]:
    """The address of a server on loopback that answers with what is written; `has_head`: behind its headers."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if has_head:
                self.send_response(200)
                self.end_headers()
            with suppress(OSError):  # the client has gone
                write(self.wfile)

        def log_message(self, *_: object) -> None:
            """Nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as found:
        thread = Thread(target=found.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{found.server_port}/v1/models"
        finally:
            found.shutdown()
            thread.join()


def test_a_list_that_does_not_end_in_time_is_none() -> None:
    def drip(out: BufferedIOBase) -> None:
        for _ in range(100):
            out.write(b" ")
            time.sleep(0.02)
        out.write(b'{"data": [{"id": "m"}]}')

    with server(drip) as url:
        assert list_windows(url, seconds=0.5) == {}


@pytest.mark.parametrize("begin", [b"", b"HTTP/1.1 200 OK\r\nX-Slow: "], ids=["status", "header"])
def test_headers_that_do_not_end_in_time_are_no_list(begin: bytes) -> None:
    """Each byte came in time, so nca waited as long as the server liked."""
    has_gone = Event()

    def drip(out: BufferedIOBase) -> None:
        out.write(begin)
        while not has_gone.wait(0.02):
            out.write(b"H")

    with server(drip, has_head=False) as url:
        assert list_windows(url, seconds=0.5) == {}
        with pytest.raises(TimeoutError, match="did not begin in time"):
            read_models(url, seconds=0.1)
        has_gone.set()


@pytest.mark.parametrize(
    "body",
    [b'{"data":' + b"[" * 100_000 + b"]" * 100_000 + b"}", b'{"data": 5}', b'{"models": {"a": 1}}', b"[1]", b"5", b""],
    ids=["deep", "number", "names", "list", "bare", "empty"],
)
def test_what_is_no_list_has_no_model(body: bytes) -> None:
    with server(lambda out: out.write(body)) as url:
        assert list_windows(url, seconds=60) == {}


def test_a_list_in_pieces_is_read_whole() -> None:
    rows = ", ".join(f'{{"id": "m{number}", "context_length": 4096}}' for number in range(5_000))
    with server(lambda out: out.write(f'{{"data": [{rows}]}}'.encode())) as url:
        found = list_windows(url, seconds=60)
    assert (len(found), found["m4999"]) == (5_000, 4_096)
