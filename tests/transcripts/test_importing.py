"""A session of another agent is imported once; what it has more later is appended, or becomes one more session."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from nca.agent.conversation import Conversation
from nca.config.loaded import defaults
from nca.context.history import History
from nca.context.request import resolve
from nca.errors import SessionLocked
from nca.messages import Message
from nca.models.catalog import ModelFacts
from nca.sessions import Store
from nca.sessions.session import SessionInfo
from nca.testing.scripted import ScriptedModel
from nca.transcripts.conversation_file import Imported, import_stored, with_origin
from nca.transcripts.descriptions import model_in_words
from nca.transcripts.formats.assemble import assemble
from nca.transcripts.formats.claude_code import FORMAT
from nca.transcripts.formats.cline import FORMAT as CLINE
from nca.transcripts.formats.pi import FORMAT as PI
from nca.transcripts.formats.records import StoredSession
from nca.transcripts.formats.source import Source
from nca.transcripts.session_file import read_session, to_json
from tests.sessions.samples import MANUAL, hiding
from tests.transcripts.formats.test_claude_code import Row, answer, boundary, raw, summary, user

START = [user("u1", None, "a"), answer("a1", "u1", "b")]


@pytest.fixture
def store() -> Iterator[Store]:
    with Store.open(None) as opened:
        yield opened


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "s-1.jsonl"


def imported(store: Store, file: Path, *rows: Row) -> Imported:
    file.write_bytes(raw(*rows))
    [stored] = FORMAT.sessions(Source.of_file(file))
    return import_stored(store, stored)


def shown(store: Store, info: SessionInfo) -> list[str]:
    copy = store.copy_of(info.id)
    return [message.text for message in resolve(History(copy.entries, copy.view(copy.head_view)))]


def test_it_is_imported_once_and_knows_where_it_comes_from(store: Store, file: Path) -> None:
    first = imported(store, file, *START)
    assert first.notes == ()
    [stored] = FORMAT.sessions(Source.of_file(file))
    assert import_stored(store, stored).info.id == first.info.id
    origin = first.info.origin
    assert origin is not None
    assert (origin.agent, origin.session_id, origin.path, origin.messages) == ("claude", "s-1", str(file), 2)
    assert len(store.list()) == 1
    again = read_session(to_json(store.copy_of(first.info.id)), "x", directory="/")
    assert again.info.origin == origin
    assert store.fork(first.info.id).origin is None


async def test_its_model_is_called_the_other_agents_until_nca_answers(store: Store, file: Path, tmp_path: Path) -> None:
    info = imported(store, file, *START).info
    assert model_in_words(info) == "claude-opus-4-5 in Claude Code"
    assert model_in_words(store.find(store.fork(info.id).id)) == ""
    facts = ModelFacts("scripted/model", "scripted", 20_000)
    conversation = Conversation.open(
        defaults(), store=store, model=ScriptedModel(["Yes."], facts=facts), directory=tmp_path, session=info.id
    )
    assert model_in_words(store.find(info.id)) == "claude-opus-4-5 in Claude Code"
    await conversation.send("And?")
    assert model_in_words(store.find(info.id)) == "scripted/model"
    await conversation.close()


async def test_what_the_other_agent_used_costs_its_models_price_and_counts(
    store: Store, file: Path, tmp_path: Path
) -> None:
    """Claude Opus 4.5 costs $5 for a million tokens, $0.50 for cached ones, and $25 for those of an answer."""
    info = imported(store, file, *START).info
    [used] = store.copy_of(info.id).usage
    assert used.usage.cost == pytest.approx((10 * 5 + 100 * 0.5 + 5 * 25) / 1_000_000)
    loaded = defaults().with_values({"session.max_cost": 0.0002}, "the test")
    model = ScriptedModel(["Yes."], facts=ModelFacts("scripted/model", "scripted", 20_000))
    conversation = Conversation.open(loaded, store=store, model=model, directory=tmp_path, session=info.id)
    assert (await conversation.send("And?")).reason == "failed"
    assert model.requests == []
    await conversation.close()


def test_what_was_added_since_is_appended_with_its_compactions(store: Store, file: Path) -> None:
    first = imported(store, file, *START)
    rows = [*START, user("u2", "a1", "c walrus"), boundary("cb", "u2"), summary("cs", "cb"), answer("a2", "cs", "d")]
    second = imported(store, file, *rows)
    assert second.info.id == first.info.id
    assert second.notes == ("2 messages were added since it was imported.",)
    assert store.search("walrus")[0].snippet == "c walrus"
    texts = shown(store, second.info)
    assert "They talked." in texts[0]
    assert texts[1:] == ["d"]
    assert second.info.origin is not None
    assert second.info.origin.messages == 4
    assert len(store.copy_of(first.info.id).usage) == 2
    third = imported(store, file, *rows, user("u3", "a2", "e"))
    assert shown(store, third.info)[1:] == ["d", "e"]
    with store.open_session(first.info.id) as session:
        assert session.views.undo() is not None
        assert session.log.head == 5
    assert shown(store, third.info) == ["a", "b", "c walrus", "d", "e"]


def test_one_that_has_grown_was_used_last(store: Store, file: Path) -> None:
    first = imported(store, file, *START)
    store.add(msgspec.structs.replace(store.copy_of(first.info.id)).with_info(origin=None, name="another"))
    assert [info.name for info in store.list()] == ["another", ""]
    second = imported(store, file, *START, user("u2", "a1", "c"))
    assert store.list()[0].id == second.info.id == first.info.id


def test_a_branch_that_was_left_since_is_aside(store: Store, file: Path) -> None:
    rows = [*START, user("u2", "a1", "wrong")]
    first = imported(store, file, *rows)
    second = imported(store, file, *rows, user("u3", "a1", "right"), answer("a3", "u3", "good"))
    assert second.info.id == first.info.id
    assert shown(store, second.info) == ["a", "b", "right", "good"]
    third = imported(store, file, *rows, user("u3", "a1", "right"), answer("a3", "u3", "good"), user("u4", "a1", "no"))
    assert third.info.id == first.info.id
    assert shown(store, third.info) == ["a", "b", "no"]


def test_what_an_older_nca_imported_goes_on_though_it_knew_less_of_who_said_what(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "api_conversation_history.json"

    def stored(*results: str) -> StoredSession:
        task = '<task>\nfix\n</task>\n\n<file_content path="a.py">\nx = 1\n</file_content>'
        rows: list[Any] = [{"role": "user", "content": [{"type": "text", "text": task}]}]
        for text in results:
            block = {"type": "text", "text": f"[read_file] Result:\n{text}"}
            rows += [{"role": "assistant", "content": "so"}, {"role": "user", "content": [block]}]
        path.write_text(json.dumps(rows))
        [found] = CLINE.sessions(Source.of_file(path))
        return found

    place = stored("one")
    copy = with_origin(assemble(CLINE.read(Source.of_file(path)), "x").copy, place, "")
    # As it was read then: a text without sources, in the tags of Cline.
    raw_texts = [
        "\n\n".join(block["text"] for block in row["content"]) if isinstance(row["content"], list) else row["content"]
        for row in json.loads(path.read_text())
    ]
    entries = [
        msgspec.structs.replace(entry, message=Message(entry.message.role, text))
        for entry, text in zip(copy.entries, raw_texts, strict=True)
    ]
    first = store.add(msgspec.structs.replace(copy, entries=entries))
    second = import_stored(store, stored("one", "two"))
    assert second.info.id == first.id
    assert second.notes == ("2 messages were added since it was imported.",)
    assert import_stored(store, stored("other", "two", "three")).info.id != first.id


def test_after_one_has_gone_on_in_nca_it_becomes_another_session(store: Store, file: Path) -> None:
    first = imported(store, file, *START)
    with store.open_session(first.info.id) as session:
        session.log.append([Message("user", "mine")])
    second = imported(store, file, *START, user("u2", "a1", "theirs"))
    assert second.info.id != first.info.id
    assert first.info.id in second.notes[0]
    assert shown(store, first.info) == ["a", "b", "mine"]
    assert shown(store, second.info) == ["a", "b", "theirs"]
    third = imported(store, file, *START, user("u2", "a1", "theirs"), user("u3", "u2", "more"))
    assert third.info.id == second.info.id


def test_a_compaction_in_nca_is_going_on_too(store: Store, file: Path) -> None:
    first = imported(store, file, *START)
    with store.open_session(first.info.id) as session:
        session.views.commit(hiding(1), MANUAL)
    second = imported(store, file, *START, user("u2", "a1", "theirs"))
    assert second.info.id != first.info.id
    with store.open_session(first.info.id) as session:
        assert session.views.current_id == 1


def test_another_beginning_is_another_session(store: Store, file: Path) -> None:
    first = imported(store, file, *START)
    second = imported(store, file, user("u1", None, "z"), *START[1:], user("u2", "a1", "c"))
    assert second.info.id != first.info.id
    assert len(second.notes) == 1


def test_a_session_that_is_open_elsewhere_is_not_touched(tmp_path: Path, file: Path) -> None:
    with Store.open(tmp_path / "x" / "sessions.db") as store, Store.open(tmp_path / "x" / "sessions.db") as other:
        first = imported(store, file, *START)
        with other.open_session(first.info.id), pytest.raises(SessionLocked):
            imported(store, file, *START, user("u2", "a1", "c"))
        assert shown(store, first.info) == ["a", "b"]


def test_a_name_that_is_given_later_or_changed_is_taken_until_the_person_names_it_here(
    store: Store, file: Path
) -> None:
    rows: list[dict[str, Any]] = [
        {"type": "session", "version": 3, "id": "s-1", "timestamp": "2026-01-01T00:00:00Z", "cwd": "/"},
        {"type": "message", "id": "m1", "parentId": None, "message": {"role": "user", "content": "Fix the parser"}},
    ]

    def named(*names: str) -> SessionInfo:
        infos = [{"type": "session_info", "id": f"n{number}", "name": name} for number, name in enumerate(names)]
        file.write_text("\n".join(map(json.dumps, [*rows, *infos])))
        [stored] = PI.sessions(Source.of_file(file))
        return import_stored(store, stored).info

    first = named()
    assert [first.name, named("Parser").name, named("Parser", "Lexer, too").name] == ["", "Parser", "Lexer, too"]
    with store.open_session(first.id) as session:
        session.rename("Mine")
    assert named("Parser", "Lexer, too", "Both of them").name == "Mine"
    assert [info.id for info in store.list()] == [first.id]
