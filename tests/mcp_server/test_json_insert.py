"""An entry is added to JSON with comments, and every other character stays."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nca.mcp_server.json_insert import NotInsertable, appended, inserted, read, removed

ENTRY = {"command": "/bin/nca", "args": ["mcp"]}
PATH = ("mcpServers", "nca")

_scalars = st.none() | st.booleans() | st.integers(-9, 9) | st.floats(-9, 9) | st.text(max_size=6)
_values = st.recursive(
    _scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
)


def test_entries_go_to_the_end_of_an_object() -> None:
    assert inserted("", PATH, {"a": 1}) == '{\n  "mcpServers": {\n    "nca": {\n      "a": 1\n    }\n  }\n}\n'
    assert inserted("{}", ("mcp", "nca"), {}) == '{\n  "mcp": {\n    "nca": {}\n  }\n}'
    assert inserted('{"mcp": {"x": 1}, "y": 2}', ("mcp", "nca"), {"a": [1]}) == (
        '{"mcp": {"x": 1, "nca": {"a": [1]}}, "y": 2}'
    )
    before = '{\r\n\t// mine\r\n\t"mcp": {\r\n\t\t"x": 1, // one\r\n\t\t/* two */\r\n\t},\r\n\t"y": "} // no",\r\n}\r\n'
    after = before.replace("/* two */", '/* two */\r\n\t\t"nca": {}')
    assert inserted(before, ("mcp", "nca"), {}) == after
    before = '{\n  "mcp": {\n    "x": {"a": 1} // one\n  }\n}\n'
    after = '{\n  "mcp": {\n    "x": {"a": 1}, // one\n    "nca": {\n      "b": 2\n    }\n  }\n}\n'
    assert inserted(before, ("mcp", "nca"), {"b": 2}) == after


@given(st.dictionaries(st.text(max_size=4), _values, max_size=4), _values, st.sampled_from([None, 1, 2, "\t"]))
def test_what_was_there_stays(settings: dict[str, object], servers: object, indent: int | str | None) -> None:
    settings["mcpServers"] = servers
    text = json.dumps(settings, indent=indent, ensure_ascii=False)
    if not isinstance(servers, dict):
        with pytest.raises(NotInsertable, match="mcpServers is not an object"):
            inserted(text, PATH, ENTRY)
        return
    servers.pop("nca", None)
    text = json.dumps(settings, indent=indent, ensure_ascii=False)
    written = inserted(text, PATH, ENTRY)
    assert json.loads(written) == {**settings, "mcpServers": {**servers, "nca": ENTRY}}
    left = iter(written)
    assert all(char in left for char in text)
    with pytest.raises(NotInsertable, match="already exists"):
        inserted(written, PATH, ENTRY)


@given(
    st.dictionaries(st.text(max_size=4), _values, max_size=4),
    st.lists(_values, max_size=3) | _values,
    st.sampled_from([None, 1, 2, "\t"]),
)
def test_an_item_goes_to_the_end_of_a_list_and_out_again(
    settings: dict[str, object], items: object, indent: int | str | None
) -> None:
    settings |= {"hooks": {"Stop": items}}
    text = json.dumps(settings, indent=indent, ensure_ascii=False)
    if not isinstance(items, list):
        with pytest.raises(NotInsertable, match=r"hooks\.Stop is not a list"):
            appended(text, ("hooks", "Stop"), ENTRY)
        return
    written = appended(text, ("hooks", "Stop"), ENTRY)
    assert json.loads(written) == {**settings, "hooks": {"Stop": [*items, ENTRY]}}
    out = removed(written, ("hooks", "Stop", len(items)))
    # A list that holds nothing then goes too, with the object that held nothing else.
    gone = {key: value for key, value in settings.items() if key != "hooks"}
    assert json.loads(out) == (settings if items else gone)
    if items:
        assert out == text
    with pytest.raises(NotInsertable, match="is not there"):
        removed(out, ("hooks", "Stop", len(items)))


def test_comments_stay_where_an_entry_goes() -> None:
    text = '{\n  "a": [1, // one\n    2, // two\n    3 // three\n  ], /* b */\n  "b": 2\n}\n'
    assert removed(text, ("a", 2)) == text.replace("2, // two\n    3", "2 // two")
    assert removed(text, ("b",)) == '{\n  "a": [1, // one\n    2, // two\n    3 // three\n  ] /* b */\n}\n'
    assert removed(text, ("a", 0)) == text.replace("1, // one\n    2", "// one\n    2")


_gaps = st.sampled_from(["", " ", "\n", "\n  // {}\n  ", " /* {} */ ", "// {}\n"])


@given(st.lists(_gaps, min_size=6, max_size=6), st.booleans(), st.booleans())
def test_every_comment_stays_when_an_entry_comes_and_goes(gaps: list[str], has_other: bool, is_first: bool) -> None:
    gaps = [gap.format(f"c{place}") for place, gap in enumerate(gaps)]
    hooks = f'"hooks":{gaps[0]}{{{gaps[1]}}}{gaps[2]}'
    other = f'{gaps[3]}"a": 1{gaps[4]}'
    members = ([hooks, other] if is_first else [other, hooks]) if has_other else [hooks]
    text = f"{{{','.join(members)}{gaps[5]}}}\n"
    written = appended(text, ("hooks", "Stop"), ENTRY)
    out = removed(written, ("hooks", "Stop", 0))
    comments = [f"c{place}" for place in range(6) if f"c{place}" in text]
    assert [comment for comment in comments if comment not in out] == []
    assert read(out) in (read(text), {key: value for key, value in read(text).items() if key != "hooks"})


@given(st.text('{}[],:"/* \n\\a1', max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        value = read(text)
    except NotInsertable:
        return
    if isinstance(value, dict) and "mcpServers" not in value:
        assert read(inserted(text, PATH, ENTRY)) == {**value, "mcpServers": {"nca": ENTRY}}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"a": 1', "not whole JSON"),
        ('{"a": 1, "a": 2}', "'a' is there twice"),
        ('{\n"a": nope}', "line 2 is not JSON"),
        ("[1]", "the file is not an object"),
        ("{} {}", "not one JSON value"),
        ("[" * 5_000, "not whole JSON"),
    ],
)
def test_other_texts_are_refused_in_a_few_words(text: str, reason: str) -> None:
    with pytest.raises(NotInsertable, match=reason):
        inserted(text, PATH, ENTRY)
