"""Statistics of the context for /context and programs: the largest items and their importance."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import msgspec

from nca.agent.stats import _in_words
from nca.context.policy import Rung
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
    stats = conversation.context.stats()
    heaviest = stats.heaviest[0]
    assert (heaviest.id, heaviest.label) == ("5", "result of read_file long.txt")
    assert (heaviest.score, heaviest.reasons) == (0.3, ("tool output",))
    assert [item.tokens for item in stats.heaviest] == sorted((item.tokens for item in stats.heaviest), reverse=True)
    (mine,) = [item for item in stats.heaviest if item.id == "1"]
    assert (mine.score, mine.reasons) == (0.9, ("your words",))
    written = msgspec.json.decode(msgspec.json.encode(stats))["heaviest"][0]
    assert written == {
        "label": heaviest.label,
        "id": "5",
        "tokens": heaviest.tokens,
        "score": 0.3,
        "reasons": ["tool output"],
    }


async def test_a_command_is_named_where_a_read_has_its_file(tmp_path: Path) -> None:
    command = "make test && " + "echo done " * 20
    call = ToolCall("a", "shell", msgspec.json.encode({"command": command, "timeout": 5}).decode())
    conversation = Room(tmp_path).open([Message("assistant", None, (call,)), "Done."], facts=ROOMY)
    await conversation.send("Test it.")
    labels = {item.id: item.label for item in conversation.context.items()}
    assert labels["2"].startswith("assistant: → shell make test && echo done")
    assert labels["3"].startswith("result of shell make test && echo done")
    assert len(labels["3"]) < 100


async def test_without_details_everything_else_is_the_same(tmp_path: Path) -> None:
    conversation = Room(tmp_path).open(["Hello."])
    await conversation.send("Hi.")
    whole, without = conversation.context.stats(), conversation.context.stats(with_details=False)
    assert all(item.score is not None and item.reasons for item in whole.heaviest)
    assert (without.parts, without.heaviest) == ({}, ())
    assert dataclasses.replace(whole, parts={}, heaviest=(), by_role=(), by_tool=(), by_file=(), repeated=()) == without


async def test_a_message_with_a_file_says_the_file_its_lines_and_the_words(tmp_path: Path) -> None:
    (tmp_path / "long.txt").write_text("a line of text\n" * 200)
    conversation = Room(tmp_path).open(["Dull.", "Still."], facts=ROOMY)
    await conversation.send("@long.txt")
    await conversation.send("Is @long.txt dull?")
    labels = {item.id: item.label for item in conversation.context.items()}
    assert labels["1"] == "you: @long.txt, 200 lines"
    assert labels["3"] == "you: @long.txt, 200 lines · Is @long.txt dull?"


async def test_the_parts_sum_to_used_and_tell_whose_words_the_prompt_is(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("Run the tests with make. " * 40)
    (tmp_path / "long.txt").write_text("a line of text\n" * 200)
    conversation = Room(tmp_path).open([reading("a", "long.txt"), "Dull."], facts=ROOMY)
    await conversation.send("Read it, and @long.txt too.")
    stats = conversation.context.stats()
    assert sum(stats.parts.values()) == stats.used_tokens == sum(stats.breakdown.values())
    assert stats.parts["system_prompt"] + stats.parts["instructions"] == stats.breakdown["system_prompt"]
    assert stats.parts["instructions"] > 200
    assert stats.parts["tool_results"] > stats.parts["tool_calls"] > 0
    assert stats.parts["attachments"] > 500
    of_messages = stats.used_tokens - stats.breakdown["system_prompt"] - stats.breakdown["tool_definitions"]
    assert sum(item.tokens for item in stats.heaviest) == of_messages == sum(role.tokens for role in stats.by_role)
    (results,) = [role.tokens for role in stats.by_role if role.role == "tool"]
    assert results == stats.parts["tool_results"]
    assert stats.by_tool[0][0] == "read_file"
    assert stats.by_file[0][0] == "long.txt"
    assert stats.by_file[0][1] > stats.by_tool[0][1]


async def test_a_summary_has_a_weight_and_no_score(tmp_path: Path) -> None:
    summary = "### 1. Goal and intent\nThe user asks many questions and wants short answers."
    conversation = Room(tmp_path).open([*["A long answer about it. " * 40] * 6, summary, summary], facts=MIDDLE)
    for number in range(6):
        await conversation.send(f"Question {number}?")
    await conversation.context.compact()
    summaries = [item for item in conversation.context.stats().heaviest if item.label.startswith("summary")]
    assert {item.id for item in summaries} <= {one.id for one in conversation.context.summaries()}
    assert summaries
    assert all(item.score is None for item in summaries)


def test_a_threshold_above_the_budget_is_said_as_such() -> None:
    """After an undo nca waits for a request that does not fit."""
    rung = Rung("compact", 3_901, is_reached=False)
    assert _in_words(rung, "on", 3_900) == "compaction when a request exceeds the budget of 3,900 tokens"
    assert _in_words(rung, "on", 4_000) == "compaction at 3,901 tokens"


async def test_a_pin_counts_while_its_message_is_shown(tmp_path: Path) -> None:
    conversation = Room(tmp_path).open(["Hello.", "Again."])
    await conversation.send("Hi.")
    await conversation.send("And?")
    for seq, pinned in ((1, 1), (3, 2)):
        conversation.context.pin(seq)
        assert conversation.context.stats().pinned_messages == pinned
    conversation.context.clear()
    assert conversation.context.stats().pinned_messages == 0
    conversation.context.undo()
    assert conversation.context.stats().pinned_messages == 2
