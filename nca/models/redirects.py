"""Redirects to another server are refused, before the request is sent on.

A request to a model carries the conversation and the key. An HTTP library takes the first along to wherever the server
points (status 307, 308), and of the second only the header that it knows: not x-api-key, api-key or a key in the query.
"""

from __future__ import annotations

import socket
from typing import Any

from nca.addresses import is_public

_PORTS = {"http": 80, "https": 443}
_MOST_CHARS = 200


class RedirectRefused(Exception):
    """A server pointed to another one, which got nothing. Both are origins: scheme, host and port."""

    def __init__(self, source: str, target: str) -> None:
        super().__init__(f"{source} answered with a redirect to {target}")
        self.source, self.target = source, target


def refuse_elsewhere(response: Any) -> None:
    """A hook for the responses of an HTTP client, httpx's or httpx2's. Raises RedirectRefused.

    Elsewhere is where the scheme, the host or the port differs; so neither encryption nor the person's choice is lost.
    """
    if not response.has_redirect_location:
        return
    asked = response.request.url
    try:
        target = asked.join(response.headers["location"])
    # The libraries' own InvalidURL is no ValueError.
    except Exception as error:
        raise RedirectRefused(_origin(asked), "an address that is not valid") from error
    if _parts(asked) != _parts(target):
        raise RedirectRefused(_origin(asked), _origin(target))


def refuse_inward(response: Any) -> None:
    """A hook for a download without secrets, which may come from another server: one that is as public and as safe.

    A name that this machine cannot resolve is the proxy's to reach. Raises RedirectRefused.
    """
    if not response.has_redirect_location:
        return
    asked = response.request.url
    target = asked.join(response.headers["location"])
    loses_encryption = asked.scheme == "https" != target.scheme
    if loses_encryption or (_is_public(asked.host) and not _is_public(target.host)):
        raise RedirectRefused(_origin(asked), _origin(target))


async def refuse_elsewhere_async(response: Any) -> None:
    """`refuse_elsewhere` for an asynchronous client."""
    refuse_elsewhere(response)


def _is_public(host: str) -> bool:
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return True
    return all(is_public(str(sockaddr[0])) for *_, sockaddr in found)


def _parts(url: Any) -> tuple[str, bytes, int | None]:
    return url.scheme, url.raw_host, url.port or _PORTS.get(url.scheme)


def _origin(url: Any) -> str:
    """Scheme, host in ASCII and port, as a person writes them."""
    host = url.raw_host.decode("ascii")
    host = f"[{host}]" if ":" in host else host
    return f"{url.scheme}://{host}{f':{url.port}' if url.port else ''}"[:_MOST_CHARS]
