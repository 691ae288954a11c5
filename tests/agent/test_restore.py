"""Sessions resumed as text: the newest turns, with the rest one undo away."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from nca.context.validate import CHECKS, validate_request
from tests.agent.test_conversation import SMALL, Room, call


async def test_only_words_of_the_newest_turns_are_shown(tmp_path: Path) -> None:
    room = Room(tmp_path)
    replies = [reply for n in range(6) for reply in (call("list_directory", "{}", f"c{n}"), f"Answer {n}.")]
    facts = replace(SMALL, window_tokens=4_400)
    conversation = room.open(list(replies), facts=facts)
    for number in range(6):
        await conversation.send(f"Question {number}")
    whole, session = conversation.context.effective_history(), conversation.session.info.id
    await conversation.close()
    other = room.open(["Yes."])
    await other.send("Something else")
    again = room.open(["Yes."], facts=facts, session=session, settings={"session.restore": "text"})
    latest = room.store.latest()
    assert latest is not None
    assert latest.id == other.session.info.id, "to look is no use of it"
    shown = again.context.effective_history()
    text = str(shown)
    assert all(f"Question {n}" in text and f"Answer {n}." in text for n in (3, 4, 5))
    assert not any(f"Question {n}" in text for n in (0, 1, 2))
    assert not any(row["role"] == "tool" for row in shown)
    for provider in CHECKS:
        assert validate_request([*shown, {"role": "user", "content": "Next"}], provider) == []
    assert again.context.undo() is not None
    assert again.context.effective_history() == whole


async def test_notes_outlive_the_session_and_are_bounded(tmp_path: Path) -> None:
    room = Room(tmp_path)
    conversation = room.open([], settings={"memory.max_notes": 2})
    for text in ("one", "two", "three"):
        conversation.memory.note(text)
    await conversation.close()
    assert [note.text for note in room.open([]).memory.notes()] == ["two", "three"]
