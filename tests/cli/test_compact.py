"""nca compact, as a process, on real transcripts."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from nca import validate_request as validate_request_of_any_shape
from nca.context.validate import CHECKS, validate_request
from nca.sessions import Store
from nca.testing.provider import Provider
from tests.context.promises import too_large
from tests.sessions.samples import said
from tests.shapes.conversions import conversations, to_anthropic, to_responses
from tests.testing.forks import forked as nca

DATA = Path(__file__).parent.parent / "data"


def airline() -> list[list[dict[str, Any]]]:
    lines = (DATA / "airline-support.jsonl").read_text().splitlines()
    return [json.loads(line)["messages"] for line in lines]


def compacted(home: Path, source: str, *flags: str, stdin: str = "") -> dict[str, Any]:
    done = nca("compact", source, "--summarizer", "none", "--json", *flags, home=home, stdin=stdin)
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def newest_user(messages: list[dict[str, Any]]) -> Any:
    return [row["content"] for row in messages if row["role"] == "user"][-1]


@pytest.mark.parametrize("number", range(3))
def test_airline_conversations_land_on_target(tmp_path: Path, number: int) -> None:
    messages = airline()[number]
    result = compacted(tmp_path, "-", "--context-window", "6000", stdin=json.dumps(messages))
    assert result["target_tokens"] <= result["budget_tokens"]
    texts = [str(message["content"]) for message in result["messages"]]
    assert too_large(texts, result["tokens_after"], result["target_tokens"], result["budget_tokens"]) == ""
    assert result["messages"][0] == messages[0]
    assert newest_user(result["messages"]) == newest_user(messages)
    for provider in CHECKS:
        assert validate_request(result["messages"], provider) == []
    again = compacted(tmp_path, "-", "--context-window", "6000", stdin=json.dumps(result["messages"]))
    assert not again["compacted"]
    assert again["messages"] == result["messages"]


def test_a_coding_session_in_lines_with_notes_between(tmp_path: Path) -> None:
    result = compacted(tmp_path, str(DATA / "coding-session.jsonl"), "--context-window", "16000")
    assert result["compacted"]
    assert result["tokens_after"] <= result["target_tokens"]
    assert result["tokens_saved"] == result["tokens_before"] - result["tokens_after"]
    assert all(not key.startswith("_") for row in result["messages"] for key in row)
    for provider in CHECKS:
        assert validate_request(result["messages"], provider) == []


def test_without_json_the_messages_are_lines_and_the_numbers_on_stderr(tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    done = nca(
        "compact", str(DATA / "coding-session.jsonl"), "--context-window", "16000", "--out", str(out), home=tmp_path
    )
    assert done.returncode == 0
    assert done.stdout == ""
    assert re.search(r"^Compacted .* kept \d+ of \d+ of your messages, .*\d+ of \d+ changed files", done.stderr)
    assert all(json.loads(line)["role"] for line in out.read_text().splitlines())


def test_out_never_loses_a_file_and_no_model_is_asked_before_that_is_known(tmp_path: Path) -> None:
    file = tmp_path / "talk.json"
    file.write_text(json.dumps(to_anthropic(conversations()[0])["messages"]))
    before = file.read_bytes()
    with Provider() as provider:
        words = ("compact", "talk.json", "--context-window", "8000", "--summarizer", "openai/m", "--out", "talk.json")
        done = nca(*words, home=tmp_path, OPENAI_API_KEY="k", OPENAI_API_BASE=provider.url)
        said = "nca: talk.json already exists; nothing was written. Name another file, or use --force.\n"
        assert (done.returncode, done.stdout, done.stderr) == (2, "", said)
        assert (file.read_bytes(), provider.requests) == (before, [])
    assert nca("compact", "talk.json", "--out", "talk.json", "--force", home=tmp_path).returncode == 0
    assert file.stat().st_mode & 0o777 == 0o600
    assert len(file.read_text().splitlines()) > 1


def test_a_request_with_its_system_prompt_beside_it_comes_back_as_one(tmp_path: Path) -> None:
    request = to_anthropic(conversations()[2])
    done = nca("compact", "-", "--context-window", "8000", home=tmp_path, stdin=json.dumps(request))
    assert done.returncode == 0
    compacted = json.loads(done.stdout)
    assert {**compacted, "messages": 0} == {**request, "messages": 0}
    assert len(compacted["messages"]) < len(request["messages"])
    assert validate_request_of_any_shape(compacted, "anthropic") == []


def test_anthropic_rows_come_back_as_lines(tmp_path: Path) -> None:
    rows = to_anthropic(conversations()[0])["messages"]
    lines = "\n".join(json.dumps(row) for row in rows)
    done = nca("compact", "-", home=tmp_path, stdin=lines)
    assert [json.loads(line) for line in done.stdout.splitlines()] == rows
    single = json.dumps({"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"})
    done = nca("compact", "-", home=tmp_path, stdin=single)
    assert [json.loads(line)["type"] for line in done.stdout.splitlines()] == ["function_call", "function_call_output"]


def test_responses_items_come_back_as_they_were(tmp_path: Path) -> None:
    request = to_responses(conversations()[0])
    done = nca("compact", "-", home=tmp_path, stdin=json.dumps(request))
    assert json.loads(done.stdout) == request
    done = nca("compact", "-", home=tmp_path, stdin=json.dumps({**request, "input": [{"type": "computer_call"}]}))
    assert done.returncode == 2
    assert "item 1: type 'computer_call' is not known here; valid: message, " in done.stderr


@pytest.mark.parametrize(
    ("stdin", "flags", "says"),
    [
        ("not json", (), "standard input: is neither a JSON array or object nor a session of any program"),
        ("", (), "standard input: is empty"),
        ("[]", (), "the list is empty"),
        ("{}", (), "holds no messages"),
        ('[{"role": "robot", "content": "x"}]', (), "message 1: role 'robot' is not known; valid: system"),
        ('[{"role": "user", "content": 5}]', (), "message 1: content is a number; valid: text"),
        ('[{"role": "user"}]', (), "message 1: a user message has no content"),
        (
            '[{"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": "{}"}}]}]',
            (),
            "message 1, tool call 1: the id is missing",
        ),
        ('{"role": "user", "content": "a"}\n{oops', (), "line 2: is not JSON"),
        ('[{"role": "user", "content": "x"}]', ("--context-window", "-1"), "--context-window"),
        ('[{"role": "user", "content": "x"}]', ("--target", "1.5"), "above 0 up to 1"),
        ('[{"role": "user", "content": "x"}]', ("--target", "lots"), "above 0 up to 1"),
        ('[{"role": "user", "content": "x"}]', ("--stages", "shrink"), "prune, deduplicate, summarize, truncate"),
    ],
)
def test_bad_input_is_one_clear_line_and_exit_code_2(
    tmp_path: Path, stdin: str, flags: tuple[str, ...], says: str
) -> None:
    done = nca("compact", "-", *flags, home=tmp_path, stdin=stdin)
    assert done.returncode == 2
    assert done.stdout == ""
    assert says in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    done = nca("compact", "nowhere.json", home=tmp_path)
    assert done.returncode == 2
    assert "nowhere.json: there is no such file, and no session with that id or name." in done.stderr


def test_a_session_is_compacted_by_its_id(tmp_path: Path) -> None:
    path = tmp_path / "nca" / "data" / "sessions.db"
    with Store.open(path) as store, store.create(directory="/w", model="m") as session:
        session.log.append(said("What is it?", "Forty-two."))
        name = session.info.id
    done = nca("compact", name, home=tmp_path)
    assert [json.loads(line)["content"] for line in done.stdout.splitlines()] == ["What is it?", "Forty-two."]
    assert "Nothing to compact" in done.stderr


def test_an_exported_session_counts_as_the_stored_one_does(tmp_path: Path) -> None:
    path = tmp_path / "nca" / "data" / "sessions.db"
    with Store.open(path) as store, store.create(directory="/w", model="openai/gpt-4.1") as session:
        session.log.append(said(*(f"{number}: the wind is weak, and the sea is calm. " * 60 for number in range(40))))
        name = session.info.id
    export = nca("sessions", "export", name, "talk.json", home=tmp_path, cwd=tmp_path)
    assert export.returncode == 0, export.stderr
    one, two = (
        nca("compact", of, "--context-window", "16000", home=tmp_path, cwd=tmp_path) for of in (name, "talk.json")
    )
    assert one.stderr.startswith("Compacted ")
    assert one.stderr == two.stderr


def rules() -> list[dict[str, Any]]:
    """Twenty messages of the person, of which a small window has room for the beginnings alone, and the answers."""
    said = [f"Rule {number}: " + " ".join(f"detail{number}_{word}" for word in range(60)) for number in range(20)]
    pairs = zip(said, [f"Yes, {number}. {'Because. ' * 150}" for number in range(20)], strict=True)
    return [
        {"role": role, "content": text}
        for pair in pairs
        for role, text in zip(("user", "assistant"), pair, strict=True)
    ]


def test_a_message_that_is_cut_is_not_said_to_be_kept_whole(tmp_path: Path) -> None:
    done = nca("compact", "-", "--context-window", "5000", "--json", home=tmp_path, stdin=json.dumps(rules()))
    result = json.loads(done.stdout)
    shown = "\n".join(row["content"] for row in result["messages"])
    whole = sum(row["content"] in shown for row in rules() if row["role"] == "user")
    assert result["kept"]["whole"][0] == whole < result["kept"]["words"][0] == result["kept_facts"]["kept"]
    done = nca("compact", "-", "--context-window", "5000", home=tmp_path, stdin=json.dumps(rules()))
    assert f" of your messages, {whole} of them whole" in done.stderr


def test_a_stage_that_nobody_named_is_said(tmp_path: Path) -> None:
    flags, stdin = ("--context-window", "5000", "--stages"), json.dumps(rules())
    done = nca("compact", "-", *flags, "prune", home=tmp_path, stdin=stdin)
    assert "(truncate; " in done.stderr
    assert (
        "After prune it was still over the budget, so the last resort (truncate) hid or cut the oldest." in done.stderr
    )
    named = nca("compact", "-", *flags, "prune,truncate", home=tmp_path, stdin=stdin)
    assert "(truncate; " in named.stderr
    assert "last resort" not in named.stderr


def test_what_cannot_fit_exits_with_4(tmp_path: Path) -> None:
    messages = [{"role": "system", "content": "rule " * 9_000}, {"role": "user", "content": "Hi"}]
    done = nca("compact", "-", "--context-window", "4000", home=tmp_path, stdin=json.dumps(messages))
    assert done.returncode == 4
    assert "Even compacted as far as may be, the request would need" in done.stderr


def test_a_newest_message_that_is_larger_than_the_window_is_refused_unless_it_may_be_cut(tmp_path: Path) -> None:
    text = "The first word. " + "a line of it\n" * 9_000 + "The last word."
    stdin = json.dumps([{"role": "user", "content": "Hi"}, {"role": "user", "content": text}])
    done = nca("compact", "-", "--context-window", "8000", home=tmp_path, stdin=stdin)
    assert (done.returncode, done.stdout) == (4, "")
    assert "The message has" in done.stderr
    assert done.stderr.endswith("or let it be cut: --fit cut.\n")
    result = compacted(tmp_path, "-", "--context-window", "8000", "--fit", "cut", stdin=stdin)
    newest = newest_user(result["messages"])
    assert newest.startswith("The first word.")
    assert "The last word." in newest
    assert result["tokens_after"] <= result["budget_tokens"]
    assert result["notices"] == ["The newest message is larger than the window and was cut."]
    assert result["kept"]["whole"] == [1, 2]
    wrong = nca("compact", "-", "--fit", "drop", home=tmp_path, stdin=stdin)
    assert wrong.returncode == 2
    assert "--fit" in wrong.stderr
    assert "cut, refuse" in wrong.stderr
