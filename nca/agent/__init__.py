"""Conversations and turns. `open_conversation` is the shortest way in: it imports the rest when it is called."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nca.agent.approvals import Person
    from nca.agent.conversation import Conversation
    from nca.config.paths import PathLike
    from nca.events import Listener
    from nca.models.model import Model
    from nca.tools.tool import Tool


@asynccontextmanager
async def open_conversation(
    directory: PathLike = ".",
    *,
    model: Model | str = "",
    session: str | None = None,
    settings: Mapping[str, Any] = MappingProxyType({}),
    listener: Listener | None = None,
    tools: Sequence[Tool] = (),
    person: Person | None = None,
) -> AsyncGenerator[Conversation]:
    """Open a conversation with the settings, store and model that `nca run` has in the directory, for one block.

    model     a name, such as `openai/gpt-4.1`, or a model that is open; "": the one that the settings lead to
    settings  more settings, by name
    The other arguments are those of `Conversation.open`. Raises UsageError, ConfigError, ModelUnavailable,
    SessionNotFound, SessionLocked, StoreError.
    """
    import asyncio
    import os

    from nca.agent.assembly import check_argument
    from nca.agent.conversation import Conversation
    from nca.config.layers import load
    from nca.config.paths import place_of_store
    from nca.models.choose import choose, open_model
    from nca.sessions.store import Store

    loaded = load(project=directory, env=os.environ).with_values(settings, "the call")
    keeps = loaded.settings.session
    path, url = place_of_store(loaded.env, keeps.store) if keeps.persist else (None, "")
    with Store.open(path, url=url) as store:
        if model == "":
            model = await open_model(await asyncio.to_thread(choose, loaded.settings.model, loaded.env), loaded)
        elif isinstance(model, str):
            model = await open_model(model, loaded)
        check_argument(model, "model")
        try:
            conversation = Conversation.open(
                loaded,
                store=store,
                model=model,
                directory=directory,
                session=session,
                listener=listener,
                tools=tools,
                person=person,
            )
        except BaseException:
            await model.close()
            raise
        async with conversation:
            yield conversation
