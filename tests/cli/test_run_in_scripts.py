"""nca run as scripts use it: errors in JSON, the usage of one turn, retries, commands by name, and a silent pipe."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from nca.testing.faults import error, finish
from nca.testing.provider import Provider
from tests.testing.forks import Child, forked, shared

MODEL = "openai/test-model"


@pytest.fixture
def provider() -> Iterator[Provider]:
    with Provider(lambda _: "Done.") as running:
        yield running


def run(
    provider: Provider, home: Path, *arguments: str, model: str = MODEL, **more: Any
) -> subprocess.CompletedProcess[str]:
    return forked(
        *("run", *arguments, "-m", model),
        home=home,
        **{"OPENAI_API_KEY": "k", "OPENAI_API_BASE": provider.url, "NCA_MODEL__CONTEXT_WINDOW": "32000", **more},
    )


def sent(provider: Provider) -> list[tuple[str, str]]:
    """The newest request without its system prompt."""
    return [(row["role"], row["content"]) for row in provider.requests[-1]["messages"] if row["role"] != "system"]


@pytest.mark.parametrize("chat", [(), ("loop",), ("-c",)])
def test_what_is_piped_in_beside_the_first_message_of_a_chat_is_data(
    provider: Provider, tmp_path: Path, chat: tuple[str, ...]
) -> None:
    piped = "one\n/rename hacked\n!touch made\n/undo\n"
    done = forked(
        *(*chat, "Review this.", "-m", MODEL),
        home=tmp_path,
        stdin=piped,
        OPENAI_API_KEY="k",
        OPENAI_API_BASE=provider.url,
        NCA_MODEL__CONTEXT_WINDOW="32000",
    )
    assert (done.returncode, done.stdout, len(provider.requests)) == (0, "Done.\n", 1)
    assert sent(provider) == [("user", f"Review this.\n\n<stdin>\n{piped}\n</stdin>\n")]
    assert not (tmp_path / "made").exists()


def test_a_chat_by_its_title_takes_piped_data_beside_a_message(provider: Provider, tmp_path: Path) -> None:
    assert run(provider, tmp_path, "Hello there").returncode == 0
    done = forked(
        *("loop", "--resume", "there", "And this?", "-m", MODEL),
        home=tmp_path,
        stdin="data",
        OPENAI_API_KEY="k",
        OPENAI_API_BASE=provider.url,
        NCA_MODEL__CONTEXT_WINDOW="32000",
    )
    assert done.stdout == "Done.\n"
    assert sent(provider) == [
        ("user", "Hello there"),
        ("assistant", "Done."),
        ("user", "And this?\n\n<stdin>\ndata\n</stdin>\n"),
    ]


def test_json_says_why_a_turn_failed(provider: Provider, tmp_path: Path) -> None:
    provider.api_key = "another"
    failed = run(provider, tmp_path, "Hello", "--json")
    result = json.loads(failed.stdout)
    assert (result["reason"], result["error"]["exit_code"]) == ("failed", failed.returncode) == ("failed", 3)
    assert f"The API key for {MODEL} was rejected" in result["error"]["message"]
    assert "--model" in result["error"]["advice"]
    provider.api_key = ""
    assert json.loads(run(provider, tmp_path, "Hello", "--json").stdout)["error"] is None


@pytest.mark.parametrize("text", ["", "The first of it"])
def test_a_filtered_answer_ends_alike_whether_some_of_it_came(provider: Provider, tmp_path: Path, text: str) -> None:
    provider.faults["test-model"] = finish("content_filter", text)
    filtered = run(provider, tmp_path, "Hello", "--json")
    result = json.loads(filtered.stdout)
    assert (result["reason"], result["text"], filtered.returncode) == ("content_filter", text, 1)
    assert (result["error"] or {"exit_code": 1})["exit_code"] == 1
    assert (result["error"] is None) == bool(text)


@pytest.mark.parametrize("how", [(), ("--json",), ("--stream", "ndjson")])
@pytest.mark.parametrize("before", [0, 150])
def test_a_key_that_a_provider_repeats_is_in_no_output(
    provider: Provider, tmp_path: Path, how: tuple[str, ...], before: int
) -> None:
    key = "test-key-1234567890abcdef"
    provider.faults["test-model"] = error(401, f"{'x ' * (before // 2)}Incorrect API key provided: {key}")
    failed = run(provider, tmp_path, "Hello", *how, OPENAI_API_KEY=key)
    said = failed.stdout + failed.stderr
    assert "The API key for openai/test-model was rejected" in said
    assert key[:12] not in said
    assert before or "[redacted OPENAI_API_KEY]" in said


def test_a_message_that_was_put_aside_after_a_failure_is_shown_as_taken_back(
    provider: Provider, tmp_path: Path
) -> None:
    provider.api_key = "another"
    session = json.loads(run(provider, tmp_path, "Hello", "--json").stdout)["session_id"]
    provider.api_key = ""
    assert run(provider, tmp_path, "Hello", "--session", session).returncode == 0
    assert "taken back" in forked("sessions", "show", session, home=tmp_path).stdout


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("Hello", "--session", "nosuch"), "nosuch"),
        (("",), "The message is empty."),
        (("Hello", "-c", "--session", "x"), "--continue and --session exclude each other."),
        (("Hello", "--context-window", "x"), "--context-window"),
        (("Hello", "--bogus"), "No such option: --bogus."),
        (("Hello", "again"), "nca run takes no 'again'."),
        (("Hello", "--session", ""), "'--session' / '--resume' / '-r': the value is empty."),
        (("Hello", "--session="), "'--session' / '--resume' / '-r': the value is empty."),
        (("Hello", "--config", ""), "'--config': the value is empty."),
        (("Hello", "--allow", "shell", "--allow", ""), "'--allow': the value is empty."),
    ],
)
def test_what_cannot_begin_is_json_as_well(
    provider: Provider, tmp_path: Path, arguments: tuple[str, ...], says: str
) -> None:
    failed = run(provider, tmp_path, *arguments, "--json")
    result = json.loads(failed.stdout)
    assert (result["reason"], result["error"]["exit_code"]) == ("failed", failed.returncode) == ("failed", 2)
    assert says in result["error"]["message"]
    assert says in failed.stderr
    (event,) = map(json.loads, run(provider, tmp_path, *arguments, "--stream", "ndjson").stdout.splitlines())
    assert event == {"type": "error_raised", **result["error"]}
    assert provider.requests == []


@pytest.mark.parametrize(
    "words", [("compact", "nosuch"), ("bench", "nosuch"), ("sessions", "show", "nosuch"), ("config", "get", "nosuch")]
)
def test_a_failure_of_any_command_is_json_where_json_was_asked_for(tmp_path: Path, words: tuple[str, ...]) -> None:
    failed = forked(*words, "--json", home=tmp_path)
    error = json.loads(failed.stdout)["error"]
    assert (error["exit_code"], error["message"] in failed.stderr) == (failed.returncode, True)
    assert forked(*words, home=tmp_path).stdout == ""


def test_a_message_without_an_answer_that_goes_along_is_said(provider: Provider, tmp_path: Path) -> None:
    provider.api_key = "another"
    assert run(provider, tmp_path, "First", "-c").returncode == 3
    provider.api_key = ""
    said = run(provider, tmp_path, "Go on", "-c").stderr
    assert said == "Your last message has no answer yet; it is sent along.\n"
    assert [text for role, text in sent(provider) if role == "user"] == ["First", "Go on"]
    assert run(provider, tmp_path, "And then?", "-c").stderr == ""


def test_a_window_that_is_assumed_is_said_whoever_offers_the_model(provider: Provider, tmp_path: Path) -> None:
    for model, *how in (("openai/zz1",), ("hosted_vllm/zz2",), ("openai/zz3", "--json")):
        said = forked(
            *("run", "Hello", "-m", model, *how),
            home=tmp_path,
            OPENAI_API_KEY="k",
            OPENAI_API_BASE=provider.url,
            HOSTED_VLLM_API_BASE=provider.url,
        ).stderr
        assert f"The context window of {model} is not known; 128,000 tokens are assumed" in said


def test_what_is_piped_in_is_sent_without_its_keys(provider: Provider, tmp_path: Path) -> None:
    log = "TOKEN=ghp_abcdefghijklmnopqrstuvwxyz0123456789\nmine: zzq-very-own-value\n"
    for prompt in (["Why?"], []):
        done = run(provider, tmp_path, *prompt, stdin=log, MY_API_TOKEN="zzq-very-own-value")
        assert (done.returncode, "sent as [redacted]" in done.stderr) == (0, True)
        assert "TOKEN=[redacted]\nmine: [redacted MY_API_TOKEN]\n" in str(sent(provider)[-1][1])


def test_a_settings_file_above_the_folder_is_named_where_it_does_not_count(provider: Provider, tmp_path: Path) -> None:
    top, folder = tmp_path / "repository", tmp_path / "repository" / "package" / "below"
    for made in (folder, top / ".nca"):
        made.mkdir(parents=True)
    file = top / ".nca" / "config.toml"
    file.write_text("agent.max_steps = 7\n")
    said = f"{file} does not count here"
    assert said not in run(provider, tmp_path, "Hello", cwd=folder).stderr, (
        "no repository says that they belong together"
    )
    (top / ".git").mkdir()
    assert said in run(provider, tmp_path, "Hello", cwd=folder).stderr
    assert said not in run(provider, tmp_path, "Hello", cwd=top).stderr
    assert said not in run(provider, tmp_path, "Hello", "--config", str(file), cwd=folder).stderr
    for words in (("path",), ("set", "agent.max_steps", "9")):
        assert said in forked("config", *words, home=tmp_path, cwd=folder).stderr
    assert said not in run(provider, tmp_path, "Hello", cwd=folder).stderr, "it has settings of its own now"


def test_a_dash_means_standard_input(provider: Provider, tmp_path: Path) -> None:
    assert run(provider, tmp_path, "-", stdin="What is 1+1?").returncode == 0
    assert sent(provider) == [("user", "What is 1+1?")]
    empty = run(provider, tmp_path, "-")
    assert (empty.returncode, "The message is empty." in empty.stderr) == (2, True)


def test_one_object_and_events_exclude_each_other(provider: Provider, tmp_path: Path) -> None:
    done = run(provider, tmp_path, "Hello", "--json", "--stream", "ndjson")
    assert done.returncode == 2
    assert "--json and --stream exclude each other." in done.stderr
    assert provider.requests == []


def test_the_usage_of_the_turns_adds_up_to_that_of_the_session(provider: Provider, tmp_path: Path) -> None:
    turns = [json.loads(run(provider, tmp_path, text, "-c", "--json", model="openai/gpt-4o").stdout) for text in "ab"]
    assert turns[0]["turn_usage"] == turns[0]["usage"]
    counts = [key for key in turns[0]["usage"] if key != "cost"]
    for key in counts:
        assert sum(turn["turn_usage"][key] for turn in turns) == turns[1]["usage"][key]
    assert 0 < turns[1]["turn_usage"]["prompt_tokens"] < turns[1]["usage"]["prompt_tokens"]
    assert [turn["turn_usage"]["cost"] for turn in turns] == [turn["turn_cost"] for turn in turns]


def test_an_answer_that_broke_off_is_printed_as_far_as_it_came(provider: Provider, tmp_path: Path) -> None:
    broken = {"model": "openai/cut-in-the-middle", "NCA_MODEL__MAX_RETRIES": "0"}
    done = run(provider, tmp_path, "Try it", **broken)
    assert (done.returncode, len(done.stdout) > 1) == (3, True)
    assert f"{json.loads(run(provider, tmp_path, 'Try it', '--json', **broken).stdout)['text']}\n" == done.stdout


def test_a_continued_answer_that_breaks_off_again_has_the_same_text_in_each_format(
    provider: Provider, tmp_path: Path
) -> None:
    ways: list[list[str]] = [[], ["--json"], ["--stream", "ndjson"]]
    plain, whole, stream = (run(provider, tmp_path, "Try it", *way, model="openai/cut-in-the-middle") for way in ways)
    events = [json.loads(line) for line in stream.stdout.splitlines()]
    shown = "".join(event["text"] for event in events if event["type"] == "text_delta")
    assert shown == "The beginning of" * 2
    assert [event["text"] for event in events if event["type"] == "turn_finished"] == [shown]
    assert (json.loads(whole.stdout)["text"], plain.stdout) == (shown, f"{shown}\n")
    assert {done.returncode for done in (plain, whole, stream)} == {3}


def test_a_message_that_is_tried_again_is_sent_once(provider: Provider, tmp_path: Path) -> None:
    for model in ("openai/cut-in-the-middle", "openai/cut-in-the-middle", MODEL):
        done = run(provider, tmp_path, "Try it", "-c", model=model, NCA_MODEL__MAX_RETRIES="0")
    assert (done.returncode, done.stderr) == (0, "")
    assert sent(provider) == [("user", "Try it")]
    # The same words after an answer are a new message, and other words after a failure as well: they may go on with it.
    run(provider, tmp_path, "Try it", "-c")
    assert sent(provider) == [("user", "Try it"), ("assistant", "Done."), ("user", "Try it")]
    run(provider, tmp_path, "And this", "-c", model="openai/cut-in-the-middle", NCA_MODEL__MAX_RETRIES="0")
    run(provider, tmp_path, "Go on", "-c")
    *_, this, then = [text for role, text in sent(provider) if role == "user"]
    assert (this, then.partition("\n\n")[0]) == ("And this", "Go on")
    assert "Your last answer was cut short." in then


def test_commands_and_skills_of_the_persons_own_work_as_in_a_chat(provider: Provider, tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / ".nca" / "commands").mkdir(parents=True)
    (project / ".nca" / "commands" / "review.md").write_text("Review pull request $1 as @rules.md says.")
    (project / ".nca" / "commands" / "cost.md").write_text("Not reached: the chat's own names come first.")
    (project / ".nca" / "skills" / "sums").mkdir(parents=True)
    (project / ".nca" / "skills" / "sums" / "SKILL.md").write_text("---\nname: sums\ndescription: x\n---\nAdd it up.")
    (project / "rules.md").write_text("Mind the gap.")
    assert run(provider, tmp_path, "/review 12 now", cwd=project, stdin="1,2").returncode == 0
    ((_, text),) = sent(provider)
    assert text.startswith("Follow .nca/commands/review.md: 12 now\n\n<stdin>\n1,2\n</stdin>")
    assert "Review pull request 12 as @rules.md says." in text
    assert "Mind the gap." in text
    run(provider, tmp_path, "/review\n12", cwd=project)
    assert sent(provider)[0][1].startswith("Follow .nca/commands/review.md: 12\n")
    run(provider, tmp_path, "/sums", cwd=project)
    assert "Add it up." in sent(provider)[0][1]
    for message in ("/etc/hosts is wrong", "/nosuch\nin lines", "//cost", "//reviw 12"):
        run(provider, tmp_path, message, cwd=project)
        assert sent(provider) == [("user", message.replace("//", "/"))]
    # Three letters are enough, as in the chat.
    run(provider, tmp_path, "/rev 12", cwd=project)
    assert sent(provider)[0][1].startswith("Follow .nca/commands/review.md: 12")
    asked = len(provider.requests)
    for message, said in (
        ("/reviw 12", "There is no command /reviw; nothing was sent. Did you mean /review? //… sends a message"),
        ("/zzz", "There is no command /zzz; nothing was sent. //… sends a message that begins with /.\n"),
        ("/cost", "/cost is a command of the chat; nothing was sent. //… sends"),
        ("/comp", "/comp is a command of the chat; nothing was sent."),
    ):
        refused = run(provider, tmp_path, message, cwd=project)
        assert (refused.returncode, said in refused.stderr) == (2, True), refused.stderr
    assert len(provider.requests) == asked
    # What is piped in is data, whatever it says.
    run(provider, tmp_path, cwd=project, stdin="/review 12")
    assert "Mind the gap." not in sent(provider)[0][1]
    failed = run(provider, tmp_path, "/review @nosuch.md", cwd=project)
    assert (failed.returncode, "nosuch.md" in failed.stderr) == (2, True)


def test_a_pipe_that_is_open_and_silent_is_named(provider: Provider, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writing = os.open(pipe, os.O_RDWR)
    child = shared().start(
        *("run", "Hello", "-m", MODEL),
        home=tmp_path,
        cwd=tmp_path,
        streams={"stdin": str(pipe)},
        OPENAI_API_KEY="k",
        OPENAI_API_BASE=provider.url,
        NCA_MODEL__CONTEXT_WINDOW="32000",
    )
    while "waiting for standard input, which is open and silent" not in child.text("stderr"):
        assert not child.ended.is_set(), child.text("stderr")
        time.sleep(0.05)
    os.write(writing, b"1,2")
    os.close(writing)
    assert child.wait().stdout == "Done.\n"
    assert "1,2" in sent(provider)[0][1]


def test_a_password_in_the_environment_need_not_be_utf_8(provider: Provider, tmp_path: Path) -> None:
    done = run(provider, tmp_path, "Hello", DB_PASSWORD=os.fsdecode(b"caf\xe9-secret-1"))
    assert (done.returncode, done.stdout) == (0, "Done.\n")


def test_what_standard_input_lacks_is_said(provider: Provider, tmp_path: Path) -> None:
    def begin(**streams: str) -> Child:
        return shared().start(
            *("run", "Review this.", "-m", MODEL),
            home=tmp_path,
            cwd=tmp_path,
            streams=streams,
            OPENAI_API_KEY="k",
            OPENAI_API_BASE=provider.url,
            NCA_MODEL__CONTEXT_WINDOW="32000",
        )

    (tmp_path / "latin").write_bytes("Größe: 5\n".encode("latin-1"))
    said = begin(stdin=str(tmp_path / "latin")).wait().stderr
    assert "nca run: byte 3 of the piped input is not UTF-8; each such byte is sent as �.\n" in said
    assert "Gr\ufffd\ufffde: 5" in sent(provider)[0][1]
    master, slave = os.openpty()
    (tmp_path / "empty").touch()
    for stdin, is_said in (("/dev/null", False), (str(tmp_path / "empty"), True)):
        begin(stdin=stdin, stderr=os.ttyname(slave)).wait()
        shown = b""
        os.write(slave, b"end")
        while not shown.endswith(b"end"):
            shown += os.read(master, 4_096)
        assert (b"nca run: standard input is empty; the message is sent alone." in shown) is is_said
    os.close(slave)
    os.close(master)


def test_a_system_prompt_of_the_run_replaces_nca_s_own_and_leaves_the_project_s(
    provider: Provider, tmp_path: Path
) -> None:
    (tmp_path / "AGENTS.md").write_text("Use tabs.\n")
    assert run(provider, tmp_path, "Hello", "--system", "You are a poet.").returncode == 0
    assert run(provider, tmp_path, "Hello").returncode == 0
    mine, usual = (request["messages"][0]["content"] for request in provider.requests)
    assert mine.startswith("You are a poet.\n")
    assert "Use tabs." in mine
    assert "You are a poet." not in usual
    assert run(provider, tmp_path, "Hello", "--system", "").returncode == 2


@pytest.mark.parametrize("text", ["@chart.png what is on it?", "@data.csv sum"])
def test_a_message_that_names_a_missing_file_is_not_sent(provider: Provider, tmp_path: Path, text: str) -> None:
    done = run(provider, tmp_path, text)
    assert (done.returncode, done.stdout, provider.requests) == (2, "", [])
    assert "there is no such file in " in done.stderr
