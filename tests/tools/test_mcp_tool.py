"""MCP tools as providers accept them: names, schemas and descriptions within limits."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nca.config.servers import McpServer
from nca.sessions.store import Store
from nca.tools.mcp.tool import (
    MAX_DESCRIPTION_CHARS,
    MAX_SCHEMA_CHARS,
    McpTool,
    Offer,
    bounded_schema,
    rule_in_words,
    tool_name,
)
from nca.tools.tool import ToolOutcome
from nca.tools.toolbox import Toolbox
from tests.file_history.room import Room

SERVER = McpServer(name="s", command="program")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
)


async def run(name: str, arguments: dict[str, Any]) -> ToolOutcome:
    return ToolOutcome(name)


def a_tool(name: str = "t", description: str = "", schema: dict[str, Any] | None = None) -> McpTool:
    return McpTool(SERVER, Offer(name, description, schema or {"type": "object"}, is_read_only=False), run)


def test_names_are_what_providers_take_and_stay_apart() -> None:
    assert tool_name("github", "create_issue") == "mcp__github__create_issue"
    assert len(tool_name("a" * 32, "b" * 100)) == 64
    assert tool_name("s", "a.b") != tool_name("s", "a_b")
    assert tool_name("s", "x" * 80 + "1") != tool_name("s", "x" * 80 + "2")


@given(st.text(min_size=1, max_size=40), st.dictionaries(st.text(max_size=8), JSON, max_size=3))
def test_a_rule_for_a_tool_says_that_it_covers_all_arguments(server: str, arguments: dict[str, Any]) -> None:
    tool = McpTool(McpServer(name=server, command="program"), Offer("t", "", {}, is_read_only=False), run)
    subject = tool.approval(arguments).subject
    assert tool.approval({}).subject == subject
    assert rule_in_words(tool.name, subject) == f"with all arguments ({server})"
    for other in ("", "make", "a@b", "/work/a.py"):
        assert rule_in_words(tool.name, other) == other
    assert rule_in_words("shell", subject) == subject


@given(st.text(max_size=100))
def test_any_name_becomes_one(name: str) -> None:
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", tool_name("server", name))


@given(st.dictionaries(st.sampled_from(["type", "properties", "required", "$schema", "items"]), JSON))
def test_any_schema_becomes_one_of_an_object(schema: dict[str, Any]) -> None:
    bounded = bounded_schema(schema)
    assert bounded["type"] == "object"
    assert all(isinstance(one, dict) for one in bounded.get("properties", {}).values())
    json.dumps(bounded)


def test_a_schema_too_long_keeps_the_names_of_what_may_be_given() -> None:
    long = {"type": "object", "properties": {"a": {"description": "x" * MAX_SCHEMA_CHARS}, "b": {"type": "string"}}}
    assert bounded_schema(long) == {"type": "object", "properties": {"a": {}, "b": {}}}
    endless = {"type": "object", "properties": {"n" * 100 + str(number): {} for number in range(10_000)}}
    assert len(json.dumps(bounded_schema(endless))) < 2 * MAX_SCHEMA_CHARS


def test_a_description_is_bounded_and_clean() -> None:
    assert len(a_tool(description="x" * 10_000).description) == MAX_DESCRIPTION_CHARS
    a_tool(description="a\ud800b").description.encode()


async def test_a_toolbox_takes_them_behind_its_own_and_leaves_out_what_does_not_fit() -> None:
    own = a_tool("own")
    toolbox = Toolbox([own])
    first, second = a_tool("first"), a_tool("second")
    toolbox.take_outside([first, a_tool("own")])
    assert list(toolbox.names) == [own.name, first.name]
    toolbox.take_outside([second])
    assert list(toolbox.names) == [own.name, second.name]
    assert toolbox.outside == (second,)
    toolbox.take_outside([])
    assert list(toolbox.names) == [own.name]


@pytest.mark.parametrize("arguments", [{}, {"path": "a", "deep": {"x": [1]}}])
def test_an_approval_shows_all_that_is_sent(arguments: dict[str, Any]) -> None:
    approval = a_tool("write").approval(arguments)
    assert approval.command.startswith("s: write")
    assert all(name in approval.command for name in arguments)
    assert a_tool("write").needs(arguments) == "execute"


def test_no_name_of_a_tool_looks_like_its_arguments() -> None:
    asked = a_tool('read\n{\n "path": "safe"\n}').approval({"path": "secret"})
    assert asked.command.split("\n")[1:] == ["{", ' "path": "secret"', "}"]
    assert asked.command.startswith(f"{SERVER.name}: read⟨U+000A⟩")


@pytest.mark.parametrize("is_read_only", [False, True])
async def test_what_a_tool_changes_is_recorded_unless_it_claims_to_only_read(
    tmp_path: Path, is_read_only: bool
) -> None:
    async def write(name: str, arguments: dict[str, Any]) -> ToolOutcome:
        (tmp_path / "work/a").write_text("1")
        return ToolOutcome(name)

    with Store.open(tmp_path / "home/sessions.db") as store:
        history = Room(tmp_path / "work", store).history
        await McpTool(SERVER, Offer("t", "", {}, is_read_only), write, history.recorder).run({})
        assert [one.path for one in history.changed_since(0)] == ([] if is_read_only else ["a"])
