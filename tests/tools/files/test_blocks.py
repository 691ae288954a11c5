"""Source text as blocks: nothing of it is lost, and each part has its name."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nca.tools.files.blocks import Block, indented, lines_of, split

TEXT = """

\x20\x20
x = 1
def f(a):
    return a
class A:
    def g(self):
        pass
}
{
@d
[tool]
# Title
    'k': 1,
if x:
else:
	deep
   odd
function h() {
import os
'''"""
LINES = st.sampled_from(TEXT.split("\n"))


@given(st.lists(LINES, max_size=30), st.sampled_from(["a.py", "a.toml", "a.md", "a.js", ""]))
def test_the_blocks_hold_every_line(lines: list[str], filename: str) -> None:
    first = next((at for at, line in enumerate(lines) if line.strip()), len(lines))
    assert lines_of(split(lines, filename)) == lines[first:]


def names(blocks: list[Block]) -> list[object]:
    return [[one.name, *names(one.children)] if one.children is not None else one.name for one in blocks]


@pytest.mark.parametrize(
    ("text", "filename", "expected"),
    [
        ("import os\n\nA = 1\n\n\n@dec\ndef f(\n    a,\n):\n    return a\n", "a.py", ["import os", "A", "f"]),
        ("class A(B):\n    x: int = 1\n\n    async def f(self):\n        y = 2\n", "a.py", [["A", "x", "f"]]),
        ('"""Says\n\ndef no(): pass\n"""\nB = {\n    "k": 1,\n}\n', "a.py", ['"""Says', ["B", "k"]]),
        ("try:\n    a()\nexcept E:\n    b()\nelse:\n    c()\n", "a.py", ["try:"]),
        ("a = 1\n[s]\nb = 2\n\n[[t.u]]\nc = 3\n", "a.toml", ["a", ["[s]", "b"], ["[[t.u]]", "c"]]),
        ("# T\nwords: many\n## U\nmore\n", "a.md", ["# T", "## U"]),
        ('{\n  "a": {\n    "b": 1\n  }\n}\n', "a.json", [["{", ["a", "b"]]]),
        ("class A {\n  f(x) {\n    if (x) {\n    }\n  }\n}\nexport const g = 1;\n", "a.ts", [["A", "f"], "g"]),
        ("func (q *Q) Pop() int {\n\treturn 1\n}\n", "a.go", ["Pop"]),
        ("pub(crate) fn f() -> i32 {\n    1\n}\n#[test]\nfn g() {\n}\n", "a.rs", ["f", "g"]),
        ("int add(int a)\n{\n    return a;\n}\n", "a.c", ["int add(int a)"]),
        ("server:\n  port: 80\n", "a.yaml", [["server", "port"]]),
    ],
)
def test_a_block_has_the_name_of_what_it_defines(text: str, filename: str, expected: list[object]) -> None:
    assert names(split(text.split("\n"), filename)) == expected


def test_lines_are_moved_together() -> None:
    assert indented(["def f():", "    x", "", "  y"], "  ") == ["  def f():", "      x", "", "    y"]
    assert indented(["    a", "      b", "  c"], "") == ["a", "  b", "c"]
