"""What a tool is: a name, a schema for the model, a permission, and a way to run.

Tools are given to the model by nca.tools.toolbox. Most are TypedTool: they write one typed method, `call`, and its
signature is the schema. A tool from elsewhere (an MCP server's) implements the protocol itself.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal, Protocol

from nca.messages import MediaPart
from nca.tools.schema import Signature

Permission = Literal["read", "write", "execute"]
"""read: looks at files of the project; write: changes them; execute: runs programs or reaches out."""


@dataclass(frozen=True, slots=True)
class ToolOutcome:
    """What came out: `text` for the model, `summary` in a few words for a person ("212 lines").

    diff   what was changed, as a unified diff for a person, or ""
    media  images for the model, beside the text
    """

    text: str
    is_error: bool = False
    summary: str = ""
    diff: str = ""
    media: tuple[MediaPart, ...] = ()


@dataclass(frozen=True, slots=True)
class Approval:
    """What a person sees before a call that needs their word: all of it as it will really happen.

    path      the resolved path that is written to, or ""
    command   the command line that is run, or the address that is fetched, or ""
    diff      the change as a unified diff, or ""
    warning   what is unusual about it (a path behind a link, a file outside of the project), or ""
    subject   what a rule for next time would speak of: the path, the program's name, the host
    directory where a command is run, or ""
    names     what else a rule that allows may call the same thing: a command's first words, exactly
    parts     what else a rule that denies may name: all programs and paths that stand in a command
    """

    path: str = ""
    command: str = ""
    diff: str = ""
    warning: str = ""
    subject: str = ""
    directory: str = ""
    names: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()


class ToolError(ValueError):
    """The tool cannot do what was asked; the message is one line for the model."""


class Tool(Protocol):
    """Something that the model can do. `parameters` is a JSON schema of type object."""

    @property
    def name(self) -> str: ...

    @property
    def description(self) -> str: ...

    @property
    def parameters(self) -> dict[str, Any]: ...

    @property
    def permission(self) -> Permission: ...

    async def run(self, arguments: dict[str, Any]) -> ToolOutcome:
        """Run with arguments as the model gave them. What is raised becomes an error of one line for the model."""
        ...

    def summarize(self, arguments: dict[str, Any]) -> str:
        """One line for a person: what is about to happen, with the main argument."""
        ...

    def needs(self, arguments: dict[str, Any]) -> Permission:
        """The permission of this very call; a tool may need less for some (a command that only reads)."""
        ...

    def approval(self, arguments: dict[str, Any]) -> Approval:
        """What a person is asked about this call. Raises ToolError where it could not run anyway."""
        ...


class TypedTool:
    """A tool whose schema is the signature of its `call`, and whose description is that method's docstring."""

    name: ClassVar[str]
    permission: ClassVar[Permission]

    @cached_property
    def _signature(self) -> Signature:
        return Signature.of(self._method)

    @property
    def _method(self) -> Any:
        # Each tool's `call` has parameters of its own, which no common declaration could state.
        return getattr(self, "call")  # noqa: B009

    @property
    def description(self) -> str:
        return inspect.cleandoc(self._method.__doc__ or "")

    @property
    def parameters(self) -> dict[str, Any]:
        return self._signature.schema()

    async def run(self, arguments: dict[str, Any]) -> ToolOutcome:
        outcome: ToolOutcome = await self._method(**self._signature.read(arguments))
        return outcome

    def summarize(self, arguments: dict[str, Any]) -> str:
        first = next(iter(arguments.values()), "")
        return f"{self.name} {first}".strip()

    def needs(self, arguments: dict[str, Any]) -> Permission:
        return self.permission

    def approval(self, arguments: dict[str, Any]) -> Approval:
        return Approval(subject=self.summarize(arguments))
