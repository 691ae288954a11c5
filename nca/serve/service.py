"""The paths of `nca serve` as an ASGI application: tokens, limits, and errors as JSON."""

from __future__ import annotations

import asyncio
import gc
import hashlib
import hmac
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from nca.errors import ContextDoesNotFit, NcaError, SessionNotFound, StoreError, UsageError, ViewInUse
from nca.library.beside_loop import beside_loop
from nca.serve import operations
from nca.serve.operations import Caller
from nca.sessions import Store
from nca.transcripts.formats.row import decode
from nca.wire import plain_json

_LOG = logging.getLogger("uvicorn.error")
"""Where the server says what it does."""
LOOPBACK = ("127.0.0.1", "localhost")
MOST_DEPTH = 64
"""Of objects and lists in each other; a tool's schema has a dozen."""
PATHS: Mapping[str, Callable[[Mapping[str, Any], Caller], dict[str, Any]]] = {
    "/v1/compress": operations.compress,
    "/v1/responses/compact": operations.responses_compact,
    "/v1/context/check": operations.check,
    "/v1/recall": operations.recall,
}


@dataclass(frozen=True, slots=True)
class Options:
    """How a server serves.

    tokens  names by the SHA-256 of their token; without any, whoever reaches it may ask
    store   the file of the views; or store_url, the PostgreSQL database that has them
    keeps_messages  the store keeps the messages of requests with a key as well, for GET /v1/recall
    """

    tokens: Mapping[str, str] = field(default_factory=dict)
    store: Path | None = None
    store_url: str = ""
    keeps_messages: bool = False
    max_body_bytes: int = 32 * 1024 * 1024
    timeout_seconds: float = 60.0


def read_tokens(path: Path) -> dict[str, str]:
    """A file with a name and a token on each line. Raises UsageError, which never shows a token."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"--tokens {path}: cannot be read ({error}).") from error
    tokens: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        if len(words) != 2 or len(words[1]) < 16 or not words[1].isascii() or "/" in words[0]:
            raise UsageError(f"{path}, line {number}: valid: a name and a token of at least 16 ASCII characters.")
        tokens[digest(words[1])] = words[0]
    if not tokens:
        raise UsageError(f"--tokens {path}: has no tokens; valid: a name and a token on each line.")
    return tokens


def digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).hexdigest()


def open_views(options: Options) -> Store | None:
    """The store of the views, if there is one. Raises StoreError, StoreTooNew, ConfigError."""
    if options.store_url:
        return Store.open(None, url=options.store_url, tell=_LOG.warning)
    return Store.open(options.store) if options.store else None


def application(options: Options) -> Starlette:
    """The application of one worker. It opens the store when it starts."""
    service = _Service(options)
    routes = [Route(path, service.answering(work), methods=["POST"]) for path, work in PATHS.items()]
    for method, work in (("GET", operations.recall_kept), ("DELETE", operations.delete_kept)):
        routes.append(Route("/v1/recall", service.answering(work), methods=[method]))
    routes += [Route(path, service.health, methods=["GET"]) for path in ("/healthz", "/readyz")]
    # Without tokens it listens on loopback: a page in a browser may not reach it under another name.
    hosts = [] if options.tokens else [Middleware(TrustedHostMiddleware, allowed_hosts=list(LOOPBACK))]
    handlers: Any = {HTTPException: _refused, NcaError: _failed, ClientDisconnect: _gone}
    return Starlette(routes=routes, middleware=hosts, exception_handlers=handlers, lifespan=service.lifespan)


class _Service:
    def __init__(self, options: Options) -> None:
        self._options = options
        self._store: Store | None = None

    @asynccontextmanager
    async def lifespan(self, _: Starlette) -> AsyncIterator[None]:
        with open_views(self._options) or nullcontext() as self._store:
            await beside_loop(_warm_up)
            yield

    def answering(self, work: Callable[[Mapping[str, Any], Caller], dict[str, Any]]) -> Callable[[Request], Any]:
        async def answer(request: Request) -> Response:
            caller = Caller(self._store, self._name_of(request), keeps_messages=self._options.keeps_messages)
            try:
                async with asyncio.timeout(self._options.timeout_seconds):
                    if request.method != "POST":
                        return _json(await beside_loop(lambda: work(request.query_params, caller)))
                    raw = await self._body(request)
                    return _json(await beside_loop(lambda: work(_object(raw), caller)))
            except NcaError as error:
                error.message, error.advice = caller.own_words(error.message), caller.own_words(error.advice)
                raise
            except TimeoutError:
                seconds = self._options.timeout_seconds
                raise HTTPException(503, f"The request took longer than {seconds:g} s.", {"Retry-After": "1"}) from None

        return answer

    async def health(self, request: Request) -> Response:
        """Ready is a worker that can read its store."""
        if request.url.path == "/readyz" and self._store is not None:
            store = self._store
            await beside_loop(lambda: store.program_views.read(""))
        return _json({"status": "ok"})

    def _name_of(self, request: Request) -> str:
        if not self._options.tokens:
            _refuse_pages(request)
            return "local"
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        given = digest(token.strip())
        for known, name in self._options.tokens.items():
            if kind.lower() == "bearer" and hmac.compare_digest(known, given):
                return name
        raise HTTPException(401, "The bearer token is missing or not known.", {"WWW-Authenticate": "Bearer"})

    async def _body(self, request: Request) -> bytes:
        most, body = self._options.max_body_bytes, bytearray()
        async for chunk in request.stream():
            body += chunk
            if len(body) > most:
                raise HTTPException(413, f"The body is larger than {most:,} bytes.", {"Connection": "close"})
        return bytes(body)


def _refuse_pages(request: Request) -> None:
    """A page of another site can send a request without asking, as text; only its browser says where it came from."""
    headers = request.headers
    origin, own = headers.get("origin"), f"{request.url.scheme}://{headers.get('host', '')}"
    if origin not in (None, own) or headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
        raise HTTPException(
            403, "The request comes from a page of another site; valid: from a program on this machine."
        )


def _warm_up() -> None:
    """Load what the first requests would load, and let the garbage collector pass over it.

    It all stays until the end. A look at it stopped every request of the process for 40 ms, and the first request with
    another vocabulary for 60.
    """
    said = [{"role": role, "content": "Once upon a time. " * 40} for role in ("user", "assistant")]
    for model in ("gpt-5", "gpt-4", "claude"):
        operations.compress({"messages": said * 20, "model": model, "context_window": 4_000}, Caller(None, ""))
    gc.collect()
    gc.freeze()


def _object(raw: bytes) -> Mapping[str, Any]:
    """Raises UsageError."""
    try:
        body = decode(raw)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"The body is not JSON ({error}); valid: an object.") from error
    if b"\\ud" in raw.lower():  # An answer may repeat it, and must be UTF-8.
        body = plain_json(body, "The body")
    if not isinstance(body, dict):
        raise UsageError('The body is not an object; valid: an object such as {"messages": […]}.')
    level: list[Any] = [body]
    for _ in range(MOST_DEPTH):
        level = [
            inner
            for one in level
            for inner in (one.values() if isinstance(one, dict) else one)
            if isinstance(inner, dict | list)
        ]
        if not level:
            return body
    raise UsageError(f"The body has objects or lists in each other, deeper than {MOST_DEPTH}.")


def _failed(request: Request, error: NcaError) -> Response:
    match error:
        case ViewInUse():
            return _error(409, "view_in_use", str(error))
        case SessionNotFound():
            return _error(404, "not_found", str(error))
        case UsageError():
            return _error(400, "invalid_request", str(error))
        case ContextDoesNotFit():
            sizes = {"used_tokens": error.used_tokens, "budget_tokens": error.budget_tokens}
            return _error(422, "context_does_not_fit", str(error), **sizes)
        case StoreError():
            _LOG.error("The store of views failed: %s", error)
            return _error(503, "store_failed", "The store of views failed; the server's log says how.")
    return _error(500, "failed", str(error))


def _refused(request: Request, error: HTTPException) -> Response:
    is_path = error.status_code == 404  # the only one that Starlette raises; what work does not find is an NcaError
    message = f"There is no such path; valid: {', '.join(PATHS)}." if is_path else error.detail
    response = _error(error.status_code, "refused", message)
    response.headers.update(error.headers or {})
    return response


def _gone(request: Request, error: ClientDisconnect) -> Response:
    return Response(status_code=499)


def _error(status: int, kind: str, message: str, **more: Any) -> Response:
    return _json({"error": {"type": kind, "message": message, **more}}, status)


def _json(value: Any, status: int = 200) -> Response:
    return Response(msgspec.json.encode(value), status, media_type="application/json")
