"""Remember the model that the person chose in a chat, for the session and for later chats in the directory."""

from __future__ import annotations

import asyncio
import os
import time
from typing import TYPE_CHECKING

from nca.config.overrides import Layer
from nca.config.projects import ChosenModel, ChosenModels
from nca.errors import ModelUnavailable
from nca.models.choose import Choice, choice_of_session, choose, open_model
from nca.models.reasoning import split_level

if TYPE_CHECKING:
    from nca.agent.conversation import Conversation
    from nca.terminal.render.output import Output


def remember(conversation: Conversation, typed: str) -> str:
    """Remember a choice, as it was typed. Returns where it counts from now on; "" if nothing can be kept."""
    if not conversation.session.is_read_only:
        conversation.session.remember_model(typed)
    if conversation.store.path is None:
        return ""
    name, level = split_level(typed)
    try:
        chosen = ChosenModel(name, level, time.strftime("%Y-%m-%d"))
        ChosenModels(os.environ).record(conversation.directory, chosen)
    except OSError as error:
        return f"Only this session remembers it: {error.strerror}."
    configured = conversation.loaded.base["model.name"]
    if configured.layer > Layer.CHOSEN:
        return f"This session remembers it; new ones begin with {configured.value} ({configured.origin})."
    return "Later chats in this directory begin with it; /model default goes back."


async def go_back(conversation: Conversation, output: Output) -> Choice:
    """Forget what was chosen in this session and this directory, and switch to the model that the settings lead to.

    Raises ModelUnavailable if that model cannot be used; the choice is forgotten all the same.
    """
    conversation.forget_chosen_model()
    if conversation.store.path is not None:
        try:
            ChosenModels(os.environ).forget(conversation.directory)
        except OSError as error:
            output.warn(f"The choice for this directory could not be forgotten: {error.strerror}.")
    loaded = conversation.loaded
    # Asks local servers where nothing is configured.
    choice = await asyncio.to_thread(
        choose, loaded.settings.model, os.environ, named_by=loaded.base["model.name"].origin
    )
    if choice.model != conversation.model.facts.name:
        settings = loaded.for_model(choice.model).settings.model
        await conversation.use_model(await open_model(settings, choice, output.on_event))
    return choice


async def go_on(conversation: Conversation, output: Output) -> None:
    """In a session that was resumed in a chat: go on with the model that was chosen in it."""
    found = choice_of_session(conversation.session.info.chosen_model, conversation.loaded, os.environ)
    if found is None or found[1].model == conversation.model.facts.name:
        return
    loaded, choice = found
    try:
        model = await open_model(loaded.for_model(choice.model).settings.model, choice, output.on_event)
    except ModelUnavailable as error:
        output.notice(f"{choice.model} ({choice.why}) cannot be used now: {error.message}")
        return
    await conversation.use_model(model)
    if loaded is not conversation.loaded:
        conversation.set("model.reasoning", loaded.settings.model.reasoning)
    output.notice(f"{choice.model} answers: {choice.why}; /model default goes back to the configured one.")
