"""Whole conversations with a real store on disk, real tools and a scripted model."""

from __future__ import annotations

import asyncio
import json
import re
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import anyio
import pytest
from msgspec.structs import replace

from nca.agent.approvals import Person
from nca.agent.conversation import Conversation
from nca.agent.mentions import Beside
from nca.config.loaded import defaults
from nca.context.view import Stub
from nca.errors import ConfigError, ContextDoesNotFit, OnlyReasoned, ProviderError, ProviderFailure, UsageError
from nca.events import (
    ContextCompaction,
    ContextWarning,
    ErrorRaised,
    Event,
    Notice,
    RequestStarted,
    TextDelta,
    ToolFinished,
    TurnFinished,
    UsageReported,
)
from nca.messages import Message, ToolCall, Usage
from nca.models.catalog import FROM_LIST, ModelFacts
from nca.models.client import ModelRequest, Reply
from nca.sessions.store import Store
from nca.sessions.usage import Learned
from nca.testing.scripted import ScriptedModel, ScriptedReply
from nca.tools.files.workspace import shown
from nca.words import text_of, words

SMALL = ModelFacts(name="scripted/small", provider="scripted", window_tokens=4_000)
MIDDLE = ModelFacts(name="scripted/middle", provider="scripted", window_tokens=6_000)
LONG_ANSWER = "A long and varied answer about the question, with details. " * 10


class Room:
    """A directory with a store, and everything that a conversation told."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.store = Store.open(path / "sessions.db")
        self.events: list[Event] = []

    def open(
        self,
        replies: list[ScriptedReply],
        *,
        facts: ModelFacts = SMALL,
        session: str | None = None,
        settings: dict[str, Any] | None = None,
        person: Person | None = None,
    ) -> Conversation:
        return Conversation.open(
            defaults().with_values(settings or {}, "the test"),
            store=self.store,
            model=ScriptedModel(replies, facts=facts),
            directory=self.path,
            session=session,
            listener=self.events.append,
            sees_all_sessions=True,
            person=person,
        )

    def of(self, kind: type[Any]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]


@pytest.fixture
def room(tmp_path: Path) -> Room:
    return Room(tmp_path)


def call(name: str, arguments: str, call_id: str = "c1") -> Message:
    return Message("assistant", None, (ToolCall(call_id, name, arguments),))


def summary_or(answer: str) -> Callable[[ModelRequest], str]:
    """A model that summarizes when it is asked to, and else answers."""

    def reply(request: ModelRequest) -> str:
        if "<transcript>" in str(request.messages[-1]["content"]):
            return "### 1. Goal and intent\nThe user asks many questions and wants short answers."
        return answer

    return reply


async def test_a_turn_with_a_tool_is_whole_in_the_log(room: Room) -> None:
    (room.path / "a.txt").write_text("hello world\n")
    conversation = room.open([call("read_file", '{"path": "a.txt"}'), "It says hello."])
    finished = await conversation.send("What is in a.txt?")
    assert (finished.reason, finished.text, finished.steps) == ("answered", "It says hello.", 2)
    roles = [entry.message.role for entry in conversation.context.entries]
    assert roles == ["user", "assistant", "tool", "assistant"]
    assert "hello world" in conversation.context.entries[2].message.text
    assert "".join(event.text for event in room.of(TextDelta)) == "It says hello."
    assert [event.is_error for event in room.of(ToolFinished)] == [False]
    assert room.events[-1] == finished


async def test_what_a_model_put_beside_a_call_goes_back_to_it_and_to_no_other(room: Room) -> None:
    signed = ToolCall("c1", "list_directory", "{}", {"extra_content": {"google": "Zm9v"}}, SMALL.name)
    conversation = room.open([Message("assistant", None, (signed,)), "Done.", "Again."])
    await conversation.send("List it.")
    session = conversation.session.info.id
    await conversation.close()
    conversation = room.open([], session=session)
    assert conversation.context.effective_history()[2]["tool_calls"][0]["extra_content"] == {"google": "Zm9v"}
    await conversation.use_model(ScriptedModel([], facts=ModelFacts("scripted/other", "scripted", 4_000)))
    assert "extra_content" not in conversation.context.effective_history()[2]["tool_calls"][0]


async def test_the_text_is_on_disk_before_the_model_is_asked(room: Room) -> None:
    seen: list[list[str]] = []

    def look(_: ModelRequest) -> str:
        session = room.store.find(conversation.session.info.id)
        with Store.open(room.path / "sessions.db", read_only=True) as other:
            reader = other.open_session(session.id, read_only=True)
            seen.append([entry.message.text for entry in reader.log.entries()])
        return "Yes."

    conversation = room.open([look])
    await conversation.send("Is it safe?")
    assert seen == [["Is it safe?"]]


async def test_sixty_turns_in_a_small_window_never_overflow(room: Room) -> None:
    conversation = room.open([summary_or(LONG_ANSWER)] * 120)
    for number in range(60):
        finished = await conversation.send(f"Question {number}: please never use tabs. " + "And more words. " * 8)
        assert finished.reason == "answered"
    assert all(event.used_tokens <= event.budget_tokens for event in room.of(RequestStarted))
    completed = [event for event in room.of(ContextCompaction) if event.phase == "completed"]
    records = conversation.context.history()
    assert len(completed) == len(records) >= 3
    for event, record in zip(completed, records, strict=True):
        assert (event.tokens_before, event.tokens_after) == (record.tokens_before, record.tokens_after)
        assert f"{event.tokens_before:,} → {event.tokens_after:,} tokens" in event.message
    starting = [event for event in room.of(ContextCompaction) if event.phase == "starting"]
    assert len(starting) == len(completed)
    assert conversation.context.stats().summaries <= 6
    assert "never use tabs" in str(conversation.context.effective_history())


async def test_numbers_of_event_record_and_stats_agree(room: Room) -> None:
    conversation = room.open([summary_or(LONG_ANSWER)] * 40)
    for number in range(6):
        await conversation.send(f"Question {number}")
    before = conversation.context.stats().used_tokens
    outcome = await conversation.context.compact()
    assert outcome.compacted
    assert outcome.tokens_before == before == conversation.context.history()[-1].tokens_before
    assert (
        outcome.tokens_after
        == conversation.context.stats().used_tokens
        == conversation.context.history()[-1].tokens_after
    )
    assert sum(conversation.context.stats().breakdown.values()) == conversation.context.stats().used_tokens


async def test_undo_and_redo_give_the_exact_view(room: Room) -> None:
    conversation = room.open([summary_or(LONG_ANSWER)] * 40, facts=MIDDLE)
    for number in range(6):
        await conversation.send(f"Question {number}")
    before, used = conversation.context.effective_history(), conversation.context.stats().used_tokens
    assert (await conversation.context.compact()).compacted
    after, used_after = conversation.context.effective_history(), conversation.context.stats().used_tokens
    assert after != before
    assert conversation.context.undo() is not None
    assert (conversation.context.effective_history(), conversation.context.stats().used_tokens) == (before, used)
    assert conversation.context.redo() is not None
    assert (conversation.context.effective_history(), conversation.context.stats().used_tokens) == (after, used_after)
    conversation.context.undo()
    await conversation.send("Later")
    assert conversation.context.effective_history()[: len(before)] == before
    assert conversation.context.undo() is None


async def test_clear_is_undoable(room: Room) -> None:
    conversation = room.open(["One.", "Two."])
    await conversation.send("First")
    before = conversation.context.effective_history()
    assert conversation.context.clear() is not None
    assert conversation.context.clear() is None
    assert [row["role"] for row in conversation.context.effective_history()] == ["system", "user"]
    conversation.context.undo()
    assert conversation.context.effective_history() == before


async def test_notices_once_for_each_crossing(room: Room) -> None:
    conversation = room.open([LONG_ANSWER] * 30, settings={"context.auto": "off"})
    for number in range(30):
        if (await conversation.send(f"Question {number}")).reason == "failed":
            break
    warnings = room.of(ContextWarning)
    assert [event.level for event in warnings] == ["info", "warning", "warning"]
    assert warnings[0].message == f"Context: {warnings[0].usage:.0%} used"
    assert warnings[1].message.startswith(f"Context: {warnings[1].usage:.0%} used (")
    assert "Auto-compaction is off" in warnings[1].message
    assert (warnings[1].usage < 1 < warnings[2].usage, "will not be sent" in warnings[2].message) == (True, True)
    assert not room.of(ContextCompaction)
    error = room.of(ErrorRaised)[-1]
    assert "Nothing was sent" in error.message
    assert error.exit_code == 4


async def test_without_compaction_the_turn_that_fills_the_budget_says_that_nothing_more_is_sent(room: Room) -> None:
    conversation = room.open([LONG_ANSWER, "word " * 6_000, "Never."], settings={"context.auto": "off"})
    await conversation.send("Question")
    await conversation.send("Another question")
    assert conversation.context.stats().usage_ratio > 1
    *_, last, finished = [event for event in room.events if isinstance(event, ContextWarning | TurnFinished)]
    assert isinstance(last, ContextWarning)
    assert last.message.endswith("Auto-compaction is off; the next message will not be sent: /compact makes room.")
    assert isinstance(finished, TurnFinished)
    assert finished.reason == "answered"
    before = len(room.of(ContextWarning))
    assert (await conversation.send("One more")).reason == "failed"
    assert len(room.of(ContextWarning)) == before


@pytest.mark.parametrize("is_known", [True, False])
async def test_an_error_that_a_learned_window_causes_names_the_way_out(room: Room, is_known: bool) -> None:
    if is_known:
        room.store.save_learned("scripted/unknown at its provider", Learned(window_tokens=1_200))
    facts = ModelFacts(name="scripted/unknown", provider="scripted", window_tokens=128_000)
    failure = ProviderFailure("compact", is_overflow=True, asked_tokens=9_000, limit_tokens=1_200)
    replies: list[ScriptedReply] = [] if is_known else [ProviderError("too long", failure=failure)]
    conversation = room.open(replies, facts=facts, settings={"agent.system_prompt": "Be brief. " * 1_000})
    await conversation.send("Hello")
    error = room.of(ErrorRaised)[-1]
    assert (error.exit_code, "is 1,200 tokens" in error.advice) == (4, True)
    assert error.advice.count("--context-window") == 1
    # The system prompt alone fills such a window, so no compaction follows.
    said = [event.message for event in room.of(ContextWarning) if event.level == "warning"]
    assert said or is_known
    assert all(one.endswith("No message fits beside the system prompt and the tools.") for one in said)


@pytest.mark.parametrize("origin", ["assumed", FROM_LIST])
async def test_an_overflow_is_recovered_and_its_window_learned(room: Room, origin: str) -> None:
    failure = ProviderFailure("compact", is_overflow=True, asked_tokens=9_000, limit_tokens=3_200)
    facts = ModelFacts(name="scripted/unknown", provider="scripted", window_tokens=128_000, window_is_assumed=True)
    facts = facts if origin == "assumed" else facts.with_window(128_000, FROM_LIST)
    replies: list[ScriptedReply] = [LONG_ANSWER] * 12
    conversation = room.open(
        [*replies, ProviderError("too long", failure=failure), summary_or(LONG_ANSWER), "Done."], facts=facts
    )
    for number in range(12):
        await conversation.send(f"Question {number}")
    finished = await conversation.send("One more")
    assert finished.reason == "answered"
    assert conversation.context.stats().window_tokens == 3_200
    assert [event.trigger for event in room.of(ContextCompaction) if event.phase == "completed"] == ["overflow"]
    assert room.store.learned("scripted/unknown at its provider").window_tokens == 3_200
    said = [event.message for event in room.of(Notice) if "its provider says" in event.message]
    window = f"The window of scripted/unknown is 3,200 tokens, its provider says; 128,000 were {origin}."
    assert said == [window]


async def test_a_refused_request_is_said_before_what_is_done_about_it(room: Room) -> None:
    too_large = ProviderError("too long", failure=ProviderFailure("compact", is_overflow=True))
    too_long = ProviderError("too many", failure=ProviderFailure("lower_max_tokens", is_overflow=False))
    facts = replace(SMALL, window_tokens=4_400)
    conversation = room.open([*[LONG_ANSWER] * 6, too_large, too_long, "Done."], facts=facts)
    for number in range(6):
        await conversation.send(f"Question {number}")
    assert (await conversation.send("One more")).reason == "answered"
    said = [event for event in room.events if isinstance(event, Notice | ContextCompaction)][-4:]
    assert [event.phase if isinstance(event, ContextCompaction) else event.message for event in said] == [
        "scripted/small refused the request as too large.",
        "starting",
        "completed",
        "scripted/small allows only shorter answers than it was asked for. The request is sent again.",
    ]


async def test_a_failed_turn_keeps_the_text_and_sends_it_once(room: Room) -> None:
    conversation = room.open([ProviderError("no key", advice="Set one."), "Now."])
    finished = await conversation.send("Hello")
    assert (finished.reason, finished.exit_code) == ("failed", 3)
    assert room.of(ErrorRaised)[-1] == ErrorRaised("no key", "Set one.", 3)
    finished = await conversation.send("Hello")
    assert (finished.reason, finished.exit_code) == ("answered", 0)
    assert [entry.message.text for entry in conversation.context.entries] == ["Hello", "Now."]


@pytest.mark.parametrize("text", ["", "  ", "\n\t\u3000\n"])
async def test_a_blank_message_is_refused_and_nothing_is_stored(room: Room, text: str) -> None:
    conversation = room.open(["Hi."])
    await conversation.send("Hello")
    finished = await conversation.send(text)
    assert (finished.reason, finished.text) == ("failed", "")
    assert room.of(ErrorRaised) == [ErrorRaised("The message is empty; nothing was sent.", "", 2)]
    assert [entry.message.text for entry in conversation.context.entries] == ["Hello", "Hi."]
    assert len(conversation.model.requests) == 1  # type: ignore[attr-defined]


async def test_a_file_without_a_word_is_a_message(room: Room) -> None:
    (room.path / "a.txt").write_text("hello world\n")
    conversation = room.open(["Hi."])
    finished = await conversation.send("", attachments=[room.path / "a.txt"])
    assert finished.reason == "answered"
    assert "hello world" in conversation.context.effective_history()[1]["content"]


@pytest.mark.parametrize("name", ["loop", "loop/a", "a\0b", "\ud800", "~nosuch/a", "x" * 300])
async def test_a_name_that_leads_to_no_file_is_said(room: Room, name: str) -> None:
    (room.path / "loop").symlink_to("loop")
    conversation = room.open(["Hi."])
    assert (await conversation.send("Hello", attachments=[Path(name)])).exit_code == 2
    assert room.of(ErrorRaised)[-1].message.startswith(f"@{shown(name)}: ")
    assert not list(conversation.context.entries)


async def test_a_file_that_there_is_no_room_for_is_not_sent_empty(room: Room) -> None:
    (room.path / "a.txt").write_text("hello world\n" * 2_000)
    conversation = room.open(["Hi."], settings={"context.admission.file_ratio": "0.1%"})
    assert (await conversation.send("What is in @a.txt?")).exit_code == 2
    assert room.of(ErrorRaised)[-1].message == "There is no room for the 24,000 bytes of a.txt."
    assert not list(conversation.context.entries)


@pytest.mark.parametrize(
    ("auto", "said"),
    [
        ("on", "Compaction follows before the next request."),
        ("off", "Auto-compaction is off; /compact makes room."),
        ("preview", "Auto-compaction only says what it would do (context.auto = preview); /compact makes room."),
    ],
)
async def test_the_warning_says_what_will_really_happen(room: Room, auto: str, said: str) -> None:
    settings = {"context.auto": auto, "context.compact_threshold": 0.5}
    facts = ModelFacts(name="scripted/middle", provider="scripted", window_tokens=12_000)
    conversation = room.open([summary_or(LONG_ANSWER)] * 60, settings=settings, facts=facts)
    while not (warnings := [event for event in room.of(ContextWarning) if event.level == "warning"]):
        await conversation.send("Question")
    assert warnings[0].message.endswith(said)
    assert (conversation.context.stats().next_rung == "compaction before the next request") == (auto == "on")
    room.events.clear()
    await conversation.send("Next")
    phases = {"on": ["starting", "completed"], "off": [], "preview": ["preview"]}
    assert [event.phase for event in room.of(ContextCompaction)] == phases[auto]


async def test_in_a_small_window_the_warning_names_the_usage_at_which_it_is_compacted(room: Room) -> None:
    facts = ModelFacts(name="scripted/middle", provider="scripted", window_tokens=12_000)
    conversation = room.open([summary_or("because " * 60)] * 90, settings={"context.idle_threshold": 1.0}, facts=facts)
    while not room.of(ContextCompaction):
        await conversation.send("Question")
    early, due = [event for event in room.of(ContextWarning) if event.level == "warning"]
    assert (early.usage < 0.85, early.message.endswith("Compaction at 95%.")) == (True, True)
    assert due.usage >= 0.95
    (done,) = [event for event in room.of(ContextCompaction) if event.phase == "completed"]
    assert 0.7 < done.tokens_after / due.budget_tokens <= 0.8


async def test_what_was_cleared_unanswered_can_be_sent_again(room: Room) -> None:
    conversation = room.open([ProviderError("down"), "Now."])
    await conversation.send("Hello")
    conversation.context.clear()
    assert (await conversation.send("Hello")).text == "Now."
    sent = conversation.model.requests[-1].messages  # type: ignore[attr-defined]
    assert [row["content"] for row in sent[1:]] == ["Hello"]


@pytest.mark.parametrize("second", ["Hello", "Hello again"])
async def test_a_message_that_went_back_to_the_prompt_gives_way_to_its_second_try(room: Room, second: str) -> None:
    conversation = room.open([ProviderError("down"), "Now.", "Yes."])
    used = conversation.context.stats().used_tokens
    await conversation.send("Hello")
    conversation.take_back()
    assert (await conversation.send(second)).text == "Now."
    assert sent_by(conversation)[1:] == [second]
    assert [entry.message.text for entry in conversation.context.entries] == ["Hello", second, "Now."]
    assert conversation.context.undo() is None, "nothing was compacted"
    # It is said once: what is sent without a failure before it takes nothing's place.
    await conversation.send("And more")
    assert sent_by(conversation)[1:] == [second, "Now.", "And more"]
    assert conversation.context.stats().used_tokens > used


async def test_a_message_that_was_taken_back_is_sent_by_no_later_chat(room: Room) -> None:
    """It came back when the chat was left and the session continued."""
    conversation = room.open(["Hi.", ProviderError("down")])
    await conversation.send("hello")
    await conversation.send("delete all the tests")
    conversation.take_back()
    session = conversation.session.info.id
    await conversation.close()
    conversation = room.open(["4.", "Fine."], session=session)
    await conversation.send("what is 2+2")
    assert sent_by(conversation)[1:] == ["hello", "Hi.", "what is 2+2"]
    assert [record.trigger for record in conversation.session.views.records()] == ["beside"]
    # It is in the log, and can be gone back to.
    assert {point.text for point in conversation.rewinds.points() if point.is_left} == {"delete all the tests"}


@pytest.mark.parametrize("second", ["one", "other"])
async def test_a_message_larger_than_the_window_leaves_as_any_other(room: Room, second: str) -> None:
    """It stood cut in the view, went to the model with the next message, and its second try came beside it."""
    long = "".join(f"line {number} of the wrong clipboard\n" for number in range(1_500))
    conversation = room.open(["Hi.", ProviderError("down"), "Fine."], facts=MIDDLE, person=Person())
    await conversation.send("hello")
    assert (await conversation.send(long)).reason == "failed"
    assert any(isinstance(item, Stub) for item in conversation.context.view.items)
    conversation.take_back()
    text = long if second == "one" else "what is 2+2"
    assert (await conversation.send(text)).text == "Fine."
    assert [sent[:9] for sent in sent_by(conversation)[1:]] == ["hello", "Hi.", text[:9]]
    while conversation.context.undo() is not None:
        sent = [str(row["content"]) for row in conversation.context.next_request().messages]
        assert sum(one.startswith("line 0") for one in sent) == (second == "one")


async def test_a_message_larger_than_the_window_waits_once_for_its_answer(room: Room) -> None:
    """In the next chat it was no message that waits, and sent again it was there twice."""
    long = "".join(f"line {number} of the log\n" for number in range(1_500))
    conversation = room.open([ProviderError("down")], facts=MIDDLE, person=Person())
    await conversation.send(long)
    session = conversation.session.info.id
    await conversation.close()
    conversation = room.open(["Fine."], facts=MIDDLE, session=session, person=Person())
    assert text_of(waits := conversation.context.unanswered()) == long
    assert (await conversation.send(waits)).text == "Fine."
    assert [entry.message.role for entry in conversation.context.entries] == ["user", "assistant"]


async def test_a_question_beside_the_turn_holds_no_message_back(room: Room) -> None:
    """The message stayed, was in the prompt again, and was sent twice."""

    def beside_or_down(request: ModelRequest) -> str:
        if "Which colour?" in str(request.messages[-1]["content"]):
            return "Blue."
        raise ProviderError("down")

    conversation = room.open([beside_or_down, beside_or_down, "Fine."])
    asked: list[asyncio.Task[str]] = []

    def hear(event: Event) -> None:
        if isinstance(event, ErrorRaised):
            asked.append(asyncio.ensure_future(conversation.beside.ask_meanwhile("Which colour?", lambda: None)))

    conversation.subscribe(hear)
    await conversation.send("Hello")
    await asked[0]
    conversation.beside.settle()
    conversation.take_back()
    assert (await conversation.send("Hello")).text == "Fine."
    assert sent_by(conversation)[1:] == ["Hello"]


@pytest.mark.parametrize("second", ["Why?", "Why not?"])
async def test_what_went_with_a_message_that_was_taken_back_goes_with_the_next(room: Room, second: str) -> None:
    conversation = room.open([ProviderError("down"), "It failed.", "Now."])
    conversation.user_input.share("the command's output", "3 failed", "tool")
    await conversation.send("Why?")
    conversation.take_back()
    await conversation.send(second)
    assert len(sent_by(conversation)) == 2
    assert sent_by(conversation)[-1].count("3 failed") == 1
    await conversation.send("And now?")
    assert sent_by(conversation)[-1] == "And now?"


async def test_what_belongs_to_a_message_that_was_taken_back_goes_with_no_other(room: Room) -> None:
    """The text of a skill or of a command of the person's own."""
    conversation = room.open([ProviderError("down"), "4."])
    await conversation.send("Follow wipe.md", beside=[Beside("wipe.md", "Delete every test.", "attached")])
    conversation.take_back()
    await conversation.send("what is 2+2?")
    assert sent_by(conversation)[1:] == ["what is 2+2?"]


async def test_a_message_that_did_not_fit_leaves_its_room_to_a_shorter_one(room: Room) -> None:
    conversation = room.open(["Fine."], settings={"context.auto": "off"})
    assert (await conversation.send("word " * 20_000)).reason == "failed"
    conversation.take_back()
    assert (await conversation.send("A short one")).text == "Fine."
    assert sent_by(conversation)[1:] == ["A short one"]


async def test_without_a_person_a_message_larger_than_the_window_is_refused_unless_it_may_be_cut(room: Room) -> None:
    """A batch program got a summary of a tenth of its document, as the answer to all of it."""
    talk = room.open([], settings={"model.context_window": 8_000})
    for _ in range(2):
        refused = await talk.send("word " * 20_000)
        assert (refused.reason, refused.exit_code) == ("failed", ContextDoesNotFit.exit_code)
        talk.set("context.fit", "auto")  # which is the default, also where it is said
    cut = room.open(["Fine."] * 2, settings={"model.context_window": 8_000, "context.fit": "cut"})
    assert (await cut.send("word " * 20_000)).reason == "answered"
    seen = room.open(["Fine."] * 2, settings={"model.context_window": 8_000}, person=Person())
    assert (await seen.send("word " * 20_000)).reason == "answered"


async def test_the_steps_of_a_failed_turn_go_on_where_its_text_is_sent_again(room: Room) -> None:
    look = call("list_directory", "{}")
    conversation = room.open([look, ProviderError("down"), "Seen.", ProviderError("down"), "Other."])
    assert (await conversation.send("Look around")).reason == "failed"
    conversation.take_back()
    assert (await conversation.send("Look around")).text == "Seen."
    roles = [row["role"] for row in conversation.model.requests[-1].messages]  # type: ignore[attr-defined]
    assert roles == ["system", "user", "assistant", "tool"]
    # Without its text back in the prompt, a message that failed stays: nobody types it again.
    await conversation.send("One")
    await conversation.send("Two")
    assert sent_by(conversation)[-2:] == ["One", "Two"]


@pytest.mark.parametrize("steps", [0, 1])
async def test_what_was_seen_of_an_answer_that_broke_off_gives_way_too(room: Room, steps: int) -> None:
    looks = [call("list_directory", "{}")] * steps
    conversation = room.open([*looks, LONG_ANSWER * 50, "Fine."])
    enough = asyncio.Event()
    conversation.subscribe(lambda event: enough.set() if isinstance(event, TextDelta) else None)
    sending = asyncio.ensure_future(conversation.run_turn(words("Tell me all")))
    await enough.wait()
    sending.cancel()
    await sending
    conversation.take_back()
    assert (await conversation.send("Tell me all")).text == "Fine."
    roles = [row["role"] for row in conversation.model.requests[-1].messages]  # type: ignore[attr-defined]
    assert roles == ["system", "user", *["assistant", "tool"] * steps]
    assert conversation.context.undo() is None, "nothing was compacted"


def sent_by(conversation: Conversation) -> list[str]:
    """The contents of the last request."""
    return [row["content"] for row in conversation.model.requests[-1].messages]  # type: ignore[attr-defined]


async def test_an_interrupted_answer_is_kept_and_marked(room: Room) -> None:
    conversation = room.open([LONG_ANSWER * 50, "Fine."])
    enough = asyncio.Event()
    conversation.subscribe(lambda event: enough.set() if isinstance(event, TextDelta) else None)
    sending = asyncio.ensure_future(conversation.run_turn(words("Tell me all")))
    await enough.wait()
    sending.cancel()
    finished = await sending
    assert finished.reason == "interrupted"
    last = conversation.context.entries[-1].message
    assert last.is_interrupted
    assert LONG_ANSWER.startswith(last.text[:10])
    assert (await conversation.send("Go on")).reason == "answered"


@pytest.mark.parametrize("kind", ["timeout", "wait_for", "cancel", "anyio", "anyio in a call"])
async def test_a_send_that_is_cancelled_keeps_its_answer_and_ends_its_caller(room: Room, kind: str) -> None:
    """A program's own time limit and shutdown: the next message of its loop was sent, and paid."""
    waits = call("shell", '{"command": "sleep 30"}')
    replies: list[ScriptedReply] = [waits if kind == "anyio in a call" else LONG_ANSWER * 50, "Fine.", "Never asked."]
    conversation = room.open(replies, settings={"agent.permission": "auto"})
    asked = asyncio.Event()

    def hear(event: Event) -> None:
        if isinstance(event, TextDelta):
            asked.set()
            time.sleep(0.01)  # so that the limits below end within the answer

    conversation.subscribe(hear)

    async def work() -> None:
        for text in ("One", "Two"):
            await conversation.send(text)

    if kind == "cancel":
        working = asyncio.create_task(work())
        await asked.wait()
        working.cancel()
        with pytest.raises(asyncio.CancelledError):
            await working
    elif kind.startswith("anyio"):
        # It knows its own cancellation by what the exception holds.
        with anyio.move_on_after(0.1 if kind == "anyio" else 1) as scope:
            await work()
        assert scope.cancelled_caught
    elif kind == "timeout":
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await work()
    else:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(work(), 0.1)
    question, answer, *results = (entry.message for entry in conversation.context.entries)
    assert question.text == "One"
    assert answer.is_interrupted or results
    assert LONG_ANSWER.startswith(answer.text[:10])
    assert (await conversation.send("Three")).text == "Fine."


def test_threads_that_send_at_once_never_get_each_others_answers(room: Room) -> None:
    conversation = room.open([LONG_ANSWER * 3, "Two."])
    begun = threading.Event()

    def hear(event: Event) -> None:
        if isinstance(event, TextDelta):
            begun.set()
            time.sleep(0.003)

    conversation.subscribe(hear)
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(asyncio.run, conversation.send("One"))
        begun.wait()
        with pytest.raises(UsageError, match="answering in another thread"):
            asyncio.run(conversation.send("Two"))
        assert first.result().text == LONG_ANSWER * 3
    assert asyncio.run(conversation.send("Two")).text == "Two."


async def test_the_step_limit_closes_every_pair(room: Room) -> None:
    loops = [call("list_directory", "{}", f"c{number}") for number in range(3)]
    conversation = room.open([*loops, "Fine."], settings={"agent.max_steps": 3})
    finished = await conversation.send("Look around forever")
    assert finished.reason == "max_steps"
    assert "limit of 3 steps" in conversation.context.entries[-1].message.text
    assert (await conversation.send("And now?")).reason == "answered"


def cut(text: str) -> Reply:
    return Reply(Message("assistant", text), Usage(100, 4_000), finish_reason="length")


async def test_an_answer_that_ends_for_length_goes_on_once(room: Room) -> None:
    conversation = room.open([cut("One, two, "), "three.", cut("Four, "), cut("five, "), "never"])
    first = await conversation.send("Count")
    second = await conversation.send("More")
    assert (first.text, first.reason, first.exit_code) == ("One, two, three.", "answered", 0)
    assert (second.text, second.reason, second.exit_code) == ("Four, five, ", "length", 1)
    roles = [(entry.message.role, entry.message.source) for entry in conversation.context.entries]
    assert roles == [("user", "typed"), ("assistant", ""), ("user", "nca"), ("assistant", "")] * 2
    assert "length limit" in conversation.model.requests[1].messages[-1]["content"]  # type: ignore[attr-defined]
    told = [event.message for event in room.of(Notice)]
    asked = "The model was asked to continue, and did."
    assert [said.endswith(asked) for said in told] == [True, True, False]
    assert told[1:] == [asked, told[0].removesuffix(f" {asked}")]


async def test_nothing_is_said_in_the_middle_of_an_answer_that_goes_on(room: Room) -> None:
    more = Reply(Message("assistant", "ly.", reasoning="Where was I?"), Usage(100, 5))
    await room.open([cut("Certain"), more]).send("Sure?")
    kinds = [type(event) for event in room.events]
    first, last = kinds.index(TextDelta), len(kinds) - kinds[::-1].index(TextDelta)
    assert Notice not in kinds[first:last]
    assert Notice in kinds[last:]


async def test_that_an_answer_goes_on_is_told_once_however_many_steps_follow(room: Room) -> None:
    look = Message("assistant", "First I look.", (ToolCall("c1", "list_directory", "{}"),))
    conversation = room.open([cut("I do it. "), look, "I have looked.", "never"])
    assert (await conversation.send("Do it")).steps == 2
    assert ["asked to continue" in event.message for event in room.of(Notice)] == [True]


async def test_reasoning_without_an_answer_is_asked_for_one_once(room: Room) -> None:
    conversation = room.open([OnlyReasoned("No text."), "Yes.", OnlyReasoned("No text."), OnlyReasoned("No text.")])
    assert (await conversation.send("Is it?")).text == "Yes."
    assert "Answer now" in conversation.model.requests[1].messages[-1]["content"]  # type: ignore[attr-defined]
    assert [event.message for event in room.of(Notice)] == ["No text. The model was asked to continue, and did."]
    failed = await conversation.send("And that?")
    assert room.of(Notice)[1].message == "The model was asked to continue."  # the error says why
    assert (failed.reason, failed.exit_code, len(conversation.model.requests)) == ("failed", 3, 4)  # type: ignore[attr-defined]


async def test_a_second_call_cut_by_length_ends_the_turn(room: Room) -> None:
    long = [Reply(call("list_directory", '{"path": "', f"c{number}"), finish_reason="length") for number in range(9)]
    conversation = room.open([*long[:2], "Shorter.", long[2], call("list_directory", "{}", "c"), long[3], "Done."])
    finished = await conversation.send("Look")
    assert (finished.reason, finished.steps) == ("length", 2)
    assert "several parts" in conversation.context.entries[2].message.text
    assert (await conversation.send("Go on")).text == "Shorter."
    assert (await conversation.send("And now?")).text == "Done."


async def test_calls_cut_by_length_are_not_run(room: Room) -> None:
    cut = Reply(call("list_directory", '{"path": "'), finish_reason="length")
    conversation = room.open([cut, "I see."])
    finished = await conversation.send("Look")
    assert finished.text == "I see."
    assert "not run" in conversation.context.entries[2].message.text
    sent = conversation.model.requests[1].messages  # type: ignore[attr-defined]
    assert sent[2]["tool_calls"][0]["function"]["arguments"] == "{}"


async def test_a_resumed_session_has_everything_and_the_same_number(room: Room) -> None:
    conversation = room.open([summary_or(LONG_ANSWER)] * 30)
    for number in range(6):
        await conversation.send(f"Question {number}")
    await conversation.context.compact()
    await conversation.send("After")
    used, sent, session = (
        conversation.context.stats().used_tokens,
        conversation.context.effective_history(),
        conversation.session.info.id,
    )
    await conversation.close()
    again = room.open(["Yes."], session=session)
    assert again.context.effective_history() == sent
    assert again.context.stats().used_tokens == used
    assert again.context.undo() is not None


async def test_attachments_come_along_within_their_budget(room: Room) -> None:
    (room.path / "big.txt").write_text("A sentence of a long file. " * 2_000)
    conversation = room.open(["Read."])
    finished = await conversation.send("Summarize @big.txt please")
    assert finished.reason == "answered"
    part = conversation.context.entries[0].message.attachments[0]
    assert part.path == "big.txt"
    assert part.is_cut
    assert part.original_bytes == 54_000
    assert "File truncated from 54000 bytes" in part.text
    stats = room.of(RequestStarted)[0]
    assert stats.used_tokens <= stats.budget_tokens


async def test_the_rest_of_an_attached_file_can_be_read_wherever_it_is(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    outside = tmp_path / "notes.txt"
    outside.write_text("".join(f"line {number} of the notes\n" for number in range(1, 20_000)))
    (tmp_path / "other.txt").write_text("a secret")
    room = Room(tmp_path / "project")
    read: list[ScriptedReply] = [
        lambda request: call("read_file", json.dumps({"path": str(outside), "offset": offset_in(request)})),
        call("read_file", json.dumps({"path": str(tmp_path / "other.txt")}), "c2"),
        "Read.",
    ]
    conversation = room.open(read)
    await conversation.send(f"Read @{outside} please")
    part = conversation.context.entries[0].message.attachments[0]
    last = part.text.splitlines()[-2]
    rest, refused = (entry.message.text for entry in conversation.context.entries if entry.message.role == "tool")
    assert rest.splitlines()[1].startswith(last[:12])
    assert "outside of the working directory" in refused


def offset_in(request: ModelRequest) -> int:
    found = re.search(r"read_file with offset=(\d+) shows the rest\]", str(request.messages[-1]["content"]))
    assert found is not None
    return int(found[1])


@pytest.mark.parametrize("text", ["Look at @missing/file.py", "See @image.bin"])
async def test_what_cannot_be_attached_is_not_sent(room: Room, text: str) -> None:
    (room.path / "image.bin").write_bytes(b"\0\1\2")
    conversation = room.open([])
    finished = await conversation.send(text)
    assert finished.reason == "failed"
    assert "Nothing was sent" in room.of(ErrorRaised)[-1].advice
    assert conversation.context.entries == ()


async def test_settings_change_at_once_or_not_at_all(room: Room) -> None:
    conversation = room.open(["Yes."])
    assert conversation.set("agent_max_context_tokens", "2000") == "context.max_tokens"
    assert conversation.context.stats().budget_tokens == 2_000
    with pytest.raises(ConfigError):
        conversation.set("context.compact_threshold", "1.5")
    with pytest.raises(ConfigError):
        conversation.set("model.max_output_tokens", "-1")
    assert conversation.context.stats().budget_tokens == 2_000


async def test_usage_is_reported_for_every_request(room: Room) -> None:
    conversation = room.open(["Yes.", "No."])
    await conversation.send("One")
    await conversation.send("Two")
    assert len(room.of(UsageReported)) == 2
    assert conversation.session.usage.totals().prompt_tokens == sum(
        event.usage.prompt_tokens for event in room.of(UsageReported)
    )
    assert [event.reason for event in room.of(TurnFinished)] == ["answered", "answered"]


async def test_a_large_result_is_cut_and_kept_whole_beside(room: Room) -> None:
    for folder in range(100):
        (room.path / f"folder {folder}").mkdir()
        (room.path / f"folder {folder}" / "a.txt").write_text(f"needle {folder} {'-' * 400}\n")
    conversation = room.open([call("grep", '{"pattern": "needle", "max_results": 100}'), "Read."])
    await conversation.send("Read it")
    text = conversation.context.entries[2].message.text
    assert "[Output truncated from" in text
    assert room.of(ToolFinished)[0].summary == "100 matches · cut for the model"
    whole = Path(text.rsplit("The whole output is in ", 1)[1].rstrip("]"))
    assert all(f"needle {number} " in whole.read_text() for number in range(100))
    assert whole.stat().st_mode & 0o777 == 0o600


async def test_an_empty_session_leaves_nothing_behind(room: Room) -> None:
    conversation = room.open([])
    await conversation.close()
    assert room.store.list() == []
