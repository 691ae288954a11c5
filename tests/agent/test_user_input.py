"""What goes along with a message: its room, what is never left out, and what comes back with the message."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from nca.agent.conversation import Conversation
from nca.agent.mentions import Beside
from nca.config.tables import PermissionRule
from nca.errors import ProviderError
from nca.events import ContextCompaction, ErrorRaised, Notice
from nca.messages import Message
from nca.models.catalog import ModelFacts
from tests.agent.test_conversation import LONG_ANSWER, MIDDLE, Room, sent_by, summary_or

FILE = "[project]\n" + 'name = "of a few words"\n' * 40
VALUE = "4f1c6a0b92de\n"


@pytest.fixture
def room(tmp_path: Path) -> Room:
    return Room(tmp_path)


def newest(conversation: Conversation) -> Message:
    """The person's newest message in the log."""
    return next(one.message for one in conversation.context.backwards() if one.message.role == "user")


async def until_compacted(room: Room, conversation: Conversation) -> None:
    while not any(event.phase == "completed" for event in room.of(ContextCompaction)):
        await conversation.send("Question")


def undone(conversation: Conversation) -> None:
    conversation.context.undo()


def smaller(conversation: Conversation) -> None:
    conversation.set("model.context_window", 5_000)


@pytest.mark.parametrize("above", [undone, smaller])
async def test_what_comes_along_has_the_room_that_the_compaction_makes(
    room: Room, above: Callable[[Conversation], None]
) -> None:
    """Above the budget it was emptied, and the output of the command was nowhere."""
    (room.path / "pyproject.toml").write_text(FILE)
    facts = ModelFacts(name="scripted/middle", provider="scripted", window_tokens=8_000)
    conversation = room.open([summary_or(LONG_ANSWER * 2)] * 90, facts=facts)
    await until_compacted(room, conversation)
    above(conversation)
    measured = conversation.context.stats()
    assert measured.used_tokens > 0.9 * measured.budget_tokens
    conversation.user_input.share("$ date", VALUE, "tool")
    room.events.clear()
    assert (await conversation.send("What is that, and @pyproject.toml?")).reason == "answered"
    assert [event.phase for event in room.of(ContextCompaction)][:2] == ["starting", "completed"]
    said = newest(conversation)
    assert [(part.path, part.text, part.is_cut) for part in said.attachments] == [
        ("pyproject.toml", FILE, False),
        ("$ date", VALUE, False),
    ]
    assert any(VALUE in str(content) and FILE in str(content) for content in sent_by(conversation))


async def test_a_file_that_a_rule_protects_is_not_attached_and_of_no_file_its_keys_are(room: Room) -> None:
    (room.path / "secret.txt").write_text(VALUE)
    (room.path / "env.txt").write_text("API_KEY=4f1c6a0b92de4f1c6a0b92de4f1c6a0b\n")
    conversation = room.open(["Fine."], settings={"permissions.deny": [PermissionRule("read_file", "secret.txt")]})
    assert (await conversation.send("See @secret.txt")).reason == "failed"
    assert not list(conversation.context.entries)
    await conversation.send("See @env.txt")
    assert [part.text for part in newest(conversation).attachments] == ["API_KEY=[redacted]\n"]


async def test_a_file_without_room_is_refused_and_nothing_is_lost(room: Room) -> None:
    """Nothing makes room by itself here. The message was sent with an empty file."""
    (room.path / "pyproject.toml").write_text(FILE)
    conversation = room.open([LONG_ANSWER] * 30, settings={"context.auto": "off"})
    while (stats := conversation.context.stats()).used_tokens < 0.95 * stats.budget_tokens:
        await conversation.send("Question")
    conversation.user_input.share("$ date", VALUE, "tool")
    before = len(list(conversation.context.entries))
    assert (await conversation.send("And @pyproject.toml?")).exit_code == 2
    error = room.of(ErrorRaised)[-1]
    assert error.message == f"There is no room for the {len(FILE):,} bytes of pyproject.toml."
    assert error.advice.startswith("Nothing was sent")
    assert len(list(conversation.context.entries)) == before
    conversation.context.clear()
    await conversation.send("And now, @pyproject.toml?")
    assert [part.text for part in newest(conversation).attachments] == [FILE, VALUE]


async def test_an_output_larger_than_the_window_is_whole_in_the_log(room: Room) -> None:
    output = "\n".join(f"line {number} of the output" for number in range(2_000))
    conversation = room.open([summary_or("Seen.")] * 3, facts=MIDDLE, settings={"context.fit": "cut"})
    conversation.user_input.share("$ make test", output, "tool")
    assert (await conversation.send("What does it say at the end?")).reason == "answered"
    assert [part.text for part in newest(conversation).attachments] == [output]
    (sent,) = sent_by(conversation)[1:]
    assert sent.startswith("What does it say at the end?")
    assert "recall expand=1" in sent
    assert any("/context show 1 has all" in event.message for event in room.of(Notice))


async def test_what_waited_for_a_message_comes_back_with_it(room: Room) -> None:
    conversation = room.open(["One.", "Two.", "Three.", "Four.", "Five."])

    async def undo() -> None:
        point = conversation.rewinds.last_turn()
        assert point is not None
        await conversation.rewinds.go_back(point, await conversation.rewinds.plan(point), "chat")

    conversation.user_input.share("$ date", VALUE, "tool")
    await conversation.send("Why?", beside=[Beside("skill.md", "The skill's own text.", "attached")])
    await conversation.send("And then?")
    await undo()
    await conversation.send("And later?")
    assert VALUE not in sent_by(conversation)[-1]
    await undo()
    await undo()
    conversation.user_input.share("$ ls", "a.txt\n", "tool")
    await conversation.send("Why?")
    assert [part.path for part in newest(conversation).attachments] == ["$ date", "$ ls"]
    assert sent_by(conversation)[-1].count(VALUE) == 1
    await undo()
    await conversation.rewinds.go_forward()
    await conversation.send("Next?")
    assert not newest(conversation).attachments
    await undo()
    await undo()
    await conversation.close()
    assert not any("not kept" in event.message for event in room.of(Notice)), "the log has it"


async def test_a_message_that_was_refused_takes_no_earlier_one_away(room: Room) -> None:
    """One that a kill had cut off left the conversation when the next one named a missing file."""
    conversation = room.open([ProviderError("down"), "Fine."])
    await conversation.send("The first")
    assert (await conversation.send("See @missing.txt")).reason == "failed"
    conversation.take_back()
    await conversation.send("The second")
    assert sent_by(conversation)[1:] == ["The first", "The second"]


async def test_what_came_with_a_refused_message_does_not_go_with_the_next(room: Room) -> None:
    conversation = room.open(["Fine."])
    conversation.user_input.share("$ date", VALUE, "tool")
    added = [Beside("skill.md", "The skill's own text.", "attached")]
    assert (await conversation.send("See @missing.txt", beside=added)).reason == "failed"
    assert conversation.user_input.waiting == ["$ date"]
    await conversation.send("The second")
    assert [part.path for part in newest(conversation).attachments] == ["$ date"]


async def test_what_goes_with_the_next_message_is_in_the_usage_shown(room: Room) -> None:
    conversation = room.open(
        ["One."], facts=ModelFacts(name="scripted/large", provider="scripted", window_tokens=100_000)
    )
    before = conversation.context.stats().used_tokens
    conversation.user_input.share_output("$ cat x", "a line of text\n" * 400)
    stats = conversation.context.stats()
    assert sum(stats.parts.values()) == sum(stats.breakdown.values()) == stats.used_tokens
    # Each number is rounded by itself.
    assert stats.breakdown["attachments"] == pytest.approx(stats.used_tokens - before, abs=1)
    assert stats.parts["attachments"] > 1_500
    conversation.set("model.temperature", 0.5)
    assert conversation.context.stats().used_tokens == stats.used_tokens
    conversation.user_input.forget_waiting()
    assert conversation.context.stats().used_tokens == before
    conversation.user_input.share_output("$ cat x", "a line of text\n" * 400)
    await conversation.send("Hm?")
    assert conversation.context.stats().used_tokens == pytest.approx(stats.used_tokens, rel=0.1)
    point = conversation.rewinds.last_turn()
    assert point is not None
    await conversation.rewinds.go_back(point, await conversation.rewinds.plan(point), "chat")
    assert conversation.user_input.waiting == ["$ cat x"]
    assert conversation.context.stats().used_tokens == pytest.approx(stats.used_tokens, rel=0.1)
