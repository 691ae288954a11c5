"""The protocol of a tool (name, schema, permission, run), the base class of nca's own, and what an editor offers tools.

nca.tools.toolbox offers the tools to the model. nca's own are a TypedTool: the signature of their method `call` is the
schema. A tool from elsewhere, such as an MCP server's, implements the protocol itself.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

from nca.context.admission import LeftOut
from nca.humanize import kind_name, unambiguous
from nca.messages import MediaPart
from nca.tools.schema import Signature

Permission = Literal["read", "write", "execute"]
"""read: read files of the project; write: change them; execute: run programs or use the network."""


@dataclass(frozen=True, slots=True)
class ToolOutcome:
    """The result of a call: `text` for the model, `summary` in a few words for a person ("212 lines").

    diff   the change, as a unified diff for a person, or ""
    media  images for the model: MediaPart("image", {"type": "image_url", "image_url": {"url": …}}), https or data
    left_out  the lines that `text` misses in its middle, if recall can show them; None if it is whole
    printed  what a command printed, for a person, or ""
    printed_lines  how many lines it printed, if `printed` lacks some of them; else 0
    typed    what the person typed about the call, for the model, or ""
    asks_to_read  the call failed because the model has not read the file as it is now; afterwards it may work
    """

    text: str
    is_error: bool = False
    summary: str = ""
    diff: str = ""
    media: tuple[MediaPart, ...] = ()
    left_out: LeftOut | None = None
    printed: str = ""
    printed_lines: int = 0
    typed: str = ""
    asks_to_read: bool = False


progress_listener: ContextVar[Callable[[str], None]] = ContextVar("progress_listener", default=lambda _: None)
"""Called by a running tool with one line about its progress; set for each call by its caller."""

output_listener: ContextVar[Callable[[str], None]] = ContextVar("output_listener", default=lambda _: None)
"""Called by a running tool with each piece that it prints, as it comes; set like `progress_listener`."""

current_call: ContextVar[str] = ContextVar("current_call", default="")
"""The id of the running call in events; set like `progress_listener`."""

interrupt_listener: ContextVar[Callable[[ToolOutcome], None]] = ContextVar("interrupt_listener", default=lambda _: None)
"""Called by a cancelled tool with its outcome so far, before the cancellation continues; set like the others."""


@dataclass(frozen=True, slots=True)
class Approval:
    """The preview of a call that needs approval: exactly what will happen.

    path       the resolved path that is written, or ""
    command    the command line that is run, or the address that is fetched, or ""
    diff       the change as a unified diff, or ""
    warning    an unusual detail, such as a path behind a link, or ""
    subject    what a rule for the next time would match: the path, the command, the host
    directory  where the command is run, or ""
    names      what else an allow rule may match (nca.tools.shell.command_rules)
    steps      the same of each command in a list, with the subject of its own rule first; each needs a rule, or has
               the name "" too
    parts      what else a deny rule may match: all programs and paths in a command
    is_masked  it adds characters that cannot be seen or look like others: no rule allows it, a person looks at it
    commands   the simple commands in a command, for the patterns of rules that deny or ask
    searched   folders in which a command that only reads shows lines of files that it does not name
    shown_by_git  folders of whose files it has git show lines, as they are or as they were
    computed   programs of the command whose arguments a shell computes, `>` for a file that output goes to; None if it
               may compute any word, or nobody knows: what a rule denies by name may hide there
    """

    path: str = ""
    command: str = ""
    diff: str = ""
    warning: str = ""
    subject: str = ""
    directory: str = ""
    names: tuple[str, ...] = ()
    steps: tuple[tuple[str, ...], ...] = ()
    parts: tuple[str, ...] = ()
    is_masked: bool = False
    commands: tuple[str, ...] = ()
    searched: tuple[str, ...] = ()
    shown_by_git: tuple[str, ...] = ()
    computed: frozenset[str] | None = None


class ToolError(ValueError):
    """The call failed. The message is one line for the model; `excerpt` holds lines of a file that go below it.

    asks_to_read  as in ToolOutcome
    """

    def __init__(self, message: str, excerpt: str = "", *, asks_to_read: bool = False) -> None:
        super().__init__(message)
        self.excerpt = excerpt
        self.asks_to_read = asks_to_read

    def for_model(self) -> str:
        return f"Error: {self}" + (f"\n{self.excerpt}" if self.excerpt else "")


def reason_of(error: BaseException) -> str:
    """The error, in the system's words if it is the system's."""
    if isinstance(error, OSError) and error.strerror:
        where = f": {error.filename}" if error.filename else ""
        return f"{error.strerror}{where}"
    return str(error) or type(error).__name__


def outcome_of(name: str, returned: Any) -> ToolOutcome:
    """What a tool returned; text is an outcome's. Raises ToolError for anything else, which would end the turn."""
    outcome = ToolOutcome(returned) if isinstance(returned, str) else returned
    if not isinstance(outcome, ToolOutcome) or not isinstance(outcome.text, str):
        found = kind_name(outcome.text) if isinstance(outcome, ToolOutcome) else kind_name(outcome)
        raise ToolError(f"{name} returned {found}; a tool returns text or a ToolOutcome with text")
    if not isinstance(outcome.media, tuple) or not all(map(_is_image, outcome.media)):
        raise ToolError(
            f"{name} returned media that no model can see; valid: a tuple of"
            ' MediaPart("image", {"type": "image_url", "image_url": {"url": "https://… or data:image/…"}})'
        )
    return outcome


def _is_image(part: Any) -> bool:
    match part:
        case MediaPart("image", {"type": "image_url", "image_url": {"url": str(url)}}):
            return url.startswith(("data:image/", "https://", "http://"))
    return False


@runtime_checkable
class Tool(Protocol):
    """A tool that the model can call. `parameters` is a JSON schema of type object."""

    @property
    def name(self) -> str: ...

    @property
    def description(self) -> str: ...

    @property
    def parameters(self) -> dict[str, Any]: ...

    @property
    def permission(self) -> Permission: ...

    async def run(self, arguments: dict[str, Any]) -> ToolOutcome | str:
        """Run with the arguments from the model. An exception becomes an error of one line for the model, and text is
        the outcome's."""
        ...

    def summarize(self, arguments: dict[str, Any]) -> str:
        """One line for a person that says what the call does, with its main argument."""
        ...

    def needs(self, arguments: dict[str, Any]) -> Permission:
        """The permission that this call needs. It may be less than the tool's, as for a command that only reads."""
        ...

    def approval(self, arguments: dict[str, Any]) -> Approval:
        """The preview for a person who decides about this call. Raises ToolError if the call would fail anyway."""
        ...


class TypedTool:
    """A tool with the signature of its `call` as schema, and that method's docstring as description."""

    name: ClassVar[str]
    permission: ClassVar[Permission]
    call: Callable[..., Awaitable[ToolOutcome | str]]

    @cached_property
    def _signature(self) -> Signature:
        return Signature.of(self.call)

    @property
    def description(self) -> str:
        return inspect.cleandoc(self.call.__doc__ or "")

    @property
    def parameters(self) -> dict[str, Any]:
        return self._signature.schema()

    @property
    def simple(self) -> dict[str, Any]:
        """The definition for a small model: the description's first sentence, and only texts and numbers."""
        parameters = self.parameters
        kept = {name: one for name, one in parameters["properties"].items() if one.get("type") in ("string", "integer")}
        about = self.description.partition(". ")[0].rstrip(".") + "."
        return {"name": self.name, "description": about, "parameters": {**parameters, "properties": kept}}

    async def run(self, arguments: dict[str, Any]) -> ToolOutcome:
        return outcome_of(self.name, await self.call(**self.read(arguments)))

    def read(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """The arguments for `call`. Raises ValueError; its text tells the model what is valid."""
        return self._signature.read(arguments)

    def summarize(self, arguments: dict[str, Any]) -> str:
        first = next(iter(arguments.values()), "")
        return f"{self.name} {first}".strip()

    def needs(self, arguments: dict[str, Any]) -> Permission:
        return self.permission

    def approval(self, arguments: dict[str, Any]) -> Approval:
        asked = unambiguous(f"{self.name} {json.dumps(arguments, ensure_ascii=False)}")
        return Approval(command=asked, subject=asked)


class EditorFiles(Protocol):
    """Files as the editor has them, saved or not. Both methods block, so they are called in a thread."""

    def read(self, *paths: Path) -> Mapping[Path, str]:
        """The texts of those files about which the editor has something to say."""
        ...

    def write(self, path: Path, text: str) -> bool:
        """Replace the text and save it. False if the editor takes no texts. Raises ToolError if it refuses."""
        ...


@dataclass(frozen=True, slots=True)
class TerminalRun:
    """How a program in the editor's terminal ended.

    exit_code   negative: the signal that ended it
    output      all that is kept of its output
    is_cut      the beginning of the output was not kept
    is_timeout  it ran out of time and was stopped
    """

    exit_code: int
    output: str
    is_cut: bool
    is_timeout: bool


class EditorTerminal(Protocol):
    """A terminal in which the person sees what a command prints while it runs."""

    async def run(self, argv: Sequence[str], directory: Path, *, seconds: float, most_bytes: int) -> TerminalRun:
        """Run a program to its end, at most so many seconds. If cancelled, stops it. Raises ToolError."""
        ...


@dataclass(frozen=True, slots=True)
class Editor:
    """None: the editor does not offer it."""

    files: EditorFiles | None = None
    terminal: EditorTerminal | None = None
