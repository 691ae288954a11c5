"""After 50 compactions with undo and redo, every message is still there, byte for byte.

Of generated logs and of transcripts: the excerpts in tests/data, or those in the folder that NCA_TRANSCRIPTS names.
"""

from __future__ import annotations

import asyncio
import os
import random
import tempfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings

from nca.agent.conversation import Conversation
from nca.config.loaded import defaults
from nca.context.history import History
from nca.context.meter import Meter
from nca.context.view import View
from nca.errors import ContextDoesNotFit
from nca.messages import Entry, Message
from nca.models.catalog import ModelFacts
from nca.sessions.store import Store
from nca.testing.scripted import ScriptedModel
from nca.wire import message_to_dict
from tests.context.logs import logs
from tests.context.promises import misplaced, refused
from tests.context.samples import PROSE
from tests.context.test_grid import conversations
from tests.context.test_transcripts import DATA
from tests.soak.facts import digest_of

COMPACTIONS = 50
GENERATED = 30 if os.environ.get("NCA_SOAK_KILLS") else 3
"""Logs; more where `make soak` takes its time."""
FOLDER = Path(os.environ.get("NCA_TRANSCRIPTS") or DATA)
SMALLEST_WINDOW = 2_000
SHARE = 0.8
"""Of the log's tokens: the window, so that its end is always too full."""


async def compacted_often(store: Store, home: Path, log: Sequence[Message], rng: random.Random) -> str:
    """A session that gets the log in pieces and is compacted after each; gives its id."""
    whole = History(Entry(seq, message) for seq, message in enumerate(log, 1))
    window = max(SMALLEST_WINDOW, int(SHARE * Meter().used(whole)))
    facts = ModelFacts(name="scripted/recovery", provider="scripted", window_tokens=window)
    conversation = Conversation.open(
        defaults(), store=store, model=ScriptedModel([PROSE] * 1_000, facts=facts), directory=home
    )
    taken = 0
    while taken < len(log) or len(conversation.context.history()) < COMPACTIONS:
        piece = log[taken : taken + rng.randint(1, 2 * len(log) // COMPACTIONS + 2)]
        conversation._window.append(*piece)
        taken += len(piece)
        try:
            is_smaller = (await conversation.context.compact()).compacted
        except ContextDoesNotFit:
            is_smaller = False
        if not is_smaller and taken >= len(log):
            # There is nothing left to compact: back, so that there is, or away with all of it.
            assert conversation.context.undo() or conversation.context.clear()
        for _ in range(rng.randint(0, 3)):
            conversation.context.undo()
        for _ in range(rng.randint(0, 2)):
            conversation.context.redo()
    session = conversation.session.info.id
    await conversation.close()
    return session


def lost(home: Path, log: Sequence[Message], seed: int) -> list[str]:
    """What is not as it was, one line each."""
    rng = random.Random(seed)
    with Store.open(home / "data" / "sessions.db") as store:
        session = asyncio.run(compacted_often(store, home, log, rng))
    problems = []
    with Store.open(home / "data" / "sessions.db") as store, store.open_session(session) as opened:
        found = [entry.message for entry in opened.log.entries()]
        left = found[len(log) :]
        if [digest_of(message) for message in found[: len(log)]] != [digest_of(message) for message in log]:
            problems.append("the messages are not what they were")
        if [message_to_dict(message) for message in found[: len(log)]] != [message_to_dict(one) for one in log]:
            problems.append("the messages would be sent otherwise than before")
        if not all(message.is_synthetic for message in left):
            problems.append("there are messages that nobody wrote")
        records = opened.views.compactions()
        if len(records) < COMPACTIONS:
            problems.append(f"only {len(records)} compactions")
        for record in records:
            problems += misplaced(found, opened.views.load(record.view_after))
        problems += refused(History(opened.log.entries(), opened.views.current(), opened.views.pins()))
        while opened.views.undo():
            pass
        if opened.views.current() != View():
            problems.append("undone all the way, the view does not show the whole log")
    return problems


@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", conversations(FOLDER))
def test_every_message_of_a_transcript_is_recovered(tmp_path: Path, name: str) -> None:
    assert lost(tmp_path, conversations(FOLDER)[name], 1) == []


@given(logs())
@settings(max_examples=GENERATED)
def test_every_message_of_a_generated_log_is_recovered(log: list[Message]) -> None:
    with tempfile.TemporaryDirectory() as home:
        assert lost(Path(home), log, len(log)) == []
