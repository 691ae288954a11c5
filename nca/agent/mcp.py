"""MCP servers in a conversation: take up their tools before a turn, and answer their requests while they work.

A server may ask for a form for the person, a page to open, the model, or the folders.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path

from nca.agent.approvals import Approvals
from nca.agent.fallbacks import Fallbacks
from nca.agent.mentions import mentions
from nca.agent.spending import Spending, ask_beside
from nca.agent.user_input import UserInput
from nca.agent.window import Window
from nca.errors import NcaError
from nca.events import ApprovalAsked, Listener, Notice
from nca.humanize import unambiguous
from nca.messages import MediaPart, Message, clean_text
from nca.models.model import ModelRequest
from nca.tools.mcp.forms import Field, Value
from nca.tools.mcp.oauth import open_browser
from nca.tools.mcp.requests import Filled, Sampled, Sampling
from nca.tools.mcp.servers import Servers
from nca.tools.tool import ToolError
from nca.tools.toolbox import Toolbox
from nca.wire import message_to_dict
from nca.words import Words

_MESSAGE_CHARS = 2_000


@dataclass(eq=False)
class ServerRequests:
    """The nca.tools.mcp.requests.Host of a conversation."""

    directory: Path
    window: Window
    models: Fallbacks
    spending: Spending
    approvals: Approvals
    emit: Listener
    _numbers: Iterator[int] = field(default_factory=partial(count, 1), init=False)

    @property
    def roots(self) -> Sequence[Path]:
        """The working directory, and the folders that the settings add."""
        added = self.window.settings.tools.readable
        paths = (self.directory, *(self.directory / os.path.expanduser(one) for one in added))  # noqa: PTH111
        return tuple(dict.fromkeys(path.absolute() for path in paths))

    async def fill(self, server: str, message: str, fields: Sequence[Field]) -> Filled:
        """In a form, or field by field. A value that is not valid is asked again; Escape cancels."""
        person = self.approvals.person
        question = f"The MCP server {server} asks: {_shown(message)}"
        async with self.approvals.one_at_a_time:
            if filled := await person.fill_form(question, fields):
                return filled
            if refused := await self._refused(server, message, question, "answer"):
                return refused
            values: dict[str, Value] = {}
            for field in fields:
                problem = ""
                while True:
                    typed = await person.type_answer(f"{problem}{field.question}")
                    if typed is None:
                        return Filled("cancel")
                    try:
                        value = field.read(typed)
                    except ValueError as error:
                        problem = f"{unambiguous(typed.strip(), kept='')}: {error}.\n"
                        continue
                    values |= {} if value is None else {field.name: value}
                    break
            return Filled("accept", values)

    async def visit(self, server: str, message: str, url: str) -> Filled:
        """The whole address is shown before the browser opens it."""
        person = self.approvals.person
        question = f"The MCP server {server} wants you to open {unambiguous(url, kept='')}\n{_shown(message)}"
        async with self.approvals.one_at_a_time:
            if visited := await person.open_page(question, url):
                return visited
            if refused := await self._refused(server, message, question, "open it"):
                return refused
        await asyncio.to_thread(open_browser, url, os.environ)
        return Filled("accept")

    async def sample(self, server: str, asked: Sampling) -> Sampled:
        window, model = self.window, self.models.active
        system = [Message("system", clean_text(asked.system))] if asked.system else []
        messages = [*system, *asked.messages]
        tokens = window.meter.scaled(sum(map(window.history.message_tokens, messages)))
        budget = window.budget.budget_tokens
        if tokens > budget:
            raise ToolError(f"the messages take {tokens:,} tokens; the model has room for {budget:,}")
        try:
            self.spending.check()
        except NcaError as error:
            raise ToolError(str(error)) from error
        question = ApprovalAsked(
            f"sampling-{next(self._numbers)}",
            f"the MCP server {server}",
            "execute",
            f"{server}: ask {model.facts.name}, {tokens:,} tokens",
            command=f"ask {model.facts.name} ({tokens:,} tokens):\n{_as_text(messages)}",
        )
        if refusal := await self.approvals.refusal_of(question):
            raise ToolError(refusal)
        request = ModelRequest(
            [message_to_dict(message) for message in messages],
            [],
            max(1, min(asked.max_tokens, window.answer_tokens() or asked.max_tokens)),
            window.settings.model.own_temperature if asked.temperature is None else asked.temperature,
        )
        try:
            reply = await ask_beside(window, model, request, "sampling", self.emit)
        except NcaError as error:
            raise ToolError(str(error)) from error
        self.spending.warn()
        return Sampled(clean_text(reply.message.text), model.facts.name, is_cut=reply.finish_reason == "length")

    async def _refused(self, server: str, message: str, question: str, yes: str) -> Filled | None:
        """None if the person continues. If nobody can be asked, it is declined, and a line says so."""
        person = self.approvals.person
        if not person.can_type:
            self.emit(Notice(f"The MCP server {server} asked: {_shown(message)} Nobody can answer here: declined."))
            return Filled("decline")
        word = await person.choose(question, (("y", yes), ("n", "decline")))
        return {"y": None, "n": Filled("decline")}.get(word, Filled("cancel"))


def _shown(message: str) -> str:
    """A server's words for the person, such that they cannot pass for nca's."""
    text = unambiguous(message.strip())
    return text if len(text) <= _MESSAGE_CHARS else f"{text[: _MESSAGE_CHARS - 1]}…"


def _as_text(messages: Sequence[Message]) -> str:
    """All that would be sent. Images are counted."""
    lines = []
    for one in messages:
        parts = one.content if isinstance(one.content, tuple) else ()
        images = sum(isinstance(part, MediaPart) for part in parts)
        lines.append(f"{one.role}: {unambiguous(one.text)}" + (f" [images: {images}]" if images else ""))
    return "\n".join(lines)


async def join_servers(servers: Servers, said: Words, toolbox: Toolbox, window: Window, user_input: UserInput) -> None:
    """Tools change only here, because within a turn every request must begin with the same bytes.

    Raises UsageError for a resource that cannot be read.
    """
    if not servers.names:
        return
    tools = await servers.join()
    if tools is not None:
        toolbox.take_outside(tools)
        window.take_tools()
    if window.tools:
        is_off = window.settings.tools.is_off
        wanted = [tool.name for tool in toolbox.outside if not is_off(tool.name)]
        servers.note_left_out(wanted, {tool["function"]["name"] for tool in window.tools})
    typed = " ".join(match[0] for match in mentions(said))
    for name, text in await servers.mentioned(typed):
        user_input.share(name, text, "attached")
