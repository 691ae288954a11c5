"""OAuth for MCP servers: the SDK's provider with what is stored, and with a person who logs in.

The SDK restores neither when a token expires nor where the authorization server is, so a stored token would count as
valid for ever and would be refreshed at the wrong address (modelcontextprotocol/python-sdk #1318, #3250). Both are
stored and given back to it. It does not recover from a registration that has expired (#3256), so each login registers
anew.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from nca.config.paths import data_dir
from nca.safe_files import write_atomically

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
        was_there = path.exists()
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


def new_login(
    url: str,
    logins: Logins,
    redirect_uri: str,
    ask: Callable[[str], Awaitable[None]],
    answer: Callable[[], Awaitable[AuthorizationCodeResult]],
    *,
    client_id: str = "",
) -> OAuthClientProvider:
    """Registers nca, shows the person the page to log in with `ask`, and waits for `answer`.

    client_id: nca is registered already, under this id and without a secret
    """
    storage = _Storage(url, logins, None)
    if client_id:
        storage.know(client_id, redirect_uri)
    return _provider(storage, url, redirect_uri, ask, answer)


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
