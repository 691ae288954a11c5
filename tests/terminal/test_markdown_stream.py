"""Streaming Markdown: the same whatever the chunks, each block once, safe, and linear."""

from __future__ import annotations

import io
import itertools
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from nca.terminal.code_theme import code_theme
from nca.terminal.markdown import render_block
from nca.terminal.markdown_blocks import MAX_BLOCK_CHARS, MAX_LINE_CHARS, Block, BlockSplitter
from nca.terminal.markdown_stream import TAIL_CHARS, MarkdownStream
from nca.terminal.theme import plain_console, screen_console

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
        for renderable in stream.finish():
            console.print(renderable)
    return captured.get()


def cut(text: str, places: list[int]) -> list[str]:
    edges = [0, *sorted(place % (len(text) + 1) for place in places), len(text)]
    return [text[start:end] for start, end in itertools.pairwise(edges)]


@given(st.lists(pieces, max_size=40), st.lists(st.integers(0, 10_000), max_size=12))
@settings(max_examples=300, deadline=None)
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
        " 1 first\n 2 second",
        "▌ a quote",
        'def f(x):\n\n    return "a" + x  # why',
        "``` inside",
    ):
        assert expected in text
    assert "\n\n\n" not in text


# What Markdown itself hides is left out: the word behind a fence, and cells beyond a table's head.
@given(st.lists(pieces.filter(lambda piece: piece != "```" and "|" not in piece), max_size=60))
@settings(max_examples=200, deadline=None)
def test_no_word_is_lost(parts: list[str]) -> None:
    text = "".join(parts)
    assert drawn([text], width=2_000).count("word") == text.count("word")


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
    stream.feed("```python\n" + "value = 1\n" * 50)
    console = screen_console()
    with console.capture() as captured:
        console.print(stream.tail)
    assert "\x1b[36m1\x1b[0m" in captured.get()
    stream.feed("y" * 50_000)
    with console.capture() as captured:
        console.print(stream.tail)
    assert len(captured.get()) <= 2 * TAIL_CHARS


def test_entities_cannot_bring_controls_back() -> None:
    shown = drawn(["a&#x202e;b &#13;c [x](http://e.example/&#x202e;d) `&#x9b;`\n\n```\n&#27;[31m\n```\n"])
    assert re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", shown) is None


@pytest.mark.parametrize("width", [1, 2, 3, 5, 10])
def test_narrow_windows(width: int) -> None:
    assert drawn([DOCUMENT], width=width)


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
