"""The system prompt: nca's own or the person's, and its sections in order."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nca.agent.instructions import (
    BYTES_PER_TOKEN,
    MAX_FILE_BYTES,
    MAX_NOTES_TOKENS,
    NOTES_SHARE,
    ProjectPrompts,
    render_sections,
    system_prompt,
)
from nca.agent.memory import add_note
from nca.config.loaded import defaults
from nca.config.schema import ContextSettings, Settings
from nca.config.tables import Section
from nca.errors import ConfigError
from nca.models.catalog import ModelFacts


def settings(*sections: Section, prompt: str = "Own.") -> Settings:
    plain = Settings()
    return replace(plain, context=ContextSettings(section=sections), agent=replace(plain.agent, system_prompt=prompt))


def test_a_small_model_has_short_instructions(tmp_path: Path) -> None:
    settings = defaults().settings
    text = system_prompt(settings, tmp_path, is_small=True)
    assert str(tmp_path) in text
    assert "edit_file" in text
    assert "recall" not in text
    assert len(text) < len(system_prompt(settings, tmp_path)) * 2 / 3
    prompts = ProjectPrompts(tmp_path)
    large, small = (prompts.of(settings, ModelFacts("m", is_small=is_small)).text for is_small in (False, True))
    assert (len(small) < len(large), prompts.of(settings, ModelFacts("n")).text) == (True, large)


@pytest.mark.parametrize(
    ("off", "facts", "tools", "speaks"),
    [
        ((), ModelFacts("m"), None, {"recall", "look at files"}),
        (("recall",), ModelFacts("m"), None, {"look at files"}),
        (("rec*",), ModelFacts("m"), None, {"look at files"}),
        (("*",), ModelFacts("m"), None, set()),
        ((), ModelFacts("m", can_use_tools=False), None, set()),
        ((), ModelFacts("m"), ("recall", "lookup"), {"recall"}),
    ],
)
def test_the_prompt_speaks_of_no_tool_that_the_model_does_not_have(
    tmp_path: Path, off: tuple[str, ...], facts: ModelFacts, tools: tuple[str, ...] | None, speaks: set[str]
) -> None:
    loaded = defaults().with_values({"tools.off": list(off)}, "the test")
    text = ProjectPrompts(tmp_path, tools=tools).of(loaded.settings, facts).text
    assert {words for words in ("recall", "look at files") if words in text} == speaks
    assert "[" not in text.replace("[cleared: ", "")


def test_notes_are_known_to_later_sessions_the_newest_first(tmp_path: Path) -> None:
    settings, file = defaults().settings, tmp_path / ".nca" / "memory.json"
    before = ProjectPrompts(tmp_path)
    of_before = before.of(settings, ModelFacts("m"))
    rules = " ".join(f"Rule {number} holds for all that is deployed." for number in range(20))
    add_note(file, f"The deploy runs on Fridays.\n{rules}", at=1.0, max_notes=9)
    add_note(file, "Fix the parser\n\nWhat was done: much.", at=2.0, max_notes=9)
    assert before.of(settings, ModelFacts("m")) == of_before, "a prompt stays as it is for the whole session"
    prompt = ProjectPrompts(tmp_path).of(settings, ModelFacts("m"))
    assert prompt.text.endswith(f"- Fix the parser\n- The deploy runs on Fridays. {rules}")
    assert "much" not in prompt.text
    assert prompt.notices[-1:] == ("Notes of earlier sessions: 2 (/memory).",)
    assert "parser" not in of_before.text


@given(st.lists(st.text(min_size=1, max_size=600), max_size=40), st.sampled_from([4_000, 32_000, 200_000]))
def test_notes_have_their_share_of_the_room(texts: list[str], window: int) -> None:
    with TemporaryDirectory() as folder:
        directory = Path(folder)
        without = ProjectPrompts(directory).of(defaults().settings, ModelFacts("m", window_tokens=window)).text
        for at, text in enumerate(texts):
            add_note(directory / ".nca" / "memory.json", text, at=at, max_notes=128)
        noted = ProjectPrompts(directory).of(defaults().settings, ModelFacts("m", window_tokens=window)).text
    assert len(noted.encode()) - len(without.encode()) <= BYTES_PER_TOKEN * min(MAX_NOTES_TOKENS, window // NOTES_SHARE)


def test_a_damaged_file_of_notes_is_said_and_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / ".nca").mkdir()
    (tmp_path / ".nca" / "memory.json").write_text("mine")
    prompt = ProjectPrompts(tmp_path).of(defaults().settings, ModelFacts("m"))
    assert "is not a file of notes" in prompt.notices[0]


def test_without_sections_it_is_ncas_own_text(tmp_path: Path) -> None:
    text = system_prompt(defaults().settings, tmp_path)
    assert str(tmp_path) in text
    assert text == text.strip()
    assert "##" not in text


def test_sections_stand_behind_it_by_priority(tmp_path: Path) -> None:
    (tmp_path / "style.md").write_bytes(b"\xef\xbb\xbfUse tabs.\r\nNever spaces.\n")
    text = system_prompt(
        settings(
            Section("Output rules", "Always include code examples.", priority=10),
            Section("Style", file="style.md"),
            Section("Role", "You are a senior engineer.\n", priority=-1),
            Section("Last", "z", priority=10),
        ),
        tmp_path,
    )
    assert text == (
        "Own.\n\n## Role\nYou are a senior engineer.\n\n## Style\nUse tabs.\r\nNever spaces.\n\n"
        "## Output rules\nAlways include code examples.\n\n## Last\nz"
    )
    assert system_prompt(settings(Section("A", "a \ud800")), tmp_path).endswith("## A\na \ufffd")


@given(st.lists(st.tuples(st.integers(-3, 3), st.integers(0, 99)), max_size=12))
def test_the_order_is_stable(rows: list[tuple[int, int]]) -> None:
    sections = tuple(Section(f"L{priority}.{place}", f"t{place}", priority=priority) for priority, place in rows)
    shown = [line for line in render_sections(sections, Path()).splitlines() if line.startswith("## ")]
    assert shown == [f"## {section.label}" for section in sorted(sections, key=lambda one: one.priority)]


def test_a_file_that_cannot_be_used_is_one_clear_line(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (tmp_path / "secret").write_text("x")
    (project / "link").symlink_to(tmp_path / "secret")
    (project / "binary").write_bytes(b"a\0b")
    (project / "large").write_text("x" * (MAX_FILE_BYTES + 1))
    (project / "folder").mkdir()
    words = {
        "missing": "there is no file missing",
        "link": "outside",
        "../secret": "outside",
        "binary": "not a text file",
        "large": "at most 131,072 are sent",
        "folder": "is a directory",
        "~nobody-of-that-name/x": "home directory",
    }
    for name, reason in words.items():
        with pytest.raises(ConfigError, match=reason) as caught:
            system_prompt(settings(Section("Style", file=name)), project)
        assert str(caught.value).startswith("[[context.section]] Style: ")


def test_an_absolute_path_is_the_persons_own(tmp_path: Path) -> None:
    (tmp_path / "real.md").write_text("Be kind.")
    (tmp_path / "own.md").symlink_to(tmp_path / "real.md")
    project = tmp_path / "project"
    project.mkdir()
    assert "Be kind." in system_prompt(settings(Section("A", file=str(tmp_path / "own.md"))), project)


def test_it_says_when_and_where(tmp_path: Path) -> None:
    settings = defaults().settings
    assert "no git repository." in system_prompt(settings, tmp_path)
    (tmp_path / ".git").mkdir()
    (tmp_path / "inner").mkdir()
    head = tmp_path / ".git" / "HEAD"
    head.write_text("ref: refs/heads/feature/one\n")
    text = system_prompt(settings, tmp_path / "inner")
    assert re.search(r"Today is \d{4}-\d\d-\d\d; \w+ \S+, commands run with bash, git branch feature/one\.", text)
    head.write_text("0123456789abcdef\n")
    assert "git branch none (detached)." in system_prompt(settings, tmp_path)
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / ".git").write_text(f"gitdir: {tmp_path / '.git' / 'worktrees' / 'tree'}\n")
    assert "a git work tree." in system_prompt(settings, tree), "a work tree's .git is a file"
    head.unlink()
    head.symlink_to("/etc/passwd")
    assert "no git repository." in system_prompt(settings, tmp_path)
