"""Unreadable messages in the log: one line says so, nothing moves, and all continues once they can be read."""

from __future__ import annotations

import re
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
from tests.sessions.samples import sqlite_of

FACTS = ModelFacts(name="scripted/m", provider="scripted", window_tokens=200_000)


def change_first(store: Store, change: str, seq: int = 1) -> None:
    """Change a stored message past the trigger that holds the log."""
    connection = sqlite_of(store).connection
    trigger = connection.execute("SELECT sql FROM sqlite_schema WHERE name = 'messages_never_change'").get
    connection.execute("DROP TRIGGER messages_never_change")
    connection.execute(f"UPDATE messages SET {change} WHERE seq = ?", (seq,))
    connection.execute(str(trigger))


def lose_first(store: Store) -> None:
    change_first(store, "seq = -1")


def find_first(store: Store) -> None:
    change_first(store, "seq = 1", -1)


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
        request = conversation.context.effective_history()
        lose_first(store)
        with pytest.raises(StoreDamaged) as raised:
            conversation.context.undo()
        assert "\n" not in raised.value.message
        assert conversation.context.effective_history() == request
        await conversation.close()
        conversation = opened(store, tmp_path, session)
        assert conversation.context.effective_history() == request
        find_first(store)
        assert conversation.context.undo() is not None
        assert len(conversation.context.effective_history()) == 2 * turns + 1
        await conversation.close()


async def test_what_is_said_while_its_page_cannot_be_read_is_kept_and_the_next_turn_goes_on(tmp_path: Path) -> None:
    with Store.open(tmp_path / "s.db") as store:
        session = await cleared(store, tmp_path, 4)
        conversation = opened(store, tmp_path, session)
        lose_first(store)
        for text in ("One?", "Two?"):
            finished = await conversation.send(text)
            assert finished.reason == "failed"
            assert finished.error is not None
            assert re.search(r"messages between 1 and \d+ are missing", finished.error.message)
        find_first(store)
        assert (await conversation.send("Three?")).reason == "answered"
        said = [entry.message.text for entry in conversation.context.entries][8:]
        assert said == ["One?", "Three?", "Yes."]
        await conversation.close()


@pytest.mark.parametrize("seq", range(1, 9))
async def test_a_damaged_message_is_sent_as_such_and_the_conversation_goes_on(tmp_path: Path, seq: int) -> None:
    with Store.open(tmp_path / "s.db") as store:
        conversation = opened(store, tmp_path)
        conversation._window.append(*talk(4))
        await conversation.close()
        change_first(store, "body = CAST(x'7bff' AS TEXT)", seq)
        conversation = opened(store, tmp_path, conversation.session.info.id)
        assert (await conversation.send("And now?")).reason == "answered"
        sent = conversation.context.effective_history()
        assert f"[message {seq} is damaged; 2 bytes]" in str(sent)
        await conversation.close()
