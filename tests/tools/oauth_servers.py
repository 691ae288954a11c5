"""A real authorization server and an MCP server that wants its tokens, on two ports of loopback.

Both are the official SDK's. The person is `visit`, which follows a login page as a browser does.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import uvicorn
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    OAuthAuthorizationServerProvider,
    RefreshToken,
    construct_redirect_uri,
)
from mcp.server.auth.routes import create_auth_routes
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions
from mcp.server.mcpserver import MCPServer
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from pydantic import AnyHttpUrl, AnyUrl
from starlette.applications import Starlette

Provider = OAuthAuthorizationServerProvider[AuthorizationCode, RefreshToken, AccessToken]


class KnownClient(OAuthClientInformationFull):
    """A client that was registered by hand: any port of 127.0.0.1 will do."""

    def validate_redirect_uri(self, redirect_uri: AnyUrl | None) -> AnyUrl:
        assert redirect_uri is not None
        assert (redirect_uri.host, redirect_uri.path) == ("127.0.0.1", "/callback")
        return redirect_uri


class Accounts(Provider):
    """Everyone who visits is logged in. `lifetime_seconds` is a token's; `refreshed` counts."""

    def __init__(self) -> None:
        self.lifetime_seconds = 3600
        self.refuses = False
        self.refreshed = 0
        self.clients: dict[str, OAuthClientInformationFull] = {}
        self.codes: dict[str, AuthorizationCode] = {}
        self.access: dict[str, AccessToken] = {}
        self.refresh: dict[str, RefreshToken] = {}

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        return self.clients.get(client_id)

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        self.clients[client_info.client_id] = client_info

    async def authorize(self, client: OAuthClientInformationFull, params: AuthorizationParams) -> str:
        redirect = str(params.redirect_uri)
        if self.refuses:
            return construct_redirect_uri(redirect, error="access_denied", state=params.state)
        code = AuthorizationCode(
            code=secrets.token_hex(8),
            scopes=params.scopes or [],
            expires_at=time.time() + 60,
            client_id=client.client_id,
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
        )
        self.codes[code.code] = code
        return construct_redirect_uri(redirect, code=code.code, state=params.state)

    async def load_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: str
    ) -> AuthorizationCode | None:
        return self.codes.get(authorization_code)

    async def exchange_authorization_code(
        self, client: OAuthClientInformationFull, authorization_code: AuthorizationCode
    ) -> OAuthToken:
        del self.codes[authorization_code.code]
        return self._tokens(client.client_id)

    async def load_refresh_token(self, client: OAuthClientInformationFull, refresh_token: str) -> RefreshToken | None:
        return self.refresh.get(refresh_token)

    async def exchange_refresh_token(
        self, client: OAuthClientInformationFull, refresh_token: RefreshToken, scopes: list[str]
    ) -> OAuthToken:
        del self.refresh[refresh_token.token]
        self.refreshed += 1
        return self._tokens(client.client_id)

    async def load_access_token(self, token: str) -> AccessToken | None:
        return self.access.get(token)

    async def verify_token(self, token: str) -> AccessToken | None:
        return self.access.get(token)

    async def revoke_token(self, token: AccessToken | RefreshToken) -> None:
        raise NotImplementedError

    def _tokens(self, client: str) -> OAuthToken:
        access, refresh = secrets.token_hex(8), secrets.token_hex(8)
        self.access[access] = AccessToken(token=access, client_id=client, scopes=[])
        self.refresh[refresh] = RefreshToken(token=refresh, client_id=client, scopes=[])
        return OAuthToken(access_token=access, refresh_token=refresh, expires_in=self.lifetime_seconds)


@asynccontextmanager
async def guarded_server(*, registers: bool = True) -> AsyncIterator[tuple[str, Accounts]]:
    """The MCP server's address, and the accounts of its authorization server, where programs may register or not."""
    accounts = Accounts()
    with contextlib.ExitStack() as stack:
        first, second = (stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(2))
        issuer, guarded = (AnyHttpUrl(f"http://127.0.0.1:{one.getsockname()[1]}") for one in (first, second))
        registration = ClientRegistrationOptions(enabled=registers)
        routes = create_auth_routes(accounts, issuer, client_registration_options=registration)
        url = f"{guarded}mcp"
        settings = AuthSettings(issuer_url=issuer, resource_server_url=AnyHttpUrl(url), validate_token_resource=False)
        server = MCPServer("guarded", auth=settings, token_verifier=accounts)
        server.tool()(whoami)
        async with _serving(Starlette(routes=routes), first), _serving(server.streamable_http_app(), second):
            yield url, accounts


def whoami() -> str:
    """Who is logged in."""
    return "the person"


@asynccontextmanager
async def _serving(app: Any, listener: socket.socket) -> AsyncIterator[None]:
    server = uvicorn.Server(uvicorn.Config(app, log_level="critical", lifespan="on", ws="none"))
    server.install_signal_handlers = lambda: None  # type: ignore[attr-defined]
    task = asyncio.create_task(server.serve(sockets=[listener]))
    while not server.started:
        await asyncio.sleep(0.01)
    try:
        yield
    finally:
        server.should_exit = server.force_exit = True
        await task


class Person:
    """Visits the page that nca shows, and keeps what it was told."""

    def __init__(self) -> None:
        self.pages: list[str] = []
        self.read = ""
        self._visits: set[asyncio.Task[None]] = set()

    def show(self, address: str) -> None:
        self.pages.append(address)
        self._visits.add(asyncio.create_task(self._visit(address)))

    async def _visit(self, address: str) -> None:
        async with httpx.AsyncClient(follow_redirects=True, trust_env=False) as browser:
            self.read = (await browser.get(address)).text
