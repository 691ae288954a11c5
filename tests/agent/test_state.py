"""A session that is many windows long opens, and is compacted, at the cost of what its window holds."""

from __future__ import annotations

from pathlib import Path

from nca.agent.conversation import Conversation
from nca.config.loaded import defaults
from nca.context.view import Marker, View
from nca.events import Event, Notice
from nca.messages import Entry, Message
from nca.models.catalog import ModelFacts
from nca.sessions import Store
from nca.sessions.transfer import new_copy
from nca.testing.scripted import ScriptedModel
from tests.context.samples import talk

FACTS = ModelFacts("scripted/model", "scripted", 8_000)
RULE = "Never touch the file zebra.py, whatever happens."


def long_session(store: Store) -> str:
    messages = [Message("user", RULE, source="typed"), Message("assistant", "Good."), *talk(1_500)]
    entries = [Entry(seq, message) for seq, message in enumerate(messages, 1)]
    return store.add(new_copy(entries, directory="/", model="m")).id


def opened(
    store: Store, session: str, folder: Path, events: list[Event], *, read_only: bool = False, auto: str = "on"
) -> Conversation:
    settings = defaults().with_value("context.auto", auto, "the test")
    model = ScriptedModel(["Yes."] * 20, facts=FACTS)
    return Conversation.open(
        settings,
        store=store,
        model=model,
        directory=folder,
        session=session,
        listener=events.append,
        read_only=read_only,
    )


async def test_its_newest_part_is_shown_and_undo_shows_the_rest(tmp_path: Path) -> None:
    with Store.open(tmp_path / "sessions.db") as store:
        session, events = long_session(store), list[Event]()
        conversation = opened(store, session, tmp_path, events)
        stats = conversation.context.stats()
        assert stats.used_tokens < 4 * FACTS.window_tokens
        [record] = conversation.context.history()
        assert (record.trigger, record.stages) == ("opened", ("truncate",))
        assert record.tokens_before > 10 * record.tokens_after
        [note] = [event.message for event in events if isinstance(event, Notice) and "left out" in event.message]
        assert note.startswith("Messages 1 to 2,")
        assert conversation.context.undo() is not None
        assert conversation.session.views.current() == View()
        assert conversation.context.redo() is not None
        await conversation.close()
        again, events = opened(store, session, tmp_path, (later := list[Event]())), later
        assert len(again.context.history()) == 1
        assert not [event for event in events if isinstance(event, Notice) and "left out" in event.message]
        await again.close()


async def test_the_first_compaction_keeps_what_was_said_before_it(tmp_path: Path) -> None:
    with Store.open(tmp_path / "sessions.db") as store:
        conversation = opened(store, long_session(store), tmp_path, [])
        finished = await conversation.send("And now?")
        assert finished.reason == "answered"
        assert RULE in str(conversation.context.effective_history())
        await conversation.close()


async def test_a_reader_writes_nothing(tmp_path: Path) -> None:
    with Store.open(tmp_path / "sessions.db") as store:
        session = long_session(store)
        reader = opened(store, session, tmp_path, [], read_only=True)
        assert any(isinstance(item, Marker) for item in reader._window.history.view.items)
        await reader.close()
        assert store.copy_of(session).head_view == 0


async def test_without_compaction_everything_stays_in_the_view(tmp_path: Path) -> None:
    with Store.open(tmp_path / "sessions.db") as store:
        conversation = opened(store, long_session(store), tmp_path, [], auto="off")
        assert conversation.session.views.current() == View()
        await conversation.close()
