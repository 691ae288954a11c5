"""What differs only in white space at line ends is found, and nothing but it is replaced."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nca.tools.files.replace import replaced
from nca.tools.files.text_file import TextFile
from nca.tools.tool import ToolError

BLANKS = st.text(" \t", max_size=2)
LINES = st.lists(st.tuples(st.text("ab ", max_size=3).map(str.rstrip), BLANKS, BLANKS), min_size=1, max_size=6)


@given(LINES, st.data())
def test_any_white_space_at_line_ends_is_forgiven_where_one_place_matches(
    lines: list[tuple[str, str, str]], data: st.DataObject
) -> None:
    first = data.draw(st.integers(0, len(lines) - 1))
    last = data.draw(st.integers(first, len(lines) - 1))
    text = "".join(f"{line}{blanks}\n" for line, blanks, _ in lines)
    old = "".join(f"{line}{blanks}\n" for line, _, blanks in lines[first : last + 1])
    bare, wanted = ["".join(f"{line}\n" for line, *_ in some) for some in (lines, lines[first : last + 1])]
    try:
        done = replaced(TextFile(text), old, "NEW\n", "f", everywhere=False)
    except ToolError:
        assert bare.count(wanted) != 1 or not wanted.strip()
        return
    if done.is_forgiven:
        assert [line.rstrip() for line in done.text.split("\n")] == bare.replace(wanted, "NEW\n").split("\n")
    else:
        assert done.text == text.replace(old, "NEW\n")
