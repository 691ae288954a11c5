"""Reminders and sections in a conversation: sent with the person's message, once, and never moved."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from nca.agent.conversation import Conversation
from nca.config.loaded import defaults
from nca.errors import ConfigError
from nca.models.catalog import ModelFacts
from nca.sessions.store import Store
from nca.testing.scripted import ScriptedModel
from nca.tools.toolbox import Toolbox

FACTS = ModelFacts(name="scripted/small", provider="scripted", window_tokens=4_000)
SETTINGS = {
    "context.inject": [{"every_turns": 2, "text": "Be concise."}, {"over_tokens": 500, "text": "Getting long."}],
    "context.section": [{"label": "Role", "text": "You are a tester."}],
}


def opened(
    store: Store,
    path: Path,
    model: ScriptedModel,
    *,
    session: str | None = None,
    given: dict[str, Any] | None = None,
) -> Conversation:
    loaded = defaults().with_values(SETTINGS if given is None else given, "the test")
    # The numbers must not depend on how long the definitions of nca's own tools are.
    return Conversation.open(loaded, store=store, model=model, directory=path, session=session, toolbox=Toolbox())


def replies(*texts: str) -> ScriptedModel:
    return ScriptedModel(list(texts), facts=FACTS)


async def test_it_enters_with_the_message_when_due_and_stays_as_it_was_sent(tmp_path: Path) -> None:
    model = replies(*["An answer. " * 40] * 4)
    with Store.open(tmp_path / "sessions.db") as store:
        conversation = opened(store, tmp_path, model)
        for number in range(1, 5):
            await conversation.send(f"Question {number}")
        sent = [request.messages for request in model.requests]
        users = [row["content"] for row in sent[-1] if row["role"] == "user"]
        assert users[0] == "Question 1"
        assert users[1].startswith("Question 2\n\n<reminder>\nBe concise.\n</reminder>")
        assert sum("Getting long." in text for text in users) == 1
        assert "Be concise." in users[3]
        for before, after in pairwise(sent):
            assert after[: len(before)] == before
        assert sent[0][0]["content"].endswith("## Role\nYou are a tester.")
        assert [entry.message.text for entry in conversation.context.entries][::2] == [
            f"Question {n}" for n in range(1, 5)
        ]
        name = conversation.session.info.id
        await conversation.close()
        resumed = opened(store, tmp_path, replies("Yes."), session=name)
        await resumed.send("Question 5")
        assert resumed.context.effective_history()[-2]["content"] == "Question 5"
        await resumed.close()


async def test_a_section_that_cannot_be_read_is_refused_before_anything_starts(tmp_path: Path) -> None:
    given = {"context.section": [{"label": "Style", "file": "missing.md"}]}
    with Store.open(None) as store, pytest.raises(ConfigError, match=r"Style: there is no file missing\.md"):
        opened(store, tmp_path, replies("x"), given=given)
