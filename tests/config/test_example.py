"""The two generated documents are on disk as rendered, and match the program."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from nca.compat.names import FOREIGN_NAMES
from nca.config.example import render_example, toml_value
from nca.config.layers import defaults, load
from nca.config.schema import KEYS, PROFILES, walk

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "configuration.py"
WRITER = runpy.run_path(str(SCRIPT))
REFERENCE: str = WRITER["render_reference"]()
LISTS = [key.name for key in KEYS.values() if key.value_type.row is not None]


def test_the_files_on_disk_are_what_is_rendered() -> None:
    advice = "run: python scripts/configuration.py"
    assert WRITER["EXAMPLE_FILE"].read_text(encoding="utf-8") == render_example(), advice
    assert WRITER["REFERENCE_FILE"].read_text(encoding="utf-8") == REFERENCE, advice


def test_each_meaning_makes_sense_alone() -> None:
    """`/config KEY` shows it without its neighbours."""
    assert not [key.name for key in KEYS.values() if re.search(r"(?i)\bthese\b|\bsuch (?!as\b)|the same as", key.about)]


def test_each_setting_has_a_meaning_and_each_meaning_a_setting() -> None:
    rows = [field for key in KEYS.values() if key.value_type.row is not None for field in walk(key.value_type.row)]
    named = {(key.table, key.name.rpartition(".")[2]) for key in (*KEYS.values(), *rows) if key.about.strip()}
    written = tomllib.loads((SCRIPT.parents[1] / "nca/config/meanings.toml").read_text(encoding="utf-8"))
    assert {(table, name) for table, meanings in written.items() for name in meanings} == named


def test_the_example_sets_nothing(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(render_example(), encoding="utf-8")
    loaded = load(project=None, env={"NCA_HOME": str(tmp_path)})
    assert loaded.settings == defaults().settings
    assert {loaded.origin(key) for key in KEYS} == {"default"}


def test_every_default_reads_back_when_its_line_is_uncommented(tmp_path: Path) -> None:
    text = re.sub(r"(?m)^# ([a-z_]+ = .*)$", r"\1", render_example())
    file = tmp_path / "config.toml"
    file.write_text(text, encoding="utf-8")
    loaded = load(project=None, env={"NCA_HOME": str(tmp_path)})
    assert loaded.settings == defaults().settings
    assert {loaded.origin(key) for key in KEYS if key not in LISTS} == {str(file)}


def test_the_example_of_each_list_reads_back_too(tmp_path: Path) -> None:
    text = re.sub(
        r"(?m)^#     (\[\[.*|\[mcp.*|(?:label|text|priority|every_turns|tool|subject|directory|command|args"
        r"|event|matcher) = .*)$",
        r"\1",
        render_example(),
    )
    (tmp_path / "config.toml").write_text(text, encoding="utf-8")
    loaded = load(project=None, env={"NCA_HOME": str(tmp_path)})
    assert {key: len(loaded.value(key)) for key in LISTS} == dict.fromkeys(LISTS, 1)
    assert {"context.section", "context.inject", "permissions.allow", "permissions.deny"} <= set(LISTS)


def test_every_key_is_explained() -> None:
    for key in KEYS.values():
        assert f"| `{key.name}` | `{toml_value(key.default)}`" in REFERENCE
        assert key.about in REFERENCE
        if key.value_type.row is not None:
            head = f"[{key.name}.NAME]" if key.value_type.is_named else f"[[{key.name}]]"
            assert f"#### `{head}`" in REFERENCE
    for name in PROFILES:
        assert f"| `{name}` |" in REFERENCE
    for foreign in FOREIGN_NAMES:
        assert f"`{foreign.names[0]}`" in REFERENCE


def test_the_variables_that_the_reference_names_set_what_they_stand_beside(tmp_path: Path) -> None:
    named = dict(re.findall(r"(?m)^\| `([a-z_.]+)` \|.*\| `(NCA_\w+)` \|$", REFERENCE))
    assert set(named) == set(KEYS) - set(LISTS)
    for key, variable in named.items():
        default = KEYS[key].default
        text = ",".join(default) if isinstance(default, tuple) else str(default).lower()
        if text:
            loaded = load(project=None, env={"NCA_HOME": str(tmp_path), variable: text})
            assert loaded.origin(key) == f"environment {variable}"


def test_the_script_takes_no_arguments() -> None:
    wrong = subprocess.run([sys.executable, SCRIPT, "nonsense"], capture_output=True, check=False)
    assert wrong.returncode == 1
    assert b"usage" in wrong.stderr


@given(
    st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | st.text(st.characters(exclude_categories=["Cs"]))
    | st.lists(st.text(st.characters(exclude_categories=["Cs"])))
)
def test_any_value_is_written_as_toml_on_one_printable_line(value: Any) -> None:
    text = toml_value(value)
    assert tomllib.loads(f"x = {text}")["x"] == value
    assert text.isprintable()
