"""An untrusted project sets the keys of one table, within their bounds, and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from nca.compat.names import FOREIGN_NAMES
from nca.config.example import toml_key, toml_value
from nca.config.harmless import harmless_settings
from nca.config.layers import defaults, load
from nca.config.overrides import canonical
from nca.config.schema import KEYS
from nca.errors import ConfigError

_ROWS: dict[str, Any] = {
    "hooks": [{"event": "Stop", "command": "touch mark"}],
    "context.section": [{"label": "Role", "text": "Obey."}],
    "context.inject": [{"every_turns": 1, "text": "Obey."}],
    "mcp.servers": {"evil": {"command": "touch"}},
    "permissions.allow": [{"tool": "*"}],
    "permissions.ask": [{"tool": "shell"}],
    "permissions.deny": [{"tool": "shell"}],
}
_RAW = st.one_of(
    st.booleans(),
    st.integers(-1, 1_000_000),
    st.floats(0, 3, allow_nan=False),
    st.sampled_from(["x", "none", "openai/evil", ".github/workflows/a.yml", "90%", "truncate"]),
    st.lists(st.sampled_from(["truncate", "shell", "prune"]), max_size=2, unique=True),
)


def raw_values(key: str) -> st.SearchStrategy[Any]:
    known = [*KEYS[key].value_type.choices, *([_ROWS[key]] if key in _ROWS else [])]
    return st.one_of(_RAW, st.sampled_from(known)) if known else _RAW


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The settings of one project: a folder for each of a thousand examples would take most of the time."""
    file = tmp_path_factory.mktemp("harmless") / "project" / ".nca" / "config.toml"
    file.parent.mkdir(parents=True)
    return file


def untrusted(file: Path, text: str) -> dict[str, Any]:
    """The effective values with this text in the file of a project that nobody trusts."""
    file.write_text(text)
    env = dict.fromkeys(("NCA_HOME", "HOME"), str(file.parents[2] / "home"))
    loaded = load(project=file.parents[1], env=env, trusts=lambda what: False)
    effective = loaded.for_model("openai/x")
    return {key: effective.value(key) for key in KEYS}


@hypothesis_settings(max_examples=200, deadline=None)
@given(data=st.data(), in_pattern=st.booleans())
def test_only_the_keys_of_the_table_take_effect(file: Path, data: st.DataObject, in_pattern: bool) -> None:
    names = [*KEYS, *(name for foreign in FOREIGN_NAMES for name in foreign.names)]
    name = data.draw(st.sampled_from(names))
    found = canonical(name)
    assert found is not None
    raw = data.draw(raw_values(found.key))
    dotted = ".".join(toml_key(part) for part in name.split("."))
    table = 'for."*".' if in_pattern else ""
    try:
        values = untrusted(file, f"{table}{dotted} = {toml_value(raw)}\n")
    except ConfigError:
        return
    before = defaults()
    for key, value in values.items():
        if value != before.value(key):
            assert key in harmless_settings()
            assert harmless_settings()[key].covers(value)


@pytest.mark.parametrize("key", KEYS)
def test_each_key_of_the_schema_waits_or_is_in_the_table(file: Path, key: str) -> None:
    row, described = _ROWS.get(key), KEYS[key]
    choices = [choice for choice in described.value_type.choices if choice != described.default]
    tried = [row] if row else [*choices, *([not described.default] if isinstance(described.default, bool) else [])]
    if isinstance(described.default, int | float):
        tried += [0, 0.01, 0.3, 1, 2, 50, 999, 30_000, 900_000]
    for raw in tried or ["evil", ["evil"]]:
        try:
            value = untrusted(file, f"{key} = {toml_value(raw)}\n")[key]
        except ConfigError:
            continue
        may = key in harmless_settings() and harmless_settings()[key].covers(value)
        assert may or value == described.default


def test_the_table_names_settings_that_are_not_the_persons_alone() -> None:
    assert all(not KEYS[key].user_only for key in harmless_settings())
    for key, harmless in harmless_settings().items():
        assert harmless.why
        assert harmless.covers(KEYS[key].default) or KEYS[key].default == 0


@pytest.mark.parametrize(
    "line",
    [
        "session.persist = false",
        'memory.file_path = ".github/workflows/notes.yml"',
        'agent.system_prompt = "Obey."',
        'tools.off = ["recall"]',
        'context.auto = "off"',
        'profile = "cowagent"',
        "context.compact_threshold = 0.01",
    ],
)
def test_what_waits_is_named_in_one_line(tmp_path: Path, line: str) -> None:
    file = tmp_path / ".nca" / "config.toml"
    file.parent.mkdir()
    file.write_text(f"{line}\n")
    env = {"NCA_HOME": str(tmp_path / "home"), "HOME": str(tmp_path / "home")}
    loaded = load(project=tmp_path, env=env)
    assert loaded.settings == defaults().settings
    said = [note for note in loaded.notes if "wait for your trust" in note]
    assert len(said) == 1
    assert line.partition(" ")[0] in said[0]
    assert load(project=tmp_path, env=env, trusts=lambda what: True).settings != defaults().settings


def test_a_value_within_its_bounds_needs_no_trust(tmp_path: Path) -> None:
    file = tmp_path / ".nca" / "config.toml"
    file.parent.mkdir()
    file.write_text('context.compact_threshold = "90%"\nterminal.theme = "dark"\nagent.max_steps = 20\n')
    env = {"NCA_HOME": str(tmp_path / "home"), "HOME": str(tmp_path / "home")}
    loaded = load(project=tmp_path, env=env)
    assert loaded.settings.context.compact_threshold == 0.9
    assert (loaded.settings.terminal.theme, loaded.settings.agent.max_steps) == ("dark", 20)
    assert loaded.notes == ()
