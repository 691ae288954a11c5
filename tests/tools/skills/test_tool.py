"""Skills: found in two folders, listed within a limit, read on demand, and never pruned."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from nca.agent.instructions import MAX_SKILL_TOKENS, skill_list
from nca.config.schema import Settings
from nca.context.tokens import text_tokens
from nca.tools.skill_places import Place, places
from nca.tools.skills import MAX_SKILL_BYTES, NAME, Skill, SkillFile, find_skills
from nca.tools.tool import ToolError


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "project" / ".nca" / "skills").mkdir(parents=True)
    (tmp_path / "own").mkdir()
    return tmp_path / "project"


def write(folder: Path, file: str, name: str, when: str, body: str = "Do it.\n") -> Path:
    path = folder / file
    path.write_text(f"---\nname: {name}\nwhen: {when}\nother: x\n---\n{body}")
    return path


def find(project: Path) -> tuple[list[SkillFile], list[str]]:
    return find_skills([Place(project.parent / "own"), *places(project, project.parent / "none", "skills")])


async def test_names_and_whens_are_found_and_the_text_is_read_when_asked_for(project: Path) -> None:
    skills = project / ".nca" / "skills"
    path = write(skills, "r.md", "release", '"A release is to be made."', "# Steps\r\n1. Tag.\n")
    write(skills, "b.md", "bench", "Speed is in question.")
    found, problems = find(project)
    assert [(one.name, one.when, one.source) for one in found] == [
        ("bench", "Speed is in question.", ".nca/skills/b.md"),
        ("release", "A release is to be made.", ".nca/skills/r.md"),
    ]
    assert not problems
    tool = Skill(found)
    outcome = await tool.call("release")
    header, _, body = outcome.text.partition("\n")
    assert header.startswith("[skill release, .nca/skills/r.md; the project's, so it gives no permissions")
    assert body == "# Steps\r\n1. Tag."
    path.write_text("Now without a head.")
    assert (await tool.call("release")).text.endswith("\nNow without a head.")
    path.unlink()
    with pytest.raises(ToolError, match="is gone"):
        await tool.call("release")
    with pytest.raises(ToolError, match="there is no skill 'fly'; the skills are: bench, release"):
        await tool.call("fly")


async def test_the_persons_own_come_before_a_projects_of_the_same_name(project: Path) -> None:
    write(project / ".nca" / "skills", "a.md", "review", "The project's.", "Approve all.")
    target = write(project.parent, "dotfile.md", "review", "Mine.", "Read it.")
    (project.parent / "own" / "mine.md").symlink_to(target)
    (one,), problems = find(project)
    assert (one.when, problems) == ("Mine.", [])
    text = (await Skill([one]).call("review")).text
    assert "the person's own" in text
    assert text.endswith("Read it.")


def test_what_is_no_skill_is_one_line_and_nothing_outside_is_read(project: Path) -> None:
    skills = project / ".nca" / "skills"
    write(project.parent, "secret.md", "secret", "Never.")
    (skills / "link.md").symlink_to(project.parent / "secret.md")
    (skills / "zero.md").symlink_to("/dev/zero")
    os.mkfifo(skills / "pipe.md")
    (skills / "plain.md").write_text("No head.")
    (skills / "open.md").write_text("---\nname: x\n")
    (skills / "folder.md").mkdir()
    write(skills, "name.md", "a b", "Always.")
    write(skills, "when.md", "silent", "")
    (skills / "readme.txt").write_text("not looked at")
    found, problems = find(project)
    assert found == []
    assert len(problems) == 7
    assert all(line.startswith("Skipped a skill: ") and "\n" not in line for line in problems)
    assert any("link.md is outside" in line for line in problems)


def test_a_linked_folder_outside_has_no_skills(project: Path) -> None:
    write(project.parent / "own", "mine.md", "mine", "Mine.")
    (project / ".nca" / "skills").rmdir()
    (project / ".nca" / "skills").symlink_to(project.parent / "own")
    assert find_skills(places(project, project / "none", "skills")) == ([], [])


async def test_a_long_skill_is_cut_and_says_so(project: Path) -> None:
    write(project / ".nca" / "skills", "long.md", "long", "Long.", "ä" * MAX_SKILL_BYTES)
    text = (await Skill(find(project)[0]).call("long")).text
    assert "only its first 65,536 bytes]" in text
    assert len(text.encode()) < MAX_SKILL_BYTES + 300
    assert "\ufffd" not in text


def test_the_list_is_bounded(project: Path) -> None:
    for number in range(150):
        write(project / ".nca" / "skills", f"{number}.md", f"skill-{number:03}", "Something is to be done. " * 9)
    found, _ = find(project)
    text, told = skill_list(found, MAX_SKILL_TOKENS)
    assert text_tokens(text) <= MAX_SKILL_TOKENS
    listed = text.count("\n- skill-")
    assert listed > 10
    assert text.endswith(f"- [{150 - listed} more are not listed]")
    assert told[1].startswith(f"{150 - listed} of 150 skills are not listed")
    assert skill_list([], 100) == ("", [])


def test_its_results_are_protected_from_pruning() -> None:
    assert NAME in Settings().context.prune.protected_tools


async def test_a_folder_as_other_agents_have_it(project: Path) -> None:
    folder = project / ".claude" / "skills" / "office" / "pdf"
    (folder / "scripts").mkdir(parents=True)
    (folder / "SKILL.md").write_text(
        "\ufeff---\nname: pdf\ndescription: Use it for: PDFs\nallowed-tools: Bash\nmodel: x\n---\n"
        "Run $CLAUDE_SKILL_DIR/scripts/a.py"
    )
    (folder / "scripts" / "a.py").write_text("print(1)\n")
    (folder / "scripts" / "SKILL.md").write_text("---\nname: inner\ndescription: no skill of its own\n---\n")
    (project / ".claude" / "skills" / "README.md").write_text("No skill.")
    own = project.parent / "own" / "pdf"
    (project / ".agents" / "skills" / "pdf").mkdir(parents=True)
    (project / ".agents" / "skills" / "pdf" / "SKILL.md").write_text("---\ndescription: The nearer folder.\n---\nB")
    found, problems = find(project)
    assert ([one.when for one in found], problems) == (["The nearer folder."], [])
    (project / ".agents" / "skills" / "pdf" / "SKILL.md").unlink()
    (one,), _ = find(project)
    tool = Skill([one])
    text = (await tool.call("pdf")).text
    assert f"[beside it in {folder}; read one with file=…: scripts/SKILL.md, scripts/a.py]" in text
    assert text.endswith(f"\nRun {folder}/scripts/a.py")
    assert (await tool.call("pdf", "scripts/a.py")).text == "[scripts/a.py of the skill pdf]\nprint(1)\n"
    for outside in ("../../../../secret", "/etc/passwd", "", "scripts/../../x"):
        with pytest.raises(ToolError, match=r"is not a file of the skill|is gone"):
            one.text_of(outside)
    (folder / "link").symlink_to("/etc/passwd")
    with pytest.raises(ToolError, match="outside"):
        one.text_of("link")
    own.mkdir()
    (own / "SKILL.md").write_text("---\nname: pdf\ndescription: Mine.\ndisable-model-invocation: true\n---\nC")
    (mine,), _ = find(project)
    assert (mine.when, mine.place.is_own, mine.is_listed) == ("Mine.", True, False)
    assert skill_list([mine], 2_000) == ("", ["Skills: pdf."])


def test_folders_without_end_are_bounded(project: Path) -> None:
    own = project.parent / "own"
    (own / "loop").symlink_to(own)
    write(own, "a.md", "a", "Once.")
    assert [one.name for one in find(project)[0]] == ["a"]
