"""Turn trimming in a conversation: the summary, the daily memory file, and undo."""

from __future__ import annotations

from pathlib import Path

from nca.events import ContextCompaction
from tests.agent.test_conversation import LONG_ANSWER, Room, summary_or


async def test_the_oldest_half_goes_to_a_summary_and_the_days_memory(tmp_path: Path) -> None:
    room = Room(tmp_path)
    conversation = room.open([summary_or(LONG_ANSWER)] * 20, settings={"agent_max_context_turns": 4})
    for number in range(6):
        await conversation.send(f"Question {number}")
    done = [event for event in room.of(ContextCompaction) if event.phase == "completed"]
    assert [event.trigger for event in done] == ["turns"]
    assert conversation.context.history()[0].stages == ("trim",)
    days = list((tmp_path / ".nca" / "memory").glob("*.md"))
    assert len(days) == 1
    assert "Question 1" in days[0].read_text()
    assert conversation.context.undo() is not None
    assert "Question 0" in str(conversation.context.effective_history())


async def test_auto_compact_on_finish_leaves_a_small_view(tmp_path: Path) -> None:
    room = Room(tmp_path)
    settings = {"memory.auto_compact_on_finish": True}
    conversation = room.open([summary_or(LONG_ANSWER)] * 20, settings=settings)
    for number in range(6):
        await conversation.send(f"Question {number}")
    used, session = conversation.context.stats().used_tokens, conversation.session.info.id
    await conversation.close()
    assert room.open([], session=session).context.stats().used_tokens < used
