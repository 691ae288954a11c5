"""Colours that are readable on the background, and none where none is wanted."""

from __future__ import annotations

import io
import subprocess
import sys

import pytest
from prompt_toolkit.styles import Style
from rich.color import Color
from rich.terminal_theme import TerminalTheme
from rich.text import Text

from nca.config.schema import TerminalSettings
from nca.terminal.render.code_highlighter import code_theme
from nca.terminal.render.draw import Draw
from nca.terminal.render.screen import Screen
from nca.terminal.render.theme import PALETTES, background, has_colour, prompt_styles, screen_console, theme_for

XTERM = TerminalTheme(
    (0, 0, 0),
    (255, 255, 255),
    [(0, 0, 0), (205, 0, 0), (0, 205, 0), (205, 205, 0), (0, 0, 238), (205, 0, 205), (0, 205, 205), (229, 229, 229)],
    [(127, 127, 127), (255, 0, 0), (0, 255, 0), (255, 255, 0), (92, 92, 255), (255, 0, 255), (0, 255, 255), (255,) * 3],
)
"""The plain colours as xterm has them, which are the hardest to read on white."""
BLACK, WHITE = (0, 0, 0), (255, 255, 255)
BEHIND = {"dark": [BLACK], "light": [WHITE], "unknown": [BLACK, WHITE]}
LEAST_CONTRAST = {"dark": 4.5, "light": 4.5, "unknown": 3.9}
"""WCAG 2.2 asks for 4.5 (AA). On black and on white at once no colour has more than 4.58."""


def luminance(colour: tuple[int, ...]) -> float:
    """As WCAG 2 defines it."""
    parts = [value / 255 for value in colour]
    red, green, blue = [part / 12.92 if part <= 0.03928 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: tuple[int, ...], other: tuple[int, ...]) -> float:
    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


@pytest.mark.parametrize("name", PALETTES)
def test_every_colour_can_be_read(name: str) -> None:
    palette = PALETTES[name]
    for named in (palette.accent, palette.notice, palette.failure, palette.added, palette.keyword, palette.result):
        colour = tuple(Color.parse(named).get_truecolor(XTERM))
        assert all(contrast(colour, behind) >= LEAST_CONTRAST[name] for behind in BEHIND[name]), (named, colour)
    styles = theme_for(name, {}).styles
    assert [styles[style].color for style in ("accent", "failure")] == [
        Color.parse(palette.accent),
        Color.parse(palette.failure),
    ]
    assert code_theme(name, {}).get_style_for_token(("Keyword",)).color == Color.parse(palette.keyword)
    for style, written in prompt_styles(name, {}).items():
        rgb = Style.from_dict({"a": written}).get_attrs_for_style_str("class:a").color
        rich_style = styles.get(style)
        if written.startswith("#") and rich_style is not None:
            assert rich_style.color is not None
            assert rich_style.color.get_truecolor().hex == f"#{rgb}"


@pytest.mark.parametrize(
    ("theme", "variable", "expected"),
    [
        ("auto", "", "unknown"),
        ("auto", "15;0", "dark"),
        ("auto", "0;15", "light"),
        ("auto", "0;default;7", "light"),
        ("auto", "12;8", "dark"),
        ("auto", "0;default", "unknown"),
        ("auto", "0;99", "unknown"),
        ("auto", "0;\x1b[2J", "unknown"),
        ("light", "15;0", "light"),
        ("dark", "0;15", "dark"),
    ],
)
def test_the_background_is_what_the_setting_or_the_terminal_says(theme: str, variable: str, expected: str) -> None:
    assert background(theme, {"COLORFGBG": variable}) == expected


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, True),
        ({"NO_COLOR": ""}, True),
        ({"NO_COLOR": "1"}, False),
        ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, False),
        ({"CLICOLOR": "0"}, False),
        ({"CLICOLOR": "1"}, True),
        ({"CLICOLOR": "0", "CLICOLOR_FORCE": "1"}, True),
        ({"CLICOLOR": "0", "FORCE_COLOR": "3"}, True),
        ({"CLICOLOR": "0", "FORCE_COLOR": "0"}, False),
    ],
)
def test_who_wants_no_colour_gets_emphasis_only(environment: dict[str, str], expected: bool) -> None:
    assert has_colour(environment) is expected
    console = screen_console({"TERM": "xterm-256color", **environment})
    with console.capture() as captured:
        console.print(Text("a", style="failure"), Text("b", style="bold"))
    drawn = captured.get()
    assert "\x1b[1m" in drawn
    assert ("38;5;" in drawn or "\x1b[3" in drawn or "\x1b[9" in drawn) is expected


def test_another_theme_counts_at_once() -> None:
    file = io.StringIO()
    draw = Draw(Screen(file))
    draw.screen.console = screen_console({})
    for theme in ("light", "dark"):
        draw.apply(TerminalSettings(theme=theme))
        draw.error("wrong")
    light, dark = file.getvalue().splitlines()
    assert "\x1b[91mwrong" in dark
    assert "wrong" in light
    assert "\x1b[91m" not in light


STYLED_FIRST = """
from rich.color import ColorSystem
from nca.terminal.render.theme import styled, theme_for
environment = {"TERM": "xterm-256color"}
print(repr(styled("x", "notice", environment)))
print(repr(theme_for("auto", environment).styles["notice"].render("x", color_system=ColorSystem.STANDARD)))
"""


def test_a_styled_text_leaves_the_theme_as_it_was() -> None:
    """In a process of its own: Rich keeps the codes of a style, and others may have asked for this one's."""
    done = subprocess.run([sys.executable, "-c", STYLED_FIRST], capture_output=True, text=True, check=True)
    in_256, in_16 = done.stdout.splitlines()
    assert "38;5;" in in_256
    assert "38;5;" not in in_16
