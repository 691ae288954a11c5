"""The base class of what a chat reads from: the prompt or plain lines."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Protocol

from nca.agent.approvals import Nobody

if TYPE_CHECKING:
    from nca.agent.conversation import Conversation
    from nca.sessions.session import SessionInfo
    from nca.terminal.panels.locked_session import KeyChoice


class Completions(Protocol):
    """What a prompt suggests while a person types; `ChatApp` is one."""

    @property
    def conversation(self) -> Conversation: ...

    def suggestions(self, name: str, argument: str) -> Iterable[tuple[str, str]]:
        """For the argument of the command `name`: the texts for its last word, and what each means."""


class Reader(Nobody, ABC):
    """The person, at a prompt on a screen (`PromptReader`) or behind lines of text (`LineReader`).

    The defaults suit lines that nobody answers questions about.

    is_interactive  a person types; otherwise the lines come from a pipe or a file
    can_choose      `choose` can ask the person
    can_pick        `pick` can show a list
    """

    is_interactive: bool
    can_choose: bool
    can_pick = False

    @abstractmethod
    async def read(self, conversation: Conversation, default: str = "") -> str:
        """The text that was typed, starting from `default`. Raises EOFError at the end, Leave to leave."""

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

    def hold_typed_lines(self) -> None:
        """Keep what was typed ahead in the prompt, and send none of it until Enter is pressed again."""
        return

    def lend_terminal(self) -> AbstractContextManager[object]:
        """While another program, such as an editor, has the terminal."""
        return nullcontext()

    async def choose(self, question: str, keys: Sequence[KeyChoice]) -> str:
        """Ask a question that one key answers. "" where the person gives no answer."""
        return ""

    async def pick(self, conversation: Conversation) -> SessionInfo | None:
        """Have the person choose a stored session. None where they choose none."""
        return None
