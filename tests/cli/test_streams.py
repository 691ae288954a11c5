"""Standard streams that are closed, full or unread: an exit code, at most one line, never a traceback."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nca.messages import Message
from nca.sessions.store import Store
from nca.testing.provider import Provider
from nca.testing.scripted import Answer, in_order
from tests.cli.command import environment
from tests.terminal.tty import ROOT
from tests.testing.fault_runs import database
from tests.testing.forks import Child, shared

pytestmark = pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
FULL = "The output cannot be written (no space left on device)."
RUN = "run hello -m openai/any --context-window 128000"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("streams")
    with Store.open(database(folder)) as store:
        for number in range(40):
            with store.create(directory=str(folder), model="openai/any") as session:
                session.log.append([Message("user", f"Question {number}")])
    return folder


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    with Provider(lambda request: "word " * 5_000) as running:
        yield running


def shell(line: str, home: Path, base: str = "") -> tuple[str, str]:
    """What it wrote, and to standard error; `$NCA` is the command."""
    env = environment(home, OPENAI_API_KEY="k", OPENAI_API_BASE=base, PYTHONPATH=str(ROOT))
    env["NCA"] = f"{sys.executable} -P -m nca"
    done = subprocess.run(
        ["bash", "-c", line], env=env, cwd=home, capture_output=True, text=True, check=False, timeout=90
    )
    assert "Traceback" not in done.stderr, done.stderr
    assert "Exception" not in done.stderr, done.stderr
    return done.stdout, done.stderr


@pytest.mark.parametrize("words", ["sessions list", "sessions search Question", "config show", "--version", "doctor"])
def test_nobody_reads(words: str, home: Path) -> None:
    said, beside = shell(f"$NCA {words} | exec 0<&-; echo ${{PIPESTATUS[0]}}", home)
    assert said.strip() in ("141", "0")  # it may have written all before the reader was gone
    assert beside == ""
    said, beside = shell(f"$NCA {words} | (sleep 1; exec true); echo ${{PIPESTATUS[0]}}", home)


@pytest.mark.parametrize("words", ["sessions list", "config show", "--version", "--help"])
def test_a_full_disk_is_one_line(words: str, home: Path) -> None:
    assert shell(f"$NCA {words} > /dev/full; echo $? >&2", home) == ("", f"nca: {FULL}\n1\n")


def test_closed_streams_are_as_if_nothing_were_there(home: Path) -> None:
    assert shell("$NCA sessions list >&-; echo $?", home) == ("141\n", "")
    said, beside = shell("$NCA sessions list <&- 2>&-; echo $?", home)
    assert (said.count("\n"), said[-2:], beside) == (41, "0\n", "")
    said, beside = shell("$NCA loop -m openai/any --context-window 128000 <&-; echo $?", home)
    assert (said, beside.count("\n")) == ("0\n", 1)
    assert shell("$NCA loop -m openai/any --context-window 128000 <&- >&- 2>&-; echo $?", home) == ("0\n", "")


def turn(words: str, home: Path, provider: Provider, *, stdin: str = "", **streams: str | None) -> Child:
    """As `shell`, forked from a process that has litellm; `streams` are other files for its standard streams."""
    return shared().start(
        *words.split(),
        home=home,
        cwd=home,
        stdin=stdin,
        streams=streams,
        OPENAI_API_KEY="k",
        OPENAI_API_BASE=provider.url,
    )


def ended(child: Child) -> tuple[int, str]:
    """The exit code, and what it said on standard error."""
    done = child.wait()
    assert "Traceback" not in done.stderr, done.stderr
    assert "Exception" not in done.stderr, done.stderr
    return done.returncode, done.stderr


def test_a_turn_whose_answer_nobody_reads_ends(home: Path, provider: Provider, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    child = turn(f"{RUN} --stream ndjson", home, provider, stdout=str(tmp_path / "pipe"))
    with (tmp_path / "pipe").open("rb") as pipe:
        assert pipe.read(100)
    assert ended(child) == (141, "")


def test_a_turn_whose_reader_is_gone_asks_for_nothing_more(home: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    is_gone = threading.Event()

    def script(request: dict[str, Any]) -> Answer:
        assert is_gone.wait(60)
        return Answer(text="I look.", tool_calls=[("shell", {"command": "true"})])

    with Provider(script) as provider:
        child = turn(f"{RUN} --permission auto", home, provider, stdout=str(tmp_path / "pipe"))
        (tmp_path / "pipe").open("rb").close()
        is_gone.set()
        assert ended(child) == (141, "")
        assert len(provider.requests) == 1


def test_a_turn_whose_answer_has_nowhere_to_go_is_no_success(home: Path, provider: Provider) -> None:
    for words in (RUN, f"{RUN} --json", f"{RUN} --stream ndjson"):
        assert ended(turn(words, home, provider, stdout=None)) == (141, "")


def test_a_turn_whose_answer_the_disk_does_not_take_says_so(home: Path, provider: Provider) -> None:
    said, beside = shell(f"$NCA {RUN} --json </dev/null >/dev/full; echo $?", home, provider.url)
    assert (said, beside.count(FULL)) == ("1\n", 1)
    for words in (RUN, f"{RUN} --stream ndjson", f"{RUN} --json", "loop -m openai/any --context-window 128000"):
        code, beside = ended(
            turn(words, home, provider, stdin="hello\n" * words.startswith("loop"), stdout="/dev/full")
        )
        assert (code, beside.count(FULL)) == (1, 1)


@pytest.mark.parametrize("gone", [None, "/dev/full"])
def test_a_turn_without_standard_error_answers_all_the_same(gone: str | None, home: Path, provider: Provider) -> None:
    child = turn(RUN, home, provider, stderr=gone)
    child.wait()
    assert len(child.text("stdout").split()) == 5_000


def test_commands_have_their_exit_codes_where_the_end_of_a_child_is_ignored(tmp_path: Path) -> None:
    """As below some cron and container programs."""
    answers = in_order(Answer(tool_calls=[("shell", {"command": "exit 3"})]), "Done.")
    with Provider(answers) as provider:
        variables = environment(tmp_path, OPENAI_API_KEY="k", OPENAI_API_BASE=provider.url)
        done = subprocess.run(
            ["/bin/sh", "-c", f"trap '' CHLD; exec {sys.executable} -m nca run Go -m openai/m --permission auto"],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env=variables,
            stdin=subprocess.DEVNULL,
            check=False,
        )
        assert "[exit code 3]" in str(provider.requests[-1])
    assert (done.returncode, done.stdout) == (0, "Done.\n")
    assert "Unknown child" not in done.stderr
