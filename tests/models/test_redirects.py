"""No redirect takes a request or a key to another server: two servers on loopback, of which one points to the other."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from typing import Any

import httpx
import pytest

from nca.config.schema import ModelSettings
from nca.errors import ProviderError
from nca.models.catalog import describe
from nca.models.certificates import VARIABLES
from nca.models.client import ModelRequest, ProviderModel
from nca.models.litellm_import import warm
from nca.models.redirects import (
    RedirectRefused,
    are_public,
    certificates_for,
    is_public,
    refuse_elsewhere,
    refuse_inward,
)
from nca.testing.provider import LoopbackHandler, LoopbackProvider

KEY = "sk-secret-0123456789"
REQUEST = ModelRequest([{"role": "user", "content": "Hello there"}], max_output_tokens=500)


class Pointing(LoopbackProvider):
    """Answers every request with a redirect to `target`; records the path and the headers."""

    def __init__(self, target: str = "", status: int = 307) -> None:
        super().__init__(_Handler)
        self.target, self.status = target, status


class _Handler(LoopbackHandler):
    def on_get(self) -> None:
        self.on_post(b"")

    def on_post(self, body: bytes) -> None:
        pointing = self.server.provider
        pointing.record({"path": self.path, "body": body, **dict(self.headers)}, [])
        self.send_response(pointing.status)
        self.send_header("Location", f"{pointing.target}{self.path}")
        self.send_header("Content-Length", "0")
        self.end_headers()


@pytest.fixture
def elsewhere() -> Iterator[Pointing]:
    with Pointing() as there:
        there.status = 200
        yield there


@pytest.fixture(autouse=True)
async def closed() -> AsyncIterator[None]:
    """litellm keeps its own clients beyond the event loop that they belong to."""
    yield
    litellm = await warm()
    await litellm.close_litellm_async_clients()
    litellm.in_memory_llm_clients_cache.flush_cache()


async def asked(name: str, api_base: str, **settings: Any) -> ProviderError:
    """The error that the model's answer ends with."""
    model = ProviderModel(
        describe(name), ModelSettings(api_base=api_base, max_retries=2, **settings), lambda _: None, api_key=KEY
    )
    try:
        with pytest.raises(ProviderError) as raised:
            await model.ask(REQUEST, lambda _: None)
    finally:
        await model.close()
    return raised.value


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("name", ["openai/test-model", "anthropic/claude-sonnet-5-5"])
async def test_no_status_takes_a_request_elsewhere(name: str, status: int, elsewhere: Pointing) -> None:
    with Pointing(elsewhere.url, status) as pointing:
        error = await asked(name, pointing.url)
    assert str(error) == (
        f"{pointing.url} answered with a redirect to {elsewhere.url}; nca does not follow it with your conversation"
        " and key. Set model.api_base to the address that is right."
    )
    assert (len(pointing.requests), elsewhere.requests) == (1, [])


@pytest.mark.parametrize(
    "name",
    [
        "gemini/gemini-pro-latest",
        "azure/gpt-4o",
        "cohere/command-a-03-2025",
        "ollama_chat/llama3",
        "huggingface/some/model",
        "perplexity/sonar",
        "minimax/MiniMax-M2",
        "bedrock/anthropic.claude-3-haiku-20240307-v1:0",
        "databricks/some-model",
    ],
)
async def test_no_provider_of_litellm_takes_a_request_elsewhere(
    name: str, elsewhere: Pointing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """nca makes no client of its own for these; a key may be in any header."""
    for variable in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(variable, "any")
    monkeypatch.setenv("AWS_REGION_NAME", "us-east-1")
    monkeypatch.setenv("AZURE_API_VERSION", "2025-01-01")
    with Pointing(elsewhere.url) as pointing:
        error = await asked(name, pointing.url)
    assert elsewhere.requests == []
    assert f"redirect to {elsewhere.url}" in str(error)
    assert pointing.requests


async def test_the_same_machine_by_another_name_is_another_server() -> None:
    with Pointing() as pointing:
        pointing.target = f"http://localhost:{pointing.port}"
        error = await asked("openai/test-model", pointing.url)
    assert f"redirect to http://localhost:{pointing.port};" in str(error)
    assert len(pointing.requests) == 1


async def test_litellms_synchronous_clients_follow_no_redirect_elsewhere(elsewhere: Pointing) -> None:
    """It asks some servers about a model with them."""
    await warm()
    from litellm.llms.custom_httpx.http_handler import HTTPHandler
    from litellm.llms.openai.common_utils import BaseOpenAILLM

    handler = HTTPHandler()
    plain = BaseOpenAILLM._get_sync_http_client()
    assert plain is not None
    with Pointing(elsewhere.url) as pointing, closing(handler.client), closing(plain):
        for client in (handler.client, plain):
            with pytest.raises(RedirectRefused):
                client.post(pointing.url, headers={"x-api-key": KEY})
    assert elsewhere.requests == []


def answer(source: str, location: str) -> httpx.Response:
    return httpx.Response(302, headers={"location": location}, request=httpx.Request("GET", source))


@pytest.mark.parametrize(
    ("source", "location"),
    [
        ("https://api.example.com/v1", "http://api.example.com/v1"),
        ("http://api.example.com/v1", "https://api.example.com/v1"),
        ("https://api.example.com/v1", "https://api.example.com:444/v1"),
        ("https://api.example.com/v1", "https://api.example.com.evil.example/v1"),
        ("https://api.example.com/v1", "//evil.example/v1"),
        ("https://api.example.com/v1", "https://api.example.com@evil.example/v1"),
        ("https://api.example.com/v1", "file:///etc/passwd"),
        ("https://api.example.com/v1", "https://[half"),
    ],
)
def test_another_origin_is_refused(source: str, location: str) -> None:
    with pytest.raises(RedirectRefused):
        refuse_elsewhere(answer(source, location))


def test_a_servers_long_address_is_cut_on_both_sides() -> None:
    """One redirect may lead to the next."""
    assert len(str(RedirectRefused(f"https://{'a' * 900}", f"https://{'b' * 900}"))) < 500


@pytest.mark.parametrize("location", ["/v2", "https://api.example.com/v2", "https://API.example.com:443/v2", "?page=2"])
def test_the_same_origin_is_not_refused(location: str) -> None:
    refuse_elsewhere(answer("https://api.example.com/v1", location))
    refuse_elsewhere(httpx.Response(200, request=httpx.Request("GET", "https://api.example.com/v1")))


@pytest.mark.parametrize(
    "location", ["http://127.0.0.1/", "http://169.254.169.254/latest", "https://[::1]/", "http://8.8.8.8/"]
)
def test_a_download_is_not_led_into_a_private_network_nor_out_of_encryption(location: str) -> None:
    with pytest.raises(RedirectRefused):
        refuse_inward(answer("https://1.1.1.1/file", location))


def test_a_download_may_come_from_another_public_server_and_from_the_mirrors_own_network() -> None:
    refuse_inward(answer("https://1.1.1.1/file", "https://8.8.8.8/file"))
    refuse_inward(answer("http://10.0.0.1/file", "http://10.0.0.2/file"))
    refuse_inward(answer("http://127.0.0.1/file", "https://8.8.8.8/file"))


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("93.184.216.34", True),
        ("2606:2800:220:1:248:1893:25c8:1946", True),
        ("64:ff9b::5db8:d822", True),
        ("::ffff:93.184.216.34", True),
        ("127.0.0.1", False),
        ("169.254.169.254", False),
        ("224.0.0.1", False),
        ("255.255.255.255", False),
        ("240.0.0.1", False),
        ("::", False),
        ("fe80::1%eth0", False),
        ("::ffff:10.0.0.1", False),
        ("2002:7f00:1::", False),
        ("64:ff9b::a00:1", False),
        ("ff02::1", False),
        ("example.org", False),
    ],
)
def test_public_addresses(address: str, expected: bool) -> None:
    assert is_public(address) is expected
    assert are_public(["1.1.1.1", address]) is are_public([address, "1.1.1.1"]) is expected


@pytest.mark.parametrize("api_base", ["https://127.0.0.1:1/v1", "http://example.com/v1", "", "https://example.com"])
def test_a_certificate_is_checked_with_what_the_system_knows(api_base: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    assert certificates_for(api_base) is True


@pytest.mark.parametrize("api_base", ["http://127.0.0.1:1/v1", "http://localhost/v1", "http://[::1]:1"])
def test_where_no_encryption_is_no_certificate_is_read_and_none_would_be_trusted(api_base: str) -> None:
    context = certificates_for(api_base)
    assert isinstance(context, ssl.SSLContext)
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)
    assert context.cert_store_stats() == {"crl": 0, "x509": 0, "x509_ca": 0}
