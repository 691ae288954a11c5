"""What an editor may answer to a question, and what its answers allow."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest
from acp import Client, RequestError
from acp.schema import AllowedOutcome, DeniedOutcome, ElicitationCapabilities, RequestPermissionResponse

from nca.acp.client import EditorPerson, options_for
from nca.acp.tool_calls import CallIds, Outlet
from nca.agent.approvals import Answer
from nca.events import ApprovalAsked

RULED = ApprovalAsked("c", "shell", "execute", "$ make", command="make", subject="make", directory="/here")
UNRULED = ApprovalAsked("c", "shell", "execute", "$ a && b", command="a && b", directory="/here")
LONG = ApprovalAsked("c", "shell", "execute", "$ …", command="echo\n" * 500, subject="echo", directory="/here")


class Answering:
    """The part of a client that answers permission requests: with an option, an error, or None for cancelled."""

    def __init__(self, result: str | Exception | None) -> None:
        self._result = result

    async def request_permission(self, **_: Any) -> RequestPermissionResponse:
        if isinstance(self._result, Exception):
            raise self._result
        if self._result is None:
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=self._result))


def answering(result: str | Exception | None) -> EditorPerson:
    client = cast(Client, Answering(result))
    return EditorPerson(client, Outlet(lambda _: None), CallIds(), ElicitationCapabilities())


@pytest.mark.parametrize("option", ["always", "allow_always", "deny", "", "ONCE"])
async def test_only_what_was_offered_allows(option: str) -> None:
    assert await answering(option).ask(RULED) == Answer("deny")


async def test_once_and_for_this_session() -> None:
    assert await answering("once").ask(RULED) == Answer("once")
    assert await answering("session").ask(RULED) == Answer("session")
    assert await answering("session").ask(UNRULED) == Answer("deny")
    assert await answering("session").ask(LONG) == Answer("deny")


async def test_an_editor_that_cannot_ask_has_not_been_asked_and_one_that_is_gone_stops_the_turn() -> None:
    assert await answering(RequestError.internal_error()).ask(RULED) == Answer("unanswered")
    for gone in (None, ConnectionError("gone")):
        with pytest.raises(asyncio.CancelledError):
            await answering(gone).ask(RULED)


def test_nothing_is_offered_for_good() -> None:
    for asked in (RULED, UNRULED, LONG):
        assert {option.option_id for option in options_for(asked)} <= {"once", "session", "deny"}
    assert [option.name for option in options_for(RULED)][1] == "Allow for this session: shell make"


def test_an_offer_for_an_mcp_tool_says_that_it_covers_all_arguments() -> None:
    subject = f"db@{'0' * 12}-{'1' * 12}"
    asked = ApprovalAsked("c", "mcp__db__query", "execute", "db: query", command="db: query", subject=subject)
    name = options_for(asked)[1].name
    assert name == "Allow for this session: mcp__db__query with all arguments (db)"


def test_the_person_chooses_and_types_nothing() -> None:
    person = answering(None)
    assert person.can_choose
    assert (person.is_interactive, person.can_type, person.can_walk, tuple(person.typed_ahead())) == (
        *(False, False, False, ()),
    )
