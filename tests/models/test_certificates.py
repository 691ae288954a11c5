"""Which certificates are trusted, and what a refused one says: real TLS on loopback."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from mcp import ClientSession

from nca.config.schema import ModelSettings
from nca.errors import ProviderError
from nca.models.catalog import describe
from nca.models.certificates import VARIABLES
from nca.models.client import ModelRequest, ProviderModel
from nca.models.failures import PassingFailure
from nca.models.fetched_prices import VARIABLE as PRICES
from nca.models.fetched_prices import RefreshFailed, refresh
from nca.models.litellm_import import warm
from nca.models.providers import list_models
from nca.testing.provider import Provider
from nca.testing.scripted import in_order
from nca.tools.fetch_url import FetchUrl
from nca.tools.mcp.transports import connect_web
from nca.tools.tool import ToolError
from tests.models.tls import own_certificate

REQUEST = ModelRequest([{"role": "user", "content": "Hello there"}], max_output_tokens=500)
ROUTES = ["openai/test-model", "openai/gpt-5", "hosted_vllm/test-model"]
"""nca's own client, OpenAI's through litellm, and nca's own for another provider."""
BY_LITELLM = ["anthropic/claude-sonnet-5-5", "cohere/command-a", "ollama/test-model"]
"""Clients that litellm makes."""


@pytest.fixture(autouse=True)
async def surroundings(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    yield
    litellm = await warm()
    await litellm.close_litellm_async_clients()
    litellm.in_memory_llm_clients_cache.flush_cache()


async def asked(name: str, api_base: str, retries: list[object] | None = None) -> str:
    settings = ModelSettings(api_base=api_base, max_retries=3)
    model = ProviderModel(describe(name), settings, (retries if retries is not None else []).append, api_key="key")
    try:
        return (await model.ask(REQUEST, lambda _: None)).message.text
    finally:
        await model.close()


def name_certificate(variable: str, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a person does: a folder has a link to each certificate, named for its subject."""
    if variable == "SSL_CERT_FILE":
        monkeypatch.setenv(variable, str(file))
        return
    if shutil.which("openssl") is None:
        pytest.skip("openssl, which names the links of such a folder, is not here")
    folder = file.parent / "trusted"
    folder.mkdir()
    (folder / "own.pem").write_bytes(file.read_bytes())
    subprocess.run(["openssl", "rehash", str(folder)], check=True)
    monkeypatch.setenv(variable, str(folder))


@pytest.mark.parametrize("variable", VARIABLES)
@pytest.mark.parametrize("name", ROUTES)
async def test_every_route_trusts_what_the_environment_names(
    name: str, variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = own_certificate(tmp_path)
    name_certificate(variable, own.file, monkeypatch)
    with Provider(in_order("Here."), tls=own.server) as provider:
        assert list_models(f"{provider.url}/models", seconds=5) == ("test-model",)
        assert await asked(name, provider.url) == "Here."


@pytest.mark.parametrize("variable", VARIABLES)
@pytest.mark.parametrize("name", BY_LITELLM)
async def test_the_clients_of_litellm_get_as_far_as_the_answer(
    name: str, variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The provider on loopback speaks OpenAI's protocol only: it answers, with an error."""
    own = own_certificate(tmp_path)
    name_certificate(variable, own.file, monkeypatch)
    with Provider(in_order("Here."), tls=own.server) as provider, pytest.raises(ProviderError) as raised:
        await asked(name, provider.url)
    assert "Invalid URL" in raised.value.message


@pytest.mark.parametrize("name", [*ROUTES, *BY_LITELLM])
async def test_a_certificate_that_is_not_trusted_is_the_error_and_is_not_tried_again(name: str, tmp_path: Path) -> None:
    retries: list[object] = []
    with Provider(tls=own_certificate(tmp_path).server) as provider:
        assert list_models(f"{provider.url}/models", seconds=5) == ()
        with pytest.raises(ProviderError) as raised:
            await asked(name, provider.url, retries)
    assert (retries, isinstance(raised.value, PassingFailure)) == ([], False)
    assert str(raised.value) == (
        f"The certificate of {provider.url} is not trusted: self-signed certificate."
        " SSL_CERT_FILE=FILE names a file of certificates to trust."
    )


@pytest.mark.parametrize(
    ("address", "days", "said", "advice"),
    [
        ("127.0.0.9", 2, "IP address mismatch", "Check the address (model.api_base)."),
        ("127.0.0.1", -1, "certificate has expired", "Check the clock"),
    ],
)
async def test_what_trusting_does_not_mend_has_advice_of_its_own(
    address: str, days: int, said: str, advice: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = own_certificate(tmp_path, address=address, days=days)
    monkeypatch.setenv("SSL_CERT_FILE", str(own.file))
    with Provider(tls=own.server) as provider, pytest.raises(ProviderError, match=said) as raised:
        await asked("openai/test-model", provider.url)
    assert raised.value.advice.startswith(advice)


async def test_the_file_that_is_named_already_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "other").mkdir()
    other = own_certificate(tmp_path / "other")
    monkeypatch.setenv("SSL_CERT_FILE", str(other.file))
    with Provider(tls=own_certificate(tmp_path).server) as provider, pytest.raises(ProviderError) as raised:
        await asked("openai/test-model", provider.url)
    assert raised.value.advice.endswith(f"(now SSL_CERT_FILE is {other.file}).")


async def test_pages_servers_and_prices_trust_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = own_certificate(tmp_path)
    with Provider(tls=own.server) as provider:
        page, prices = f"{provider.url}/models", {PRICES: provider.url, "XDG_CACHE_HOME": str(tmp_path)}
        with pytest.raises(ToolError, match="self-signed certificate"):
            await FetchUrl(lambda: ["127.0.0.1"]).call(page)
        with pytest.raises(RefreshFailed, match="self-signed certificate"):
            refresh(prices)
        assert await statuses_of_server(provider.url) == []
        monkeypatch.setenv("SSL_CERT_FILE", str(own.file))
        assert "test-model" in (await FetchUrl(lambda: ["127.0.0.1"]).call(page)).text
        with pytest.raises(RefreshFailed, match="status 404"):
            refresh(prices)
        assert await statuses_of_server(provider.url) == [404]
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "none.pem"))
        with pytest.raises(ToolError, match="No such file"):
            await FetchUrl(lambda: ["127.0.0.1"]).call(page)
        with pytest.raises(RefreshFailed, match="No such file"):
            refresh(prices)


async def statuses_of_server(url: str) -> list[int]:
    """The HTTP statuses of an MCP server's answers, of which there is none without a connection."""
    statuses: list[int] = []
    with contextlib.suppress(Exception):
        async with connect_web(url, {}, 5.0, on_answer=statuses.append) as streams, ClientSession(*streams) as session:
            await session.initialize()
    return statuses


@pytest.mark.parametrize("name", ROUTES)
async def test_a_server_without_encryption_is_told_from_one_that_is_not_there(name: str) -> None:
    retries: list[object] = []
    with Provider() as provider:
        address = provider.url.replace("http:", "https:")
        with pytest.raises(ProviderError) as raised:
            await asked(name, address, retries)
    assert retries == []
    assert str(raised.value) == (
        f"{address} does not answer with encryption (https)."
        " If it speaks only http, set model.api_base to its address with http://."
    )
