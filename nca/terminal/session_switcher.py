"""Switch the chat to another session, and remember the model that was chosen in a project.

Every part that needs the conversation asks for it each time. The model and the settings stay the same in the next
session, unless another model was chosen in it. The MCP servers and the rules "for this session" end with the old one;
those of the command line stay.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from nca.agent.conversation import Conversation
from nca.config.overrides import Layer
from nca.config.projects import ChosenModel, ChosenModels
from nca.errors import ModelUnavailable, SessionNotFound, system_reason
from nca.models.choose import Choice, choice_of_session, choose, open_model
from nca.models.reasoning import split_level
from nca.terminal.input.line_kind import line_of
from nca.terminal.panels.session_loader import SessionToOpen, find_titled, resolve_lock
from nca.terminal.render.sanitize import one_line
from nca.terminal.render.sessions import namesakes_line, short_id, show_resumed
from nca.words import Words

if TYPE_CHECKING:
    from nca.sessions import Store
    from nca.sessions.session import SessionInfo
    from nca.terminal.reader import Reader
    from nca.terminal.render.output import Output
    from nca.tools.shell.jobs import Job

_NAME_CHARS = 80


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
        return f"Only this session remembers it: {system_reason(error)}."
    configured = conversation.loaded.base["model.name"]
    if configured.layer == Layer.FLAG:
        return (
            "Later chats here begin with it, unless a flag or a settings file names a model; /model default goes back."
        )
    if configured.layer > Layer.CHOSEN:
        ones = (
            "Other chats and this session, once resumed," if configured.layer >= Layer.ENVIRONMENT else "New sessions"
        )
        return f"This chat goes on with it. {ones} begin with {configured.value} ({configured.origin})."
    return "Later chats in this directory begin with it; /model default goes back."


async def go_back(conversation: Conversation, output: Output) -> Choice:
    """Forget the choice in this session and this directory, and switch to the model that the settings lead to.

    Raises ModelUnavailable if that model cannot be used; the choice is forgotten anyway.
    """
    conversation.choose_level(None)
    if conversation.store.path is not None:
        try:
            ChosenModels(os.environ).forget(conversation.directory)
        except OSError as error:
            output.warn(f"The choice for this directory could not be forgotten: {system_reason(error)}.")
    loaded = conversation.loaded.for_model("")
    # Asks local servers if nothing is configured.
    choice = await asyncio.to_thread(
        choose, loaded.settings.model, os.environ, named_by=loaded.base["model.name"].origin
    )
    if choice.model != conversation.model.facts.name:
        await conversation.use_model(await open_model(choice, loaded, output.on_event))
    return choice


async def go_on(conversation: Conversation, output: Output) -> None:
    """In a session that was resumed in a chat: continue with the model that was chosen in it."""
    found = choice_of_session(conversation.session.info.chosen_model, conversation.loaded, os.environ)
    if found is None:
        return
    loaded, choice = found
    conversation.choose_level(split_level(conversation.session.info.chosen_model)[1])
    if choice.model == conversation.model.facts.name:
        return
    try:
        model = await open_model(choice, loaded, output.on_event)
    except ModelUnavailable as error:
        output.notice(f"{choice.model} ({choice.why}) cannot be used now: {error.message}")
        return
    await conversation.use_model(model)
    output.notice(f"{choice.model} answers: {choice.why}; /model default goes back to the configured one.")


def _called(info: SessionInfo, store: Store) -> str:
    """The argument of /resume for this session: its name if that leads to it, else its id."""
    with contextlib.suppress(SessionNotFound):
        if info.name and one_line(info.name) == info.name and store.find(info.name).id == info.id:
            return info.name
    return short_id(info.id)


class SessionSwitcher:
    """`conversation` is the one that the chat has now. `put_in_prompt`: the next prompt starts with this."""

    def __init__(
        self, conversation: Conversation, output: Output, reader: Reader, put_in_prompt: Callable[[Words], None]
    ) -> None:
        self._output = output
        self._reader = reader
        self._put_in_prompt = put_in_prompt
        self._waits: Conversation | None = None
        """Its last message had no answer when it was opened, and nothing was sent since."""
        self._closing: set[asyncio.Task[None]] = set()
        self.told_jobs: list[Job] = []
        """The person was told just now that these would end."""
        self.conversation = conversation
        self._given_rules = [*conversation.approvals.session_rules]
        """From the command line: they hold in each session of the chat."""

    async def close(self) -> None:
        """Close the conversation that the chat ends with, after those that are still being closed."""
        await asyncio.gather(*self._closing, return_exceptions=True)
        await self.conversation.close()

    def holds_back(self, again: str) -> bool:
        """Whether to go on here, because commands run that would end. The person is told, unless they were just now.

        again  what ends them
        """
        running = [job for job in self.conversation.jobs.all if job.is_running]
        if all(job in self.told_jobs for job in running) or not self._reader.is_interactive:
            return False
        self.told_jobs = running
        names = "; ".join(f"job {job.number}, {one_line(job.name, _NAME_CHARS)}" for job in running)
        what = "It ends with this session" if len(running) == 1 else "They end with this session"
        self._output.warn(f"Still running in the background: {names}. {what}: {again} leaves. /jobs shows more.")
        return True

    async def start(self, name: str) -> None:
        """Begin a new session. Raises NcaError, and nothing has changed."""
        before = self.conversation
        if not before.context.entries and not before.session.is_read_only:
            # It is already new, and nothing of it would stay, such as its name.
            before.session.rename(name)
            self._output.notice("This session is new: it has no messages yet.")
            self._say_namesakes()
            return
        before_name = _called(before.session.info, before.store)
        await self._switch(None, name=name)
        self._output.notice(f"New session. The previous one is kept: /resume {before_name}")
        self._say_namesakes()

    def _say_namesakes(self) -> None:
        session = self.conversation.session
        if said := namesakes_line(session.info, session.namesakes):
            self._output.notice(said)

    async def resume(self, wanted: str) -> None:
        """Continue a session, by id, name or title, unless commands run that would end. A reader's is opened again.

        Raises SessionNotFound, SessionLocked; then nothing has changed.
        """
        store, reader = self.conversation.store, self._reader
        info = find_titled(store, wanted)
        current = self.conversation.session
        if info.id == current.info.id and not current.is_read_only:
            self._output.notice("You are in that session already.")
            return
        if self.holds_back(f"/resume {_called(info, store)}"):
            return
        found = await resolve_lock(store, info, reader.choose if reader.can_choose else None)
        if found is None or found.session is None:
            return
        await self._switch(found.session.id, read_only=found.read_only)
        await go_on(self.conversation, self._output)
        self.show(found)

    def show(self, found: SessionToOpen, *, is_prompt_next: bool = True) -> None:
        """Show the session that was opened. Its last message is in the prompt if it has no answer.

        is_prompt_next  the next line is read there, and not given already
        """
        conversation, reader = self.conversation, self._reader
        said = () if conversation.session.is_read_only else conversation.context.unanswered()
        self._waits = conversation if said else None
        is_given = bool(said) and is_prompt_next and reader.can_choose and not reader.is_typing
        if is_given:
            self._put_in_prompt(line_of(said))
        show_resumed(
            conversation,
            self._output,
            forked_from=found.forked_from,
            is_freed=found.is_freed,
            is_in_prompt=is_given,
        )

    def send_again(self, said: Words) -> None:
        """A message is about to be sent. If it is the one that waited when its session was opened, it is that one."""
        waits, self._waits = self._waits, None
        conversation = self.conversation
        if waits is not conversation:
            return
        # The newest one in the log, with nothing that goes with it now, is not sent a second time anyway.
        is_newest = conversation.context.entries[-1].message.role == "user"
        if not is_newest or not conversation.user_input.is_alone:
            conversation.take_back(said)

    async def _switch(self, session: str | None, *, read_only: bool = False, name: str = "") -> None:
        before = self.conversation
        conversation = Conversation.open(
            before.loaded,
            store=before.store,
            model=before.model,
            directory=before.directory,
            session=session,
            listener=self._output.on_event,
            prepares=True,
            sees_all_sessions=True,
            read_only=read_only,
            notified=before.notified,
            person=self._reader,
        )
        conversation.approvals.session_rules += self._given_rules
        if name:
            conversation.session.rename(name)
        self.conversation = conversation
        # Ctrl-C stops the waiting and not the closing: a lock or a server that stays would be in nobody's hands.
        closing = asyncio.create_task(before.close(keeps_model=True))
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)
        await asyncio.shield(closing)
