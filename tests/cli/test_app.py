"""The command itself: version, help, unknown words, and what it does not import."""

from __future__ import annotations

import itertools
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nca import __version__
from nca.cli import COMMANDS
from nca.cli.app import with_command
from nca.cli.commands import _COMMANDS, build
from nca.messages import Message
from nca.sessions import Store
from tests.cli.command import nca
from tests.terminal.tty import ROOT, Tty
from tests.testing.forks import forked


def imported_by(statement: str) -> set[str]:
    code = f"import sys\n{statement}\nprint(*sys.modules)"
    return set(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout.split())


def test_version_is_instant_and_exact(tmp_path: Path) -> None:
    assert nca("--version", home=tmp_path).stdout == f"nca {__version__}\n"


def test_help_names_every_command(tmp_path: Path) -> None:
    done = forked("--help", home=tmp_path)
    assert done.returncode == 0
    for command in ("loop", "run", "compact", "sessions", "config", "models", "doctor"):
        assert command in done.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("completion", "foo"), "nca: Invalid value for 'shell': 'foo' is not one of 'bash', 'zsh', 'fish'."),
        (
            ("run", "two", "words", "more"),
            "nca: nca run takes no 'words more'. Put a message of several words in quotes.",
        ),
        (("config", "path", "model"), "nca: nca config path takes no 'model'. Try"),
        (
            ("run", "--modle", "x"),
            "nca: No such option: --modle (Possible options: --model). Try",
        ),
        (("loop", "--timeout", "3"), "nca: No such option: --timeout. Try 'nca loop --help'."),
        (("run", "--output", "x", "hi"), "nca: No such option: --output. Try 'nca run --help'."),
        (
            ("hello",),
            'nca: No such command \'hello\'. A message to the model: nca loop "TEXT" in a chat, nca run "TEXT" for one'
            " answer. Try 'nca --help'.",
        ),
        (("loop", "fix", "it"), "nca: nca loop takes no 'it'. A message of several words stands in quotes."),
        (("mcp", "remove", "x"), "nca: There is no MCP server 'x'. None is set up; `nca mcp add` adds one."),
    ],
)
def test_a_wrong_word_is_answered_in_english(arguments: tuple[str, ...], said: str, tmp_path: Path) -> None:
    done = forked(*arguments, home=tmp_path)
    assert done.returncode == 2
    assert done.stderr.startswith(said)


def test_flags_without_a_command_are_the_chats(tmp_path: Path) -> None:
    done = forked("--compact-threshold", "1.5", home=tmp_path)
    assert done.returncode == 2
    assert "--compact-threshold" in done.stderr
    assert "above 0 up to 1" in done.stderr


@pytest.mark.parametrize("words", ["-m", "--model", "--model=", "loop --permission", "compact - --model", "run hi -m"])
def test_an_empty_value_is_not_the_default(words: str, tmp_path: Path) -> None:
    done = forked(*words.split(), *([] if words.endswith("=") else [""]), home=tmp_path)
    assert done.returncode == 2
    assert "the value is empty." in done.stderr


def test_wrong_words_lead_to_the_help_of_their_command(tmp_path: Path) -> None:
    done = forked("config", "set", "context.auto", home=tmp_path)
    assert done.returncode == 2
    assert "Try 'nca config set --help'." in done.stderr
    assert "Try 'nca --help'." in forked("rnu", home=tmp_path).stderr
    assert "--version" in forked("--help", home=tmp_path).stdout


@pytest.mark.parametrize(
    ("words", "command"),
    [("loop -m", "nca loop"), ("-m", "nca loop"), ("run hi --model", "nca run"), ("mcp add x --url", "nca mcp add")],
)
def test_an_option_without_its_value_leads_to_the_help_of_its_command(words: str, command: str, tmp_path: Path) -> None:
    done = forked(*words.split(), home=tmp_path)
    assert done.returncode == 2
    assert done.stderr.endswith(f" requires an argument. Try '{command} --help'.\n")


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("", "loop"),
        ("-m X", "loop -m X"),
        ("-m X run hi", "run hi -m X"),
        ("--model=X --json run hi --trust", "run hi --trust --model=X --json"),
        ("--stream ndjson -c run hi", "run hi --stream ndjson -c"),
        ("-m X run -- -1/2", "run -m X -- -1/2"),
        ("-r ID run hi", "run hi -r ID"),
        ("--json sessions list", "sessions list --json"),
        ("-m X doctor", "doctor -m X"),
        # A value, a title and the words of a message are no command.
        ("-m run", "loop -m run"),
        ("-r run", "loop -r run"),
        ("-c fix run", "loop -c fix run"),
        ("-c -- run", "loop -c -- run"),
        ("--help run", "--help run"),
    ],
)
def test_a_command_may_stand_behind_options(typed: str, meant: str) -> None:
    """`nca -m MODEL run hi` said that `nca loop` takes no 'hi'."""
    assert with_command(typed.split()) == meant.split()


def test_the_commands_are_known_before_they_are_imported() -> None:
    assert frozenset(_COMMANDS) == COMMANDS


@pytest.mark.parametrize("words", [["-p", "what is 2+2"], ["--print", "hi"]])
def test_a_question_in_the_shell_leads_to_run(words: list[str], tmp_path: Path) -> None:
    assert "One answer without a chat: nca run TEXT." in forked(*words, home=tmp_path).stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("export x", "No such command 'export'. Did you mean nca sessions export? Try 'nca --help'.\n"),
        ("sessions doctor", "Did you mean nca doctor?"),
        ("config reset x", "No such command 'reset'. Did you mean 'set', 'unset'? Try 'nca config --help'.\n"),
    ],
)
def test_a_command_of_another_group_is_named(words: str, said: str, tmp_path: Path) -> None:
    assert said in forked(*words.split(), home=tmp_path).stderr


def test_a_group_without_a_command_prints_its_help_and_nothing_else(tmp_path: Path) -> None:
    done = forked("config", home=tmp_path)
    assert (done.returncode, done.stderr) == (2, "")
    assert "Show and change settings." in done.stdout


def test_a_wrong_number_is_told_in_plain_words(tmp_path: Path) -> None:
    said = [
        forked(*words.split(), home=tmp_path).stderr for words in ("serve --port abc", "sessions search x --limit -3")
    ]
    assert "Invalid value for '--port': it is not a whole number. Try 'nca serve --help'." in said[0]
    assert "Invalid value for '--limit': it must be at least 1." in said[1]


def test_a_text_that_begins_with_a_dash_is_told_where_it_goes(tmp_path: Path) -> None:
    assert "Put a text that begins with - after --." in forked("run", "-1/2 of it, please", home=tmp_path).stderr
    assert "after --" not in forked("sessions", "list", "--foo", home=tmp_path).stderr


def test_importing_nca_and_the_commands_stays_light() -> None:
    heavy = {"litellm", "openai", "httpx", "rich", "prompt_toolkit", "apsw", "xllamacpp", "huggingface_hub"}
    assert not heavy & imported_by("import nca")
    assert not {"litellm", "openai", "prompt_toolkit", "xllamacpp", "asyncio"} & imported_by(
        "from nca.cli.commands import build; build()"
    )
    assert not {"litellm", "openai", "xllamacpp"} & imported_by(
        "import nca.terminal.app, nca.terminal.prompt_reader, nca.agent.conversation, nca.models.choose"
    )
    assert not {"litellm", "openai"} & imported_by("import nca; nca.compact; nca.Conversation; nca.Store")


def test_the_version_needs_nothing_at_all() -> None:
    code = "import sys; sys.argv = ['nca', '--version']; from nca.cli.app import main; main(); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, check=True, text=True, cwd=ROOT)
    imported = set(done.stdout.split())
    assert {name for name in imported if name.startswith("nca")} == {"nca", "nca.cli", "nca.cli.app"}
    assert not {"typing", "re", "enum", "signal", "threading", "contextlib", "typer", "asyncio"} & imported


def test_the_first_prompt_comes_before_everything_else() -> None:
    what = "import nca.cli.loop_arguments, nca.cli.chat, nca.cli.early_questions, nca.config.layers, nca.models.choose"
    settings = "import nca.cli.startup as startup; startup.settings_of()"
    imported = imported_by(f"{what}; {settings}; import nca.terminal.input.first_prompt")
    heavy = {"typer", "click", "pydantic", "msgspec", "apsw", "litellm", "http.client", "tomllib", "platformdirs"}
    own = {"nca.agent", "nca.sessions", "nca.context", "nca.tools", "nca.events", "nca.messages", "nca.models.client"}
    commands = {f"nca.terminal.commands.{path.stem}" for path in (ROOT / "nca/terminal/commands").glob("[a-z]*.py")}
    assert not (heavy | own | commands | {"rich.text", "rich.console", "nca.terminal.render.draw"}) & imported


BUSY = """
import sys, threading, time
from pydantic_core import SchemaValidator, core_schema
from nca.cli.app import leave

def slow(value):
    time.sleep(0.001)
    return value

validator = SchemaValidator(core_schema.list_schema(core_schema.no_info_plain_validator_function(slow)))

def work():
    while True:
        validator.validate_python(list(range(100)))

threading.Thread(target=work, daemon=True).start()
print("the last words", end="")
leave(3)
"""


def test_leaving_while_a_thread_is_in_native_code_does_not_abort() -> None:
    done = subprocess.run([sys.executable, "-c", BUSY], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (3, "the last words", "")


def test_bash_completes_commands_and_options(tmp_path: Path) -> None:
    script = forked("completion", "bash", home=tmp_path).stdout
    program = tmp_path / "nca"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m nca "$@"\n')
    program.chmod(0o755)
    for words, wanted in (("nca sess", "sessions"), ("nca loop --disable-c", "--disable-compaction")):
        typed = f"COMP_WORDS=({words}); COMP_CWORD={len(words.split()) - 1}"
        ask = f'{typed}; _nca_completion {program}; echo "${{COMPREPLY[@]}}"'
        done = subprocess.run(["bash", "-c", f"{script}\n{ask}"], capture_output=True, text=True, check=True, cwd=ROOT)
        assert done.stdout.split() == [wanted]


def completed(home: Path, words: str) -> list[str]:
    """What a shell offers for the last of these words."""
    place = str(len(words.split(" ")) - 1)
    done = forked(home=home, _NCA_COMPLETE="complete_bash", COMP_WORDS=words, COMP_CWORD=place)
    return done.stdout.split()


def test_a_shell_offers_each_session_by_the_beginning_of_its_id(tmp_path: Path) -> None:
    with Store.open(tmp_path / "nca/data/sessions.db") as store:
        ids = []
        for number in range(60):
            with store.create(directory="/", model="m") as session:
                session.log.append([Message("user", f"{number}")])
                ids.append(session.info.id)
    assert completed(tmp_path, f"nca sessions show {ids[0][:6]}") == [ids[0]]
    assert len(completed(tmp_path, "nca sessions show ")) == 50


def test_a_shell_offers_settings_modes_profiles_and_sessions(tmp_path: Path) -> None:
    with Store.open(tmp_path / "nca/data/sessions.db") as store, store.create(directory="/", model="m") as session:
        session.log.append([Message("user", "[/red] fix it")])
        session.rename("parser")
        session_id = session.info.id
    compacting = ["context.compact_threshold", "context.compact_tokens"]
    assert completed(tmp_path, "nca config set context.compact_") == compacting
    assert completed(tmp_path, "nca config get compact_th") == ["compact_threshold"]
    assert completed(tmp_path, "nca config set model.images ") == ["auto", "yes", "no"]
    assert completed(tmp_path, "nca loop --permission a") == ["ask", "accept-edits", "auto"]
    assert "nexora" in completed(tmp_path, "nca run --profile ")
    for command in ("sessions export", "loop --resume", "run --session", "sessions search --session"):
        assert completed(tmp_path, f"nca {command} {session_id[:3]}") == [session_id], command
    assert completed(tmp_path, "nca sessions show par") == ["parser"]


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("sessions export x --as ", ["claude", "codex", "gemini", "pi"]),
        ("sessions export x --format j", ["json", "jsonl"]),
        ("run --stream ", ["ndjson"]),
        ("hooks install c", ["claude", "codex"]),
        ("mcp install cu", ["cursor"]),
        ("models get smol", ["smollm2-135m"]),
        ("loop --resume cl", ["cline", "claude"]),
        ("run -m embedded/smol", ["embedded/smollm2-135m"]),
        ("compact x --model openai/gpt-4.1-m", ["openai/gpt-4.1-mini", "openai/gpt-4.1-mini-2025-04-14"]),
        ("keys remove ", ["openai"]),
    ],
)
def test_a_shell_offers_the_names_that_are_valid(tmp_path: Path, words: str, offered: list[str]) -> None:
    forked("keys", "add", "openai", home=tmp_path, stdin="sk-0123456789")
    assert completed(tmp_path, f"nca {words}") == offered


def test_the_help_names_values_and_no_types_of_python(capsys: pytest.CaptureFixture[str]) -> None:
    def commands(one: Any, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        yield path
        for name, below in getattr(one, "commands", {}).items():
            yield from commands(below, (*path, name))

    for path in commands(build(), ()):
        build()(args=[*path, "--help"], prog_name="nca", standalone_mode=False)
        assert not re.search(r"<\w+[>|]|<int", capsys.readouterr().out), path


def test_in_a_narrow_terminal_the_help_cuts_no_name_of_a_flag(tmp_path: Path) -> None:
    for command in ("loop", "run", "compact", "serve"):
        wide, narrow = (forked(command, "--help", home=tmp_path, COLUMNS=width).stdout for width in ("120", "50"))
        assert set(re.findall(r"--[\w-]+", wide)) <= set(re.findall(r"--[\w-]+", narrow))
    assert "…" not in forked("--help", home=tmp_path, COLUMNS="50").stdout


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        (("sessions", "export"), "unless FILE is named, and print the command that resumes it."),
        (("compact",), "with a system prompt beside them they come back as one JSON object."),
    ],
)
def test_a_description_is_broken_where_the_window_ends(command: tuple[str, ...], sentence: str, tmp_path: Path) -> None:
    said = forked(*command, "--help", home=tmp_path, COLUMNS="80").stdout
    rows = [row.strip() for row in said.partition("Arguments")[0].splitlines()]
    assert sentence in " ".join(rows)
    for row, following in itertools.pairwise(rows):
        begins = following.partition(" ")[0]
        assert not row or not following or len(row) + len(begins) + 1 > 70, "the next word had room"


def test_other_shells_have_a_script_too(tmp_path: Path) -> None:
    assert "#compdef nca" in forked("completion", "zsh", home=tmp_path).stdout
    assert "complete --command nca" in forked("completion", "fish", home=tmp_path).stdout
    assert forked("completion", "tcsh", home=tmp_path).returncode == 2


def test_a_call_builds_its_own_command_and_describes_the_others() -> None:
    whole, called = build(), build("run")
    assert list(called.commands) == list(whole.commands)
    for name, command in whole.commands.items():
        other = called.commands[name]
        assert other.get_short_help_str(200) == command.get_short_help_str(200)
        assert (len(other.params) > 1) == (name == "run")
    assert not getattr(called.commands["sessions"], "commands", None)


def test_on_a_narrow_terminal_an_error_is_broken_between_words() -> None:
    with Tty([sys.executable, "-m", "nca", "--modle"], columns=40) as tty:
        assert tty.ends() == 2
        assert [line.rstrip() for line in tty.shown() if line.strip()] == [
            "nca: No such option: --modle (Possible",
            "options: --model). Try 'nca loop",
            "--help'.",
        ]
