"""Turn trimming in a conversation: the summary, the daily memory file, and undo."""

from __future__ import annotations

from pathlib import Path

from nca.events import ContextCompaction, Notice
from nca.messages import Message, ToolCall
from nca.models.catalog import ModelFacts
from nca.testing.scripted import ScriptedReply
from tests.agent.test_conversation import LONG_ANSWER, Room, summary_or


async def test_the_oldest_half_goes_to_a_summary_and_the_days_memory(tmp_path: Path) -> None:
    room = Room(tmp_path)
    facts = ModelFacts(name="scripted/medium", provider="scripted", window_tokens=5_000)
    conversation = room.open([summary_or(LONG_ANSWER)] * 20, facts=facts, settings={"agent_max_context_turns": 4})
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


async def test_long_results_of_earlier_turns_are_shortened_before_each_turn_where_the_profile_says_so(
    tmp_path: Path,
) -> None:
    (tmp_path / "long.txt").write_text("".join(f"line {number} of the file\n" for number in range(1, 1_700)))
    look = Message("assistant", None, (ToolCall("c1", "read_file", '{"path": "long.txt"}'),))
    facts = ModelFacts(name="scripted/large", provider="scripted", window_tokens=200_000)
    for profile, limit in (("cowagent", 20_200), ("none", 40_000)):
        replies: list[ScriptedReply] = [look, "Seen.", look, "Seen again.", "Yes."]
        conversation = Room(tmp_path).open(replies, facts=facts, settings={"profile": profile})
        await conversation.send("Read it.")
        await conversation.send("And again.")
        shown = [str(row["content"]) for row in conversation.context.effective_history() if row["role"] == "tool"]
        assert (len(shown[0]) < limit, len(shown[1]) > 30_000) == (True, True)
        assert ("recall expand=3 lines=" in shown[0]) == (profile == "cowagent")
        await conversation.send("Fine?")
        assert [record.stages for record in conversation.context.history()] == [("shorten",)] * 2 * (
            profile == "cowagent"
        )
        await conversation.close()


async def test_auto_compact_on_finish_leaves_a_small_view_and_a_note_on_the_session(tmp_path: Path) -> None:
    room = Room(tmp_path)
    settings = {"memory.auto_compact_on_finish": True}
    conversation = room.open([summary_or(LONG_ANSWER)] * 20, settings=settings)
    for number in range(6):
        await conversation.send(f"Question {number}")
    used, session = conversation.context.stats().used_tokens, conversation.session.info.id
    await conversation.close()
    resumed = room.open([summary_or(LONG_ANSWER)] * 4, session=session, settings=settings)
    assert resumed.context.stats().used_tokens < used
    (note,) = resumed.memory.notes()
    assert note.text.startswith("Question 0\n")
    assert all(f"- Question {number}" in note.text for number in range(6))
    assert "recall expand" not in note.text
    resumed.set("memory.file_path", "/proc/none/memory.json")
    await resumed.close()
    assert any("/proc/none" in notice.message for notice in room.of(Notice))
