"""What of a Claude Code set-up is not used is named in one line, and the docs have the same table as the program."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from nca.agent.claude_parts import PARTS, unused_parts
from nca.config.claude_settings import KEY_VARIABLE

DOCS = Path(__file__).parents[2] / "docs"


class Place:
    def __init__(self, path: Path) -> None:
        self.home, self.project = path / "home", path / "home" / "work"
        (self.project / ".git").mkdir(parents=True)

    def write(self, name: str, text: str | dict[str, Any] = "x", *, own: bool = False) -> None:
        path = (self.home if own else self.project) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text if isinstance(text, str) else json.dumps(text))

    def line(self, *, runs_own: bool = False) -> str:
        return unused_parts(self.project, self.home, runs_own=runs_own)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.delenv(KEY_VARIABLE, raising=False)
    return Place(tmp_path)


def test_nothing_is_said_where_all_is_used(place: Place) -> None:
    assert place.line() == ""
    hooks = {"Stop": [{"hooks": [{"type": "command", "command": "x"}]}]}
    settings = {"$schema": "x", "permissions": {"deny": ["Bash"], "ask": ["Read"], "allow": []}, "hooks": hooks}
    place.write(".claude/settings.json", {**settings, "env": {}, "model": ""})
    for name in ("commands/a.md", "skills/b/SKILL.md", "rules/c.md", "CLAUDE.md", "agents/notes.txt"):
        place.write(f".claude/{name}")
    place.write("CLAUDE.local.md")
    assert place.line() == ""


def test_what_is_not_used_is_named_once(place: Place) -> None:
    permissions = {"allow": ["Bash(ls)"], "defaultMode": "dontAsk", "additionalDirectories": ["../b"]}
    settings = {"permissions": permissions, "env": {"A": "b"}, "model": "opus", "outputStyle": "Explanatory"}
    place.write(".claude/settings.json", {**settings, "disableAllHooks": False})
    place.write(".claude/settings.local.json", {"model": "haiku", "statusLine": {"type": "command", "command": "x"}})
    place.write(".claude/agents/a.md", "---\nname: a\nmodel: gpt-5\n---\nx")
    place.write(".claude/agents/more/b.md")
    place.write(".claude/output-styles/terse.md")
    place.write(".claude/rules/a.md", "---\npaths:\n  - src/**\n---\nTabs.")
    assert place.line(runs_own=True) == (
        "Not used here of .claude: permissions.defaultMode ('dontAsk'), model (haiku needs ANTHROPIC_API_KEY), "
        "outputStyle (Explanatory is not a file), disableAllHooks, "
        "models of agents ('gpt-5' is not a model that nca knows)."
    )


def test_what_a_setting_would_use_of_the_persons_own_is_said(place: Place) -> None:
    settings = {"hooks": {"Stop": [1]}, "statusLine": {"command": "x"}, "permissions": {"deny": ["Bash"]}}
    place.write(".claude/settings.json", settings, own=True)
    place.write(".claude/CLAUDE.md", own=True)
    place.write(".claude/rules/a.md", own=True)
    place.write(".claude/skills/a/SKILL.md", own=True)
    place.write(".claude/agents/a.md")
    assert place.line() == (
        "Not used here of ~/.claude: hooks (with agent.use_claude_home only), "
        "statusLine (with agent.use_claude_home only), CLAUDE.md (with agent.use_claude_home only), "
        "rules (1) (with agent.use_claude_home only)."
    )
    assert place.line(runs_own=True) == ""
    assert unused_parts(place.project, None, runs_own=False) == ""
    (place.project / ".git").rmdir()
    assert place.line().endswith("statusLine (with agent.use_claude_home only).")


def test_in_the_home_directory_its_set_up_is_the_projects(place: Place) -> None:
    place.write(".claude/settings.json", {"hooks": {"Stop": [1]}, "model": "opus"}, own=True)
    place.write(".claude/rules/a.md", own=True)
    assert (
        unused_parts(place.home, place.home, runs_own=False)
        == "Not used here of ~/.claude: model (opus needs ANTHROPIC_API_KEY)."
    )


def test_a_setting_named_as_a_folder_is_a_setting(place: Place) -> None:
    place.write(".claude/settings.json", {"skills": ["a"], "CLAUDE.md": 1})
    assert place.line() == "Not used here of .claude: skills, CLAUDE.md."


def test_instructions_that_another_file_replaces_are_named(place: Place) -> None:
    place.write("AGENTS.md", "For all.")
    place.write("CLAUDE.md", "@AGENTS.md\n")
    (place.project / ".claude").mkdir()
    (place.project / ".claude" / "CLAUDE.md").symlink_to("../AGENTS.md")
    assert place.line() == ""
    place.write("CLAUDE.md", "@AGENTS.md\nAnd more.")
    assert place.line() == "Not used here of .claude: CLAUDE.md (AGENTS.md counts)."
    place.write("AGENTS.md", "For all. See @CLAUDE.md.")
    assert place.line() == ""


@pytest.mark.parametrize("text", ["{", "[]", '{"permissions": 5, "a\\u001b\\nb": 1}', '{"agents": [[[]]]}'])
def test_a_strange_file_gives_one_safe_line(place: Place, text: str) -> None:
    place.write(".claude/settings.json", text)
    assert place.line().isprintable()


@pytest.mark.parametrize(("keys", "more"), [(12, "…."), (13, "… and 1 more."), (40, "… and 28 more.")])
def test_a_file_cannot_fill_the_screen(place: Place, keys: int, more: str) -> None:
    place.write(".claude/settings.json", {f"{number:02}{'x' * 500}": 1 for number in range(keys)})
    assert place.line().endswith(more)
    assert len(place.line()) < 1_100


def test_the_docs_have_the_same_table() -> None:
    def code(name: str) -> str:
        return name if " " in name else f"`{name}`"

    rows = [f"| {code(part.name)} | {part.project} | {part.own} |" for part in PARTS]
    page = (DOCS / "other-agents.md").read_text()
    head = "| part of a set-up | a project's | yours, in `~/.claude` |\n| --- | --- | --- |\n"
    assert head + "\n".join(rows) + "\n\n" in page
