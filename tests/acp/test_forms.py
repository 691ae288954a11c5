"""What an MCP server asks the person reaches the editor as a form or a page, over real pipes."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import pytest
from acp.schema import (
    AcceptElicitationResponse,
    CancelElicitationResponse,
    DeclineElicitationResponse,
    ElicitationFormSessionMode,
    ElicitationUrlSessionMode,
    EnvVariable,
    McpServerStdio,
)

from nca.testing.scripted import Answer, in_order
from tests.acp.client import Form
from tests.acp.conftest import Desk, initialize
from tests.agent.test_server_requests import FORM
from tests.testing.forks import standing
from tests.tools.test_mcp import PROGRAM, ROOT

pytestmark = pytest.mark.asyncio(loop_scope="session")

OLD = [sys.executable, str(ROOT / "tests" / "tools" / "old_mcp_server.py")]
PAGE = {"mode": "url", "message": "Pay.", "elicitationId": "e1"}
DECLINED = "Nobody can answer here: declined."


def accepted(**values: Any) -> Form:
    return AcceptElicitationResponse(action="accept", content=values)


async def session_of(desk: Desk, tool: str, arguments: dict[str, Any], program: list[str]) -> str:
    """A session with a server, whose tool the model will call."""
    env = [EnvVariable(name="PYTHONPATH", value=str(ROOT))]
    server = McpServerStdio(name="test", command=program[0], args=program[1:], env=env)
    desk.provider.script = in_order(Answer(tool_calls=[(f"mcp__test__{tool}", arguments)]), "Done.")
    return str((await desk.agent.new_session(cwd=str(desk.work), mcp_servers=[server])).session_id)


async def asked(desk: Desk, tool: str, arguments: dict[str, Any], *forms: Form, program: list[str]) -> str:
    """What the tool of a server said, and whether nca said that nobody could be asked."""
    session = await session_of(desk, tool, arguments, program)
    desk.editor.forms = list(forms)
    assert await desk.ask(session, "Ask.") == "end_turn"
    assert desk.editor.forms == []
    declined = DECLINED in desk.editor.text(session)
    await desk.agent.close_session(session_id=session)
    said = str(desk.provider.requests[-1]["messages"][-1]["content"])
    return f"{said} {DECLINED}" if declined else said


async def books(desk: Desk, *forms: Form) -> str:
    return await asked(desk, "books", {"greeting": "Hello"}, *forms, program=standing(PROGRAM))


async def answer_of(desk: Desk, params: dict[str, Any], *forms: Form) -> Any:
    said = await asked(desk, "ask", {"method": "elicitation/create", "params": params}, *forms, program=OLD)
    return json.loads(said.removesuffix(DECLINED))


async def test_a_form_is_shown_whole_and_its_values_reach_the_server(desk: Desk) -> None:
    await initialize(desk, forms=True)
    said = await books(desk, accepted(city="Valletta", nights=3, seaside=True, room="double"))
    assert said == "Valletta, 3 nights, seaside True, double"
    [(message, mode)] = desk.editor.elicited
    assert message == "The MCP server test asks: Hello! Where to?"
    assert isinstance(mode, ElicitationFormSessionMode)
    assert mode.requested_schema.required == ["city"]
    properties: Any = mode.requested_schema.properties
    nights, room = properties["nights"], properties["room"]
    assert (nights.type, nights.title, nights.minimum, nights.maximum, nights.default) == (
        "integer",
        "Nights",
        1,
        30,
        2,
    )
    assert [(one.const, one.title) for one in room.one_of] == [("single", "single"), ("double", "double")]


async def test_what_is_left_empty_is_left_out_and_what_is_not_valid_is_asked_again(desk: Desk) -> None:
    await initialize(desk, forms=True)
    assert await books(desk, accepted(city="", nights=3), accepted(city="Rome", nights=40), accepted(city="Rome")) == (
        "Rome, 2 nights, seaside False, single"
    )
    first, second, third = (message.splitlines() for message, _ in desk.editor.elicited)
    assert second == ["City: a value is needed.", *first]
    assert third == ["Nights: valid: at most 30.", *first]


async def test_a_client_that_checks_nothing_is_not_asked_for_ever(desk: Desk) -> None:
    await initialize(desk, forms=True)
    assert await books(desk, *[accepted(city=7)] * 3) == "cancel"
    assert desk.editor.elicited[-1][0].startswith("City: valid: a text.")


async def test_every_kind_of_field_has_its_type_and_hidden_characters_are_shown(desk: Desk) -> None:
    await initialize(desk, forms=True)
    values = {"mail": "me@example.org", "age": 18.5, "size": "l", "colours": ["red", "blue"], "sure": False}
    params = {"message": "Who\x1b[31m?", "requestedSchema": FORM}
    assert await answer_of(desk, params, accepted(**values, born="")) == {"action": "accept", "content": values}
    [(message, mode)] = desk.editor.elicited
    assert message == "The MCP server test asks: Who⟨U+001B⟩[31m?"
    properties = mode.requested_schema.properties
    assert properties["mail"].description == "Where to [approve]⟨U+001B⟩[31m"
    assert (properties["mail"].format, properties["sure"].type) == ("email", "boolean")
    assert [(one.const, one.title) for one in properties["size"].one_of] == [("s", "Small"), ("l", "Large")]
    assert [one.const for one in properties["colours"].items.any_of] == ["red", "blue"]


@pytest.mark.parametrize(
    ("form", "said"),
    [
        (DeclineElicitationResponse(action="decline"), "decline"),
        (CancelElicitationResponse(action="cancel"), "cancel"),
        (None, f"decline {DECLINED}"),
    ],
)
async def test_a_form_that_is_declined_cancelled_or_cannot_be_shown(desk: Desk, form: Form, said: str) -> None:
    await initialize(desk, forms=True)
    assert await books(desk, form) == said


async def test_a_form_that_stays_open_ends_with_the_prompt(desk: Desk) -> None:
    await initialize(desk, forms=True)
    session = await session_of(desk, "books", {"greeting": "Hello"}, standing(PROGRAM))
    prompt = asyncio.create_task(desk.ask(session, "Ask."))
    await desk.editor.until(lambda: bool(desk.editor.elicited))
    await desk.agent.cancel(session_id=session)
    assert await prompt == "cancelled"
    desk.provider.script = in_order("Here.")
    assert await desk.ask(session, "Are you there?") == "end_turn"
    await desk.agent.close_session(session_id=session)


async def test_an_editor_without_forms_is_not_asked(desk: Desk) -> None:
    assert await books(desk) == f"decline {DECLINED}"
    assert await answer_of(desk, {**PAGE, "url": "https://pay.test/1"}) == {"action": "decline"}
    assert desk.editor.elicited == []


async def test_a_page_is_opened_by_the_editor(desk: Desk) -> None:
    await initialize(desk, forms=True)
    page = {**PAGE, "url": "https://pay.test/1?x=2"}
    assert await answer_of(desk, page, accepted()) == {"action": "accept"}
    [(message, mode)] = desk.editor.elicited
    assert message == "The MCP server test wants you to open https://pay.test/1?x=2\nPay."
    assert isinstance(mode, ElicitationUrlSessionMode)
    assert (str(mode.url), bool(mode.elicitation_id)) == ("https://pay.test/1?x=2", True)
    assert await answer_of(desk, page, DeclineElicitationResponse(action="decline")) == {"action": "decline"}
    # An address that is no page of the web does not reach the editor.
    for wrong in ("file:///etc/passwd", "https://[pay.test/1"):
        assert await answer_of(desk, {**PAGE, "url": wrong}) == {"action": "decline"}
    assert len(desk.editor.elicited) == 2
