"""The texts that ask for a summary are package data and take their one number."""

from __future__ import annotations

import pytest

from nca.context.prompts import prompt


@pytest.mark.parametrize("name", ["detailed", "bullets"])
def test_a_prompt_loads_and_takes_its_length(name: str) -> None:
    text = prompt(name).format(max_words=123)
    assert "123 words" in text
    assert "{" not in text


def test_the_nine_sections_in_their_order() -> None:
    headings = [line for line in prompt("detailed").splitlines() if line.startswith("### ")]
    assert headings == [
        "### 1. Goal and intent",
        "### 2. Constraints and rules the user set",
        "### 3. Decisions and findings",
        "### 4. Key concepts",
        "### 5. Files and code",
        "### 6. Errors and fixes",
        "### 7. Pending and done",
        "### 8. Current work",
        "### 9. Next step",
    ]


def test_an_unknown_prompt_is_a_missing_file() -> None:
    with pytest.raises(FileNotFoundError):
        prompt("poem")
