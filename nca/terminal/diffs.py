"""A unified diff as a person reads it: what goes in red, what comes in green."""

from __future__ import annotations

from rich.text import Text

from nca.terminal.sanitize import to_terminal

_STYLES = {"+": "added", "-": "removed", "@": "accent"}


def diff_lines(diff: str, most: int) -> list[Text]:
    """The first `most` lines, indented; what is left out is said."""
    lines = to_terminal(diff).rstrip("\n").split("\n")
    shown = [Text(f"  {line}", style=_STYLES.get(line[:1], "quiet")) for line in lines[:most]]
    return [*shown, *left_out(len(lines) - most)]


def left_out(count: int) -> list[Text]:
    """The line for what is not shown, where there is any."""
    return [Text(f"  … and {count:,} more lines that are not shown here", style="notice")] if count > 0 else []
