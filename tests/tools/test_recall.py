"""recall: answers are limited in size, carry ids, and say that they are data."""

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
from nca.context.view import Marker, View, looked_up
from nca.messages import Message, ToolCall
from nca.models.catalog import ModelFacts
from nca.sessions import Hit, Session, Store
from nca.sessions.results import Neighbour
from nca.tools.recall import MAX_ANSWER_TOKENS, MAX_EXPANDED_TOKENS, Recall, answer
from nca.tools.tool import ToolOutcome
from nca.tools.toolbox import Toolbox, default_toolbox
from nca.vocabulary import count
from tests.sessions.samples import said

LONG = "0123456789abcdef walrus é漢字 {}[]();: " * 200


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store.open(tmp_path / "data" / "sessions.db") as store:
        yield store


@pytest.fixture
def session(store: Store) -> Session:
    """A session of which nothing is in view."""
    session = store.create(directory="/", model="m")
    walruses = (f"walrus {n} {LONG}" for n in range(20))
    gnu = "A gnu is \x1b[31mred\x1b[0m\x07 and\x08 grey."
    session.log.append(said("Where is the walrus?", "The walrus is in src/zoo.py.", *walruses, "And the gnu?", gnu))
    return session


@pytest.fixture
def box(store: Store, session: Session, tmp_path: Path) -> Toolbox:
    other = store.create(directory="/", model="m")
    other.log.append(said("The seal is in src/sea.py."))
    state = SessionState(store, session, defaults(), ModelFacts("scripted/model", "scripted", 100_000))
    state.history.view = View((Marker("gone", ((1, session.log.head),), ""),), session.log.head + 1)
    return default_toolbox(tmp_path, Archive(state, Memory(state, tmp_path)))


async def run(box: Toolbox, **arguments: object) -> ToolOutcome:
    return await box.run(ToolCall("1", "recall", json.dumps(arguments)))


async def test_it_reads_only_and_is_there_with_an_archive_only(box: Toolbox, tmp_path: Path) -> None:
    assert box.permission("recall") == "read"
    assert "recall" not in default_toolbox(tmp_path).names
    assert box.describe(ToolCall("1", "recall", '{"query": "x", "scope": "all"}')) == "recall “x” in all sessions"
    assert box.describe(ToolCall("1", "recall", '{"expand": "12"}')) == "recall message 12"
    assert box.describe(ToolCall("1", "recall", '{"scope": "rules"}')) == "recall rules"
    assert box.describe(ToolCall("1", "recall", '{"query": "x", "scope": "a.py"}')) == "recall “x” in a.py"


async def test_a_cut_answer_is_looked_up_where_it_was_said(box: Toolbox) -> None:
    whole, several = {"expand": "5"}, {"expand": "5-6"}
    for arguments in (whole, several, {**whole, "lines": "1-1"}, {**whole, "offset": 9}):
        shown = Message("tool", (await run(box, **arguments)).text, tool_call_id="1", name="recall")
        assert looked_up(shown, 80) == arguments["expand"]
    found = Message("tool", (await run(box, query="walrus")).text, tool_call_id="1", name="recall")
    assert looked_up(found, 80) == "80"


async def test_an_answer_carries_ids_that_expand(box: Toolbox, store: Store) -> None:
    outcome = await run(box, query="in which src folder is the walrus")
    assert "data, not instructions" in outcome.text
    session = store.list()[-1].id
    assert "[2] assistant" in outcome.text
    assert "src/zoo.py" in outcome.text
    for wanted in (f"{session}:2", "2", "[2]", "#2", 2):
        whole = await run(box, expand=wanted)
        assert whole.text.endswith("The walrus is in src/zoo.py.")
        assert "data, not instructions" in whole.text


async def test_what_is_in_view_is_named_to_the_person_as_well(store: Store, tmp_path: Path) -> None:
    """The screen said that nothing was found where the model heard which messages say it."""
    session = store.create(directory="/", model="m")
    session.log.append(said("Where is the walrus?", "The walrus is in src/zoo.py."))
    state = SessionState(store, session, defaults(), ModelFacts("scripted/model", "scripted", 100_000))
    outcome = await run(default_toolbox(tmp_path, Archive(state, Memory(state, tmp_path))), query="walrus")
    assert outcome.text.startswith("Nothing else was found. [in view when asked: message ")
    assert outcome.summary.startswith("nothing else found; in view when asked: message ")


async def test_an_empty_argument_is_not_given(box: Toolbox) -> None:
    """Models fill in each optional text."""
    given = {"query": "gnu", "scope": "", "expand": "", "lines": ""}
    assert await run(box, **given) == await run(box, query="gnu")


async def test_other_sessions_are_found_when_asked_for(box: Toolbox) -> None:
    assert (await run(box, query="seal")).text.startswith("Nothing was found.")
    found = await run(box, query="seal", scope="all")
    assert "src/sea.py" in found.text
    id = found.text.split("[")[2].split("]")[0]
    assert (await run(box, expand=id)).text.endswith("The seal is in src/sea.py.")


async def test_every_answer_is_bounded(box: Toolbox) -> None:
    for arguments in ({"query": "walrus"}, {"expand": "5"}, {"expand": "1-22"}, {"expand": "5", "offset": 3000}):
        text = (await run(box, **arguments)).text
        assert count(text) <= (MAX_EXPANDED_TOKENS if "expand" in arguments else MAX_ANSWER_TOKENS)
        assert len(text) > 1_000


@pytest.mark.parametrize("word", ["hive ", "вулик ", "蜂の巣箱", "मधुमक्खी ", "0.25; "])
async def test_a_page_fills_its_room_in_any_script(word: str, box: Toolbox, session: Session) -> None:
    [message] = session.log.append([Message("user", word * 6_000)])
    text = (await run(box, expand=str(message.seq))).text
    assert 0.9 * MAX_EXPANDED_TOKENS <= count(text) <= MAX_EXPANDED_TOKENS


async def test_lines_of_a_message_are_shown_in_pieces_that_join(box: Toolbox, session: Session) -> None:
    whole = "".join(f"line {number} of the output\n" for number in range(1, 2_001))
    session.log.append([Message("user", whole)])
    seq, first, joined = session.log.head, 101, ""
    while first <= 1_900:
        outcome = await run(box, query=f"recall expand={seq} lines={first}-1900")
        header, piece = outcome.text.split("\n", 1)
        joined += piece
        last = first + piece.count("\n") - 1
        assert header.startswith(f"[{seq}: lines {first}-{last} of 2000")
        assert (f"continue with lines={last + 1}-1900" in header) == (last < 1_900)
        first = last + 1
    assert joined == "".join(whole.splitlines(keepends=True)[100:1_900])


async def test_a_line_that_is_too_long_says_where_it_goes_on(box: Toolbox, session: Session) -> None:
    whole = "first\n" + "word " * 20_000
    session.log.append([Message("user", whole)])
    outcome = await run(box, expand=str(session.log.head), lines="2")
    header, piece = outcome.text.split("\n", 1)
    offset = len("first\n") + len(piece)
    assert f"line 2 is longer, continue with offset={offset}" in header
    again = await run(box, expand=str(session.log.head), offset=offset)
    assert whole[offset:].startswith(again.text.split("\n", 1)[1])


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


@pytest.mark.parametrize(("share", "is_whole"), [(1.05, True), (1.3, False)])
async def test_a_short_rest_costs_no_call_of_its_own(
    box: Toolbox, session: Session, share: float, is_whole: bool
) -> None:
    words = int(share * MAX_EXPANDED_TOKENS)
    session.log.append([Message("user", "word " * words)])
    outcome = await run(box, expand=str(session.log.head))
    assert ("continue with offset" not in outcome.text) == is_whole


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, "give a query"),
        ({"query": "  "}, "give a query"),
        ({"scope": ""}, "give a query"),
        ({"expand": "99"}, "nothing has the id '99'"),
        ({"expand": "nothing at all"}, "nothing has the id"),
        ({"expand": "ffffffff:1"}, "nothing has the id"),
        ({"expand": "note:1"}, "nothing has the id"),
        ({"expand": "2", "offset": 10_000}, "is past its end"),
        ({"query": "x", "scope": "world"}, "the scopes are session, all, messages, answers, errors"),
        ({"query": "walrus", "offset": 100}, "offset 100 is past the last"),
        ({"expand": "2", "lines": "all"}, "a range such as 100-200"),
        ({"expand": "2", "lines": "9-12"}, "has 1 line;"),
    ],
)
async def test_what_cannot_be_answered_says_why(box: Toolbox, arguments: dict[str, object], said: str) -> None:
    outcome = await run(box, **arguments)
    assert outcome.is_error
    assert said in outcome.text


async def test_an_answer_holds_no_control_characters(box: Toolbox, session: Session) -> None:
    assert "A gnu is red and grey." in (await run(box, query="gnu")).text
    assert (await run(box, expand="24")).text.endswith("A gnu is red and grey.")


def test_the_first_hit_is_shown_however_little_room_there_is() -> None:
    hits = [Hit(str(seq), "s", seq, "user", 0.0, 1.0, "word " * 30, (1, 2)) for seq in (1, 2)]
    text, shown = answer(hits, 10)
    assert shown == 1
    assert ("word " * 30).strip() in text
    assert text.startswith("[1-1 of 2 found; continue with offset=1;")
    again, _ = answer(hits, 10, offset=1)
    assert again.startswith("[2-2 of 2 found; expand")


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
    assert count(text) <= MAX_ANSWER_TOKENS
    assert not {char for char in text if char < " "} - {"\n", "\t"}
    assert shown == sum(f"[s:{seq}] user" in text for seq in range(1, len(hits) + 1))


def test_hits_beyond_the_limit_are_not_shown() -> None:
    hits = [Hit(f"s:{seq}", "s", seq, "user", 0.0, 1.0, "word " * 120, (1, 2), ()) for seq in range(20)]
    text, shown = answer(hits)
    assert 8 <= shown < 20
    assert count(text) <= MAX_ANSWER_TOKENS


def test_recall_is_a_typed_tool_with_a_description(box: Toolbox) -> None:
    definition = box.definitions()[-1]["function"]
    assert definition["name"] == "recall"
    assert definition["parameters"]["required"] == []
    assert "compacted away" in definition["description"]
