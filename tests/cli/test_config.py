"""`nca config` as a person uses it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pexpect
import pytest
import typer
from typer.testing import CliRunner

from nca.cli.config import _show_table
from nca.cli.config import app as config_app
from nca.config.example import render_example
from nca.config.loaded import defaults
from nca.config.schema import KEYS
from nca.errors import ConfigError

outer = typer.Typer()
outer.add_typer(config_app, name="config")


class Shell:
    """Runs `nca config …` in a project of its own and gives output, or raises what the command raised."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.project = root / "project"
        self.project.mkdir()
        self.file = self.project / ".nca" / "config.toml"
        self.user_file = root / "home" / "config.toml"
        monkeypatch.chdir(self.project)
        monkeypatch.setenv("NCA_HOME", str(root / "home"))
        self.stderr = ""

    def __call__(self, *words: str) -> str:
        result = CliRunner().invoke(outer, ["config", *words])
        if isinstance(result.exception, ConfigError):
            raise result.exception
        assert result.exit_code == 0, result.output
        self.stderr = result.stderr
        return result.stdout


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shell:
    return Shell(tmp_path, monkeypatch)


def test_show_lists_every_key_with_value_and_origin(shell: Shell) -> None:
    lines = shell("show").splitlines()
    assert [line.split()[0] for line in lines] == list(KEYS)
    assert lines[0].split("=")[1].strip() == '"none"  (default)'


def test_show_json_is_one_object_and_notes_go_elsewhere(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NCA_AGENT_MAX_CONTEXT_TOKENS", "80000")
    facts = json.loads(shell("show", "--json"))
    assert list(facts) == list(KEYS)
    assert facts["context.max_tokens"] == {
        "value": 80_000,
        "origin": "environment NCA_AGENT_MAX_CONTEXT_TOKENS",
    }
    assert "is context.max_tokens in nca." in shell.stderr


def test_set_and_get(shell: Shell) -> None:
    assert "Saved context.compact_threshold = 0.7 in" in shell("set", "context.compact_threshold", "70%")
    assert shell("get", "context.compact_threshold") == "0.7\n"
    shell("set", "model.temperature", "0.3")
    assert shell("get", "model.temperature") == "0.3\n"
    shell("set", "model.temperature", "provider")
    assert shell("get", "model.temperature") == "provider\n"
    shell("set", "contextCompaction.threshold", "0.6")
    assert "contextCompaction.threshold is context.compact_threshold in nca." in shell.stderr
    shell("get", "contextCompaction.threshold")
    assert "context.compact_threshold in nca." in shell.stderr
    shell("set", "model.name", "openai/x")
    assert shell("get", "model.name") == "openai/x\n"
    assert shell("get", "context.prune.protect_tokens") == "40000\n"
    assert shell("get", "context.prune.protect_tokens", "--json") == "40000\n"
    assert shell("get", "model.name", "--json") == '"openai/x"\n'
    assert shell("get", "context.stages") == '["prune", "deduplicate", "summarize", "truncate"]\n'


def test_lists_of_tables_and_profiles_are_shown_too(shell: Shell) -> None:
    shell("set", "profile", "cowagent")
    text = shell.file.read_text(encoding="utf-8")
    shell.file.write_text(f'{text}[[context.section]]\nlabel = "A"\ntext = "\\u001b[2J"\n', encoding="utf-8")
    facts = json.loads(shell("show", "--json"))
    assert facts["context.section"]["value"] == [{"label": "A", "text": "\x1b[2J"}]
    assert facts["context.max_turns"] == {"value": 20, "origin": "profile cowagent"}
    assert json.loads(shell("get", "context.section", "--json")) == [{"label": "A", "text": "\x1b[2J"}]
    assert shell("get", "context.section") == '[{label = "A", text = "\\u001b[2J"}]\n'
    with pytest.raises(ConfigError, match="a list of tables with label, text, file, priority, in a file"):
        shell("set", "context.section", "x")


def test_the_tables_for_models_are_shown_and_that_of_the_model_holds(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell("set", "context.max_turns", "4")
    tables = '[for."openai/gpt*".context]\nmax_turns = 7\n[for."qwen*".context]\nmax_turns = 9\n'
    shell.file.write_text(f"{shell.file.read_text()}{tables}")
    origins = {name: f'{shell.file} [for."{name}"]' for name in ("openai/gpt*", "qwen*")}
    for variable in ("OPENAI_API_BASE", "OPENAI_BASE_URL"):
        monkeypatch.delenv(variable, raising=False)
    for model, value, origin in (
        ("openai/gpt-x", 7, origins["openai/gpt*"]),
        ("openrouter/qwen3", 9, origins["qwen*"]),
        ("openai/other", 4, str(shell.file)),
    ):
        monkeypatch.setenv("NCA_MODEL__NAME", model)
        facts = json.loads(shell("show", "context", "--json"))
        assert facts["context.max_turns"] == {"value": value, "origin": origin}
        assert facts['for."qwen*".context.max_turns'] == {"value": 9, "origin": origins["qwen*"]}
        assert shell("get", "context.max_turns") == f"{value}\n"
    monkeypatch.setenv("NCA_MODEL__NAME", "gpt-at-home")
    assert shell("get", "context.max_turns") == "4\n"
    monkeypatch.setenv("OPENAI_API_BASE", "http://127.0.0.1:9/v1")
    assert shell("get", "context.max_turns") == "7\n"
    lines = shell("show").splitlines()
    assert [line.split()[0] for line in lines[len(KEYS) :]] == [
        'for."openai/gpt*".context.max_turns',
        'for."qwen*".context.max_turns',
    ]
    shell("set", "context.max_turns", "5")
    assert f"It has no effect here: {origins['openai/gpt*']} sets 7." in shell.stderr
    assert not any("for." in line for line in shell("show", "agent").splitlines())


def test_set_says_when_something_stronger_is_in_force(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NCA_AGENT__MAX_STEPS", "9")
    assert "Saved agent.max_steps = 3 in" in shell("set", "agent.max_steps", "3")
    assert shell.stderr == "It has no effect here: environment NCA_AGENT__MAX_STEPS sets 9.\n"


def test_the_users_file(shell: Shell) -> None:
    with pytest.raises(ConfigError, match="--user"):
        shell("set", "model.api_base", "http://localhost:1")
    shell("set", "--user", "model.api_base", "http://localhost:1")
    assert shell.user_file.exists()
    assert not shell.file.exists()
    lines = shell("path").splitlines()
    assert lines == [f"user     {shell.user_file}  (exists)", f"project  {shell.file}  (does not exist)"]


def test_default_as_a_value_resets_as_in_the_chat(shell: Shell) -> None:
    shell("set", "context.compact_threshold", "0.7")
    assert "Removed context.compact_threshold from" in " ".join(shell("set", "compact_threshold", "default").split())
    assert not shell.file.exists()


def test_unset_removes_it_and_says_what_counts_now(shell: Shell) -> None:
    shell("set", "context.compact_threshold", "0.5", "--user")
    shell("set", "context.compact_threshold", "0.7")
    said = " ".join(shell("unset", "compact_threshold").split())
    assert said.startswith("Removed context.compact_threshold from ")
    assert said.endswith(f"Now: 0.5 ({shell.user_file})")
    said = " ".join(shell("unset", "context.compact_threshold", "--user").split())
    assert said.endswith("(default)")
    assert "context.compact_threshold is not in" in " ".join(shell("unset", "context.compact_threshold").split())
    with pytest.raises(ConfigError):
        shell("unset", "no.such")


def test_init_never_overwrites(shell: Shell) -> None:
    shell("init")
    assert shell.file.read_text(encoding="utf-8") == render_example()
    with pytest.raises(ConfigError, match="already exists"):
        shell("init")
    shell("show")


def test_a_broken_file_is_one_error_and_can_be_mended(shell: Shell) -> None:
    shell.file.parent.mkdir()
    shell.file.write_text("[agent]\nmax_steps = 0\n")
    with pytest.raises(ConfigError, match=r"config\.toml:2: agent\.max_steps = 0"):
        shell("show")
    shell("path")
    shell("set", "context.auto", "off")
    assert "agent.max_steps = 0" in shell.stderr
    shell("set", "agent.max_steps", "5")
    assert shell("get", "agent.max_steps") == "5\n"
    with pytest.raises(ConfigError, match=r"Did you mean agent\.max_steps"):
        shell("get", "agent.maxsteps")


def test_a_tool_that_there_is_not_is_refused_before_anything_is_saved(shell: Shell) -> None:
    with pytest.raises(ConfigError, match=r"^tools.off: there is no tool shel. Did you mean shell\?"):
        shell("set", "tools.off", "shel,grep")
    assert not shell.file.exists()
    assert 'tools.off = ["shell", "*_file"]' in shell("set", "tools.off", "Bash,*_file")


def test_show_searches_as_the_chat_does(shell: Shell) -> None:
    found = [line.split()[0] for line in shell("show", "compact").splitlines()]
    assert {"context.compact_threshold", "memory.auto_compact_on_finish"} <= set(found)
    with pytest.raises(ConfigError, match="There is no setting zzzzzz"):
        shell("show", "zzzzzz")


@pytest.mark.parametrize(("typed", "meant"), [("contxt", "context"), ("sesion", "session"), ("Modl", "model")])
def test_show_knows_the_group_that_was_meant(shell: Shell, typed: str, meant: str) -> None:
    with pytest.raises(ConfigError) as raised:
        shell("show", typed)
    assert raised.value.advice == f"Did you mean the group {meant}?"


def test_show_takes_a_setting_or_a_group(shell: Shell) -> None:
    assert shell("show", "theme") == 'terminal.theme = "auto"  (default)\n'
    assert shell("show", "context.fit") == 'context.fit = "auto"  (default)\n'
    group = [line.split()[0] for line in shell("show", "context.prune").splitlines()]
    assert group == [key for key in KEYS if key.startswith("context.prune.")]
    assert list(json.loads(shell("show", "memory", "--json"))) == [key for key in KEYS if key.startswith("memory.")]
    with pytest.raises(ConfigError, match="thme"):
        shell("show", "thme")


def test_on_a_terminal_there_is_a_table(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).resolve().parents[2]))
    child = pexpect.spawn(sys.executable, ["-c", "from nca.cli.config import app; app(['show'])"], dimensions=(60, 100))
    shown = child.read().decode("utf-8")
    child.close()
    assert child.exitstatus == 0
    assert "setting" in shown.splitlines()[0]
    assert "context.compact_threshold" in shown


@pytest.mark.parametrize("columns", ["60", "80", "120"])
def test_no_word_of_the_table_is_broken(
    columns: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    _show_table(defaults().effective)
    words = capsys.readouterr().out.split()
    assert set(KEYS) <= set(words)
    assert {"default", '"deduplicate",', '"summarize",'} <= set(words)
