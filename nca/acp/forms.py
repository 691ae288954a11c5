"""Forms and pages that an MCP server asks for, shown by the client (elicitation)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from uuid import uuid4

from acp import Client, RequestError
from acp.schema import (
    AcceptElicitationResponse,
    DeclineElicitationResponse,
    ElicitationCapabilities,
    ElicitationFormSessionMode,
    ElicitationMode,
    ElicitationSchema,
    ElicitationUrlSessionMode,
)
from pydantic import AnyHttpUrl, ValidationError

from nca.tools.mcp.forms import Field, Value
from nca.tools.mcp.requests import Filled

_TRIES = 3
"""After so many answers that are not valid a form is cancelled, so that no client is asked for ever."""
_KEPT = ("minLength", "maxLength", "minimum", "maximum", "minItems", "maxItems", "format", "pattern", "default")
"""What of a field's schema the client gets as it is."""


class ClientForms:
    """Asks the client.

    session_id  of the session, for the client
    offers      which of the two it shows
    """

    def __init__(self, client: Client, session_id: Callable[[], str], offers: ElicitationCapabilities) -> None:
        self._client, self._session_id, self._offers = client, session_id, offers

    async def fill(self, question: str, fields: Sequence[Field]) -> Filled | None:
        """All fields at once. Values that are not valid are asked again. None if the client cannot ask."""
        if self._offers.form is None:
            return None
        problem = ""
        for _ in range(_TRIES):
            try:
                mode = ElicitationFormSessionMode(session_id=self._session_id(), requested_schema=_schema_of(fields))
            except ValidationError:
                return None
            answer = await self._ask(f"{problem}{question}", mode)
            if not isinstance(answer, AcceptElicitationResponse):
                return answer
            try:
                return Filled("accept", _values(fields, answer.content or {}))
            except ValueError as error:
                problem = f"{error}.\n"
        return Filled("cancel")

    async def open_page(self, question: str, url: str) -> Filled | None:
        """None if the client cannot open it, or it is no page of the web."""
        if self._offers.url is None:
            return None
        try:
            page = AnyHttpUrl(url)
        except ValidationError:
            return None
        mode = ElicitationUrlSessionMode(session_id=self._session_id(), elicitation_id=str(uuid4()), url=page)
        answer = await self._ask(question, mode)
        return Filled("accept") if isinstance(answer, AcceptElicitationResponse) else answer

    async def _ask(self, question: str, mode: ElicitationMode) -> AcceptElicitationResponse | Filled | None:
        try:
            answer = await self._client.create_elicitation(question, mode)
        except (RequestError, ValidationError):
            # It cannot ask, or its answer means nothing.
            return None
        except ConnectionError:
            raise asyncio.CancelledError from None
        if isinstance(answer, AcceptElicitationResponse):
            return answer
        return Filled("decline" if isinstance(answer, DeclineElicitationResponse) else "cancel")


def _schema_of(fields: Sequence[Field]) -> ElicitationSchema:
    """Raises ValidationError for a field that the protocol cannot describe."""
    return ElicitationSchema.model_validate(
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
