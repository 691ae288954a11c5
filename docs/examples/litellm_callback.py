"""LiteLLM: a callback that fits requests into the model's window: all of the proxy, in the SDK those of `acompletion`.

`litellm.completion` calls no such hook: its requests are sent whole.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import litellm
from litellm.integrations.custom_logger import CustomLogger
from litellm.types.utils import CallTypes

import nca

MOST_SESSIONS = 10_000


class FittedRequests(CustomLogger):
    """`litellm.callbacks = [FittedRequests()]`; in the proxy's file `callbacks: litellm_callback.fitted`.

    arguments  as for `nca.ContextView`: context_window, max_output_tokens, summarizer, settings …

    A request that names its session (`litellm_session_id`, the header `x-litellm-session-id`, `prompt_cache_key`) goes
    on from its last compaction, so the beginning stays in the provider's cache. Others begin anew, and fit as well.
    """

    def __init__(self, **arguments: Any) -> None:
        super().__init__()
        self._arguments = arguments
        self._states: OrderedDict[tuple[str, str], dict[str, Any]] = OrderedDict()

    async def async_pre_call_deployment_hook(self, kwargs: dict[str, Any], call_type: CallTypes | None) -> Any:
        if call_type not in (CallTypes.completion, CallTypes.acompletion):
            return None
        session = _session(kwargs)
        view = nca.ContextView(
            **{"model": kwargs["model"], "max_output_tokens": kwargs.get("max_tokens") or 0, **self._arguments},
            tools=kwargs.get("tools"),
            has_recall=False,
            state=self._states.get(session),
        )
        try:
            fitted = await view.afit(kwargs["messages"])
        except nca.ContextDoesNotFit as error:
            raise litellm.ContextWindowExceededError(str(error), kwargs["model"], "nca") from error
        if session[1]:
            self._states[session] = view.state
            self._states.move_to_end(session)
            if len(self._states) > MOST_SESSIONS:
                self._states.popitem(last=False)
        return {**kwargs, "messages": fitted.messages}


def _session(kwargs: dict[str, Any]) -> tuple[str, str]:
    """Who asks, and in which session; the words of a message never decide that."""
    about = {**(kwargs.get("litellm_metadata") or {}), **(kwargs.get("metadata") or {})}
    named = kwargs.get("litellm_session_id") or about.get("session_id") or kwargs.get("prompt_cache_key")
    return str(about.get("user_api_key_hash") or about.get("user_api_key") or ""), str(named or "")


fitted = FittedRequests()
