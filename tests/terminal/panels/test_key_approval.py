"""Approval questions in the chat: what is shown, what each key does, and which keys do nothing."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from prompt_toolkit.key_binding import KeyPress
from prompt_toolkit.keys import Keys
from rich.console import Console

from nca.agent.approvals import Answer
from nca.config.tables import PermissionRule
from nca.errors import UsageError
from nca.events import ApprovalAsked, ApprovalGiven
from nca.sessions.store import Store
from nca.terminal.commands.registry import find_command
from nca.terminal.panels.approval_panel import COMMAND_LINES, DIFF_LINES, panel, rule_of
from nca.terminal.panels.key_approval import ApprovalKeys
from nca.terminal.render.plain import PlainDraw
from nca.terminal.render.theme import plain_console
from tests.terminal.stage import a_stage
from tests.terminal.tty import Tty, chat

CTRL_C, ESCAPE, ENTER = "\x03", "\x1b", "\r"
ASKED = ApprovalAsked(
    "c1", "write_file", "write", "write a.txt", path="/work/a.txt", diff="@@ -0 +1 @@\n+one", subject="/work/a.txt"
)


def shown(asked: ApprovalAsked) -> str:
    console: Console = plain_console({})
    with console.capture() as captured:
        console.print(panel(asked))
    return captured.get()


def take(question: ApprovalKeys, keys: str) -> Answer | None:
    answer = None
    for key in keys:
        special = {ENTER: Keys.ControlM, "\x7f": Keys.ControlH}.get(key, key)
        answer = question.take(KeyPress(special, key))
    return answer


@pytest.mark.parametrize(
    ("keys", "answer"),
    [
        ("y", Answer("once")),
        ("Y", Answer("once")),
        ("s", Answer("session")),
        ("a", Answer("always")),
        ("n\r", Answer("deny")),
        ("nuse b\x7fc instead\r", Answer("deny", "use c instead")),
        ("x", None),
        ("\r", None),
        (" ", None),
        ("n", None),
        ("ny", None),
    ],
)
def test_each_key(keys: str, answer: Answer | None) -> None:
    assert take(ApprovalKeys(has_rule=True), keys) == answer


@pytest.mark.parametrize("key", ["s", "a"])
def test_without_something_to_name_there_is_no_rule(key: str) -> None:
    question = ApprovalKeys(has_rule=False)
    assert take(question, key) is None
    assert "always" not in question.line().plain


def test_arrows_and_pastes_answer_nothing() -> None:
    question = ApprovalKeys(has_rule=True)
    for key in (KeyPress(Keys.Up), KeyPress(Keys.BracketedPaste, "y"), KeyPress(Keys.ControlJ)):
        assert question.take(key) is None


def test_the_panel_shows_all_of_it_and_says_what_is_left_out() -> None:
    text = shown(ASKED)
    assert "write_file wants to change a file" in text
    assert "/work/a.txt" in text
    assert "+one" in text
    command = "\n".join(f"echo {number}" for number in range(COMMAND_LINES + 5))
    text = shown(ApprovalAsked("c", "shell", "execute", "$ …", command=command, directory="/work/sub"))
    assert "5 more lines not shown" in text
    assert "in /work/sub" in text
    long = ApprovalAsked("c", "edit_file", "write", "edit", path="/a", diff="\n".join(["+x"] * (DIFF_LINES + 7)))
    assert "7 more lines not shown" in shown(long)


def test_a_rule_names_a_path_as_seen_from_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    inside = ApprovalAsked("c", "edit_file", "write", "edit", subject=str(tmp_path / "src" / "a.py"))
    assert rule_of(inside) == f"edit_file {Path('src', 'a.py')}"
    outside = ApprovalAsked("c", "edit_file", "write", "edit", subject="/elsewhere/a.py\x1b[2J")
    assert rule_of(outside) == "edit_file /elsewhere/a.py"


def test_nothing_in_it_reaches_the_terminal_as_a_code() -> None:
    evil = "\x1b]52;c;ZXZpbA==\x07\x1b[2J\u202egpj.exe\r"
    text = shown(ApprovalAsked("c", evil, "write", evil, path=evil, command=evil, diff="+" + evil, warning=evil))
    assert not set("\x1b\x07\u202e\r") & set(text)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Tty]]:
    started: list[Tty] = []
    (tmp_path / "project").mkdir()

    def begin(*replies: Any, **options: Any) -> Tty:
        env = {"NCA_HOME": str(tmp_path / "nca"), "HOME": str(tmp_path)}
        options = {"directory": str(tmp_path / "project"), "home": str(tmp_path), **options}
        tty = chat(*replies, env=env, **options)
        started.append(tty)
        tty.sees("›")
        return tty

    yield begin
    for tty in started:
        tty.close()


def write(name: str, content: str = "one\n") -> dict[str, Any]:
    return {"tool": "write_file", "arguments": {"path": name, "content": content}}


def results(home: Path) -> list[str]:
    with Store.open(home / "store.db") as store, store.open_session(store.list()[0].id, read_only=True) as session:
        return [entry.message.text for entry in session.log.entries() if entry.message.role == "tool"]


def test_yes_runs_it(start: Callable[..., Tty], tmp_path: Path) -> None:
    tty = start(write("a.txt"), "Written.")
    tty.line("write it")
    whole = tty.sees("Esc no, and stop")
    assert str(tmp_path / "project" / "a.txt") in whole.replace("\n", "")
    assert "+one" in whole
    assert not (tmp_path / "project" / "a.txt").exists()
    tty.send("y")
    tty.sees("Written.")
    tty.settle()
    assert "Allow it?" not in "\n".join(tty.shown()[-6:])
    assert (tmp_path / "project" / "a.txt").read_text() == "one\n"


def test_always_is_kept_and_permissions_shows_it(start: Callable[..., Tty], tmp_path: Path) -> None:
    tty = start(write("a.txt"), "Written.", write("a.txt", "one\n"), "Again.")
    tty.line("write it")
    tty.sees("Allow it?")
    tty.send("a")
    tty.sees("Written.")
    assert "a.txt" in (tmp_path / "nca" / "config.toml").read_text()
    tty.line("write it again")
    tty.sees("Again.")
    tty.line("/permissions")
    tty.sees("allow  write_file")
    tty.line("/permissions remove 1")
    tty.sees("Removed: allow write_file")
    assert "a.txt" not in (tmp_path / "nca" / "config.toml").read_text()


def test_no_with_a_word_reaches_the_model(start: Callable[..., Tty], tmp_path: Path) -> None:
    tty = start(write("a.txt"), "Then not.")
    tty.line("write it")
    tty.sees("Allow it?")
    tty.send("n")
    tty.sees("Reason for the model")
    tty.send("use b.txt\r")
    tty.sees("Then not.")
    tty.line("exit")
    tty.ends()
    assert results(tmp_path) == ["[not run: the person said no: use b.txt]"]
    assert not (tmp_path / "project" / "a.txt").exists()


@pytest.mark.parametrize("key", [ESCAPE, CTRL_C])
def test_escape_and_ctrl_c_stop_the_turn(start: Callable[..., Tty], tmp_path: Path, key: str) -> None:
    tty = start(write("a.txt"), "Fine.")
    tty.line("write it")
    tty.sees("Allow it?")
    tty.send(key)
    tty.sees("Interrupted")
    tty.settle()
    assert not (tmp_path / "project" / "a.txt").exists()
    tty.line("go on")
    tty.sees("Fine.")
    tty.line("exit")
    tty.ends()
    assert results(tmp_path) == ["[not run: the person stopped the turn]"]


def test_what_was_typed_before_the_question_does_not_answer_it(start: Callable[..., Tty], tmp_path: Path) -> None:
    tty = start(write("a.txt"), "Then not.", "You said it.")
    tty.line("PAUSE first")
    tty.sees("Thinking")
    tty.send("yyy")
    tty.sees("› yyy")
    tty.sees("Allow it?")
    tty.settle()
    assert not (tmp_path / "project" / "a.txt").exists()
    # Enter would be an answer now: nothing says that it sends this.
    assert "› yyy" in [line.rstrip() for line in tty.shown()]
    tty.send("n\r")
    tty.sees("Then not.")
    tty.settle()
    # It waits where it was meant to go.
    assert any(line.startswith("› yyy") for line in tty.shown())
    tty.send("\r")
    tty.sees("You said it.")


def test_a_line_typed_while_tools_run_reaches_the_running_turn(start: Callable[..., Tty], tmp_path: Path) -> None:
    (tmp_path / "project" / "PAUSE").write_text("PAUSE")
    look = {"tool": "list_directory", "arguments": {"path": "."}}
    tty = start(look, "Heard.", "Three.")
    tty.line("PAUSE look")
    tty.sees("Thinking")
    tty.send("rather in b\r/context\rthird\r")
    whole = tty.sees("Heard.")
    assert "› rather in b\n" in whole
    # A command, and what stands behind it, is for the prompt.
    tty.sees("conversation")
    tty.sees("Three.")
    tty.line("exit")
    tty.ends()
    with Store.open(tmp_path / "store.db") as store, store.open_session(store.list()[0].id, read_only=True) as session:
        roles = [
            (entry.message.role, entry.message.text) for entry in session.log.entries() if entry.message.role != "tool"
        ]
    assert [text for role, text in roles if role == "user"] == ["PAUSE look", "rather in b", "third"]
    assert [role for role, _ in roles] == ["user", "assistant", "user", "assistant", "user", "assistant"]


async def test_permissions_shows_and_changes_mode_and_rules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NCA_HOME", str(tmp_path / "nca"))
    deny, allow = PermissionRule("shell", "rm"), PermissionRule("write_file", "src/**")
    with a_stage(tmp_path, permissions__deny=[deny], permissions__allow=[allow]) as stage:
        stage.conversation.approvals.session_rules.append(PermissionRule("shell", "make"))
        text = await stage.command("/permissions")
        assert text.startswith("ask: nca asks before")
        rows = [line.split()[:4] for line in text.splitlines() if line.strip()[:1].isdigit()]
        assert rows == [
            ["1", "deny", "shell", "rm"],
            ["2", "allow", "write_file", "src/**"],
            ["3", "allow", "shell", "make"],
        ]
        assert "plan: nca only reads" in await stage.command("/permissions plan")
        assert stage.conversation.approvals.mode == "plan"
        await stage.command("/permissions remove 3")
        await stage.command("/permissions remove 1")
        assert stage.conversation.approvals.session_rules == []
        assert stage.conversation.loaded.value("permissions.deny") == ()
        for wrong in ("yolo", "remove 7", "remove x", "remove"):
            with pytest.raises(UsageError, match="Valid"):
                await stage.command(f"/permissions {wrong}")
        command = find_command("permissions")
        assert command is not None
        assert [one.text for one in command.complete(stage.app, "a")] == ["ask", "accept-edits", "auto"]
        assert [one.text for one in command.complete(stage.app, "remove ")] == ["1"]


def test_an_answer_for_nobody_is_said() -> None:
    asides = io.StringIO()
    draw = PlainDraw(io.StringIO(), asides, {})
    draw.on_event(ASKED)
    draw.on_event(ApprovalGiven("c1", "write_file", "unanswered"))
    assert "--permission accept-edits" in asides.getvalue()
