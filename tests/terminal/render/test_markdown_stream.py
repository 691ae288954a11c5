"""Streaming Markdown: independent of the chunks, each block drawn once, safe, and linear."""

from __future__ import annotations

import io
import itertools
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from nca.terminal.render.code_highlighter import code_theme
from nca.terminal.render.markdown import TAIL_CHARS, MarkdownStream, render_block
from nca.terminal.render.markdown_blocks import MAX_BLOCK_CHARS, MAX_LINE_CHARS, Block, BlockSplitter
from nca.terminal.render.theme import plain_console, screen_console

DOCUMENT = """# A title

Some *text* with `code` and a [link](https://example.org/x?y=1), <https://auto.example> and ![a picture](http://i.example/p.png).
List<String> stays, so does <b>html</b>.

- one
- two

  more of two
  ```py
  x = 1

  y = 2
  ```
- three

1. first
2. second

| a | b |
|---|--:|
| 1 | 2 |

> a quote
> of two lines

```python
def f(x):

    return "a" + x  # why
```
after the fence
~~~
``` inside
~~~
"""

PIECES = [
    *(
        "word ",
        "*em* ",
        "\n",
        "\n\n",
        "```",
        "```py\n",
        "~~~\n",
        "- item\n",
        "  indented\n",
        "1. x\n",
        "# h\n",
        "> q\n",
    ),
    *("| a | b |\n", "|---|---|\n", "[l](http://u)", "`c`", "x" * 300, "\r\n", "\x1b[31m", "\t", "    code\n", "<b>"),
    "&#x202e;",
]
pieces = st.sampled_from(PIECES)


def drawn(chunks: list[str], width: int = 80) -> str:
    stream = MarkdownStream(code_theme("auto"))
    console = plain_console({"COLUMNS": str(width)})
    with console.capture() as captured:
        for chunk in chunks:
            for renderable in stream.feed(chunk):
                console.print(renderable)
            if len(chunks) < 50:
                Console(file=io.StringIO(), width=width).print(stream.tail)
        for renderable in stream.finish():
            console.print(renderable)
    return captured.get()


def cut(text: str, places: list[int]) -> list[str]:
    edges = [0, *sorted(place % (len(text) + 1) for place in places), len(text)]
    return [text[start:end] for start, end in itertools.pairwise(edges)]


@given(st.lists(pieces, max_size=40), st.lists(st.integers(0, 10_000), max_size=12))
@settings(max_examples=150, deadline=None)
def test_chunks_make_no_difference(parts: list[str], places: list[int]) -> None:
    text = "".join(parts)
    assert drawn(cut(text, places)) == drawn([text])


def test_one_character_at_a_time() -> None:
    assert drawn(list(DOCUMENT)) == drawn([DOCUMENT])


def test_a_document_is_drawn_as_a_person_expects() -> None:
    lines = [line.rstrip() for line in drawn([DOCUMENT], width=130).splitlines()]
    assert lines[:2] == ["A title", ""]
    assert lines[2].startswith("Some text with code and a link (https://example.org/x?y=1), https://auto.example and")
    text = "\n".join(lines)
    for expected in (
        "image: a picture (http://i.example/p.png)",
        "List<String> stays, so does <b>html</b>.\n\n • one",
        "x = 1\n\n   y = 2",
        " 1. first\n 2. second",
        "▌ a quote",
        'def f(x):\n\n    return "a" + x  # why',
        "``` inside",
    ):
        assert expected in text
    assert "\n\n\n" not in text


# What Markdown itself hides is left out: the word behind a fence, and cells beyond a table's head.
@given(st.lists(pieces.filter(lambda piece: piece != "```" and "|" not in piece), max_size=60))
@settings(max_examples=100, deadline=None)
def test_no_word_is_lost(parts: list[str]) -> None:
    text = "".join(parts)
    assert drawn([text], width=2_000).count("word") == text.count("word")


@pytest.mark.parametrize("mark", ["4.", "2024.", "1)", "#", "+", "-", "*", "> ", "##"])
def test_marks_alone_are_an_answer(mark: str) -> None:
    assert drawn([mark]).strip()
    assert "two" in drawn([f"1. one\n2.\n3. two\n\n{mark}"])


def test_an_item_without_a_text_has_its_mark() -> None:
    assert drawn(["1. one\n2.\n3. three\n"]).split() == ["1.", "one", "2.", "3.", "three"]
    assert drawn(["- one\n-\n- three\n"]).split() == ["•", "one", "•", "•", "three"]


def test_a_name_between_underscores_stays_one() -> None:
    said = "In iniconfig/__init__.py, __name__ is __strong words__ and **`__all__`**, not ____."
    assert drawn([said]).strip() == "In iniconfig/__init__.py, __name__ is strong words and __all__, not ____."


@pytest.mark.parametrize(
    "text", ["x" * 100_000, "word " * 20_000, "`a` *b*\n" * 15_000, "```\n" + "line\n" * 30_000, "- item\n" * 20_000]
)
def test_large_answers_leave_in_bounded_blocks(text: str) -> None:
    splitter = BlockSplitter()
    blocks: list[Block] = []
    for start in range(0, len(text), 997):
        blocks += splitter.feed(text[start : start + 997])
        assert splitter.tail is None or len(splitter.tail.text) <= MAX_BLOCK_CHARS + 2 * MAX_LINE_CHARS
    blocks += splitter.finish()
    assert max(len(block.text) for block in blocks) <= MAX_BLOCK_CHARS + 2 * MAX_LINE_CHARS
    letters = re.sub(r"\s|`{3}", "", text)
    assert re.sub(r"\s", "", "".join(block.text for block in blocks)) == letters


def test_the_tail_is_bounded_and_shows_an_open_fence_as_code() -> None:
    stream = MarkdownStream(code_theme("auto"))
    assert stream.feed("```python\n" + "value = 1\n" * 50 + "value = 2")
    console = screen_console()
    with console.capture() as captured:
        console.print(stream.tail)
    assert re.fullmatch(r"value = \x1b\[[0-9;]*m2\x1b\[0m\n", captured.get())
    stream.feed("y" * 50_000)
    with console.capture() as captured:
        console.print(stream.tail)
    assert len(captured.get()) <= 2 * TAIL_CHARS


def test_entities_cannot_bring_controls_back() -> None:
    shown = drawn(["a&#x202e;b &#13;c [x](http://e.example/&#x202e;d) `&#x9b;`\n\n```\n&#27;[31m\n```\n"])
    assert re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", shown) is None


@pytest.mark.parametrize("width", [1, 2, 3, 5, 10, 17, 25])
def test_narrow_windows_lose_nothing(width: int) -> None:
    shown = re.sub(r"[\s▌─]", "", drawn([DOCUMENT], width=width))
    for word in ("https://example.org/x?y=1", "moreoftwo", "second", "aquote", "x=1", "afterthefence"):
        assert word in shown


def test_code_leaves_line_by_line_while_it_grows() -> None:
    stream = MarkdownStream(code_theme("auto"))
    console = plain_console({})
    with console.capture() as captured:
        for number in range(200):
            for renderable in stream.feed(f"value_{number} = 1\n" if number else "```python\n"):
                console.print(renderable)
            assert stream.tail is None
        stream.feed("value_200 = ")
        console.print(stream.tail)
    assert captured.get().split() == [part for n in range(1, 201) for part in (f"value_{n}", "=", "1")][:-1]


def test_code_in_a_list_leaves_line_by_line_too() -> None:
    stream = MarkdownStream(code_theme("auto"))
    assert stream.feed("Steps:\n\n1. Do\n   ```sh\n")
    assert stream.feed("   ls\n")
    shown = drawn(["1. Do\n   ```sh\n   ls\n\n     more\n   ```\n\n   - a part\n     - of it\n2. Then\n\nEnd."])
    assert shown.split("\n") == [
        " 1. Do",
        "    ls",
        "",
        "      more",
        "     • a part",
        "        • of it",
        " 2. Then",
        "",
        "End.",
        "",
    ]


def test_a_fence_that_is_about_to_close_is_not_code() -> None:
    stream = MarkdownStream(code_theme("auto"))
    stream.feed("```py\nx\n``")
    assert stream.tail is None


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("1. a\n1. b\n1. c\n", [" 1. a", " 2. b", " 3. c"]),
        ("".join(f"{number}. x\n" for number in range(7, 27)), [f"{number:>2}. x" for number in range(7, 27)]),
        ("1. x\n" * 20, [f"{number:>2}. x" for number in range(1, 21)]),
        ("2. a\n9. b\n9. c\n4. d\n", [" 2. a", " 9. b", "10. c", " 4. d"]),
        ("in\n2023. a\n", ["in 2023. a"]),
        ("- a\n\n- b\n\n1. c\n", [" • a", " • b", "", " 1. c"]),
        ("- ```js\n  let x\n  ```\n- b\n", [" • let x", " • b"]),
        ("[^1]: note\n", ["[^1]: note"]),
        ("see [it][r]\n\n[r]: http://ref.example\n", ["see [it][r]", "", "[r]: http://ref.example"]),
        ("> " * 30 + "deep\n", ["> " * 30 + "deep"]),
        ("- " * 30 + "deep\n", ["- " * 30 + "deep"]),
    ],
)
def test_lists_notes_and_depths(written: str, expected: list[str]) -> None:
    assert [line.rstrip() for line in drawn([written], width=100).splitlines()] == expected


def test_a_table_loses_no_text_and_becomes_lines_where_it_has_no_room() -> None:
    table = "| Setting | What it does |\n|---|---|\n| context.compact_threshold | when *it* begins |\n| other | |\n"
    assert "context.compact_threshold  when it begins" in drawn([table])
    folded = drawn([table], width=34)
    assert "…" not in folded
    assert "context.compact_" in folded
    assert [line.rstrip() for line in drawn([table], width=18).splitlines()] == [
        "Setting:",
        "context.compact_th",
        "reshold",
        "What it does: when",
        "it begins",
        "",
        "Setting: other",
        "What it does:",
    ]


def test_a_table_larger_than_a_block_goes_on_under_its_heading() -> None:
    head, row = "| one | two |\n|---|---|\n", "| a cell | another |\n"
    stream = MarkdownStream(code_theme("auto"))
    count = 2 * MAX_BLOCK_CHARS // len(row)
    shown = drawn([head + row * count])
    assert shown.count("another") == count
    assert "| a cell" not in shown
    assert 2 <= shown.count("one") <= 3
    stream.feed(head + row * (TAIL_CHARS // 10))
    console = plain_console({})
    with console.capture() as captured:
        console.print(stream.tail)
    assert captured.get().split()[:2] == ["one", "two"]


def test_code_keeps_its_lines_exactly() -> None:
    code = "\n\n  indented\n\ttab\n\nlast   "
    console = Console(file=io.StringIO(), width=80, tab_size=8)
    with console.capture() as captured:
        console.print(render_block(Block("code", code, "python"), code_theme("auto")))
    assert [line.rstrip() for line in captured.get().split("\n")] == [
        "",
        "",
        "  indented",
        "        tab",
        "",
        "last",
        "",
    ]


def test_the_lines_of_a_quotation_stay_and_those_of_a_paragraph_flow() -> None:
    lines = [line.strip() for line in drawn(["> Open daily\n> 9 to 5\n\nA line\nand its rest\n"]).splitlines()]
    assert [line for line in lines if line] == ["▌ Open daily", "▌ 9 to 5", "A line and its rest"]


@pytest.mark.parametrize("width", [20, 40, 80])
def test_a_line_of_code_that_is_too_wide_goes_on_indented(width: int) -> None:
    call = "    return one_long_name(first_argument, second_argument, third_argument, 日本語日本語日本語)"
    rows = drawn([f"```python\ndef f():\n{call}\n```\n\n- In a list:\n  ```\n  {call}\n  ```\n"], width).split("\n")
    alone, in_list = rows[1 : rows.index("")], rows[rows.index(" • In a list:") + 1 : -1]
    for block, left in ((alone, 4), (in_list, 7)):
        assert [len(row) - len(row.lstrip()) for row in block] == [left, *[left + 2] * (len(block) - 1)]
        assert "".join("".join(block).split()) == "".join(call.split())
        assert len(block) > 1
        assert max(map(cell_len, block)) <= width


@pytest.mark.parametrize("piece", [1, 7, 999, 30_000])
def test_a_long_paragraph_is_divided_between_its_words(piece: int) -> None:
    words = [f"{'w' * (number * 7 % 40)}{number}" for number in range(1_500)]
    text, splitter = " ".join(words), BlockSplitter()
    blocks = [block for at in range(0, len(text), piece) for block in splitter.feed(text[at : at + piece])]
    blocks += splitter.finish()
    assert len(blocks) > 2
    assert "".join(block.text for block in blocks) == text
    assert [word for block in blocks for word in block.text.split()] == words
