"""Conversations and turns. `open_conversation` is the shortest way in: it imports the rest when it is called."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
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

    model     a name, such as `openai/gpt-4.1`, or a model that is open; "": the one that the settings lead to. It is
              closed at the end, and if opening fails
    settings  more settings, by name
    The other arguments are those of `Conversation.open`. Raises UsageError, ConfigError, ModelUnavailable,
    SessionNotFound, SessionLocked, StoreError.
    """
    import asyncio
    import os
    from functools import partial

    from nca.agent.assembly import check_argument
    from nca.agent.conversation import Conversation
    from nca.config.document import read_folder
    from nca.config.layers import load
    from nca.config.paths import place_of_store
    from nca.events import Notice
    from nca.humanize import check_kind
    from nca.models.choose import choose, open_model
    from nca.sessions.store import Store

    async with AsyncExitStack() as on_error:
        if not isinstance(model, str):
            check_argument(model, "model")
            on_error.push_async_callback(model.close)
        if listener is not None:
            check_argument(listener, "listener")
        check_kind(settings, Mapping, "settings", "settings by name")
        for name in settings:
            check_kind(name, str, "settings", "names of settings")
        directory = read_folder(directory, "directory")
        loaded = load(project=directory, env=os.environ).with_values(settings, "the call")
        keeps = loaded.settings.session
        path, url = place_of_store(loaded.env, keeps.store) if keeps.persist else (None, "")
        with Store.open(path, url=url) as store:
            if listener is not None:
                for note in store.notes:
                    listener(Notice(note))
            if isinstance(model, str):
                by_settings = partial(choose, loaded.settings.model, loaded.env)
                model = await open_model(model or await asyncio.to_thread(by_settings), loaded)
                on_error.push_async_callback(model.close)
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
            on_error.pop_all()
            async with conversation:
                yield conversation
