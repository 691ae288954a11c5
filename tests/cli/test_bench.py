"""nca bench, as a process: on a file, a pipe and a stored session."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from nca.library.losses import CompactionLoss, nca_size, size_and_cost
from nca.messages import Message, user_message
from nca.sessions import Store
from nca.words import words
from tests.context.samples import talk
from tests.sessions.samples import MANUAL, hiding
from tests.shapes.conversions import conversations, to_anthropic, to_responses
from tests.terminal.tty import ROOT
from tests.testing.forks import forked as nca
from tests.transcripts.formats.test_claude_code import answer, boundary, raw, summary, user

DATA = Path(__file__).parent.parent / "data"
CODING = str(DATA / "coding-session.jsonl")


def figures(home: Path, source: str, *flags: str, stdin: str = "") -> dict[str, Any]:
    done = nca("bench", source, "--json", *flags, home=home, stdin=stdin)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_a_file_and_the_same_of_another_shape_through_a_pipe(tmp_path: Path) -> None:
    found = figures(tmp_path, CODING, "--context-window", "16k")
    assert found["compactions"]
    assert found["with_nca"]["over_budget"] == 0 < found["without"]["over_budget"]
    whole = to_anthropic(conversations()[-1])
    piped = figures(tmp_path, "-", "--context-window", "16k", stdin=json.dumps(whole))
    assert piped["requests"] > 50
    assert piped["with_nca"]["over_budget"] == 0 < piped["without"]["over_budget"]


@pytest.mark.parametrize("shape", [dict, to_anthropic, to_responses])
@pytest.mark.parametrize("flags", [(), ("-m", "openai/gpt-4o"), ("--max-output-tokens", "5000")])
def test_a_request_object_has_the_budget_that_compact_gives_it(
    tmp_path: Path, shape: Any, flags: tuple[str, ...]
) -> None:
    rows = conversations()[0]
    whole = {"messages": rows} if shape is dict else shape(rows)
    text = json.dumps({**whole, "model": "anthropic/claude-sonnet-4-5", "max_tokens": 1_000})
    found = figures(tmp_path, "-", *flags, stdin=text)
    compacted = nca("compact", "-", "--json", *flags, home=tmp_path, stdin=text)
    assert found["budget_tokens"] == json.loads(compacted.stdout)["budget_tokens"]
    assert found["model"] == ("openai/gpt-4o" if "-m" in flags else "anthropic/claude-sonnet-4-5")
    assert (found["window_is_assumed"], found["with_nca"]["cost"] is None) == (False, False)
    answer_tokens = 5_000 if "--max-output-tokens" in flags else 1_000
    assert found["window_tokens"] - found["budget_tokens"] == answer_tokens


def test_figures_for_a_person_and_nothing_of_what_was_said(tmp_path: Path) -> None:
    done = nca("bench", CODING, "--context-window", "16k", "-m", "anthropic/claude-opus-4-5", home=tmp_path)
    assert done.returncode == 0
    assert "with nca" in done.stdout
    assert "requests over the budget" in done.stdout
    assert "$" in done.stdout
    assert "no model was called" in done.stdout
    said = [json.loads(line) for line in Path(CODING).read_text().splitlines()]
    texts = [row["content"] for row in said if row["role"] == "user"]
    assert not any(text[:40] in done.stdout for text in texts)


def test_one_turn_is_one_turn(tmp_path: Path) -> None:
    talk = '{"role": "user", "content": "Hello."}\n{"role": "assistant", "content": "Hello!"}\n'
    done = nca("bench", "-", home=tmp_path, stdin=talk)
    assert ": 2 messages, 1 turn, 1 request; " in done.stdout.splitlines()[0]


def test_prices_that_are_not_known_are_not_zero(tmp_path: Path) -> None:
    done = nca("bench", CODING, "-m", "nobody/model", home=tmp_path)
    assert "unknown" in done.stdout
    assert "assumed" in done.stdout
    assert "No compaction was needed" in done.stdout


def test_a_session_of_the_store_and_its_export(tmp_path: Path) -> None:
    store_path = next(iter(_stored(tmp_path)))
    with Store.open(store_path, read_only=True) as store:
        (info,) = store.list()
    found = figures(tmp_path, info.id[:5])
    assert info.messages == 16
    assert (found["messages"], found["requests"], found["model"]) == (10, 5, "anthropic/claude-opus-4-5")
    exported = nca("sessions", "export", info.id, "--format", "json", home=tmp_path)
    assert exported.returncode == 0, exported.stderr
    again = figures(tmp_path, "-", stdin=exported.stdout)
    assert (again["with_nca"], again["model"]) == (found["with_nca"], found["model"])


@pytest.mark.parametrize(
    ("source", "stdin", "says", "code"),
    [
        ("nowhere.jsonl", "", "nowhere.jsonl: there is no such file, and no session with that id or name", 2),
        ("-", "not json", "standard input: is neither a JSON array or object nor a session of any program", 2),
        ("-", "[]", "holds no messages", 2),
        ("-", '[{"role": "robot", "content": "x"}]', "role 'robot' is not known", 2),
        (str(DATA), "", "is a folder, not a session of any program that nca reads; valid: ", 2),
        ("\x1b[31mred", "", "red: there is no such file", 2),
    ],
)
def test_bad_input_is_one_line(tmp_path: Path, source: str, stdin: str, says: str, code: int) -> None:
    done = nca("bench", source, home=tmp_path, stdin=stdin)
    assert done.returncode == code
    assert done.stdout == ""
    assert says in done.stderr
    assert "\x1b" not in done.stderr
    assert done.stderr.count("\n") == 1


def _stored(home: Path) -> list[Path]:
    """A store with one session where `nca` with this home looks for it. Its last messages are aside."""
    done = nca("sessions", "import", "-", home=home, stdin=json.dumps([{"role": "user", "content": "Hello."}]))
    assert done.returncode == 0, done.stderr
    paths = list(home.rglob("sessions.db"))
    with Store.open(paths[0]) as store:
        for info in store.list():
            store.delete(info.id)
        with store.create(directory="/", model="anthropic/claude-opus-4-5") as session:
            session.log.append(talk(5))
            session.rewinds.append_beside(talk(3, start=6))
    return paths


def test_what_another_agent_lost_in_the_terminal_as_json_and_as_a_page(tmp_path: Path) -> None:
    key = "sk-ant-api03-" + "Ab3dE6gH9jK2" * 8
    rows = [
        user("u1", None, f"Never touch the folder migrations. The key is {key}"),
        answer("a1", "u1", "I will not. " + "Done with a part of it. " * 400),
        boundary("b1", "a1"),
        summary("s1", "b1", "They worked on it."),
        user("u2", "s1", "Go on."),
    ]
    file = tmp_path / "claude.jsonl"
    file.write_bytes(raw(*rows))
    page = tmp_path / "lost.html"
    done = nca("bench", str(file), "--html", str(page), home=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Claude Code compacted this session once." in done.stdout
    assert "Never touch the folder migrations." in done.stdout
    assert "Never touch the folder migrations." in page.read_text(encoding="utf-8")
    assert key not in done.stdout + page.read_text(encoding="utf-8")
    assert [one["kinds"]["words"]["after"] for one in figures(tmp_path, str(file))["losses"]] == [0]
    again = nca("bench", str(file), "--html", str(page), home=tmp_path)
    assert again.returncode == 2
    assert len(again.stderr.splitlines()) <= 2
    nothing = nca("bench", CODING, "--html", str(tmp_path / "none.html"), home=tmp_path)
    assert nothing.returncode == 0
    said = "This session has not been compacted, so nothing is lost."
    assert nothing.stderr == f"nca: {said} {tmp_path / 'none.html'} has the figures of the replay.\n"
    written = (tmp_path / "none.html").read_text(encoding="utf-8")
    assert f"<p>{said}</p>" in written
    assert [one for one in nothing.stdout.splitlines() if html.escape(one) not in written] == []
    assert "tokens sent" in written


@pytest.mark.parametrize("command", ["bench", "compact"])
def test_an_empty_name_of_a_file_is_said_to_be_empty(command: str, tmp_path: Path) -> None:
    done = nca(command, "", home=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "is empty" in done.stderr


def test_nca_s_own_session_has_its_compactions_and_no_changes_by_hand(tmp_path: Path) -> None:
    path = tmp_path / "nca" / "data" / "sessions.db"
    rounds = 15
    with Store.open(path) as store, store.create(directory="/", model="m") as session:
        for number in range(rounds):
            rule = user_message(words(f"Rule {number}: keep the gate at {number}17."))
            session.log.append([rule, Message("assistant", "It is so, and it stays so. " * 60)])
            last = 2 * number + 1
            session.views.commit(hiding(last, f"s{number}"), MANUAL)
            for stage in ("collapse", "expand"):
                session.views.commit(hiding(last, f"{stage}{number}"), replace(MANUAL, stages=(stage,)))
        session.views.commit(hiding(2 * rounds - 1, "undone"), MANUAL)
        session.views.undo()
        session_id = session.info.id
    shown = nca("bench", session_id, home=tmp_path).stdout
    assert f"nca compacted this session {rounds + 1} times." in shown
    assert "In the same room" not in shown, "nca is not compared with itself"
    assert "… and 4 more (--json and --html have all)" in shown
    assert "lost, neither word for word nor reworded" in shown
    assert not re.search(
        "would have kept|would stay|nca too|with nca$|anew", shown.partition("compacted this session")[2]
    )
    assert len(shown.splitlines()) < 240
    assert [one["is_undone"] for one in figures(tmp_path, session_id)["losses"]] == [*[False] * rounds, True]
    assert "collapse" not in nca("sessions", "export", session_id, "--format", "markdown", home=tmp_path).stdout


def test_a_room_that_nca_does_not_fit_into_is_no_room_of_which_it_used_some() -> None:
    loss = CompactionLoss(
        1, 1, 9, "manual", 0.0, 0, 0, room_tokens=8_850, nca_tokens=53_049, is_unreadable=False, cost=0
    )
    assert nca_size(loss) == "nca needs more room, so compare with care: 53,049 tokens, not 8,850."


def test_a_compaction_that_was_undone_says_so() -> None:
    loss = CompactionLoss(
        1, 1, 9, "manual", 0.0, 55_380, 28_651, room_tokens=1, nca_tokens=1, is_unreadable=False, cost=0, is_undone=True
    )
    assert size_and_cost(loss) == "55,380 → 28,651 tokens, cost of the summary unknown; undone later"


@pytest.mark.parametrize("number", [1, 2])
def test_the_page_shows_what_the_program_prints(tmp_path: Path, number: int) -> None:
    """All but the times. Lines before the first one of the page, and after its last one, may be left out."""
    page = (ROOT / "docs" / "bench.md").read_text(encoding="utf-8")
    command, _, rest = page.split("```\n$ nca ")[number].partition("\n")
    shown = rest.partition("```")[0].removeprefix("…\n").removesuffix("…\n")
    done = nca(*command.split(), home=tmp_path, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    printed, expected = (re.sub(r" *[\d,.]+ ms", " N ms", text) for text in (done.stdout, shown))
    assert expected in printed
