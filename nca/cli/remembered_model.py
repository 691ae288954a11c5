"""Open a chat with the model that its session, or an earlier chat in this directory, was left with."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from nca.cli.startup import choose_model, open_conversation
from nca.errors import ModelUnavailable
from nca.events import Notice
from nca.models.choose import choice_of_session

if TYPE_CHECKING:
    from nca.agent.approvals import Person
    from nca.agent.conversation import Conversation
    from nca.config.loaded import LoadedSettings
    from nca.events import Listener
    from nca.models.choose import Choice
    from nca.sessions.store import Store
    from nca.terminal.panels.session_loader import SessionToOpen
    from nca.tools.editor import Editor


async def open_chat_conversation(
    loaded: LoadedSettings,
    choice: Choice,
    store: Store,
    listener: Listener,
    earlier: SessionToOpen,
    person: Person,
    *,
    directory: Path | None = None,
    editor: Editor | None = None,
) -> tuple[Conversation, Choice]:
    """The conversation, and the model that answers in it. One that is remembered but of no use now is passed over.

    choice     the model that the settings lead to
    directory  None: the working directory
    Raises ModelUnavailable, SessionNotFound, SessionLocked.
    """
    session = earlier.session
    for settings, wanted in _candidates(loaded, choice, session.chosen_model if session else ""):
        try:
            conversation = await open_conversation(
                settings,
                store,
                listener,
                choice=wanted,
                session=session.id if session else None,
                prepares=True,
                read_only=earlier.read_only,
                person=person,
                directory=directory,
                editor=editor,
            )
        except ModelUnavailable as error:
            if not wanted.is_remembered:
                raise
            listener(Notice(f"{wanted.model} ({wanted.why}) cannot be used now: {error.message}"))
        else:
            return conversation, wanted
    raise AssertionError("the settings' own model is the last candidate")


def _candidates(loaded: LoadedSettings, choice: Choice, typed: str) -> Iterator[tuple[LoadedSettings, Choice]]:
    """What the session remembers, then the project, then what the settings say."""
    if (own := choice_of_session(typed, loaded, os.environ)) is not None:
        yield own
    yield loaded, choice
    configured = loaded.without_chosen_model()
    yield configured, choose_model(configured)
