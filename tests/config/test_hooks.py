"""Hooks in nca's own settings and in Claude Code's files, and whose are run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nca.agent.tool_selection import check_names
from nca.config.hooks import Hook
from nca.config.layers import load
from nca.config.loaded import LoadedSettings, defaults
from nca.config.projects import TrustCheck, TrustRequest
from nca.errors import ConfigError

GUARD = {"type": "command", "command": "python3 guard.py", "timeout": 5}


class Place:
    def __init__(self, path: Path) -> None:
        self.home, self.project = path / "home", path / "project"
        for folder in (self.home, self.project):
            (folder / ".claude").mkdir(parents=True)
            (folder / ".nca").mkdir()

    def claude(self, folder: Path, hooks: Any, name: str = "settings.json") -> None:
        (folder / ".claude" / name).write_text(json.dumps({"hooks": hooks, "model": "opus"}))

    def load(self, trusts: TrustCheck | None = lambda _: True) -> LoadedSettings:
        env = {"NCA_HOME": str(self.home / ".nca"), "HOME": str(self.home)}
        return load(project=self.project, env=env, trusts=trusts)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def on(event: str, *entries: Any, matcher: str = "") -> dict[str, Any]:
    return {event: [{"matcher": matcher, "hooks": list(entries)}]}


@pytest.mark.parametrize(
    ("matcher", "names", "expected"),
    [
        ("", ("Bash", "shell"), True),
        ("*", ("Bash", "shell"), True),
        ("Bash", ("Bash", "shell"), True),
        ("shell", ("Bash", "shell"), True),
        ("Bas", ("Bash", "shell"), False),
        ("Edit|Write", ("Write", "write_file"), True),
        ("Edit, Write", ("Write", "write_file"), True),
        ("mcp__git__.*", ("mcp__git__push",), True),
        ("^Ba", ("Bash", "shell"), True),
        (".*File$", ("Bash", "shell"), False),
    ],
)
def test_a_matcher_is_names_or_a_pattern(matcher: str, names: tuple[str, ...], expected: bool) -> None:
    assert Hook("PreToolUse", matcher, "x").matches(names) is expected


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"command": "x"}, "hooks 1: event is missing."),
        ({"event": "Stop"}, "hooks 1: command is missing."),
        ({"event": "Stopp", "command": "x"}, "hooks 1: event = 'Stopp' is not valid; valid: one of SessionStart, "),
        ({"event": "Stop", "command": "x", "matcher": "("}, "hooks 1: matcher is not a valid pattern "),
        ({"event": "Stop", "command": "x", "timout": 1}, "hooks 1: there is no field timout; valid: event, "),
    ],
)
def test_an_invalid_hook_is_refused_in_one_line(row: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError) as raised:
        defaults().with_value("hooks", [row], "the test")
    assert str(raised.value).startswith(said)
    assert "\n" not in str(raised.value)


def test_a_projects_hooks_run_once_trusted_beside_the_persons_own(place: Place) -> None:
    (place.home / ".nca" / "config.toml").write_text('[[hooks]]\nevent = "stop"\ncommand = "own"\n')
    (place.project / ".nca" / "config.toml").write_text('[[hooks]]\nevent = "Stop"\ncommand = "theirs"\n')
    place.claude(place.project, on("PreToolUse", GUARD, matcher="Bash"))
    place.claude(place.project, on("Stop", {**GUARD, "async": True}), "settings.local.json")
    asked: list[TrustRequest] = []

    def no(what: TrustRequest) -> bool:
        asked.append(what)
        return False

    own = Hook("Stop", command="own")
    refused = place.load(no)
    assert refused.settings.hooks == (own,)
    assert any("wait for your trust: hooks" in note for note in refused.notes)
    assert [name for name, _ in asked[0].settings] == ["hooks"] * 3
    assert "guard.py" in str(asked[0].settings)
    assert place.load(None).settings.hooks == (own,)
    assert place.load().settings.hooks == (
        own,
        Hook("PreToolUse", "Bash", "python3 guard.py", timeout_seconds=5),
        Hook("Stop", command="python3 guard.py", timeout_seconds=5, background=True),
        Hook("Stop", command="theirs"),
    )


def test_the_persons_hooks_for_claude_run_only_if_they_say_so(place: Place) -> None:
    place.claude(place.home, on("Stop", GUARD))
    assert place.load(None).settings.hooks == ()
    (place.project / ".nca" / "config.toml").write_text("[agent]\nclaude_hooks = true\n")
    assert place.load().settings.hooks == ()
    (place.home / ".nca" / "config.toml").write_text("[agent]\nclaude_hooks = true\n")
    assert place.load(None).settings.hooks == (Hook("Stop", command="python3 guard.py", timeout_seconds=5),)


def test_the_persons_status_line_for_claude_is_used_only_if_they_say_so(place: Place) -> None:
    for folder, command in ((place.home, "mine"), (place.project, "theirs")):
        (folder / ".claude").mkdir(exist_ok=True)
        text = json.dumps({"statusLine": {"type": "command", "command": command}})
        (folder / ".claude" / "settings.json").write_text(text)
    assert place.load(lambda _: False).settings.terminal.status_command == ""
    assert place.load().settings.terminal.status_command == "theirs"
    (place.project / ".claude" / "settings.json").unlink()
    own = place.home / ".nca" / "config.toml"
    own.write_text("[agent]\nuse_claude_home = true\n")
    assert place.load(None).settings.terminal.status_command == "mine"
    own.write_text('[agent]\nuse_claude_home = true\n[terminal]\nstatus_command = "own"\n')
    assert place.load(None).settings.terminal.status_command == "own"


def test_a_projects_status_command_waits_for_trust(place: Place) -> None:
    (place.project / ".nca" / "config.toml").write_text('[terminal]\nstatus_command = "theirs"\nstatus = "x"\n')
    untrusted = place.load(None)
    assert (untrusted.settings.terminal.status_command, untrusted.settings.terminal.status) == ("", "")
    assert any("wait for your trust: terminal.status_command, terminal.status " in note for note in untrusted.notes)
    assert place.load().settings.terminal.status_command == "theirs"


def test_what_cannot_run_is_a_note(place: Place) -> None:
    asks = {"type": "prompt", "prompt": "ok?"}
    entries = (GUARD, asks, {"type": "http", "url": "x"}, {**GUARD, "if": "Bash(rm *)"}, {"type": "command"}, 7)
    others = {**on("TeammateIdle", GUARD), **on("SessionEnd", asks), "PreToolUse": 5}
    place.claude(place.project, {**on("Stop", *entries), **others})
    loaded = place.load()
    guard = Hook("Stop", command="python3 guard.py", timeout_seconds=5)
    assert loaded.settings.hooks == (guard, Hook("Stop", prompt="ok?"))
    assert loaded.settings.hooks[1].limit_seconds == 30
    said = "\n".join(loaded.notes)
    assert "condition is for PreToolUse, PostToolUse" in said
    assert said.count("a hook for Stop does not run") == 3
    assert "a hook for SessionEnd does not run: prompt is for UserPromptSubmit, PreToolUse" in said
    assert "hooks for TeammateIdle do not run" in said


@pytest.mark.parametrize("matcher", ["Bsh", "bash", "Wirte|Edti", "mcp_git_push"])
def test_a_matcher_that_names_no_tool_is_told(place: Place, matcher: str) -> None:
    """Such a guard never ran, in silence."""
    row = {"event": "PreToolUse", "matcher": matcher, "command": "x"}
    said = f"the test: hooks: there is no tool {matcher.partition('|')[0]}."
    with pytest.raises(ConfigError, match=said):
        check_names(defaults().with_value("hooks", [row], "the test"))
    place.claude(place.project, on("PreToolUse", GUARD, matcher=matcher))
    loaded = place.load()
    assert loaded.settings.hooks == ()
    assert any("a hook for PreToolUse does not run: there is no tool" in note for note in loaded.notes)


@pytest.mark.parametrize(
    ("event", "matcher"),
    [
        ("PreToolUse", "Write|Edit|MultiEdit"),
        ("PreToolUse", "NotebookEdit, WebSearch"),
        ("PostToolUse", "edit_file|Wirte"),
        ("PreToolUse", "mcp__git__push"),
        ("PreToolUse", "_write$"),
        ("PreToolUse", "job"),
        ("SubagentStop", "reviewer"),
        ("PreToolUse", "of_the_program"),
    ],
)
def test_a_matcher_that_may_name_a_tool_is_left_alone(place: Place, event: str, matcher: str) -> None:
    row = {"event": event, "matcher": matcher, "command": "x"}
    check_names(defaults().with_value("hooks", [row], "the test"), ["of_the_program"])
    if matcher != "of_the_program":
        place.claude(place.project, on(event, GUARD, matcher=matcher))
        loaded = place.load()
        assert [hook.matcher for hook in loaded.settings.hooks] == [matcher]
        check_names(loaded)


def test_a_condition_is_a_rule_about_calls(place: Place) -> None:
    entries = ({**GUARD, "if": "Bash(*git *commit*)"}, {**GUARD, "if": "Bash(git"}, {**GUARD, "if": 7})
    place.claude(place.project, on("PreToolUse", *entries, matcher="Bash"))
    loaded = place.load()
    wanted = Hook("PreToolUse", "Bash", "python3 guard.py", timeout_seconds=5, condition="Bash(*git *commit*)")
    assert loaded.settings.hooks == (wanted,)
    said = "\n".join(loaded.notes)
    assert "is not a rule that nca can read" in said
    assert said.count("a hook for PreToolUse does not run") == 2


@pytest.mark.parametrize(
    "text", ["{", "[]", '"x"', '{"hooks": []}', '{"hooks": {"Stop": [{"hooks": 1}, 2]}}', "[" * 9999]
)
def test_a_broken_file_of_claudes_stops_nothing(place: Place, text: str) -> None:
    (place.project / ".claude" / "settings.json").write_text(text)
    assert place.load().settings.hooks == ()
