"""HTTP clients for litellm: one for OpenAI-compatible endpoints that records response bodies, one for Anthropic.

litellm, through the openai package, reads an HTML page or a JSON error sent with status 200 as a stream without events
and so loses the error. The recording client keeps the beginning of such a body.
"""

from __future__ import annotations

import codecs
import functools
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx
import openai

from nca.models.local_servers import is_loopback
from nca.models.redirects import refuse_elsewhere, refuse_elsewhere_async

_KEPT_BYTES = 2_000_000
_TAIL_BYTES = 64
_CONNECT_SECONDS = 30.0


class BodyRecorder(httpx.AsyncByteStream):
    """Passes on a response's bytes, and keeps `head` until the first event, and `tail`.

    A byte that is not UTF-8 becomes U+FFFD: the openai package would give up the whole answer for it.
    """

    def __init__(self, stream: httpx.AsyncByteStream) -> None:
        self._stream = stream
        self._has_events = False
        self.head = b""
        self.tail = b""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        async for received in self._stream:
            data = decoder.decode(received).encode()
            if not self._has_events and len(self.head) < _KEPT_BYTES:
                self.head += data
                self._has_events = b"data:" in self.head
            self.tail = (self.tail + data)[-_TAIL_BYTES:]
            yield data

    async def aclose(self) -> None:
        await self._stream.aclose()

    @property
    def is_done(self) -> bool:
        """Whether `[DONE]` was received."""
        return b"[DONE]" in self.tail

    @property
    def body(self) -> str:
        """The body, if it has no events."""
        return "" if self._has_events else self.head.decode("utf-8", "replace")

    def completion(self) -> dict[str, Any] | None:
        """The body as a whole answer, if the server does not stream. It may begin with a byte order mark."""
        try:
            value = json.loads(self.body.removeprefix("\ufeff"))
        except ValueError:
            return None
        is_answer = isinstance(value, dict) and bool(value.get("choices")) and not value.get("error")
        return value if is_answer else None


class RecordingClient:
    """HTTP client for one model; the stream of each response is a BodyRecorder."""

    def __init__(self, *, api_base: str, api_key: str, total_seconds: float) -> None:
        self._http = httpx.AsyncClient(
            timeout=httpx.Timeout(total_seconds, connect=min(_CONNECT_SECONDS, total_seconds)),
            follow_redirects=True,
            # Proxies in the environment are not meant for this machine.
            trust_env=not is_loopback(api_base),
            # Compressed streams arrive late and cannot be recorded as text.
            headers={"accept-encoding": "identity"},
            event_hooks={"response": [refuse_elsewhere_async, _record]},
        )
        self.client = _Client(
            # The client requires a key; endpoints without keys ignore it.
            api_key=api_key or "none",
            base_url=api_base or None,
            http_client=self._http,
            max_retries=0,
        )

    async def close(self) -> None:
        await self._http.aclose()


class AnthropicClient:
    """litellm's HTTP client for Anthropic, for one model.

    litellm's shared client is never closed, not even when its event loop ends.
    """

    def __init__(self, total_seconds: float) -> None:
        from litellm.llms.custom_httpx.http_handler import AsyncHTTPHandler

        self.client = AsyncHTTPHandler(
            timeout=httpx.Timeout(total_seconds, connect=min(_CONNECT_SECONDS, total_seconds))
        )

    async def close(self) -> None:
        await self.client.close()


def guard_litellm() -> None:
    """Give the hook to every HTTP client that litellm makes.

    litellm takes a client from its caller for some providers only, and has no setting for the others.
    """
    from litellm.llms.custom_httpx.http_handler import AsyncHTTPHandler, HTTPHandler
    from litellm.llms.openai.common_utils import BaseOpenAILLM

    for handler in (AsyncHTTPHandler, HTTPHandler):
        handler.create_client = _guarding(handler.create_client)
    for name in ("_get_async_http_client", "_get_sync_http_client"):
        setattr(BaseOpenAILLM, name, staticmethod(_guarding(getattr(BaseOpenAILLM, name))))


class _Client(openai.AsyncOpenAI):
    """Raises the general error for status 422.

    On the specific one litellm (drop_params) repeats the same request twice and then returns nothing.
    """

    def _make_status_error(self, err_msg: str, *, body: object, response: httpx.Response) -> openai.APIStatusError:
        if response.status_code == 422:
            return openai.APIStatusError(err_msg, response=response, body=body)
        return super()._make_status_error(err_msg, body=body, response=response)


async def _record(response: httpx.Response) -> None:
    if response.is_success and isinstance(response.stream, httpx.AsyncByteStream):
        response.stream = BodyRecorder(response.stream)


def _guarding(create: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(create)
    def created(*args: Any, **kwargs: Any) -> Any:
        client = create(*args, **kwargs)
        hook = refuse_elsewhere_async if isinstance(client, httpx.AsyncClient) else refuse_elsewhere
        hooks = client.event_hooks
        if hook not in hooks["response"]:
            # Before litellm's own, which may raise for the status.
            client.event_hooks = hooks | {"response": [hook, *hooks["response"]]}
        return client

    return created
