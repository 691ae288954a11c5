"""Import litellm when it is first needed, in a thread, without network access and log output; its HTTP clients.

The import takes seconds and 160 MB, so it never delays the prompt; `warm` can be awaited before the first request.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import importlib
import logging
import os
import threading
import warnings
from collections.abc import Callable
from typing import Any

import httpx
import openai

from nca.errors import ModelUnavailable
from nca.models.chat_endpoint import CONNECT_SECONDS
from nca.models.providers import is_loopback
from nca.models.redirects import refuse_elsewhere, refuse_elsewhere_async


class OpenAIClient:
    """litellm's HTTP client for OpenAI, for one model. litellm's own are never closed, and obey any proxy."""

    def __init__(self, *, api_base: str, api_key: str, total_seconds: float) -> None:
        self._http = httpx.AsyncClient(
            timeout=_timeout(total_seconds),
            follow_redirects=True,
            trust_env=not is_loopback(api_base),
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

        self.client = AsyncHTTPHandler(timeout=_timeout(total_seconds))

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


_lock = threading.Lock()
_loaded: list[Any] = []


async def warm() -> Any:
    """The litellm module, imported in a thread the first time. The import continues if the caller is cancelled.

    Raises ModelUnavailable if the import fails.
    """
    if _loaded:
        return _loaded[0]
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Any] = loop.create_future()

    def settle(module: Any, error: BaseException | None) -> None:
        if done.done():
            return
        if error is None:
            done.set_result(module)
        else:
            done.set_exception(error)

    def work() -> None:
        module, error = None, None
        try:
            module = load()
        except ImportError as missing:
            error = ModelUnavailable(f"litellm cannot be imported: {missing}.", advice="Install nca again.")
        # The event loop may have ended; then nobody waits.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(settle, module, error)

    # A daemon thread instead of the executor, so that exiting does not wait for the import.
    threading.Thread(target=work, name="import-litellm", daemon=True).start()
    return await done


def load() -> Any:
    """Import litellm once and silence it."""
    with _lock:
        if not _loaded:
            _loaded.append(_import())
        return _loaded[0]


def _import() -> Any:
    # The first keeps litellm from fetching its price map. The second keeps it from loading ./.env, where a project
    # could set keys and endpoints.
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    os.environ["LITELLM_MODE"] = "PRODUCTION"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        litellm: Any = importlib.import_module("litellm")
    # pydantic warns about litellm's types at their first use, in the middle of a chat.
    warnings.filterwarnings("ignore", message="Item '.*' on TypedDict class", category=UserWarning)
    for name in ("LiteLLM", "LiteLLM Router", "LiteLLM Proxy"):
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    litellm.suppress_debug_info = True
    litellm.telemetry = False
    litellm.drop_params = True
    # aiohttp sessions outlive a cancelled request and complain at exit; httpx closes at once.
    litellm.disable_aiohttp_transport = True
    # Imports httpx and openai, as litellm does.

    guard_litellm()
    return litellm
