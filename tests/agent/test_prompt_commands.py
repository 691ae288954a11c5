"""Skills and custom commands that a person calls by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from nca.agent.prompt_commands import find_prompts, with_arguments
from nca.errors import UsageError
from nca.words import text_of, words


@pytest.fixture
def project(tmp_path: Path) -> Path:
    write(tmp_path / "project" / "notes.md", "Mind the gap.")
    write(tmp_path / "outside.md", "Secret.")
    return tmp_path / "project"


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.mark.parametrize(
    ("text", "words", "filled"),
    [
        ("Review $ARGUMENTS now.", "PR 7", "Review PR 7 now."),
        ("Fix $1 in $2, $3.", '"a b" c', "Fix a b in c, ."),
        ("Fix $1.", "'open", "Fix 'open."),
        ("Fix it.", "7", "Fix it.\n\nARGUMENTS: 7"),
        ("Fix it.", "", "Fix it."),
        ("$ARGUMENTS[1] costs $10, $1", "a b", "b costs $10, a"),
        ("$1", "$2 @secret x", "$2"),
    ],
)
def test_words_are_put_in_once(text: str, words: str, filled: str) -> None:
    assert with_arguments(text, words) == filled


def test_a_skill_may_count_from_nothing() -> None:
    assert with_arguments("$0 and $1", "a b", is_skill=True) == "a and b"
    assert with_arguments("$1 and $2", "a b", is_skill=True) == "a and b"


def test_commands_of_the_project_and_of_the_person(project: Path) -> None:
    own = project.parent / "own"
    write(
        project / ".claude" / "commands" / "review.md", "---\nargument-hint: [pr] [who]\n---\n# Review\nSee @notes.md"
    )
    write(project / ".claude" / "commands" / "git" / "fix.md", "---\ndescription: Mend it\n---\nGo.")
    write(project / ".nca" / "commands" / "fix.md", "Fix it.")
    write(own / "commands" / "review.md", "Mine: @notes.md @../outside.md")
    write(project / ".claude" / "skills" / "pdf" / "SKILL.md", "---\nname: pdf\ndescription: PDFs\n---\nFor $ARGUMENTS")
    write(project / ".claude" / "skills" / "inner" / "SKILL.md", "---\ndescription: x\nuser-invocable: false\n---\n")
    found = find_prompts(project, own)
    assert {name: (one.about, one.hint) for name, one in found.items()} == {
        "pdf": ("PDFs", ""),
        "review": ("Mine: @notes.md @../outside.md", ""),
        "fix": ("Fix it.", ""),
        "git:fix": ("Mend it", ""),
    }
    called = found["review"].call(words("7"), project)
    assert text_of(called.message) == f"Follow {own}/commands/review.md: 7"
    assert called.files == (project / "notes.md", project.parent / "outside.md")
    skill = found["pdf"].call(words("all of them"), project)
    assert text_of(skill.message) == "Follow .claude/skills/pdf/SKILL.md: all of them"
    assert skill.beside[0].text.endswith("\nFor all of them")


def test_only_a_skill_that_is_called_counts_from_nothing(project: Path) -> None:
    text = "Take $0 and $1"
    write(project / ".claude" / "skills" / "pdf" / "SKILL.md", f"---\nname: pdf\ndescription: PDFs\n---\n{text}")
    write(project / ".claude" / "commands" / "fix.md", text)
    found = find_prompts(project, project / "none")
    sent = {name: found[name].call(words("a b"), project).beside[0].text.splitlines()[-1] for name in found}
    assert sent == {"pdf": "Take a and b", "fix": "Take  and a"}


def test_a_projects_command_attaches_nothing_from_outside(project: Path) -> None:
    write(project / ".claude" / "commands" / "spy.md", "@notes.md @../outside.md @~/.ssh/id")
    with pytest.raises(UsageError, match="no such file"):
        find_prompts(project, project / "none")["spy"].call((), project)
    write(project / ".claude" / "commands" / "spy.md", "@notes.md @../outside.md $1")
    spy = find_prompts(project, project / "none")["spy"]
    assert spy.call(words("@../outside.md"), project).files == (project / "notes.md", project.parent / "outside.md"), (
        "typed"
    )
    assert spy.call((), project).files == (project / "notes.md",)


def test_commands_to_run_first_are_left_to_the_model(project: Path) -> None:
    write(project / ".claude" / "commands" / "commit.md", "Status: !`git status`\nCommit.")
    called = find_prompts(project, project / "none")["commit"].call((), project)
    assert called.beside[0].text.startswith("[Where it says !`command`, run that command first")
    write(project / ".claude" / "commands" / "commit.md", "x" * 70_000)
    with pytest.raises(UsageError, match="larger than 65,536 bytes"):
        find_prompts(project, project / "none")["commit"].call((), project)
