"""What is found, in which sessions, and how an answer goes on."""

from __future__ import annotations

import json
import re
import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nca.mcp_server.answers import MAX_EXPANDED_TOKENS, MAX_TOKENS, AnyAnswer
from nca.mcp_server.history import History, OwnStore
from nca.mcp_server.tools import folder_of, messages_of, since_of, tools_of
from nca.messages import Message
from nca.sessions import Store
from nca.sessions.past_sessions import Wanted
from nca.tools.recall import plain
from nca.tools.tool import ToolError
from nca.vocabulary import count
from tests.mcp_server.asking import ran, talk

_ID = re.compile(r"^\[([0-9a-f]{8}):\d+\]", re.MULTILINE)
_MORE = re.compile(r'continue with messages="([^"]+)"(?: offset=(\d+))?')


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "data" / "sessions.db"


@pytest.fixture
def history(path: Path) -> History:
    return History([OwnStore(path)])


async def answered(history: History, tool: str, **arguments: Any) -> AnyAnswer:
    return await {one.name: one for one in tools_of(history)}[tool].answer(arguments)


async def asked(history: History, tool: str, **arguments: Any) -> str:
    return (await answered(history, tool, **arguments)).text


async def test_filters_by_folder_session_and_time(history: History, path: Path) -> None:
    with Store.open(path) as store:
        shop = talk(store, "/work/shop", "The invoice is wrong", "Round the invoice.")
        below = talk(store, "/work/shop/web", "Print the invoice", "Printed.")
        beside = talk(store, "/work/shopping", "Pay the invoice", "Paid.", name="paying")

        async def found(**arguments: str) -> set[str]:
            return set(_ID.findall(await asked(history, "recall", query="the invoice", **arguments)))

        assert await found() == {shop, below, beside}
        assert await found(directory="/work/shop/") == {shop, below}
        assert await found(directory="/") == {shop, below, beside}
        assert await found(directory="/elsewhere") == set()
        assert await found(session=shop[:6]) == {shop}
        assert await found(since="1h", agent="nca") == {shop, below, beside}
        assert await found(since="2999-01-01") == set()
        listed = await asked(history, "sessions", directory="/work/shopping")
        assert listed.splitlines()[1].endswith("nca, /work/shopping, 2 messages: paying")


async def test_a_folder_with_many_messages_is_searched_whole(history: History, path: Path) -> None:
    """Beyond a number of messages the index does not look the sessions up; candidates are checked one by one."""
    with Store.open(path) as store:
        with store.create(directory="/work/long", model="m") as session:
            session.log.append([Message("user", f"step {number} of the plan") for number in range(6_500)])
        short = talk(store, "/work/short", "the plan is short", "it is")
        assert set(_ID.findall(await asked(history, "recall", query="short plan", directory="/work/short"))) == {short}
        text = await asked(history, "recall", query="step 4711 of the plan", directory="/work/long")
        assert "step 4711 of the plan" in text.splitlines()[1]
        assert set(_ID.findall(text)) == {session.info.id}


async def test_results_and_sessions_are_read_page_by_page(history: History, path: Path) -> None:
    with Store.open(path) as store:
        ids = [talk(store, f"/work/{'deep/' * 30}{number}", f"apple {number}", "pear") for number in range(45)]
    seen: list[str] = []
    offset = 0
    while True:
        page = await answered(history, "sessions", offset=offset)
        text = page.text
        assert count(text) <= MAX_TOKENS
        assert count(json.dumps(page.data)) <= MAX_TOKENS
        seen += re.findall(r"^\[([0-9a-f]{8})\]", text, re.MULTILINE)
        more = re.search(r"continue with offset=(\d+)", text)
        if more is None:
            break
        offset = int(more[1])
    assert seen == ids[::-1]
    found = await answered(history, "recall", query="apple")
    assert count(json.dumps(found.data)) <= MAX_TOKENS
    first = found.text
    more = re.search(r"continue with offset=(\d+)", first)
    assert more
    second = await asked(history, "recall", query="apple", offset=int(more[1]))
    assert set(_ID.findall(first)).isdisjoint(_ID.findall(second))
    assert "These were all." in await asked(history, "recall", query="apple", offset=200)
    with pytest.raises(ToolError, match="offset is a number from 0 to 200"):
        await asked(history, "recall", query="apple", offset=10_000)


@settings(max_examples=15, deadline=None)
@given(st.lists(st.text("ab \n\x1b[é漢", max_size=9_000), min_size=1, max_size=6))
async def test_messages_are_read_whole_over_several_answers(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str]
) -> None:
    path = tmp_path_factory.mktemp("data") / "sessions.db"
    with Store.open(path) as store, store.create(directory="/work", model="m") as session:
        session.log.append([*(Message("user", f"<{text}>") for text in texts), *ran("ls", "<end>")])
        history, wanted, offset, shown = History([OwnStore(path)]), f"{session.info.id}:1-99", 0, ""
        for _ in range(100):
            page = await answered(history, "expand", messages=wanted, offset=offset)
            assert count(json.dumps(page.data, ensure_ascii=False)) <= MAX_EXPANDED_TOKENS
            answer = page.text
            assert count(answer) <= MAX_EXPANDED_TOKENS
            head, _, rest = answer.partition("\n\n")
            for block in re.split(r"^\[\d+\] (?:user|assistant|tool shell), .*:\n", rest, flags=re.MULTILINE):
                shown += block
            more = _MORE.search(head)
            if more is None:
                break
            wanted, offset = more[1], int(more[2] or 0)
    expected = "".join(plain(f"<{text}>") for text in texts) + "shell command: ls<end>"
    assert re.sub(r"\n+", "", shown) == re.sub(r"\n+", "", expected)


@pytest.mark.parametrize(("tool", "asks"), [("recall", {"query": "hippo"}), ("sessions", {})])
async def test_sessions_that_cannot_be_read_are_no_sessions_that_there_are_not(
    history: History, path: Path, tool: str, asks: dict[str, str]
) -> None:
    with Store.open(path) as store:
        talk(store, "/work", "a hippo", "yes")
    with closing(sqlite3.connect(path)) as database:
        database.execute("DROP TABLE messages")
    assert "[some sessions cannot be read: " in await asked(history, tool, **asks)


async def test_an_id_that_could_be_several_is_refused(history: History, path: Path) -> None:
    with Store.open(path) as store:
        first = talk(store, "/work", "one", "1")
        while True:
            other = talk(store, "/work", "two", "2")
            if other[0] == first[0]:
                break
    with pytest.raises(ToolError, match="could be any of"):
        await asked(history, "expand", messages=f"{first[0]}:1")


def test_ages_dates_and_folders() -> None:
    assert since_of("") == 0.0
    assert abs(since_of("2d") - (time.time() - 2 * 86_400)) < 60
    assert since_of("2026-03-01") == time.mktime((2026, 3, 1, 0, 0, 0, 0, 0, -1))
    assert since_of("99999w") == 1.0
    assert folder_of("/work/") == "/work"
    assert folder_of("~/shop").endswith("/shop")
    assert messages_of("[1a2b3c4d:12]") == ("1a2b3c4d", 12, 12)
    assert messages_of("1a2b3c4d:12-9") == ("1a2b3c4d", 12, 12)
    for text in ("soon", "1y", "0001-01-01T00:00+14:00x"):
        with pytest.raises(ToolError, match="since is a date"):
            since_of(text)
    with pytest.raises(ToolError, match="absolute path"):
        folder_of("shop")


async def test_the_best_answers_of_all_places_come_first(tmp_path: Path) -> None:
    """Whichever place is asked first."""
    paths = [tmp_path / name / "sessions.db" for name in "ab"]
    for number, path in enumerate(paths):
        with Store.open(path) as store:
            for place in range(3):
                talk(store, "/work", f"The invoice {'is wrong ' * (2 * place + number)}", "invoice " * (3 - place))
    found = []
    for places in (paths, paths[::-1]):
        hits = History([OwnStore(path) for path in places]).recall("invoice wrong", Wanted(), 9).hits
        assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
        found.append({hit.id for hit in hits})
    assert len(found[0]) == 9
    assert found[0] == found[1]
