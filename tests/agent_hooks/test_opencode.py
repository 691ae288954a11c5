"""opencode's plugin and its database: what is told to its model, and that the plugin comes and goes as one file."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from nca.agent_hooks.agents import AGENTS, installed, problem_of, programs, settings_file, uninstalled
from nca.agent_hooks.session import StoredTranscript
from nca.context.repeats import FAILED_BEFORE
from nca.errors import ConfigError
from tests.agent_hooks.running import Running, until

AGENT = AGENTS["opencode"]
WORDS, KEPT = "Never touch tide.py, it belongs to Ada.", "Greet Olu before the boat leaves."
COMMAND = {"command": "make tide", "description": "Build it"}
SAID_OF_FAILURE = FAILED_BEFORE.partition("{")[0]


class Store:
    """opencode's database as it is while opencode runs: open, with what is new in its log."""

    def __init__(self, folder: Path, session: str) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.session, self.count = session, 0
        self.connection = sqlite3.connect(folder / "opencode.db", isolation_level=None)
        self.connection.executescript(
            "PRAGMA journal_mode=WAL;"
            "CREATE TABLE IF NOT EXISTS session (id TEXT PRIMARY KEY, project_id TEXT, title TEXT, directory TEXT);"
            "CREATE TABLE IF NOT EXISTS message (id TEXT PRIMARY KEY, session_id TEXT, time_created INT, data TEXT);"
            "CREATE TABLE IF NOT EXISTS part (id TEXT PRIMARY KEY, message_id TEXT, data TEXT);"
        )
        self.connection.execute("INSERT INTO session VALUES (?, 'p', 'Tides', '/work/harbour')", (session,))

    def add(self, role: str, *parts: dict[str, Any], is_whole: bool = True, **more: Any) -> str:
        self.count += 1
        message, at = f"msg_{self.session}_{self.count:03}", int(1000 * time.time())
        info = {"role": role, "time": {"created": at} | ({"completed": at} if is_whole else {})} | more
        self.connection.execute(
            "INSERT INTO message VALUES (?, ?, ?, ?)", (message, self.session, at, json.dumps(info))
        )
        for number, part in enumerate(parts):
            self.connection.execute(
                "INSERT INTO part VALUES (?, ?, ?)", (f"prt_{message}{number}", message, json.dumps(part))
            )
        return message

    def say(self, role: str, text: str) -> str:
        return self.add(role, {"type": "text", "text": text}, is_whole=role == "assistant")

    def fail(self, beside: str = "") -> None:
        output = f"no such harbour{beside}"
        state = {"status": "completed", "input": COMMAND, "output": output, "metadata": {"exit": 2}}
        self.add("assistant", {"type": "tool", "tool": "bash", "callID": f"c{self.count}", "state": state})

    def compact(self, summary: str, tail: str) -> None:
        asked = self.add("user", {"type": "compaction", "auto": True, "tail_start_id": tail}, is_whole=False)
        self.add("assistant", {"type": "text", "text": summary}, summary=True, finish="stop", parentID=asked)
        self.add("user", {"type": "text", "text": "Continue.", "synthetic": True}, is_whole=False)

    def event(self, name: str, **more: Any) -> dict[str, Any]:
        return {"session_id": self.session, "hook_event_name": name, "cwd": "/work/harbour"} | more

    def failed(self) -> dict[str, Any]:
        return self.event("tool.execute.failed", tool_name="bash", tool_input=COMMAND, tool_use_id="c9")


@pytest.fixture(scope="module")
def person(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    running = Running(tmp_path_factory.mktemp("home"), "opencode")
    running.agent_home = AGENT.folder(running.env)
    with running.server():
        yield running


@pytest.fixture
def store(person: Running, request: pytest.FixtureRequest) -> Iterator[Store]:
    store = Store(person.agent_home, f"ses_{request.node.name}")
    with closing(store.connection):
        yield store


def test_what_a_compaction_lost_is_told_behind_the_next_result(person: Running, store: Store) -> None:
    store.say("user", WORDS)
    store.say("assistant", "I leave it.")
    store.compact("The work goes on.", store.say("user", KEPT))
    assert person.ask(store.event("chat.message")) == ""
    assert person.ask(store.event("session.compacted")) == ""
    told = person.ask_until(store.event("tool.execute.after"))
    assert WORDS in told
    assert "I leave it." in told
    assert KEPT not in told  # opencode keeps the newest messages beside its summary
    line = until(lambda: [line for line in person.log() if line.session == store.session])[-1]
    assert (line.agent, line.event, line.text) == ("opencode", "tool.execute.after", told)
    assert person.ask(store.event("chat.message")) == ""


def test_what_was_told_is_no_word_of_the_next_record(person: Running, store: Store) -> None:
    store.say("user", WORDS)
    store.compact("The work goes on.", "")
    person.ask(store.event("session.compacted"))
    told = person.ask_until(store.event("chat.message"))
    store.add("user", {"type": "text", "text": KEPT}, {"type": "text", "text": told, "synthetic": True}, is_whole=False)
    store.say("assistant", "Greeted.")
    store.compact("The work still goes on.", "")
    person.ask(store.event("session.compacted"))
    told = person.ask_until(store.event("chat.message"))
    assert KEPT in told
    assert told.count(WORDS) == 1
    assert told.count(told.partition("\n")[0]) == 1


def test_a_call_that_fails_again_is_told_of_once(person: Running, store: Store) -> None:
    store.say("user", WORDS)
    assert person.ask(store.failed()) == ""
    store.fail()
    told = person.ask(store.failed())
    assert told.startswith(SAID_OF_FAILURE)
    store.fail(beside=f"\n\n{told}")
    assert person.ask(store.failed()) == told
    store.say("user", "I have built the harbour.")
    store.add("assistant", is_whole=False)
    assert person.ask(store.failed()) == ""


def test_a_message_counts_once_it_is_whole(store: Store, person: Running) -> None:
    transcript = StoredTranscript(person.agent_home, AGENT.sessions, store.session)
    store.say("user", WORDS)
    assert json.loads(transcript.read()[0])["messages"] == []
    store.add("assistant", is_whole=False)
    raw, end = transcript.read()
    assert (len(json.loads(raw)["messages"]), end) == (1, 1)
    store.say("assistant", "It stays.")
    assert [len(json.loads(transcript.read(start)[0])["messages"]) for start in (0, 1, -1, -9, 3)] == [3, 2, 1, 3, 0]
    with pytest.raises(FileNotFoundError):
        StoredTranscript(person.agent_home, AGENT.sessions, "ses_nobody").read()


def test_the_plugin_is_a_file_of_its_own(tmp_path: Path) -> None:
    env = {"HOME": str(tmp_path), "NCA_HOME": str(tmp_path / "a b")}
    file = settings_file(AGENT, env, None)
    assert file == tmp_path / ".config" / "opencode" / "plugins" / "nca.js"
    assert settings_file(AGENT, env, tmp_path) == tmp_path / ".opencode" / "plugins" / "nca.js"
    assert not uninstalled(AGENT, file).is_needed
    assert programs(AGENT, file) == []
    file.parent.mkdir(parents=True)
    file.write_text(installed(AGENT, env, file).after)
    [program] = programs(AGENT, file)
    assert program.endswith(f" opencode {tmp_path}/.local/share/opencode")
    assert problem_of(program) == ""
    assert not installed(AGENT, env, file).is_needed
    assert installed(AGENT, env | {"NCA_HOME": "/other"}, file).is_needed
    assert uninstalled(AGENT, file).after == ""


@pytest.mark.parametrize("change", ["theirs", "changed"])
def test_a_file_that_nca_did_not_write_so_is_left_alone(tmp_path: Path, change: str) -> None:
    env, file = {"HOME": str(tmp_path)}, tmp_path / "nca.js"
    written = installed(AGENT, env, file).after
    file.write_text(written.replace("PATIENCE_MS = 100", "PATIENCE_MS = 900") if change == "changed" else "mine()\n")
    for attempt in (
        lambda: installed(AGENT, env, file),
        lambda: uninstalled(AGENT, file),
        lambda: programs(AGENT, file),
    ):
        with pytest.raises(ConfigError, match="nca did not write it so; nothing was changed"):
            attempt()


PLAYED = """
import { NcaMemory } from "./nca.mjs"
const hooks = await NcaMemory({ directory: "/work/harbour" })
const sessionID = process.argv[2]
const call = { tool: "bash", sessionID, callID: "c9", args: { command: "make tide" } }
const failed = { output: "no such harbour", metadata: { exit: 2 } }
await hooks["tool.execute.after"](call, failed)
await hooks.event({ event: { type: "session.compacted", properties: { sessionID } } })
const parts = [{ id: "prt_1", type: "text", text: "Go on." }]
for (let tries = 0; parts.length < 2 && tries < Number(process.argv[3]); tries++)
  await hooks["chat.message"]({ sessionID }, { message: { id: "msg_9" }, parts })
const quiet = { output: "fine", metadata: { exit: 0 } }
await hooks["tool.execute.after"](call, quiet)
await hooks["tool.execute.after"](call, { content: [] })
console.log(JSON.stringify({ failed, parts, quiet }))
process.exit(0)
"""


def _played(person: Running, folder: Path, plugin: str, session: str, tries: int) -> dict[str, Any]:
    """What the plugin makes of a failed call, a compaction, the person's message, and a call that succeeds."""
    if shutil.which("node") is None:
        pytest.skip("node is not installed (apt-get install nodejs)")
    (folder / "nca.mjs").write_text(plugin)
    (folder / "play.mjs").write_text(PLAYED)
    program = ["node", str(folder / "play.mjs"), session, str(tries)]
    done = subprocess.run(program, env=person.env, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_the_plugin_hands_over_what_nca_tells(person: Running, store: Store, tmp_path: Path) -> None:
    store.say("user", WORDS)
    store.compact("The work goes on.", "")
    plugin = installed(AGENT, person.env, tmp_path / "none.js").after
    # On a busy machine the plugin may give up, and asks again here.
    played = _played(person, tmp_path, plugin, store.session, 1000)
    _, part = played["parts"]
    assert WORDS in part.pop("text")
    own = {"id": "prt_10", "sessionID": store.session, "messageID": "msg_9", "type": "text", "synthetic": True}
    assert part == own
    assert played["quiet"]["output"] == "fine"


def test_the_plugin_disturbs_nothing_where_nca_is_gone(person: Running, tmp_path: Path) -> None:
    plugin = installed(AGENT, person.env, tmp_path / "none.js").after
    start = plugin.index("const COMMAND = ")
    gone = f'{plugin[:start]}const COMMAND = ["/nowhere/python"]{plugin[plugin.index(chr(10), start) :]}'
    played = _played(person, tmp_path, gone, "ses_1", 2)
    assert played["failed"]["output"] == "no such harbour"
    assert len(played["parts"]) == 1
