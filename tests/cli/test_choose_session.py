"""A second `nca` on the same session is told who has it, and can read it, fork it, or quit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from nca.sessions import Store
from nca.testing.provider import Provider
from tests.cli.command import environment, keys
from tests.sessions.samples import said
from tests.sessions.test_lock import other_process
from tests.terminal.tty import ROOT, Tty
from tests.testing.forked_tty import ForkedTty
from tests.testing.forks import forked

CTRL_D = "\x04"


@pytest.fixture
def start(provider: Provider, tmp_path: Path) -> Iterator[Callable[..., Tty]]:
    with ExitStack() as opened:

        def begin(*arguments: str, columns: int = 100) -> Tty:
            env = {**environment(tmp_path, **keys(provider)), "PYTHONPATH": str(ROOT)}
            loop = ["nca", "loop", "-m", "openai/test-model", *arguments]
            return opened.enter_context(ForkedTty(loop, columns=columns, environment=env))

        yield begin


@contextmanager
def held(tmp_path: Path) -> Iterator[tuple[str, int]]:
    """A session that another process has open: its id, and the process."""
    path = tmp_path / "nca" / "data" / "sessions.db"
    with Store.open(path) as store, store.create(directory=str(Path.cwd()), model="m", name="the talk") as session:
        session.log.append(said("the question", "the answer"))
        name = session.info.id
    with other_process(path, name) as other:
        yield name, other.pid


def goes_on(tty: Tty) -> None:
    """The session takes a message, and is left."""
    tty.settle()
    tty.line("and now?")
    tty.sees("You said: and now?")
    tty.settle()
    tty.send(CTRL_D)
    assert tty.ends() == 0


def test_without_a_terminal_it_is_one_line(provider: Provider, tmp_path: Path) -> None:
    with held(tmp_path) as (name, pid):
        for arguments in (["loop", "--resume", name], ["run", "--session", name, "hello"]):
            done = forked(*arguments, home=tmp_path, OPENAI_API_BASE=provider.url, OPENAI_API_KEY="k")
            assert (done.returncode, done.stdout) == (1, "")
            assert f"Session {name} is already open in process {pid}, since 20" in done.stderr
            assert f"nca sessions fork {name}" in done.stderr
            assert len(done.stderr.strip().splitlines()) == 1


def test_reading_shows_everything_and_sends_nothing(start: Callable[..., Tty], tmp_path: Path) -> None:
    with held(tmp_path) as (name, pid):
        tty = start("--resume", name)
        tty.sees(f"already open in process {pid}")
        tty.sees("r to read it here")  # what is typed before the question is discarded
        tty.line("what?")
        tty.sees("r to read it here", times=2)
        tty.line("r")
        tty.sees("Reading “the talk” (2 messages).")
        tty.sees("It is read-only, because another nca has it open")
        tty.sees("  read-only  ")
        assert "› the question\n\nthe answer\n\nReading" in tty.text()
        tty.settle()
        tty.command("/context")
        tty.sees("2 messages in 1 turn.")
        tty.sees("Esc leaves")
        tty.send("\x1b")
        tty.settle()
        tty.line("hello?")
        tty.sees("open for reading only")
        tty.settle()
        tty.send("\x15")  # the text stands in the prompt again
        tty.line("/compact")
        tty.sees("open for reading only", times=2)
        tty.settle()
        tty.send(CTRL_D)
        assert tty.ends() == 0
        with Store.open(tmp_path / "nca" / "data" / "sessions.db", read_only=True) as store:
            assert [(info.id, info.messages) for info in store.list()] == [(name, 2)]


def test_what_is_read_is_written_once_nobody_else_has_it(start: Callable[..., Tty], tmp_path: Path) -> None:
    with ExitStack() as other:
        name, pid = other.enter_context(held(tmp_path))
        tty = start("--resume", name)
        tty.sees("r to read it here")
        tty.line("r")
        tty.sees("It is read-only, because another nca has it open")
        tty.settle()
        tty.command(f"/resume {name}")
        tty.sees(f"already open in process {pid}", times=2)
        tty.send("\x1b")
        tty.settle()
        other.close()
        tty.command(f"/resume {name}")
        tty.sees("Resuming “the talk” (2 messages).")
        goes_on(tty)
    with Store.open(tmp_path / "nca" / "data" / "sessions.db", read_only=True) as store:
        assert [(info.id, info.messages) for info in store.list()] == [(name, 4)]


def test_no_word_of_the_question_is_parted_in_a_narrow_window(start: Callable[..., Tty], tmp_path: Path) -> None:
    with held(tmp_path) as (name, pid):
        tty = start("--resume", name, columns=len(f"Session {name} is already op"))
        tty.sees("to leave:")
        rows = [row.strip() for row in tty.shown() if row.strip()]
        words = f"Session {name} is already open in process {pid}, since".split()
        assert " ".join(rows).split()[: len(words)] == words
        tty.line("q")
        assert tty.ends() == 0


def test_a_copy_goes_on(start: Callable[..., Tty], tmp_path: Path) -> None:
    with held(tmp_path) as (name, _):
        tty = start("--resume", "the talk")
        tty.sees("f to continue in a copy")
        tty.line("f")
        tty.sees(f"Resuming “the talk (fork)” (2 messages).\nForked {name}: this copy is ")
        goes_on(tty)
        with Store.open(tmp_path / "nca" / "data" / "sessions.db", read_only=True) as store:
            assert [(info.name, info.messages) for info in store.list()] == [("the talk (fork)", 4), ("the talk", 2)]
            assert store.find("the talk").id == name


@pytest.mark.parametrize("answer", ["q\r", CTRL_D])
def test_one_can_leave(start: Callable[..., Tty], tmp_path: Path, answer: str) -> None:
    with held(tmp_path) as (name, _):
        tty = start("-r", name)
        tty.sees("q to leave:")
        tty.line("")
        tty.sees("q to leave:", times=2)
        tty.send(answer)
        assert tty.ends() == 0
        assert "Traceback" not in tty.text()


def test_a_free_session_is_not_asked_about(start: Callable[..., Tty], tmp_path: Path) -> None:
    with held(tmp_path) as (name, _):
        pass
    tty = start("--continue")
    tty.sees("Resuming “the talk” (2 messages).")
    assert "already open" not in tty.text()
    assert name


def test_what_is_typed_while_a_session_is_continued_stands_in_its_prompt_alone(
    start: Callable[..., Tty], tmp_path: Path
) -> None:
    with (
        Store.open(tmp_path / "nca" / "data" / "sessions.db") as store,
        store.create(directory=str(Path.cwd()), model="m", name="the talk") as session,
    ):
        session.log.append(said("the question", "the answer"))
    tty = start("--continue")
    tty.send("early words")
    tty.sees("› early words")
    assert tty.text().startswith("nca · ")
    assert tty.text().count("early words") == 1


def test_a_chat_whose_store_was_emptied_begins_a_new_session(provider: Provider, tmp_path: Path) -> None:
    """Its person sees that, and decides; `nca run -c` fails."""
    path = tmp_path / "nca" / "data" / "sessions.db"
    answers, chat = [], ("loop", "-c", "--context-window", "4000")
    for _ in range(2):
        done = forked(*chat, home=tmp_path, stdin="Hello.\n", OPENAI_API_BASE=provider.url, OPENAI_API_KEY="k")
        answers.append((done.returncode, "something emptied it" in done.stdout + done.stderr))
        path.write_bytes(b"")
    assert answers == [(0, False), (0, True)]
    assert len(provider.requests) == 2
