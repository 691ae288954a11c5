"""The sessions of other agents: indexed, kept up to date, searched with nca's own."""

from __future__ import annotations

import json
import os
import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nca.mcp_server.history import History, OwnStore
from nca.mcp_server.other_agents import OtherAgents
from nca.sessions import Store
from nca.sessions.foreign_index import FOREIGN, ForeignIndex, progress
from nca.sessions.opening import open_for_reading
from nca.tools.tool import ToolError
from nca.transcripts.conversation_file import import_stored
from nca.transcripts.formats.claude_code import FORMAT as CLAUDE
from nca.transcripts.formats.records import About, Format, Record
from nca.transcripts.formats.registry import formats, stored_sessions
from nca.transcripts.formats.source import Source
from tests.mcp_server.asking import asked as asked_server
from tests.mcp_server.asking import served, store_of, talk
from tests.mcp_server.other_sessions import append_to_claude, claude_session, codex_session
from tests.mcp_server.test_history import asked


class Machine:
    """A home directory, and an index that is brought up to date when it is told to."""

    def __init__(self, home: Path, readers: Sequence[Format] = ()) -> None:
        self.home = home
        self.path = home / "cache" / "other-agents.db"
        self.others = OtherAgents(self.path, readers or formats(), {"HOME": str(home)}, home, version="1")
        self.history = History([OwnStore(store_of(home)), self.others])

    def index(self) -> None:
        self.others.index()

    def rows(self, sql: str) -> list[Any]:
        with closing(open_for_reading(self.path, FOREIGN).database) as database:
            return database.rows(sql)

    async def found(self, query: str, **arguments: str) -> list[str]:
        """The lines of the results."""
        text = await asked(self.history, "recall", query=query, **arguments)
        return [line for line in text.splitlines() if re.match(r"\[[0-9a-f]{8,10}:\d+\]", line)]


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


async def test_all_agents_are_searched_together(machine: Machine) -> None:
    claude_session(machine.home, "c1", "/work/shop", ["Why is the zebra invoice wrong?", "Rounding of the zebra tax."])
    codex_session(machine.home, "x1", "/work/shop/web", ["Paint the zebra", "Painted in black and white"])
    with Store.open(store_of(machine.home)) as store:
        own = talk(store, "/work", "Where does the zebra live?", "In Kenya.")
    machine.index()
    found = await machine.found("zebra")
    assert {line.split(", ")[2] for line in found} == {"nca", "claude", "codex"}
    assert {line.split(", ")[3].partition(":")[0] for line in found} == {"/work", "/work/shop", "/work/shop/web"}
    assert (await machine.found("where does the zebra live"))[0].startswith(f"[{own}:1] user, ")
    assert "Rounding" in (await machine.found("rounding of the tax"))[0]
    assert all(", claude, " in line for line in await machine.found("zebra", agent="claude"))
    assert len(await machine.found("zebra", directory="/work/shop")) >= 2
    assert not await machine.found("zebra", directory="/work/shop", agent="nca")
    assert all(
        ", 2026-03-02, claude" in line for line in await machine.found("zebra", since="2026-03-02", agent="claude")
    )
    listed = await asked(machine.history, "sessions")
    assert "of 3, those used last first" in listed
    assert re.search(r"claude, /work/shop, 2 messages: Why is the zebra invoice wrong\?", listed)
    [claude] = re.findall(r"^\[([0-9a-f]{10})\] .*, claude", listed, re.MULTILINE)
    whole = await asked(machine.history, "expand", messages=f"{claude}:1-2")
    assert "Rounding of the zebra tax." in whole
    assert await asked(machine.history, "expand", messages="c1:1-2") == whole, "by the agent's own id"
    with pytest.raises(ToolError, match=r"no agent 'cline2'; the agents are: nca, .*claude, codex"):
        await machine.found("zebra", agent="cline2")


async def test_files_that_change_and_go(machine: Machine) -> None:
    path = claude_session(machine.home, "c1", "/work", [f"step {n} tiger" for n in range(900)])
    gone = codex_session(machine.home, "x1", "/work", ["lion", "cub"])
    machine.index()
    assert machine.rows("SELECT count(*) FROM messages") == [(902,)]
    before = machine.rows("SELECT seq, id FROM messages ORDER BY id")
    machine.index()
    assert machine.rows("SELECT seq, id FROM messages ORDER BY id") == before
    append_to_claude(path, "/work", ["and a leopard", "seen"])
    gone.unlink()
    machine.index()
    rows = machine.rows("SELECT seq, id FROM messages ORDER BY id")
    assert [row for row in rows if row in before] == rows[:-2], "what was there is not read anew"
    assert await machine.found("leopard")
    assert not await machine.found("lion")
    assert machine.rows("SELECT count(*) FROM passages WHERE passages MATCH 'lion'") == [(0,)]
    claude_session(machine.home, "c1", "/work", ["step 0 tiger", "a panther", "step 2 tiger"])
    machine.index()
    assert machine.rows("SELECT count(*) FROM messages") == [(3,)]
    assert machine.rows("SELECT count(*) FROM passages WHERE passages MATCH 'tiger'") == [(2,)]
    assert await machine.found("panther")
    path.unlink()
    machine.index()
    assert machine.rows("SELECT count(*) FROM sessions") == machine.rows("SELECT count(*) FROM files") == [(0,)]


async def test_a_grown_file_is_read_from_where_it_ended(machine: Machine) -> None:
    path = claude_session(machine.home, "c1", "/work", [f"step {n} tiger" for n in range(901)])
    machine.index()
    [(offset, messages)] = machine.rows("SELECT resume_bytes, resume_messages FROM files")
    assert messages == 900
    assert path.read_bytes()[offset:].count(b"\n") == 1, "the line of the newest words of the person"
    # What was read is not read again: a message there that is different now, at the same length, stays as it was.
    middle = path.read_text().replace("step 450 tiger", "step 450 hyena")
    path.write_text(middle)
    append_to_claude(path, "/work/below", ["and a leopard", "seen", "and an otter", "heard"])
    machine.index()
    assert machine.rows("SELECT count(*) FROM messages") == [(905,)]
    assert not await machine.found("hyena")
    assert "otter" in (await machine.found("otter"))[0]
    assert machine.rows("SELECT title, directory, own_id FROM sessions") == [("step 0 tiger", "/work", "c1")]
    # Another file in its place is read whole, and so is one whose last line is another one now.
    path.write_text(middle.replace("step 0 tiger", "step 0 camel"))
    append_to_claude(path, "/work", ["and a heron"])
    machine.index()
    assert machine.rows("SELECT count(*) FROM messages") == [(902,)]
    assert await machine.found("camel")
    assert await machine.found("hyena")


@settings(max_examples=20, deadline=None)
@given(cuts=st.lists(st.integers(0, 10_000), max_size=5), seed=st.integers(0, 3))
def test_a_file_read_bit_by_bit_gives_what_it_gives_at_once(
    tmp_path_factory: pytest.TempPathFactory, cuts: list[int], seed: int
) -> None:
    machine, whole = Machine(tmp_path_factory.mktemp("home")), Machine(tmp_path_factory.mktemp("other"))
    texts = [f"{'short ' * (seed * n % 40)}{n} text" for n in range(40)]
    source = claude_session(whole.home, "c1", "/work", texts, tool="mcp__zoo__lookup")
    append_to_claude(source, "/work", ["go on", "done", "thanks"])
    body, path = source.read_bytes(), machine.home / ".claude" / "projects" / "-work" / "c1.jsonl"
    path.parent.mkdir(parents=True)
    for end in (*sorted(cut * len(body) // 10_000 for cut in cuts), len(body)):
        path.write_bytes(body[:end])
        machine.index()
    whole.index()
    rows = "SELECT seq, at, role, body, is_cut FROM messages ORDER BY seq"
    assert machine.rows(rows) == whole.rows(rows)
    about = "SELECT own_id, title, directory, updated_at - updated_at, messages FROM sessions"
    assert machine.rows(about) == whole.rows(about)


async def test_long_messages_are_cut_in_the_index_and_shown_whole(machine: Machine) -> None:
    words = " ".join(f"word{n}" for n in range(20_000))
    path = claude_session(machine.home, "c1", "/work", ["short giraffe", f"{words} the very end"])
    machine.index()
    [(size,)] = machine.rows("SELECT length(body) FROM messages WHERE seq = 2")
    assert size < 25_000
    assert await machine.found("word100")
    assert await machine.found("the very end")
    text, wanted, offset = "", "c1:2", 0
    while wanted:
        answer = await asked(machine.history, "expand", messages=wanted, offset=offset)
        head, _, rest = answer.partition("\n\n")
        text += rest.partition("\n")[2]
        more = re.search(r"offset=(\d+)", head)
        wanted, offset = ("c1:2", int(more[1])) if more else ("", 0)
    assert text == f"{words} the very end"
    path.unlink()
    assert "characters …]" in await asked(machine.history, "expand", messages="c1:2", offset=19_900)


async def test_calls_of_nca_itself_are_not_found(machine: Machine) -> None:
    claude_session(machine.home, "c1", "/work", ["Look it up", "I will"], tool="mcp__nca__recall")
    claude_session(machine.home, "c2", "/work", ["Look it up", "I will"], tool="mcp__zoo__lookup")
    machine.index()
    found = await machine.found("zebra")
    assert len({line[:11] for line in found}) == 1


async def test_what_was_imported_is_found_once(machine: Machine) -> None:
    path = claude_session(machine.home, "c1", "/work", ["Where is the zebra?", "In the barn."])
    machine.index()
    other = (await machine.found("barn"))[0][1:11]
    with Store.open(store_of(machine.home)) as store:
        own = import_stored(store, CLAUDE.stored(Source.of_file(path), About())).info.id
    assert {line[1:9] for line in await machine.found("zebra barn")} == {own}
    assert "of 1, " in await asked(machine.history, "sessions")
    assert "of 1, " in await asked(machine.history, "sessions", agent="claude")
    assert await machine.found("zebra barn", session=other), "it was named"
    assert await machine.found("zebra barn", agent="claude")
    append_to_claude(path, "/work", ["And the giraffe?", "In the meadow."])
    machine.index()
    assert {line[1:11] for line in await machine.found("giraffe meadow")} == {other}, "what came later is only there"
    assert "of 2, " in await asked(machine.history, "sessions")


async def test_what_subagents_did_is_found_with_its_session_and_not_listed(machine: Machine) -> None:
    main = claude_session(machine.home, "main-1", "/work", ["Look for the zebra", "It is in the barn."])
    beside, inside = (main.with_name("agent-a1.jsonl"), main.with_suffix("") / "subagents" / "agent-b2.jsonl")
    inside.parent.mkdir(parents=True)
    for path, word in ((beside, "giraffe"), (inside, "leopard")):
        rows = main.read_text().replace('"isSidechain": false', '"isSidechain": true, "agentId": "x"')
        path.write_text(rows.replace("zebra", word))
    machine.index()
    for word in ("giraffe", "leopard"):
        [hit] = [line for line in await machine.found(word) if word in line]
        assert ", claude (subagent of main-1), /work: " in hit
        shown = await asked(machine.history, "expand", messages=f"{hit[1:11]}:1-2")
        assert "claude (subagent of main-1)" in shown.splitlines()[0]
    assert "of 1, " in await asked(machine.history, "sessions")
    assert "zebra" in await asked(machine.history, "expand", messages="main-1:1")
    assert [one.path for one in stored_sessions({}, machine.home).sessions] == [main], "there is nothing to go on with"


async def test_subagents_of_codex_are_found_with_their_session(machine: Machine) -> None:
    codex_session(machine.home, "x1", "/work", ["Paint the zebra", "Painted"])
    spawned = codex_session(machine.home, "x2", "/work", ["Mix the colour ochre", "Mixed"])
    source = {"subagent": {"thread_spawn": {"parent_thread_id": "x1", "depth": 1}}}
    spawned.write_text(spawned.read_text().replace('"id": "x2"', f'"id": "x2", "source": {json.dumps(source)}', 1))
    machine.index()
    assert all(", codex (subagent of x1), /work: " in line for line in await machine.found("ochre"))
    assert await machine.found("ochre")
    assert "of 1, " in await asked(machine.history, "sessions")


class Torn(Format):
    """A format whose reader has a fault."""

    name, title = "torn", "Torn"

    def __init__(self, file: Path) -> None:
        self._file = file

    def knows(self, source: Source) -> bool:
        return False

    def sessions(self, source: Source) -> Iterator[Any]:
        raise KeyError("uuid")

    def read(self, source: Source, key: str = "") -> Iterator[Record]:
        return iter(())

    def files(self, env: Mapping[str, str], home: Path) -> Iterator[Path]:
        return iter([self._file, self._file.with_name("missing")])


async def test_what_cannot_be_read_hides_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NCA_HOME", str(tmp_path / "nca"))
    machine = Machine(tmp_path, [Torn(tmp_path / "torn.jsonl"), *formats()])
    (tmp_path / "torn.jsonl").write_text("x")
    claude_session(tmp_path, "c1", "/work", ["a hippo", "yes"])
    with (tmp_path / ".claude" / "projects" / "-work" / "c1.jsonl").open("a") as file:
        file.write('{"half": ')
    (tmp_path / ".claude" / "projects" / "-work" / "bad.jsonl").write_bytes(b"\x00\xff garbage\n" * 50)
    store_of(tmp_path).parent.mkdir(parents=True)
    store_of(tmp_path).write_bytes(b"no database " * 1_000)
    machine.index()
    text = await asked(machine.history, "recall", query="hippo")
    assert "a hippo" in text
    assert "some sessions cannot be read: " in text
    assert "is damaged" in text
    assert "1 file of other agents cannot be read" in text


@pytest.mark.parametrize("table", ["sessions", "messages", "passages"])
@pytest.mark.parametrize("is_own", [True, False])
async def test_a_table_that_cannot_be_read_hides_no_hits_of_other_places(
    machine: Machine, table: str, is_own: bool
) -> None:
    claude_session(machine.home, "c1", "/work", ["a foreign hippo", "yes"])
    machine.index()
    with Store.open(store_of(machine.home)) as store:
        talk(store, "/work", "an own hippo", "yes")
    whole = await asked(machine.history, "recall", query="hippo")
    assert "foreign hippo" in whole
    assert "own hippo" in whole
    torn = store_of(machine.home) if is_own else machine.path
    with closing(sqlite3.connect(torn)) as database:
        database.execute("PRAGMA writable_schema = ON")
        database.execute("DELETE FROM sqlite_schema WHERE name = ?", (table,))
        database.commit()
    text = await asked(Machine(machine.home).history, "recall", query="hippo")
    assert ("foreign hippo" if is_own else "own hippo") in text
    assert "some sessions cannot be read: " in text


async def test_an_index_that_is_damaged_or_of_another_version_is_made_again(machine: Machine) -> None:
    claude_session(machine.home, "c1", "/work", ["an okapi", "yes"])
    machine.index()
    [(first,)] = machine.rows("SELECT id FROM sessions")
    machine.path.write_bytes(b"no database " * 1_000)
    machine.index()
    assert await machine.found("okapi")
    assert machine.rows("SELECT id FROM sessions") == [(first,)], "an id that was given stays"
    assert not list(machine.path.parent.glob("*corrupt*"))
    with closing(ForeignIndex(machine.path, "another version")) as index:
        assert not index.files()
        assert progress(index.database).files == 1


async def test_over_the_pipe_while_the_index_is_made(tmp_path: Path) -> None:
    for number in range(60):
        claude_session(tmp_path, f"c{number}", f"/work/{number % 3}", [f"the gnu number {number}", "grazes"] * 5)
    os.utime(claude_session(tmp_path, "newest", "/work/new", ["a quokka", "smiles"]))
    folder = str(tmp_path / ".claude")
    async with served(tmp_path, "serve", "--all", CLAUDE_CONFIG_DIR=folder) as client:
        text = "not indexed yet"
        while "not indexed yet" in text or "indexed 0 of" in text:
            text = await asked_server(client, "recall", query="quokka")
        assert ", claude, " in text, "newest files come first"
        while "ask again" in await asked_server(client, "sessions"):
            pass
        assert "of 61, " in await asked_server(client, "sessions")
        claude_session(tmp_path, "later", "/work/new", ["a numbat", "digs"])
        while "numbat" not in await asked_server(client, "recall", query="numbat"):
            pass
    assert (tmp_path / "nca" / "cache" / "other-agents.db").stat().st_mode & 0o077 == 0
    async with served(tmp_path, "serve", "--own", "--all", CLAUDE_CONFIG_DIR=folder) as client:
        assert "No session fits." in await asked_server(client, "sessions")
