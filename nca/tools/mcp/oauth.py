"""OAuth for MCP servers: the SDK's provider with what is stored, and with a person who logs in.

The SDK restores neither when a token expires nor where the authorization server is, so a stored token would count as
valid for ever and would be refreshed at the wrong address (modelcontextprotocol/python-sdk #1318, #3250). Both are
stored and given back to it. It does not recover from a registration that has expired (#3256), so each login registers
anew.

A person logs in in a browser; nca answers its last page on 127.0.0.1.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import msgspec

from nca.config.paths import data_dir
from nca.config.servers import McpServer
from nca.errors import UsageError
from nca.safe_files import write_atomically
from nca.tools.mcp.transports import connect_web, expanded, load_sdk, one_reason
from nca.tools.tool import ToolError

if TYPE_CHECKING:
    from mcp.client.auth import OAuthClientProvider
    from mcp.client.auth.oauth2 import OAuthContext
    from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthToken


FOLDER = "mcp-logins"
_MAX_BYTES = 1 << 20


class Login(msgspec.Struct, frozen=True, kw_only=True):
    """OAuth's results for the server at `url`, as JSON objects of the SDK's types.

    tokens      OAuthToken
    client      OAuthClientInformationFull: how the authorization server knows nca
    metadata    OAuthMetadata: where its endpoints are; {} if it publishes none
    expires_at  seconds since the epoch; None if the server did not say
    """

    url: str = ""
    tokens: dict[str, Any]
    client: dict[str, Any]
    metadata: dict[str, Any]
    expires_at: float | None


class Logins:
    """By the server's address, so that a token never goes to another server of the same name."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._folder = data_dir(env) / FOLDER

    def find(self, url: str) -> Login | None:
        """None if there is none, or if it cannot be read: the person then logs in again."""
        try:
            with self._path(url).open("rb") as file:
                return msgspec.json.decode(file.read(_MAX_BYTES), type=Login)
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return None

    def save(self, url: str, login: Login) -> None:
        """Raises OSError."""
        path = self._path(url)
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        data = msgspec.json.encode(msgspec.structs.replace(login, url=url))
        write_atomically(path, msgspec.json.format(data, indent=1))

    def remove(self, url: str) -> bool:
        """Whether there was one. Raises OSError."""
        path = self._path(url)
        was_there = os.path.exists(path)
        path.unlink(missing_ok=True)
        return was_there

    def _path(self, url: str) -> Path:
        return self._folder / f"{hashlib.sha256(url.encode('utf-8', 'backslashreplace')).hexdigest()[:32]}.json"


_CLIENT_NAME = "nca"
_NO_PAGE = "http://127.0.0.1/"
"""The SDK wants a redirect URI even if nobody logs in."""


class _Storage:
    """The SDK's TokenStorage: reads one login, and writes it whenever there are new tokens."""

    context: OAuthContext

    def __init__(self, url: str, logins: Logins, login: Login | None) -> None:
        from mcp.shared.auth import OAuthClientInformationFull, OAuthToken

        self._url = url
        self._logins = logins
        self._tokens = OAuthToken.model_validate(login.tokens) if login else None
        self._client = OAuthClientInformationFull.model_validate(login.client) if login else None

    def know(self, client_id: str, redirect_uri: str) -> None:
        """Take an id under which nca is registered. A server has to accept any port of 127.0.0.1 (RFC 8252, 7.3)."""
        from mcp.shared.auth import OAuthClientInformationFull
        from pydantic import AnyUrl

        self._client = OAuthClientInformationFull(
            client_id=client_id,
            redirect_uris=[AnyUrl(redirect_uri)],
            token_endpoint_auth_method="none",  # noqa: S106 - a public client has none
        )

    async def get_tokens(self) -> OAuthToken | None:
        return self._tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self._tokens = tokens
        metadata = self.context.oauth_metadata
        self._logins.save(
            self._url,
            Login(
                tokens=_plain(tokens),
                client=_plain(self._client) if self._client else {},
                metadata=_plain(metadata) if metadata else {},
                expires_at=self.context.token_expiry_time,
            ),
        )

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self._client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Written with the tokens that follow; a registration alone is of no use."""
        self._client = client_info


def stored_login(url: str, logins: Logins) -> OAuthClientProvider | None:
    """Sends and refreshes the stored tokens, and never asks a person. None if there is no login that can be used."""
    login = logins.find(url)
    if login is None:
        return None
    from mcp.shared.auth import OAuthMetadata

    try:
        provider = _provider(_Storage(url, logins, login), url, _NO_PAGE)
        if login.metadata:
            provider.context.oauth_metadata = OAuthMetadata.model_validate(login.metadata)
    except ValueError:
        return None
    provider.context.token_expiry_time = login.expires_at
    return provider


def _provider(storage: _Storage, url: str, redirect_uri: str, *handlers: Any) -> OAuthClientProvider:
    from mcp.client.auth import OAuthClientProvider
    from mcp.shared.auth import OAuthClientMetadata
    from pydantic import AnyUrl

    metadata = OAuthClientMetadata(client_name=_CLIENT_NAME, redirect_uris=[AnyUrl(redirect_uri)])
    provider = OAuthClientProvider(url, metadata, storage, *handlers)
    storage.context = provider.context
    return provider


def _plain(model: Any) -> dict[str, Any]:
    plain: dict[str, Any] = model.model_dump(mode="json", exclude_none=True)
    return plain


WAIT_SECONDS = 300.0
"""Time for the person to log in."""
_PATH = "/callback"
_MAX_LINE_BYTES = 16_384
_PAGE = "<!doctype html><meta charset=utf-8><title>nca</title><p>{}</p>"


async def log_in(
    server: McpServer,
    show: Callable[[str], None],
    *,
    env: Mapping[str, str] = os.environ,
    seconds: float = WAIT_SECONDS,
) -> bool:
    """Log in, and return whether the server wanted a login. The address of the page goes to `show`, and to the browser.

    Raises UsageError.
    """
    if not server.url or server.has_own_token:
        why = "sends a token of its own" if server.url else "is a program; only an HTTP server can want a login"
        raise UsageError(f"The MCP server {server.name} {why}.")
    logins = Logins(env)
    client_class = await asyncio.to_thread(load_sdk)
    try:
        server = expanded(server, env)
        async with asyncio.timeout(seconds), _Callback.listening() as callback:

            async def ask(address: str) -> None:
                callback.expect(address)
                show(address)
                await asyncio.to_thread(open_browser, address, env)

            # Without a login that was stored, it registers nca, unless nca is registered already, under an id.
            storage = _Storage(server.url, logins, None)
            if server.client_id:
                storage.know(server.client_id, callback.address)
            auth = _provider(storage, server.url, callback.address, ask, callback.result)
            transport = connect_web(server.url, dict(server.headers), server.timeout_seconds, auth=auth)
            async with client_class(transport, cache=None):
                return callback.is_expected
    except TimeoutError:
        raise UsageError(f"Nobody logged in to {server.name} within {seconds:g} seconds.") from None
    except ToolError as error:
        raise UsageError(f"The MCP server {server.name}: {error}") from None
    except Exception as error:
        # The SDK raises its own errors and those of pydantic, anyio and HTTP. All of them mean that there is no login.
        raise UsageError(f"The login at {server.name} failed: {one_reason(error)}") from error


class _Callback:
    """The page on 127.0.0.1 to which the authorization server sends the browser back."""

    def __init__(self) -> None:
        self.address = ""
        self.is_expected = False
        self._state = ""
        self._answer: asyncio.Future[Mapping[str, str]] = asyncio.get_running_loop().create_future()

    @classmethod
    @asynccontextmanager
    async def listening(cls) -> AsyncIterator[_Callback]:
        """Its port is taken before nca registers, because the registration names it."""
        callback = cls()
        server = await asyncio.start_server(callback._serve, "127.0.0.1", 0, limit=_MAX_LINE_BYTES)
        callback.address = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}{_PATH}"
        try:
            yield callback
        finally:
            server.close()

    def expect(self, address: str) -> None:
        """Accept only the answer to this address: any page in the browser could send one."""
        self.is_expected = True
        self._state = parse_qs(urlsplit(address).query).get("state", [""])[0]

    async def result(self) -> AuthorizationCodeResult:
        """Raises UsageError if the login was refused."""
        from mcp.shared.auth import AuthorizationCodeResult

        said = await self._answer
        if "code" not in said:
            raise UsageError(f"It was refused ({said.get('error_description') or said.get('error') or 'no code'})")
        return AuthorizationCodeResult(code=said["code"], state=said["state"], iss=said.get("iss"))

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, ValueError):
            words = (await reader.readline()).decode("latin-1").split()
            while (await reader.readline()).strip():
                pass
            parts = urlsplit(words[1] if len(words) == 3 else "")
            said = {name: values[0] for name, values in parse_qs(parts.query).items()}
            is_ours = parts.path == _PATH and bool(self._state) and said.get("state") == self._state
            text = "You can close this page and go back to nca." if is_ours else "This is not the page of a login."
            body = _PAGE.format(text).encode()
            head = f"HTTP/1.1 {'200 OK' if is_ours else '404 Not Found'}\r\nContent-Type: text/html\r\n"
            writer.write(f"{head}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body)
            await writer.drain()
            if is_ours and not self._answer.done():
                self._answer.set_result(said)
        writer.close()


def open_browser(address: str, env: Mapping[str, str]) -> None:
    """Not a browser in text mode, which would take the terminal."""
    import webbrowser

    has_screen = sys.platform in ("darwin", "win32") or any(env.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))
    if urlsplit(address).scheme in ("http", "https") and (has_screen or env.get("BROWSER")):
        with contextlib.suppress(webbrowser.Error):
            webbrowser.open(address)
