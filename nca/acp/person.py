"""The person behind the client: permission requests as the terminal's questions, forms and pages of MCP servers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any
from uuid import uuid4

from acp import Client, RequestError, schema
from pydantic import AnyHttpUrl, ValidationError

from nca.acp.tool_calls import CallIds, asked_content, kind_of
from nca.agent.approvals import Answer
from nca.events import ApprovalAsked
from nca.terminal.reader import Reader
from nca.terminal.render.calls import ApprovalPanel
from nca.terminal.render.sanitize import one_line
from nca.tools.mcp.forms import Field, Value
from nca.tools.mcp.requests import Filled
from nca.tools.mcp.tool import rule_in_words
from nca.words import Words

_TRIES = 3
"""After this many invalid answers a form is cancelled, so that no client is asked for ever."""
_KEPT = ("minLength", "maxLength", "minimum", "maximum", "minItems", "maxItems", "format", "pattern", "default")
"""The parts of a field's schema that the client gets unchanged."""


class ClientForms:
    """Asks the client.

    session_id  of the session, for the client
    offers      which of the two it shows
    """

    def __init__(self, client: Client, session_id: Callable[[], str], offers: schema.ElicitationCapabilities) -> None:
        self._client, self._session_id, self._offers = client, session_id, offers

    async def fill(self, question: str, fields: Sequence[Field]) -> Filled | None:
        """All fields at once. Values that are not valid are asked again. None if the client cannot ask."""
        if self._offers.form is None:
            return None
        problem = ""
        for _ in range(_TRIES):
            try:
                mode = schema.ElicitationFormSessionMode(
                    session_id=self._session_id(), requested_schema=_schema_of(fields)
                )
            except ValidationError:
                return None
            answer = await self._ask(f"{problem}{question}", mode)
            if not isinstance(answer, schema.AcceptElicitationResponse):
                return answer
            try:
                return Filled("accept", _values(fields, answer.content or {}))
            except ValueError as error:
                problem = f"{error}.\n"
        return Filled("cancel")

    async def open_page(self, question: str, url: str) -> Filled | None:
        """None if the client cannot open it, or it is not a page of the web."""
        if self._offers.url is None:
            return None
        try:
            page = AnyHttpUrl(url)
        except ValidationError:
            return None
        mode = schema.ElicitationUrlSessionMode(session_id=self._session_id(), elicitation_id=str(uuid4()), url=page)
        answer = await self._ask(question, mode)
        return Filled("accept") if isinstance(answer, schema.AcceptElicitationResponse) else answer

    async def _ask(
        self, question: str, mode: schema.ElicitationMode
    ) -> schema.AcceptElicitationResponse | Filled | None:
        try:
            answer = await self._client.create_elicitation(question, mode)
        except (RequestError, ValidationError):
            # It cannot ask, or its answer means nothing.
            return None
        except ConnectionError:
            raise asyncio.CancelledError from None
        if isinstance(answer, schema.AcceptElicitationResponse):
            return answer
        return Filled("decline" if isinstance(answer, schema.DeclineElicitationResponse) else "cancel")


def _schema_of(fields: Sequence[Field]) -> schema.ElicitationSchema:
    """Raises ValidationError for a field that the protocol cannot describe."""
    return schema.ElicitationSchema.model_validate(
        {
            "properties": {field.name: _property(field) for field in fields},
            "required": [field.name for field in fields if field.is_required],
        }
    )


def _property(field: Field) -> dict[str, Any]:
    found = {key: field.schema[key] for key in _KEPT if key in field.schema}
    found |= {"type": field.kind, "title": field.title, "description": field.about or None}
    options = [{"const": value, "title": shown} for value, shown in field.choices]
    if field.kind == "array":
        found["items"] = {"anyOf": options}
    elif options:
        found["oneOf"] = options
    return found


def _values(fields: Sequence[Field], content: Mapping[str, object]) -> dict[str, Value]:
    """The values by name. Raises ValueError, which names the field and says what is valid."""
    values: dict[str, Value] = {}
    for field in fields:
        value = content.get(field.name)
        try:
            if value not in (None, ""):
                values[field.name] = field.take(value)
            elif field.is_required:
                raise ValueError("a value is needed")
        except ValueError as error:
            raise ValueError(f"{field.title}: {error}") from error
    return values


Request = Callable[[schema.ToolCallUpdate, list[schema.PermissionOption]], Awaitable[schema.RequestPermissionResponse]]

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
        """Once, for this session, or no. A cancelled request, or one from a client that is gone, interrupts the turn.

        Nothing holds beyond the session, because the terminal asks twice for that.
        """
        options = options_for(asked)
        call = schema.ToolCallUpdate(
            tool_call_id=self._ids.of(asked.call_id),
            title=one_line(asked.summary or asked.name, _RULE_CHARS),
            kind=kind_of(asked.name),
            status="pending",
            content=asked_content(asked),
            locations=[schema.ToolCallLocation(path=asked.path)] if asked.path else None,
        )
        try:
            outcome = (await self._request(call, options)).outcome
        except (RequestError, ValidationError):
            # It cannot ask, or its answer means nothing: that allows nothing.
            return Answer("unanswered")
        except ConnectionError:
            raise asyncio.CancelledError from None
        if not isinstance(outcome, schema.AllowedOutcome):
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


def options_for(asked: ApprovalAsked) -> list[schema.PermissionOption]:
    """The answers that the terminal takes with one key; it asks twice about calls that it would not show at once."""
    options = [schema.PermissionOption(option_id=_ONCE, name="Allow once", kind="allow_once")]
    panel = ApprovalPanel(asked)
    panel.first()
    if asked.subject and not panel.lines_left:
        rule = one_line(f"{asked.name} {rule_in_words(asked.name, asked.subject)}", _RULE_CHARS)
        options.append(
            schema.PermissionOption(option_id=_SESSION, name=f"Allow for this session: {rule}", kind="allow_always")
        )
    return [*options, schema.PermissionOption(option_id=_DENY, name="No", kind="reject_once")]
