"""What holds for every format: its files are known, they are read whole, and damage costs only what it hit."""

from __future__ import annotations

import json
import random
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from nca.context.history import History
from nca.context.request import repair, resolve
from nca.context.validate import validate_request
from nca.errors import NcaError
from nca.sessions import Store
from nca.transcripts.conversation_file import ConversationFile, read_conversation
from nca.transcripts.formats.records import Format, Said
from nca.transcripts.formats.registry import format_named, recognise
from nca.transcripts.formats.source import Source
from nca.wire import message_to_dict
from tests.mcp_server.other_sessions import claude_session, codex_session
from tests.transcripts.formats.samples import ASKED, LAST, SAMPLES

NAMES = tuple(SAMPLES)
PROVIDERS = ("openai", "anthropic", "gemini", "mistral")
ODD: tuple[Any, ...] = (None, True, -1, 1.5, 10**30, "", "x", "\ud800", [], [1], {}, {"a": 1}, [{"type": 7}], [[]])


def written(name: str, folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    return SAMPLES[name][1](folder)


def read(path: Path) -> ConversationFile:
    return read_conversation(Source.of_file(path))


def recognised(path: Path) -> Format:
    found = recognise(Source.of_file(path))
    assert found is not None
    return found


def request(found: ConversationFile, provider: str) -> list[dict[str, Any]]:
    history = History(found.copy.entries, found.copy.view(found.copy.head_view))
    return [message_to_dict(message) for message in repair(resolve(history), provider)]


def check_that_it_can_be_used(found: ConversationFile) -> None:
    with Store.open(None) as store:
        info = store.add(found.copy)
        with store.open_session(info.id) as session:
            # Calls without a result get one when a session is opened.
            assert len(session.log.entries()) >= len(found.copy.entries)
    for provider in PROVIDERS:
        assert validate_request(request(found, provider), provider) == []


@pytest.mark.parametrize("name", NAMES)
def test_the_file_is_known(name: str, tmp_path: Path) -> None:
    found = recognised(written(name, tmp_path))
    assert found.name == SAMPLES[name][0]
    assert format_named(found.name) is found


@pytest.mark.parametrize("name", NAMES)
def test_the_session_is_read_whole_and_can_be_used(name: str, tmp_path: Path) -> None:
    found = read(written(name, tmp_path))
    assert found.notes == ()
    texts = [entry.message.text for entry in found.copy.entries]
    assert any(ASKED in text for text in texts)
    assert texts[-1] == LAST or "A way that was left." in texts[-1]
    shown = json.dumps(request(found, "openai"))
    assert LAST in shown
    assert "A way that was left." not in shown
    check_that_it_can_be_used(found)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("aider", "gptme")])
def test_calls_have_their_results(name: str, tmp_path: Path) -> None:
    messages = [entry.message for entry in read(written(name, tmp_path)).copy.entries]
    made = [call for message in messages for call in message.tool_calls]
    results = {message.tool_call_id: message for message in messages if message.role == "tool"}
    assert made
    assert {call.id for call in made} == set(results)
    assert all(isinstance(json.loads(call.arguments), dict) for call in made)
    assert "1 failed" in results[made[0].id].text
    assert results[made[0].id].name == made[0].name
    is_marked = name not in ("swe-agent", "sharegpt", "chatgpt", "kimi", "vibe")
    assert results[made[0].id].is_error == is_marked


@pytest.mark.parametrize("name", NAMES)
def test_reading_leaves_the_files_as_they_are(name: str, tmp_path: Path) -> None:
    path = written(name, tmp_path)

    def state() -> dict[Path, bytes]:
        return {file: file.read_bytes() for file in tmp_path.rglob("*") if file.is_file()}

    before = state()
    read(path)
    assert state() == before


@pytest.mark.parametrize("write", [claude_session, codex_session])
def test_messages_are_handed_out_while_a_long_file_is_read(write: Callable[..., Path], tmp_path: Path) -> None:
    path = write(tmp_path, "s", "/work", [f"{n} {'long ' * 100}" for n in range(800)])
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    found = (record for record in recognised(path).read(Source.of_file(path)) if isinstance(record, Said))
    first = next(found)
    path.write_bytes(whole)
    texts = [one.message.text.partition(" ")[0] for one in (first, *found)]
    assert texts == [str(n) for n in range(800)]


def files_of(path: Path) -> list[Path]:
    return [path] if path.is_file() else sorted(file for file in path.rglob("*") if file.is_file())


def check_that_damage_costs_little(path: Path) -> bool:
    """Reading either gives a session that can be used or an error of nca. Returns whether it gave a session."""
    try:
        found = read(path)
    except NcaError as error:
        refused = error.message
    else:
        refused = ""
    if refused:
        assert "\n" not in refused
        return False
    check_that_it_can_be_used(found)
    return True


@pytest.mark.parametrize("name", NAMES)
def test_a_file_that_was_cut_anywhere(name: str, tmp_path: Path) -> None:
    path = written(name, tmp_path)
    chosen = files_of(path)[-1]
    whole = chosen.read_bytes()
    for place in range(1, 8):
        chosen.write_bytes(whole[: len(whole) * place // 8])
        check_that_damage_costs_little(path)


def mutated(value: Any, chance: random.Random) -> Any:
    """The value with one thing inside replaced by something of any type."""
    if isinstance(value, dict) and value and chance.random() < 0.9:
        key = chance.choice(sorted(value))
        if chance.random() < 0.1:
            return {one: inside for one, inside in value.items() if one != key}
        return {**value, key: mutated(value[key], chance)}
    if isinstance(value, list) and value and chance.random() < 0.9:
        place = chance.randrange(len(value))
        return [*value[:place], mutated(value[place], chance), *value[place + 1 :]]
    return chance.choice(ODD)


def mutate_database(path: Path, chance: random.Random) -> None:
    with closing(sqlite3.connect(path)) as connection:
        tables = [row[0] for row in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
        filled = [table for table in tables if connection.execute(f'SELECT 1 FROM "{table}"').fetchone()]
        table = chance.choice(filled)
        columns = [row[1] for row in connection.execute(f'PRAGMA table_info("{table}")')]
        column = chance.choice(columns)
        rows = connection.execute(f'SELECT rowid, "{column}" FROM "{table}" ORDER BY rowid').fetchall()
        rowid, cell = chance.choice(rows)
        new: Any = chance.choice([None, 7, "", "x", b"caf\xe9", b"\xff", "[]"])
        if isinstance(cell, str) and cell[:1] in "[{":
            new = json.dumps(mutated(json.loads(cell), chance))
        value = "CAST(? AS TEXT)" if isinstance(new, bytes) else "?"  # else SQLite would keep it as a BLOB
        with suppress(sqlite3.IntegrityError):  # a key takes not everything
            connection.execute(f'UPDATE "{table}" SET "{column}" = {value} WHERE rowid = ?', (new, rowid))
        connection.commit()


def mutate(path: Path, chance: random.Random) -> None:
    if path.is_dir():
        path = chance.choice(files_of(path))
    raw = path.read_bytes()
    if raw.startswith(b"SQLite"):
        mutate_database(path, chance)
    elif path.suffix == ".md":
        place = chance.randrange(len(raw))
        path.write_bytes(raw[:place] + chance.randbytes(2) + raw[place + 1 :])
    else:
        lines = raw.decode().splitlines()
        place = chance.randrange(len(lines))
        lines[place] = json.dumps(mutated(json.loads(lines[place]), chance))
        path.write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize("name", NAMES)
def test_a_file_with_values_of_other_types(name: str, tmp_path: Path) -> None:
    good = 0
    for seed in range(12):
        path = written(name, tmp_path / str(seed))
        mutate(path, random.Random(seed))
        good += check_that_damage_costs_little(path)
    assert good > 4


def test_two_conversations_of_one_id_are_told_apart_and_each_is_read(tmp_path: Path) -> None:
    [one] = json.loads(SAMPLES["sharegpt"][1](tmp_path).read_text())
    file = tmp_path / "two.json"
    file.write_text(json.dumps([one, one]))
    assert [stored.key for stored in recognised(file).sessions(Source.of_file(file))] == ["one", "one (2)"]
    whole = read_conversation(Source.of_file(file), key="one").copy.entries
    assert [entry.message for entry in read_conversation(Source.of_file(file), key="one (2)").copy.entries] == [
        entry.message for entry in whole
    ]
