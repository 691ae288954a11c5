"""The trust question shows every setting whole, and "yes" counts only after the end was seen."""

from __future__ import annotations

import json
import re
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nca.cli.early_questions import setting_lines
from nca.config.projects import TrustRequest
from tests.cli.command import environment
from tests.terminal.tty import Tty
from tests.testing.forked_tty import ForkedTty

NEXT, QUESTION = "Enter shows the next ones", "y or n:"


class Place:
    """A project whose hooks leave a mark when they run."""

    def __init__(self, path: Path) -> None:
        self.home, self.project = path, path / "project"
        (self.project / ".claude").mkdir(parents=True)
        self.store = path / "nca" / "data" / "trust.json"

    def servers(self, **servers: Any) -> None:
        (self.project / ".mcp.json").write_text(json.dumps({"mcpServers": servers}))

    def hooks(self, *commands: str) -> None:
        groups = [{"hooks": [{"type": "command", "command": command}]} for command in commands]
        (self.project / ".claude" / "settings.json").write_text(json.dumps({"hooks": {"Stop": groups}}))

    def start(self, *words: str, **more: str) -> Tty:
        env = environment(self.home, OPENAI_API_KEY="k", **more)
        return ForkedTty(["nca", *words], environment=env, cwd=self.project)

    @property
    def is_trusted(self) -> bool | None:
        projects = json.loads(self.store.read_text())["projects"] if self.store.exists() else {}
        return next((one["is_trusted"] for one in projects.values()), None)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def leave(tty: Tty) -> None:
    tty.sees("/help")
    tty.settle()
    tty.send("\x04")
    assert tty.ends() == 0


def joined(tty: Tty) -> str:
    """What was shown, with folded rows joined again and without the lines between two pages."""
    rows = [row for row in tty.text().split("\n") if NEXT not in row]
    return re.sub(r"\n↪ ", "", "\n".join(rows))


def test_a_person_who_said_no_is_asked_again_when_they_like(place: Place) -> None:
    """Nothing said how to trust a project for good after a no."""
    place.servers(one={"command": "x"})
    for answer, is_trusted in (("n", False), ("y", True)):
        tty = place.start("config", "trust")
        tty.sees(QUESTION)
        tty.line(answer)
        tty.sees("They are trusted until they change." if is_trusted else "They are not trusted.")
        assert tty.ends() == 0
        assert place.is_trusted is is_trusted


def test_a_second_server_and_the_end_of_a_long_hook_are_shown(place: Place) -> None:
    place.servers(one={"command": "x", "args": ["y" * 700]}, two={"command": "touch", "args": ["mark"]})
    place.hooks("z" * 900 + " ; touch mark")
    tty = place.start()
    tty.sees(QUESTION)
    shown = joined(tty)
    assert "mcp.servers.two" in shown
    assert 'args = ["mark"]' in shown
    assert f'command = "{"z" * 900} ; touch mark"' in shown
    assert "more characters" not in shown
    tty.line("n")
    leave(tty)
    assert place.is_trusted is False


def shows(tty: Tty, page: int) -> bool:
    """Whether so many pages are there, or the end."""
    return QUESTION in tty.text() or tty.text().count(NEXT) == page


@pytest.mark.parametrize("more", [{}, {"TERM": "dumb"}])
def test_a_yes_before_the_end_is_no_answer(place: Place, more: dict[str, str]) -> None:
    place.servers(big={"command": "x", "args": ["a" * 10_000, "THE END"]})
    place.hooks(*(f"echo {number}" for number in range(30)), "touch last")
    tty = place.start(**more)
    for page in count(1):
        tty.until(partial(shows, tty, page))
        tty.settle()
        if QUESTION in tty.text():
            break
        assert place.is_trusted is None
        tty.line("y")
    assert page > 5
    shown = joined(tty)
    assert f'args = ["{"a" * 10_000}", "THE END"]' in shown
    assert 'command = "touch last"' in shown
    assert place.is_trusted is None
    tty.line("y")
    leave(tty)
    assert place.is_trusted is True


def test_a_long_list_can_be_refused_at_once(place: Place) -> None:
    place.hooks(*(f"echo {number}" for number in range(40)))
    tty = place.start()
    tty.sees(NEXT)
    tty.line("n")
    leave(tty)
    assert place.is_trusted is False


@pytest.mark.parametrize(
    ("hidden", "shown"),
    [
        ("\u200b", "⟨U+200B⟩"),
        ("\u202e", "⟨U+202E⟩"),
        ("\u2066", "⟨U+2066⟩"),
        ("\u3164", "⟨U+3164⟩"),
        ("\ufe0f", "⟨U+FE0F⟩"),
        ("\U000e0041", "⟨U+E0041⟩"),
        ("\u00ad", "⟨U+00AD⟩"),
        ("e\u0301", "⟨U+0301⟩"),
        ("\u0430", "⟨U+0430⟩"),
        ("\u0441", "⟨U+0441⟩"),
        ("\x1b[2J", "\\u001b[2J"),
        ("\r", "\\r"),
        ("\n", "\\n"),
    ],
)
def test_what_cannot_be_seen_is_written_out(hidden: str, shown: str) -> None:
    what = TrustRequest(Path("/p"), (("hooks", [{"event": "Stop", "command": f"curl{hidden}l"}]),))
    lines = list(setting_lines(what))
    assert shown in lines[-1]
    assert not any(hidden in line for line in lines)


_TEXTS = st.text(st.characters(codec="utf-8"), max_size=8) | st.sampled_from(["a", "\u0430", "\u200b", '"', "⟨U+0061⟩"])
_TABLES = _TEXTS.map(lambda text: {"event": "Stop", "command": text})


@given(st.lists(_TABLES, min_size=1, max_size=3), st.lists(_TABLES, min_size=1, max_size=3))
def test_settings_that_differ_look_different(one: list[dict[str, str]], other: list[dict[str, str]]) -> None:
    def shown(hooks: list[dict[str, str]]) -> list[str]:
        return list(setting_lines(TrustRequest(Path("/p"), (("hooks", hooks),))))

    assert (shown(one) == shown(other)) is (one == other)
    assert all("\n" not in line for line in shown(one))


def test_a_session_that_is_not_kept_is_not_said_to_be_resumed(place: Place) -> None:
    tty = place.start(NCA_SESSION__PERSIST="false")
    tty.sees("/help")
    tty.settle()
    shown = " ".join(tty.text().split())
    assert "This session is not kept: session.persist is off (environment NCA_SESSION__PERSIST)." in shown
    assert "resumes this session" not in shown
    tty.send("\x04")
    assert tty.ends() == 0
    assert "To continue this session" not in tty.text()


def test_at_the_start_it_is_said_what_waits_and_what_holds(place: Place) -> None:
    settings = {"permissions": {"deny": ["Read(./.env)", "Bash(rm:*)", "Task(x)"], "ask": ["Bash(git push:*)"]}}
    (place.project / ".claude" / "settings.json").write_text(json.dumps(settings))
    (place.project / ".nca").mkdir()
    (place.project / ".nca" / "config.toml").write_text("session.persist = false\n")
    tty = place.start()
    tty.sees(QUESTION)
    assert "session.persist = false" in tty.text()
    tty.line("n")
    tty.sees("/help")
    tty.settle()
    shown = " ".join(tty.text().split())
    assert "Settings of this project are not used, as you decided: session.persist" in shown
    assert "2 deny rules and 1 ask rule of .claude/settings.json hold here." in shown
    assert ".claude/settings.json: Task(x) is not clear to nca" in shown
    assert "resumes this session" in shown
    tty.command("/permissions")
    tty.sees("Bash(rm:*)")
    tty.send("\x04")
    assert tty.ends() == 0
