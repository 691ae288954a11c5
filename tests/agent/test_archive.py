"""What recall finds: the whole log, other sessions, notes and daily memory files."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest
from msgspec.structs import replace

from nca.agent.archive import Archive
from nca.agent.conversation import Conversation
from nca.agent.memory import Memory, append_day, day_entries
from nca.agent.state import SessionState
from nca.config.loaded import defaults
from nca.context.view import Marker, Summary, View
from nca.messages import Message, ToolCall
from nca.models.catalog import ModelFacts
from nca.models.client import ModelRequest
from nca.sessions.store import Store
from nca.testing.scripted import ScriptedModel, ScriptedReply
from nca.vocabulary import count
from tests.sessions.samples import said

FACTS = ModelFacts(name="scripted/model", provider="scripted", window_tokens=20_000, can_use_tools=True)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "data" / "sessions.db") as store:
        yield store


def opened(store: Store, directory: Path, replies: list[ScriptedReply] | None = None) -> Conversation:
    model = ScriptedModel(replies or [], facts=FACTS)
    return Conversation.open(defaults(), store=store, model=model, directory=directory, sees_all_sessions=True)


async def test_what_was_cleared_is_found_by_the_model(store: Store, tmp_path: Path) -> None:
    call = ToolCall("r1", "recall", '{"query": "what is the password of the lighthouse"}')
    seen: list[ModelRequest] = []

    def last(request: ModelRequest) -> str:
        seen.append(request)
        return "It is 4711."

    conversation = opened(store, tmp_path, ["Noted.", Message("assistant", None, (call,)), last])
    await conversation.send("The lighthouse password is 4711.")
    conversation.context.clear()
    assert "4711" not in str(conversation.context.effective_history())
    await conversation.send("Do you remember it?")
    result = seen[0].messages[-1]
    assert result["role"] == "tool"
    assert "The lighthouse password is 4711." in result["content"]
    assert (
        conversation.context.archive.expand(conversation.context.search("lighthouse password")[0].id)
        == "The lighthouse password is 4711."
    )
    # Neither the call nor its result is in the way of the next search.
    assert {hit.seq for hit in conversation.context.search("password of the lighthouse") if hit.score > 1} <= {1, 2}


async def test_other_sessions_are_found_on_request(store: Store, tmp_path: Path) -> None:
    with store.create(directory="/", model="m") as other:
        other.log.append(said("the walrus is in another session"))
    conversation = opened(store, tmp_path)
    assert conversation.context.search("walrus") == []
    hit = conversation.context.search("walrus", scope="all")[0]
    assert hit.session == other.info.id
    assert conversation.context.archive.expand(hit.id) == "the walrus is in another session"


async def test_notes_and_days_are_found(store: Store, tmp_path: Path) -> None:
    conversation = opened(store, tmp_path, ["ok"])
    conversation.memory.note("Ann likes tea")
    conversation.memory.note("The deploy key is in the blue folder")
    append_day(tmp_path / ".nca" / "memory.json", "We painted the fence green.", date(2031, 5, 9), heading="Garden")
    await conversation.send("Please deploy the garden.")
    found = conversation.context.search("where is the deploy key")
    assert [hit.role for hit in found] == ["user", "assistant", "note"]
    assert found[-1].id == "note:2"
    assert conversation.context.archive.expand("note:2") == "The deploy key is in the blue folder"
    day = conversation.context.search("what colour is the fence")[-1]
    assert (day.id, day.role) == ("day:2031-05-09:1", "day")
    assert "painted the fence green" in conversation.context.archive.expand(day.id)
    conversation.context.clear()
    assert conversation.context.search("fence")[-1].id == day.id


async def test_notes_that_cannot_be_read_are_no_error(store: Store, tmp_path: Path) -> None:
    conversation = opened(store, tmp_path, ["ok"])
    await conversation.send("the walrus")
    (tmp_path / ".nca").mkdir()
    (tmp_path / ".nca" / "memory.json").write_text("not notes")
    assert conversation.context.search("walrus")[0].seq == 1
    assert conversation.context.archive.expand("note:1") == ""


def test_a_link_is_no_day(tmp_path: Path) -> None:
    notes = tmp_path / "memory.json"
    (tmp_path / "memory").mkdir()
    (tmp_path / "secret").write_text("## secret\n\nwalrus")
    (tmp_path / "memory" / "2031-05-09.md").symlink_to(tmp_path / "secret")
    (tmp_path / "memory" / "other.md").write_text("## other\n\nwalrus")
    assert day_entries(notes) == []
    (tmp_path / "memory" / "2031-05-10.md").write_text("## One\n\na\n\n## Two\n\nb\n")
    assert day_entries(notes) == [(date(2031, 5, 10), 1, "One\n\na"), (date(2031, 5, 10), 2, "Two\n\nb")]


async def test_a_range_is_shown_together(store: Store, tmp_path: Path) -> None:
    conversation = opened(store, tmp_path, ["second"])
    await conversation.send("first")
    assert conversation.context.archive.expand("1-2") == "[1]\nfirst\n\n[2]\nsecond"
    assert conversation.context.archive.expand("2-1") == "[1]\nfirst\n\n[2]\nsecond"
    assert conversation.context.archive.expand(f"{conversation.session.info.id}:1-9") == "[1]\nfirst\n\n[2]\nsecond"
    conversation.session.log.append(said(*map(str, range(3, 61))))
    assert conversation.context.archive.expand("1-99").endswith("[50]\n50\n\n[more: recall expand=51-60]")
    assert conversation.context.archive.expand("51-60").endswith("[60]\n60")


async def test_a_call_is_shown_with_what_came_of_it(store: Store, tmp_path: Path) -> None:
    conversation = opened(store, tmp_path, ["second"])
    await conversation.send("first")
    calls = (ToolCall("a", "shell", '{"command": "make test"}'), ToolCall("b", "shell", '{"command": "ls"}'))
    results = [Message("tool", text, tool_call_id=id, name="shell") for id, text in (("a", "42 passed"), ("b", "x.py"))]
    conversation.session.log.append([Message("assistant", None, calls), *results, *said("third")])
    shown = conversation.context.archive.expand("3")
    assert "make test" in shown
    assert shown.endswith("[4]\n42 passed\n\n[5]\nx.py")
    assert conversation.context.archive.expand("4") == "42 passed"
    assert conversation.context.archive.expand("3-3").endswith("x.py")
    assert conversation.context.archive.expand("99") == ""


def recalling(*arguments: str) -> Message:
    calls = [ToolCall(f"r{number}", "recall", text) for number, text in enumerate(arguments)]
    return Message("assistant", None, tuple(calls))


async def answers(conversation: Conversation, request: str = "Look it up.") -> list[str]:
    """What the model is told when its next reply calls recall."""
    head = conversation.session.log.head
    await conversation.send(request)
    return [entry.message.text for entry in conversation.session.log.entries(head) if entry.message.role == "tool"]


LIGHTHOUSE = "Never share it: the lighthouse password is 4711."


async def test_what_is_in_view_is_named_and_not_repeated(store: Store, tmp_path: Path) -> None:
    look = recalling('{"query": "lighthouse password"}', '{"scope": "messages"}')
    conversation = opened(store, tmp_path, ["Noted.", look, "ok", look, "ok"])
    await conversation.send(LIGHTHOUSE)
    assert all("[in view when asked: message 1" in text and "4711" not in text for text in await answers(conversation))
    conversation.context.clear()
    assert all("4711" in text and "[1] user" in text for text in await answers(conversation))


def test_of_messages_and_answers_the_one_that_answers_is_shown_from_where_it_answers(
    store: Store, tmp_path: Path
) -> None:
    rules = " ".join(f"Rule {number}: the guests keep the garden and the bottles in order." for number in range(40))
    hidden = f"{rules} The fire extinguisher hangs 3 metres from the socket. {rules}"
    with store.create(directory="/", model="m") as session:
        session.log.append(said("What rules?", hidden, "And the bottles?", rules, "Go on."))
        state = SessionState(store, session, defaults(), FACTS)
        state.history.view = View((Marker("gone", ((1, 4),), ""),), 5)
        archive = Archive(state, Memory(state, tmp_path))
        question = "how far does the fire extinguisher hang from the socket of the bottles"
        first, *_ = archive.recall(question, "answers", 10, 200).hits
        everything = archive.recall("", "answers", 10, 200).hits
    assert first.id == "2"
    assert "3 metres" in first.snippet
    assert [hit.id for hit in everything] == ["4", "2"]


async def test_the_request_that_asks_is_no_result(store: Store, tmp_path: Path) -> None:
    conversation = opened(store, tmp_path, [recalling('{"query": "where is the walrus"}'), "ok"])
    (text,) = await answers(conversation, "Where is the walrus?")
    assert text.startswith("Nothing was found.")
    assert "in the language in which it was said" in text


def test_what_a_record_quotes_is_in_view(store: Store, tmp_path: Path) -> None:
    with store.create(directory="/", model="m") as session:
        session.log.append(said(LIGHTHOUSE, "Noted.", "Never feed the gulls.", "Noted.", "Go on."))
        state = SessionState(store, session, defaults(), FACTS)
        state.history.view = View((Summary("s", ((1, 4),), f"The person said:\n- {LIGHTHOUSE}"),), 5)
        recalled = Archive(state, Memory(state, tmp_path)).recall("", "messages", 10, 200)
    assert [hit.id for hit in recalled.hits] == ["3"]
    assert recalled.in_view == [1]


async def test_five_recalls_of_one_step_share_one_part_of_a_small_window(store: Store, tmp_path: Path) -> None:
    queries = ('{"query": "walrus"}', '{"query": "seal"}', '{"scope": "messages"}', '{"expand": 3}', '{"query": "ice"}')
    look = recalling(*queries)
    model = ScriptedModel([*["Noted."] * 12, look, "ok"], facts=replace(FACTS, window_tokens=12_000))
    conversation = Conversation.open(defaults(), store=store, model=model, directory=tmp_path)
    for number in range(12):
        await conversation.send(f"You must feed walrus {number} and seal {number}. " + "Snow lies on the ice. " * 40)
    conversation.context.clear()
    told = await answers(conversation)
    assert len(told) == 5
    assert sum(map(count, told)) <= conversation.context.archive.room_tokens() + 5 * 60
    assert all("must feed walrus" in text for text in told[:3])
    shown = [message["content"] for message in model.requests[-1].messages if message["role"] == "tool"]
    assert shown == told


async def test_an_earlier_step_takes_no_room_from_a_person_who_asks(store: Store, tmp_path: Path) -> None:
    conversation = opened(store, tmp_path, [recalling('{"query": "a"}', '{"query": "b"}'), "ok"])
    whole = conversation.context.archive.room_tokens()
    await answers(conversation)
    assert conversation.context.archive.room_tokens() == whole


async def test_a_scope_names_a_turn(store: Store, tmp_path: Path) -> None:
    look = recalling('{"scope": "turn 3"}', '{"scope": "turn 4"}')
    conversation = opened(store, tmp_path, ["one", "two", look, "ok"])
    await conversation.send("first")
    await conversation.send("second")
    conversation.context.clear()
    third, fourth = await answers(conversation)
    assert third == fourth
    assert "[3] user" in third
    assert "messages 3-4: second\n[4] assistant" in third
    assert "first" not in third


async def test_what_recall_answered_can_be_read_again(store: Store, tmp_path: Path) -> None:
    conversation = opened(store, tmp_path, ["Noted.", recalling('{"query": "password"}'), "ok"])
    await conversation.send(LIGHTHOUSE)
    conversation.context.clear()
    (text,) = await answers(conversation)
    assert conversation.context.archive.expand("5") == text
