"""nca keys, and the question for a key: it is stored, hidden while it is typed, and used from then on."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from nca.config.paths import keys_file
from nca.models import keys
from nca.testing.provider import Provider
from tests.cli.command import environment
from tests.terminal.tty import ROOT, Tty
from tests.testing.forked_tty import ForkedTty
from tests.testing.forks import forked

KEY = "sk-proj-0123456789abcdefghij"


def env(home: Path) -> dict[str, str]:
    return {"NCA_HOME": str(home / "nca")}


def test_a_key_from_a_pipe_is_stored_listed_and_removed(tmp_path: Path) -> None:
    added = forked("keys", "add", home=tmp_path, stdin=f"{KEY}\n")
    assert added.returncode == 0, added.stderr
    assert keys.stored(env(tmp_path)) == {"OPENAI_API_KEY": KEY}
    listed = forked("keys", "list", home=tmp_path).stdout
    assert listed.startswith("openai (OPENAI_API_KEY), in ")
    assert KEY not in added.stdout + listed
    assert "was removed" in forked("keys", "remove", "openai", home=tmp_path).stdout
    assert "No key is stored" in forked("keys", "list", home=tmp_path).stdout


@pytest.mark.parametrize(
    ("words", "stdin", "said"),
    [
        (["add", "opnai"], KEY, "There is no provider 'opnai'"),
        (["add"], "sk-0123456789", "does not say whose it is"),
        (["add", "openai"], "two words of text", "That is not a key"),
        (["add", "openai"], "", "No key was given"),
        (["remove", "nobody"], "", "There is no provider 'nobody'"),
    ],
)
def test_what_cannot_be_stored_is_refused(tmp_path: Path, words: list[str], stdin: str, said: str) -> None:
    done = forked("keys", *words, home=tmp_path, stdin=stdin)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert not keys_file(env(tmp_path)).exists()


def test_a_newer_key_takes_the_place_of_the_stored_one_and_of_no_other(tmp_path: Path) -> None:
    newer = KEY.replace("0", "1")
    forked("keys", "add", home=tmp_path, stdin=KEY)
    rotated = forked("keys", "add", "OPENAI_API_KEY", home=tmp_path, stdin=newer)
    assert keys.stored(env(tmp_path)) == {"OPENAI_API_KEY": newer}
    assert "in the environment" not in rotated.stdout
    beside = forked("keys", "add", home=tmp_path, stdin=KEY, OPENAI_API_KEY="sk-of-the-shell")
    assert "OPENAI_API_KEY is also in the environment, and that one is used." in beside.stdout
    assert "was removed" in forked("keys", "remove", "OPENAI_API_KEY", home=tmp_path).stdout


def test_a_key_that_is_replaced_while_nca_runs_is_used_at_once(tmp_path: Path) -> None:
    here, newer = env(tmp_path), KEY.replace("0", "1")
    for key in (KEY, newer):
        keys.save(here, "OPENAI_API_KEY", key)
        keys.use(here)
        assert here["OPENAI_API_KEY"] == key
    here["OPENAI_API_KEY"] = "sk-of-the-shell"
    keys.use(here)
    assert here["OPENAI_API_KEY"] == "sk-of-the-shell"


def test_a_run_uses_the_stored_key(tmp_path: Path) -> None:
    with Provider(api_key=KEY) as provider:
        run = ("run", "Hello", "-m", "openai/test-model")
        assert forked(*run, home=tmp_path, OPENAI_API_BASE=provider.url).returncode == 3
        forked("keys", "add", home=tmp_path, stdin=KEY)
        done = forked(*run, home=tmp_path, OPENAI_API_BASE=provider.url)
        assert done.returncode == 0, done.stderr


def test_a_file_that_cannot_be_read_is_one_line(tmp_path: Path) -> None:
    path = keys_file(env(tmp_path))
    path.parent.mkdir(parents=True)
    path.write_text("{")
    for words in (("run", "Hello", "-m", "openai/x"), ("run", "Hello"), ("keys", "list"), ("keys", "add", "openai")):
        done = forked(*words, home=tmp_path, stdin=KEY)
        assert (done.returncode, len(done.stderr.splitlines())) == (2, 1), words
        assert str(path) in done.stderr
    assert path.read_text() == "{"


def test_a_file_that_cannot_be_read_stops_nothing_that_needs_no_key_of_it(tmp_path: Path) -> None:
    path = keys_file(env(tmp_path))
    path.parent.mkdir(parents=True)
    path.write_text("{")
    for words in (("sessions", "list"), ("config", "show"), ("config", "get", "model.name")):
        done = forked(*words, home=tmp_path)
        assert (done.returncode, done.stderr) == (0, ""), words
    with Provider(api_key=KEY) as provider:
        asked = ("run", "Hello", "-m", "openai/test-model")
        done = forked(*asked, home=tmp_path, OPENAI_API_BASE=provider.url, OPENAI_API_KEY=KEY)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("the stored keys cannot be read") == 1
    checked = forked("doctor", home=tmp_path)
    assert (checked.returncode, checked.stdout.count("the stored keys cannot be read")) == (1, 1)


def test_a_typed_key_is_never_on_the_screen(tmp_path: Path) -> None:
    with ForkedTty(["nca", "keys", "add"], environment=environment(tmp_path), cwd=tmp_path) as tty:
        tty.sees("API key (not shown")
        tty.line("too short")
        tty.sees("That is not a key")
        tty.sees("API key (not shown", times=2)
        tty.line("sk-0123456789abcdefghij")
        tty.sees("Whose key is it?")
        tty.line("nobody")
        tty.sees("That is no answer here.")
        tty.sees("Provider (Enter alone leaves):", times=2)
        tty.line("deepseek")
        tty.sees("Stored as DEEPSEEK_API_KEY")
        assert tty.ends() == 0
    assert b"0123456789" not in tty.raw
    assert keys.stored(env(tmp_path)) == {"DEEPSEEK_API_KEY": "sk-0123456789abcdefghij"}


def start(home: Path) -> Tty:
    return ForkedTty(["nca"], environment=environment(home), cwd=home)


@pytest.mark.skipif(find_spec("xllamacpp") is None, reason="the embedded model's runtime is not installed")
def test_the_first_start_asks_for_a_key_and_goes_on_with_it(tmp_path: Path) -> None:
    tty = start(tmp_path)
    tty.sees("1, 2 or 3 [1]:")
    tty.line("3")
    tty.sees("API key (not shown")
    tty.line(KEY)
    tty.sees("OPENAI_API_KEY is stored (nca keys)")
    tty.sees("/help")
    tty.settle()
    tty.send("\x04")
    assert tty.ends() == 0
    assert KEY.encode() not in tty.raw


def test_who_has_no_runtime_either_is_asked_for_a_key_too(tmp_path: Path) -> None:
    code = (
        "from nca.cli.chat import _with_key; from nca.models.choose import Choice;"
        "from nca.errors import ModelUnavailable; missing = ModelUnavailable('The runtime is not installed.');"
        "print('chosen:', _with_key(missing, lambda: Choice('openai/x')).model)"
    )
    with Tty([sys.executable, "-c", code], environment={**environment(tmp_path), "PYTHONPATH": str(ROOT)}) as tty:
        tty.sees("runtime is not installed.")
        tty.sees("API key (not shown")
        tty.line(KEY)
        tty.sees("chosen: openai/x")
