"""Ask a question before there is a prompt, answered with a word and Enter: whether to trust a project's settings.

All of them are shown whole before "yes" can be said. The project's text is indented by two columns, and the rest of
a row that is folded begins with a mark in the first column, as in the approval panel; nca's own words begin there too.
So no setting can pass for a word of nca's.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import textwrap
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from nca.cli.printing import echo
from nca.errors import system_reason

if TYPE_CHECKING:
    from nca.config.projects import TrustCheck, TrustRequest, TrustStore

YES_OR_NO = ("y", "yes", "n", "no")


def typed_answer(question: str, valid: Collection[str]) -> str:
    """The valid word that the person types, in lower case; "" at the end of the input.

    An empty line, and any other word, answers nothing: the question is asked again. Earlier input is discarded.

    question  names the valid words, and ends with a blank
    """
    from nca.terminal.render.sanitize import to_terminal

    if sys.platform != "win32":
        from nca.terminal.input.terminal_modes import forget_typed

        forget_typed()
    while True:
        try:
            word = input(f"{to_terminal(wrapped(question))} ").strip().lower()
        except EOFError:
            return ""
        if word in valid:
            return word
        if word:
            echo("That is no answer here.")


def wrapped(text: str, hang: int = 0) -> str:
    """The text in rows of the terminal's width, its lines broken between words. It needs no more than Python has.

    hang  indent in cells of a line's further rows, if that leaves half of the width
    """
    columns = shutil.get_terminal_size().columns
    indent = " " * hang if hang <= columns // 2 else ""
    fill = textwrap.TextWrapper(columns, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False).fill
    return "\n".join(map(fill, text.split("\n")))


def can_ask() -> bool:
    """Whether a person is at both ends: a question is seen, and its answer typed."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def agrees(question: str) -> bool:
    """Whether the person types yes. The end of the input means no."""
    return typed_answer(f"{question} y or n: ", YES_OR_NO).startswith("y")


_ADVICE = (
    "Trust them only if you know who wrote them. Hooks run as you and may allow calls, as permissions.allow does."
    " A project's settings never set endpoints or keys."
)
_QUESTION = "Trust these settings until they change?"
_LEAST_ROWS = 5
"""Of a page, however small the terminal says it is."""


def trusts(*, by_flag: bool, asks: bool) -> TrustCheck:
    """The decision for `nca.config.layers.load`: trusted by flag, trusted before, or, with `asks`, asked now."""

    def decide(what: TrustRequest) -> bool:
        from nca.config.projects import TrustStore

        if by_flag:
            return True
        known = TrustStore(os.environ)
        word = known.decision(what)
        if word is None and asks and can_ask():
            word = ask_trust(what, known)
        return word is True

    return decide


def ask_trust(what: TrustRequest, known: TrustStore) -> bool:
    """Show the settings, ask, and keep the answer until they change."""
    is_trusted = _ask(what)
    try:
        known.record(what, is_trusted=is_trusted)
    except OSError as error:
        echo(f"nca: your answer cannot be saved ({system_reason(error)}). nca will ask again.", err=True)
    return is_trusted


def _ask(what: TrustRequest) -> bool:
    from nca.humanize import counted
    from nca.terminal.render.sanitize import one_line

    echo(wrapped(f"This project's settings ({one_line(str(what.directory), 4_000)}) can act on your behalf:"))
    size = shutil.get_terminal_size()
    rows = [row for line in setting_lines(what) for row in _folded(line, size.columns)]
    page = max(size.lines - 2, _LEAST_ROWS)
    for start in range(0, len(rows), page):
        echo("\n".join(rows[start : start + page]))
        left = len(rows) - start - page
        more = f"{counted(left, 'more line')}. Enter shows the next ones, n trusts none: "
        if left > 0 and typed_answer(more, ("", *YES_OR_NO)).startswith("n"):
            return False
    echo(wrapped(_ADVICE))
    return agrees(_QUESTION)


def setting_lines(what: TrustRequest) -> Iterator[str]:
    """Every setting whole, an entry each: a server or a hook is one, with its fields in lines below its name.

    Invisible and misleading characters are written out. No line holds a line break.
    """
    from nca.terminal.render.file_changes import marked

    for name, raw in what.settings:
        for title, value in _entries(name, raw):
            if isinstance(value, Mapping):
                yield marked(title)
                yield from (marked(f"  {_plain(field)} = {_written(one)}") for field, one in value.items())
            else:
                yield marked(f"{title} = {_written(value)}")


def _entries(name: str, raw: Any) -> Iterator[tuple[str, Any]]:
    """Each table of a list, and each named one, by itself, so that none hides behind the end of another."""
    if isinstance(raw, list) and raw and all(isinstance(one, dict) for one in raw):
        yield from ((f"{_plain(name)} {number} of {len(raw)}", one) for number, one in enumerate(raw, 1))
    elif isinstance(raw, dict) and raw and all(isinstance(one, dict) for one in raw.values()):
        yield from ((f"{_plain(name)}.{_plain(inner)}", one) for inner, one in raw.items())
    else:
        yield _plain(name), raw


def _plain(name: str) -> str:
    """A name on one line: one with other characters than letters and the like is quoted."""
    return name if name.replace(".", "").replace("_", "").replace("-", "").isalnum() else _written(name)


def _written(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _folded(line: str, columns: int) -> Iterator[str]:
    from rich.text import Text

    from nca.terminal.render.calls import folded

    return (row.plain for row in folded(Text(line), columns))
