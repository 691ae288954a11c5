"""Rules of Claude Code's settings in a conversation with nca's own tools: what is denied is shown by nothing."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from nca.agent.approvals import Answer, Nobody
from nca.agent.conversation import Conversation
from nca.agent.mentions import name_in
from nca.config.layers import load
from nca.events import ApprovalAsked, ErrorRaised, Event
from nca.messages import Message, ToolCall
from nca.sessions.store import Store
from nca.testing.scripted import ScriptedModel
from nca.tools.programs import find_program

SECRET = "TOPSECRET=41397"


class Yes(Nobody):
    """Allows everything, and keeps what was asked."""

    def __init__(self, choice: Any = "once") -> None:
        self.asked: list[ApprovalAsked] = []
        self._choice = choice

    async def ask(self, asked: ApprovalAsked) -> Answer:
        self.asked.append(asked)
        return Answer(self._choice)


class Place:
    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.home, self.root = path / "home", path / "project"
        (self.home / ".ssh").mkdir(parents=True)
        monkeypatch.setenv("HOME", str(self.home))
        monkeypatch.setenv("NCA_HOME", str(path / "nca"))
        for folder in ("sub", "secrets/inner", "src", ".claude"):
            (self.root / folder).mkdir(parents=True)
        for name in (".env", "secrets/inner/key.txt", "sub/.env", "src/a.pem"):
            (self.root / name).write_text(f"{SECRET}\n")
        (self.home / ".ssh" / "id").write_text(f"{SECRET}\n")
        (self.root / "plain.txt").write_text("nothing TOP here\n")
        (self.root / "link").symlink_to(".env")

    def rules(self, **permissions: Any) -> None:
        (self.root / ".claude" / "settings.json").write_text(json.dumps({"permissions": permissions}))

    async def run(
        self, *calls: tuple[str, dict[str, Any]], person: Nobody | None = None, mode: str = "auto", **settings: Any
    ) -> tuple[str, ...]:
        """The results of the calls."""
        env = {"HOME": str(self.home), "NCA_HOME": str(self.home.parent / "nca")}
        loaded = load(project=self.root, env=env).with_value("agent.permission", mode, "the test")
        for name, value in settings.items():
            loaded = loaded.with_value(name.replace("__", "."), value, "the test")
        made = tuple(ToolCall(str(number), name, json.dumps(one)) for number, (name, one) in enumerate(calls))
        with Store.open(None) as store:
            conversation = Conversation.open(
                loaded,
                store=store,
                model=ScriptedModel([Message("assistant", tool_calls=made), "Done."]),
                directory=self.root,
                person=person,
            )
            await conversation.send("go")
            found = [entry.message.text for entry in conversation.context.entries if entry.message.role == "tool"]
            await conversation.close()
        return tuple(found)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    return Place(tmp_path, monkeypatch)


READS: list[tuple[str, dict[str, Any]]] = [
    *(("read_file", {"path": path}) for path in (".env", "./sub/../.env", "link", "sub/.env", "secrets/inner/key.txt")),
    ("read_file", {"path": "src/a.pem"}),
    ("grep", {"pattern": "TOPSECRET"}),
    ("grep", {"pattern": "TOP", "path": ".env"}),
    ("grep", {"pattern": "TOP", "path": "secrets"}),
    ("grep", {"pattern": "TOP", "glob": "**/*.txt"}),
    ("grep", {"pattern": "(?<=X)|TOP"}),
    ("edit_file", {"path": ".env", "old_text": "nothing like it", "new_text": "x"}),
    *(
        ("shell", {"command": command})
        for command in (
            "cat .env",
            "cat ./sub/../.env",
            "cat link",
            "cd sub && cat .env",
            "head -n 1 secrets/inner/key.txt",
            "grep -r TOP .",
            "grep -rn TOP secrets",
            "rg --hidden TOP",
            "cat <.env",
            "cat .e*",
            "cat $(echo .env)",
            "cp .env /tmp/x",
            "cat 'src/a.pem'",
            "ls -a; cat .env",
            "tac .env",
            "echo x; cat sub/.env | head",
        )
    ),
]
DENIED = ["Read(./.env)", "Read(./secrets/**)", "Read(**/*.pem)", "Read(~/.ssh/**)"]


@pytest.mark.parametrize(
    ("tool", "arguments"), READS, ids=lambda one: json.dumps(one) if isinstance(one, dict) else one
)
async def test_a_denied_file_is_shown_by_no_tool_in_any_mode(
    place: Place, tool: str, arguments: dict[str, Any]
) -> None:
    (free,) = await place.run((tool, arguments))
    place.rules(deny=DENIED)
    for mode in ("ask", "auto"):
        (result,) = await place.run((tool, arguments), mode=mode, permissions__allow=[{"tool": "*"}])
        assert "41397" not in result
        if tool == "grep":
            assert "left out" in result or "not run" in result
    assert tool == "edit_file" or "41397" in free or "rg" in json.dumps(arguments) or "/tmp/x" in json.dumps(arguments)


@pytest.mark.parametrize("mode", ["ask", "auto"])
async def test_git_shows_no_denied_file_unasked(place: Place, mode: str) -> None:
    git = ["git", "-c", "user.name=n", "-c", "user.email=a@b.c"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "one"]):
        subprocess.run([*git, *words], cwd=place.root, check=True, capture_output=True)
    (place.root / ".env").write_text(f"{SECRET}9\n")
    (place.root / ".git" / "inner.pem").write_text(SECRET)
    commands = ("git diff", "git diff HEAD | head -50", "git show", "git log -p", "git log -p -S TOPSECRET sub")
    calls = [("shell", {"command": command}) for command in commands]
    assert all("41397" in result for result in await place.run(*calls, mode=mode))
    others = [("shell", {"command": command}) for command in ("git log --stat", "git diff -- src plain.txt")]
    free = await place.run(*others, mode=mode)
    place.rules(deny=["Read(./.env)", "Read(./sub/.env)", "Read(./secrets/**)", "Read(**/*.pem)"])
    (place.root / "src" / "a.pem").rename(place.root / "secrets" / "a.pem")
    person = Yes()
    for result in await place.run(*calls, mode=mode):
        assert "41397" not in result
        assert "nobody can give it" in result
    await place.run(*calls, mode=mode, person=person)
    assert ["may show files" in asked.warning for asked in person.asked] == [True] * len(calls)
    assert (await place.run(*others, mode=mode))[0] == free[0]
    assert "nobody" not in (await place.run(others[1], mode=mode))[0]


async def test_what_is_not_denied_is_as_before(place: Place) -> None:
    place.rules(deny=DENIED)
    found = await place.run(
        ("read_file", {"path": "plain.txt"}),
        ("grep", {"pattern": "TOP"}),
        ("shell", {"command": "cat plain.txt"}),
        ("shell", {"command": "cd sub && ls"}),
        ("shell", {"command": "grep TOP plain.txt"}),
        ("shell", {"command": "touch made && echo made"}),
        ("write_file", {"path": "new.txt", "content": "x"}),
        ("list_directory", {"path": "secrets"}),
        ("glob", {"pattern": "*.pem"}),
    )
    assert not [result for result in found if "not run" in result]
    assert "plain.txt:1:nothing TOP here" in found[1]
    assert "src/a.pem" in found[8]


async def test_the_search_without_ripgrep_leaves_out_the_same(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    place.rules(deny=DENIED)
    monkeypatch.setenv("PATH", str(place.home))
    assert find_program("rg", str(place.home), outside=place.root) is None
    (result,) = await place.run(("grep", {"pattern": "TOP"}))
    assert "41397" not in result
    assert "plain.txt:1" in result


@pytest.mark.parametrize("name", [".env", "sub/../.env", "link", "~/.ssh/id", "secrets/inner/key.txt"])
async def test_a_denied_file_is_not_attached(place: Place, name: str) -> None:
    place.rules(deny=DENIED)
    env = {"HOME": str(place.home), "NCA_HOME": str(place.home.parent / "nca")}
    events: list[Event] = []
    with Store.open(None) as store:
        conversation = Conversation.open(
            load(project=place.root, env=env),
            store=store,
            model=ScriptedModel(["Done."]),
            directory=place.root,
            listener=events.append,
        )
        await conversation.send(f"Look at @{name}")
        assert list(conversation.context.entries) == []
        await conversation.close()
    (said,) = [event.message for event in events if isinstance(event, ErrorRaised)]
    path = (place.root / name.replace("~", str(place.home))).resolve()
    assert said.startswith(f"@{name_in(path, place.root)} may not be read: ")
    assert "a rule of the person's denies it (Read" in said


async def test_instructions_do_not_import_a_denied_file(place: Place) -> None:
    place.rules(deny=DENIED)
    (place.root / "AGENTS.md").write_text("Obey.\n\n@.env\n")
    (place.root / "sub" / "AGENTS.md").write_text("Obey.\n\n@.env\n")
    env = {"HOME": str(place.home), "NCA_HOME": str(place.home.parent / "nca")}
    model = ScriptedModel(
        [Message("assistant", tool_calls=(ToolCall("1", "write_file", '{"path": "sub/x", "content": "x"}'),)), "Done."]
    )
    loaded = load(project=place.root, env=env).with_value("agent.permission", "auto", "the test")
    with Store.open(None) as store:
        conversation = Conversation.open(loaded, store=store, model=model, directory=place.root)
        await conversation.send("go")
        await conversation.close()
    sent = str(model.requests)
    assert "Obey." in sent
    assert "41397" not in sent


@pytest.mark.parametrize(
    ("rule", "denied", "free"),
    [
        (
            "Bash(rm:*)",
            ["rm x", "rm", "/bin/rm -rf x", "sudo rm x", "true && rm x", "bash -c 'rm x'", "A=1 rm x"],
            ["ls"],
        ),
        (
            "Bash(npm run test:*)",
            ["npm run test", "npm run test -- x", "npm   run test"],
            ["npm run testing", "npm run x"],
        ),
        ("Bash(npm run test*)", ["npm run testing", "npm run test:unit"], ["npm run build"]),
        ("Bash(make)", ["make", "cd src && make"], ["make x"]),
        ("Bash(git * main)", ["git push origin main"], ["git push origin dev"]),
        ("Bash", ["ls", "cat plain.txt", "true"], []),
        ("Edit(src/**)", [], ["cat src/a.pem"]),
    ],
)
async def test_commands_by_each_form(place: Place, rule: str, denied: list[str], free: list[str]) -> None:
    place.rules(deny=[rule])
    for command in denied:
        (result,) = await place.run(("shell", {"command": command}))
        assert rule in result, command
    for command in free:
        (result,) = await place.run(("shell", {"command": command}))
        assert "not run" not in result, command


async def test_a_denied_edit_lets_the_file_be_read(place: Place) -> None:
    place.rules(deny=["Edit(src/**)"])
    person = Yes("deny")
    found = await place.run(
        ("read_file", {"path": "src/a.pem"}),
        ("write_file", {"path": "src/new", "content": "x"}),
        person=person,
    )
    await place.run(("shell", {"command": "touch src/a.pem"}), person=person)
    await place.run(("write_file", {"path": "sub/new", "content": "x"}), person=person)
    assert "41397" in found[0]
    assert "Edit(src/**)" in found[1]
    assert (place.root / "sub" / "new").exists()
    assert [asked.name for asked in person.asked] == ["shell"]


async def test_hosts_and_outside_tools(place: Place) -> None:
    place.rules(deny=["WebFetch(domain:example.invalid)", "WebFetch(domain:*.evil.invalid)"])
    urls = [
        "https://example.invalid/x",
        "https://WWW.Example.invalid",
        "http://a.evil.invalid",
        "https://other.invalid",
    ]
    found = await place.run(*(("fetch_url", {"url": url}) for url in urls))
    assert ["a rule of the person's denies it" in result for result in found] == [True, True, True, False]


@pytest.mark.parametrize("mode", ["ask", "accept-edits", "auto"])
async def test_what_a_rule_asks_about_is_asked_in_every_mode_and_each_time(place: Place, mode: str) -> None:
    place.rules(ask=["Bash(touch:*)", "Read(./secrets/**)", "Edit(src/**)"])
    person = Yes("always")
    calls: list[tuple[str, dict[str, Any]]] = [
        ("shell", {"command": "touch a"}),
        ("read_file", {"path": "secrets/inner/key.txt"}),
        ("write_file", {"path": "src/b", "content": "x"}),
    ]
    found = await place.run(*calls, mode=mode, person=person, permissions__allow=[{"tool": "*"}])
    assert [asked.name for asked in person.asked] == ["shell", "read_file", "write_file"]
    assert all(asked.subject == "" and "A rule asks about it" in asked.warning for asked in person.asked)
    assert all("person said no" in result for result in found)
    once = Yes()
    found = await place.run(*calls, mode=mode, person=once)
    assert "41397" in found[1]
    assert [asked.name for asked in once.asked] == ["shell", "read_file", "write_file"]
    (place.root / "src" / "b").unlink()
    assert all("nobody can give it" in result for result in await place.run(*calls, mode=mode))
    (searched,) = await place.run(("grep", {"pattern": "TOPSECRET"}), mode=mode)
    assert ".env:1" in searched
    assert "secrets/" not in searched


async def test_the_person_s_own_file_holds_too(place: Place) -> None:
    (place.home / ".claude").mkdir()
    (place.home / ".claude" / "settings.json").write_text(json.dumps({"permissions": {"deny": ["Read(plain.txt)"]}}))
    (result,) = await place.run(("read_file", {"path": "plain.txt"}))
    assert "Read(plain.txt) in ~/.claude/settings.json" in result
