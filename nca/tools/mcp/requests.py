"""An MCP server's requests while one of its tools runs: the person's words, the folders of work, the model.

The SDK calls these methods. What they need of a person and of a model is a Host's, which the agent is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

from nca.messages import MediaPart, Message, TextPart, clean_text
from nca.tools.mcp.forms import Field, Value, fields_of
from nca.tools.mcp.results import line_and_image
from nca.tools.tool import ToolError

if TYPE_CHECKING:
    import mcp_types as types

T = TypeVar("T")
_REFUSED = -1
"""The protocol's code for a request that the person rejected."""


@dataclass(frozen=True, slots=True)
class Filled:
    """The person's answer to a form or a page: its values, if they accepted."""

    action: Literal["accept", "decline", "cancel"]
    values: dict[str, Value] | None = None


@dataclass(frozen=True, slots=True)
class Sampling:
    """A server's request to the model. temperature None: that of the settings."""

    system: str
    messages: tuple[Message, ...]
    max_tokens: int
    temperature: float | None


@dataclass(frozen=True, slots=True)
class Sampled:
    text: str
    model: str
    is_cut: bool


class Host(Protocol):
    """Who answers a server: the conversation that it works for."""

    @property
    def roots(self) -> Sequence[Path]:
        """The folders of work."""
        ...

    async def fill(self, server: str, message: str, fields: Sequence[Field]) -> Filled:
        """Ask the person to fill in a form."""
        ...

    async def visit(self, server: str, message: str, url: str) -> Filled:
        """Ask the person to open a page."""
        ...

    async def sample(self, server: str, asked: Sampling) -> Sampled:
        """Ask the model, if the person allows it. Raises ToolError."""
        ...


class Requests:
    """The requests of one server. They are answered while a call of it runs, and end with the last one.

    folders  where the person lets it work; none: in the folders of work
    count    those that have begun: while one waits for the person, a call's time does not run
    """

    def __init__(self, server: str, host: Host, can_see: Callable[[], bool], folders: Sequence[Path] = ()) -> None:
        self._folders = folders
        self.count = 0
        self.calls = 0
        self._server = server
        self._host = host
        self._can_see = can_see
        self._open: set[asyncio.Future[Any]] = set()

    @property
    def is_waiting(self) -> bool:
        return bool(self._open)

    @property
    def callbacks(self) -> dict[str, Any]:
        """The arguments of the SDK's client that let a server ask."""
        return {
            "elicitation_callback": self.elicit,
            "list_roots_callback": self.list_roots,
            "sampling_callback": self.sample,
        }

    def __enter__(self) -> None:
        """A call begins."""
        self.calls += 1

    def __exit__(self, *_: object) -> None:
        self.calls -= 1
        if not self.calls:
            for one in self._open:
                one.cancel()

    async def elicit(self, context: Any, asked: types.ElicitRequestParams) -> types.ElicitResult | types.ErrorData:
        from mcp_types import INVALID_PARAMS, ElicitResult, ErrorData

        if not self.calls:
            return ElicitResult(action="decline")
        if asked.mode == "url":
            filled = await self._answered(self._host.visit(self._server, asked.message, asked.url), Filled("cancel"))
            return ElicitResult(action=filled.action)
        try:
            fields = fields_of(asked.requested_schema)
        except ValueError as error:
            return ErrorData(code=INVALID_PARAMS, message=str(error))
        filled = await self._answered(self._host.fill(self._server, asked.message, fields), Filled("cancel"))
        return ElicitResult(action=filled.action, content=filled.values)  # type: ignore[arg-type]  # lists are invariant

    async def list_roots(self, context: Any) -> types.ListRootsResult:
        from mcp_types import ListRootsResult, Root
        from pydantic import FileUrl

        roots = self._folders or self._host.roots
        return ListRootsResult(roots=[Root(uri=FileUrl(one.as_uri()), name=one.name) for one in roots])

    async def sample(
        self, context: Any, asked: types.CreateMessageRequestParams
    ) -> types.CreateMessageResult | types.ErrorData:
        from mcp_types import CreateMessageResult, ErrorData, TextContent

        wanted = Sampling(
            asked.system_prompt or "",
            tuple(Message(one.role, self._content(one.content_as_list)) for one in asked.messages),
            asked.max_tokens,
            asked.temperature,
        )
        try:
            if not self.calls:
                raise ToolError("the model answers only while a tool of this server runs")
            found = await self._answered(self._host.sample(self._server, wanted), None)
        except ToolError as error:
            return ErrorData(code=_REFUSED, message=str(error))
        if found is None:
            return ErrorData(code=_REFUSED, message="the call was stopped")
        return CreateMessageResult(
            role="assistant",
            content=TextContent(type="text", text=found.text),
            model=found.model,
            stop_reason="maxTokens" if found.is_cut else "endTurn",
        )

    async def _answered(self, answer: Awaitable[T], otherwise: T) -> T:
        """The host's answer; `otherwise` if the call that it belongs to has ended meanwhile."""
        task = asyncio.ensure_future(answer)
        self.count += 1
        self._open.add(task)
        try:
            await asyncio.wait({task})
            return otherwise if task.cancelled() else task.result()
        finally:
            task.cancel()
            self._open.discard(task)

    def _content(self, blocks: Sequence[Any]) -> str | tuple[TextPart | MediaPart, ...]:
        """A message's blocks: images as they are, everything else as text."""
        parts: list[TextPart | MediaPart] = []
        for block in blocks:
            images = sum(isinstance(part, MediaPart) for part in parts)
            line, image = line_and_image(block, images, can_see=self._can_see())
            parts.append(image or TextPart(clean_text(line)))
        texts = [part.text for part in parts if isinstance(part, TextPart)]
        return "\n".join(texts) if len(texts) == len(parts) else tuple(parts)
