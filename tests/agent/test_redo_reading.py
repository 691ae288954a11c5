"""After going back the model has read nothing of what it left; after going forward again it has."""

from __future__ import annotations

import json
from pathlib import Path

from nca.agent.conversation import Conversation
from nca.config.loaded import defaults
from nca.messages import Message, ToolCall
from nca.sessions.store import Store
from nca.testing.scripted import ScriptedModel


def write(number: int, text: str) -> Message:
    arguments = json.dumps({"path": "f", "content": text})
    return Message("assistant", None, (ToolCall(f"c{number}", "write_file", arguments),))


async def test_a_file_that_undo_and_redo_left_as_it_was_can_be_written(tmp_path: Path) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    model = ScriptedModel([write(1, "one\n"), "Done.", write(2, "two\n"), "Done.", write(3, "three\n"), "Done."])
    conversation = Conversation.open(
        defaults().with_values({"agent.permission": "auto"}, "the test"),
        store=Store.open(tmp_path / "sessions.db"),
        model=model,
        directory=folder,
    )
    await conversation.send("Write it.")
    await conversation.send("Write it again.")
    for _ in range(2):
        point = conversation.rewinds.last_turn()
        assert point is not None
        await conversation.rewinds.go_back(point, await conversation.rewinds.plan(point), "both")
    assert not (folder / "f").exists()
    for _ in range(2):
        assert await conversation.rewinds.go_forward() is not None
    assert (folder / "f").read_text() == "two\n"
    await conversation.send("And again.")
    assert (folder / "f").read_text() == "three\n"
    await conversation.close()


async def test_what_was_read_in_a_branch_that_is_left_must_be_read_again(tmp_path: Path) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "f").write_text("mine\n")
    read = Message("assistant", None, (ToolCall("r", "read_file", '{"path": "f"}'),))
    conversation = Conversation.open(
        defaults().with_values({"agent.permission": "auto"}, "the test"),
        store=Store.open(tmp_path / "sessions.db"),
        model=ScriptedModel([read, "It says mine.", write(1, "one\n"), "I cannot."]),
        directory=folder,
    )
    await conversation.send("What does it say?")
    point = conversation.rewinds.last_turn()
    assert point is not None
    await conversation.rewinds.go_back(point, await conversation.rewinds.plan(point), "both")
    await conversation.send("Write it.")
    assert (folder / "f").read_text() == "mine\n"
    await conversation.close()
