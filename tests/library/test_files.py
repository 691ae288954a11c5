"""Tool outputs within their limits, and files within a shared budget."""

from __future__ import annotations

import os
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, get_args

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import nca
from nca.library.files import Direction

LONG = "".join(f"line {number} of the output\n" for number in range(5_000))


def test_a_short_output_stays() -> None:
    assert nca.truncate_tool_output("done\n") == nca.TruncatedOutput("done\n", False, None, 5)
    assert nca.truncate_tool_output("") == nca.TruncatedOutput("", False, None, 0)


def test_a_long_output_keeps_both_ends_and_says_so() -> None:
    cut = nca.truncate_tool_output(LONG)
    assert cut.truncated
    assert cut.saved_path is None
    assert cut.original_size == len(LONG)
    body, _, notice = cut.content.rpartition("\n")
    assert notice == f"[Output truncated from {len(LONG)} bytes to {len(body.encode())} bytes]"
    assert body.startswith("line 0 ")
    assert body.endswith("line 4999 of the output\n") or body.endswith("line 4999 of the output")
    assert len(body) <= 51_200


@pytest.mark.parametrize(("direction", "kept", "gone"), [("head", "line 0 ", "line 4999"), ("tail", "4999", "line 0 ")])
def test_the_direction_says_which_end_stays(direction: Direction, kept: str, gone: str) -> None:
    cut = nca.truncate_tool_output(LONG, max_lines=10, direction=direction)
    assert kept in cut.content
    assert gone not in cut.content
    assert cut.content.count("line ") == 10


@given(st.text(max_size=400), st.integers(1, 200), st.sampled_from(get_args(Direction)))
def test_characters_are_never_split(text: str, most: int, direction: Direction) -> None:
    cut = nca.truncate_tool_output(text, max_bytes=most, direction=direction)
    cut.content.encode("utf-8")
    assert cut.truncated or cut.content == text
    assert "\ufffd" not in cut.content or "\ufffd" in text
    assert len(cut.content.encode()) <= most


@given(st.text(min_size=60, max_size=600), st.integers(1, 500), st.sampled_from(get_args(Direction)))
def test_what_is_added_counts_towards_the_bytes(text: str, most: int, direction: Direction) -> None:
    with TemporaryDirectory() as folder:
        cut = nca.truncate_tool_output(text, max_bytes=most, direction=direction, save_to=folder)
    assert len(cut.content.encode()) <= most
    assert cut.truncated == (len(text.encode()) > most)
    if direction == "tail" and most < 20:
        assert text.endswith(cut.content), "there is no room for what is added"
    if cut.saved_path and most > len(cut.saved_path.encode()) + 120:
        assert cut.content.endswith(f"\n[Full output saved to {cut.saved_path}]")
        assert "[Output truncated from " in cut.content


def test_the_whole_is_saved_and_named(tmp_path: Path) -> None:
    cut = nca.truncate_tool_output(LONG + "🦀\r\n", save_to=tmp_path)
    assert cut.saved_path is not None
    saved = Path(cut.saved_path)
    assert saved.parent == tmp_path
    assert saved.read_bytes() == (LONG + "🦀\r\n").encode()
    assert saved.stat().st_mode & 0o777 == 0o600
    assert cut.content.endswith(f"\n[Full output saved to {saved}]")
    assert nca.truncate_tool_output(LONG + "🦀\r\n", save_to=str(tmp_path)) == cut
    assert len(list(tmp_path.iterdir())) == 1


def test_it_is_saved_as_the_file_that_was_named(tmp_path: Path) -> None:
    place = tmp_path / "new folder" / "whole.txt"
    assert nca.truncate_tool_output(LONG, save_to=place).saved_path == str(place)
    assert place.read_text() == LONG
    assert nca.truncate_tool_output("short", save_to=tmp_path / "none.txt").saved_path is None
    assert not (tmp_path / "none.txt").exists()


def test_where_nothing_can_be_written_it_says_so(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("x")
    with pytest.raises(nca.NcaError, match=r"save_to: '.*whole.txt' cannot be written \(.+\)\.") as refused:
        nca.truncate_tool_output(LONG, save_to=blocked / "whole.txt")
    assert refused.value.exit_code == 1
    with pytest.raises(nca.NcaError, match="cannot be written"):
        nca.truncate_tool_output(LONG, save_to="a\0b")


def test_lone_surrogates_are_replaced() -> None:
    assert nca.truncate_tool_output("a\udfffb").content == "a\ufffdb"


@pytest.mark.parametrize(
    ("window", "used", "answer", "tokens"),
    [(200_000, 50_000, 64_000, 51_600), (200_000, 200_000, 0, 0), (100, 90, 64_000, 0), (1_000, 0, 0, 600)],
)
def test_the_budget_of_files_is_seed_2_s(window: int, used: int, answer: int, tokens: int) -> None:
    assert nca.file_token_budget(window, used, answer) == tokens


def test_its_share_can_be_set() -> None:
    assert nca.file_token_budget(1_000, file_ratio=0.25) == 250


FILES = [
    {"path": "small.txt", "content": "A sentence. " * 30},
    {"path": "large.txt", "content": "Another sentence. " * 3_000, "kind": "text"},
]


def test_files_that_fit_stay_whole() -> None:
    fitted = nca.fit_files(FILES, budget_tokens=100_000)
    assert fitted == [{**file, "truncated": False, "original_size": len(file["content"])} for file in FILES]
    assert "truncated" not in FILES[0]


def test_files_share_a_budget_in_proportion() -> None:
    small, large = nca.fit_files(FILES, budget_tokens=4_000)
    assert small["truncated"]
    assert large["truncated"]
    assert large["kind"] == "text"
    assert len(large["content"]) > 10 * len(small["content"])
    assert f"[File truncated from {len(FILES[1]['content'])} bytes to" in large["content"]
    assert nca.estimate_tokens(large["content"]) <= 4_000


def test_the_budget_follows_from_the_model() -> None:
    free = nca.available_input_tokens("gpt-4", "openai")
    by_model = nca.fit_files(FILES, model="gpt-4", provider="openai", used_tokens=1_000)
    assert by_model == nca.fit_files(FILES, provider="openai", budget_tokens=int((free - 1_000) * 0.6))
    assert nca.fit_files(FILES, context_window=10_000_000)[1]["truncated"] is False


def test_a_huge_file_shows_its_beginning() -> None:
    (huge,) = nca.fit_files([{"content": "word " * 1_100_000}], budget_tokens=5_000_000)
    assert huge["content"].startswith("word word")
    assert len(huge["content"]) < 2_100
    assert huge["original_size"] == 5_500_000


@settings(max_examples=60)
@given(
    st.lists(st.sampled_from(["", "x", "word " * 100, "日本語。" * 80, "🦀" * 50, "One. Two! " * 60]), max_size=12),
    st.integers(0, 1_500),
    st.sampled_from(["", "anthropic"]),
)
@example(["x y z"] * 50, 180, "mistral")
def test_together_they_never_cost_more_than_the_budget(texts: list[str], most: int, provider: str) -> None:
    files = [{"path": f"{n}.txt", "content": text} for n, text in enumerate(texts)]
    fitted = nca.fit_files(files, budget_tokens=most, provider=provider)
    assert [file["path"] for file in fitted] == [file["path"] for file in files]
    assert sum(nca.estimate_tokens(file["content"], provider=provider) for file in fitted) <= most
    model = f"{provider}/some-model" if provider else ""
    empty = nca.check_context_budget([], current_prompt="x", model=model).breakdown["attachments"]
    check = nca.check_context_budget([], current_prompt="x", model=model, files=fitted)
    assert check.breakdown["attachments"] - empty <= most
    for before, after in zip(texts, fitted, strict=True):
        assert after["truncated"] == (after["content"] != before)
        assert after["original_size"] == len(before.encode())


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: nca.truncate_tool_output(b"x"), "text: expected text, found a bytes"),  # type: ignore[arg-type]
        (
            lambda: nca.truncate_tool_output("x", max_bytes=0),
            "max_bytes = 0 is not valid; valid: a whole number from 1",
        ),
        (lambda: nca.truncate_tool_output("x", max_lines=-1), "max_lines = -1 is not valid"),
        (lambda: nca.truncate_tool_output("x", direction="middle"), "direction = 'middle' is not valid; valid: both"),  # type: ignore[arg-type]
        (lambda: nca.truncate_tool_output("x", save_to=3), "save_to: expected a path, found a number"),  # type: ignore[arg-type]
        (lambda: nca.file_token_budget(-1), "context_window = -1 is not valid"),
        (lambda: nca.file_token_budget(100, -1), "used_tokens = -1 is not valid"),
        (
            lambda: nca.file_token_budget(100, file_ratio=1.5),
            "file_ratio = 1.5 is not valid; valid: a number from 0 to 1",
        ),
        (lambda: nca.file_token_budget(100, file_ratio=float("nan")), "file_ratio = nan is not valid"),
        (lambda: nca.fit_files("a.txt"), "files: expected a list of objects, found text"),  # type: ignore[arg-type]
        (lambda: nca.fit_files([{"path": "a"}]), "files, entry 1: content: expected text, found nothing"),
        (lambda: nca.fit_files([{"content": "a", "path": 3}]), "files, entry 1: path: expected text"),
        (lambda: nca.fit_files(FILES, budget_tokens=-1), "budget_tokens = -1 is not valid"),
        (lambda: nca.fit_files(FILES, context_window=-1), "context_window = -1 is not valid"),
    ],
)
def test_bad_arguments_are_named(call: Any, said: str) -> None:
    with pytest.raises(nca.UsageError) as refused:
        call()
    assert said in str(refused.value)


def test_a_path_may_be_any_path_like(tmp_path: Path) -> None:
    class Place(os.PathLike[str]):
        def __fspath__(self) -> str:
            return str(tmp_path / "x.txt")

    assert nca.truncate_tool_output(LONG, save_to=Place()).saved_path == str(tmp_path / "x.txt")
