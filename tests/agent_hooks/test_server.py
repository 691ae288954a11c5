"""The server of the hooks and the program that asks it, as processes: what is told, and that nothing ever breaks."""

from __future__ import annotations

import json
import shlex
import socket
import sys
import time
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from nca.agent_hooks import client
from nca.agent_hooks.agents import command_line
from nca.agent_hooks.handover import MOST_CHARS, START
from nca.agent_hooks.server import Line
from nca.agent_hooks.session import Transcript, WatchedSession
from nca.transcripts.formats.registry import format_named
from tests.agent_hooks.running import Running, until
from tests.mcp_server.other_sessions import append_to_claude, claude_session, codex_session

DIRECTORY = "/work/harbour"
WORDS = "Never touch tide.py, it belongs to Ada."
CALL = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "make tide", "description": "Build it"}}
NESTED = b'{"session_id": "x", "hook_event_name": "y", "tool_input": ' + b"[" * 100_000
FAILED = {"type": "tool_result", "tool_use_id": "t1", "is_error": True, "content": "tide.c:7: no such harbour"}


@pytest.fixture(scope="module")
def person(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    running = Running(tmp_path_factory.mktemp("home"))
    with running.server():
        yield running


class Session:
    """A session of Claude Code."""

    def __init__(self, person: Running, texts: tuple[str, ...] = (WORDS, "It stays as it is.")) -> None:
        self.person, self.id = person, str(uuid.uuid4())
        self.path = claude_session(person.home, self.id, DIRECTORY, texts)
        self.newest = f"{self.id}-{len(texts) - 1}"

    @property
    def log(self) -> list[Line]:
        return [line for line in self.person.log() if line.session == self.id]

    def event(self, name: str, **more: Any) -> dict[str, Any]:
        common = {"session_id": self.id, "transcript_path": str(self.path), "cwd": DIRECTORY, "hook_event_name": name}
        return common | more

    def call(self, command: str = "make tide", **more: Any) -> dict[str, Any]:
        return self.event("PreToolUse", tool_name="Bash", tool_input={"command": command}, tool_use_id="t9", **more)

    def append(self, *rows: dict[str, Any]) -> None:
        with self.path.open("a") as file:
            for row in rows:
                common = {"uuid": str(uuid.uuid4()), "parentUuid": self.newest, "sessionId": self.id}
                self.newest = common["uuid"]
                file.write(json.dumps(common | row) + "\n")

    def say(self, role: str, *blocks: dict[str, Any]) -> None:
        self.append({"type": role, "message": {"role": role, "content": list(blocks)}})

    def compact(self, summary: str) -> None:
        self.append(
            {"type": "system", "subtype": "compact_boundary", "parentUuid": None, "logicalParentUuid": self.newest},
            {"type": "user", "isCompactSummary": True, "message": {"role": "user", "content": summary}},
        )


def test_after_a_compaction_the_words_are_handed_back_once(person: Running) -> None:
    session = Session(person)
    assert person.ask(session.event("SessionStart", source="startup")) == ""
    assert person.ask(session.event("PreCompact", trigger="auto")) == ""
    told = person.ask_until(session.event("SessionStart", source="compact"))
    assert WORDS in told
    line = until(lambda: session.log)[-1]
    assert (line.agent, line.event, line.directory) == ("claude", "SessionStart (compact)", DIRECTORY)
    assert (line.text, line.ms) == (told, 7)
    assert person.ask(session.event("UserPromptSubmit", prompt="go on")) == ""
    assert (person.folder / client.LOG).stat().st_mode & 0o777 == 0o600
    assert (person.folder / client.SOCKET).stat().st_mode & 0o777 == 0o600


def test_what_nobody_took_is_told_with_the_next_event(person: Running) -> None:
    session = Session(person)
    person.ask(session.event("PreCompact", trigger="auto"))
    until(lambda: person.ask(session.event("SessionStart", source="compact"), takes=False))
    until(lambda: any("the hook had gone" in line.problem for line in session.log))
    assert WORDS in person.ask(session.call())
    until(lambda: any(line.text for line in session.log))
    assert person.ask(session.call()) == ""


def test_what_stands_in_the_summary_is_not_told_again(person: Running) -> None:
    session = Session(person, (WORDS, "It stays.", "Write the report for Olu.", "Written."))
    person.ask(session.event("PreCompact", trigger="auto"))
    until(lambda: person.ask(session.event("SessionStart", source="compact"), takes=False))
    session.compact(f"The user said: {WORDS}")
    prompt = session.event("UserPromptSubmit", prompt="go on")
    told = until(lambda: WORDS not in (told := person.ask(prompt, takes=False)) and told)
    assert "Write the report for Olu." in told


def test_a_later_compaction_is_told_what_it_lost_itself(person: Running) -> None:
    session = Session(person, (WORDS, "It stays.", "Write the report for Olu.", "Written."))
    person.ask(session.event("PreCompact", trigger="auto"))
    until(lambda: person.ask(session.event("SessionStart", source="compact"), takes=False))
    session.compact(f"The user said: {WORDS}")
    prompt = session.event("UserPromptSubmit", prompt="go on")
    until(lambda: WORDS not in (told := person.ask(prompt, takes=False)) and told)
    assert "Write the report for Olu." in person.ask(prompt)
    session.say("user", {"type": "text", "text": "Greet Bea tomorrow."})
    session.say("assistant", {"type": "text", "text": "I will."})
    person.ask(session.event("PreCompact", trigger="auto"))
    assert "Greet Bea tomorrow." in person.ask_until(session.event("SessionStart", source="compact"))


def test_messages_that_come_while_the_agent_compacts_are_told(person: Running) -> None:
    session = Session(person)
    person.ask(session.event("PreCompact", trigger="auto"))
    append_to_claude(session.path, DIRECTORY, ["And greet Olu."])
    until(lambda: "And greet Olu." in person.ask(session.event("SessionStart", source="compact"), takes=False))


def test_a_server_that_missed_the_beginning_still_tells(person: Running) -> None:
    session = Session(person)
    person.ask(session.event("SessionStart", source="compact"))
    assert WORDS in person.ask_until(session.event("UserPromptSubmit", prompt="go on"))


def test_a_call_that_failed_before_is_said_and_nothing_else(person: Running) -> None:
    session = Session(person)
    assert person.ask(session.call()) == ""
    session.say("assistant", CALL)
    session.say("user", FAILED)
    assert "failed before" in (told := person.ask(session.call()))
    assert "tide.c:7: no such harbour" in told
    assert person.ask(session.call("make harbour")) == ""
    assert person.ask(session.call(agent_id="a subagent")) == ""
    session.say("user", {"type": "text", "text": "I have added the harbour."})
    assert person.ask(session.call()) == ""


class CodexSession(Session):
    """A session of Codex."""

    def __init__(self, person: Running, texts: tuple[str, ...]) -> None:
        self.person, self.id = person, str(uuid.uuid4())
        self.path = codex_session(person.home, self.id, DIRECTORY, texts)

    def append(self, *rows: dict[str, Any]) -> None:
        with self.path.open("a") as file:
            file.writelines(json.dumps({"timestamp": "2026-03-01T10:00:01.000Z"} | row) + "\n" for row in rows)

    def add(self, kind: str, **payload: Any) -> None:
        self.append({"type": "response_item", "payload": {"type": kind} | payload})


def test_codex_keeps_words_and_is_told_the_rest(person: Running) -> None:
    codex = Running(person.home, "codex")
    session = CodexSession(codex, (WORDS, "It stays as it is.", "Plan it."))
    plan = json.dumps({"plan": [{"step": "measure the tide", "status": "pending"}]})
    session.add("function_call", name="update_plan", call_id="p1", arguments=plan)
    session.add("function_call_output", call_id="p1", output="Plan updated")
    codex.ask(session.event("PreCompact", trigger="auto"))
    compacted = session.event("SessionStart", source="compact")
    until(lambda: WORDS in codex.ask(compacted, takes=False))
    kept = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": WORDS}]}
    session.append({"type": "compacted", "payload": {"message": "We go on.", "replacement_history": [kept]}})
    assert codex.ask(session.event("PostCompact", trigger="auto")) == ""
    told = until(lambda: WORDS not in (told := codex.ask(compacted, takes=False)) and told)
    assert "- measure the tide" in told
    assert "It stays as it is." in told


def test_codex_names_a_call_otherwise_in_its_transcript(person: Running) -> None:
    codex = Running(person.home, "codex")
    session = CodexSession(codex, (WORDS, "It stays as it is.", "Run it."))
    for call_id in ("t1", "t9"):
        session.add("function_call", name="exec_command", call_id=call_id, arguments='{"cmd": "make tide"}')
        if call_id == "t1":
            output = "Wall time: 0.0 seconds\nProcess exited with code 2\nOutput:\nno such harbour"
            session.add("function_call_output", call_id=call_id, output=output)
    assert "no such harbour" in codex.ask(session.call())


class GeminiSession(Session):
    """A session of Gemini CLI."""

    def __init__(self, person: Running, *texts: str) -> None:
        self.person, self.id = person, str(uuid.uuid4())
        self.path = person.agent_home / "tmp" / "harbour" / "chats" / f"session-{self.id}.jsonl"
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.path.write_text(json.dumps({"sessionId": self.id, "projectHash": "h", "kind": "main"}) + "\n")
        self.append(*(self.row(("user", "gemini")[place % 2], text) for place, text in enumerate(texts)))

    def row(self, kind: str, text: str) -> dict[str, Any]:
        at = datetime.now(UTC).isoformat()
        return {"id": str(uuid.uuid4()), "timestamp": at, "type": kind, "content": [{"text": text}]}

    def append(self, *rows: dict[str, Any]) -> None:
        with self.path.open("a") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)


def test_gemini_is_told_behind_a_result_once_its_transcript_has_the_summary(person: Running) -> None:
    gemini = Running(person.home, "gemini")
    session = GeminiSession(gemini, WORDS, "It stays as it is.", "Greet Olu.", "Greeted.")
    answered = session.event("AfterTool", tool_name="run_shell_command", tool_input={}, tool_response={})
    assert gemini.ask(session.event("BeforeAgent", prompt="go on")) == ""
    session.append({"$set": {"messages": [session.row("user", "the same, read again")]}})
    assert gemini.ask(answered) == ""
    summary = session.row("user", f"<state_snapshot>The user said: {WORDS}</state_snapshot>")
    asked = session.row("user", "Go on.")
    session.append(asked, {"$set": {"messages": [summary, session.row("gemini", "Got it."), asked]}})
    told = until(lambda: gemini.ask(answered, takes=False))
    assert "Greet Olu." in told
    assert WORDS not in told
    assert gemini.ask(answered) == told
    # That it was not taken before may be logged later than that it was taken now.
    until(lambda: any(line.text for line in session.log))
    session.append(session.row("user", f"a result\n\n<hook_context>{told}</hook_context>"))
    assert gemini.ask(answered) == ""
    asked = session.row("user", "Go on, please.")
    summary = session.row("user", "<state_snapshot>We greet.</state_snapshot>")
    session.append(asked, {"$set": {"messages": [summary, session.row("gemini", "Got it."), asked]}})
    told = until(lambda: gemini.ask(answered))
    assert told.count(told.partition("\n")[0]) == 1


def test_a_line_about_a_call_takes_nothing_off_what_is_owed(person: Running) -> None:
    session = Session(person)
    session.say("assistant", CALL)
    session.say("user", FAILED)
    person.ask(session.event("PreCompact", trigger="auto"))
    assert "failed before" in person.ask(session.call())
    assert WORDS in person.ask_until(session.event("SessionStart", source="compact"))


def test_an_answer_has_no_more_characters_than_count(person: Running) -> None:
    texts = (
        f"{who} {number}: {' '.join(f'{who}{number}_{word}' for word in range(40))}"
        for number in range(60)
        for who in ("wish", "did")
    )
    session = Session(person, tuple(texts))
    session.say("assistant", CALL)
    session.say("user", FAILED | {"content": "no such harbour, and no tide " * 20})
    person.ask(session.event("PreCompact", trigger="auto"))
    until(lambda: person.ask(session.event("SessionStart", source="compact"), takes=False))
    told = person.ask(session.call())
    assert told.startswith(START)
    assert len(told) <= MOST_CHARS
    # The line that had no room is told once it has some.
    until(lambda: any(line.text for line in session.log))
    assert "failed before" in person.ask(session.call())


def test_nothing_is_handed_over_where_the_summary_has_it_all(person: Running) -> None:
    session = Session(person)
    reader = format_named("claude")
    assert reader is not None
    watched = WatchedSession(reader, Transcript(person.agent_home / "projects", session.path), str, patience_seconds=60)
    watched.note_compacting()
    watched.prepare()
    session.compact(f"The user said: {WORDS} The answer was: It stays as it is.")
    watched.note_compacted(time.time())
    assert watched.lost() == ""
    assert not watched.owes
    assert watched.lost() == ""


@pytest.mark.parametrize(
    "event",
    [
        b'{"session_id": "\xff"}',
        NESTED,
        b"{",
        b"\xff",
    ],
)
def test_bytes_that_are_no_event_are_logged(person: Running, event: bytes) -> None:
    def unread() -> int:
        return sum("an event could not be read" in line.problem for line in person.log())

    before = unread()
    assert person.answer(event) == b""
    until(lambda: unread() == before + 1)


@pytest.mark.parametrize("kind", ["outside", "link", "missing", "folder", "relative"])
def test_only_files_of_the_agent_are_read(person: Running, kind: str) -> None:
    session = Session(person)
    secret = person.home / "secret.jsonl"
    secret.write_bytes(session.path.read_bytes())
    session.path.unlink()
    match kind:
        case "outside":
            session.path = secret
        case "link":
            session.path.symlink_to(secret)
        case "folder":
            session.path.mkdir()
        case "relative":
            session.path = session.path.parent / ".." / ".." / ".." / secret.name
    assert person.ask(session.event("SessionStart", source="compact")) == ""
    until(lambda: any(line.problem for line in session.log))
    assert person.ask(session.event("UserPromptSubmit", prompt="go on")) == ""
    assert not any(line.text for line in session.log)


@pytest.mark.parametrize("event", [[], {}, {"hook_event_name": 1, "session_id": "x"}, {"hook_event_name": "Stop"}])
def test_an_event_that_nobody_knows_is_no_problem(person: Running, event: Any) -> None:
    assert person.run(command_line(person.agent, person.env), event).stdout == ""
    session = Session(person)
    assert person.ask(session.event("Other")) == ""
    assert person.ask(session.event("PreToolUse") | {"transcript_path": None}) == ""


def test_the_program_that_agents_run_prints_the_answer(person: Running) -> None:
    session = Session(person)
    person.ask(session.event("PreCompact", trigger="auto"))
    command = command_line(person.agent, person.env)
    # On a busy machine it may give up, and asks again here.
    printed = until(lambda: person.run(command, session.event("SessionStart", source="compact")).stdout)
    told = json.loads(printed)["hookSpecificOutput"]
    assert told["hookEventName"] == "SessionStart"
    assert WORDS in told["additionalContext"]
    until(lambda: any(line.text and line.ms is not None for line in session.log))


def test_the_first_hook_starts_the_server(tmp_path: Path) -> None:
    person = Running(tmp_path)
    session, command = Session(person), command_line(person.agent, person.env)
    assert person.run(command, session.event("PreCompact", trigger="auto")).stdout == ""
    until(person.is_listening)
    try:
        # The event that started it is known to it.
        until(lambda: WORDS in person.ask(session.event("SessionStart", source="compact")))
    finally:
        (person.folder / client.SOCKET).unlink()  # it ends when nobody can reach it


@pytest.mark.parametrize("kind", ["no python", "no program", "no folder", "killed", "silent"])
def test_an_agent_is_never_disturbed(tmp_path: Path, kind: str) -> None:
    person = Running(tmp_path)
    session, command = Session(person), command_line(person.agent, person.env)
    if kind == "no python":
        command = command.replace(shlex.quote(sys.executable), "/nowhere/python")
    elif kind == "no program":
        command = command.replace(client.__file__, "/nowhere/client.py")
    elif kind == "no folder":
        (tmp_path / ".cache").write_text("a file")
    elif kind == "killed":
        with person.server() as process:
            process.kill()
            process.wait()
        (person.folder / client.STARTING).touch()  # so that no other one is started
    elif kind == "silent":
        # A server that takes the event and never answers.
        person.folder.mkdir(parents=True)
        silent = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        silent.bind(str(person.folder / client.SOCKET))
        silent.listen()
    done = person.run(command, session.call())
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)
    if kind == "silent":
        silent.close()
        assert [line.problem for line in person.log()] == ["nca had no answer in time"]


def test_of_two_servers_one_stays(person: Running) -> None:
    with person.server() as other:
        assert other.wait() == 0
    assert person.is_listening()
