"""What a person or the provider has seen, held against what the store has afterwards."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import apsw

from nca.agent.conversation import Conversation
from nca.config.loaded import defaults
from nca.messages import Entry
from nca.models.catalog import ModelFacts
from nca.sessions.store import Store
from nca.testing.provider import Provider
from nca.testing.scripted import ScriptedModel, is_summary_request, text_of
from tests.context.promises import refused
from tests.terminal.endings.script import AGAIN, LAST_LINE, QUESTION, WINDOW_TOKENS, WORD
from tests.testing.fault_runs import database


def lost(home: Path, session: str, provider: Provider, raw: bytes) -> list[str]:
    """What a person or the provider has seen and the store does not have, and what is wrong with the store."""
    problems = []
    path = database(home)
    with closing(apsw.Connection(str(path))) as connection:
        verdict = [row[0] for row in connection.execute("PRAGMA integrity_check")]
        if verdict != ["ok"]:
            problems.append(f"the store is damaged: {verdict[:3]}")
    with Store.open(path) as store:
        if not session:
            # The new one is the latest, where anything was said in it.
            session = store.list(limit=1)[0].id
        conversation = Conversation.open(
            defaults().with_value("model.context_window", WINDOW_TOKENS, "the test"),
            store=store,
            model=ScriptedModel(
                [], facts=ModelFacts(name="openai/any", provider="openai", window_tokens=WINDOW_TOKENS)
            ),
            directory=home / "work",
            session=session,
        )
        try:
            problems += refused(conversation._window.history)
            problems += _unstored(conversation.context.entries, provider, raw)
        finally:
            asyncio.run(conversation.close())
    return problems


def _unstored(entries: Sequence[Entry], provider: Provider, raw: bytes) -> list[str]:
    texts = "\n".join(entry.message.text for entry in entries)
    problems = []
    asked = [request for request in provider.requests if not is_summary_request(request)]
    for request in asked:
        for message in request["messages"]:
            said = [words for words in (QUESTION, AGAIN) if message["role"] == "user" and words in text_of(message)]
            problems += [
                f"a message that was sent is not in the store: {words}" for words in said if words not in texts
            ]
    results = {entry.message.tool_call_id: entry.message.text for entry in entries if entry.message.role == "tool"}
    for message in (message for request in asked for message in request["messages"] if message["role"] == "tool"):
        if LAST_LINE in text_of(message) and LAST_LINE not in results.get(message["tool_call_id"], ""):
            problems.append("a result that was sent is not in the store")
    seen, kept = set(WORD.findall(raw.decode("utf-8", "replace"))), set(WORD.findall(texts))
    if seen - kept:
        problems.append(f"words that were seen are not in the store: {sorted(seen - kept)}")
    return problems
