"""What every command that talks to a model opens first: settings, store, model, conversation."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nca.agent.approvals import Person
    from nca.agent.conversation import Conversation
    from nca.config.loaded import LoadedSettings
    from nca.events import Listener
    from nca.models.choose import Choice
    from nca.sessions.session import Kind
    from nca.sessions.store import Store


def load_settings(
    flags: Mapping[str, Any], config_file: Path | None, *, trust: bool = False, asks: bool = False
) -> LoadedSettings:
    """The layers for the directory one stands in; a flag that is None was not given. Raises ConfigError.

    What of a project's settings would act counts with `trust`, and where the person has said so; `asks`: a terminal is
    asked once.
    """
    from nca.cli.trust_question import trusts
    from nca.config.layers import load

    decide = trusts(by_flag=trust, asks=asks)
    return load(project=Path.cwd(), env=os.environ, flags=flags, config_file=config_file, trusts=decide)


def settings_of(*, disable_compaction: bool = False, **given: str | None) -> dict[str, Any]:
    """Settings by name from flags by parameter (`compact_threshold` is --compact-threshold), None where not given."""
    from nca.config.layers import FLAGS

    keys = {flag.removeprefix("--").replace("-", "_"): key for key, flag in FLAGS.items()}
    return {"context.auto": "off" if disable_compaction else None} | {
        keys[parameter]: value for parameter, value in given.items()
    }


def store_path() -> Path:
    from nca.config.paths import data_dir

    return data_dir(os.environ) / "sessions.db"


def open_store(loaded: LoadedSettings, listener: Listener) -> Store:
    """The store on disk; in memory, and said so, where it cannot be written or is not wanted.

    Raises StoreTooNew, StoreDamaged: those are for a person to decide.
    """
    from nca.errors import StoreDamaged, StoreError, StoreTooNew
    from nca.events import Notice
    from nca.sessions.store import Store

    if not loaded.settings.session.persist:
        return Store.open(None)
    try:
        store = Store.open(store_path())
    except (StoreTooNew, StoreDamaged):
        raise
    except StoreError as error:
        said = error.message[:1].upper() + error.message[1:].rstrip(".")
        listener(Notice(f"{said}. This session is kept in memory only and will be gone when you leave."))
        return Store.open(None)
    settings = loaded.settings.session
    removed = store.expire(settings.retention_days, settings.max_sessions)
    if removed:
        days, most = settings.retention_days, settings.max_sessions
        listener(Notice(f"{removed} old sessions were removed (session.retention_days {days}, max_sessions {most})."))
    return store


def choose_model(loaded: LoadedSettings) -> Choice:
    from nca.models.choose import choose

    return choose(loaded.settings.model, os.environ)


async def open_conversation(
    loaded: LoadedSettings,
    store: Store,
    listener: Listener,
    *,
    choice: Choice | None = None,
    session: str | None = None,
    prepares: bool = False,
    read_only: bool = False,
    kind: Kind = "chat",
    person: Person | None = None,
) -> Conversation:
    """The conversation with the chosen model. Raises ModelUnavailable, SessionNotFound, SessionLocked."""
    from nca.agent.conversation import Conversation
    from nca.models.choose import open_model

    choice = choice or choose_model(loaded)
    model = await open_model(loaded.for_model(choice.model).settings.model, choice, listener)
    try:
        return Conversation.open(
            loaded,
            store=store,
            model=model,
            directory=Path.cwd(),
            session=session,
            listener=listener,
            prepares=prepares,
            read_only=read_only,
            kind=kind,
            person=person,
        )
    except BaseException:
        await model.close()
        raise
