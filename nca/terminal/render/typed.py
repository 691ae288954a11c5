"""What the person typed, as it is drawn on a screen: the lines typed while nca works, and messages that were taken."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from nca.terminal.render.layout import hung
from nca.terminal.render.sanitize import one_line, to_terminal
from nca.terminal.render.screen import Cursor

TYPED = "› "
"""Before what the person typed."""
_MOST_CHARS = 2_000
"""Shown of a message that no prompt has shown."""


class TypedAhead(Protocol):
    """The text that the person types while nca works."""

    def typed_ahead_lines(self, *, is_turn: bool) -> tuple[Sequence[str], Sequence[str], int, int]:
        """The lines below everything else: notes, then the rows of the typed line; the cursor's row of them, and cell.

        is_turn  the model works
        """

    def labelled(self, text: str) -> str:
        """A text that was sent, with labels in place of long pastes, as it stood in the prompt."""


def typed_tail(typed: TypedAhead, *, is_turn: bool) -> tuple[list[Text], Cursor | None]:
    """The lines below everything else, and the cursor in them."""
    notes, rows, row, cell = typed.typed_ahead_lines(is_turn=is_turn)
    lines = [*(f"  {one_line(note)}" for note in notes), *_behind_sign(map(to_terminal, rows))]
    cursor = Cursor(len(rows) - 1 - row, cell_len(TYPED) + cell) if rows else None
    return [Text(line, style="quiet", no_wrap=True, overflow="ellipsis") for line in lines], cursor


def taken_message(text: str, typed: TypedAhead | None, console: Console) -> list[Text]:
    """A message as it stood in the prompt."""
    shown = typed.labelled(text).rstrip() if typed is not None else text.rstrip()
    rows = _behind_sign(to_terminal(shown if len(shown) <= _MOST_CHARS else f"{shown[:_MOST_CHARS]}…").split("\n"))
    return [part for row in rows for part in hung(Text(row), console, console.width, before=cell_len(TYPED))]


def _behind_sign(rows: Iterable[str]) -> list[str]:
    return [f"{TYPED if not number else ' ' * cell_len(TYPED)}{row}" for number, row in enumerate(rows)]
