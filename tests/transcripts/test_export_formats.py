"""The format of an exported session."""

from __future__ import annotations

import pytest

from nca.errors import UsageError
from nca.transcripts.export_formats import format_of


@pytest.mark.parametrize(
    ("asked", "file", "chosen"),
    [
        ([], "-", "markdown"),
        ([], "talk", "markdown"),
        ([], "talk.MD", "markdown"),
        ([], "talk.json", "json"),
        ([], "a.pdf/talk.htm", "html"),
        ([], "talk.v2", "markdown"),
        (["html"], "talk.json", "html"),
        (["json", "json"], "talk.pdf", "json"),
    ],
)
def test_what_was_asked_for_else_what_the_name_says(asked: list[str], file: str, chosen: str) -> None:
    assert format_of(asked, file) == chosen


@pytest.mark.parametrize(
    ("asked", "file", "says"),
    [
        ([], "talk.pdf", r"talk\.pdf: nca does not write \.pdf files; valid: \.md, "),
        (["html", "json"], "talk", "exclude each other"),
        (["docx"], "talk", "'docx' is not valid; valid: markdown, json, jsonl, html"),
    ],
)
def test_what_cannot_be_written_is_refused_with_what_can(asked: list[str], file: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        format_of(asked, file)
