"""The compactor alone: what it asks a summarizer, and when it gives up."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from nca.agent.compaction_diff import compaction_diff
from nca.agent.conversation import Conversation
from nca.config.loaded import defaults
from nca.context.tokens import message_tokens
from nca.context.view import Marker, Stub
from nca.errors import ContextDoesNotFit, ProviderFailure, StoreError, UsageError
from nca.events import ContextCompaction, Event, Notice, SideRequestFinished
from nca.messages import Message, ToolCall, user_message
from nca.models.catalog import ModelFacts
from nca.sessions.store import Store
from nca.testing.scripted import ScriptedModel, ScriptedReply
from nca.wire import message_from_dict
from nca.words import Source, Span, words
from tests.agent.parts import OnlyModel, compactor_of, context_of, window_of
from tests.context.samples import agent_turn, talk

FACTS = ModelFacts("scripted/model", "scripted", 32_000)


@pytest.mark.parametrize(("learned", "summarizer", "limit"), [(4_000, "", 4_000), (0, "openai/gpt-4", 8_192)])
async def test_a_question_fits_the_window_as_it_is_known_by_now(learned: int, summarizer: str, limit: int) -> None:
    store, model = Store.open(None), ScriptedModel(["", ""], facts=FACTS)

    loaded = defaults().with_values({"model.summarizer": summarizer} if summarizer else {}, "the test")
    session = store.create(directory="/", model=FACTS.name)
    window = window_of(store, session, loaded, FACTS)
    window.append(*talk(400))
    window.learn_window(learned)
    outcome = await compactor_of(window, model, opener=OnlyModel(model)).compact("manual")
    assert outcome.compacted
    assert len(model.requests) == 2
    for request in model.requests:
        tokens = sum(message_tokens(message_from_dict(row)) for row in request.messages)
        assert 1_000 < window.meter.scaled(tokens) <= limit


async def test_listeners_hear_of_each_request_for_a_summary() -> None:
    store, model, events = Store.open(None), ScriptedModel(["", "The summary."], facts=FACTS), list[Event]()
    window = window_of(store, store.create(directory="/", model=FACTS.name), defaults(), FACTS)
    window.append(*talk(400))
    await compactor_of(window, model, events.append, opener=OnlyModel(model)).compact("manual")
    heard = [event for event in events if isinstance(event, SideRequestFinished)]
    assert [(event.purpose, event.model, event.failure) for event in heard] == [("summary", FACTS.name, "")] * 2
    assert all(event.usage is not None for event in heard)


@pytest.mark.parametrize(("off", "finds"), [([], "recall finds the rest"), (["*"], "/context search finds the rest")])
async def test_what_is_out_of_view_is_found_by_something_that_is_there(
    tmp_path: Path, off: list[str], finds: str
) -> None:
    values = {"tools.off": off, "model.summarizer": "none", "model.context_window": 16_000}
    loaded = defaults().with_values(values, "the test")
    with Store.open(None) as store:
        with store.create(directory="/", model=FACTS.name) as session:
            session.log.append(talk(400))
        model = ScriptedModel([""], facts=FACTS)
        chat = Conversation.open(loaded, store=store, model=model, directory=tmp_path, session=session.info.id)
        outcome = await chat.context.compact()
        assert f"; {finds})" in outcome.message
        await chat.close()


async def test_the_diffs_of_compactions_count_each_message_where_it_was_shortened() -> None:
    store = Store.open(None)
    loaded = defaults().with_values({"context.stages": ["prune"], "model.context_window": 8_000}, "the test")
    window = window_of(store, store.create(directory="/", model=FACTS.name), loaded, FACTS, prompt="")
    compactor = compactor_of(window, ScriptedModel([], facts=FACTS))
    shortened = []
    for name in ("one", "two"):
        window.append(*agent_turn(12, 200, name=name), *talk(1))
        preview = await compactor.preview()
        assert compactor.accept(preview).compacted
        with pytest.raises(UsageError, match="changed since the preview"):
            compactor.accept(preview)
        diff = compaction_diff(window, window.session.views.compactions()[-1])
        assert preview.stubbed == diff.shortened > 0
        shortened.append(diff.shortened)
    assert sum(shortened) == sum(isinstance(item, Stub) for item in window.history.view.items)


async def test_after_two_compactions_in_vain_one_event_says_so_and_no_third_is_tried() -> None:
    store, events = Store.open(None), list[Event]()
    loaded = defaults().with_values(
        {"context.stages": ["deduplicate"], "model.context_window": 8_000, "context.compact_threshold": 0.80},
        "the test",
    )
    window = window_of(store, store.create(directory="/", model=FACTS.name), loaded, FACTS, prompt="")
    compactor = compactor_of(window, ScriptedModel([""], facts=FACTS), events.append)

    async def grow_to(share: float) -> list[str]:
        """The phases of the compactions before the request at this usage. Nothing here can be deduplicated."""
        while window.measure().usage_ratio < share:
            window.append(*talk(1))
        events.clear()
        await compactor.before_request()
        return [event.phase for event in events if isinstance(event, ContextCompaction)]

    assert await grow_to(0.80) == ["starting", "skipped"]
    assert await grow_to(0.82) == []
    assert window.due() == "nothing"
    assert await grow_to(0.87) == ["starting", "insufficient"]
    assert await grow_to(0.97) == []
    assert window.due() == "nothing"
    # A stage more may help.
    window.use(loaded.with_value("context.stages", ["truncate"], "the test"), FACTS)
    assert window.due() == "compact"
    assert await grow_to(0.97) == ["starting", "completed"]


async def test_a_preview_that_is_due_comes_once_and_a_failure_is_said_as_one() -> None:
    store, events = Store.open(None), list[Event]()
    values = {"model.context_window": 8_000, "context.compact_threshold": 0.80, "context.auto": "preview"}
    loaded = defaults().with_values({"context.stages": ["prune"], **values}, "the test")
    window = window_of(store, store.create(directory="/", model=FACTS.name), loaded, FACTS, prompt="")
    compactor = compactor_of(window, ScriptedModel([], facts=FACTS), events.append)
    while window.due() != "compact":
        window.append(*agent_turn(1, 200), *talk(1))
    for _ in range(2):
        await compactor.before_request()
    window.session.close()
    with pytest.raises(StoreError):
        await compactor.compact("manual")
    phases = [event.phase for event in events if isinstance(event, ContextCompaction)]
    assert phases == ["preview", "starting", "failed"]


async def test_after_a_refusal_that_names_no_limit_less_is_sent_than_was() -> None:
    store = Store.open(None)
    loaded = defaults().with_value("model.summarizer", "none", "the test")
    window = window_of(store, store.create(directory="/", model=FACTS.name), loaded, FACTS)
    window.append(*talk(60))
    before = window.measure()
    assert before.used_tokens < 0.4 * before.budget.budget_tokens
    refused = ProviderFailure("compact", is_overflow=True)
    compactor = compactor_of(window, ScriptedModel([], facts=FACTS))
    assert await compactor.recover(refused, share=0.7, explain=lambda: None)
    assert window.measure().used_tokens <= 0.7 * before.used_tokens


@pytest.mark.parametrize("source", ["typed", "pasted"])
async def test_a_message_larger_than_the_window_is_cut_and_one_line_says_once_how_much_the_model_sees(
    source: Source,
) -> None:
    store, events = Store.open(None), list[Event]()
    loaded = defaults().with_values({"model.summarizer": "none", "model.context_window": 8_000}, "the test")
    window = window_of(store, store.create(directory="/", model=FACTS.name), loaded, FACTS)
    compactor = compactor_of(window, ScriptedModel([], facts=FACTS), events.append)
    lines = [f"{number}: the wind over station {number * 7919 % 9973} is weak." for number in range(5_000)]
    window.append(*talk(3), user_message(words("\n".join(lines), source)))
    seq, context = window.history.head, context_of(window, compactor)
    await compactor.before_request()
    seen = str(window.request_messages()[-1]["content"]).splitlines()
    kept = sum(line in seen for line in lines)
    assert kept > 20
    assert lines[0] in seen
    assert lines[-1] in seen
    (notice,) = (event for event in events if isinstance(event, Notice))
    told = re.fullmatch(
        r"Your message is larger than the window: the model sees ([\d,]+) of its 5,000 lines;"
        rf" /context show {seq} has all\.",
        notice.message,
    )
    assert told is not None
    assert any("cut from 5,000 lines" in line for line in seen)
    # A line of which only a part is left counts too: at most one at each gap.
    assert kept <= int(told[1].replace(",", "")) <= kept + sum("[…]" in line for line in seen)
    # With a pin beside it less of it has room: later compactions of the turn cut it again, and nobody is told twice.
    for turn in range(3):
        while window.due() != "compact":
            window.append(Message("assistant", f"Station {turn} it is. " * 40))
        context.pin(window.history.head)
        await compactor.before_request()
    assert len([event for event in events if isinstance(event, ContextCompaction) and event.phase == "completed"]) == 4
    (again,) = (text for row in window.request_messages() if lines[0] in (text := str(row["content"])))
    assert 20 < sum(line in again.splitlines() for line in lines) < kept
    assert [event for event in events if isinstance(event, Notice)] == [notice]


async def test_a_message_that_the_window_could_hold_is_said_to_have_no_room_beside_the_rest() -> None:
    store, events = Store.open(None), list[Event]()
    loaded = defaults().with_values({"model.summarizer": "none", "model.context_window": 8_000}, "the test")
    window = window_of(store, store.create(directory="/", model=FACTS.name), loaded, FACTS)
    lines = [f"{number}: the wind is weak." for number in range(700)]
    said = (Span("Which station is it?", "typed"), Span("\n".join(lines), "pasted"))
    window.append(user_message(said))
    assert window.budget.budget_tokens < window.meter.scaled(window.history.run_tokens(1, 1)) < 8_000
    await compactor_of(window, ScriptedModel([], facts=FACTS), events.append).before_request()
    (notice,) = (event for event in events if isinstance(event, Notice))
    assert notice.message.startswith(
        "Your message does not fit beside the system prompt, the tools and pins: the model"
    )
    (total,) = re.findall(r"of its ([\d,]+) lines", notice.message)
    assert f"cut from {total} lines" in str(window.request_messages()[-1]["content"])


async def test_where_a_cut_is_forbidden_a_message_larger_than_the_window_is_refused_and_nothing_changes() -> None:
    store, events = Store.open(None), list[Event]()
    loaded = defaults().with_values({"context.fit": "refuse", "model.context_window": 8_000}, "the test")
    window = window_of(store, store.create(directory="/", model=FACTS.name), loaded, FACTS)
    window.append(*talk(3), Message("user", "The wind is weak.\n" * 5_000, source="typed"))
    before = window.history.view
    compactor = compactor_of(window, ScriptedModel([], facts=FACTS), events.append)
    with pytest.raises(ContextDoesNotFit, match=r"The message has [\d,]+ tokens, and the budget is 5,200"):
        await compactor.before_request()
    assert window.history.view == before
    assert [event for event in events if isinstance(event, Notice)] == []


async def test_a_pin_that_the_person_has_cleared_stays_hidden_after_a_compaction() -> None:
    store, loaded = Store.open(None), defaults().with_value("model.summarizer", "none", "the test")
    window = window_of(store, store.create(directory="/", model=FACTS.name), loaded, FACTS)
    compactor = compactor_of(window, ScriptedModel([], facts=FACTS))
    window.append(*talk(3))
    context = context_of(window, compactor)
    context.pin(2)
    context.clear()
    window.append(*talk(60))
    outcome = await compactor.compact("manual")
    assert outcome.compacted
    assert window.history.view.items[0] == Marker("clear6", ((1, 6),), "")


async def test_a_window_without_room_for_a_message_is_refused_before_any_compaction() -> None:
    store, events = Store.open(None), list[Event]()
    loaded = defaults().with_values({"model.context_window": 400}, "the test")
    window = window_of(store, store.create(directory="/", model=FACTS.name), loaded, FACTS, prompt="a rule " * 400)
    window.append(Message("user", "Hi."))
    compactor = compactor_of(
        window, model := ScriptedModel([], facts=FACTS), events.append, opener=OnlyModel(ScriptedModel([], facts=FACTS))
    )
    with pytest.raises(
        ContextDoesNotFit, match=r"The system prompt and the tools have [\d,]+ tokens, and the budget is"
    ):
        await compactor.before_request()
    assert not events, "nothing was there to compact"
    assert not model.requests


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("embedded/nosuch", "There is no embedded model"),
        ("openai/gpt-4.1", "OPENAI_API_BASE"),
        ("nosuchprovider/x", "nosuchprovider"),
    ],
)
async def test_the_chat_s_model_summarizes_where_the_named_one_cannot_be_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, why: str
) -> None:
    monkeypatch.setenv("OPENAI_API_BASE", "localhost:8080")
    events: list[Event] = []
    with Store.open(None) as store:
        with store.create(directory=str(tmp_path), model=FACTS.name) as session:
            session.log.append(talk(400))
        conversation = Conversation.open(
            defaults().with_value("model.summarizer", name, "the test"),
            store=store,
            model=ScriptedModel(["### 1. Goal and intent\nAll of it."] * 20, facts=FACTS),
            directory=tmp_path,
            session=session.info.id,
            listener=events.append,
        )
        for _ in range(2):
            assert (await conversation.context.compact()).compacted
            conversation.context.undo()
        asked = [event for event in events if isinstance(event, SideRequestFinished)]
        assert {(event.purpose, event.model, event.failure) for event in asked} == {("summary", FACTS.name, "")}
        told = [event.message for event in events if isinstance(event, Notice) and "in place of" in event.message]
        assert len(told) == 1
        assert told[0].startswith(f"{FACTS.name} summarizes in place of {name}: ")
        assert why in told[0]
        await conversation.close()


@pytest.mark.parametrize("fault", ["PRAGMA user_version = 5", "UPDATE changes SET body = x'5b5d'"])
async def test_a_record_of_files_that_cannot_be_read_stops_no_compaction(tmp_path: Path, fault: str) -> None:
    written: list[ScriptedReply] = [
        Message("assistant", tool_calls=(ToolCall("c1", "write_file", '{"path": "a", "content": "x"}'),)),
        "Yes.",
    ]
    loaded = defaults().with_values({"model.summarizer": "none", "agent.permission": "auto"}, "the test")

    def opened(store: Store, replies: list[ScriptedReply], session: str | None = None) -> Conversation:
        model = ScriptedModel(replies, facts=FACTS)
        return Conversation.open(loaded, store=store, model=model, directory=tmp_path, session=session)

    with Store.open(tmp_path / "s.db") as store:
        conversation = opened(store, written + ["word " * 2_000] * 5)
        for _ in range(6):
            assert (await conversation.send("Go on.")).reason == "answered"
        session = conversation.session.info.id
        await conversation.close()
    with closing(sqlite3.connect(tmp_path / "files.db")) as files, files:
        files.execute(fault)
    with Store.open(tmp_path / "s.db") as store:
        conversation = opened(store, ["Yes."], session)
        assert (await conversation.context.compact()).compacted
        assert conversation.context.kept()
        assert (await conversation.send("Go on.")).reason == "answered"
        await conversation.close()
