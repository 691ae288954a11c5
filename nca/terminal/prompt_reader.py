"""Read from the prompt; output meanwhile appears above it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from math import ceil
from typing import TYPE_CHECKING, Any, TypeVar

from nca import vocabulary
from nca.events import MessageTaken
from nca.terminal.completion import PromptCompleter
from nca.terminal.input.file_finder import FileFinder
from nca.terminal.input.first_prompt import FirstPrompt
from nca.terminal.input.keyboard import KeyQuestion
from nca.terminal.input.toolbar import ToolbarStatus, activity_of
from nca.terminal.interrupts import Interrupts
from nca.terminal.meanwhile import Meanwhile
from nca.terminal.panels.key_question import (
    MOST_TYPED_CHARS,
    ApprovalKeys,
    LetterQuestion,
    TypedQuestion,
    ask_by_key,
)
from nca.terminal.reader import Chat, Reader, accepting_edits
from nca.terminal.render.calls import ApprovalPanel, rule_of
from nca.terminal.render.draw import Draw
from nca.terminal.render.sanitize import one_line
from nca.words import Words, text_of

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from nca.agent.approvals import Answer
    from nca.agent.conversation import Conversation
    from nca.agent.status_command import StatusCommand
    from nca.events import ApprovalAsked
    from nca.terminal.panels.list_panel import ListPanel
    from nca.terminal.panels.session_loader import KeyChoice

T = TypeVar("T")

WATCH_SECONDS = 0.3
_PROBLEM_CHARS = 300


class PromptReader(Reader):
    """Reads from the prompt that is already shown, and from new ones after it."""

    is_interactive = True
    can_choose = True
    can_walk = True

    def __init__(self, first: FirstPrompt, draw: Draw, interrupts: Interrupts) -> None:
        self._first = first
        self._prompt = first.prompt
        self._draw = draw
        self._interrupts = interrupts
        self._chat: Chat | None = None
        self._command: StatusCommand | None = None
        self._shown: ToolbarStatus | None = None
        if first.has_begun:
            draw.begin_prompt(first.above)

    @contextmanager
    def chatting(self, chat: Chat) -> Iterator[None]:
        self._chat = chat
        files = FileFinder(chat.conversation.directory)
        completer = partial(PromptCompleter, chat, files)
        self._prompt.serve(completer, lambda: self._next_mode(chat.conversation))
        self._prompt.type_ahead.take_meanwhile = Meanwhile(
            chat, self._draw, self._first.remember, self._prompt.hint
        ).take
        self._prompt.type_ahead.own = lambda: chat.prompts
        try:
            with self._first.quiet_terminal():
                yield
        finally:
            self._prompt.close()
            if self._command is not None:
                self._command.close()

    async def read(self, conversation: Conversation, default: Words = ()) -> Words:
        self._prompt.apply(conversation.loaded.settings.terminal)
        if (line := self._first.take_line()) is not None:
            self._draw.on_event(MessageTaken(text_of(line)))
            return line
        status = self._show_status(conversation)
        self._draw.begin_prompt(self._prompt.above)
        watch = asyncio.create_task(self._watch(conversation, status))
        try:
            return await self._first.read(default, echo=lambda text: self._draw.on_event(MessageTaken(text)))
        finally:
            self._draw.end_prompt()
            watch.cancel()

    async def _watch(self, conversation: Conversation, shown: ToolbarStatus) -> None:
        """The toolbar shows background work until it is over; no event reports its end."""
        if not shown.is_counted:
            vocabulary.load_behind()
        # The first look comes after the first drawing, which may have started servers.
        await asyncio.sleep(WATCH_SECONDS)
        while (now := activity_of(conversation)) or now != shown.activity or not shown.is_counted or shown.cache:
            is_other = now != shown.activity or vocabulary.is_loaded() != shown.is_counted
            if is_other or (shown.cache and cache_left(conversation) != shown.cache):
                shown = self._show_status(conversation)
            await asyncio.sleep(WATCH_SECONDS)

    def _show_status(self, conversation: Conversation) -> ToolbarStatus:
        """Show the current state; the person's command adds its line when it has one."""
        self._shown = status_of(conversation)
        if self._shown.is_counted and (self._command or conversation.loaded.settings.terminal.status_command):
            self._run_command(conversation)
        self._show_command()
        return self._shown

    def _next_mode(self, conversation: Conversation) -> None:
        """Shift-Tab. While nca works the next call is decided by the new mode."""
        from nca.terminal.commands.permissions import set_next_mode

        self._prompt.hint(set_next_mode(conversation))
        self._show_status(conversation)

    def _run_command(self, conversation: Conversation) -> None:
        if self._command is None:
            from nca import __version__
            from nca.agent.status_command import StatusCommand

            self._command = StatusCommand(__version__, self._show_command, self._say_problem)
        self._command.run(conversation)

    def _say_problem(self, text: str) -> None:
        self._draw.warn(one_line(text, _PROBLEM_CHARS))

    def _show_command(self) -> None:
        if self._shown is not None:
            self._prompt.show_status(self._shown._replace(command=self._command.line if self._command else ""))

    async def shown(self) -> None:
        if not self._first.has_begun:
            await self._prompt.drawn()

    def interrupt(self) -> bool:
        return self._prompt.interrupt()

    def while_working(self) -> AbstractContextManager[object]:
        return self._prompt.typing_ahead(self._draw.screen)

    async def ask(self, asked: ApprovalAsked) -> Answer:
        panel = ApprovalPanel(asked)
        question = ApprovalKeys(
            rule=rule_of(asked) if asked.subject else "",
            show_more=lambda: self._draw.show(panel.more()),
            lines_left=lambda: panel.lines_left,
            stop=self._interrupts.stop_work,
            accept_edits=accepting_edits(asked, self._chat, self._draw),
        )
        return await ask_by_key(question, self._draw, self._prompt, show=lambda: self._draw.show(panel.first()))

    async def choose(self, question: str, keys: Sequence[KeyChoice]) -> str:
        return await self._asked(LetterQuestion(keys), question)

    async def choose_or_type(self, question: str, keys: Sequence[KeyChoice]) -> str:
        return await self._asked(LetterQuestion(keys, gives_way=True), question)

    async def type_answer(self, question: str) -> str | None:
        """The typed line, which stays on the screen."""
        typed = (await self._asked(TypedQuestion(), question)).text
        if typed:
            self._draw.notice(f"› {one_line(typed, MOST_TYPED_CHARS)}")
        return typed

    async def _asked(self, keys: KeyQuestion[T], question: str) -> T:
        def show() -> None:
            for line in question.splitlines():
                self._draw.warn(line)

        return await ask_by_key(keys, self._draw, self._prompt, show=show)

    def typed_ahead(self) -> Sequence[Words]:
        return self._first.take_messages()

    def hold_typed_lines(self) -> int:
        return self._prompt.type_ahead.hold()

    def note_outcome(self, line: Words, *, was_refused: bool) -> None:
        self._first.note_outcome(line, was_refused=was_refused)

    def keep_unsent(self) -> tuple[Sequence[str], bool]:
        return self._prompt.keep_unsent()

    @property
    def are_drafts_taken(self) -> bool:
        return self._first.are_drafts_taken

    @property
    def is_typing(self) -> bool:
        return self._prompt.type_ahead.is_waiting

    @property
    def is_line_queued(self) -> bool:
        return self._prompt.type_ahead.is_line_queued

    def lend_terminal(self) -> AbstractContextManager[object]:
        return self._prompt.lent_terminal()

    async def walk(self, panel: ListPanel[Any, T]) -> T | None:
        with self._prompt.lent_terminal(is_quiet=True):
            if panel.is_typed:
                panel.buffer.insert_text(self._prompt.type_ahead.take_searched())
            self._draw.begin_prompt(panel.above)
            try:
                return await panel.run()
            finally:
                self._draw.end_prompt()


def status_of(conversation: Conversation) -> ToolbarStatus:
    """The toolbar's values for a conversation. It counts nothing while that would delay the prompt."""
    stats = conversation.context.stats(with_details=False) if vocabulary.is_loaded() else None
    written = conversation.loaded.settings.terminal.status
    return ToolbarStatus(
        model=conversation.model.facts.name,
        usage_ratio=stats.usage_ratio if stats else 0.0,
        used_tokens=stats.used_tokens if stats else 0,
        budget_tokens=stats.budget_tokens if stats else 0,
        session=conversation.session.info.name or conversation.session.info.id[:8],
        cost=conversation.session.usage.totals().cost,
        permission="read-only" if conversation.session.is_read_only else conversation.approvals.mode,
        auto=conversation.loaded.settings.context.auto,
        activity=activity_of(conversation),
        is_high=stats is not None and stats.is_high,
        is_counted=stats is not None,
        written=written,
        **(_only_in_a_format(conversation, written) if written else {}),
    )


def _only_in_a_format(conversation: Conversation, written: str) -> dict[str, str]:
    """The values of names that nca's own toolbar lacks, if the person's format has them."""
    # Imported here because most people have no format, and the prompt is to come soon.
    from nca.agent.instruction_files import branch_of
    from nca.models.model import ReportsLimits
    from nca.terminal.render.sessions import place

    model = conversation.model
    ways: dict[str, Callable[[], str]] = {
        "directory": lambda: place(str(conversation.directory)),
        "branch": lambda: branch_of(conversation.directory),
        "cache": lambda: cache_left(conversation),
        "limits": lambda: model.limits if isinstance(model, ReportsLimits) else "",
    }
    return {name: value() for name, value in ways.items() if f"{{{name}}}" in written}


def cache_left(conversation: Conversation) -> str:
    """How long the provider keeps the last request in its cache, in whole minutes; "" if that is not known."""
    from nca.models.claude import cache_seconds

    reports = conversation.session.usage.reports(1)
    if not reports:
        return ""
    facts, newest = conversation.model.facts, reports[0]
    seconds = cache_seconds(facts.provider, facts.name, newest.usage, time.time() - newest.at)
    return f"cache {ceil(seconds / 60)} min" if seconds else ""
