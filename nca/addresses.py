"""Tell public network addresses, which nca may reach unasked, from private ones: this machine and its neighbours."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_NAT64 = (ipaddress.IPv6Network("64:ff9b::/96"), ipaddress.IPv6Network("64:ff9b:1::/48"))
"""Networks whose last 32 bits are an IPv4 address (RFC 6052, RFC 8215)."""


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
