"""Hooks that are real scripts, in whole conversations."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from nca import process_groups
from nca.agent.approvals import Answer as PersonsAnswer
from nca.agent.approvals import Nobody
from nca.agent.conversation import Conversation
from nca.agent.user_input import NOT_SENT
from nca.config.loaded import defaults
from nca.events import ApprovalAsked, ErrorRaised, Event, Notice, SideRequestFinished, ToolFinished, TurnFinished
from nca.messages import Message, ToolCall
from nca.models.catalog import ModelFacts
from nca.sessions.store import Store
from nca.testing.scripted import ScriptedModel, ScriptedReply
from nca.words import Words, words

FACTS = ModelFacts(name="scripted/hooks", provider="scripted", window_tokens=40_000)
LOG = "cat >> {log}; echo >> {log}"


class Asked(Nobody):
    """A person who answers every question in one way."""

    def __init__(self, choice: Any = "once") -> None:
        self.choice = choice
        self.asked: list[ApprovalAsked] = []
        self.typed: list[list[str]] = []

    async def ask(self, asked: ApprovalAsked) -> PersonsAnswer:
        self.asked.append(asked)
        return PersonsAnswer(self.choice)

    def typed_ahead(self) -> list[Words]:
        return [words(one) for one in self.typed.pop(0)] if self.typed else []


class Room:
    def __init__(self, path: Path) -> None:
        self.path, self.log = path / "project", path / "log"
        self.path.mkdir()
        self.store = Store.open(path / "sessions.db")
        self.events: list[Event] = []
        self.person = Asked()
        self.model = ScriptedModel([])

    def script(self, name: str, body: str) -> str:
        """A script of Python's; the command that runs it."""
        file = self.path.parent / name
        file.write_text(f"import json, sys\ngiven = json.load(sys.stdin)\n{body}\n")
        return f"{sys.executable} {file}"

    def logs(self, *events: str) -> list[dict[str, Any]]:
        return [{"event": event, "command": LOG.format(log=self.log)} for event in events]

    @property
    def logged(self) -> list[dict[str, Any]]:
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return [json.loads(line) for line in lines if line]

    def run(
        self, hooks: list[dict[str, Any]], *replies: ScriptedReply, settings: dict[str, Any] | None = None
    ) -> TurnFinished:
        """One conversation of one turn."""

        async def run() -> TurnFinished:
            self.model = ScriptedModel(replies, facts=FACTS)
            conversation = Conversation.open(
                defaults().with_values({"hooks": hooks, **(settings or {})}, "the test"),
                store=self.store,
                model=self.model,
                directory=self.path,
                listener=self.events.append,
                person=self.person,
            )
            try:
                return await conversation.send("Go on.")
            finally:
                await conversation.close()

        return asyncio.run(run())

    def of(self, kind: type[Any]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def results(self) -> list[str]:
        return [message["content"] for message in self.model.requests[-1].messages if message["role"] == "tool"]


@pytest.fixture
def room(tmp_path: Path) -> Room:
    return Room(tmp_path)


def call(name: str, call_id: str = "c1", **arguments: Any) -> Message:
    return Message("assistant", None, (ToolCall(call_id, name, json.dumps(arguments)),))


def says(**answer: Any) -> str:
    return f"print(json.dumps({answer!r}))"


def decides(decision: str, **more: Any) -> str:
    specific = {"hookEventName": "PreToolUse", "permissionDecision": decision, **more}
    return says(hookSpecificOutput=specific)


def test_a_script_gets_claudes_names(room: Room) -> None:
    (room.path / "a.txt").write_text("one\n")
    hooks = room.logs("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop", "SessionEnd")
    calls = Message(
        "assistant",
        None,
        (
            ToolCall("c1", "read_file", '{"path": "a.txt"}'),
            ToolCall("c2", "shell", '{"command": "echo hello > b.txt", "timeout_seconds": 3}'),
        ),
    )
    assert room.run(hooks, calls, "Done.").reason == "answered"
    given = {(one["hook_event_name"], one.get("tool_name", "")): one for one in room.logged}
    file = str(room.path / "a.txt")
    assert given["PreToolUse", "Read"]["tool_input"] == {"file_path": file}
    assert given["PostToolUse", "Read"]["tool_response"]["filePath"] == file
    assert given["PreToolUse", "Bash"]["tool_input"] == {"command": "echo hello > b.txt", "timeout": 3000}
    assert given["PostToolUse", "Bash"]["tool_use_id"] == "c2"
    assert given["SessionStart", ""]["source"] == "startup"
    assert given["UserPromptSubmit", ""]["prompt"] == "Go on."
    assert given["Stop", ""]["last_assistant_message"] == "Done."
    assert given["Stop", ""]["stop_hook_active"] is False
    assert given["SessionEnd", ""]["permission_mode"] == "default"
    assert len({one["session_id"] for one in room.logged}) == 1
    assert {one["cwd"] for one in room.logged} == {str(room.path)}


def test_exit_code_2_blocks_a_call_and_its_errors_are_the_reason(room: Room) -> None:
    guard = room.script("guard.py", "print('no rm here', file=sys.stderr)\nsys.exit(2)")
    hooks = [{"event": "PreToolUse", "matcher": "Bash", "command": guard}, *room.logs("PostToolUse")]
    room.run(hooks, call("shell", command="touch made"), "Done.")
    assert room.results == ["[not run: a hook refused it: no rm here]"]
    (shown,) = [event.summary for event in room.events if isinstance(event, ToolFinished)]
    assert shown.startswith("a hook refused it: no rm here (PreToolUse Bash: ")
    assert not (room.path / "made").exists()
    assert not room.person.asked
    assert not room.logged


def test_what_a_hook_allows_is_not_asked_but_a_rule_still_denies(room: Room) -> None:
    hooks = [{"event": "PreToolUse", "command": room.script("yes.py", decides("allow"))}]
    room.person.choice = "deny"
    room.run(hooks, call("shell", command="touch made"), "Done.")
    assert (room.path / "made").exists()
    assert not room.person.asked
    room.run(
        hooks,
        call("shell", command="touch denied"),
        "Done.",
        settings={"permissions.deny": [{"tool": "shell", "subject": "touch"}]},
    )
    assert "a rule of the person's denies it" in room.results[0]
    seen = len(room.logged)
    room.run(hooks, call("shell", command="touch denied"), "Done.", settings={"agent.permission": "plan"})
    assert len(room.logged) == seen, "what the mode forbids is nothing for a hook to decide"
    assert "the permission mode is plan" in room.results[0]
    assert not (room.path / "denied").exists()


def test_hooks_hold_in_subtasks_too(room: Room) -> None:
    guard = [{"event": "PreToolUse", "matcher": "Bash", "command": "echo not here >&2; exit 2"}]
    room.run(guard, call("task", question="What is there?"), call("shell", "c2", command="touch made"), "It.", "Done.")
    assert "[not run: a hook refused it: not here]" in str(room.model.requests[2].messages)
    assert not (room.path / "made").exists()


def test_a_message_typed_ahead_is_asked_about_too(room: Room) -> None:
    room.person.typed = [["a SECRET"], ["and a wish"]]
    hooks = [{"event": "UserPromptSubmit", "command": "grep -q SECRET && { echo no >&2; exit 2; } || echo noted"}]
    calls = [call("shell", f"c{number}", command="echo hello") for number in (1, 2)]
    room.run(hooks, *calls, "Done.")
    sent = str(room.model.requests[-1].messages)
    assert "SECRET" not in sent
    assert "and a wish" in sent
    assert "A hook stopped the message: no. It was: a SECRET" in [notice.message for notice in room.of(Notice)]


async def test_what_was_typed_ahead_is_told_if_ctrl_c_ends_the_hook_that_looks_at_it(room: Room) -> None:
    room.person.typed = [["a wish"]]
    slow = "if [ -e first ]; then touch second; exec sleep 60; else touch first; fi"
    conversation = Conversation.open(
        defaults().with_value("hooks", [{"event": "UserPromptSubmit", "command": slow}], "the test"),
        store=room.store,
        model=ScriptedModel([call("list_directory", path=".")], facts=FACTS),
        directory=room.path,
        listener=room.events.append,
        person=room.person,
    )
    turn = asyncio.create_task(conversation.run_turn("Go on."))
    while not (room.path / "second").exists():
        await asyncio.sleep(0.01)
    turn.cancel()
    assert (await turn).reason == "interrupted"
    assert "a wish" not in str([entry.message for entry in conversation.context.entries])
    assert f"{NOT_SENT}. It was: a wish" in [notice.message for notice in room.of(Notice)]
    await conversation.close()


def test_a_hook_can_have_the_person_asked_even_where_the_mode_allows(room: Room) -> None:
    (room.path / "a.txt").write_text("secret\n")
    asks = room.script("ask.py", decides("ask", permissionDecisionReason="It is private."))
    hooks = [{"event": "PreToolUse", "command": asks}]
    room.person.choice = "deny"
    room.run(hooks, call("read_file", path="a.txt"), "Done.", settings={"agent.permission": "auto"})
    (asked,) = room.person.asked
    assert asked.warning == f"A hook asks about it: It is private. (PreToolUse: {asks})."
    assert "the person said no" in room.results[0]


def test_where_nobody_can_answer_the_hook_is_why_and_not_the_tool(room: Room) -> None:
    (room.path / "a.txt").write_text("secret\n")
    hooks = [{"event": "PreToolUse", "command": room.script("ask.py", decides("ask"))}]
    room.person.choice = "unanswered"
    room.run(hooks, call("read_file", path="a.txt"), "Done.")
    assert (
        "[not run: this call needs the person's approval, and nobody can give it here] A hook asks" in room.results[0]
    )


def test_no_rule_answers_a_hook_that_asks_so_none_is_offered(room: Room) -> None:
    hooks = [{"event": "PreToolUse", "command": room.script("ask.py", decides("ask"))}]
    room.person.choice = "always"
    room.run(hooks, call("shell", command="touch made"), "Done.", settings={"permissions.allow": [{"tool": "*"}]})
    (asked,) = room.person.asked
    assert (asked.subject, asked.allowed_by) == ("", "person")
    assert not (room.path / "made").exists()


def test_a_hook_can_change_the_input_and_the_person_sees_the_change(room: Room) -> None:
    body = """
given["tool_input"]["command"] = "echo changed"
print(json.dumps({"hookSpecificOutput": {"permissionDecision": "ask", "updatedInput": given["tool_input"]}}))
"""
    hooks = [{"event": "PreToolUse", "command": room.script("change.py", body)}]
    room.run(hooks, call("shell", command="touch made", timeout_seconds=3), "Done.")
    assert room.person.asked[0].command == "echo changed"
    assert room.results[0].startswith("changed\n[a hook changed the arguments to ")
    assert '"timeout_seconds": 3' in room.results[0]
    assert not (room.path / "made").exists()


def test_the_strictest_of_several_hooks_decides(room: Room) -> None:
    hooks = [
        {"event": "PreToolUse", "command": room.script(f"{one}.py", decides(one, permissionDecisionReason=one))}
        for one in ("allow", "deny", "ask")
    ]
    room.run(hooks, call("shell", command="touch made"), "Done.")
    assert room.results == ["[not run: a hook refused it: deny]"]


def test_what_a_hook_says_after_a_call_reaches_the_model(room: Room) -> None:
    after = room.script("after.py", says(decision="block", reason="The linter complains."))
    failed = room.script("failed.py", says(hookSpecificOutput={"additionalContext": "Try again."}))
    hooks = [{"event": "PostToolUse", "command": after}, {"event": "PostToolUseFailure", "command": failed}]
    room.run(hooks, call("shell", command="echo hello"), call("shell", "c2", command="exit 3"), "Done.")
    assert room.results[0] == "hello\n[a hook says: The linter complains.]"
    assert room.results[1].endswith("\nTry again.")


def test_a_hook_stops_a_message_or_adds_to_it(room: Room) -> None:
    stops = room.script("stop.py", says(decision="block", reason="No."))
    finished = room.run([{"event": "UserPromptSubmit", "command": stops}])
    assert finished.reason == "failed"
    assert room.of(ErrorRaised)[0].message == "A hook stopped the message: No."
    assert not room.store.list()
    hooks = [
        {"event": "SessionStart", "command": "echo It is Monday."},
        {"event": "UserPromptSubmit", "command": "echo The branch is main."},
    ]
    room.run(hooks, "Yes.")
    sent = str(room.model.requests[0].messages)
    assert "Go on." in sent
    assert "It is Monday." in sent
    assert "The branch is main." in sent
    assert room.of(Notice)[0].message.startswith("A hook added 2 lines · about ")


def test_a_hook_has_the_model_go_on_but_not_for_ever(room: Room) -> None:
    goes_on = room.script("go.py", f"open({str(room.log)!r}, 'a').write(json.dumps(given) + chr(10))\n"
                          + says(decision="block", reason="Run the tests."))  # fmt: skip
    finished = room.run([{"event": "Stop", "command": goes_on}], *["Done."] * 9)
    assert finished.reason == "answered"
    assert finished.steps == 9
    assert [one["stop_hook_active"] for one in room.logged] == [False] + [True] * 7
    assert "Run the tests." in str(room.model.requests[-1].messages[-1])
    told = [one.message for one in room.of(Notice)]
    ends = f": Run the tests. (Stop: {goes_on})"
    assert told == [
        *[f"A hook has the model go on{ends}"] * 7,
        f"A hook has the model go on for the last time (8 of 8){ends}",
    ]


def ok(is_ok: bool, reason: str = "") -> Message:
    return Message("assistant", f"```json\n{json.dumps({'ok': is_ok, 'reason': reason})}\n```")


@pytest.mark.parametrize(
    ("condition", "arguments", "runs"),
    [
        ("Bash(git push *)", {"command": "git push -f origin"}, True),
        ("Bash(*git *commit*)", {"command": "cd a && git commit -m x"}, True),
        ("Bash(git push:*)", {"command": "git status"}, False),
        ("Bash(rm *)", {"command": "echo 'rm'"}, True),
        ("Edit(*.py)", {"path": "a/b.py", "content": "x"}, True),
        ("Edit(src/**)", {"path": "a/b.py", "content": "x"}, False),
        ("Bash", {"path": "a/b.py", "content": "x"}, False),
    ],
)
def test_a_condition_chooses_among_the_calls(room: Room, condition: str, arguments: dict[str, Any], runs: bool) -> None:
    hooks = [{**one, "condition": condition} for one in room.logs("PreToolUse")]
    room.person.choice = "deny"
    room.run(hooks, call("shell" if "command" in arguments else "write_file", **arguments), "Done.")
    assert bool(room.logged) is runs


def test_a_question_to_the_model_refuses_a_call(room: Room) -> None:
    hooks = [{"event": "PreToolUse", "matcher": "Bash", "prompt": "Is this harmless?\n$ARGUMENTS"}]
    room.person.choice = "deny"
    asked = call("shell", command="echo sk-" + "a1B2" * 6)
    room.run(hooks, asked, ok(False, "It shows a key."), call("shell", "c2", command="touch b"), ok(True), "Done.")
    about = str(room.model.requests[1].messages)
    assert "Is this harmless?" in about
    assert '"tool_name": "Bash"' in about.replace("\\", "")
    assert "a1B2a1B2" not in about
    assert room.model.requests[1].tools == []
    assert "It shows a key." in room.results[0]
    assert [one.command for one in room.person.asked] == ["touch b"]
    assert [one.purpose for one in room.of(SideRequestFinished)] == ["question", "question"]


def test_a_question_to_the_model_has_it_go_on(room: Room) -> None:
    hooks = [{"event": "Stop", "prompt": "Were the tests run?"}]
    finished = room.run(hooks, "Done.", ok(False, "Run the tests."), "I ran them.", ok(True))
    assert (finished.reason, finished.steps) == ("answered", 2)
    assert "Run the tests." in str(room.model.requests[2].messages[-1])
    assert '"last_assistant_message": "I ran them."' in room.model.requests[3].messages[-1]["content"]


def test_an_answer_that_is_none_decides_nothing_and_is_said_once(room: Room) -> None:
    hooks = [{"event": "Stop", "prompt": "Were the tests run?"}]
    finished = room.run(hooks, "Done.", "Yes, I think so.")
    assert finished.reason == "answered"
    assert [one.message for one in room.of(Notice) if "Stop" in one.message] == [
        'The hook Stop: asks "Were the tests run?" did not work: '
        'the model did not answer with {"ok": true} or {"ok": false}.'
    ]


def test_a_hook_ends_the_turn(room: Room) -> None:
    ends = room.script("end.py", says(**{"continue": False, "stopReason": "It is late."}))
    finished = room.run([{"event": "PostToolUse", "command": ends}], call("shell", command="echo hello"))
    assert finished.reason == "failed"
    assert room.of(ErrorRaised)[0].message == "A hook ended the turn: It is late."


def test_a_hook_that_ended_a_turn_does_not_end_the_next(room: Room) -> None:
    answer = says(**{"continue": False, "stopReason": "It is late."})
    ends = room.script("end.py", f"if 'first' in given['tool_input']['command']: {answer}")
    replies: list[ScriptedReply] = [
        call("shell", command="echo first"),
        call("shell", "c2", command="echo second"),
        "Done.",
    ]

    async def run() -> tuple[str, str]:
        conversation = Conversation.open(
            defaults().with_values({"hooks": [{"event": "PostToolUse", "command": ends}]}, "the test"),
            store=room.store,
            model=ScriptedModel(replies, facts=FACTS),
            directory=room.path,
            person=room.person,
        )
        first = await conversation.send("One.")
        second = await conversation.send("Two.")
        await conversation.close()
        return first.reason, second.reason

    assert asyncio.run(run()) == ("failed", "answered")


def test_hooks_hear_of_a_question(room: Room) -> None:
    room.run(room.logs("Notification"), call("shell", command="touch made"), "Done.")
    assert [one["notification_type"] for one in room.logged] == ["permission_prompt"]
    assert room.logged[0]["message"] == "nca needs your permission to use Bash"


def compacted(room: Room, hooks: list[dict[str, Any]]) -> str:
    async def run() -> str:
        conversation = Conversation.open(
            defaults().with_values({"hooks": hooks}, "the test"),
            store=room.store,
            model=ScriptedModel(["An answer. " * 200] * 28 + ["A summary."] * 4, facts=FACTS),
            directory=room.path,
            listener=room.events.append,
        )
        try:
            for turn in range(28):
                await conversation.send(f"Never touch file{turn}.py. Question {turn}?")
            outcome = await conversation.context.compact()
            return outcome.message
        finally:
            await conversation.close()

    return asyncio.run(run())


def test_hooks_hear_what_a_compaction_kept_and_took(room: Room) -> None:
    assert "Compacted" in compacted(room, room.logs("PreCompact", "PostCompact"))
    before, after = room.logged
    assert before["trigger"] == after["trigger"] == "manual"
    assert before["used_tokens"] == after["tokens_before"] > after["tokens_after"]
    assert after["facts"]
    assert all(fact["kept"] >= 0 <= fact["gone"] for fact in after["facts"].values())
    taken = sum(one["before"] - one["after"] for one in after["tokens"].values())
    assert taken == after["tokens_before"] - after["tokens_after"]
    assert after["hidden_messages"]
    assert after["compact_summary"]


def test_a_hook_forbids_a_compaction(room: Room) -> None:
    said = compacted(room, [{"event": "PreCompact", "command": "echo not now >&2; exit 2"}])
    assert said == "A hook stopped the compaction: not now"


def test_a_hook_forbids_a_preview_that_is_accepted(room: Room) -> None:
    async def run() -> None:
        conversation = Conversation.open(
            defaults().with_values(
                {"hooks": [{"event": "PreCompact", "command": "echo not now >&2; exit 2"}]}, "the test"
            ),
            store=room.store,
            model=ScriptedModel(["An answer. " * 200] * 28 + ["A summary."] * 4, facts=FACTS),
            directory=room.path,
        )
        try:
            for turn in range(28):
                await conversation.send(f"Never touch file{turn}.py. Question {turn}?")
            preview = await conversation.context.preview()
            assert preview.proposal.compacted
            before = conversation.context.stats().used_tokens
            outcome = await conversation.context.accept(preview)
            assert (outcome.compacted, outcome.message) == (False, "A hook stopped the compaction: not now")
            assert conversation.context.stats().used_tokens == before
        finally:
            await conversation.close()

    asyncio.run(run())


def test_what_a_hook_formats_goes_back_with_the_turn(room: Room) -> None:
    formats = room.script("format.py", "open(given['tool_input']['file_path'], 'a').write('formatted')")
    hooks = [{"event": "PostToolUse", "matcher": "Write", "command": formats}]

    async def run() -> None:
        conversation = Conversation.open(
            defaults().with_values({"hooks": hooks}, "the test"),
            store=room.store,
            model=ScriptedModel([call("write_file", path="a.txt", content="one\n"), "Done."], facts=FACTS),
            directory=room.path,
            person=room.person,
        )
        finished = await conversation.send("Write it.")
        assert finished.files_changed == ("a.txt",)
        assert (room.path / "a.txt").read_text() == "one\nformatted"
        point = conversation.rewinds.point(1)
        outcome = await conversation.rewinds.go_back(point, await conversation.rewinds.plan(point), "both")
        assert not (room.path / "a.txt").exists(), outcome
        await conversation.close()

    asyncio.run(run())


def test_a_session_that_goes_on_says_so(room: Room) -> None:
    async def run(session: str | None) -> str:
        conversation = Conversation.open(
            defaults().with_values({"hooks": room.logs("SessionStart")}, "the test"),
            store=room.store,
            model=ScriptedModel(["One.", "Two."], facts=FACTS),
            directory=room.path,
            session=session,
        )
        await conversation.send("First.")
        await conversation.send("Second.")
        await conversation.close()
        return conversation.session.info.id

    first = asyncio.run(run(None))
    assert asyncio.run(run(first)) == first
    assert [one["source"] for one in room.logged] == ["startup", "resume"]


def test_a_script_can_read_the_transcript(room: Room) -> None:
    read = room.script("read.py", f"open({str(room.log)!r}, 'w').write(open(given['transcript_path']).read())")
    hooks = [{"event": "UserPromptSubmit", "command": "true"}, {"event": "Stop", "command": read}]
    room.run(hooks, call("shell", command="echo hello"), "Done.")
    assert [one["type"] for one in room.logged] == ["user", "assistant", "user", "assistant"]
    assert room.logged[1]["message"]["content"][0]["name"] == "shell"
    assert room.logged[3]["message"] == {"role": "assistant", "content": [{"type": "text", "text": "Done."}]}
    assert not list(room.path.parent.rglob("transcript.jsonl"))


BAD = {
    "hangs": "sleep 600",
    "floods": "yes",
    "crashes": "kill -SEGV $$",
    "garbage": "printf x; head -c 5000 /dev/urandom",
    "half": "echo '{\"decision\": '",
    "types": 'echo \'{"decision": 7, "reason": [], "hookSpecificOutput": [1], "continue": "no", "systemMessage": {}}\'',
    "deep": 'python3 -c \'print("{\\"a\\":" * 99999)\'',
    "missing": "/nowhere/at/all",
    "daemon": "sleep 600 & exit 1",
    "closes": "exec 0<&- 1>&- 2>&-; exit 3",
}


@pytest.mark.parametrize("kind", BAD)
def test_a_hook_that_fails_never_breaks_a_turn(room: Room, kind: str) -> None:
    events = ("SessionStart", "PreToolUse", "PostToolUse", "Stop", "SessionEnd")
    hooks = [{"event": event, "command": BAD[kind], "timeout_seconds": 1} for event in events]
    finished = room.run(hooks, call("shell", command="echo hello"), "Done.")
    assert (finished.reason, finished.text) == ("answered", "Done.")
    assert room.results == ["hello"]
    told = [notice.message for notice in room.of(Notice) if notice.message.startswith("The hook ")]
    assert len(told) == len(set(told)) <= len(events)
    assert bool(told) is (kind not in ("garbage", "types"))


def test_a_hook_that_fails_in_python_is_said_with_its_error(room: Room) -> None:
    room.run([{"event": "Stop", "command": "python3 -c 'import json; json.loads(\"\")'"}], "Done.")
    (told,) = (notice.message for notice in room.of(Notice) if notice.message.startswith("The hook "))
    assert "JSONDecodeError: Expecting value" in told
    assert "Traceback" not in told


def test_an_interrupt_stops_a_hook_and_the_call(room: Room) -> None:
    hooks = [{"event": "PreToolUse", "command": f"touch {room.log}; sleep 600"}]

    async def run() -> TurnFinished:
        conversation = Conversation.open(
            defaults().with_values({"hooks": hooks}, "the test"),
            store=room.store,
            model=ScriptedModel([call("shell", command="touch made")], facts=FACTS),
            directory=room.path,
            person=room.person,
        )
        turn = asyncio.create_task(conversation.run_turn(words("Go on.")))
        while not room.log.exists():
            await asyncio.sleep(0.01)
        turn.cancel()
        finished = await turn
        last = conversation.session.log.entries()[-1].message
        assert (last.role, last.text) == ("tool", "[not run: the person stopped the turn]")
        await conversation.close()
        return finished

    assert asyncio.run(run()).reason == "interrupted"
    assert not (room.path / "made").exists()


def test_nothing_of_a_hook_that_nobody_waits_for_outlives_the_session(room: Room) -> None:
    pid = room.path / "pid"
    hooks = [{"event": "Notification", "command": f"trap '' TERM; echo $$ > {pid}.new; mv {pid}.new {pid}; sleep 600"}]

    async def run() -> bool:
        conversation = Conversation.open(
            defaults().with_values({"hooks": hooks}, "the test"),
            store=room.store,
            model=ScriptedModel([call("shell", command="touch made"), "Done."], facts=FACTS),
            directory=room.path,
            person=room.person,
        )
        await conversation.send("Go on.")
        while not pid.exists():
            await asyncio.sleep(0.01)
        await conversation.close()
        return process_groups.is_alive(int(pid.read_text()))

    assert not asyncio.run(run())


def test_a_hook_gets_no_key(room: Room, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-abcdefghijklmnopqrstuvwxyz123456")
    room.run([{"event": "Stop", "command": f"env > {room.log}"}], "Done.")
    written = room.log.read_text()
    assert "sk-abc" not in written
    assert f"CLAUDE_PROJECT_DIR={room.path}" in written


def test_without_hooks_nothing_of_them_is_imported(room: Room) -> None:
    code = (
        "import sys, nca.agent.conversation, nca.config.layers\n"
        "assert not [name for name in sys.modules if name.startswith('nca.agent.hook_')]"
    )

    async def run() -> int:
        process = await asyncio.create_subprocess_exec(sys.executable, "-c", code)
        return await process.wait()

    assert asyncio.run(run()) == 0
