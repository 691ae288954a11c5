"""The one way in which the commands print a line, so that no line can act on the terminal."""

from __future__ import annotations

import sys


def echo(text: str = "", *, err: bool = False, mark: str = "") -> None:
    """Print a line, or several, made safe: part of it may be a project's, another program's or a model's.

    err   to standard error
    mark  the line's beginning, which is nca's own and may have escape codes
    """
    from nca.terminal.render.sanitize import to_terminal

    print(mark + to_terminal(text), file=sys.stderr if err else sys.stdout, flush=True)
