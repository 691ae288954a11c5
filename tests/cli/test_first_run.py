"""The lines above the first prompt."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from nca.cli.chat import banner
from nca.config.schema import ModelSettings
from nca.models.catalog import describe
from nca.models.choose import Choice, choose
from tests.cli.command import environment, nca
from tests.testing.forked_tty import ForkedTty


@pytest.mark.parametrize(
    ("name", "api_base", "is_assumed"),
    [
        ("openai/of-my-own", "http://127.0.0.1:1/v1", True),
        ("openai/of-my-own", "", True),
        ("openai/gpt-4o", "http://127.0.0.1:1/v1", False),
        ("of-nobody", "", True),
    ],
)
def test_a_window_that_is_a_guess_is_said_to_be_one(name: str, api_base: str, is_assumed: bool) -> None:
    choice = Choice(name, api_base, why="set by flag --model")
    for is_first in (True, False):
        first = banner(choice, describe(name), is_first=is_first, reserve_tokens=32_000)[0]
        assert f"nca · {name} · window 128,000 tokens" in first
        assert ("(assumed)" in first) == is_assumed


def test_a_later_start_says_why_where_the_endpoint_lists_no_models() -> None:
    at = ModelSettings(api_base="http://127.0.0.1:1/v1")
    lines = banner(choose(at, {}), describe("openai/gpt-4o"), is_first=False, reserve_tokens=32_000)
    assert lines[1] == "Why this model: the endpoint http://127.0.0.1:1/v1 is set (model.api_base); it lists no models."


def test_the_command_for_every_directory_holds_in_every_directory(tmp_path: Path) -> None:
    lines = banner(Choice("a", why="found"), describe("a"), is_first=True, reserve_tokens=32_000)
    found = re.search(r"Everywhere: nca (.*) NAME\.", " ".join(lines))
    assert found
    (here := tmp_path / "here").mkdir()
    (there := tmp_path / "there").mkdir()
    nca(*found[1].split(), "openai/mine", home=tmp_path, cwd=here)
    assert "openai/mine" in nca("config", "get", "model.name", home=tmp_path, cwd=there).stdout


def test_the_banner_says_that_nothing_is_compacted_by_itself() -> None:
    facts = describe("openai/gpt-4o")
    first = banner(Choice(facts.name, why=""), facts, is_first=False, reserve_tokens=32_000, auto="off")[0]
    window = "window 128,000 tokens"
    assert first == f"nca · openai/gpt-4o · {window} · auto-compaction off · /help"


@pytest.mark.parametrize("words", [("run", "hi"), ("loop",), ("loop", "-m", "embedded/smollm2-135m")])
def test_nothing_is_downloaded_where_nobody_is_asked(tmp_path: Path, words: tuple[str, ...]) -> None:
    """A chat in a pipe took the small model, and began to download it."""
    done = nca(*words, home=tmp_path, stdin="hi\n")
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (3, "", 1)
    says = "The weights of smollm2-135m are not installed." if "-m" in words else "No model can answer: no API key, "
    assert done.stderr.startswith(f"nca: {says}")
    assert "nca models get" in done.stderr
    assert not (tmp_path / "nca" / "data" / "models").exists()


def test_the_choices_of_the_first_question_wrap_below_their_text(tmp_path: Path) -> None:
    with ForkedTty(["nca"], columns=60, environment=environment(tmp_path), cwd=tmp_path) as tty:
        tty.sees("3  I have an API key")
        _, *rows = [row for row in tty.shown() if row]
        choices = rows[[row.startswith("  1  ") for row in rows].index(True) :]
        assert all(row.startswith(("  1  ", "  2  ", "  3  ", "     ")) for row in choices[:-1])
