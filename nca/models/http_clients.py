"""HTTP clients for litellm: one for OpenAI, one for Anthropic, and redirects for all that it makes itself."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any

import httpx
import openai

from nca.models.certificates import named_certificates
from nca.models.chat_endpoint import CONNECT_SECONDS
from nca.models.providers import is_loopback
from nca.models.redirects import certificates_for, refuse_elsewhere, refuse_elsewhere_async


class OpenAIClient:
    """litellm's HTTP client for OpenAI, for one model. litellm's own are never closed, and obey any proxy."""

    def __init__(self, *, api_base: str, api_key: str, total_seconds: float) -> None:
        self._http = httpx.AsyncClient(
            timeout=_timeout(total_seconds),
            follow_redirects=True,
            trust_env=not is_loopback(api_base),
            verify=certificates_for(api_base),
            event_hooks={"response": [refuse_elsewhere_async]},
        )
        self.client = _OpenAI(
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

        self.client = AsyncHTTPHandler(timeout=_timeout(total_seconds), ssl_verify=named_certificates())

    async def close(self) -> None:
        await self.client.close()


def guard_litellm() -> None:
    """Give the hook, and the certificates that the environment names, to every HTTP client that litellm makes.

    litellm takes a client from its caller for some providers only, and has no setting for the others.
    """
    from litellm.llms.custom_httpx import http_handler
    from litellm.llms.custom_httpx.http_handler import AsyncHTTPHandler, HTTPHandler
    from litellm.llms.openai import common_utils
    from litellm.llms.openai.common_utils import BaseOpenAILLM

    http_handler.get_ssl_configuration = common_utils.get_ssl_configuration = _trusting(
        http_handler.get_ssl_configuration
    )
    for handler in (AsyncHTTPHandler, HTTPHandler):
        handler.create_client = _guarding(handler.create_client)
    for name in ("_get_async_http_client", "_get_sync_http_client"):
        setattr(BaseOpenAILLM, name, staticmethod(_guarding(getattr(BaseOpenAILLM, name))))


class _OpenAI(openai.AsyncOpenAI):
    """Raises the general error for status 422.

    On the specific one litellm (drop_params) repeats the same request and then returns nothing.
    """

    def _make_status_error(self, err_msg: str, *, body: object, response: httpx.Response) -> openai.APIStatusError:
        if response.status_code == 422:
            return openai.APIStatusError(err_msg, response=response, body=body)
        return super()._make_status_error(err_msg, body=body, response=response)


def _timeout(total_seconds: float) -> httpx.Timeout:
    return httpx.Timeout(total_seconds, connect=min(CONNECT_SECONDS, total_seconds))


def _trusting(configure: Callable[..., Any]) -> Callable[..., Any]:
    """litellm reads SSL_CERT_FILE, but not SSL_CERT_DIR. Its own SSL_VERIFY stays in force."""

    @functools.wraps(configure)
    def configured(ssl_verify: Any = None) -> Any:
        named = named_certificates() if ssl_verify is None and not os.environ.get("SSL_VERIFY") else None
        return configure(ssl_verify) if named is None else named

    return configured


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
