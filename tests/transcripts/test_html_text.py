"""Markdown and code as HTML: drawn as they are meant, and inert whatever they say."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nca.transcripts.html_page import MOST_CODE_CHARS, MOST_LINE_CHARS, MOST_MARKDOWN_CHARS, code, prose
from tests.transcripts.samples import HOSTILE
from tests.transcripts.test_html_page import Reader, check

_PAGE = "Content-Security-Policy default-src 'none'<title></title>"

_MARKS = r"""\n \n\n \s\s \t #\s -\s 1.\s > ``` ~~~ ```py\n ` ** _ ~~ | |-|-:|\n [ ] ]( ) ![ < > <b> </div> <a\shref=
http://x.y javascript:x() &#x202e; &lt; [a](http://x.y) <http://x.y> [a](http://x.y\s"t"\sonclick=x) [a]:\shttp://x.y
\\ " ' & word"""
_PIECES = [mark.replace("\\n", "\n").replace("\\s", " ").replace("\\t", "\t") for mark in _MARKS.split()]


@given(st.lists(st.sampled_from([*_PIECES, HOSTILE]), max_size=40).map("".join))
@example("[]() [words](<>)")
def test_any_markdown_gives_inert_html(text: str) -> None:
    check(_PAGE + prose(text))


@given(st.text(st.characters(codec=None)), st.sampled_from(["", "py", "html", "diff", "json", "console", "nosuch"]))
def test_code_is_there_letter_for_letter(text: str, language: str) -> None:
    assert Reader(code(text, language)).text == Reader(code(text)).text
    check(_PAGE + code(text, language))


def test_markdown_is_drawn() -> None:
    page = prose("# Why\n\n- **two** `words`\n\n|a|b|\n|-|-:|\n|1|2|\n\n```py\nx = 1  # one\n```\n")
    assert '<h3 dir="auto">Why</h3>' in page
    assert '<li dir="auto"><strong>two</strong> <code>words</code></li>' in page
    assert '<td style="text-align:right" dir="auto">2</td>' in page
    assert '<span class="number">1</span>' in page
    assert '<span class="comment"># one</span>' in page


@pytest.mark.parametrize(("mark", "shown"), [("#", "#"), ("4.", '<ol start="4"'), ("-", "<li"), ("***", "<hr")])
def test_marks_alone_are_shown(mark: str, shown: str) -> None:
    assert shown in prose(mark)


def test_a_link_shows_its_address() -> None:
    assert prose("[bank](https://evil.example/)").count("https://evil.example/") == 2
    assert "title" not in prose("<https://a.example>")


@pytest.mark.parametrize(
    "text",
    [
        "[a](javascript:alert(1))",
        "[a](JaVaScRiPt:alert(1))",
        "[a](data:text/html,x)",
        "[a](file:///etc/passwd)",
        "[a](//evil.example)",
        "[a](src/a.py)",
        "[a](#m1)",
        "<ftp://a.example>",
        "<b onclick=x>",
        "[a]: http://a.example",
    ],
)
def test_what_markdown_may_not_give_is_shown_as_written(text: str) -> None:
    reader = Reader(prose(text))
    assert reader.tags == {"div", "p"}
    assert reader.text.strip() == text


def test_a_picture_is_a_link() -> None:
    assert Reader(prose("![a](http://a.example/i.png)")).tags == {"div", "p", "a"}


@pytest.mark.parametrize("nested", [">", "- "])
@pytest.mark.parametrize("depth", [*range(6, 24), 200])
def test_what_nests_deeply_is_not_lost(nested: str, depth: int) -> None:
    reader = Reader(prose(f"{nested * depth}deep"))
    assert "deep" in reader.text


def test_long_text_and_code_cost_no_parser() -> None:
    assert prose("*" * (MOST_MARKDOWN_CHARS + 1)).startswith('<pre dir="auto">')
    for text in ("x = 1\n" * (MOST_CODE_CHARS // 5), f"x = {'1' * MOST_LINE_CHARS}"):
        assert not re.search("<span", code(text, "py"))
