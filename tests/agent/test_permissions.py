"""A tool that may change something runs only if the permission mode allows it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import pytest

from nca.agent.conversation import Conversation
from nca.config.loaded import defaults
from nca.errors import ConfigError
from nca.sessions.store import Store
from nca.testing.scripted import ScriptedModel
from nca.tools.tool import ToolOutcome, TypedTool
from nca.tools.toolbox import Toolbox
from tests.agent.test_conversation import SMALL, call


class Touch(TypedTool):
    name = "touch"
    permission = "write"

    def __init__(self, path: Path) -> None:
        self._path = path

    async def call(self, text: Annotated[str, "What to write."]) -> ToolOutcome:
        """Write a file."""
        self._path.write_text(text)
        return ToolOutcome("written")


@pytest.mark.parametrize(("mode", "runs"), [("ask", False), ("plan", False), ("accept-edits", True), ("auto", True)])
async def test_a_writing_tool(tmp_path: Path, mode: str, runs: bool) -> None:
    conversation = Conversation.open(
        defaults().with_value("agent.permission", mode, "the test"),
        store=Store.open(None),
        model=ScriptedModel([call("touch", '{"text": "hello"}'), "Done."], facts=SMALL),
        directory=tmp_path,
        toolbox=Toolbox([Touch(tmp_path / "out.txt")]),
    )
    assert (await conversation.send("Write it")).reason == "answered"
    assert (tmp_path / "out.txt").exists() is runs
    assert conversation.context.entries[2].message.is_error is not runs
    await conversation.close()


def test_a_mode_that_there_is_not_is_refused() -> None:
    with pytest.raises(ConfigError, match="ask, accept-edits, plan, auto"):
        defaults().with_value("agent.permission", "yolo", "the test")
