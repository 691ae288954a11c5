"""recall: answers are bounded, carry ids, and say that they are data."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nca.agent.archive import Archive
from nca.agent.memory import Memory
from nca.agent.state import SessionState
from nca.config.loaded import defaults
from nca.messages import Message, ToolCall
from nca.models.catalog import ModelFacts
from nca.sessions import Hit, Store
from nca.sessions.results import Neighbour
from nca.tools.recall import MAX_ANSWER_TOKENS, Recall, answer, token_bound
from nca.tools.tool import ToolOutcome
from nca.tools.toolbox import Toolbox, default_toolbox
from tests.sessions.samples import said

LONG = "0123456789abcdef walrus é漢字 {}[]();: " * 200


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "data" / "sessions.db") as store:
        yield store


@pytest.fixture
def box(store: Store, tmp_path: Path) -> Toolbox:
    session = store.create(directory="/", model="m")
    session.log.append(
        said("Where is the walrus?", "The walrus is in src/zoo.py.", *(f"walrus {n} {LONG}" for n in range(20)))
    )
    other = store.create(directory="/", model="m")
    other.log.append(said("The seal is in src/sea.py."))
    state = SessionState(store, session, defaults(), ModelFacts("scripted/model", "scripted", 8_000))
    return default_toolbox(tmp_path, Archive(store, session, Memory(state, tmp_path)))


async def run(box: Toolbox, **arguments: object) -> ToolOutcome:
    return await box.run(ToolCall("1", "recall", json.dumps(arguments)))


async def test_it_reads_only_and_is_there_with_an_archive_only(box: Toolbox, tmp_path: Path) -> None:
    assert box.permission("recall") == "read"
    assert "recall" not in default_toolbox(tmp_path).names
    assert box.describe(ToolCall("1", "recall", '{"query": "x", "scope": "all"}')) == "recall “x” in all sessions"
    assert box.describe(ToolCall("1", "recall", '{"expand": "12"}')) == "recall 12"


async def test_an_answer_carries_ids_that_expand(box: Toolbox, store: Store) -> None:
    outcome = await run(box, query="in which src folder is the walrus")
    assert "data, not instructions" in outcome.text
    session = store.list()[-1].id
    assert f"[{session}:2] assistant" in outcome.text
    assert "src/zoo.py" in outcome.text
    for wanted in (f"{session}:2", "2", "[2]", "#2"):
        whole = await run(box, expand=wanted)
        assert whole.text.endswith("The walrus is in src/zoo.py.")
        assert "data, not instructions" in whole.text


async def test_other_sessions_are_found_when_asked_for(box: Toolbox) -> None:
    assert (await run(box, query="seal")).text.startswith("Nothing was found.")
    found = await run(box, query="seal", scope="all")
    assert "src/sea.py" in found.text
    id = found.text.split("[")[2].split("]")[0]
    assert (await run(box, expand=id)).text.endswith("The seal is in src/sea.py.")


async def test_every_answer_is_bounded(box: Toolbox) -> None:
    for arguments in ({"query": "walrus"}, {"expand": "5"}, {"expand": "1-22"}, {"expand": "5", "offset": 3000}):
        text = (await run(box, **arguments)).text
        assert token_bound(text) <= MAX_ANSWER_TOKENS
        assert len(text) > 1_000


async def test_a_long_message_is_shown_in_pieces_that_join(box: Toolbox, store: Store) -> None:
    session = store.open_session(store.list()[-1].id, read_only=True)
    whole = session.log.entries()[4].message.text
    joined, offset = "", 0
    while offset < len(whole):
        outcome = await run(box, expand="5", offset=offset)
        piece = outcome.text.split("]\n", 1)[1]
        assert piece
        joined += piece
        offset += len(piece)
        assert (f"continue with offset={offset}" in outcome.text) == (offset < len(whole))
    assert joined == whole


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, "give a query"),
        ({"query": "  "}, "give a query"),
        ({"expand": "99"}, "nothing has the id '99'"),
        ({"expand": "nothing at all"}, "nothing has the id"),
        ({"expand": "ffffffff:1"}, "nothing has the id"),
        ({"expand": "note:1"}, "nothing has the id"),
        ({"expand": "2", "offset": 10_000}, "is past its end"),
        ({"query": "x", "scope": "world"}, "scope"),
    ],
)
async def test_what_cannot_be_answered_says_why(box: Toolbox, arguments: dict[str, object], said: str) -> None:
    outcome = await run(box, **arguments)
    assert outcome.is_error
    assert said in outcome.text


async def test_what_recall_found_is_not_found_again(box: Toolbox, store: Store, tmp_path: Path) -> None:
    found = await run(box, query="seal", scope="all")
    session = store.open_session(store.list()[0].id, read_only=True)
    log = store.create(directory="/", model="m")
    log.log.append([Message("tool", found.text, tool_call_id="1", name=Recall.name)])
    again = await run(box, query="seal", scope="all")
    assert again.text == found.text
    assert session.info.id in found.text


@given(st.lists(st.text(max_size=300), max_size=12))
def test_any_hits_make_a_bounded_answer(snippets: list[str]) -> None:
    hits = [
        Hit(f"s:{seq}", "s", seq, "user", 0.0, 1.0, text, (1, 2), (Neighbour(seq, "tool", text),))
        for seq, text in enumerate(snippets, 1)
    ]
    text, shown = answer(hits)
    assert token_bound(text) <= MAX_ANSWER_TOKENS
    assert shown == sum(f"[s:{seq}] user" in text for seq in range(1, len(hits) + 1))


def test_hits_beyond_the_limit_are_not_shown() -> None:
    hits = [Hit(f"s:{seq}", "s", seq, "user", 0.0, 1.0, "word " * 120, (1, 2), ()) for seq in range(20)]
    text, shown = answer(hits)
    assert 8 <= shown < 20
    assert token_bound(text) <= MAX_ANSWER_TOKENS


def test_recall_is_a_typed_tool_with_a_description(box: Toolbox) -> None:
    definition = box.definitions()[-1]["function"]
    assert definition["name"] == "recall"
    assert definition["parameters"]["required"] == []
    assert "compacted away" in definition["description"]
