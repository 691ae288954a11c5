"""The layers of settings on real files: precedence, names and refusals."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import tomlkit
from hypothesis import HealthCheck, example, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from nca.config.example import toml_value
from nca.config.layers import defaults, load
from nca.config.loaded import LoadedSettings
from nca.config.overrides import UNSET
from nca.config.paths import project_config_file
from nca.config.schema import KEYS, Settings
from nca.errors import ConfigError

quick = hypothesis_settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)


class Places:
    """A user's home and a project, with their settings files."""

    def __init__(self, root: Path) -> None:
        self.user_file = root / "home" / "config.toml"
        self.project = root / "project"
        self.project_file = project_config_file(self.project)
        for file in (self.user_file, self.project_file):
            file.parent.mkdir(parents=True)

    def load(self, env: dict[str, str] | None = None, **more: Any) -> LoadedSettings:
        more = {"trusts": lambda what: True, **more}
        return load(project=self.project, env={"NCA_HOME": str(self.user_file.parent), **(env or {})}, **more)


@pytest.fixture
def places(tmp_path: Path) -> Places:
    return Places(tmp_path)


THRESHOLD = "context.compact_threshold"


@pytest.mark.parametrize(
    ("written", "share"), [("1", 1), ("0.8", 0.8), ("80", 0.8), ("10", 0.1), ("100", 1), ("7.5%", 0.075), ("1%", 0.01)]
)
def test_a_threshold_means_the_same_in_every_layer(places: Places, written: str, share: float) -> None:
    quoted = f'"{written}"' if written.endswith("%") else written
    places.project_file.write_text(f"{THRESHOLD} = {quoted}\n")
    loaded = [
        places.load(),
        places.load(env={"NCA_CONTEXT__COMPACT_THRESHOLD": written}),
        places.load(flags={THRESHOLD: written}),
        defaults().with_value(THRESHOLD, written, "set in this chat"),
    ]
    assert [one.value(THRESHOLD) for one in loaded] == pytest.approx([share] * 4)


@pytest.mark.parametrize("written", ["1.01", "2", "5", "7.5", "9.99"])
def test_a_threshold_above_1_and_below_10_is_refused_in_every_layer(places: Places, written: str) -> None:
    places.project_file.write_text("")
    refusal = f"{THRESHOLD}.*valid: a share above 0 up to 1 .*did you mean {float(written) / 10:g} or {written}%\\?"
    variable = {"NCA_CONTEXT__COMPACT_THRESHOLD": written}
    with pytest.raises(ConfigError, match=refusal.replace(THRESHOLD, "NCA_CONTEXT__COMPACT_THRESHOLD: .*")):
        places.load(env=variable)
    with pytest.raises(ConfigError, match=refusal):
        places.load(flags={THRESHOLD: written})
    with pytest.raises(ConfigError, match=refusal):
        defaults().with_value(THRESHOLD, written, "set in this chat")
    places.project_file.write_text(f"[context]\ncompact_threshold = {written}\n")
    with pytest.raises(ConfigError, match=f"config.toml:2: {refusal}"):
        places.load()


def test_a_percentage_under_another_programs_name_needs_no_sign(places: Places) -> None:
    for written, share in ((75, 0.75), (7.5, 0.075), (1, 0.01)):
        places.project_file.write_text(f"memory.context.auto_summarize_threshold = {written}\n")
        assert places.load().settings.context.idle_threshold == pytest.approx(share)


def test_without_anything_there_are_the_defaults(places: Places) -> None:
    loaded = places.load()
    assert loaded.settings == Settings() == defaults().settings
    assert {loaded.origin(key) for key in KEYS} == {"default"}
    assert loaded.notes == ()


def test_the_later_layer_wins_and_the_origin_tells_which(places: Places) -> None:
    key = "context.max_turns"
    places.user_file.write_text("[context]\nmax_turns = 1\n")
    loaded = places.load()
    assert (loaded.value(key), loaded.origin(key)) == (1, str(places.user_file))
    places.project_file.write_text("context.max_turns = 2\n")
    loaded = places.load()
    assert (loaded.value(key), loaded.origin(key)) == (2, str(places.project_file))
    env = {"NCA_CONTEXT__MAX_TURNS": "3"}
    loaded = places.load(env)
    assert (loaded.value(key), loaded.origin(key)) == (3, "environment NCA_CONTEXT__MAX_TURNS")
    loaded = places.load(env, flags={key: 4, "model.name": None})
    assert (loaded.value(key), loaded.origin(key)) == (4, "flag context.max_turns")
    loaded = loaded.with_value(key, "5", "set in this chat")
    assert (loaded.value(key), loaded.origin(key)) == (5, "set in this chat")
    assert loaded.settings.context.max_turns == 5


def test_a_flag_is_named_as_the_person_typed_it(places: Places) -> None:
    loaded = places.load(flags={"context.compact_threshold": "70%"})
    assert loaded.settings.context.compact_threshold == 0.7
    assert loaded.origin("context.compact_threshold") == "flag --compact-threshold"


def test_a_named_file_stands_in_the_projects_place_and_is_trusted(places: Places, tmp_path: Path) -> None:
    places.project_file.write_text("[agent]\nmax_steps = 2\n")
    named = tmp_path / "named.toml"
    named.write_text('[model]\napi_base = "http://localhost:1/v1"\n')
    loaded = places.load(config_file=named)
    assert loaded.settings.model.api_base == "http://localhost:1/v1"
    assert loaded.settings.agent.max_steps == 200
    with pytest.raises(ConfigError, match="no such file"):
        places.load(config_file=tmp_path / "missing.toml")


def test_a_project_may_not_redirect_requests(places: Places) -> None:
    text = '[model]\nname = "openai/x"\napi_base = "http://evil"\n[for."*".model]\napi_base = "http://evil"\n'
    places.project_file.write_text(text)
    loaded = places.load(trusts=lambda what: True).for_model("openai/x")
    assert loaded.settings.model.api_base == ""
    assert loaded.settings.model.name == "openai/x"
    assert len(loaded.notes) == 2
    assert f"{places.project_file}:3: model.api_base was ignored" in loaded.notes[0]


def test_one_file_for_both_is_the_users(tmp_path: Path) -> None:
    file = project_config_file(tmp_path)
    file.parent.mkdir()
    file.write_text('[model]\napi_base = "http://mine"\n')
    loaded = load(project=tmp_path, env={"NCA_HOME": str(file.parent)})
    assert loaded.settings.model.api_base == "http://mine"
    assert loaded.notes == ()


@pytest.mark.parametrize("table", ["[context]\ncompact_treshold = 0.8", "context.compact_treshold = 0.8"])
def test_an_unknown_key_is_one_line_with_file_line_key_and_nearest_name(places: Places, table: str) -> None:
    places.project_file.write_text(f"# first line\n{table}\n")
    with pytest.raises(ConfigError) as caught:
        places.load()
    line = 1 + table.count("\n") + 1
    assert str(caught.value) == (
        f"{places.project_file}:{line}: there is no setting context.compact_treshold. "
        "Did you mean context.compact_threshold?"
    )
    assert caught.value.exit_code == 2


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("[context]\ncompact_threshold = 1.5\n", 2, "context.compact_threshold = 1.5 is not valid; valid: a share"),
        ("[context]\nauto = 'maybe'\n", 2, "context.auto = 'maybe' is not valid; valid: one of on, off, preview"),
        ("\n\n[agent]\nmax_steps = 0\n", 4, "agent.max_steps = 0 is not valid; valid: a whole number from 1 to 1,000"),
        ("[context]\nstages = ['prune', 'prune']\n", 2, "each at most once"),
        ("[model]\nname = 5\n", 2, "model.name = 5 is not valid; valid: text"),
        ("[context.auto]\n", 1, "context.auto = {} is not valid"),
        ("context = 5\n", 1, "context is a section, not a setting"),
        ("[context.section]\nlabel = 'x'\n", 2, "context.section is a list of tables; write [[context.section]]"),
        ("[context.section]\n", 1, "context.section = {} is not valid; valid: a list of tables with label, text,"),
        ("[sesion]\n", 1, "there is no setting sesion"),
        ("[model]\ntemperature = nan\n", 2, "model.temperature = nan is not valid"),
        ("[agent]\nmax_steps = 0xffffffffffffffffffffffffffffffffff\n", 2, "agent.max_steps ="),
        ("[context]\ntarget_ratio = 0x1" + "0" * 400 + "\n", 2, "context.target_ratio ="),
        ("[context]\ntarget_ratio = 0x1" + "0" * 9000 + "\n", 2, "too long to show"),
        ("memory.context.auto_summarize_threshold = 500\n", 1, "(nca's context.idle_threshold) is not valid"),
        ("[contextCompaction]\nenablePruning = 'maybe'\n", 2, "valid: true or false"),
        ("[agent]\nsummarization_provider = 'x'\n", 2, "given together with the model's"),
        ("\nprofile = 'seed'\n", 2, "profile = 'seed' is not valid; valid: one of none, nca, neurolink, cowagent"),
        ("[for.x]\nprofile = 'nca'\n", 2, "profile cannot be set for one model"),
        ("[for.x.agent]\nmax_steps = 3\n", 2, "agent.max_steps cannot be set for one model"),
        ("[for.x]\nmodel.name = 'y'\n", 2, "model.name cannot be set for one model"),
        ("for = 3\n", 1, "[for] holds tables"),
    ],
)
def test_a_bad_value_is_one_line_with_what_is_valid(places: Places, text: str, line: int, words: str) -> None:
    places.project_file.write_text(text)
    before = places.project_file.read_bytes()
    with pytest.raises(ConfigError) as caught:
        places.load()
    message = str(caught.value)
    assert message.startswith(f"{places.project_file}:{line}: ")
    assert words in message
    assert "\n" not in message
    assert len(message) < 500 + len(str(places.project_file))
    assert places.project_file.read_bytes() == before


def test_the_environment_is_refused_in_its_own_words(places: Places) -> None:
    with pytest.raises(ConfigError, match=r"^environment NCA_CONTEXT__AUTO: context\.auto = 'maybe' is not valid"):
        places.load({"NCA_CONTEXT__AUTO": "maybe"})
    with pytest.raises(ConfigError, match=r"there is no setting contxt\.auto\. Did you mean context\.auto\?"):
        places.load({"NCA_CONTXT__AUTO": "on"})
    with pytest.raises(ConfigError, match=r"model\.name = '\\udcff' is not valid"):
        places.load({"NCA_MODEL__NAME": "\udcff"})


def test_an_empty_variable_is_not_set(places: Places) -> None:
    places.user_file.write_text('[model]\nname = "openai/m"\n')
    loaded = places.load({"NCA_AGENT__MAX_STEPS": "", "NCA_MODEL__NAME": ""})
    assert loaded.settings == places.load().settings
    assert loaded.value("model.name") == "openai/m"


def test_variables_without_two_underscores_are_no_settings(places: Places) -> None:
    env = {"NCA_EMBEDDED": "smollm2-135m", "NCA_WHATEVER": "1", "HOME": "/nowhere", "NCA_MODEL_NAME": "x"}
    loaded = places.load(env)
    assert loaded.settings == Settings()
    assert loaded.notes == ("environment NCA_MODEL_NAME is not a setting; did you mean NCA_MODEL__NAME?",)


def test_tables_for_a_model_stand_between_files_and_environment(places: Places) -> None:
    places.user_file.write_text(
        "[context]\nmax_turns = 1\nmax_messages = 1\n"
        "[for.'Anthropic/*'.context]\nmax_turns = 10\nmax_messages = 10\n"
        "[for.'claude-*'.context.prune]\nkeep_results = 7\n"
    )
    places.project_file.write_text("context.max_messages = 2\n[for.'*opus*'.context]\nmax_turns = 20\n")
    loaded = places.load({"NCA_CONTEXT__MAX_MESSAGES": "3"})
    assert loaded.settings.context.max_turns == 1
    opus = loaded.for_model("anthropic/Claude-Opus-9")
    origin = f'{places.project_file} [for."*opus*"]'
    assert (opus.value("context.max_turns"), opus.origin("context.max_turns")) == (20, origin)
    assert opus.value("context.max_messages") == 3
    assert opus.value("context.prune.keep_results") == 7
    assert opus.with_value("context.max_turns", 30, "set in this chat").value("context.max_turns") == 30
    other = opus.for_model("openai/gpt")
    assert other.settings == loaded.settings
    assert opus.for_model("anthropic/sonnet").value("context.max_turns") == 10


def test_an_address_in_a_file_is_that_of_the_provider_whose_model_the_file_names(places: Places) -> None:
    """A fallback of another provider went there too, with a key that was not for it."""
    address = "http://127.0.0.1:9/v1"
    places.user_file.write_text(f"[model]\nname = 'openai/local'\napi_base = '{address}'\n")
    loaded = places.load()
    found = {name: loaded.for_model(name).settings.model.api_base for name in ("", "openai/b", "local", "anthropic/c")}
    assert found == {"": address, "openai/b": address, "local": address, "anthropic/c": ""}
    assert places.load(flags={"model.name": "anthropic/c"}).settings.model.api_base == ""
    here = places.load({"NCA_MODEL__API_BASE": address}, flags={"model.name": "anthropic/c"})
    assert here.settings.model.api_base == address, "what is named for this start is meant"
    places.user_file.write_text(f"[model]\napi_base = '{address}'\n")
    assert places.load().for_model("anthropic/c").settings.model.api_base == address, "the file names no provider"


def test_with_value_never_changes_the_original(places: Places) -> None:
    loaded = places.load()
    before = loaded.settings
    changed = loaded.with_value("memory.context.context_window_target", "80k", "set in this chat")
    assert changed.settings.context.max_tokens == 80_000
    assert changed.notes == ("memory.context.context_window_target is context.max_tokens in nca.",)
    with pytest.raises(ConfigError, match=r"^context\.auto = 'x' is not valid"):
        changed.with_value("context.auto", "x", "set in this chat")
    assert loaded.settings is before
    assert loaded.settings == Settings()


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"[context\n", ":1:9: "),
        (b"a = 'x", "at the end of the file"),
        (b"\xff\xfe[\0", "not UTF-8"),
        (b'[model]\nname = "a\0b"\n', ":2:"),
        (b"[model]\nname = 'a'\nname = 'b'\n", ":3:"),
        (b"#" * (10 << 20), "larger than 1 MiB"),
        (b"a = " + b"[" * 100_000, "nested too deeply"),
        (b"a = " + b"{b=" * 10_000, "nested too deeply"),
        (b"a" + b".a" * 100 + b" = 1", "nested too deeply"),
        (b"a" + b".a" * 400_000 + b" = 1", "too many parts"),
        (b"a = " + b"9" * 5_000, "cannot be read"),
        (b"a = 2024-02-31", ":1:"),
    ],
)
def test_a_hostile_file_is_one_error(places: Places, raw: bytes, words: str) -> None:
    places.project_file.write_bytes(raw)
    with pytest.raises(ConfigError) as caught:
        places.load()
    message = str(caught.value)
    assert message.startswith(str(places.project_file))
    assert words in message
    assert "\n" not in message


def test_a_byte_order_mark_and_windows_lines_are_read(places: Places) -> None:
    places.project_file.write_bytes(b"\xef\xbb\xbf[context]\r\nauto = 'off'\r\n")
    assert places.load().settings.context.auto == "off"


def test_what_is_no_file_is_one_error(places: Places) -> None:
    places.project_file.mkdir()
    with pytest.raises(ConfigError, match="not an ordinary file"):
        places.load()
    places.project_file.rmdir()
    os.mkfifo(places.project_file)
    with pytest.raises(ConfigError, match="not an ordinary file"):
        places.load()


def test_a_name_from_a_file_cannot_write_to_the_terminal(places: Places) -> None:
    places.project_file.write_text('"\\u001b]0;title\\u0007" = 1\n')
    with pytest.raises(ConfigError) as caught:
        places.load()
    assert str(caught.value).isprintable()


@quick
@given(st.binary(max_size=300))
@example(b"[for]\n")
@example(b"[for.x]\n")
@example(b"[for]\nx = 1\n")
@example(b"\xef\xbb\xbf")
def test_any_bytes_give_settings_or_a_config_error(places: Places, raw: bytes) -> None:
    places.project_file.write_bytes(raw)
    _loads_or_refuses(places)


_words = st.sampled_from(sorted({part for key in KEYS for part in key.split(".")} | {"for", "*", "memory", "x y", "é"}))
_leaves = st.one_of(
    st.booleans(),
    st.integers(-(2**63), 2**63),
    st.floats(),
    st.text(max_size=10),
    st.dates(),
    st.times(),
    st.lists(st.text(max_size=5) | st.integers(0, 9), max_size=3),
)
_tables = st.recursive(
    st.dictionaries(_words, _leaves, max_size=3), lambda node: st.dictionaries(_words, node, max_size=3), max_leaves=12
)


@quick
@given(_tables, st.integers(0, 10_000), st.binary(max_size=2))
def test_any_tree_even_damaged_gives_settings_or_a_config_error(
    places: Places, tree: dict[str, Any], at: int, damage: bytes
) -> None:
    raw = tomlkit.dumps(tree).encode("utf-8", "replace")
    places.project_file.write_bytes(raw)
    _loads_or_refuses(places)
    cut = at % (len(raw) + 1)
    places.project_file.write_bytes(raw[:cut] + damage + raw[cut + len(damage) :])
    _loads_or_refuses(places)


def _loads_or_refuses(places: Places) -> None:
    before = places.project_file.read_bytes()
    try:
        loaded = places.load().for_model("openai/gpt-4.1")
    except ConfigError as refusal:
        message = str(refusal)
    else:
        message = ""
        for key in KEYS.values():
            assert key.value_type.read(loaded.value(key.name)) == loaded.value(key.name)
    assert message.isprintable()
    assert places.project_file.read_bytes() == before


_good: dict[str, st.SearchStrategy[Any]] = {
    "model.name": st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20),
    "model.temperature": st.just("provider") | st.floats(0, 2),
    "context.auto": st.sampled_from(["on", "off", "preview"]),
    "context.stages": st.lists(st.sampled_from(["prune", "deduplicate", "summarize", "truncate"]), unique=True),
    "context.target_ratio": st.floats(0.01, 1),
    "context.max_tokens": st.integers(0, 1_000_000_000),
    "context.prune.protected_tools": st.lists(st.from_regex(r"[a-z_]{1,8}", fullmatch=True), max_size=3),
    "session.persist": st.booleans(),
}


@quick
@given(st.fixed_dictionaries({}, optional=_good))
def test_the_environment_and_toml_agree(places: Places, values: dict[str, Any]) -> None:
    lines = [f"{key} = {toml_value(value)}\n" for key, value in values.items()]
    places.project_file.write_text("".join(lines), encoding="utf-8")
    from_toml = places.load().settings
    places.project_file.unlink()
    env = {
        f"NCA_{key.upper().replace('.', '__')}": value if isinstance(value, str) else toml_value(value)
        for key, value in values.items()
    }
    assert places.load(env).settings == from_toml
    from_chat = defaults()
    for key, value in values.items():
        from_chat = from_chat.with_value(key, value, "set in this chat")
        assert from_chat.value(key) == (tuple(value) if isinstance(value, list) else value)
    assert from_chat.settings == from_toml


def test_a_profile_limits_the_sessions_only_where_the_user_chose_it(places: Places) -> None:
    chosen = (
        places.load({"NCA_PROFILE": "neurolink"}),
        defaults().with_value("profile", "neurolink", "set in this chat"),
    )
    places.project_file.write_text('profile = "neurolink"')
    others = (places.load(), places.load(flags={"profile": "neurolink"}))
    places.user_file.write_text('profile = "neurolink"')
    places.project_file.unlink()
    assert [loaded.settings.session.max_sessions for loaded in (*chosen, places.load())] == [50, 50, 50]
    assert [loaded.settings.session.max_sessions for loaded in others] == [0, 0]
    assert {loaded.settings.context for loaded in (*chosen, *others)} == {places.load().settings.context}


def test_unset_gives_back_what_lies_below_the_chat_and_nothing_else() -> None:
    loaded = defaults().with_value("context.auto", "preview", "a file")
    below = loaded.value("context.auto")
    changed = loaded.with_value("context.max_turns", 3, "set in this chat").with_value("context.max_turns", 4, "again")
    assert changed.covered["context.max_turns"].value == 0
    again = changed.with_value("context.max_turns", UNSET, "")
    assert (again.value("context.max_turns"), again.origin("context.max_turns")) == (0, "default")
    assert again.value("context.auto") == below
    assert "context.max_turns" not in again.covered
    assert again.with_value("context.max_turns", UNSET, "") is again
    profile = loaded.with_value("profile", "neuron", "set in this chat").with_value("profile", UNSET, "")
    assert profile.settings == loaded.settings


def test_a_saved_value_stays_the_chats_where_a_stronger_layer_sets_it_too(places: Places) -> None:
    key = "context.max_turns"
    plain = places.load().with_value(key, 3, "set in this chat").saved(key, "the file")
    assert (plain.value(key), plain.origin(key)) == (3, "the file")
    stronger = places.load(env={"NCA_CONTEXT__MAX_TURNS": "7"}).with_value(key, 3, "set in this chat")
    assert stronger.saved(key, "the file").origin(key) == "set in this chat"
    assert stronger.saved(key, "the file").with_value(key, UNSET, "").value(key) == 7
