"""Open what a command needs: settings, the session store, the model that is used, the conversation."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nca.cli.printing import echo
from nca.config.paths import StorePlace, place_of_store, user_config_file
from nca.errors import ConfigError, ModelUnavailable, SessionNotFound, StoreDamaged, StoreError, StoreTooNew, UsageError
from nca.safe_files import is_missing

if TYPE_CHECKING:
    from nca.agent.approvals import Person
    from nca.agent.conversation import Conversation
    from nca.config.loaded import LoadedSettings
    from nca.config.schema import SessionSettings
    from nca.config.tables import PermissionRule
    from nca.events import Listener
    from nca.models.choose import Choice
    from nca.sessions.session import Kind, SessionInfo
    from nca.sessions.store import Store
    from nca.terminal.panels.session_loader import SessionToOpen


ARCHIVED_AT_A_START = 50
"""Sessions that one start archives. The chat waits for it: 50 of 40 messages take half a second to a second."""
_NAMED = 3
"""Archived sessions that the notice names."""
_TITLE_CHARS = 40


def load_settings(
    flags: Mapping[str, Any],
    config_file: Path | None,
    *,
    trust: bool = False,
    asks: bool = False,
    remembers: bool = False,
    project: Path | None = None,
) -> LoadedSettings:
    """The settings for a project; None: for the working directory. Raises ConfigError.

    A flag that is None was not given. Project settings that need trust count if `trust` is set or the person trusted
    them before. With `asks`, nca asks once on a terminal. With `remembers`, the model that was chosen in an earlier
    chat in the project counts: a chat continues with it, while `nca run` does what the settings say.
    """
    from nca.cli.early_questions import trusts
    from nca.config.layers import load
    from nca.config.projects import ChosenModels

    project = project or Path.cwd()
    chosen = ChosenModels(os.environ).of(project) if remembers else None
    decide = trusts(by_flag=trust, asks=asks)
    return load(project=project, env=os.environ, flags=flags, config_file=config_file, trusts=decide, chosen=chosen)


def latest_here(store: Store, tell: Callable[[str], None], *, kind: Kind = "chat") -> SessionInfo | None:
    """The last session of this directory, of this kind if there is one; None: a line to `tell` says so.

    Raises SessionNotFound for a run whose store was damaged: an answer without the session would look like one with it.
    """
    from nca.terminal.render.sessions import short_id, title

    found = store.latest(str(Path.cwd()), kind=kind)
    if found is None and store.notes and kind == "run":
        # It was set aside just now. A chat's person sees that, and decides.
        said = "No session of this directory is among what could be read of the damaged store"
        raise SessionNotFound(said, advice="Without --continue, a new session begins. Nothing was sent.")
    newest = store.latest(str(Path.cwd()), kind=None)
    if found is not None and newest is not None and kind == "run" and newest.id != found.id:
        tell(
            f"Continuing {short_id(found.id)}, the last session of nca run here. A chat was used later:"
            f" “{title(newest)}” (--session {short_id(newest.id)})."
        )
    if found is None and store.path is None:
        tell("Sessions are not kept (session.persist is off), so none is continued. Starting a new one.")
    elif found is None:
        tell("There is no earlier session in this directory. Starting a new one.")
    return found


_SWITCHES = {"disable_compaction": "off", "plain": "true"}
"""The flags without a value, and the value that each sets."""


def settings_of(**parameters: Any) -> dict[str, Any]:
    """Settings from a command's parameters, by setting name. `compact_threshold` is --compact-threshold.

    A model's name may end with how much it reasons, as in `openai/gpt-5:high`.

    None was not given. Parameters that set nothing are passed over.
    """
    from nca.config.layers import FLAGS
    from nca.models.reasoning import split_level

    given = parameters | {name: on if parameters.get(name) else None for name, on in _SWITCHES.items()}
    keys = {flag.removeprefix("--").replace("-", "_"): key for key, flag in FLAGS.items()}
    found = {keys[name]: value for name, value in given.items() if name in keys}
    if found.get("model.name"):
        found["model.name"], level = split_level(found["model.name"])
        found |= {"model.reasoning": level} if level else {}
    return found


def rules_of(lines: Sequence[str] | None, loaded: LoadedSettings) -> list[PermissionRule]:
    """The rules of --allow. They hold as if the person had answered `s` in a chat: below each that denies or asks.

    Raises UsageError, also for a tool of an MCP server that there is not.
    """
    if not lines:
        return []
    from nca.config.rule_line import rules_of_line

    names = [one.name for one in loaded.settings.mcp.servers]
    rules = [rule for line in lines for rule in rules_of_line(line, Path.cwd().resolve())]
    for tool in (rule.tool for rule in rules if rule.tool.startswith("mcp__")):
        if not f"{tool}__".startswith(tuple(f"mcp__{name}__" for name in names)):
            valid = ", ".join(names) or "none; to add one: nca mcp add NAME -- COMMAND"
            raise UsageError(f"--allow {tool}: there is no such MCP server.", advice=f"Valid: {valid}.")
    return rules


def store_place(url: str | None = None) -> StorePlace:
    """`url`: the setting `session.store`, if it is known. Raises ConfigError."""
    return place_of_store(os.environ, _store_url() if url is None else url)


def named_place(option: str, named: str) -> StorePlace:
    """The store that an option names: an address of PostgreSQL, as `session.store` takes it, or a file.

    Raises UsageError.
    """
    from nca.config.value_types import InvalidValue, postgres_url

    if not named.startswith(("postgresql:", "postgres:")):
        return StorePlace(Path(named).absolute())
    try:
        return store_place(postgres_url().read(named))
    except InvalidValue as error:
        raise UsageError(f"{option}{error}") from error


def _store_url() -> str:
    if "NCA_SESSION__STORE" not in os.environ and is_missing(user_config_file(os.environ)):
        return ""  # the usual case, for which nothing is read
    return load_settings({}, None).settings.session.store


def open_session_store(*, read_only: bool, place: StorePlace | None = None, of_team: bool = False) -> Store:
    """The store of the settings, or another. Reading a file takes no lock and creates none: a missing one is empty.

    of_team  with the whole team's sessions, for reading. Raises UsageError if the store is a file.
    Prints what opening it did, such as setting a damaged file aside.
    """
    from nca.sessions.store import Store

    path, url = place or store_place()
    if of_team and not url:
        raise UsageError(
            "--team needs a store in PostgreSQL.", advice="`nca config set --user session.store URL` sets it."
        )
    store = Store.open(path, read_only=read_only, url=url, tell=tell, of_team=of_team)
    for note in store.notes:
        tell(note)
    return store


def tell(text: str) -> None:
    """Say something beside the command's own output."""
    from nca.terminal.render.sanitize import one_line

    echo(f"nca: {one_line(text)}", err=True)


def open_store(loaded: LoadedSettings, listener: Listener, *, is_new: bool) -> Store:
    """The store for a chat or a run: on disk, or in memory if it cannot be written or the settings say so.

    A PostgreSQL that the settings name must be there, and so must a store of which a session is to be continued:
    `is_new` says that none is.

    Deletes empty sessions, and archives those beyond the limits that a person set. Notices go to `listener`. Raises
    StoreTooNew, StoreDamaged, which a person must resolve, and StoreError for a store that must be there.
    """
    from nca.events import Notice
    from nca.sessions.store import Store

    settings = loaded.settings.session
    if not settings.persist:
        return Store.open(None)
    path, url = store_place(settings.store)
    try:
        store = Store.open(path, url=url, tell=lambda text: listener(Notice(text)))
    except (StoreTooNew, StoreDamaged):
        raise
    except StoreError as error:
        if url or not is_new:
            raise
        reason = error.message[:1].upper() + error.message[1:].rstrip(".")
        listener(Notice(f"{reason}. This session is kept in memory only and will be lost when you leave."))
        return Store.open(None)
    for note in store.notes:  # at once: whatever comes next may fail
        listener(Notice(note))
    store.delete_empty()
    if settings.retention_days or settings.max_sessions:
        _archive_expired(store, settings, listener)
    return store


def _archive_expired(store: Store, settings: SessionSettings, listener: Listener) -> None:
    """Archive sessions beyond the limits, at most ARCHIVED_AT_A_START, and name them."""
    from nca.events import Notice
    from nca.humanize import counted
    from nca.terminal.render.sessions import short_id, title
    from nca.transcripts.archives import archive_expired

    moved = archive_expired(store, settings.retention_days, settings.max_sessions, most=ARCHIVED_AT_A_START)
    limits = f"session.retention_days {settings.retention_days}, max_sessions {settings.max_sessions}"
    if moved.sessions:
        named = [f"{short_id(info.id)} “{title(info, _TITLE_CHARS)}”" for info in moved.sessions[:_NAMED]]
        more = [f"{len(moved.sessions) - _NAMED} more"] if len(moved.sessions) > _NAMED else []
        later = f" {counted(moved.left, 'session')} will follow at the next starts." if moved.left else ""
        listener(
            Notice(
                f"Archived {counted(len(moved.sessions), 'old session')} ({limits}): {', '.join([*named, *more])}."
                f" `nca sessions restore ID` brings one back.{later}"
            )
        )
    if moved.problem is not None:
        listener(Notice(f"Old sessions ({limits}) could not be archived: {moved.problem}"))


def choose_model(loaded: LoadedSettings) -> Choice:
    from dataclasses import replace

    from nca.models.choose import choose

    choice = choose(loaded.settings.model, os.environ, named_by=loaded.origin("model.name"))
    return replace(choice, is_remembered=loaded.has_chosen_model)


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
    directory: Path | None = None,
) -> Conversation:
    """The conversation with the chosen model, in the working directory or another.

    Raises ModelUnavailable, SessionNotFound, SessionLocked.
    """
    from nca.agent.conversation import Conversation
    from nca.events import Notice
    from nca.models import keys
    from nca.models.choose import open_model
    from nca.terminal.render.event_lines import reserve_line

    choice = choice or choose_model(loaded)
    model = await open_model(choice, loaded, listener)
    try:
        conversation = Conversation.open(
            loaded,
            store=store,
            model=model,
            directory=directory or Path.cwd(),
            session=session,
            listener=listener,
            prepares=prepares,
            sees_all_sessions=True,
            read_only=read_only,
            kind=kind,
            person=person,
        )
    except BaseException:
        await model.close()
        raise
    if line := reserve_line(conversation):
        listener(Notice(line))
    try:
        keys.stored(os.environ)
    except ConfigError as error:  # they were not needed
        listener(Notice(str(error)))
    return conversation


async def open_chat_conversation(
    loaded: LoadedSettings,
    choice: Choice,
    store: Store,
    listener: Listener,
    earlier: SessionToOpen,
    person: Person,
    *,
    directory: Path | None = None,
) -> tuple[Conversation, Choice]:
    """The conversation, and the model that answers in it. One that is remembered but of no use now is passed over.

    choice     the model that the settings lead to
    directory  None: the working directory
    Raises ModelUnavailable, SessionNotFound, SessionLocked.
    """
    from nca.events import Notice

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
            )
        except ModelUnavailable as error:
            if not wanted.is_remembered:
                raise
            listener(Notice(f"{wanted.model} ({wanted.why}) cannot be used now: {error.message}"))
        else:
            return conversation, wanted
    raise AssertionError("the settings' own model is the last candidate")


def _candidates(loaded: LoadedSettings, choice: Choice, typed: str) -> Iterator[tuple[LoadedSettings, Choice]]:
    """The candidates: the session's model, then the project's, then the settings'."""
    from nca.models.choose import choice_of_session

    if (own := choice_of_session(typed, loaded, os.environ)) is not None:
        yield own
    yield loaded, choice
    configured = loaded.without_chosen_model()
    yield configured, choose_model(configured)
