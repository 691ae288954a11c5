"""The texts that ask for a summary are package data and take their one number."""

from __future__ import annotations

import pytest

from nca.context.summary import prompt, without_pending


@pytest.mark.parametrize("name", ["detailed", "bullets"])
def test_a_prompt_loads_and_takes_its_length(name: str) -> None:
    text = prompt(name).format(max_words=123)
    assert "123 words" in text
    assert "{" not in text


def test_the_nine_sections_in_their_order() -> None:
    headings = [line for line in prompt("detailed").splitlines() if line.startswith("### ")]
    assert headings == [
        "### Pending and next step",
        "### Constraints and rules the user set",
        "### Decisions and findings",
        "### Current work",
        "### Goal and intent",
        "### Files and code",
        "### Errors and fixes",
        "### Key concepts",
        "### Done",
    ]


def test_two_of_the_sections_speak_of_the_moment_of_the_prose() -> None:
    headings = [line for line in prompt("detailed").splitlines() if line.startswith("### ")]
    prose = "\n".join(f"{heading}\n- a line" for heading in headings)
    left = [line for line in without_pending(prose).splitlines() if line.startswith("### ")]
    assert set(headings).difference(left) == {"### Pending and next step", "### Current work"}


def test_an_unknown_prompt_is_a_missing_file() -> None:
    with pytest.raises(FileNotFoundError):
        prompt("poem")
