"""What is in the window, for /context and programs: the heaviest items and how much each matters."""

from __future__ import annotations

from pathlib import Path

import msgspec

from nca.messages import Message, ToolCall
from nca.models.catalog import ModelFacts
from nca.testing.scripted import ScriptedReply
from tests.agent.test_conversation import MIDDLE, Room

ROOMY = ModelFacts(name="scripted/roomy", provider="scripted", window_tokens=60_000)


def reading(call_id: str, name: str) -> Message:
    return Message("assistant", None, (ToolCall(call_id, "read_file", f'{{"path": "{name}"}}'),))


async def test_the_heaviest_items_say_how_much_they_matter_and_why(tmp_path: Path) -> None:
    (tmp_path / "long.txt").write_text("a line of text\n" * 200)
    (tmp_path / "short.txt").write_text("a line of text\n" * 20)
    replies: list[ScriptedReply] = [reading("a", "short.txt"), reading("b", "long.txt"), "Both are dull."]
    conversation = Room(tmp_path).open(replies, facts=ROOMY)
    await conversation.send("Read both." + " Take your time." * 10)
    stats = conversation.stats()
    heaviest = stats.heaviest[0]
    assert heaviest.label == "message 5, result of read_file"
    assert (heaviest.score, heaviest.reasons) == (0.7, ("a file in play",))
    assert [item.tokens for item in stats.heaviest] == sorted((item.tokens for item in stats.heaviest), reverse=True)
    (mine,) = [item for item in stats.heaviest if item.label.startswith("message 1, you: Read both.")]
    assert (mine.score, mine.reasons) == (0.9, ("your words",))
    written = msgspec.json.decode(msgspec.json.encode(stats))["heaviest"][0]
    assert written == {
        "label": heaviest.label,
        "tokens": heaviest.tokens,
        "score": 0.7,
        "reasons": ["a file in play"],
    }


async def test_without_scores_everything_else_is_the_same(tmp_path: Path) -> None:
    conversation = Room(tmp_path).open(["Hello."])
    await conversation.send("Hi.")
    with_scores, without = conversation.stats(), conversation.stats(with_scores=False)
    assert all(item.score is not None and item.reasons for item in with_scores.heaviest)
    assert all(item.score is None and not item.reasons for item in without.heaviest)
    labels = [(item.label, item.tokens) for item in with_scores.heaviest]
    assert [(item.label, item.tokens) for item in without.heaviest] == labels
    assert without.used_tokens == with_scores.used_tokens


async def test_a_summary_has_a_weight_and_no_score(tmp_path: Path) -> None:
    summary = "### 1. Goal and intent\nThe user asks many questions and wants short answers."
    conversation = Room(tmp_path).open([*["A long answer about it. " * 40] * 6, summary, summary], facts=MIDDLE)
    for number in range(6):
        await conversation.send(f"Question {number}?")
    await conversation.compact()
    summaries = [item for item in conversation.stats().heaviest if item.label.startswith("summary ")]
    assert summaries
    assert all(item.score is None for item in summaries)
