"""What Claude Code's settings set here: a project's once it is trusted, the person's own with agent.use_claude_home."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nca.config.claude_settings import KEY_VARIABLE, MODELS
from nca.config.layers import load
from nca.config.loaded import LoadedSettings
from nca.config.projects import TrustRequest, read_project, trust_request
from nca.config.tables import PermissionRule
from nca.models import price_map
from nca.models.providers import PROVIDERS
from nca.tools.programs import command_environment


class Place:
    def __init__(self, path: Path) -> None:
        self.home, self.project = path / "home", path / "project"
        for folder in (self.home, self.project):
            (folder / ".claude").mkdir(parents=True)
        (self.home / ".nca").mkdir()
        self.env = {"HOME": str(self.home), "NCA_HOME": str(self.home / ".nca"), KEY_VARIABLE: "sk-x"}
        self.asked: list[TrustRequest] = []

    def write(self, settings: dict[str, Any], name: str = "settings.json", *, own: bool = False) -> None:
        ((self.home if own else self.project) / ".claude" / name).write_text(json.dumps(settings))

    def use_own(self, more: str = "") -> None:
        (self.home / ".nca" / "config.toml").write_text(f"{more}\n[agent]\nuse_claude_home = true\n")

    def load(self, *, is_trusted: bool = True, mode: str | None = None) -> LoadedSettings:
        def decide(what: TrustRequest) -> bool:
            self.asked.append(what)
            return is_trusted

        return load(project=self.project, env=self.env, trusts=decide, flags={"agent.permission": mode})


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


WHOLE = {
    "permissions": {"allow": ["Bash(npm test)"], "defaultMode": "acceptEdits", "additionalDirectories": ["../other"]},
    "env": {"CI": 1, "FAST": True, "WORD": "a=b", "not a name": "x", "LIST": []},
    "model": "opus[1m]",
    "statusLine": {"type": "command", "command": "line.sh"},
}


def test_a_projects_settings_wait_for_trust_and_all_of_them_are_shown(place: Place) -> None:
    place.write(WHOLE)
    untrusted = place.load(is_trusted=False)
    assert untrusted.base == load(project=None, env=place.env).base
    assert untrusted.settings.permissions.allow == ()
    assert dict(place.asked[0].settings) == {
        "permissions.allow": ["Bash(npm test)"],
        "agent.permission": "accept-edits",
        "tools.readable": ["../other"],
        "tools.variables": ["CI=1", "FAST=true", "WORD=a=b"],
        "model.name": MODELS["opus"],
        "terminal.status_command": "line.sh",
    }
    (waits,) = (note for note in untrusted.notes if "permissions.allow" in note and "wait for your trust" in note)
    assert waits.count(".claude/settings.json") == 1
    settings = place.load().settings
    assert (settings.agent.permission, settings.model.name) == ("accept-edits", MODELS["opus"])
    assert settings.tools.variables == ("CI=1", "FAST=true", "WORD=a=b")
    assert settings.tools.readable == ("../other",)
    assert settings.terminal.status_command == "line.sh"
    assert [(rule.tool, rule.subject, rule.directory) for rule in settings.permissions.allow] == [
        ("shell", "npm test", str(place.project))
    ]


def test_a_change_of_what_is_allowed_asks_again(place: Place) -> None:
    place.write({"permissions": {"allow": ["Bash(npm test)"]}})
    before = trust_request(read_project(place.project, place.env)[0], place.project)
    place.write({"permissions": {"allow": ["Bash(npm test)", "Bash(rm:*)"]}})
    after = trust_request(read_project(place.project, place.env)[0], place.project)
    assert before is not None
    assert after is not None
    assert before.digest != after.digest


def test_a_projects_own_file_still_sets_no_permissions(place: Place) -> None:
    (place.project / ".nca").mkdir()
    (place.project / ".nca" / "config.toml").write_text(
        '[agent]\npermission = "auto"\n[[permissions.allow]]\ntool = "shell"\n'
    )
    loaded = place.load()
    assert (loaded.settings.agent.permission, loaded.settings.permissions.allow) == ("ask", ())


@pytest.mark.parametrize("mode", ["bypassPermissions", "dontAsk", "auto", 5])
def test_no_file_of_claudes_switches_off_what_is_asked(place: Place, mode: Any) -> None:
    place.use_own()
    for own in (True, False):
        place.write({"permissions": {"defaultMode": mode}}, own=own)
    assert place.load().settings.agent.permission == "ask"


def test_the_persons_own_settings_count_if_they_say_so_and_nothing_stronger_is_set(place: Place) -> None:
    place.write(WHOLE, own=True)
    assert place.load().base == load(project=None, env=place.env).base
    place.use_own()
    settings = place.load().settings
    assert (settings.agent.permission, settings.model.name) == ("accept-edits", MODELS["opus"])
    assert [(rule.tool, rule.subject, rule.directory) for rule in settings.permissions.allow] == [
        ("shell", "npm test", "")
    ]
    assert place.asked == []
    place.use_own('[model]\nname = "openai/x"\n[tools]\nvariables = ["CI=2", "MORE=1"]\n')
    loaded = place.load(mode="plan")
    assert (loaded.settings.agent.permission, loaded.settings.model.name) == ("plan", "openai/x")
    assert loaded.settings.tools.variables == ("CI=2", "FAST=true", "WORD=a=b", "MORE=1")


def test_two_files_are_joined(place: Place) -> None:
    place.write({"env": {"A": "1", "B": "1"}, "model": "haiku", "permissions": {"additionalDirectories": ["a"]}})
    local = {"env": {"B": "2"}, "model": "sonnet", "permissions": {"additionalDirectories": ["b"]}}
    place.write(local, "settings.local.json")
    settings = place.load().settings
    assert settings.tools.variables == ("A=1", "B=2")
    assert settings.tools.readable == ("a", "b")
    assert settings.model.name == MODELS["sonnet"]


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("sonnet", MODELS["sonnet"]),
        ("claude-opus-4-5-20251101", "anthropic/claude-opus-4-5-20251101"),
        ("default", ""),
        ("opusplan", ""),
        ("gpt-5", ""),
        ("us.anthropic.claude-x", ""),
        (5, ""),
    ],
)
def test_the_names_of_models(place: Place, written: Any, name: str) -> None:
    place.write({"model": written})
    assert place.load().settings.model.name == name
    del place.env[KEY_VARIABLE]
    assert place.load().settings.model.name == ""


def test_the_short_names_are_models_that_there_are() -> None:
    assert KEY_VARIABLE in PROVIDERS["anthropic"].key_variables
    assert all(name.removeprefix("anthropic/") in price_map.load() for name in MODELS.values())


@pytest.mark.parametrize(
    ("written", "rules"),
    [
        ("Bash", {PermissionRule("shell")}),
        ("Bash(*)", {PermissionRule("shell")}),
        ("Bash(npm run build)", {PermissionRule("shell", "npm run build")}),
        ("Bash(npm run test:*)", {PermissionRule("shell", "npm run test *")}),
        ("Bash(git log *)", {PermissionRule("shell", "git log *")}),
        ("Edit", {PermissionRule("edit_file"), PermissionRule("write_file")}),
        ("Edit(docs/**)", {PermissionRule("edit_file", "docs/**"), PermissionRule("write_file", "docs/**")}),
        ("Write(./a b.md)", {PermissionRule("edit_file", "a b.md"), PermissionRule("write_file", "a b.md")}),
        ("WebFetch(domain:Example.com)", {PermissionRule("fetch_url", "example.com")}),
        ("mcp__a__b", {PermissionRule("mcp__a__b")}),
        ("mcp__a", {PermissionRule("mcp__a"), PermissionRule("mcp__a__*")}),
    ],
)
def test_a_rule_that_allows_allows_what_it_says(place: Place, written: str, rules: set[PermissionRule]) -> None:
    place.write({"permissions": {"allow": [written]}})
    loaded = place.load()
    found = loaded.settings.permissions.allow
    assert {PermissionRule(rule.tool, rule.subject) for rule in found} == rules
    assert {rule.origin for rule in found} == {f"{written} in .claude/settings.json"}
    assert loaded.notes == ("1 allow rule of .claude/settings.json holds here.",)


@pytest.mark.parametrize(
    "written",
    [
        "Bash(npm run test*)",
        "Bash(git * main)",
        "Bash(/usr/bin/make)",
        "Bash(a && b)",
        "Bash(echo 'x)",
        "Bash(cat $(x))",
        "Edit(*.md)",
        "Edit(src/*)",
        "Edit(//etc/**)",
        "Edit(~/x)",
        "Edit(/src/**)",
        "Edit(a/../../b)",
        "Edit(!a)",
        "Read(//etc/**)",
        "WebFetch(domain:*.example.com)",
        "mcp__a__*(x)",
        "nonsense (",
    ],
)
def test_what_would_allow_more_is_left_out_and_named(place: Place, written: str) -> None:
    place.write({"permissions": {"allow": [written]}})
    loaded = place.load()
    assert loaded.settings.permissions.allow == ()
    assert loaded.notes == (f".claude/settings.json: {written} allows more than a rule of nca can, so nca asks.",)


@pytest.mark.parametrize("written", ["Read", "Read(src/**)", "Grep", "WebSearch", "Task"])
def test_what_needs_no_rule_is_not_said(place: Place, written: str) -> None:
    place.write({"permissions": {"allow": [written]}})
    assert not [note for note in place.load().notes if "more than" in note]


def test_variables_reach_commands_but_no_key_does() -> None:
    env = {"PATH": "/bin", "OPENAI_API_KEY": "sk-real-key-1234567890"}
    found = command_environment(env, (), ("CI=1", "PAGER=less", "ANTHROPIC_API_KEY=x", "COPY=sk-real-key-1234567890"))
    assert found["CI"] == "1"
    assert found["PAGER"] == "less"
    assert {"ANTHROPIC_API_KEY", "OPENAI_API_KEY", "COPY"}.isdisjoint(found)
