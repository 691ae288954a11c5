"""Which certificates nca's connections trust, and what an error of the encryption says.

SSL_CERT_FILE and SSL_CERT_DIR name what is trusted instead of what the system has. HTTP libraries read them only if
they also obey the proxies of the environment, which are not meant for this machine; some read only the first.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from nca.humanize import one_line

if TYPE_CHECKING:
    import ssl

FILE, FOLDER = "SSL_CERT_FILE", "SSL_CERT_DIR"
VARIABLES = (FILE, FOLDER)
_MOST_CHARS = 200
_TLS_SECONDS = 1.0
"""A server that was just reached answers at once, or does not know what it is asked."""
_EXPIRED = frozenset({9, 10})
_ANOTHERS = frozenset({62, 63, 64})
"""X509_V_ERR_* of OpenSSL: not yet or no longer valid; made for another host, e-mail or IP address."""
_NOT_ENCRYPTED = re.compile("WRONG_VERSION|RECORD_LAYER_FAILURE|UNKNOWN_PROTOCOL|HTTP_REQUEST|HTTPS_PROXY")
"""Reasons of OpenSSL for an answer that is not encrypted."""


def named_certificates(env: Mapping[str, str] = os.environ) -> ssl.SSLContext | None:
    """What trusts the certificates that the environment names, and no others; None if it names none. Raises OSError."""
    file, folder = (env.get(name) or None for name in VARIABLES)
    if not (file or folder):
        return None
    import ssl

    return ssl.create_default_context(cafile=file, capath=folder)


def certificates() -> ssl.SSLContext:
    """What trusts the certificates that the environment names, else those of the system. Raises OSError."""
    if (named := named_certificates()) is not None:
        return named
    import httpx2

    return httpx2.create_ssl_context(trust_env=False)


async def speaks_tls(address: str) -> bool:
    """Whether a server that closed a plain connection waits for an encrypted one. Nothing is sent to it."""
    # A compaction imports this module, and needs no event loop.
    import asyncio
    import ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    parts = urlsplit(address)
    try:
        async with asyncio.timeout(_TLS_SECONDS):
            _, writer = await asyncio.open_connection(parts.hostname, parts.port or 80, ssl=context)
    except ssl.SSLError as error:
        return "ALERT" in str(error.reason)
    except (OSError, ValueError, TimeoutError):
        return False
    writer.transport.abort()
    return True


def refused_encryption(
    chain: Iterable[BaseException], where: str, setting: str = "model.api_base"
) -> tuple[str, str] | None:
    """What an error says that ended the beginning of an encrypted connection, and the advice; None for any other.

    A connection that was lost meanwhile is another error: it may hold the next time.

    chain    the error and its causes
    setting  what names the address
    """
    import ssl

    # httpcore hides the error that it translates (`raise … from None`).
    for error in (one for link in chain for one in (link, link.__context__)):
        if isinstance(error, ssl.SSLCertVerificationError):
            said = one_line((error.verify_message or str(error)).rstrip("."), _MOST_CHARS)
            return f"The certificate of {where} is not trusted: {said}.", _advice(error.verify_code, setting)
        lost = ssl.SSLEOFError, ssl.SSLZeroReturnError, ssl.SSLSyscallError, ssl.SSLWantReadError
        if isinstance(error, ssl.SSLError) and not isinstance(error, lost):
            reason = str(error.reason or "")
            if _NOT_ENCRYPTED.search(reason):
                advice = f"If it speaks only http, set {setting} to its address with http://."
                return f"{where} does not answer with encryption (https).", advice
            said = one_line(reason.replace("_", " ").lower() or str(error), _MOST_CHARS)
            return f"No encrypted connection to {where} is possible: {said}.", f"Check the address ({setting})."
    return None


def _advice(code: int, setting: str) -> str:
    if code in _EXPIRED:
        return "Check the clock of this machine; else its owner has to renew it."
    if code in _ANOTHERS:
        return f"Check the address ({setting})."
    named = [f"{name} is {os.environ[name]}" for name in VARIABLES if os.environ.get(name)]
    now = f" (now {' and '.join(named)})" if named else ""
    return f"{FILE}=FILE names a file of certificates to trust{now}."
