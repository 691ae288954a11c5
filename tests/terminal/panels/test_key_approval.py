"""Approval questions in the chat: what is shown, what each key does, and which keys do nothing."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from prompt_toolkit.key_binding import KeyPress
from prompt_toolkit.keys import Keys

from nca.agent.approvals import Answer
from nca.config.claude_permissions import restricting
from nca.config.tables import PermissionRule
from nca.errors import UsageError
from nca.events import ApprovalAsked, ApprovalGiven, ToolStarted
from nca.sessions.store import Store
from nca.terminal.commands.command import find_command
from nca.terminal.input.keyboard import ENTER
from nca.terminal.panels.key_question import ApprovalKeys
from nca.terminal.render.calls import rule_of
from nca.terminal.render.plain import PlainDraw
from tests.terminal.stage import a_stage
from tests.terminal.tty import Tty, chats

CTRL_C, CTRL_U, ESCAPE, LEFT, UP = "\x03", "\x15", "\x1b", "\x1b[D", "\x1b[A"
ASKED = ApprovalAsked(
    "c1", "write_file", "write", "write a.txt", path="/work/a.txt", diff="@@ -0 +1 @@\n+one", subject="/work/a.txt"
)


def take(question: ApprovalKeys, keys: str) -> Answer | None:
    answer = None
    names = {ENTER: Keys.ControlM, "\x7f": Keys.ControlH, "\x1b": Keys.Escape, "\n": Keys.ControlJ}
    for key in keys:
        special = names.get(key, key)
        answer = question.take(KeyPress(special, key))
    return answer


@pytest.mark.parametrize(
    ("keys", "answer"),
    [
        ("y", Answer("once")),
        ("Y", Answer("once")),
        ("s", Answer("session")),
        ("a", None),
        ("a\r", Answer("always")),
        ("at\r", None),
        ("ay", Answer("once")),
        ("n\r", Answer("deny")),
        ("nuse b\x7fc instead\r", Answer("deny", "use c instead")),
        ("nuse b\x1bno\ntests\r", Answer("deny", "no tests")),
        ("nx\x7f\r", Answer("deny")),
        ("n\x7f\r", None),
        ("n\x7fy", Answer("once")),
        ("n\x1by", Answer("once")),
        ("nno\x1b\x1by", Answer("once")),
        ("x", None),
        ("\r", None),
        (" ", None),
        ("n", None),
        ("ny", None),
    ],
)
def test_each_key(keys: str, answer: Answer | None) -> None:
    assert take(ApprovalKeys(rule="shell make"), keys) == answer


def test_e_allows_this_edit_and_all_that_follow() -> None:
    changed: list[str] = []
    question = ApprovalKeys(rule="write_file a.txt", accept_edits=lambda: changed.append("mode"))
    assert "e all edits from here on" in question.line().plain
    assert "e" in question.offered().keys
    assert (take(question, "e"), changed) == (Answer("once"), ["mode"])
    # What was not shown whole needs Enter, here as with the others.
    question = ApprovalKeys(rule="r", lines_left=lambda: 7, accept_edits=lambda: changed.append("again"))
    assert (take(question, "e"), changed) == (None, ["mode"])
    assert "Enter all edits from here on, with the part not shown" in question.line().plain
    assert (take(question, ENTER), changed) == (Answer("once"), ["mode", "again"])
    assert take(ApprovalKeys(rule="shell make"), "e") is None


@pytest.mark.parametrize("key", ["s", "a"])
def test_without_something_to_name_there_is_no_rule(key: str) -> None:
    question = ApprovalKeys()
    assert take(question, key + ENTER) is None
    assert "always" not in question.line().plain


def test_arrows_and_pastes_answer_nothing() -> None:
    question = ApprovalKeys(rule="shell make")
    for key in (KeyPress(Keys.Up), KeyPress(Keys.BracketedPaste, "y"), KeyPress(Keys.ControlJ)):
        assert question.take(key) is None


def test_what_was_not_shown_whole_needs_a_second_key() -> None:
    left = [112]
    question = ApprovalKeys(
        rule="shell make", show_more=lambda: left.__setitem__(0, max(0, left[0] - 100)), lines_left=lambda: left[0]
    )
    assert "112 lines left" in question.line().plain
    for key in "ys":
        assert take(question, key) is None
        assert "with the part not shown" in question.line().plain
    assert take(question, ENTER) == Answer("session")
    assert take(question, "yx\r") is None
    assert take(question, "y\r") == Answer("once")
    assert take(question, "y") is None
    assert "y shows more (112 lines left)" in question.line().plain
    assert take(question, "y") is None
    assert "Enter once, with the part not shown  y shows more (12 lines left)" in question.line().plain
    assert take(question, "y") is None
    assert "y once  s this session" in question.line().plain
    assert take(question, "y") == Answer("once")


def test_the_keys_say_what_a_rule_covers() -> None:
    question = ApprovalKeys(rule="edit_file src/a.py")
    assert "s this session: edit_file src/a.py  a then Enter always here" in question.line().plain
    take(question, "a")
    assert "Enter always here: edit_file src/a.py" in question.line().plain


def test_a_choice_that_is_taken_back_gives_its_letter_to_the_line() -> None:
    question = ApprovalKeys(rule="shell make")
    assert take(question, "a") is None
    assert question.take_back() == "a"
    assert question.take_back() == ""
    assert take(question, ENTER) is None


def test_only_keys_that_mean_something_are_offered() -> None:
    assert sorted(ApprovalKeys().offered().keys) == ["n", "y"]
    left = [1]
    question = ApprovalKeys(rule="shell make", lines_left=lambda: left[0])
    assert sorted(question.offered().keys) == ["a", "m", "n", "s", "y"]
    assert question.offered().next == ""
    take(question, "a")
    assert question.offered().next == ENTER
    take(question, "m")
    assert question.offered().next == "m"
    left[0] = 0
    assert "m" not in question.offered().keys
    take(question, "n")
    assert question.is_typed


def test_a_rule_names_a_path_as_seen_from_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    inside = ApprovalAsked("c", "edit_file", "write", "edit", subject=str(tmp_path / "src" / "a.py"))
    assert rule_of(inside) == f"edit_file {Path('src', 'a.py')}"
    outside = ApprovalAsked("c", "edit_file", "write", "edit", subject="/elsewhere/a.py\x1b[2J")
    assert rule_of(outside) == "edit_file /elsewhere/a.py"


def test_the_question_says_that_a_rule_for_an_mcp_tool_covers_all_arguments() -> None:
    subject = f"db@{'0' * 12}-{'1' * 12}"
    asked = ApprovalAsked("c", "mcp__db__query", "execute", "db: query", command="db: query", subject=subject)
    assert rule_of(asked) == "mcp__db__query with all arguments (db)"
    question = ApprovalKeys(rule=rule_of(asked))
    assert "s this session: mcp__db__query with all arguments" in question.line().plain
    take(question, "a")
    assert "Enter always here: mcp__db__query with all arguments" in question.line().plain


OPEN, QUEUES = "Your line below is open, so no key answers.", "(Enter queues it)"


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Tty]]:
    home, project = str(tmp_path), tmp_path / "project"
    project.mkdir()
    env = {"NCA_HOME": str(tmp_path / "nca"), "HOME": home}
    with chats(env=env, directory=str(project), home=home) as begin:
        yield begin


def write(name: str, content: str = "one\n") -> dict[str, Any]:
    return {"tool": "write_file", "arguments": {"path": name, "content": content}}


def stop(tty: Tty) -> None:
    """Escape deletes an open line, and stops the turn where there is none."""
    if QUEUES in tty.text():
        tty.send(ESCAPE)
        tty.sees_no(QUEUES)
    tty.send(ESCAPE)
    tty.sees("Interrupted")


def results(home: Path) -> list[str]:
    with Store.open(home / "store.db") as store, store.open_session(store.list()[0].id, read_only=True) as session:
        return [entry.message.text for entry in session.log.entries() if entry.message.role == "tool"]


def test_yes_runs_it(start: Callable[..., Tty], tmp_path: Path) -> None:
    tty = start(write("a.txt"), "Written.")
    tty.line("write it")
    whole = tty.sees("Esc no, and stop")
    assert str(tmp_path / "project" / "a.txt") in whole.replace("\n", "")
    assert "s this session: write_file" in whole
    assert "+one" in whole
    assert not (tmp_path / "project" / "a.txt").exists()
    tty.answer("y")
    tty.sees("Written.")
    tty.settle()
    assert "Allow it?" not in "\n".join(tty.shown()[-6:])
    assert (tmp_path / "project" / "a.txt").read_text() == "one\n"


def test_always_is_kept_and_permissions_shows_it(start: Callable[..., Tty], tmp_path: Path) -> None:
    tty = start(write("a.txt"), "Written.", write("a.txt", "one\n"), "Again.")
    tty.line("write it")
    tty.sees("Allow it?")
    tty.answer("a")
    tty.sees("Enter always here")
    tty.answer("\r")
    tty.sees("Written.")
    assert "a.txt" in (tmp_path / "nca" / "config.toml").read_text()
    tty.line("write it again")
    tty.sees("Again.")
    tty.command("/permissions")
    tty.sees("allow  write_file")
    tty.line("/permissions remove 1")
    tty.sees("Removed: allow write_file")
    assert "a.txt" not in (tmp_path / "nca" / "config.toml").read_text()


def test_no_with_a_word_reaches_the_model(start: Callable[..., Tty], tmp_path: Path) -> None:
    tty = start(write("a.txt"), "Then not.")
    tty.line("write it")
    tty.sees("Allow it?")
    tty.answer("n")
    tty.sees("Reason for the model")
    tty.send("use b.txt\r")
    tty.sees("Then not.")
    tty.line("exit")
    tty.ends()
    assert results(tmp_path) == ["[not run: the person said no]\nuse b.txt"]
    assert not (tmp_path / "project" / "a.txt").exists()


def test_a_reason_is_a_line_that_escape_deletes_and_an_n_by_mistake_is_taken_back(
    start: Callable[..., Tty], tmp_path: Path
) -> None:
    tty = start(write("a.txt"), "Written.")
    tty.line("write it")
    tty.sees("Allow it?")
    for back in (ESCAPE, "\x7f"):
        tty.answer("n")
        tty.sees("No. Reason for the model (Enter: none, Esc: back): ▏")
        tty.answer("because of rule 12")
        tty.sees("(Enter sends it, Esc deletes it): because of rule 12▏")
        tty.send(ESCAPE)
        tty.sees_no("rule 12")
        assert "No. Reason for the model (Enter: none, Esc: back): ▏" in tty.text()
        tty.send(back)
        tty.sees_no("Reason for the model")
    tty.answer("y")
    tty.sees("Written.")
    assert (tmp_path / "project" / "a.txt").exists()


def test_a_reason_is_in_the_prompt_after_the_turn_was_stopped(start: Callable[..., Tty], tmp_path: Path) -> None:
    tty = start(write("a.txt"), "Fine.")
    tty.line("write it")
    tty.sees("Allow it?")
    tty.answer("n")
    tty.sees("Reason for the model")
    tty.answer("because of \x1b[200~rule\n12\x1b[201~")
    tty.sees("12▏")
    tty.send(CTRL_C)
    tty.sees("Interrupted")
    tty.until(lambda: "› because of rule" in tty.shown())
    tty.line("")
    tty.sees("Fine.")
    assert results(tmp_path) == ["[not run: the person stopped the turn]"]


@pytest.mark.parametrize("key", [ESCAPE, CTRL_C])
def test_escape_and_ctrl_c_stop_the_turn(start: Callable[..., Tty], tmp_path: Path, key: str) -> None:
    tty = start(write("a.txt"), "Fine.")
    tty.line("write it")
    tty.sees("Allow it?")
    tty.send(key)
    assert "✗ write a.txt → not made" in tty.sees("Interrupted")
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
    assert f"› yyy {QUEUES}" in tty.shown()
    assert OPEN in tty.text()
    tty.answer("n")
    tty.sees("› yyyn")
    tty.answer("\x7f")
    tty.sees(f"› yyy {QUEUES}")
    # Now it waits where it was meant to go, and a key answers.
    tty.answer("\r")
    tty.sees("  for the next step: yyy")
    tty.answer("n")
    tty.sees("Reason for the model")
    tty.answer("\r")
    tty.sees("Then not.")
    tty.sees("› yyy\n")


@pytest.mark.parametrize(
    "typed",
    ["try this\r", "what about yes\r", "yes\r", "a\r", f"{LEFT}{LEFT}y", "\x1b[200~pasted\x1b[201~y", "\x1bOAs"],
)
def test_what_is_typed_as_the_question_appears_does_not_answer_it(
    start: Callable[..., Tty], tmp_path: Path, typed: str
) -> None:
    tty = start(write("a.txt"), "Then not.", "You said it.")
    tty.line("write it")
    tty.sees("Allow it?")
    tty.send(typed)
    tty.settle()
    assert not (tmp_path / "project" / "a.txt").exists()
    stop(tty)
    assert not (tmp_path / "nca" / "config.toml").exists()


def test_a_burst_of_keys_is_no_answer_however_late_and_goes_on_to_the_turn(
    start: Callable[..., Tty], tmp_path: Path
) -> None:
    tty = start(write("a.txt"), "Heard.")
    tty.line("write it")
    tty.sees("Allow it?")
    tty.answer("yes, but use b.txt\r")
    tty.sees("  for the next step: yes, but use b.txt\n›")
    assert "Queued text is sent after your answer. These keys answer:\nAllow it?" in tty.text()
    tty.answer("also")
    tty.sees("  for the next step: yes, but use b.txt\n› also (Enter queues it)")
    assert not (tmp_path / "project" / "a.txt").exists()
    tty.answer("\r")
    tty.sees("  for the next step (2): yes, but use b.txt ⏎ also\n›")
    assert not (tmp_path / "project" / "a.txt").exists()
    tty.answer("y")
    assert "› yes, but use b.txt" in tty.sees("Heard.")
    assert (tmp_path / "project" / "a.txt").exists()


@pytest.mark.parametrize("deletes", [CTRL_U, ESCAPE])
def test_no_key_answers_while_a_line_is_open_however_long_the_person_waits(
    start: Callable[..., Tty], tmp_path: Path, deletes: str
) -> None:
    written = tmp_path / "project" / "a.txt"
    tty = start(write("a.txt"), "Written.")
    tty.line("write it")
    tty.sees("Allow it?")
    tty.answer("tell me wh")
    tty.sees(f"› tell me wh {QUEUES}")
    tty.sees(OPEN)
    tty.answer("y")
    tty.sees(f"› tell me why {QUEUES}")
    assert not written.exists()
    tty.answer(deletes)
    tty.sees("y once")
    tty.sees_no(OPEN)
    tty.answer("y")
    tty.sees("Written.")
    assert written.exists()


@pytest.mark.parametrize(
    ("typed", "line"),
    [
        ("\x1b[200~y\x1b[201~", f"› y {QUEUES}"),
        ("yx\r", "  for the next step: yx"),
        ("yy", f"› yy {QUEUES}"),
        ("x", f"› x {QUEUES}"),
        (f"y{LEFT}", f"› y {QUEUES}"),
    ],
)
def test_pastes_several_keys_and_other_letters_are_for_the_line(
    start: Callable[..., Tty], tmp_path: Path, typed: str, line: str
) -> None:
    tty = start(write("a.txt"), "Then not.")
    tty.line("write it")
    tty.sees("Allow it?")
    tty.answer(typed)
    tty.sees(line)
    assert not (tmp_path / "project" / "a.txt").exists()
    stop(tty)
    assert not (tmp_path / "project" / "a.txt").exists()


@pytest.mark.parametrize("key", [ENTER, LEFT, UP, "\t", "\x04", "\x7f", CTRL_U])
def test_a_key_that_types_nothing_does_nothing_and_the_keys_that_answer_are_said(
    start: Callable[..., Tty], tmp_path: Path, key: str
) -> None:
    tty = start(write("a.txt"), "Written.")
    tty.line("write it")
    tty.sees("Allow it?")
    tty.answer(key)
    tty.sees("That key did nothing. These keys answer:\nAllow it?  y once")
    assert not (tmp_path / "project" / "a.txt").exists()
    tty.answer("y")
    tty.sees("Written.")
    tty.line("exit")
    assert tty.ends() == 0


def test_a_choice_waits_for_enter_and_other_keys_for_the_line(start: Callable[..., Tty], tmp_path: Path) -> None:
    tty = start(write("a.txt"), "Written.")
    tty.line("write it")
    tty.sees("Allow it?")
    tty.answer("a")
    tty.sees("Enter always here")
    tty.answer("x")
    tty.sees(f"› x {QUEUES}")
    tty.answer("\x7f")
    tty.sees("a then Enter always here")
    # The choice is gone.
    tty.answer(ENTER)
    tty.sees("That key did nothing")
    assert not (tmp_path / "project" / "a.txt").exists()
    assert not (tmp_path / "nca" / "config.toml").exists()
    tty.answer("a")
    tty.sees("Enter always here")
    tty.answer(ENTER)
    tty.sees("Written.")
    assert "a.txt" in (tmp_path / "nca" / "config.toml").read_text()


def test_a_long_change_is_shown_to_its_end_before_the_answer(start: Callable[..., Tty], tmp_path: Path) -> None:
    tty = start(write("a.txt", "".join(f"line {number}\n" for number in range(250))), "Written.")
    tty.line("write it")
    tty.sees("m shows more")
    tty.answer("y")
    tty.sees("Enter once, with the part not shown")
    tty.answer("m")
    tty.sees("+line 190")
    assert not (tmp_path / "project" / "a.txt").exists()
    tty.answer("m")
    tty.sees("+line 249")
    tty.answer("y")
    tty.sees("Written.")


def test_a_line_typed_while_tools_run_reaches_the_running_turn(start: Callable[..., Tty], tmp_path: Path) -> None:
    (tmp_path / "project" / "PAUSE").write_text("PAUSE")
    look = {"tool": "list_directory", "arguments": {"path": "."}}
    tty = start(look, "Heard.", "Three.")
    tty.line("PAUSE look")
    tty.sees("Thinking")
    tty.send("rather in b\r/effort low\rthird\r")
    whole = tty.sees("Heard.")
    assert "› rather in b\n" in whole
    # A command, and what stands behind it, is for the prompt.
    tty.sees("Reasoning: low")
    tty.sees("Three.")
    tty.line("exit")
    tty.ends()
    with Store.open(tmp_path / "store.db") as store, store.open_session(store.list()[0].id, read_only=True) as session:
        roles = [
            (entry.message.role, entry.message.text) for entry in session.log.entries() if entry.message.role != "tool"
        ]
    assert [text for role, text in roles if role == "user"] == ["PAUSE look", "rather in b", "third"]
    assert [role for role, _ in roles] == ["user", "assistant", "user", "assistant", "user", "assistant"]


async def test_permissions_lists_rules_of_other_programs_with_their_file(tmp_path: Path) -> None:
    file = ".claude/settings.json"
    rules = (restricting("deny", "Read(./.env)", file, tmp_path), restricting("ask", "Task(x)", file, tmp_path))
    with a_stage(tmp_path, held=rules) as stage:
        text = " ".join((await stage.command("/permissions")).split())
        assert "1 deny Read(./.env) here .claude/settings.json" in text
        assert "2 ask Task(x) (not clear, so nca asks) here .claude/settings.json" in text
        with pytest.raises(UsageError, match=r"Rule 1 is in \.claude/settings\.json"):
            await stage.command("/permissions remove 1")


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
    assert "pass --allow write_file" in asides.getvalue().replace("'", "")
    assert "--permission accept-edits" in asides.getvalue()


def test_plain_lines_say_too_that_a_call_was_not_made() -> None:
    asides = io.StringIO()
    draw = PlainDraw(io.StringIO(), asides, {})
    draw.on_event(ToolStarted("c1", "write_file", "{}", "write a.txt"))
    draw.on_event(ApprovalGiven("c1", "write_file", "stopped"))
    assert asides.getvalue() == "Tool failed: write a.txt, not made\n"
