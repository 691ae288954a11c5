"""Unreadable messages in the log: one line says so, nothing moves, and all continues once they can be read."""

from __future__ import annotations

from pathlib import Path

import pytest

from nca.agent.conversation import Conversation
from nca.config.loaded import defaults
from nca.context.log import PAGE
from nca.errors import StoreDamaged
from nca.models.catalog import ModelFacts
from nca.sessions import Store
from nca.testing.scripted import ScriptedModel
from tests.context.samples import talk

FACTS = ModelFacts(name="scripted/m", provider="scripted", window_tokens=200_000)


def body_of_first(store: Store, body: str = "") -> str:
    """The stored first message; with a body, that in its place, past the trigger that holds the log."""
    connection = store._database.connection
    if body:
        trigger = connection.execute("SELECT sql FROM sqlite_schema WHERE name = 'messages_never_change'").get
        connection.execute("DROP TRIGGER messages_never_change")
        connection.execute("UPDATE messages SET body = ? WHERE seq = 1", (body,))
        connection.execute(str(trigger))
    return str(connection.execute("SELECT body FROM messages WHERE seq = 1").get)


def opened(store: Store, path: Path, session: str | None = None) -> Conversation:
    return Conversation.open(
        defaults(),
        store=store,
        model=ScriptedModel(["Yes."] * 9, facts=FACTS),
        directory=path,
        session=session,
    )


async def cleared(store: Store, path: Path, turns: int) -> str:
    """A session of which nothing is shown: its id."""
    conversation = opened(store, path)
    conversation._window.append(*talk(turns))
    conversation.context.clear()
    await conversation.close()
    return conversation.session.info.id


@pytest.mark.parametrize("turns", [4, PAGE])
async def test_undo_to_what_cannot_be_read_leaves_the_view_in_force(tmp_path: Path, turns: int) -> None:
    with Store.open(tmp_path / "s.db") as store:
        session = await cleared(store, tmp_path, turns)
        conversation = opened(store, tmp_path, session)
        request, whole = conversation.context.effective_history(), body_of_first(store)
        body_of_first(store, "{")
        with pytest.raises(StoreDamaged) as raised:
            conversation.context.undo()
        assert "\n" not in raised.value.message
        assert conversation.context.effective_history() == request
        await conversation.close()
        conversation = opened(store, tmp_path, session)
        assert conversation.context.effective_history() == request
        body_of_first(store, whole)
        assert conversation.context.undo() is not None
        assert len(conversation.context.effective_history()) == 2 * turns + 1
        await conversation.close()


async def test_what_is_said_while_its_page_cannot_be_read_is_kept_and_the_next_turn_goes_on(tmp_path: Path) -> None:
    with Store.open(tmp_path / "s.db") as store:
        session = await cleared(store, tmp_path, 4)
        conversation = opened(store, tmp_path, session)
        whole = body_of_first(store)
        body_of_first(store, "{")
        for text in ("One?", "Two?"):
            with pytest.raises(StoreDamaged, match=r"^message 1 cannot be read: [^\n]+$"):
                await conversation.send(text)
        body_of_first(store, whole)
        assert (await conversation.send("Three?")).reason == "answered"
        said = [entry.message.text for entry in conversation.context.entries][8:]
        assert said == ["One?", "Three?", "Yes."]
        await conversation.close()
