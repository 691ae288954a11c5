"""Whatever is done to the file: no traceback, one start finds all that can be read in it, and what was done is said.

`make soak` tries a thousand.
"""

from __future__ import annotations

import os
import random
import re
import shutil
from contextlib import closing
from pathlib import Path

import apsw
import pytest

from nca.agent.conversation import Conversation
from nca.config.loaded import defaults
from nca.errors import StoreDamaged, StoreError
from nca.events import ErrorRaised, Event
from nca.messages import Usage
from nca.models.catalog import ModelFacts
from nca.sessions import Store
from nca.sessions.corruption import is_checked
from nca.testing.scripted import ScriptedModel
from nca.transcripts.export_formats import rendered
from tests.sessions.damage import busy_store, damage, readable, worded_store, words_in, words_of_files
from tests.sessions.samples import filled, said

DAMAGES = int(os.environ.get("NCA_DAMAGES", "10"))
FOUND = (304, 650, 1031, 1206)
"""Damage that was not mended once: in the middle of a page, of an index, of the full-text index."""
LEAST_FOUND = 0.999
"""Of the words that stand in the damaged files: some stand only where a message was before it moved."""
TEXTS = (
    *(("sessions", column) for column in ("id", "name", "directory", "model", "title", "kind")),
    *(("messages", "role"), ("messages", "body"), ("views", "body"), ("summaries", "body"), ("usage", "model")),
    *(("compactions", column) for column in ("trigger", "stages", "kept")),
    *(("partials", "body"), ("program_views", "key"), ("program_views", "body")),
)
"""The columns of text."""
FACTS = ModelFacts(name="scripted/m", provider="scripted", window_tokens=200_000)


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stores")
    busy_store(folder)
    return folder


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two sessions with compactions, and a view that a program keeps."""
    path = tmp_path_factory.mktemp("small") / "sessions.db"
    filled(path, messages=12)
    with Store.open(path) as store:
        for info in store.list():
            with store.open_session(info.id) as session:
                session.usage.record(5, "a-model", Usage(100, 10), 1)
                session.log.save_partial("half of an answer")
        store.program_views.save("a key", '{"items":[]}', None)
    return path


def said_in(path: Path) -> set[str]:
    with Store.open(path) as store:
        texts = set[str]()
        for info in store.list(None):
            with store.open_session(info.id, read_only=True) as session:
                texts |= {entry.message.text for entry in session.log.entries()}
        return texts


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


def flip(path: Path, table: str, column: str, chance: random.Random) -> str:
    """Change one bit of one text; gives the text."""
    with closing(apsw.Connection(str(path))) as connection:
        texts = connection.execute(f"SELECT {column} FROM {table} WHERE {column} <> ''").fetchall()
    text = str(chance.choice(texts)[0])
    content = bytearray(path.read_bytes())
    places = [found.start() for found in re.finditer(re.escape(text.encode()), content)]
    content[chance.choice(places) + chance.randrange(len(text))] ^= 1 << chance.randrange(8)
    path.write_bytes(content)
    return text


@pytest.mark.timeout(0)
@pytest.mark.parametrize(("table", "column"), TEXTS)
def test_one_wrong_bit_in_a_text_costs_one_message_at_most(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table: str, column: str
) -> None:
    monkeypatch.setenv("NCA_HOME", str(tmp_path))
    for seed in range(DAMAGES):
        chance = random.Random(seed)
        path = tmp_path / str(seed) / "sessions.db"
        path.parent.mkdir()
        shutil.copyfile(small, path)
        wanted = said_in(path)
        text = flip(path, table, column, chance)
        with Store.open(path) as store:
            assert " lost" not in " ".join(store.notes), text
            with store.create(directory="/work", model="m") as session:
                session.log.append(said("Still there?"))
            for info in store.list(None):
                store.fork(info.id)
        assert is_checked(path, 60)
        assert len(wanted - said_in(path)) <= 1, text
