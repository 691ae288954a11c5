"""The person's own status line: a format, a command's line, and every window."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from nca.config.layers import defaults
from nca.config.tables import NAMES
from nca.errors import ConfigError
from nca.terminal.input.toolbar import ToolbarStatus, coloured, toolbar

STATUS = ToolbarStatus(
    "anthropic/claude-sonnet", 0.43, 86_000, 200_000, session="parser", cost=0.1234, permission="ask", branch="main"
)
FORMATS = st.lists(st.sampled_from([*(f"{{{name}}}" for name in NAMES), " · ", " | ", "  ", "on ", "{{x}}"])).map(
    "".join
)


def text(status: ToolbarStatus, width: int = 100) -> str:
    return "".join(part for _, part in toolbar(status, width))


def test_a_format_says_what_stands_where() -> None:
    written = STATUS._replace(written="{branch} · {model} · {percent} ({tokens}) {cost}")
    assert text(written) == " main · anthropic/claude-sonnet · 43% (86k/200k) $0.12"
    assert ("class:gauge", "43%") in toolbar(written, 100)


def test_a_name_without_a_value_takes_its_separator_along() -> None:
    written = STATUS._replace(written="{branch} · {activity} · limits: {limits} · {percent}")
    assert text(written) == " main · 43%"
    assert text(written._replace(branch="")) == " 43%"


def test_in_a_narrow_window_names_leave_from_the_end() -> None:
    written = STATUS._replace(written="{percent} · {branch} · {session}!")
    shrinking = list(dict.fromkeys(text(written, width) for width in range(60, 0, -1)))
    assert shrinking[:4] == [" 43% · main · parser!", " 43% · main · parser", " 43% · main", " 43%"]


@given(FORMATS, st.text(max_size=60), st.text(max_size=60), st.integers(2, 120))
def test_no_line_is_wider_than_the_window(written: str, branch: str, command: str, width: int) -> None:
    shown = text(STATUS._replace(written=written or "x", branch=branch, command=command), width)
    assert cell_len(shown) <= width
    assert not {"\n", "\x1b"} & set(shown)


@given(FORMATS, st.sampled_from(["", "main"]), st.integers(6, 120))
def test_no_separator_begins_or_ends_a_line(written: str, branch: str, width: int) -> None:
    status = STATUS._replace(written=f"{written}{{percent}}", branch=branch, command="ok")
    shown = text(status, width).strip().removesuffix("…")
    assert shown == shown.strip(" ·|")
    assert shown


def test_a_command_stands_above_the_toolbar_unless_the_format_names_it() -> None:
    status = STATUS._replace(command="\x1b[32mgreen\x1b[0m plain")
    above, own = text(status).split("\n")
    assert (above, own) == (" green plain", text(STATUS))
    assert text(status._replace(written="{command} {percent}")) == " green plain 43%"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("\x1b[31mred\x1b[0m", [("nodim ansired", "red")]),
        ("\x1b[38;2;1;2;3mx", [("nodim #010203", "x")]),
        ("\x1b]0;title\x07a\x1b[2Jb\x1b[5;5Hc\x01\x1b[8m\x02d", [("nodim ", "abc"), ("nodim hidden", "d")]),
        ("\x1b]8;;https://example.org\x1b\\link\x1b]8;;\x1b\\", [("nodim ", "link")]),
        ("\x1b]52;c;\x1b[31mcGFzdGU=\x07x", [("nodim ansired", "cGFzdGU=x")]),
    ],
)
def test_of_escape_sequences_only_colours_are_kept(line: str, said: list[tuple[str, str]]) -> None:
    joined: list[tuple[str, str]] = []
    for style, piece in coloured(line, has_colour=True):
        if joined and joined[-1][0] == style:
            joined[-1] = (style, joined[-1][1] + piece)
        else:
            joined.append((style, piece))
    assert joined == said
    assert coloured(line, has_colour=False) == [("nodim", "".join(piece for _, piece in said))]


@given(st.text(st.characters(max_codepoint=0x2FF), max_size=80))
def test_whatever_a_command_writes_no_control_character_is_left(line: str) -> None:
    shown = "".join(piece for _, piece in coloured(line, has_colour=True))
    assert all(character >= " " and not "\x7f" <= character <= "\x9f" for character in shown)


def test_an_unknown_name_is_refused_in_one_line_with_the_valid_ones() -> None:
    with pytest.raises(ConfigError) as refused:
        defaults().with_value("terminal.status", "{model} {modle}", "the test")
    said = str(refused.value)
    assert "terminal.status has no {modle}; valid names: model, usage" in said
    assert "\n" not in said
    for broken in ("{", "}", "{model", "{model!r}", "{model:>9}", "a\nb", "{0}", "{model.x}"):
        with pytest.raises(ConfigError):
            defaults().with_value("terminal.status", broken, "the test")
