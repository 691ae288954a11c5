"""`[[context.section]]` and `[[context.inject]]`: reading, merging layers, refusals with the line, saving."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nca.config.example import toml_value
from nca.config.layers import load
from nca.config.loaded import LoadedSettings, defaults
from nca.config.paths import project_config_file
from nca.config.saving import save_value
from nca.config.tables import Injection, Section
from nca.config.value_types import lies_inside
from nca.errors import ConfigError


@pytest.fixture
def project_file(tmp_path: Path) -> Path:
    file = project_config_file(tmp_path / "project")
    file.parent.mkdir(parents=True)
    return file


def loaded_from(project_file: Path, **more: Any) -> LoadedSettings:
    home = project_file.parents[2] / "home"
    more = {"trusts": lambda what: True, **more}
    return load(project=project_file.parents[1], env={"NCA_HOME": str(home)}, **more)


def test_both_lists_are_read_in_their_order(project_file: Path) -> None:
    project_file.write_text(
        '[context]\nmax_turns = 3\n[[context.section]]\nlabel = "Rules"\ntext = "Be exact."\npriority = 10\n'
        '[[context.section]]\nlabel = " Style "\nfile = "docs/style.md"\n'
        '[[context.inject]]\nevery_turns = 5\ntext = "Be concise."\n'
        '[[context.inject]]\nover_tokens = "50k"\ntext = "Getting long."\n'
        '[[context.inject]]\nover_usage = 70\ntext = "Nearly full."\n'
    )
    context = loaded_from(project_file).settings.context
    assert context.section == (Section("Rules", "Be exact.", priority=10), Section("Style", file="docs/style.md"))
    assert context.inject == (
        Injection(every_turns=5, text="Be concise."),
        Injection(over_tokens=50_000, text="Getting long."),
        Injection(over_usage=0.7, text="Nearly full."),
    )
    assert context.max_turns == 3


def test_a_later_layers_list_replaces_an_earlier_one(project_file: Path) -> None:
    user_file = project_file.parents[2] / "home" / "config.toml"
    user_file.parent.mkdir()
    user_file.write_text('[[context.section]]\nlabel = "A"\ntext = "a"\n[[context.section]]\nlabel = "B"\ntext = "b"\n')
    project_file.write_text('[[for."openai/*".context.section]]\nlabel = "D"\ntext = "d"\n')
    loaded = loaded_from(project_file)
    assert [one.label for one in loaded.settings.context.section] == ["A", "B"]
    assert [one.label for one in loaded.for_model("openai/x").settings.context.section] == ["D"]
    project_file.write_text('[[context.section]]\nlabel = "C"\ntext = "c"\n')
    loaded = loaded_from(project_file)
    assert [one.label for one in loaded.settings.context.section] == ["C"]
    assert loaded.origin("context.section") == str(project_file)


SECTION = '[[context.section]]\nlabel = "A"\ntext = "a"\n'


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        (
            SECTION + '[[context.section]]\nlable = "B"\n',
            5,
            "context.section 2: there is no field lable; did you mean lab",
        ),
        (
            '[[context.section]]\n"\\u001b[2J" = 1\n',
            1,
            "there is no field \\x1b[2J; valid: label, text, file, priority.",
        ),
        (
            '[[context.section]]\nlabel = "B"\ntext = "b"\nfile = "b"\n',
            1,
            "either text or file must be given, not both.",
        ),
        ('[[context.section]]\nlabel = "B"\n', 1, "context.section 1: either text or file must be given."),
        ('[[context.section]]\ntext = "b"\n', 1, "context.section 1: label is missing."),
        (
            '[[context.section]]\nlabel = "a\\nb"\ntext = "b"\n',
            2,
            "label = 'a\\nb' is not valid; valid: one line of text",
        ),
        (
            SECTION + 'priority = "high"\n',
            4,
            "context.section 1: priority = 'high' is not valid; valid: a whole number",
        ),
        ("context.section = [1]\n", 1, "context.section 1 = 1 is not a table."),
        ('context.section = [{label = "A"}]\n', 1, "either text or file"),
        ("context.section = 'x'\n", 1, "context.section = 'x' is not valid; valid: a list of tables with label, text,"),
        ('[[context.inject]]\ntext = "b"\n', 1, "exactly one of every_turns, over_tokens and over_usage must be given"),
        ('[[context.inject]]\ntext = "b"\nevery_turns = 2\nover_tokens = 3\n', 1, "exactly one of"),
        ("[[context.inject]]\nevery_turns = 2\n", 1, "context.inject 1: text is missing."),
        (
            '[[context.inject]]\ntext = "b"\nevery_turns = 0\n',
            3,
            "every_turns = 0 is not valid; valid: a whole number from 1",
        ),
        ('[[context.inject]]\ntext = "b"\nover_usage = 1.5\n', 3, "over_usage = 1.5 is not valid; valid: a share"),
        ('[[for.x.context.inject]]\ntext = "b"\n', 1, "context.inject 1: exactly one"),
        ('[[context.section]]\nlabel = "A"\nfile = "../a"\n', 3, "a project's own file may only name files inside"),
        ('[[context.section]]\nlabel = "A"\nfile = "~/a"\n', 3, "file = '~/a': a project's own file may only"),
        ('[[for.x.context.section]]\nlabel = "A"\nfile = "/etc/a"\n', 3, "a project's own file may only"),
        ('[memory]\nfile_path = "/tmp/x.json"\n', 2, "memory.file_path = '/tmp/x.json': a project's own file may only"),
        ("[memory]\nfile_path = ''\n", 2, "memory.file_path = '' is not valid; valid: a file's path"),
    ],
)
def test_a_bad_row_is_one_line_with_file_and_line(project_file: Path, text: str, line: int, words: str) -> None:
    project_file.write_text(text)
    with pytest.raises(ConfigError) as caught:
        loaded_from(project_file)
    message = str(caught.value)
    assert message.startswith(f"{project_file}:{line}: ")
    assert words in message
    assert message.isprintable()


def test_a_persons_own_files_may_name_any_file(project_file: Path) -> None:
    text = '[memory]\nfile_path = "~/notes.json"\n[[context.section]]\nlabel = "A"\nfile = "/etc/hostname"\n'
    user_file = project_file.parents[2] / "home" / "config.toml"
    user_file.parent.mkdir()
    user_file.write_text(text)
    assert loaded_from(project_file).settings.context.section[0].file == "/etc/hostname"
    user_file.unlink()
    named = project_file.parents[2] / "named.toml"
    named.write_text(text)
    assert loaded_from(project_file, config_file=named).settings.memory.file_path == "~/notes.json"


def test_a_program_gives_rows_as_mappings_or_as_they_are() -> None:
    loaded = defaults().with_value("context.section", [{"label": "A", "text": "a"}, Section("B", "b")], "the call")
    assert loaded.settings.context.section == (Section("A", "a"), Section("B", "b"))
    again = loaded.with_value("context.section", loaded.value("context.section"), "again")
    assert again.settings == loaded.settings
    with pytest.raises(ConfigError, match=r"^context\.section 1: label is missing\.$"):
        defaults().with_value("context.section", [{}], "the call")


def test_rows_are_shown_and_saved_as_toml(project_file: Path) -> None:
    rows = (Section("A", 'say "hi"\n', priority=-1), Injection(over_usage=0.7, text="Nearly full."))
    assert toml_value(rows) == (
        '[{label = "A", text = "say \\"hi\\"\\u000a", priority = -1}, {over_usage = 0.7, text = "Nearly full."}]'
    )
    assert [str(row) for row in rows] == ["A (text, priority -1)", "from 70% on: Nearly full."]
    assert str(Injection(every_turns=5, text="x")) == "every 5 turns: x"
    assert save_value(project_file, "context.section", [rows[0]]) == "context.section"
    assert loaded_from(project_file).settings.context.section == rows[:1]
    with pytest.raises(ConfigError, match="inside the project"):
        save_value(project_file, "context.section", [Section("A", file="../x")])
    with pytest.raises(ConfigError, match="inside the project"):
        save_value(project_file, "memory.file_path", "/x")
    save_value(project_file, "memory.file_path", "/x", is_users_own=True)
    with pytest.raises(ConfigError, match="inside the project"):
        loaded_from(project_file)


@given(st.lists(st.sampled_from(["..", ".", "a", "", "b.md", "~", "C:", "\\", "..\\x"]), min_size=1).map("/".join))
@example("a/../..")
@example("/etc")
@example("~root/x")
def test_what_lies_inside_stays_inside(name: str) -> None:
    if lies_inside(name):
        assert not Path(name).is_absolute()
        assert Path(os.path.normpath(f"/p/q/{name}")).is_relative_to("/p/q")
