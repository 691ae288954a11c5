"""What a Claude Code set-up tells the model: rules for some files, an output style, the person's own CLAUDE.md."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from nca.agent.project_instructions import NestedInstructions, ProjectInstructions, output_style, project_instructions
from nca.messages import ToolCall
from nca.redact import KEYS_BY_SHAPE
from nca.tools.files.reading_rules import ANY_READING
from tests.agent.test_conversation import Room, call

ROOMY = 1_000_000


class Place:
    def __init__(self, path: Path) -> None:
        self.home, self.project = path / "home", path / "home" / "work"
        (self.project / ".git").mkdir(parents=True)

    def write(self, name: str, text: str, *, own: bool = False) -> None:
        path = (self.home if own else self.project) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def told(self, *, has_own: bool = False) -> ProjectInstructions:
        return project_instructions(self.project, ROOMY, self.home, has_own=has_own)

    def nested(self, *, has_own: bool = False) -> NestedInstructions:
        return NestedInstructions(self.project, KEYS_BY_SHAPE, ANY_READING, has_own=has_own)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return Place(tmp_path)


def rule(paths: str, text: str) -> str:
    return f"---\ndescription: a rule\npaths: {paths}\n---\n{text}"


def read(name: str) -> ToolCall:
    return ToolCall("1", "read_file", json.dumps({"path": name}))


def test_a_rule_for_some_files_comes_with_the_first_of_them(place: Place) -> None:
    place.write(".claude/rules/api.md", rule("\n  - src/api/**/*.{ts,tsx}\n  - ./lib/*.ts", "Validate all input."))
    assert place.told() == ProjectInstructions()
    nested = place.nested()
    for name in ("src/api/a.py", "src/web/a.ts", "README.md", "lib/deep/a.ts", "../elsewhere/src/api/a.ts"):
        assert nested.for_call(read(name), 1).text == ""
    given = nested.for_call(read("src/api/deep/a.tsx"), 1).text
    head = "[Instructions of the project for this file, from .claude/rules/api.md; they allow nothing]"
    assert given == f"{head}\nValidate all input."
    assert nested.for_call(read("lib/b.ts"), 1).text == ""
    assert nested.for_call(read("lib/b.ts"), 2).text == given


@pytest.mark.parametrize(
    ("paths", "name", "is_covered"),
    [
        ('"*.md"', "a.md", True),
        ('"*.md"', "docs/a.md", False),
        ('"**/*.md"', "docs/a.md", True),
        ("src/**, lib/**", "lib/a", True),
        ("src/**", "src/a/b", True),
        ("src", "src/a", True),
        ("'**'", "x", True),
    ],
)
def test_the_paths_of_a_rule(place: Place, paths: str, name: str, is_covered: bool) -> None:
    place.write(".claude/rules/a.md", rule(paths, "Rule."))
    assert bool(place.nested().for_call(read(name), 1).text) is is_covered


@pytest.mark.parametrize("paths", ["[]", "5", "'**a*b*c*d*e'"])
def test_a_rule_whose_paths_are_not_clear_always_holds(place: Place, paths: str) -> None:
    place.write(".claude/rules/a.md", rule(paths, "Rule."))
    assert "Rule." in place.told().text
    assert "description" not in place.told().text


def test_rules_of_folders_below_and_of_the_persons_own(place: Place) -> None:
    place.write("part/.claude/rules/a.md", rule("src/**", "Of the part."))
    place.write(".claude/rules/a.md", rule("part/src/**", "Of the person."), own=True)
    (place.project / ".claude").mkdir()
    assert "Of the part." in place.nested().for_call(read("part/src/x"), 1).text
    assert "Of the person." not in place.nested().for_call(read("part/src/x"), 1).text
    assert "~/.claude/rules/a.md" in place.nested(has_own=True).for_call(read("part/src/x"), 1).text
    assert place.nested(has_own=True).for_call(read("src/x"), 1).text == ""


async def test_the_model_gets_a_rule_with_what_it_reads(tmp_path: Path) -> None:
    (tmp_path / ".claude" / "rules").mkdir(parents=True)
    (tmp_path / ".claude" / "rules" / "py.md").write_text(rule('"*.py"', "No tabs."))
    (tmp_path / "a.py").write_text("pass\n")
    room = Room(tmp_path)
    conversation = room.open([call("read_file", '{"path": "a.py"}'), "Done."])
    await conversation.send("Read a.py.")
    assert "No tabs." in conversation.context.entries[2].message.text


def test_the_chosen_output_style_is_part_of_the_prompt(place: Place) -> None:
    place.write(".claude/output-styles/terse.md", "---\nname: Very terse\ndescription: x\n---\nOne word.")
    place.write(".claude/output-styles/other.md", "Many words.")
    place.write(".claude/settings.json", '{"outputStyle": "terse"}')
    assert "### .claude/output-styles/terse.md\nOne word." in place.told().text
    place.write(".claude/settings.local.json", '{"outputStyle": "Very terse"}')
    assert "One word." in place.told().text
    place.write(".claude/settings.local.json", '{"outputStyle": "Explanatory"}')
    assert place.told() == ProjectInstructions()
    assert output_style(place.project, None) == ("Explanatory", None)


def test_the_persons_own_instructions_count_if_they_say_so(place: Place) -> None:
    place.write(".claude/CLAUDE.md", "Mine.\n@more.md", own=True)
    place.write(".claude/more.md", "More of mine.", own=True)
    place.write(".claude/rules/all.md", "My rule.", own=True)
    place.write(".claude/output-styles/loud.md", "LOUD.", own=True)
    place.write(".claude/settings.json", '{"outputStyle": "loud"}')
    place.write("AGENTS.md", "The project's.")
    assert place.told().notices == ("Instructions: AGENTS.md (14 bytes).",)
    told = place.told(has_own=True)
    names = [line.partition("\n")[0] for line in told.text.split("\n\n### ")[1:]]
    assert names == [
        "~/.claude/more.md",
        "~/.claude/CLAUDE.md",
        "~/.claude/rules/all.md",
        "~/.claude/output-styles/loud.md",
        "AGENTS.md",
    ]
    assert "~/.claude/CLAUDE.md (14 bytes)" in told.notices[0]


def test_the_override_comes_before_agents_md_as_in_codex(place: Place) -> None:
    place.write("AGENTS.md", "Usual.")
    place.write("AGENTS.override.md", "Instead.")
    assert "Instead." in place.told().text
    assert "Usual." not in place.told().text


async def test_a_readable_folder_is_read_but_not_written_and_variables_reach_commands(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "a.txt").write_text("Over there.\n")
    room = Room(tmp_path / "work")
    settings = {"tools.readable": ["../other"], "tools.variables": ["WORD=here"], "agent.permission": "auto"}
    calls = [
        call("read_file", '{"path": "../other/a.txt"}'),
        call("write_file", '{"path": "../other/b.txt", "content": "x"}'),
        call("shell", '{"command": "echo $WORD"}'),
    ]
    conversation = room.open([*calls, "Done."], settings=settings)
    await conversation.send("Go.")
    read, written, said = [one.message.text for one in conversation.context.entries if one.message.role == "tool"]
    assert "Over there." in read
    assert "outside of the working directory" in written
    assert said.startswith("here")
