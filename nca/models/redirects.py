"""Which addresses are public; and redirects to another server, which are refused before the request is sent on.

A request to a model carries the conversation and the key. An HTTP library takes the first along to wherever the server
points (status 307, 308), and of the second only the header that it knows: not x-api-key, api-key or a key in the query.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from nca.models.certificates import named_certificates
from nca.models.providers import is_loopback

if TYPE_CHECKING:
    import ssl

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_NAT64 = (ipaddress.IPv6Network("64:ff9b::/96"), ipaddress.IPv6Network("64:ff9b:1::/48"))
"""Networks with an IPv4 address in the last 32 bits (RFC 6052, RFC 8215)."""


def is_public(text: str) -> bool:
    """Whether an address, with or without a zone, is public; False for anything that is not an address.

    Loopback, private, link-local (cloud metadata services), shared, documentation, multicast and reserved ranges are
    not public. Nor is an IPv6 address that carries such an IPv4 address.
    """
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return False
    return all(one.is_global and not one.is_multicast and not one.is_reserved for one in _carried(address))


def are_public(addresses: Iterable[str]) -> bool:
    """Whether all addresses of a host are public: whoever connects may take any of them."""
    return all(map(is_public, addresses))


def _carried(address: _Address) -> Iterator[_Address]:
    if isinstance(address, ipaddress.IPv4Address):
        yield address
        return
    if address.ipv4_mapped is not None:
        yield address.ipv4_mapped
        return
    if any(address in network for network in _NAT64):
        yield ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        return
    yield address
    if address.sixtofour is not None:
        yield address.sixtofour
    if address.teredo is not None:
        yield from address.teredo


_MOST_CHARS = 200


class RedirectRefused(Exception):
    """A server pointed to another one, which got nothing. Both are origins: scheme, host and port."""

    def __init__(self, source: str, target: str) -> None:
        source, target = source[:_MOST_CHARS], target[:_MOST_CHARS]
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
    # The libraries' own InvalidURL is not a ValueError.
    except Exception as error:
        raise RedirectRefused(origin_of(asked), "an address that is not valid") from error
    if _parts(asked) != _parts(target):
        raise RedirectRefused(origin_of(asked), origin_of(target))


def certificates_for(api_base: str) -> ssl.SSLContext | bool:
    """What a client that refuses redirects elsewhere checks an endpoint's certificate with. Raises OSError.

    True: what its library knows of the system. To read that takes up to 0.03 s. An endpoint without encryption on this
    machine, where no proxy is asked either, never leads to one with it: there nothing is read, and a certificate would
    be refused.
    """
    if not is_loopback(api_base) or urlsplit(api_base).scheme != "http":
        named = named_certificates()
        return True if named is None else named
    import ssl

    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


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
        raise RedirectRefused(origin_of(asked), origin_of(target))


async def refuse_elsewhere_async(response: Any) -> None:
    """`refuse_elsewhere` for an asynchronous client."""
    refuse_elsewhere(response)


def _is_public(host: str) -> bool:
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return True
    return are_public(str(sockaddr[0]) for *_, sockaddr in found)


def _parts(url: Any) -> tuple[str, bytes, int | None]:
    # The libraries leave the usual port of a scheme out.
    return url.scheme, url.raw_host, url.port


def origin_of(url: Any) -> str:
    """Scheme, host in ASCII and port, as a person writes them."""
    host = url.raw_host.decode("ascii")
    host = f"[{host}]" if ":" in host else host
    return f"{url.scheme}://{host}{f':{url.port}' if url.port else ''}"
