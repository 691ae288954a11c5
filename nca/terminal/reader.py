"""The input of a chat: the base class; and line mode, which reads messages, answers and approvals as lines of text,
from a pipe or a terminal without a screen.
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import TYPE_CHECKING, Any, Protocol, TextIO, TypeVar

from nca.agent.approvals import Answer, Nobody
from nca.events import ApprovalAsked
from nca.humanize import counted
from nca.terminal.input.line_kind import InputLines, in_a_row
from nca.terminal.interrupts import Interrupts
from nca.terminal.panels.session_loader import KeyChoice, choices_line
from nca.terminal.render.calls import ALL_EDITS, ApprovalPanel, rule_of
from nca.terminal.render.output import Output
from nca.terminal.render.sanitize import one_line
from nca.terminal.signals import INTERRUPTED_EXIT_CODE
from nca.words import Words, text_of, words

if TYPE_CHECKING:
    from nca.agent.conversation import Conversation
    from nca.agent.prompt_commands import PromptCommand
    from nca.terminal.panels.list_panel import ListPanel


T = TypeVar("T")


class Chat(Protocol):
    """The chat, as a person's prompt sees it; `ChatApp` implements it.

    is_answering  the person's message is being answered
    """

    @property
    def conversation(self) -> Conversation: ...

    @property
    def is_answering(self) -> bool: ...

    @property
    def prompts(self) -> Mapping[str, PromptCommand]:
        """Skills and custom commands, by name."""

    def suggestions(self, name: str, argument: str) -> Iterable[tuple[str, str]]:
        """For the argument of the command `name`: the texts for its last word, and what each means."""

    async def show(self, line: Words, output: Output) -> None:
        """Carry out the line of a command that only shows something, on this output. It opens no list."""


class Reader(Nobody, ABC):
    """The person, at a prompt on a screen (`PromptReader`) or behind lines of text (`LineReader`).

    The defaults suit lines that nobody answers questions about.

    is_interactive  a person types; otherwise the lines come from a pipe or a file
    can_choose      `choose` and `type_answer` can ask the person
    can_walk        `walk` can show a list
    """

    is_interactive: bool
    can_choose: bool
    can_walk = False

    @abstractmethod
    async def read(self, conversation: Conversation, default: Words = ()) -> Words:
        """The line, starting from `default`. Raises EOFError at the end, Leave to leave."""

    @abstractmethod
    def interrupt(self) -> bool:
        """Handle a Ctrl-C. False: the line was sent already, so the work that it starts is to be stopped."""

    def chatting(self, chat: Chat) -> AbstractContextManager[object]:
        """Entered once, for the whole chat."""
        return nullcontext()

    async def shown(self) -> None:
        """Wait until the prompt of the next `read` is on the screen."""
        return

    def while_working(self) -> AbstractContextManager[object]:
        """While nca works, keys are kept for the next `read`."""
        return nullcontext()

    def hold_typed_lines(self) -> int:
        """Send no text that was typed ahead until Enter is pressed again. Returns how many lines wait for that."""
        return 0

    @property
    def are_drafts_taken(self) -> bool:
        """Whether the history has text since the start that a killed chat never sent."""
        return False

    def note_outcome(self, line: Words, *, was_refused: bool) -> None:
        """A command has ended. One that was refused, or could not be run, is not suggested again."""

    def keep_unsent(self) -> tuple[Sequence[str], bool]:
        """The unsent text when the person leaves, and whether the history on disk has it now."""
        return (), False

    async def choose_or_type(self, question: str, keys: Sequence[KeyChoice]) -> str:
        """As `choose`, where the person may type an answer of their own instead: "", and the next prompt has it."""
        return await self.choose(question, keys)

    @property
    def is_typing(self) -> bool:
        """Whether the next prompt starts with text typed ahead."""
        return False

    @property
    def is_line_queued(self) -> bool:
        """Whether a whole line was typed ahead. One that is still open is for the list that opens, to search it."""
        return False

    def lend_terminal(self) -> AbstractContextManager[object]:
        """While another program, such as an editor, has the terminal."""
        return nullcontext()

    async def walk(self, panel: ListPanel[Any, T]) -> T | None:
        """Show a list that the person walks with the keys. None if they leave it, or there is no screen for it."""
        return None


_ONCE = {"y": Answer("once"), "yes": Answer("once")}
_BY_RULE = {"s": Answer("session"), "session": Answer("session"), "a": Answer("always"), "always": Answer("always")}


def accepting_edits(asked: ApprovalAsked, chat: Chat | None, output: Output) -> Callable[[], None] | None:
    """What `e` does beside allowing this edit: change to the mode that allows all. None where it is no answer."""
    # What accept-edits would ask about all the same is not answered with it.
    is_plain_edit = asked.needs == "write" and bool(asked.path and asked.subject) and not asked.warning
    if chat is None or not is_plain_edit or chat.conversation.approvals.mode != "ask":
        return None
    conversation = chat.conversation

    def accept() -> None:
        conversation.set("agent.permission", "accept-edits")
        output.notice("accept-edits: nca changes files without asking. /permissions ask goes back.")

    return accept


async def approve_by_line(
    asked: ApprovalAsked, output: Output, lines: InputLines, accept_edits: Callable[[], None] | None = None
) -> Answer:
    """Ask about a call while the turn waits. The end of the input means no; what was not shown whole is asked twice.

    An empty line, and any other that is no answer, answers nothing: the valid answers are said again.
    accept_edits  see `accepting_edits`
    """
    answers = {**_ONCE, **(_BY_RULE if asked.subject else {}), **({"e": Answer("once")} if accept_edits else {})}
    panel = ApprovalPanel(asked)
    output.show(panel.first())
    rules = f" s for this session, a always here (either allows {rule_of(asked)})," if asked.subject else ""
    rules += f" e {ALL_EDITS}," if accept_edits else ""
    chosen = ""
    while True:
        left = panel.lines_left
        more = f" m shows more ({counted(left, 'line')} left)," if left else ""
        if chosen:
            output.show(f"Not all of it was shown. {chosen} again allows it anyway.")
        output.show(f"Allow it?{more} y once,{rules} n no (n REASON tells the model why). Ctrl-C stops the turn.")
        try:
            line = (await lines.answer()).strip()
        except EOFError:
            return Answer("deny")
        word, _, reason = line.partition(" ")
        before, chosen = chosen, ""
        if line.lower() in answers:
            if not left or line == before:
                if line.lower() == "e" and accept_edits:
                    accept_edits()
                return answers[line.lower()]
            chosen = line
        if left and line.lower() in ("m", "more"):
            output.show(panel.more())
        if word.lower() in ("n", "no"):
            return Answer("deny", one_line(reason, 400))


class LineReader(Reader):
    """If both ends are a terminal, it shows a prompt and can ask."""

    def __init__(self, lines: TextIO, output: Output, interrupts: Interrupts) -> None:
        self.is_interactive = lines.isatty()
        self.can_choose = self.is_interactive and sys.stdout.isatty()
        self._output = output
        self._interrupts = interrupts
        self._lines = InputLines(lines, prompt=sys.stdout if self.can_choose else None)
        self._chat: Chat | None = None

    def chatting(self, chat: Chat) -> AbstractContextManager[object]:
        self._chat = chat
        return nullcontext()

    async def ask(self, asked: ApprovalAsked) -> Answer:
        if not self.can_choose:
            return await super().ask(asked)
        accept = accepting_edits(asked, self._chat, self._output)
        await self._keep_typed()
        return await approve_by_line(asked, self._output, self._lines, accept)

    async def choose(self, question: str, keys: Sequence[KeyChoice]) -> str:
        """The chosen key; "" for q and the end of the input. Any other line, such as an empty one, is asked again."""
        await self._put(question)
        while True:
            self._output.notice(f"{choices_line(keys)}, q to cancel:")
            try:
                word = (await self._lines.answer()).strip().lower()
            except EOFError:
                return ""
            if word in ("q", *(key for key, _ in keys)):
                return "" if word == "q" else word

    async def type_answer(self, question: str) -> str | None:
        await self._put(question)
        with suppress(EOFError):
            return await self._lines.answer()
        return None

    async def _put(self, question: str) -> None:
        await self._keep_typed()
        for line in question.splitlines():
            self._output.warn(line)

    async def _keep_typed(self) -> None:
        if (typed := await self._lines.keep_typed()).strip():
            self._output.notice(f"Kept for the next prompt: {one_line(typed, 200)}")

    def hold_typed_lines(self) -> int:
        return self._lines.hold()

    async def read(self, conversation: Conversation, default: Words = ()) -> Words:
        line = await self._lines.next(text_of(default))
        is_default = bool(default) and line == text_of(default)
        return default if is_default else words(line, "typed" if self.is_interactive else "piped")

    def interrupt(self) -> bool:
        self._lines.end_line()
        if not self.is_interactive or self._interrupts.is_second():
            self._interrupts.end(INTERRUPTED_EXIT_CODE)
        else:
            dropped = in_a_row(self._lines.drop_held())
            self._output.notice(f"Dropped: {dropped}. Ctrl-C again leaves." if dropped else "Ctrl-C again leaves.")
            self._lines.begin_line()
        return True
