"""A process that is killed in the middle of a rewind: the next start finishes it, chat and files together."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path

import pytest

from tests.agent.test_conversation import Room
from tests.testing.forks import standing_code

CHILD = """
import asyncio, os, signal, sys
from pathlib import Path
from nca.messages import Message, ToolCall
from tests.agent.test_conversation import Room

CALLS = json.loads(sys.argv[3])

async def main():
    room = Room(Path(sys.argv[1]))
    calls = tuple(ToolCall(f"c{n}", "write_file", arguments) for n, arguments in enumerate(CALLS))
    replies = [Message("assistant", None, calls), "Done."]
    conversation = room.open(replies, settings={"agent.permission": "accept-edits"})
    await conversation.send("Write them")
    print(conversation.session.info.id, flush=True)
    rewinds, where = conversation.rewinds, sys.argv[2]

    def die(number):
        if where == "after the chat":
            rewinds._show("before 1", number)
        os.kill(os.getpid(), signal.SIGKILL)

    plan = await rewinds.plan(rewinds.last_turn())
    conversation.files.apply(plan, chat="before 1", then=die)

asyncio.run(main())
"""


@pytest.mark.parametrize("where", ["before the chat", "after the chat"])
async def test_a_rewind_that_is_cut_off_is_finished(tmp_path: Path, where: str) -> None:
    (tmp_path / "b.txt").write_text("before\n")
    calls = [json.dumps({"path": f"{name}.txt", "content": "text\n"}) for name in "ac"]
    child = subprocess.run(
        standing_code(f"import json\n{CHILD}", str(tmp_path), where, json.dumps(calls)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert child.returncode == -signal.SIGKILL, child.stderr
    assert sorted(path.name for path in tmp_path.glob("*.txt")) == ["b.txt"]
    room = Room(tmp_path)
    conversation = room.open(["Now."], session=child.stdout.strip())
    assert list(conversation.context.backwards()) == []
    is_told = any("cut off has been finished" in str(event) for event in room.events)
    assert is_told == (where == "before the chat")
    # Whoever looks at the files next finds them as they should be.
    assert conversation.files.changed_since(0) == ()
    assert sorted(path.name for path in tmp_path.glob("*.txt")) == ["b.txt"]
    assert await conversation.rewinds.go_forward() is not None
    assert sorted(path.name for path in tmp_path.glob("*.txt")) == ["a.txt", "b.txt", "c.txt"]
    assert next(conversation.context.backwards()).message.text == "Done."
    await conversation.close()
