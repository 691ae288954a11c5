"""What a slash command is, and what it may use."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from nca.terminal.render.output import Output

if TYPE_CHECKING:
    from nca.agent.conversation import Conversation
    from nca.agent.preview import Preview
    from nca.sessions.session import SessionInfo
    from nca.sessions.store import Store
    from nca.terminal.panels.locked_session import Ask
    from nca.terminal.session_switcher import Exchange


class Leave(Exception):  # not an error: the person wants to go
    """Ends the loop with an exit code."""

    def __init__(self, exit_code: int = 0) -> None:
        super().__init__(exit_code)
        self.exit_code = exit_code


class Suggestion(NamedTuple):
    """One completion of a command's argument: `text` replaces the last word."""

    text: str
    about: str = ""


@dataclass(slots=True)
class CommandContext:
    """What commands work with. The callbacks come from the program that opened the conversation.

    switch_model   opens the named model, hands it to the conversation, returns what to say; raises NcaError
    save_setting   writes a setting to the project's file and returns the file; raises NcaError
    lend_terminal  entered while another program, such as an editor, has the terminal
    put_in_prompt  what stands in the next prompt, to be changed and sent
    exchange       puts another conversation in the place of this one
    pick           has the person choose a stored session, None where they leave; None where nobody can choose
    ask            puts a question that a key answers; None where nobody can be asked
    preview        a compaction that waits for the person's word
    """

    conversation: Conversation
    output: Output
    store: Store | None = None
    switch_model: Callable[[str], Awaitable[str]] | None = None
    save_setting: Callable[[str, Any], Path] | None = None
    models: Callable[[], Sequence[str]] = field(default=tuple)
    lend_terminal: Callable[[], AbstractContextManager[None]] = nullcontext
    put_in_prompt: Callable[[str], None] = lambda text: None
    exchange: Exchange | None = None
    pick: Callable[[], Awaitable[SessionInfo | None]] | None = None
    ask: Ask | None = None
    preview: Preview | None = None


class Command(Protocol):
    """One slash command. `usage` shows how it is written, `about` is one line of help."""

    @property
    def name(self) -> str: ...

    @property
    def aliases(self) -> tuple[str, ...]: ...

    @property
    def usage(self) -> str: ...

    @property
    def about(self) -> str: ...

    async def run(self, context: CommandContext, argument: str) -> None:
        """Do it. `argument` is what stands behind the name, stripped. Raises NcaError with one clear line."""

    def complete(self, context: CommandContext, argument: str) -> Iterable[Suggestion]:
        """Completions for an argument that is being typed."""
