"""The base class of what a chat reads from: the prompt or plain lines."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Protocol, TypeVar

from nca.agent.approvals import Nobody
from nca.words import Words

if TYPE_CHECKING:
    from nca.agent.conversation import Conversation
    from nca.agent.prompt_commands import PromptCommand
    from nca.terminal.panels.list_panel import ListPanel


T = TypeVar("T")


class Completions(Protocol):
    """What a prompt suggests while a person types; `ChatApp` is one."""

    @property
    def conversation(self) -> Conversation: ...

    @property
    def prompts(self) -> Mapping[str, PromptCommand]:
        """Skills and custom commands, by name."""

    def suggestions(self, name: str, argument: str) -> Iterable[tuple[str, str]]:
        """For the argument of the command `name`: the texts for its last word, and what each means."""


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

    def chatting(self, completions: Completions) -> AbstractContextManager[object]:
        """Entered once, for the whole chat."""
        return nullcontext()

    async def shown(self) -> None:
        """Wait until the prompt of the next `read` is on the screen."""
        return

    def while_working(self) -> AbstractContextManager[object]:
        """While nca works, keys are kept for the next `read`."""
        return nullcontext()

    def hold_typed_lines(self) -> int:
        """Send none of what was typed ahead until Enter is pressed again. Returns how many prompts it will fill."""
        return 0

    def keep_unsent(self) -> tuple[Sequence[str], bool]:
        """What was typed and never sent, when the person leaves; and whether the history on disk has it now."""
        return (), False

    @property
    def is_typing(self) -> bool:
        """Whether the next prompt starts with what was typed ahead."""
        return False

    def lend_terminal(self) -> AbstractContextManager[object]:
        """While another program, such as an editor, has the terminal."""
        return nullcontext()

    async def walk(self, panel: ListPanel[T]) -> T | None:
        """Show a list that the person walks with the keys. None where they leave it, or there is no screen for it."""
        return None
