"""Ask a model beside the conversation, within the session's cost limit, and count what the answer costs."""

from __future__ import annotations

import time
from typing import Literal

from nca.agent.spending import refuse_above_limit
from nca.agent.window import Window
from nca.events import Listener, SideRequestFinished
from nca.models.model import Delta, Model, ModelRequest, OnDelta, Reply, server_of


def _ignore(_: Delta) -> None:
    return


async def ask_beside(
    window: Window,
    model: Model,
    request: ModelRequest,
    purpose: Literal["summary", "question", "sampling"],
    emit: Listener,
    hear: OnDelta = _ignore,
) -> Reply:
    """The reply. Raises CostLimitReached, and what the model raises; listeners hear of what was asked either way."""
    refuse_above_limit(window)
    name, server, started = model.facts.name, server_of(model), time.monotonic()
    try:
        reply = await model.ask(request, hear)
    except BaseException as error:
        seconds, failure = time.monotonic() - started, type(error).__name__
        emit(SideRequestFinished(purpose, name, seconds, failure=failure, server=server))
        raise
    seconds = time.monotonic() - started
    emit(SideRequestFinished(purpose, name, seconds, reply.usage, server=server, response=reply.response))
    if reply.usage is not None:
        window.record_beside(name, reply.usage)
    return reply
