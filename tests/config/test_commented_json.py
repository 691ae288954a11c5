"""JSON with comments: what is between quotes stays, and any text is read or refused."""

from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nca.config.commented_json import NotJson, parsed

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text('ab"\\/*,]}\n'),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text('a"/*,'), inner, max_size=4),
    max_leaves=12,
)


@given(VALUES, st.sampled_from([None, 1, "\t"]))
def test_plain_json_means_what_it_means(value: object, indent: int | str | None) -> None:
    assert parsed(json.dumps(value, indent=indent)) == value


@given(VALUES)
def test_comments_and_last_commas_change_nothing(value: object) -> None:
    lines = json.dumps([value, "end"], indent=1).splitlines()
    commented = "\n".join(f"{line}/* a, */ // ]" for line in lines)
    assert parsed(commented.replace('"end"', '"end",')) == [value, "end"]


@given(st.text('{}[],:"/* \n\\a1', max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(NotJson):
        parsed(text)


@pytest.mark.parametrize(
    "text", ['"' + '\\"' * 500_000, "/*" * 500_000, "{" + " " * 1_000_000, ", " * 500_000, '"' * 1_000_001, "[" * 9_999]
)
def test_a_text_that_never_ends_is_refused(text: str) -> None:
    with pytest.raises(NotJson):
        parsed(text)


@pytest.mark.parametrize("text", ["{} /* open", '{"a": "b', "", "{,}", "[1,,]", "9" * 5_000])
def test_what_is_not_whole_is_not_read(text: str) -> None:
    with pytest.raises(NotJson):
        parsed(text)
