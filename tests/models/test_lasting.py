"""Connections that waiting cannot mend are one line with their cause, and are not tried again."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from nca.config.schema import ModelSettings
from nca.errors import ConfigError, ProviderError
from nca.models.catalog import describe
from nca.models.certificates import speaks_tls
from nca.models.choose import choose, named
from nca.models.client import ModelRequest, ProviderModel
from nca.models.failures import PassingFailure
from nca.models.litellm_import import warm
from nca.testing.faults import send
from nca.testing.provider import LoopbackHandler, LoopbackProvider, Provider
from tests.models.tls import own_certificate

REQUEST = ModelRequest([{"role": "user", "content": "Hello there"}], max_output_tokens=500)
ROUTES = ["openai/test-model", "openai/gpt-5", "anthropic/claude-sonnet-5-5"]
PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")


class Proxy(LoopbackProvider):
    """Answers every request, also for a tunnel, with this status."""

    def __init__(self, status: int) -> None:
        super().__init__(_Handler)
        self.status = status
        self.asked = 0


class _Handler(LoopbackHandler):
    def do_CONNECT(self) -> None:  # noqa: N802 - the name that http.server calls
        self.on_post(b"")

    def on_post(self, body: bytes) -> None:
        self.server.provider.asked += 1
        self.send_error(self.server.provider.status)


@pytest.fixture(autouse=True)
async def surroundings(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[None]:
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    yield
    litellm = await warm()
    await litellm.close_litellm_async_clients()
    litellm.in_memory_llm_clients_cache.flush_cache()


async def error_of(name: str, api_base: str) -> str:
    """The line that a request ends with, at the first try."""
    retries: list[object] = []
    model = ProviderModel(describe(name), ModelSettings(api_base=api_base, max_retries=3), retries.append, api_key="k")
    try:
        with pytest.raises(ProviderError) as raised:
            await model.ask(REQUEST, lambda _: None)
    finally:
        await model.close()
    assert (retries, isinstance(raised.value, PassingFailure)) == ([], False)
    return str(raised.value)


@pytest.mark.parametrize("scheme", ["http", "https"])
@pytest.mark.parametrize("name", ROUTES)
@pytest.mark.parametrize(
    ("user", "said"),
    [("", "wants a user name and a password"), ("ada:no@", "does not accept the user name and the password in it")],
)
async def test_a_proxy_that_wants_a_password_is_named(
    name: str, scheme: str, user: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    variable = f"{scheme}_proxy"
    with Proxy(407) as proxy:
        monkeypatch.setenv(variable, f"http://{user}127.0.0.1:{proxy.port}")
        line = await error_of(name, f"{scheme}://models.invalid/v1")
    assert line == f"The proxy of {variable} {said} (status 407). Set {variable} to http://USER:PASSWORD@HOST:PORT."
    assert proxy.asked == 1


async def test_a_proxy_that_opens_no_tunnel_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with Proxy(403) as proxy:
        monkeypatch.setenv("ALL_PROXY", f"http://127.0.0.1:{proxy.port}")
        line = await error_of("openai/test-model", "https://models.invalid/v1")
    assert line == (
        "The proxy of ALL_PROXY refuses to connect to https://models.invalid/v1 (status 403)."
        " Check ALL_PROXY, or name the host in no_proxy."
    )


@pytest.mark.parametrize("status", [407, 503])
async def test_without_a_proxy_in_between_the_status_is_the_servers_own(status: int) -> None:
    with Provider(faults={"m": send(status, {"error": {"message": "No."}}, retry_after="0")}) as provider:
        model = ProviderModel(
            describe("openai/m"), ModelSettings(api_base=provider.url, max_retries=0), lambda _: None, api_key="k"
        )
        with pytest.raises(ProviderError, match=f"status {status}"):
            await model.ask(REQUEST, lambda _: None)
        await model.close()


@pytest.mark.parametrize("name", ROUTES)
async def test_an_address_without_a_scheme_is_not_asked(name: str) -> None:
    """Variables of litellm's own are not checked before."""
    assert await error_of(name, "localhost:8911/v1") == (
        "localhost:8911/v1 is no address of a server."
        " Valid: an address that begins with http:// or https:// (model.api_base)."
    )


@pytest.mark.parametrize(
    "said",
    [
        "<html><head><title>400 The plain HTTP request was sent to HTTPS port</title></head></html>",
        "Client sent an HTTP request to an HTTPS server.\n",
        "Reason: You're speaking plain HTTP to an SSL-enabled server port.<br />",
    ],
)
async def test_a_server_that_wants_encryption_says_so(said: str) -> None:
    """The words of nginx, of Go's and of Apache's server."""
    with Provider(faults={"m": send(400, said.encode(), "text/html")}) as provider:
        line = await error_of("openai/m", provider.url)
    assert line == (f"{provider.url} wants encryption (https). Set model.api_base to its address with https://.")


@pytest.mark.parametrize("name", ["openai/test-model", "openai/gpt-5"])
async def test_a_server_that_wants_encryption_and_says_nothing(name: str, tmp_path: Path) -> None:
    """It closes the connection, as most do."""
    with Provider(tls=own_certificate(tmp_path).server) as provider:
        address = provider.url.replace("https:", "http:")
        line = await error_of(name, address)
    assert line == f"{address} wants encryption (https). Set model.api_base to its address with https://."


async def test_each_address_that_is_silent_is_looked_into(tmp_path: Path) -> None:
    """The one before has answered."""
    with Provider() as plain, Provider(tls=own_certificate(tmp_path).server) as provider:
        settings = ModelSettings(api_base=plain.url, max_retries=0)
        model = ProviderModel(describe("openai/test-model"), settings, lambda _: None, api_key="k")
        await model.ask(REQUEST, lambda _: None)
        model.take_settings(ModelSettings(api_base=provider.url.replace("https:", "http:"), max_retries=0))
        with pytest.raises(ProviderError, match="wants encryption"):
            await model.ask(REQUEST, lambda _: None)
        await model.close()


async def test_a_connection_that_is_lost_is_tried_again_where_nobody_wants_encryption() -> None:
    with Provider() as provider:
        retries: list[object] = []
        model = ProviderModel(
            describe("openai/closes-at-once"), ModelSettings(api_base=provider.url), retries.append, api_key="k"
        )
        await model.ask(REQUEST, lambda _: None)
        await model.close()
    assert len(retries) == 1
    assert not await speaks_tls("http://127.0.0.1:1/v1")
    assert not await speaks_tls("http://")


@pytest.mark.parametrize("variable", ["OPENAI_API_BASE", "OPENAI_BASE_URL"])
def test_an_address_of_the_environment_is_checked_where_it_is_read(variable: str) -> None:
    env = {variable: "localhost:8911/v1", "OPENAI_API_KEY": "k"}
    said = f"{variable} = 'localhost:8911/v1' is not valid; valid: an address that begins with http:// or https://."
    with pytest.raises(ConfigError) as raised:
        choose(ModelSettings(), env)
    assert str(raised.value) == said
    with pytest.raises(ConfigError) as raised:
        named("openai/m", ModelSettings(), env)
    assert str(raised.value) == said
    # It is OpenAI's: another provider's model does not need it.
    assert named("mistral/m", ModelSettings(), env).api_base == ""
