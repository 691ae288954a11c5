"""Approval of tool calls: who is asked, what each answer means, and what no answer can allow."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Annotated, Any

import pytest

from nca.agent.approvals import Answer, Nobody
from nca.agent.conversation import Conversation
from nca.config.layers import load
from nca.config.loaded import defaults
from nca.config.paths import user_config_file
from nca.config.tables import PermissionRule
from nca.events import ApprovalAsked, ApprovalGiven, Event, ToolFinished
from nca.messages import Message, ToolCall
from nca.sessions.store import Store
from nca.testing.scripted import ScriptedModel
from nca.tools.files.edit import EditFile, WriteFile
from nca.tools.files.reading_rules import FilesRead
from nca.tools.files.workspace import Workspace
from nca.tools.tool import Approval, Permission, ToolError, ToolOutcome, TypedTool
from nca.tools.toolbox import Toolbox, default_toolbox
from nca.words import words
from tests.agent.test_conversation import SMALL, call


class Touch(TypedTool):
    """Writes a file of the project; its approval is what it would really do."""

    name = "touch"
    permission = "write"

    def __init__(self, root: Path) -> None:
        self._root = root
        self.written: list[str] = []

    async def call(
        self, path: Annotated[str, "The file."], text: Annotated[str, "What to write."] = "x"
    ) -> ToolOutcome:
        """Write a file."""
        self.written.append(path)
        (self._root / path).write_text(text)
        return ToolOutcome("written")

    def approval(self, arguments: dict[str, Any]) -> Approval:
        if arguments["path"] == "impossible":
            raise ToolError("impossible is a directory")
        path = (self._root / arguments["path"]).resolve()
        outside = "" if path.is_relative_to(self._root) else "outside of the project"
        return Approval(path=str(path), diff="+x", warning=outside, subject=arguments["path"])


class Run(TypedTool):
    """Runs nothing; says the program as its subject, and none where it is a chain."""

    name = "run"
    permission = "execute"

    def __init__(self) -> None:
        self.ran: list[str] = []

    async def call(self, command: Annotated[str, "The command."]) -> ToolOutcome:
        """Run a command."""
        self.ran.append(command)
        return ToolOutcome("done")

    def needs(self, arguments: dict[str, Any]) -> Permission:
        return "read" if arguments["command"] == "ls" else "execute"

    def approval(self, arguments: dict[str, Any]) -> Approval:
        command = arguments["command"]
        is_chain = ";" in command
        words = tuple(command.replace(";", " ").split())
        return Approval(command=command, subject="" if is_chain else words[0], parts=words)


class Person(Nobody):
    """Answers in order, and keeps what was asked."""

    def __init__(self, *answers: Answer) -> None:
        self._answers = list(answers)
        self.asked: list[ApprovalAsked] = []
        self.at_once = 0

    async def ask(self, asked: ApprovalAsked) -> Answer:
        self.asked.append(asked)
        self.at_once += 1
        assert self.at_once == 1
        await asyncio.sleep(0)
        self.at_once -= 1
        return self._answers.pop(0)


class Room:
    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root = path / "project"
        self.root.mkdir()
        monkeypatch.setenv("NCA_HOME", str(path / "home"))
        self.user_file = user_config_file({"NCA_HOME": str(path / "home")})
        self.events: list[Event] = []
        self.touch, self.run = Touch(self.root), Run()

    def open(
        self, *replies: Any, person: Person | None = None, toolbox: Toolbox | None = None, **settings: Any
    ) -> Conversation:
        loaded = defaults()
        for name, value in settings.items():
            loaded = loaded.with_value(name.replace("__", "."), value, "the test")
        return Conversation.open(
            loaded,
            store=Store.open(None),
            model=ScriptedModel([*replies, "Done."], facts=SMALL),
            directory=self.root,
            toolbox=toolbox or Toolbox([self.touch, self.run]),
            listener=self.events.append,
            person=person,
        )

    @property
    def decisions(self) -> list[str]:
        return [event.decision for event in self.events if isinstance(event, ApprovalGiven)]

    @property
    def outcomes(self) -> list[str]:
        return [event.summary for event in self.events if isinstance(event, ToolFinished)]


@pytest.fixture
def room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Room:
    return Room(tmp_path, monkeypatch)


def touch(path: str, number: int = 1) -> ToolCall:
    return ToolCall(f"call-{number}", "touch", f'{{"path": "{path}"}}')


def run(command: str) -> Message:
    return call("run", f'{{"command": "{command}"}}')


def both(*calls: ToolCall) -> Message:
    return Message("assistant", tool_calls=calls)


def results(conversation: Conversation) -> list[str]:
    return [entry.message.text for entry in conversation.context.entries if entry.message.role == "tool"]


async def test_once_is_for_this_call_only(room: Room) -> None:
    person = Person(Answer("once"), Answer("deny", "use the other file"))
    conversation = room.open(both(touch("a")), both(touch("a")), person=person)
    assert (await conversation.send("Go")).reason == "answered"
    assert room.touch.written == ["a"]
    assert results(conversation) == ["written", "[not run: the person said no]\nuse the other file"]
    assert room.decisions == ["once", "denied"]
    assert room.outcomes[-1] == "not allowed: use the other file"
    asked = person.asked[0]
    assert (asked.path, asked.diff, asked.needs, asked.subject) == (str(room.root / "a"), "+x", "write", asked.path)


@pytest.mark.parametrize("path", ["~backup.txt", "~nosuch/a", "~\0", "~\ud800", "\ud800", "a\0b", "x" * 300])
async def test_no_path_ends_the_turn(room: Room, path: str) -> None:
    more: dict[str, dict[str, str]] = {"read_file": {}, "list_directory": {}, "grep": {"pattern": "x"}}
    more |= {"edit_file": {"old_text": "x", "new_text": "y"}, "write_file": {"content": "x"}}
    calls = [ToolCall(name, name, json.dumps({"path": path, **rest})) for name, rest in more.items()]
    toolbox = default_toolbox(room.root)
    deny = (PermissionRule("read_file", "secret/**"), PermissionRule("*", "~nosuch/**"))
    conversation = room.open(both(*calls), toolbox=toolbox, agent__permission="auto", permissions__deny=deny)
    assert (await conversation.send("Go")).reason == "answered"
    assert len(results(conversation)) == len(calls)
    assert ("[created ~backup.txt: 1 line]" in results(conversation)) is (path == "~backup.txt")
    assert ("~nosuch/**)]" in results(conversation)[-1]) is (path == "~nosuch/a")
    await conversation.close()


async def test_for_the_session_covers_the_same_path_and_no_other(room: Room) -> None:
    person = Person(Answer("session"), Answer("deny"))
    conversation = room.open(both(touch("a", 1), touch("a", 2), touch("b", 3)), person=person)
    await conversation.send("Go")
    assert room.touch.written == ["a", "a"]
    assert [asked.path for asked in person.asked] == [str(room.root / "a"), str(room.root / "b")]
    assert not room.user_file.exists()


async def test_what_two_tasks_ask_at_once_is_answered_once(room: Room) -> None:
    conversation, toolbox = room.open(person=Person(Answer("session"))), Toolbox([room.touch])
    checks = (conversation.approvals.check(touch("a", number), toolbox) for number in (1, 2))
    assert await asyncio.gather(*checks) == [None, None]


async def test_always_is_a_rule_in_the_persons_own_file_for_this_directory(room: Room, tmp_path: Path) -> None:
    person = Person(Answer("always"))
    await room.open(run("pytest -q"), run("pytest -x"), person=person).send("Go")
    assert room.run.ran == ["pytest -q", "pytest -x"]
    assert not (room.root / ".nca").exists()
    written = room.user_file.read_text()
    assert str(room.root) in written
    loaded = load(project=None, env={"NCA_HOME": str(tmp_path / "home")})
    assert loaded.value("permissions.allow") == (PermissionRule("run", "pytest", str(room.root)),)
    again = room.open(run("pytest -q"), permissions__allow=loaded.value("permissions.allow"))
    await again.send("Go")
    assert room.run.ran[2:] == ["pytest -q"]
    elsewhere = [PermissionRule("run", "pytest", str(tmp_path / "other"))]
    await room.open(run("pytest -q"), permissions__allow=elsewhere).send("Go")
    assert len(room.run.ran) == 3


async def test_a_file_that_cannot_be_written_makes_always_a_session(room: Room) -> None:
    room.user_file.parent.mkdir(parents=True)
    room.user_file.write_text("not toml at all [")
    conversation = room.open(run("make"), run("make"), person=Person(Answer("always")))
    await conversation.send("Go")
    assert room.run.ran == ["make", "make"]
    assert any("for this session only" in getattr(event, "message", "") for event in room.events)
    assert room.user_file.read_text() == "not toml at all ["


async def test_nobody_to_ask_is_said_and_does_not_run(room: Room) -> None:
    conversation = room.open(both(touch("a")), "Nobody is there.")
    finished = await conversation.send("Go")
    assert (finished.reason, finished.exit_code, finished.is_unanswered) == ("answered", 1, True)
    assert room.touch.written == []
    assert room.decisions == ["unanswered"]
    assert room.outcomes[-1] == "nobody could be asked"
    assert "nobody can give it here" in results(conversation)[0]
    finished = await conversation.send("And now without a call.")
    assert (finished.exit_code, finished.is_unanswered) == (0, False)


@pytest.mark.parametrize("mode", ["ask", "accept-edits", "plan", "auto"])
async def test_a_rule_that_denies_beats_every_mode_and_rule(room: Room, mode: str) -> None:
    rules = [PermissionRule("touch", "secret/**"), PermissionRule("run", "rm")]
    allow = [PermissionRule("*")]
    conversation = room.open(
        both(touch("secret/a", 1), touch("secret", 2)),
        run("rm -rf x"),
        run("ls x; rm x"),
        agent__permission=mode,
        permissions__deny=rules,
        permissions__allow=allow,
        person=Person(*[Answer("always")] * 9),
    )
    await conversation.send("Go")
    assert room.run.ran == []
    assert room.touch.written == []


@pytest.mark.parametrize("rule", ["permissions__deny", "permissions__ask"])
async def test_what_a_rule_cannot_judge_is_asked_even_in_auto(room: Room, rule: str) -> None:
    person = Person(Answer("deny"))
    rules: dict[str, Any] = {rule: [PermissionRule("run", "rm")], "permissions__allow": [PermissionRule("run")]}
    conversation = room.open(run("echo; r$()m x"), agent__permission="auto", person=person, **rules)
    await conversation.send("Go")
    assert room.run.ran == []
    assert person.asked[0].subject == ""


async def test_a_hook_allows_nothing_that_a_denial_cannot_judge(room: Room) -> None:
    allows = """echo '{"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "allow"}}'"""
    person = Person(Answer("deny"))
    conversation = room.open(
        run("echo; r$()m x"),
        run("echo plain"),
        permissions__deny=[PermissionRule("run", "rm")],
        hooks=[{"event": "PreToolUse", "command": allows}],
        person=person,
    )
    await conversation.send("Go")
    assert len(person.asked) == 1, "the plain one is allowed by the hook"
    assert room.run.ran == ["echo plain"]


async def test_without_a_subject_no_rule_is_made(room: Room) -> None:
    conversation = room.open(run("a; b"), person=Person(Answer("always")))
    await conversation.send("Go")
    assert room.run.ran == []
    assert room.decisions == ["denied"]


@pytest.mark.parametrize("path", ["../outside", ".git/hooks/pre-commit", "AGENTS.md", ".github/workflows/ci.yml"])
async def test_accepting_edits_does_not_cover_what_is_unusual(room: Room, path: str) -> None:
    person = Person(Answer("deny"))
    conversation = room.open(both(touch(path)), agent__permission="accept-edits", person=person)
    await conversation.send("Go")
    assert room.touch.written == []
    assert len(person.asked) == 1


@pytest.mark.parametrize(
    "path", [".nca/config.toml", ".nca/CONFIG.TOML", "sub/.nca/config.toml.bak", "../home/config.toml"]
)
@pytest.mark.parametrize("needs", ["write", "execute"])
async def test_nca_s_own_settings_are_written_in_no_mode(room: Room, path: str, needs: Permission) -> None:
    room.touch.permission = needs  # type: ignore[assignment, misc]
    conversation = room.open(
        both(touch(path)), agent__permission="auto", person=Person(), permissions__allow=[PermissionRule("*")]
    )
    await conversation.send("Go")
    assert room.touch.written == []
    assert "nca's own" in results(conversation)[0]


async def test_a_call_asks_for_what_it_needs_itself(room: Room) -> None:
    conversation = room.open(run("ls"), call("run", "{}"), agent__permission="plan")
    await conversation.send("Go")
    assert room.run.ran == ["ls"]
    assert "only allows reading" in results(conversation)[1]


async def test_accepting_edits_covers_a_package_s_file_but_not_what_is_run_from_it(room: Room) -> None:
    package: dict[str, Any] = {"name": "x", "version": "1", "scripts": {"test": "jest"}}
    (room.root / "package.json").write_text(json.dumps(package))
    read = FilesRead()
    read.note(room.root / "package.json", (room.root / "package.json").read_bytes())
    calls = [
        call("write_file", json.dumps({"path": "package.json", "content": json.dumps(package | change)}))
        for change in ({"version": "2"}, {"version": "2", "scripts": {"test": "sh evil"}})
    ]
    person = Person(Answer("deny"))
    writing = Toolbox([WriteFile(Workspace(room.root), read)])
    await room.open(*calls, person=person, toolbox=writing, agent__permission="accept-edits").send("Go")
    assert [asked.warning for asked in person.asked] == ["You are asked because it changes what package managers run."]
    assert json.loads((room.root / "package.json").read_text()) == package | {"version": "2"}


async def test_who_may_write_a_file_whole_may_change_parts_of_it_and_no_other_file(room: Room) -> None:
    workspace, read = Workspace(room.root), FilesRead()
    calls = [
        call("write_file", json.dumps({"path": "a.py", "content": "x = 1\n"})),
        call("edit_file", json.dumps({"path": "a.py", "old_text": "x = 1", "new_text": "x = 2"})),
        call("write_file", json.dumps({"path": "b.py", "content": "y = 1\n"})),
        call("edit_file", json.dumps({"path": "b.py", "old_text": "y = 1", "new_text": "y = 2"})),
        call("write_file", json.dumps({"path": "b.py", "content": "y = 3\n"})),
    ]
    person = Person(Answer("session"), Answer("once"), Answer("session"), Answer("deny"))
    writing = Toolbox([WriteFile(workspace, read), EditFile(workspace, read)])
    await room.open(*calls, person=person, toolbox=writing).send("Go")
    assert [(asked.name, Path(asked.path).name) for asked in person.asked] == [
        ("write_file", "a.py"),
        ("write_file", "b.py"),
        ("edit_file", "b.py"),
        ("write_file", "b.py"),
    ]


@pytest.mark.parametrize("tool", ["write_file", "edit_file"])
async def test_what_may_not_be_changed_in_one_way_may_not_be_in_another(room: Room, tool: str) -> None:
    workspace, read = Workspace(room.root), FilesRead()
    (room.root / "a.py").write_text("x = 1\n")
    read.note(room.root / "a.py", b"x = 1\n")
    calls = [
        call("write_file", json.dumps({"path": "a.py", "content": "x = 2\n"})),
        call("edit_file", json.dumps({"path": "a.py", "old_text": "x = 1", "new_text": "x = 3"})),
    ]
    writing = Toolbox([WriteFile(workspace, read), EditFile(workspace, read)])
    denied = [PermissionRule(tool, "a.py")]
    await room.open(*calls, toolbox=writing, agent__permission="auto", permissions__deny=denied).send("Go")
    assert (room.root / "a.py").read_text() == "x = 1\n"


MASKED = ("x = \u202e1", "pass\u200bword = 1", "if user == '\u0430dmin': pass", "\u3164 = 1", "a\u0301 \U000e0041")


@pytest.mark.parametrize("text", MASKED)
@pytest.mark.parametrize("subject", ["a.py", "./**", ""])
async def test_no_rule_covers_a_change_that_a_person_cannot_see(room: Room, text: str, subject: str) -> None:
    """Whoever said always had seen another change. What is asked then holds for this change only."""
    writing = Toolbox([WriteFile(Workspace(room.root), FilesRead())])
    calls = [
        call("write_file", json.dumps({"path": "a.py", "content": content}))
        for content in ("x = 1\n", f"x = 2\n{text}\n", "x = 3\n")
    ]
    person = Person(Answer("always"))
    rule = PermissionRule("write_file" if subject else "*", subject)
    await room.open(*calls, person=person, toolbox=writing, permissions__allow=[rule]).send("Go")
    assert [(asked.diff.count("⟨U+") > 0, asked.subject) for asked in person.asked] == [(True, "")]
    assert room.decisions == ["denied"]  # always is no answer to this question
    assert (room.root / "a.py").read_text() == "x = 3\n"
    assert not room.user_file.exists()


async def test_what_could_not_run_anyway_is_not_asked(room: Room) -> None:
    person = Person()
    conversation = room.open(both(touch("impossible")), call("touch", "not json"), person=person)
    await conversation.send("Go")
    assert person.asked == []
    assert "impossible is a directory" in results(conversation)[0]
    assert "invalid JSON" in results(conversation)[1]


async def test_a_link_swapped_into_a_rule_s_path_is_another_path(room: Room, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (room.root / "src").symlink_to(tmp_path / "elsewhere")
    person = Person(Answer("deny"))
    await room.open(both(touch("src/a")), permissions__allow=[PermissionRule("touch", "src/**")], person=person).send(
        "Go"
    )
    assert room.touch.written == []
    assert person.asked[0].path == str(tmp_path / "elsewhere" / "a")


async def test_interrupted_at_the_question_nothing_ran_and_the_log_says_so(room: Room) -> None:
    asking = asyncio.Event()

    class Slow(Person):
        async def ask(self, asked: ApprovalAsked) -> Answer:
            asking.set()
            await asyncio.sleep(60)
            raise AssertionError

    conversation = room.open(both(touch("a", 1), touch("b", 2)), person=Slow())
    turn = asyncio.ensure_future(conversation.run_turn(words("Go")))
    await asking.wait()
    turn.cancel()
    assert (await turn).reason == "interrupted"
    assert results(conversation) == ["[not run: the person stopped the turn]"] * 2
    assert room.decisions == ["stopped"]
    assert room.touch.written == []


async def test_a_rule_is_forgotten_here_and_in_the_file(room: Room) -> None:
    conversation = room.open(run("make"), person=Person(Answer("always")))
    await conversation.send("Go")
    rule = conversation.loaded.value("permissions.allow")[0]
    conversation.approvals.saved_rules.remove("permissions.allow", rule)
    assert conversation.loaded.value("permissions.allow") == ()
    assert "make" not in room.user_file.read_text()


class Says(Person):
    """Answers whatever it is given, as a program's mistake would."""

    def __init__(self, given: Any) -> None:
        self._given = given

    async def ask(self, asked: ApprovalAsked) -> Answer:
        answer: Answer = Answer(self._given) if isinstance(self._given, str) else self._given  # type: ignore[arg-type]
        return answer


@pytest.mark.parametrize("given", ["no", "Deny", "", "Once", None, False, True, ("once",)])
async def test_what_is_no_answer_allows_nothing_and_says_what_is(given: Any, room: Room) -> None:
    conversation = room.open(both(touch("a"), touch("b", 2)), person=Says(given))
    finished = await conversation.send("Go")
    assert room.touch.written == []
    assert finished.error is not None
    assert 'answers no approval; valid: Answer("once"), Answer("session")' in finished.error.message
    assert len(results(conversation)) == 2
    assert (await conversation.send("And now?")).reason == "answered"


@pytest.mark.parametrize("where", ["NCA_HOME", "HOME", "user_file"])
async def test_what_holds_for_good_is_written_where_the_settings_are_from(where: str, room: Room) -> None:
    """A service's persons wrote their rules into the file of whoever ran it, and so each for all."""
    home = room.root.parent / "another"
    own = {"NCA_HOME": home / "config.toml", "HOME": home / ".config/nca/config.toml", "user_file": home / "one.toml"}
    env, user_file = ({}, own[where]) if where == "user_file" else ({where: str(home)}, None)
    loaded = load(project=room.root, env=env, user_file=user_file)
    assert loaded.is_own(own[where])
    assert loaded.is_own(room.user_file), "nor may a tool change the settings of whoever runs the program"
    conversation = Conversation.open(
        loaded,
        store=Store.open(None),
        model=ScriptedModel([run("make"), "Done."], facts=SMALL),
        directory=room.root,
        toolbox=Toolbox([room.run]),
        person=Person(Answer("always")),
    )
    await conversation.send("Go")
    assert room.run.ran == ["make"]
    assert "make" in own[where].read_text()
    assert not room.user_file.exists()
    conversation.approvals.saved_rules.remove("permissions.allow", conversation.loaded.value("permissions.allow")[0])
    assert "make" not in own[where].read_text()
