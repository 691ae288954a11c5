"""`nca loop` as a person starts it: in a pseudo-terminal or a pipe, with a provider on loopback."""

from __future__ import annotations

import importlib.util
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from nca.messages import Message
from nca.sessions import Store
from nca.testing.provider import Provider
from nca.testing.scripted import Answer, in_order
from tests.cli.command import environment, keys, nca
from tests.terminal.tty import ROOT, Tty
from tests.testing.forked_tty import ForkedTty
from tests.testing.forks import forked

CTRL_D = "\x04"


@pytest.fixture
def start(provider: Provider, tmp_path: Path) -> Iterator[Callable[..., Tty]]:
    """Starts `nca` with arguments in a terminal and waits for its prompt; `first` starts it as a shell does."""
    (tmp_path / "project").mkdir()
    with ExitStack() as opened:

        def begin(*arguments: str, until: str = " · window ", **extra: str) -> Tty:
            env = {**environment(tmp_path, **keys(provider), **extra), "PYTHONPATH": str(ROOT)}
            # Not in this repository, whose instructions may outgrow a window of 4,000 tokens.
            tty = opened.enter_context(ForkedTty(["nca", *arguments], environment=env, cwd=tmp_path / "project"))
            tty.sees(until)
            if until == "›":
                # The prompt stands first; the line below it comes with the conversation.
                tty.sees("% · ")
            tty.settle()
            return tty

        yield begin


def leave(tty: Tty) -> int:
    tty.settle()
    tty.send(CTRL_D)
    return tty.ends()


def test_the_first_start_explains_itself_and_later_ones_are_short(start: Callable[..., Tty], tmp_path: Path) -> None:
    tty = start("loop", "--model", "openai/test-model")
    lines = tty.text().splitlines()
    banner = "nca · openai/test-model · window 4,600 tokens, 1,610 for the answer (see model.max_output_tokens)"
    assert lines[0] == banner
    assert lines[1] == "Why this model: set by flag --model."
    assert "/model NAME" in lines[2]
    assert "/help" in lines[3]
    assert "leaves" in lines[4]
    assert lines[5].startswith("›") or lines[5] == ""
    tty.line("hello")
    tty.sees("You said: hello")
    assert leave(tty) == 0
    with Store.open(tmp_path / "nca" / "data" / "sessions.db", read_only=True) as store:
        assert f"To continue this session: nca loop --resume {store.list()[0].id}" in tty.text()
    again = start("loop", "--model", "openai/test-model")
    said = [line for line in again.text().splitlines() if line]
    assert said[0] == "nca · openai/test-model · window 4,600 tokens · /help"
    assert said[1].startswith("›")
    assert leave(again) == 0
    assert "To go on" not in again.text()


@pytest.fixture
def first(provider: Provider, tmp_path: Path) -> Iterator[Tty]:
    """The first prompt, behind which nothing is open yet."""
    env = {**environment(tmp_path, **keys(provider)), "PYTHONPATH": str(ROOT)}
    with Tty([sys.executable, "-m", "nca", "loop", "--model", "openai/test-model"], environment=env) as tty:
        tty.sees("›")
        yield tty


def test_what_is_typed_into_the_first_prompt_is_sent_when_the_rest_is_there(first: Tty) -> None:
    first.line("at once")
    first.sees("You said: at once")
    first.settle()
    lines = first.shown()
    banner, sent, answer = (
        next(place for place, line in enumerate(lines) if line.startswith(beginning))
        for beginning in ("Ctrl-C stops an answer", "› at once", "You said: at once")
    )
    assert banner < sent < answer
    assert (lines[sent - 1], lines[sent + 1 : answer]) == ("", [""])
    assert leave(first) == 0


@pytest.mark.parametrize(("keys", "code"), [(CTRL_D, 0), ("\x03", 130)])
def test_who_leaves_the_first_prompt_waits_for_nothing(first: Tty, keys: str, code: int) -> None:
    first.send(keys)
    assert first.ends() == code
    assert b"Traceback" not in first.raw


def test_continue_and_resume_find_the_session(start: Callable[..., Tty]) -> None:
    tty = start("loop", "-c")
    assert "There is no earlier session" in tty.text()
    tty.line("the first question")
    tty.sees("You said: the first")
    assert leave(tty) == 0
    tty = start("loop", "--continue")
    assert "Resuming “the first question” (2 messages)." in tty.text()
    tty.line("/sessions list")
    session_id = tty.sees("(this)").partition("(this)")[0].split()[-1]
    assert leave(tty) == 0
    tty = start("loop", "--resume", session_id)
    assert "2 messages" in tty.text()
    assert leave(tty) == 0
    tty = start("loop", "-r", until="Search:")
    tty.sees("• You said: the first question")  # the preview
    tty.send("\r")
    tty.sees("Resuming “the first question” (2 messages).")
    tty.settle()
    assert "Search:" not in tty.text()
    assert leave(tty) == 0
    tty = start("loop", "-r", until="Search:")
    tty.send("\x1b")
    assert tty.ends() == 0
    tty = start("loop", "-r", "--plain", until="n for a new session")
    tty.line("")
    tty.sees("n for a new session", times=2)
    tty.line("1")
    tty.sees("Resuming “the first question” (2 messages).")
    assert b"\x1b" not in tty.raw


@pytest.mark.parametrize("words", [["-c"], ["--resume", "question"]])
def test_the_message_that_a_kill_left_without_an_answer_is_in_the_prompt(
    words: list[str], start: Callable[..., Tty], tmp_path: Path
) -> None:
    """The newest line of the history is another one by then."""
    tty = start("loop")
    tty.line("/cost")
    tty.settle()
    assert leave(tty) == 0
    path, here = tmp_path / "nca" / "data" / "sessions.db", str(tmp_path / "project")
    with Store.open(path) as store, store.create(directory=here, model="m") as session:
        session.log.append([Message("user", "the first question", source="typed")])
    tty = start("loop", *words)
    assert "Your last message has no answer yet. It is in the prompt: Enter sends it again." in tty.text()
    assert "› the first question" in tty.shown()
    tty.send("\r")
    tty.sees("You said: the first question", times=2)  # the card, and the answer
    assert leave(tty) == 0
    with Store.open(path, read_only=True) as store:
        assert [info.messages for info in store.list()] == [2]


@pytest.mark.parametrize("words", [["--continue"], ["--resume"]])
def test_what_is_typed_replaces_the_message_without_an_answer(
    words: list[str], start: Callable[..., Tty], tmp_path: Path
) -> None:
    path, here = tmp_path / "nca" / "data" / "sessions.db", str(tmp_path / "project")
    with Store.open(path) as store, store.create(directory=here, model="m") as session:
        session.log.append([Message("user", "the first question", source="typed")])
        name = session.info.id
    tty = start("loop", *words, *([name] if words == ["--resume"] else []))
    tty.sees("Typing replaces it")
    tty.line("go on")
    tty.sees("You said: go on")
    assert leave(tty) == 0


@pytest.mark.parametrize("words", [["--resume", "greeting", "hello"], ["--resume", "of the moon", "hello"]])
def test_a_message_beside_a_title_is_the_first_of_the_chat(
    words: list[str], start: Callable[..., Tty], tmp_path: Path
) -> None:
    with Store.open(tmp_path / "nca/data/sessions.db") as store, store.create(directory="/", model="m") as session:
        session.log.append([Message("user", "hi")])
        session.rename("greeting of the moon")
    tty = start("-m", "openai/test-model", *words, until="Resuming “greeting of the moon”")
    tty.sees("You said: hello")
    assert leave(tty) == 0


def test_a_message_on_the_command_line_is_shown_as_if_it_had_been_typed(start: Callable[..., Tty]) -> None:
    tty = start("-m", "openai/test-model", "what is 2+2?", until="You said: what is 2+2?")
    lines = tty.shown()
    asked = lines.index("› what is 2+2?")
    assert lines[asked - 1 : asked + 3 : 2] == ["", ""]
    assert leave(tty) == 0


def test_resume_without_an_id_lists_where_nobody_can_choose(provider: Provider, tmp_path: Path) -> None:
    done = forked("run", "the only question", home=tmp_path, OPENAI_API_BASE=provider.url, OPENAI_API_KEY="k")
    assert done.returncode == 0
    done = nca("loop", "--resume", home=tmp_path, OPENAI_API_BASE=provider.url, OPENAI_API_KEY="k")
    assert done.returncode == 2
    assert "the only question" in done.stdout
    assert "--resume needs an id here" in done.stderr


def test_continue_goes_on_with_the_chat_and_not_with_what_run_asked(
    provider: Provider, start: Callable[..., Tty], tmp_path: Path
) -> None:
    tty = start("loop", "-m", "openai/test-model")
    tty.line("the chat")
    tty.sees("You said: the chat")
    assert leave(tty) == 0
    base = provider.url
    done = forked(
        "run", "asked once", home=tmp_path, cwd=tmp_path / "project", OPENAI_API_BASE=base, OPENAI_API_KEY="k"
    )
    assert done.returncode == 0
    tty = start("loop", "--continue")
    assert "Resuming “the chat”" in tty.text()
    assert leave(tty) == 0
    with Store.open(tmp_path / "nca" / "data" / "sessions.db", read_only=True) as store:
        assert {info.title: info.kind for info in store.list()} == {"the chat": "chat", "asked once": "run"}


def test_only_a_message_in_the_chat_makes_a_run_a_chat(
    provider: Provider, start: Callable[..., Tty], tmp_path: Path
) -> None:
    def ran(*words: str) -> str:
        of_provider = {"OPENAI_API_BASE": provider.url, "OPENAI_API_KEY": "k"}
        done = forked("run", *words, "-m", "openai/test-model", home=tmp_path, cwd=tmp_path / "project", **of_provider)
        assert done.returncode == 0
        return done.stderr

    ran("the older task")
    ran("the newer task")
    assert leave(start("loop", "--resume", "the newer task")) == 0
    assert "Continuing" not in ran("-c", "go on")
    asked = [row["content"] for row in provider.requests[-1]["messages"] if row["role"] == "user"]
    assert asked == ["the newer task", "go on"], "somebody only looked at it"
    tty = start("loop", "--resume", "the newer task")
    tty.line("a word of mine")
    tty.sees("You said: a word of mine")
    assert leave(tty) == 0
    said = ran("-c", "go on with it")
    assert "the last session of nca run here. A chat was used later: “the newer task” (--session " in said
    asked = [row["content"] for row in provider.requests[-1]["messages"] if row["role"] == "user"]
    assert asked == ["the older task", "go on with it"]


def test_flags_reach_the_engine(start: Callable[..., Tty]) -> None:
    tty = start("loop", "--compact-threshold", "50%", "--disable-compaction", "--max-output-tokens", "1000")
    tty.line("/config context.compact_threshold")
    tty.sees("context.compact_threshold = 0.5  (flag --compact-threshold)")
    tty.line("/config context.auto")
    tty.sees("context.auto = off")
    tty.command("/context")
    tty.sees("of 3,600 tokens")


def test_another_model_from_the_chat_and_a_saved_setting(provider: Provider, start: Callable[..., Tty]) -> None:
    provider.models = ("test-model", "other-model")
    tty = start()
    tty.line("/model openai/othr-model")
    tty.sees("lists no model othr-model.\nDid you mean other-model")
    tty.line("/model openai/other-model")
    tty.sees("openai/other-model answers from now on.")
    tty.line("hello")
    tty.sees("You said: hello")
    tty.line("/model mistral/mistral-medium-latest")
    tty.sees("MISTRAL_API_KEY")
    assert leave(tty) == 0


def test_a_wrong_key_is_one_line_and_the_text_stays(provider: Provider, start: Callable[..., Tty]) -> None:
    provider.api_key = "another"
    tty = start()
    tty.line("my question")
    tty.sees("OPENAI_API_KEY")
    tty.sees("› my question", times=2)
    provider.api_key = ""
    tty.send("\r")
    tty.sees("You said: my question")
    assert b"Traceback" not in tty.raw


def test_a_home_that_cannot_be_written(start: Callable[..., Tty], tmp_path: Path) -> None:
    (tmp_path / "nca").write_text("a file where the folder should be")
    tty = start()
    assert "kept in memory only" in tty.text()
    tty.line("hello")
    tty.sees("You said: hello")
    assert leave(tty) == 0


def test_lines_through_a_pipe(provider: Provider, tmp_path: Path) -> None:
    done = forked(
        *("loop", "-m", "openai/test-model"),
        home=tmp_path,
        stdin="hello\n/cost\n",
        OPENAI_API_BASE=provider.url,
        OPENAI_API_KEY="k",
    )
    assert done.returncode == 0
    assert done.stdout.startswith("You said: hello\n")
    assert "tokens in" in done.stdout
    assert "\x1b" not in done.stdout + done.stderr


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("/permissions auto", "loosens what tools may do"),
        ("/permissions remove 1", "loosens what tools may do"),
        ("/allow accept-edits", "loosens what tools may do"),
        ("/config agent.permission auto", "changes agent.permission"),
        ("/config model.api_base http://127.0.0.1:1", "changes model.api_base"),
        ("/config context.compact_threshold 0.7 --save", "changes a settings file"),
        ("/export ../x.html", "writes a file outside of the project"),
        ("/export ~/x.html --force", "writes a file outside of the project"),
        ("/mcp restart any", "starts a server"),
        ("/tools on shell", "gives the model a tool"),
        ("/memory always run it", "changes the notes that later sessions follow"),
        ("/model openai/other", "chooses who sees the conversation"),
        ("/copy", "starts a program"),
        ("/editor", "starts a program"),
        ("!touch pwned", "starts a program"),
    ],
)
def test_a_pipe_may_not_do_what_a_person_has_to_ask_for(
    provider: Provider, tmp_path: Path, line: str, what: str
) -> None:
    (tmp_path / "project").mkdir()
    settings = {"OPENAI_API_BASE": provider.url, "OPENAI_API_KEY": "k"}
    done = forked(
        *("loop", "-m", "openai/test-model"),
        home=tmp_path,
        cwd=tmp_path / "project",
        stdin=f"{line}\nhello\n",
        **settings,
    )
    assert done.returncode == 2
    assert f"{what}: type it at a terminal, or use a flag of nca loop. Nothing was done.\n" in done.stderr
    assert done.stdout == "You said: hello\n"
    assert [path.name for path in (tmp_path / "project").iterdir()] == []
    assert not list(tmp_path.glob("x.html"))


def test_a_pipe_may_give_the_commands_that_show_and_compact(provider: Provider, tmp_path: Path) -> None:
    done = forked(
        *("loop", "-m", "openai/test-model"),
        home=tmp_path,
        stdin="hello\n/permissions plan\n/config context.compact_threshold 0.7\n/export x.html\n/context clear\n",
        OPENAI_API_BASE=provider.url,
        OPENAI_API_KEY="k",
    )
    assert done.returncode == 0, done.stderr
    assert "context.compact_threshold = 0.7" in done.stdout
    assert "plan: nca only reads, in this chat." in done.stdout
    assert (tmp_path / "x.html").exists()


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("/nosuch", "There is no command /nosuch; nothing was sent.\n"),
        ("/context show 99", "There is no message 99.\n"),
        ("/undo", "There is nothing to take back.\n"),
        ("/mcp:none:prompt", "none"),
        ("/compact from", "needs a message's number"),
    ],
)
def test_a_command_that_fails_in_a_pipe_is_the_exit_code(
    line: str, said: str, provider: Provider, tmp_path: Path
) -> None:
    """It was 0, so that a script went on as if it had been done."""
    done = forked(
        *("loop", "-m", "openai/test-model"),
        home=tmp_path,
        stdin=f"{line}\nhello\n",
        OPENAI_API_BASE=provider.url,
        OPENAI_API_KEY="k",
    )
    assert (done.returncode, done.stdout) == (2, "You said: hello\n")
    assert said in done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["loop", "--resume"], "needs an id"),
        (["loop", "--resume", "nonesuch"], "nonesuch"),
        (["loop", "-r", "-c"], "exclude each other"),
        (["loop", "--compact-threshold", "7x"], "not valid"),
        (["loop", "--config", "/no/such/file"], "no such file"),
    ],
)
def test_wrong_words_are_one_line_and_exit_2(tmp_path: Path, arguments: list[str], said: str) -> None:
    done = nca(*arguments, home=tmp_path, OPENAI_API_KEY="k")
    if arguments == ["loop", "--resume"]:
        assert done.returncode == 2
        return
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_the_prompt_needs_neither_litellm_nor_the_engine_of_the_embedded_model() -> None:
    code = (
        "import sys, nca.cli.commands; light = [n for n in ('prompt_toolkit', 'rich', 'litellm') if n in sys.modules];"
        "import nca.terminal.prompt_reader, nca.terminal.render.draw, nca.terminal.app;"
        "import nca.agent.conversation, nca.models.choose;"
        "print(light, [n for n in ('litellm', 'openai', 'httpx', 'xllamacpp') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout == "[] []\n"


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="there is no folder without room")
def test_the_first_question_says_why_the_capable_model_is_not_recommended(tmp_path: Path) -> None:
    """The small one was offered twice: the first screen in a container with little room."""
    code = "from nca.cli.chat import _wanted; from nca.models.choose import Choice; print(_wanted(Choice('', why='')))"
    env = {**environment(tmp_path), "PYTHONPATH": str(ROOT), "NCA_HOME": "/proc/none"}
    with Tty([sys.executable, "-c", code], environment=env, columns=100) as tty:
        tty.sees("1, 2 or 3 [3]:")
        first, second = (row.strip() for row in tty.text().splitlines() if row.strip()[:2] in ("1 ", "2 "))
        assert first.startswith("1  SmolLM2")
        assert second.startswith("2  Qwen2.5")
        assert "are free, and it should have 3" in tty.text()
        assert "are free, and it needs 19" in " ".join(tty.text().split())
        assert "recommended" not in tty.text(), "there is no room for the small one either"
        tty.line("2")
        tty.sees("qwen2.5-coder-1.5b")


HAS_RUNTIME = importlib.util.find_spec("xllamacpp") is not None


@pytest.mark.skipif(not HAS_RUNTIME, reason="the embedded model's runtime is not installed (pip install 'nca[local]')")
def test_who_has_no_model_is_asked_once(tmp_path: Path) -> None:
    code = (
        "from nca.cli.chat import ensure_weights; from nca.models.choose import Choice;"
        "found = Choice('embedded/qwen2.5-coder-1.5b', why='nothing was found');"
        "print('chosen:', ensure_weights(found, lambda: 'again'))"
    )
    with Tty([sys.executable, "-c", code], environment={**environment(tmp_path), "PYTHONPATH": str(ROOT)}) as tty:
        tty.sees("1, 2 or 3 [1]:")
        assert "1.1 GB" in tty.text()
        tty.line("7")
        tty.sees("Ctrl-C leaves")
        tty.sees("1, 2 or 3 [1]:", times=2)
        tty.line("3")
        tty.sees("API key (not shown")
        tty.line("")
        tty.sees("export OPENAI_API_KEY")
        tty.sees("chosen: None")
    with Tty([sys.executable, "-c", code], environment={**environment(tmp_path), "PYTHONPATH": str(ROOT)}) as tty:
        tty.sees("1, 2 or 3 [1]:")
        tty.send("\x04")
        tty.sees("chosen: None")
        assert "API key" not in tty.text().partition("[1]:")[2]


def test_a_model_that_was_chosen_is_remembered_here_until_default(
    provider: Provider, start: Callable[..., Tty], tmp_path: Path
) -> None:
    provider.models = ("test-model", "other-model")
    tty = start()
    tty.line("/model openai/other-model")
    tty.sees("Later chats in this directory begin with it; /model default goes back")
    tty.line("hello")
    tty.sees("You said: hello")
    assert leave(tty) == 0
    # What runs without a person does what the settings say.
    extra: dict[str, Any] = keys(provider)
    done = nca("run", "--json", "hi", home=tmp_path, cwd=tmp_path / "project", **extra)
    assert '"model":"openai/test-model"' in done.stdout

    tty = start(until="openai/other-model · window ")
    tty.sees("Why this model: set by /model here on ")
    tty.line("/model default")
    tty.sees("openai/test-model answers from now on: the endpoint")
    assert leave(tty) == 0
    assert leave(start(until="openai/test-model · window ")) == 0

    tty = start("--continue", until="openai/other-model · window ")
    tty.sees("Why this model: set by /model in this session.")
    assert leave(tty) == 0
    tty = start("--continue", until="openai/test-model · window ", NCA_MODEL__NAME="openai/test-model")
    tty.line("/model openai/other-model")
    tty.sees("Other chats and this session, once resumed, begin with openai/test-model")
    assert leave(tty) == 0
    named = start("--continue", until="openai/test-model · window ", NCA_MODEL__NAME="openai/test-model")
    assert leave(named) == 0
    assert leave(start("--continue", "-m", "openai/test-model", until="openai/test-model · window ")) == 0


def test_a_remembered_model_that_is_of_no_use_now_is_passed_over(provider: Provider, start: Callable[..., Tty]) -> None:
    tty = start(MISTRAL_API_KEY="k")
    tty.line("/model mistral/mistral-medium-latest")
    tty.sees("mistral/mistral-medium-latest answers from now on.")
    assert leave(tty) == 0
    tty = start(until="openai/test-model · window ")
    tty.sees("(set by /model here on ")
    assert "cannot be used now: No API key for" in tty.text()
    assert leave(tty) == 0


def test_a_killed_chat_says_which_files_went_back_once_it_goes_on(
    start: Callable[..., Tty], provider: Provider, tmp_path: Path
) -> None:
    """The note waited in memory for the next message."""
    wrote = Answer(tool_calls=[("write_file", {"path": "z.txt", "content": "one\n"})])
    provider.script = in_order(wrote, "Written.", "Fine.")
    tty = start("loop", "--model", "openai/test-model", NCA_AGENT__PERMISSION="accept-edits")
    tty.line("Write it")
    tty.sees("Written.")
    tty.settle()
    tty.line("/rewind 1 files")
    tty.sees("Files: 1 deleted (z.txt)")
    assert not (tmp_path / "project/z.txt").exists()
    tty.process.kill(signal.SIGKILL)
    tty.ends()
    tty = start("loop", "--continue", "--model", "openai/test-model", until="›")
    tty.line("Go on")
    tty.sees("Fine.")
    assert "not as you left them: z.txt (deleted)" in str(provider.requests[-1]["messages"][-1])
    assert leave(tty) == 0
    assert "not kept" not in tty.text()
