"""Whatever is done to the file: no traceback, one start finds all that can be read in it, and what was done is said.

`make soak` tries a thousand.
"""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path

import pytest

from nca.agent.conversation import Conversation
from nca.config.loaded import defaults
from nca.errors import StoreDamaged, StoreError
from nca.events import ErrorRaised, Event
from nca.models.catalog import ModelFacts
from nca.sessions import Store
from nca.testing.scripted import ScriptedModel
from nca.transcripts.export_formats import rendered
from tests.sessions.damage import busy_store, damage, readable, worded_store, words_in, words_of_files

DAMAGES = int(os.environ.get("NCA_DAMAGES", "10"))
FOUND = (304, 650, 1031, 1206)
"""Damage that was not mended once: in the middle of a page, of an index, of the full-text index."""
LEAST_FOUND = 0.999
"""Of the words that stand in the damaged files: some stand only where a message was before it moved."""
FACTS = ModelFacts(name="scripted/m", provider="scripted", window_tokens=200_000)


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stores")
    busy_store(folder)
    return folder


async def everything(store: Store, folder: Path) -> set[str]:
    """Go every way into the store; gives the texts of all messages."""
    texts: set[str] = set()
    store.search_sessions("answer")
    for info in store.list(None):
        store.preview(info.id)
        store.search(info.title)
        with store.open_session(info.id, read_only=store.is_read_only) as session:
            texts |= {entry.message.text for entry in session.log.entries()}
            session.views.current()
            session.views.compactions()
            session.usage.totals()
        rendered(store.copy_of(info.id), "html")
        await talk_on(store, folder, info.id)
    return texts


async def talk_on(store: Store, folder: Path, session: str) -> None:
    model, events = ScriptedModel(["Yes."], facts=FACTS), list[Event]()
    conversation = Conversation.open(
        defaults(),
        store=store,
        model=model,
        directory=folder,
        session=session,
        listener=events.append,
        read_only=store.is_read_only,
    )
    if not store.is_read_only:
        finished = await conversation.send("And now?")
        for event in events:
            if isinstance(event, ErrorRaised):
                raise StoreDamaged(event.message)
        assert finished.reason == "answered"
        conversation.context.undo()
        conversation.context.redo()
    await conversation.close()


@pytest.mark.timeout(0)
@pytest.mark.parametrize("seed", sorted({*range(DAMAGES), *FOUND}))
async def test_no_damage_is_met_without_a_word_or_with_a_traceback(
    stores: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setenv("NCA_HOME", str(tmp_path))  # elsewhere, a file whose header is damaged could be anybody's
    chance = random.Random(seed)
    path = tmp_path / "data" / "sessions.db"
    shutil.copytree(stores / chance.choice(("closed", "killed")), path.parent)
    sound = path.read_bytes()
    what = damage(path, chance)
    wanted = readable(path, sound, tmp_path)
    said: list[str] = []
    notes: list[str] = []
    try:
        with Store.open(path, read_only=True) as store:
            await everything(store, tmp_path)
    except StoreError as error:
        said.append(str(error))
    with Store.open(path) as store:
        notes += store.notes
        found = await everything(store, tmp_path)
    assert not any("\n" in line for line in (*said, *notes)), what
    # Behind a damaged name of a field, what it held is added to the text.
    assert not [one for one in wanted - found if not any(text.startswith(one) for text in found)], what
    aside = [file for file in path.parent.iterdir() if ".corrupt-" in file.name]
    assert sum(not file.name.endswith(("-wal", "-shm")) for file in aside) == len(notes), what


@pytest.mark.timeout(0)
def test_one_start_finds_what_can_be_read_in_the_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NCA_HOME", str(tmp_path))
    worded_store(tmp_path)
    wanted = found = 0
    for seed in range(DAMAGES):
        chance = random.Random(seed)
        path = tmp_path / "data" / str(seed) / "sessions.db"
        shutil.copytree(tmp_path / chance.choice(("closed", "killed")), path.parent)
        damage(path, chance)
        readable_words = words_of_files(path)
        with Store.open(path) as store:
            texts = []
            for info in store.list(None):
                with store.open_session(info.id) as session:
                    texts += [entry.message.text for entry in session.log.entries()]
        wanted += len(readable_words)
        found += len(readable_words & words_in("\n".join(texts).encode()))
        shutil.rmtree(path.parent)
    assert found >= LEAST_FOUND * wanted
