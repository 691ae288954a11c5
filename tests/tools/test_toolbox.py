"""The toolbox: what the model is told, and that no error of a model or tool escapes it."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Annotated, Any, ClassVar

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from nca.context.tokenizers import OTHER, tools_text, tools_tokens
from nca.errors import StoreError, UsageError
from nca.messages import ToolCall, clean_text
from nca.tools.tool import Permission, Tool, ToolOutcome, TypedTool
from nca.tools.toolbox import SMALL_BUDGET_TOKENS, Toolbox, default_toolbox

NAMES = ["read_file", "edit_file", "write_file", "grep", "glob", "list_directory", "fetch_url", "todo"]
MOST_TOKENS = {"edit_file": 180}
USUAL_MOST_TOKENS = 128
"""Each definition goes into every request. That of edit_file has a list of edits in it."""


class Raises(TypedTool):
    """A tool that raises what it was made with."""

    name: ClassVar[str] = "raises"
    permission: ClassVar[Permission] = "execute"

    def __init__(self, error: BaseException) -> None:
        self._error = error

    async def call(self, why: Annotated[str, "Anything."] = "") -> ToolOutcome:
        """Fail."""
        raise self._error


def call(name: str, arguments: object) -> ToolCall:
    return ToolCall(id="1", name=name, arguments=arguments if isinstance(arguments, str) else json.dumps(arguments))


def test_the_definitions_are_openai_shaped_and_stable(tmp_path: Path) -> None:
    box = default_toolbox(tmp_path)
    definitions = box.definitions()
    assert [one["function"]["name"] for one in definitions] == NAMES
    assert json.dumps(definitions) == json.dumps(default_toolbox(tmp_path).definitions())
    for one in definitions:
        assert one["type"] == "function"
        assert one["function"]["description"]
        assert all(entry["description"] for entry in one["function"]["parameters"]["properties"].values())
        assert tools_tokens(tools_text([one], OTHER), OTHER) <= MOST_TOKENS.get(
            one["function"]["name"], USUAL_MOST_TOKENS
        )
    assert tools_tokens(tools_text(definitions, OTHER), OTHER) <= 900
    assert box.permission("nothing") is None


def test_names_must_be_single_and_acceptable() -> None:
    tool: Tool = Raises(ValueError())
    with pytest.raises(UsageError, match="same name: raises"):
        Toolbox([tool, tool])

    class Odd(Raises):
        name: ClassVar[str] = "two words"

    with pytest.raises(UsageError, match="Not a valid tool name"):
        Toolbox([Odd(ValueError())])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ('{"path": "x"', "invalid JSON at column 13: Expecting ',' delimiter"),
        ("[1]", "the arguments must be a JSON object, not list"),
        ("[" * 100_000, "nested too deeply"),
        ("9" * 5000, "Exceeds the limit"),
        ("", "missing argument path"),
        ("null", "missing argument path"),
        ('{"path": 1.5}', "argument path must be a string"),
        ('{"path": "x", "\\u001b[2J": 1}', "unknown argument '\\x1b[2J'"),
    ],
)
async def test_bad_arguments_are_one_line_for_the_model(tmp_path: Path, arguments: str, words: str) -> None:
    outcome = await default_toolbox(tmp_path).run(call("read_file", arguments))
    assert outcome.is_error
    assert outcome.text.startswith("Error: ")
    assert words in outcome.text
    assert "\n" not in outcome.text


class AnswersBadly(TypedTool):
    name: ClassVar[str] = "answers_badly"
    permission: ClassVar[Permission] = "read"

    async def call(self, text: Annotated[str, "What it answers."]) -> ToolOutcome:
        """Fail with a text and no summary, as the tools of MCP servers do."""
        return ToolOutcome(text, is_error=True)


async def test_a_failed_call_is_summed_up_by_its_reason() -> None:
    tools = Toolbox([AnswersBadly()])
    for text, reason in {
        "no currency XXX": "no currency XXX",
        "\n  no rate\ntry EUR\n": "no rate",
        " \n": "failed",
    }.items():
        assert (await tools.run(call("answers_badly", {"text": text}))).summary == reason


async def test_an_unknown_tool_is_told_the_known_ones(tmp_path: Path) -> None:
    outcome = await default_toolbox(tmp_path).run(call("fly", {}))
    assert outcome.text == f"Error: there is no tool 'fly'; the tools are: {', '.join(NAMES)}"


def test_what_each_tool_needs(tmp_path: Path) -> None:
    box = default_toolbox(tmp_path)
    assert {name: box.permission(name) for name in NAMES if box.permission(name) != "read"} == {
        "edit_file": "write",
        "write_file": "write",
        "fetch_url": "execute",
    }


def test_a_small_window_is_offered_the_tools_that_others_cannot_stand_in_for(tmp_path: Path) -> None:
    box = default_toolbox(tmp_path)
    small = [one["function"]["name"] for one in box.definitions(SMALL_BUDGET_TOKENS - 1)]
    assert small == ["read_file", "edit_file", "write_file", "grep", "glob", "todo"]
    assert [one["function"]["name"] for one in box.definitions(4_999)] == small[:4]
    assert box.definitions(SMALL_BUDGET_TOKENS) == box.definitions()
    # A program's own tools are never left out.
    assert Toolbox([Raises(ValueError())]).definitions(1_000)


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (OSError(28, "No space left on device", "x"), "No space left on device: x"),
        (ValueError("two\nlines"), "two lines"),
        (KeyError(), "KeyError"),
        (KeyError("boom"), "KeyError: 'boom'"),
        (RecursionError("deep"), "RecursionError: deep"),
        (SystemExit(2), "SystemExit: 2"),
        (StoreError("locked", advice="Wait."), "locked. Wait."),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"), "'utf-8' codec"),
        (ValueError("\ud800" + "x" * 500), "\ufffdxxx"),
        (ExceptionGroup("several", [ValueError("x")]), "ExceptionGroup: several"),
    ],
)
async def test_whatever_a_tool_raises_is_one_line(error: BaseException, text: str) -> None:
    outcome = await Toolbox([Raises(error)]).run(call("raises", {}))
    assert outcome.is_error
    assert outcome.text.startswith(f"Error: {text}")
    assert "\n" not in outcome.text
    assert len(outcome.text) < 250


class Returns(Raises):
    """A tool that returns what it was made with."""

    name: ClassVar[str] = "returns"

    def __init__(self, returned: Any) -> None:
        self._returned = returned

    async def call(self, why: Annotated[str, "Anything."] = "") -> ToolOutcome:
        """Return."""
        return self._returned  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("returned", "text", "is_error"),
    [
        ("22 degrees", "22 degrees", False),
        ("", "", False),
        (None, "Error: returns returned nothing; a tool returns text or a ToolOutcome", True),
        ({"a": 1}, "Error: returns returned an object;", True),
        (ToolOutcome(None), "Error: returns returned nothing;", True),  # type: ignore[arg-type]
        (ToolOutcome("x", summary=5), "Error: ", True),  # type: ignore[arg-type]
    ],
)
async def test_whatever_a_tool_returns_is_an_outcome(returned: Any, text: str, is_error: bool) -> None:
    outcome = await Toolbox([Returns(returned)]).run(call("returns", {}))
    assert (outcome.text.startswith(text), outcome.is_error) == (True, is_error)


async def test_all_that_a_tool_returns_can_be_stored() -> None:
    odd = "a\ud800b"
    outcome = await Toolbox([Returns(ToolOutcome(odd, summary=odd, diff=odd, printed=odd))]).run(call("returns", {}))
    assert {outcome.text, outcome.summary, outcome.diff, outcome.printed} == {clean_text(odd)}


async def test_cancellation_passes_through() -> None:
    began = asyncio.Event()

    class Waits(Raises):
        async def call(self) -> ToolOutcome:  # type: ignore[override]
            """Wait."""
            began.set()
            await asyncio.Event().wait()
            return ToolOutcome("")

    running = asyncio.create_task(Toolbox([Waits(ValueError())]).run(call("raises", {})))
    await began.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


async def test_a_cancellation_of_something_else_is_a_failure() -> None:
    outcome = await Toolbox([Raises(asyncio.CancelledError())]).run(call("raises", {}))
    assert (outcome.text, outcome.is_error) == ("Error: a task that the tool waited for was cancelled", True)


def test_describe_is_one_line_whatever_the_model_wrote(tmp_path: Path) -> None:
    box = Toolbox([Raises(ValueError())])
    assert box.describe(call("raises", {"why": "a\nb"})) == "raises a b"
    assert box.describe(call("other", "{}")) == "other {}"
    files = default_toolbox(tmp_path)
    assert files.describe(call("read_file", {"path": "nca/x.py"})) == "read nca/x.py"
    assert files.describe(call("read_file", {"path": "x", "offset": 5, "limit": 10})) == "read x from line 5"
    assert (
        files.describe(call("read_file", {"path": "x", "offset": "five"}))
        == 'read_file {"path": "x", "offset": "five"}'
    )
    assert files.describe(call("list_directory", {})) == "list ."
    assert files.describe(call("grep", {"pattern": "a b", "glob": "*.py"})) == "grep a b in . (*.py)"
    assert files.describe(call("read_file", "{")) == "read_file {"


@hypothesis_settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from(["read_file", "list_directory"]),
    st.text()
    | st.dictionaries(st.sampled_from(["path", "offset", "limit"]), st.text() | st.integers()).map(json.dumps),
)
def test_any_call_has_an_outcome_that_can_be_stored(tmp_path: Path, name: str, arguments: str) -> None:
    async def run() -> ToolOutcome:
        return await default_toolbox(tmp_path).run(call(name, arguments))

    outcome = asyncio.run(run())
    outcome.text.encode()
    assert "\n" not in outcome.summary
    assert "\n" not in default_toolbox(tmp_path).describe(call(name, arguments))


async def test_file_names_that_are_not_utf8_can_be_listed_and_sent(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"caf\xe9\n.txt")).write_text("x")
    outcome = await default_toolbox(tmp_path).run(call("list_directory", {}))
    assert outcome.text == "caf\\udce9\\n.txt  1 bytes"


def test_the_base_class_is_a_tool() -> None:
    tools: list[Tool] = [Raises(ValueError())]
    facts: dict[str, Any] = tools[0].parameters
    assert facts["required"] == []


def test_a_renewed_toolbox_has_the_same_tools_but_one_with_a_state_of_their_own(tmp_path: Path) -> None:
    class Foreign(Raises):
        name: ClassVar[str] = "server__do"

    box, fresh = default_toolbox(tmp_path), default_toolbox(tmp_path)
    box.take_outside([Foreign(ValueError())])
    renewed = box.renewed(fresh, has=lambda name: name != "todo")
    assert list(renewed.names) == [name for name in box.names if name != "todo"]
    assert renewed.outside == box.outside
    assert renewed._tools["read_file"] is fresh._tools["read_file"]
    assert "todo" in box.names
    assert box.renewed(fresh, has=box._own.__contains__).names == tuple(box._own)


def test_a_server_s_tool_takes_the_place_of_none_of_nca_s_and_needs_a_name_that_can_be_sent(tmp_path: Path) -> None:
    def foreign(name: str) -> Raises:
        found: Raises = type("Foreign", (Raises,), {"name": name})(ValueError())
        return found

    box = default_toolbox(tmp_path)
    own = dict(box._tools)
    for name in ("server__new", "server__old"):
        kept = foreign(name)
        box.take_outside([foreign("read_file"), foreign("not a name"), foreign("x" * 65), kept])
        assert box._tools == own | {name: kept}
        assert box.outside == (kept,)


class Says(TypedTool):
    """A tool without a summary of its own."""

    name: ClassVar[str] = "says"
    permission: ClassVar[Permission] = "read"

    async def call(self, what: Annotated[str, "Its answer."] = "") -> ToolOutcome:
        """Answer."""
        return ToolOutcome(what)


@pytest.mark.parametrize(
    ("said", "summary"),
    [("5", "5"), (" 5\n", "5"), ("", "0 characters"), ("a\nb", "3 characters"), ("x" * 1_041, "1,041 characters")],
)
async def test_a_short_answer_is_its_own_summary(said: str, summary: str) -> None:
    assert (await Toolbox([Says()]).run(call("says", {"what": said}))).summary == summary
