"""Front matter as people write it."""

from __future__ import annotations

import pytest

from nca.tools.skill_places import front_fields, front_line, split_front
from nca.tools.tool import ToolError


@pytest.mark.parametrize(
    ("front", "name", "text"),
    [
        ("description: Plain words\n", "description", "Plain words"),
        ("description: Use it for: PDFs, and 'forms'\n", "description", "Use it for: PDFs, and 'forms'"),
        ("description: >\n  Over two\n  lines: yes\n", "description", "Over two lines: yes"),
        ('description: "Quoted: words"\nlicense: MIT: see file\n', "description", "Quoted: words"),
        ("argument-hint: [branch] [words]\n", "argument-hint", "[branch] [words]"),
        ("argument-hint: [branch]\n", "argument-hint", "[branch]"),
        ("description: @mention first\n", "description", "@mention first"),
        ("name: 7\n", "name", "7"),
        ("metadata:\n  a: b\n", "metadata", ""),
        ("name: false\n", "name", ""),
        ("other: x\n", "name", ""),
    ],
)
def test_fields_are_read_as_they_were_meant(front: str, name: str, text: str) -> None:
    assert front_line(front_fields(front.replace("\n", "\r\n")), name) == text
    assert front_line(front_fields(front), name) == text


@pytest.mark.parametrize("front", ["just words\n", "- a\n- b\n", "a: 'open\n b: c", "&a [*a]\n"])
def test_what_is_no_list_of_fields_is_refused(front: str) -> None:
    with pytest.raises(ToolError, match="not valid YAML"):
        front_fields(front)


def test_a_text_is_split_behind_its_front_matter() -> None:
    assert split_front("---\nname: a\n---\nBody\n---\n") == ("name: a\n", "Body\n---\n")
    assert split_front("No front matter\n---\n") == (None, "No front matter\n---\n")
    assert split_front("---\nname: a\n") == (None, "---\nname: a\n")
