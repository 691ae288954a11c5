"""The person behind the client: permission requests in the place of the terminal's questions."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from acp import RequestError
from acp.schema import (
    AllowedOutcome,
    PermissionOption,
    RequestPermissionResponse,
    ToolCallLocation,
    ToolCallUpdate,
)
from pydantic import ValidationError

from nca.acp.forms import ClientForms
from nca.acp.tool_calls import CallIds, asked_content, kind_of
from nca.agent.approvals import Answer
from nca.events import ApprovalAsked
from nca.terminal.panels.approval_panel import ApprovalPanel
from nca.terminal.reader import Reader
from nca.terminal.render.sanitize import one_line
from nca.tools.mcp.forms import Field
from nca.tools.mcp.requests import Filled
from nca.tools.mcp.tool import rule_in_words
from nca.words import Words

Request = Callable[[ToolCallUpdate, list[PermissionOption]], Awaitable[RequestPermissionResponse]]

_ONCE, _SESSION, _DENY = "once", "session", "deny"
_RULE_CHARS = 160


class EditorPerson(Reader):
    """Asks for approvals, and what MCP servers ask; nothing else can be asked of the person.

    request  sends a permission request to the client
    ids      of the calls, for the client
    forms    None: the client offers none
    """

    is_interactive = False
    can_choose = False

    def __init__(self, request: Request, ids: CallIds, forms: ClientForms | None = None) -> None:
        self._request = request
        self._ids = ids
        self._forms = forms

    async def ask(self, asked: ApprovalAsked) -> Answer:
        """Once, for this session, or no. A request that is cancelled, or whose client is gone, interrupts the turn.

        Nothing holds beyond the session, because the terminal asks twice for that.
        """
        options = options_for(asked)
        call = ToolCallUpdate(
            tool_call_id=self._ids.of(asked.call_id),
            title=one_line(asked.summary or asked.name, _RULE_CHARS),
            kind=kind_of(asked.name),
            status="pending",
            content=asked_content(asked),
            locations=[ToolCallLocation(path=asked.path)] if asked.path else None,
        )
        try:
            outcome = (await self._request(call, options)).outcome
        except (RequestError, ValidationError):
            # It cannot ask, or its answer means nothing: that allows nothing.
            return Answer("unanswered")
        except ConnectionError:
            raise asyncio.CancelledError from None
        if not isinstance(outcome, AllowedOutcome):
            raise asyncio.CancelledError
        offered = {option.option_id for option in options}
        if outcome.option_id == _ONCE:
            return Answer("once")
        return Answer("session" if outcome.option_id == _SESSION and _SESSION in offered else "deny")

    async def fill_form(self, question: str, fields: Sequence[Field]) -> Filled | None:
        return await self._forms.fill(question, fields) if self._forms else None

    async def open_page(self, question: str, url: str) -> Filled | None:
        return await self._forms.open_page(question, url) if self._forms else None

    async def read(self, conversation: object, default: Words = ()) -> Words:
        """Prompts come by the protocol."""
        raise EOFError

    def interrupt(self) -> bool:
        return False


def options_for(asked: ApprovalAsked) -> list[PermissionOption]:
    """The answers that the terminal takes with one key; what it would not show at once, it asks about twice."""
    options = [PermissionOption(option_id=_ONCE, name="Allow once", kind="allow_once")]
    panel = ApprovalPanel(asked)
    panel.first()
    if asked.subject and not panel.lines_left:
        rule = one_line(f"{asked.name} {rule_in_words(asked.name, asked.subject)}", _RULE_CHARS)
        options.append(
            PermissionOption(option_id=_SESSION, name=f"Allow for this session: {rule}", kind="allow_always")
        )
    return [*options, PermissionOption(option_id=_DENY, name="No", kind="reject_once")]
