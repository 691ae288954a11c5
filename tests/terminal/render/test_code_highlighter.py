"""Code coloured line by line looks the same as code coloured as a whole."""

from __future__ import annotations

import io

import pytest
from rich.console import Console
from rich.style import Style
from rich.text import Text

from nca.terminal.render.code_highlighter import MAX_LINE_CHARS, CodeHighlighter, code_theme

PYTHON = """@decorator
def call(one, two=2):
    \'\'\'A docstring
    for `all` of it.
    \'\'\'

    return f"{one}" + 'x'  # why

class Thing:
    pass
"""
C = """/* a comment
   int x = 1;
*/
int main(void) { return "a"[0]; }
"""
HTML = """<p class="x">text</p>
<!-- a note
<b> of two lines -->
<i>more</i>
"""


CONSOLE = Console(file=io.StringIO())


def shown(text: Text) -> list[tuple[str, Style]]:
    """Each character with its style."""
    return [(char, text.get_style_at_offset(CONSOLE, at)) for at, char in enumerate(text.plain) if char != "\n"]


def is_coloured(text: Text) -> bool:
    return any(style for _, style in shown(text))


@pytest.mark.parametrize(
    ("language", "code"), [("python", PYTHON), ("c", C), ("html", HTML), ("bash", "a=1\n\tb $c\n")]
)
@pytest.mark.parametrize("times", [1, 20])
def test_line_by_line_and_as_a_whole(language: str, code: str, times: int) -> None:
    code = (code * times).rstrip("\n")
    lines = CodeHighlighter(language, code_theme("auto"))
    one_by_one = [part for line in code.split("\n") for part in shown(lines.add(line))]
    whole = CodeHighlighter(language, code_theme("auto")).add(code)
    assert one_by_one == shown(whole)
    assert is_coloured(whole)


@pytest.mark.parametrize("code", ["", "\n", "  \n\tx\n\n", "x" * (MAX_LINE_CHARS + 1), "a\n" + "y" * 50_000 + "\nb"])
@pytest.mark.parametrize("language", ["", "python", "no-such-language", "diff"])
def test_the_text_is_never_changed(code: str, language: str) -> None:
    lines = CodeHighlighter(language, code_theme("dark"))
    assert lines.add(code).plain == code
    assert lines.open_line(code).plain == code


def test_an_unfinished_line_is_coloured_and_forgotten() -> None:
    lines = CodeHighlighter("python", code_theme("auto"))
    lines.add("text = '''")
    assert is_coloured(lines.open_line("inside"))
    assert is_coloured(lines.add("inside '''"))
    assert not is_coloured(lines.add("outside"))
