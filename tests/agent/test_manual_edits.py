"""Changes of the view by the person: shorten messages, summarize one part, undo all of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from nca.agent.conversation import Conversation
from nca.context.record.piece import Section
from nca.context.record.text import HEADINGS
from nca.context.rules.untouchable import COLLAPSE
from nca.context.summary import HEADER
from nca.context.view import Stub, Summary
from nca.errors import UsageError
from nca.messages import Message, ToolCall, Usage
from nca.models.catalog import ModelFacts
from nca.models.client import ModelRequest, Reply
from nca.testing.scripted import ScriptedReply, count_request_tokens
from tests.agent.test_conversation import Room

ROOMY = ModelFacts(name="scripted/roomy", provider="scripted", window_tokens=60_000)
TALK = "The parser reads src/parse.py and fails at line 12 with ValueError: bad token. " * 12
SUMMARY = "## Goal and intent\n\nThe parser in src/parse.py fails at line 12 with ValueError: bad token."


def reading(call_id: str) -> Message:
    return Message("assistant", None, (ToolCall(call_id, "read_file", '{"path": "long.txt"}'),))


@pytest.fixture
async def read_twice(tmp_path: Path) -> Conversation:
    """1 you · 2 call · 3 result · 4 answer · 5 you · 6 call · 7 result · 8 answer · 9 you · 10 answer."""
    (tmp_path / "long.txt").write_text("a line of text\n" * 300)
    replies: list[ScriptedReply] = [
        reading("a"),
        f"One. {TALK}",
        reading("b"),
        f"Two. {TALK}",
        f"Three. {TALK} {TALK}",
        SUMMARY,
        SUMMARY,
    ]
    conversation = Room(tmp_path).open(replies, facts=ROOMY)
    for text in ("Read it.", "Again.", f"And now? {TALK}"):
        await conversation.send(text)
    return conversation


def shown(conversation: Conversation) -> list[str]:
    return [str(row["content"]) for row in conversation.context.effective_history()[1:]]


async def test_collapse_shows_results_in_short_and_both_ways_back_work(read_twice: Conversation) -> None:
    before = read_twice.context.effective_history()
    record = read_twice.context.collapse([7])
    assert record is not None
    assert (record.trigger, record.stages) == ("manual", (COLLAPSE,))
    assert record.tokens_after == read_twice.context.stats().used_tokens < record.tokens_before
    assert shown(read_twice)[6] == "[cleared: recall expand=7]"
    assert read_twice.context.collapse([7]) is None
    read_twice.context.expand("7")
    assert read_twice.context.effective_history() == before
    read_twice.context.undo()
    assert shown(read_twice)[6] == "[cleared: recall expand=7]"
    read_twice.context.undo()
    assert read_twice.context.effective_history() == before


async def test_a_read_that_a_later_one_covers_becomes_a_pointer_to_it(read_twice: Conversation) -> None:
    (repeated,) = read_twice.context.stats().repeated
    assert (repeated.path, repeated.seqs) == ("long.txt", (3,))
    saved = read_twice.context.stats().used_tokens
    read_twice.context.collapse(list(repeated.seqs))
    assert shown(read_twice)[2] == "[File long.txt - refer to latest read below]"
    assert read_twice.context.stats().repeated == ()
    assert 0.5 < (saved - read_twice.context.stats().used_tokens) / repeated.tokens < 1.5


async def test_words_are_cut_to_both_their_ends_and_the_answered_question_too(read_twice: Conversation) -> None:
    read_twice.context.collapse([8, 9])
    stubs = [item for item in read_twice.context.view.items if isinstance(item, Stub)]
    assert [stub.seq for stub in stubs] == [8, 9]
    assert shown(read_twice)[7].startswith("Two. The parser")
    assert "left out; recall expand=9 …]" in shown(read_twice)[8]
    assert len(shown(read_twice)[8]) < 200


async def test_what_may_not_be_touched_is_refused_and_nothing_changes(read_twice: Conversation) -> None:
    read_twice.context.pin(3)
    view = read_twice.context.view
    for seqs, words in (([3], "pinned"), ([7, 99], "no message 99"), ([7, 3], "pinned")):
        with pytest.raises(UsageError, match=words):
            read_twice.context.collapse(seqs)
    await read_twice.context.compact(only=(1, 8))
    with pytest.raises(UsageError, match="already hidden"):
        read_twice.context.collapse([7])
    read_twice.context.undo()
    assert read_twice.context.view == view


async def test_from_a_message_on_everything_goes_to_one_summary_and_the_earlier_stays(
    read_twice: Conversation,
) -> None:
    before = read_twice.context.effective_history()
    only = read_twice.context.part(5, is_later=True)
    assert only == (5, 10)
    outcome = await read_twice.context.compact("the parser", only)
    assert outcome.compacted
    assert read_twice.context.effective_history()[:5] == before[:5]
    (summary,) = [item for item in read_twice.context.view.items if isinstance(item, Summary)]
    assert summary.ranges == ((5, 10),)
    assert len(shown(read_twice)) == 5
    assert read_twice.context.history()[-1].stages == ("summarize",)
    read_twice.context.undo()
    assert read_twice.context.effective_history() == before


async def test_before_a_message_all_goes_and_it_stays(read_twice: Conversation) -> None:
    before = read_twice.context.effective_history()
    await read_twice.context.compact(only=read_twice.context.part(9, is_later=False))
    (summary,) = read_twice.context.summaries()
    assert summary.ranges == ((1, 8),)
    assert read_twice.context.effective_history()[2:] == before[9:]
    with pytest.raises(UsageError, match="already hidden"):
        read_twice.context.part(4, is_later=True)


async def test_a_call_goes_with_its_results_and_a_pin_stays(read_twice: Conversation) -> None:
    read_twice.context.pin(9)
    await read_twice.context.compact(only=read_twice.context.part(7, is_later=True))
    (summary,) = read_twice.context.summaries()
    assert summary.ranges == ((6, 8), (10, 10))
    assert any(text.startswith("And now?") for text in shown(read_twice))


async def test_a_later_summary_is_not_merged_into_one_that_stands_before_what_stays(read_twice: Conversation) -> None:
    await read_twice.context.compact(only=(1, 4))
    await read_twice.context.compact(only=(9, 10))
    assert [summary.ranges for summary in read_twice.context.summaries()] == [((1, 4),), ((9, 10),)]


async def test_the_summarizer_reads_only_what_goes(tmp_path: Path) -> None:
    asked: list[str] = []

    def listen(request: ModelRequest) -> str:
        asked.append(str(request.messages))
        return SUMMARY

    replies: list[ScriptedReply] = [f"Apples. {TALK * 6}", f"Pears. {TALK * 6}", listen]
    conversation = Room(tmp_path).open(replies, facts=ROOMY)
    await conversation.send(f"About apples? {TALK}")
    await conversation.send(f"About pears? {TALK}")
    await conversation.context.compact(only=(3, 4))
    (question,) = asked
    assert "About pears?" in question
    assert "About apples?" not in question


async def test_what_expand_says_is_what_is_shown_where_the_provider_has_counted_that_view_before(
    read_twice: Conversation,
) -> None:
    reported = read_twice.context.stats().used_tokens
    await read_twice.context.compact(only=(1, 8))
    (summary,) = read_twice.context.summaries()
    record = read_twice.context.expand(summary.id)
    assert record is not None
    assert record.tokens_after == read_twice.context.stats().used_tokens == reported


async def test_no_pointer_is_left_to_a_read_that_is_shown_in_short_too(read_twice: Conversation) -> None:
    read_twice.context.collapse([3, 7])
    assert shown(read_twice)[2::4][:2] == ["[cleared: recall expand=3]", "[cleared: recall expand=7]"]
    read_twice.context.undo()
    read_twice.context.collapse([3])
    read_twice.context.collapse([7])
    assert shown(read_twice)[2] == "[cleared: recall expand=3]"


async def test_the_number_is_the_same_again_where_nothing_was_asked_since_the_compaction(tmp_path: Path) -> None:
    room = Room(tmp_path)

    def counting(beside: int) -> Callable[[ModelRequest], Reply]:
        """A provider that adds so many tokens of its own to a request."""

        def reply(request: ModelRequest) -> Reply:
            usage = Usage(count_request_tokens(request.messages, request.tools) + beside, 300)
            return Reply(Message("assistant", f"Yes. {TALK}"), usage)

        return reply

    conversation = room.open([counting(0), counting(600), counting(600), SUMMARY], facts=ROOMY)
    for text in ("One?", "Two?", f"And now? {TALK}"):
        await conversation.send(text)
    await conversation.context.compact(only=(1, 4))
    used = conversation.context.stats()
    assert used.is_estimate
    await conversation.close()
    conversation = room.open([], facts=ROOMY, session=conversation.session.info.id)
    assert conversation.context.stats().used_tokens == used.used_tokens
    await conversation.close()


async def test_undo_takes_back_pins_too_and_a_pin_changes_no_number(tmp_path: Path) -> None:
    room = Room(tmp_path)
    conversation = room.open([f"Yes. {TALK}"] * 3, facts=ROOMY)
    for text in ("One?", "Two?", "Three?"):
        await conversation.send(text)
    context, before = conversation.context, conversation.context.stats().used_tokens
    context.pin(1, 3)
    context.unpin(3)
    for pins in ([1, 3], []):
        assert context.undo() is not None
        assert [pin.seq for pin in context.pins()] == pins
    assert context.undo() is None
    context.redo()
    assert [pin.seq for pin in context.pins()] == [1, 3]
    await conversation.close()
    conversation = room.open([], facts=ROOMY, session=conversation.session.info.id)
    stats = conversation.context.stats()
    assert (stats.used_tokens, stats.is_estimate, stats.pinned_messages) == (before, False, 2)
    assert all(record.is_by_hand for record in conversation.context.history())
    await conversation.close()


async def test_of_a_record_that_came_with_the_messages_nothing_is_lost(read_twice: Conversation) -> None:
    """As an import has one: however much of it a person lets the model see, the next compaction reads all of it."""
    lines = "\n".join(f"- ({seq}) Apples of sort {seq} go into box {seq}." for seq in range(1, 40, 2))
    record = Message("user", f"{HEADER}\n\n{HEADINGS[Section.WORDS]}\n{lines}", source="nca")
    with read_twice.store.create(directory=str(read_twice.directory), model="m") as session:
        session.log.append([record, Message("user", "Go on."), Message("assistant", TALK * 8)])
    reopened = Conversation.open(
        read_twice.loaded,
        store=read_twice.store,
        model=read_twice.model,
        directory=read_twice.directory,
        session=session.info.id,
    )
    assert [item.is_collapsible for item in reopened.context.items()] == [True, False, True]
    assert reopened.context.collapse([1]) is not None
    assert "box 19" not in str(shown(reopened))
    await reopened.context.compact()
    (text, *_) = shown(reopened)
    assert text.count(HEADER) == 1
    assert all(f"Apples of sort {seq} go into box {seq}." in text for seq in range(1, 40, 2))
    assert reopened.context.entries[0].message == record
