"""A person logs in to an MCP server in a browser; nca answers its last page on 127.0.0.1."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

from nca.config.servers import McpServer
from nca.errors import UsageError
from nca.tools.mcp.connection import load_sdk, one_reason
from nca.tools.mcp.oauth import Logins, new_login
from nca.tools.mcp.transports import connect_web, expanded
from nca.tools.tool import ToolError

if TYPE_CHECKING:
    from mcp.shared.auth import AuthorizationCodeResult

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

            auth = new_login(server.url, logins, callback.address, ask, callback.result, client_id=server.client_id)
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
