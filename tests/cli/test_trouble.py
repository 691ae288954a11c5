"""Anything in the place of the session database: one clear line, nothing overwritten."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import apsw
import pytest

from nca.sessions import Store, sql
from nca.testing.provider import Provider
from tests.cli.command import environment
from tests.sessions.samples import filled
from tests.terminal.tty import ROOT
from tests.testing.forks import forked


@pytest.fixture
def provider() -> Iterator[Provider]:
    with Provider() as running:
        running.script = lambda _: "Still here."
        yield running


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "nca" / "data" / "sessions.db"


def asked(provider: Provider, home: Path, command: str) -> subprocess.CompletedProcess[str]:
    """One question, by `nca run` or through the chat without a terminal."""
    words = ("run", "Are you there?") if command == "run" else ("loop",)
    return forked(
        *(*words, "-m", "openai/m", "--context-window", "8000"),
        home=home,
        stdin="" if command == "run" else "Are you there?\n",
        OPENAI_API_KEY="k",
        OPENAI_API_BASE=provider.url,
    )


def listed(home: Path) -> subprocess.CompletedProcess[str]:
    return forked("sessions", "list", home=home)


def _garbage(path: Path) -> None:
    path.write_bytes(b"garbage " * 1_000)


def _truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def _newer(path: Path) -> None:
    connection = apsw.Connection(str(path))
    connection.pragma("user_version", len(sql.MIGRATIONS) + 1)
    connection.close()


def _another_programs(path: Path) -> None:
    path.unlink()
    connection = apsw.Connection(str(path))
    connection.execute("CREATE TABLE theirs (x); INSERT INTO theirs VALUES (1)")
    connection.close()


def prepared(path: Path, change: Callable[[Path], None]) -> bytes:
    filled(path)
    change(path)
    return path.read_bytes()


@pytest.mark.parametrize(("command", "damage"), [("run", _garbage), ("loop", _truncated)])
def test_a_damaged_store_is_set_aside_said_once_and_the_question_answered(
    provider: Provider, tmp_path: Path, path: Path, damage: Callable[[Path], None], command: str
) -> None:
    before = prepared(path, damage)
    looked = listed(tmp_path)
    assert (looked.returncode, looked.stdout) == (1, "")
    assert len(looked.stderr.splitlines()) == 1
    assert "is damaged" in looked.stderr
    assert path.read_bytes() == before
    done = asked(provider, tmp_path, command)
    assert done.returncode == 0
    assert "Still here." in done.stdout
    [note] = [line for line in (done.stdout + done.stderr).splitlines() if "is damaged" in line]
    [aside] = [file for file in path.parent.iterdir() if ".corrupt-" in file.name]
    assert aside.name in note
    assert aside.read_bytes() == before
    again = asked(provider, tmp_path, command)
    assert again.returncode == 0
    assert "damaged" not in again.stdout + again.stderr
    assert listed(tmp_path).returncode == 0


@pytest.mark.parametrize("command", ["run", "loop"])
def test_a_newer_store_is_refused_and_left_alone(provider: Provider, tmp_path: Path, path: Path, command: str) -> None:
    before = prepared(path, _newer)
    for done in (listed(tmp_path), asked(provider, tmp_path, command)):
        assert (done.returncode, done.stdout) == (1, "")
        assert len(done.stderr.splitlines()) == 1
        assert "newer nca" in done.stderr
        assert "Upgrade nca" in done.stderr
    assert path.read_bytes() == before
    assert provider.requests == []


def test_another_programs_file_is_left_alone_and_the_session_kept_in_memory(
    provider: Provider, tmp_path: Path, path: Path
) -> None:
    before = prepared(path, _another_programs)
    looked = listed(tmp_path)
    assert (looked.returncode, looked.stdout) == (2, "")
    assert len(looked.stderr.splitlines()) == 1
    assert "another program's database" in looked.stderr
    done = asked(provider, tmp_path, "run")
    assert done.returncode == 0
    assert "Still here." in done.stdout
    [note] = [line for line in (done.stdout + done.stderr).splitlines() if "another program's database" in line]
    assert "memory only" in note
    assert path.read_bytes() == before


def test_a_home_that_cannot_be_written(provider: Provider, tmp_path: Path) -> None:
    (tmp_path / "nca").write_text("a file where the folder should be")
    done = asked(provider, tmp_path, "run")
    assert done.returncode == 0
    assert "Still here." in done.stdout
    assert "memory only" in done.stdout + done.stderr
    assert (tmp_path / "nca").read_text() == "a file where the folder should be"


FULL = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), int(sys.argv[1])))
del sys.argv[1]
from nca.cli.app import main
main()
"""


def test_a_disk_without_room_fails_the_turn_in_one_line_and_loses_nothing(
    provider: Provider, tmp_path: Path, path: Path
) -> None:
    ids = filled(path)
    with Store.open(path, read_only=True) as store:
        before = {id: store.copy_of(id) for id in ids}
    room = path.stat().st_size + 4_096
    question = "x" * 2 * room
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(room), "run", "-m", "openai/m", "--context-window", "900000"],
        input=question.encode(),
        capture_output=True,
        env=environment(tmp_path, OPENAI_API_KEY="k", OPENAI_API_BASE=provider.url),
        cwd=tmp_path,
        timeout=90,
        check=False,
    )
    told = done.stderr.decode()
    assert done.returncode == 1, told
    assert "Traceback" not in told
    assert f"write {path}" in told
    assert "Nothing" in told
    assert provider.requests == []
    with Store.open(path) as store:
        assert store.notes == ()
        assert {id: store.copy_of(id) for id in ids} == before
    assert asked(provider, tmp_path, "run").returncode == 0


@pytest.mark.parametrize(
    "words",
    [
        ("sessions", "rename", "nobody", "x"),
        ("sessions", "pin", "nobody"),
        ("sessions", "rename", "number 1", "x"),
        ("run", "Hello", "--session", "nobody"),
        ("run", "Hello", "--json", "-m", "openai/m"),
        ("loop", "--resume", "nobody"),
        ("loop", "--plain", "-m", "openai/m"),
    ],
    ids=" ".join,
)
def test_that_a_store_was_set_aside_is_said_whatever_the_command_then_does(
    tmp_path: Path, path: Path, words: tuple[str, ...]
) -> None:
    filled(path)
    _truncated(path)
    done = forked(*words, home=tmp_path, OPENAI_API_KEY="k", OPENAI_API_BASE="http://127.0.0.1:9/v1")
    [aside] = path.parent.glob("*.corrupt-*")
    assert (done.stdout + done.stderr).count(aside.name) == 1


@pytest.mark.parametrize("command", ["run", "loop"])
def test_a_store_that_is_deleted_meanwhile_is_no_success(
    provider: Provider, tmp_path: Path, path: Path, command: str
) -> None:
    def delete(request: dict[str, Any]) -> str:
        path.unlink(missing_ok=True)
        return "Still here."

    provider.script = delete
    done = asked(provider, tmp_path, command)
    assert done.returncode == 1
    assert f"{path} was deleted or replaced while it was open" in done.stderr
    assert "/export" in done.stderr
    assert not path.exists()


@pytest.mark.parametrize("words", [("run", "Hello"), ("loop",), ("config", "show"), ("compact", "-")], ids=" ".join)
def test_a_directory_that_was_deleted_is_one_line(tmp_path: Path, words: tuple[str, ...]) -> None:
    script = 'mkdir gone && cd gone && rmdir ../gone && exec "$@"'
    done = subprocess.run(
        ["sh", "-c", script, "sh", sys.executable, "-m", "nca", *words],
        input="",
        capture_output=True,
        text=True,
        env=environment(tmp_path),
        cwd=tmp_path,
        timeout=90,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
    said = "nca: The directory that you are in was deleted. Change to another one, for example with cd.\n"
    assert done.stderr == said


_UNPRIVILEGED = ("setpriv", *(f"--{one}=-dac_override,-dac_read_search" for one in ("inh-caps", "bounding-set")))
_RUN_EACH = """
import importlib, json, os, pkgutil, sys, traceback
import nca
from nca import vocabulary
from nca.cli.app import run

vocabulary.load()
for module in pkgutil.walk_packages(nca.__path__, "nca."):
    if not module.name.endswith("__main__"):
        importlib.import_module(module.name)

def work(folder, env):
    os.environ.clear()
    os.environ.update(env)
    os.chdir(folder + "/project")
    for number, name in ((1, "out"), (2, "err")):
        os.dup2(os.open(f"{folder}/{name}", os.O_WRONLY | os.O_CREAT), number)
    for words in commands:
        code = run(words)
        print("\\0", json.dumps([words, code]), flush=True)
        print("\\0", file=sys.stderr, flush=True)

commands, places = json.load(sys.stdin)
os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
for place in places:
    if not os.fork():
        try:
            work(*place)
        except BaseException:
            traceback.print_exc()
        os._exit(0)
    os.wait()
"""
"""A process that imports everything once, and for each place a child of its own that runs all commands there."""
_COMMANDS = (
    *("--help", "doctor", "config show", "config path", "config trust", "models", "keys list", "keys remove openai"),
    *("mcp list", "hooks status", "hooks log", "sessions list", "sessions search x", "sessions show x"),
    *("sessions usage", "sessions vacuum", "sessions restore x", "completion bash", "run Hello", "run Hello --json"),
    *("run Hello -c", "loop", "loop --resume", "mcp serve", "bench x", "store init"),
)
_CLOSED = (
    *("home", "home/.config/nca", "home/.local/share/nca", "home/.cache/nca", "home/.claude"),
    *("project/.claude", "project/.claude/agents", "project/.nca"),
)


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[str, str]]:
    """What all commands wrote where a folder was closed, by folder: output and errors."""
    homes = {closed: tmp_path_factory.mktemp("closed") for closed in _CLOSED}
    with Provider() as provider, ExitStack() as opened:
        provider.script = lambda _: "Still here."
        places = []
        for closed, home in homes.items():
            for place in _CLOSED:
                (home / place).mkdir(parents=True, exist_ok=True)
            env = environment(home / "home", OPENAI_API_KEY="k", OPENAI_API_BASE=provider.url)
            env |= {"PYTHONPATH": str(ROOT), "NCA_MODEL__NAME": "openai/m", "NCA_MODEL__CONTEXT_WINDOW": "8000"}
            del env["NCA_HOME"]
            places.append((str(home), env))
            opened.callback((home / closed).chmod, 0o700)
            (home / closed).chmod(0)
        subprocess.run(
            [*(_UNPRIVILEGED if os.geteuid() == 0 else ()), sys.executable, "-P", "-c", _RUN_EACH],
            input=json.dumps([[command.split() for command in _COMMANDS], places]),
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            text=True,
            check=True,
        )
    return {closed: ((home / "out").read_text(), (home / "err").read_text()) for closed, home in homes.items()}


@pytest.mark.skipif(os.geteuid() == 0 and not shutil.which("setpriv"), reason="nothing is closed to root")
@pytest.mark.parametrize("closed", _CLOSED)
def test_a_folder_of_another_user_is_a_line_and_no_traceback(ran: dict[str, tuple[str, str]], closed: str) -> None:
    out, errors = ran[closed]
    assert "Traceback" not in errors
    said = errors.split("\0")
    ends = [json.loads(line[1:]) for line in out.splitlines() if line.startswith("\0")]
    assert [" ".join(words) for words, _ in ends] == list(_COMMANDS)
    for (words, code), line in zip(ends, said, strict=False):
        assert code in (0, 1, 2)
        assert code == 0 or line.strip() or words[0] in ("doctor", "hooks"), words
    if closed == "home/.local/share/nca":  # keys and sessions are there, and neither is needed for an answer
        assert "Still here." in out
        assert "kept in memory only" in errors
        assert "keys.json: the stored keys cannot be read (permission denied).\n" in errors


def test_only_one_place_asks_the_disk_with_what_raises() -> None:
    """`Path.exists` and its like raise for a folder that nobody may enter, until Python 3.14; `os.path` answers no."""
    raising = re.compile(r"\.(exists|is_file|is_dir|is_symlink)\(\)|\.r?glob\(")
    found = {
        f"{file.relative_to(ROOT)}: {line.strip()}"
        for file in (ROOT / "nca").rglob("*.py")
        for line in file.read_text().splitlines()
        if raising.search(line) and "entry." not in line
    }
    allowed = ("nca/safe_files.py", "nca/testing/")
    assert not {one for one in found if not one.startswith(allowed) and "/proc" not in one}
