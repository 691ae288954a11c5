"""Import litellm when it is first needed: in a thread, without network access and log output.

The import takes seconds and 160 MB, so it never delays the prompt; `warm` can be awaited before the first request.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import logging
import os
import threading
import warnings
from typing import Any

from nca.errors import ModelUnavailable

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
    from nca.models.http_clients import guard_litellm

    guard_litellm()
    return litellm
