"""Make the pictures of the documentation from the program itself.

    python scripts/pictures.py

Runs `nca loop` in a pseudo-terminal, in a folder `demo` with three small files, against the provider on loopback that
nca ships for tests (`nca.testing`), with files and answers from `pictures_talk`. What is on the screen then is written
to docs/pictures/*.svg, cell by cell. Dates, seconds and the ids of sessions differ from run to run.
"""

from __future__ import annotations

import io
import itertools
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pexpect
import pyte
from pictures_talk import FILES, FIRST, FOURTH, SECOND, THIRD, WINDOW_TOKENS, talk
from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.style import Style
from rich.terminal_theme import TerminalTheme
from rich.text import Text

from nca.testing.provider import Provider

ROOT = Path(__file__).parents[1]
PICTURES = ROOT / "docs" / "pictures"
COLUMNS, ROWS = 92, 60
TOKEN_SECONDS = 0.004
WAIT_SECONDS = 60.0
QUIET_SECONDS = 1.5
"""A screen that has been still for so long is finished."""

INK = TerminalTheme(
    (26, 29, 35),
    (214, 218, 224),
    [
        (60, 64, 72),
        (240, 113, 120),
        (140, 200, 120),
        (232, 192, 96),
        (110, 160, 240),
        (200, 140, 230),
        (96, 196, 208),
        (214, 218, 224),
    ],
    [
        (110, 116, 128),
        (255, 140, 145),
        (170, 220, 150),
        (250, 215, 130),
        (140, 185, 255),
        (220, 170, 245),
        (130, 220, 230),
        (255, 255, 255),
    ],
)
"""Background, foreground, the eight plain colours and the eight bright ones, as red, green, blue."""


class Screen(pyte.Screen):
    """pyte does not know faint text; nca never blinks, so a cell's `blink` says that it is faint."""

    def select_graphic_rendition(self, *attrs: int, **kwargs: Any) -> None:
        translated: list[int] = []
        rest = iter(attrs)
        for attr in rest:
            if attr in (38, 48):
                kind = next(rest, 5)
                translated += [attr, kind, *(next(rest, 0) for _ in range(3 if kind == 2 else 1))]
            else:
                translated += {2: [5], 22: [22, 25]}.get(attr, [attr])
        super().select_graphic_rendition(*translated, **kwargs)


class Terminal:
    """`nca loop` in a pseudo-terminal, and the screen that a person would see."""

    def __init__(self, home: Path, directory: Path, api_base: str) -> None:
        self.screen = Screen(COLUMNS, ROWS)
        self._stream = pyte.ByteStream(self.screen)
        command = ["-m", "nca", "loop", "-m", "openai/scripted", "--context-window", str(WINDOW_TOKENS)]
        environment = {
            "PATH": os.environ["PATH"],
            "TERM": "xterm-256color",
            "LANG": "C.UTF-8",
            "PYTHONPATH": str(ROOT),
            "PYTHONUTF8": "1",
            "NCA_HOME": str(home),
            "OPENAI_API_BASE": api_base,
            "OPENAI_API_KEY": "none",
        }
        self._process = pexpect.spawn(
            sys.executable, command, cwd=str(directory), env=environment, dimensions=(ROWS, COLUMNS), timeout=None
        )

    def line(self, text: str, awaited: str) -> None:
        """Type a line; wait until `awaited` is on the screen and the screen is still."""
        self._process.send(text)
        self._settle("")
        self._process.send("\r")
        self._settle(awaited)

    def start(self) -> None:
        self._settle("›")

    def leave(self) -> None:
        self._process.send("\x04")
        self._process.expect(pexpect.EOF, timeout=WAIT_SECONDS)
        self._process.close()

    def clear(self) -> None:
        """An empty screen, as /clear leaves it."""
        self.line("/clear", "")

    def _settle(self, awaited: str) -> None:
        deadline = time.monotonic() + WAIT_SECONDS
        still_since = time.monotonic()
        while time.monotonic() < deadline:
            try:
                self._stream.feed(self._process.read_nonblocking(65_536, 0.1))
                still_since = time.monotonic()
            except pexpect.TIMEOUT:
                is_still = time.monotonic() - still_since >= QUIET_SECONDS
                if is_still and awaited in "\n".join(self.screen.display):
                    return
        raise SystemExit(f"{awaited!r} did not come:\n" + "\n".join(self.screen.display))


# A picture must not fetch anything: the fonts are the viewer's own.
FORMAT = re.sub(r"@font-face \{\{.*?\}\}\s*", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL).replace(
    "Fira Code, monospace", "Fira Code, Menlo, Consolas, DejaVu Sans Mono, monospace"
)


def save(screen: pyte.Screen, name: str, title: str) -> None:
    """Write the screen, without the empty lines below its text, as docs/pictures/`name`.svg."""
    lines = [_line(screen, row) for row in range(ROWS)]
    while lines and not lines[-1].plain.strip():
        lines.pop()
    console = Console(
        record=True,
        width=COLUMNS,
        file=io.StringIO(),
        force_terminal=True,
        color_system="truecolor",
        highlight=False,
        markup=False,
        emoji=False,
    )
    for line in lines:
        console.print(line, no_wrap=True, crop=True)
    svg = console.export_svg(title=title, theme=INK, code_format=FORMAT, unique_id=f"nca-{name}")
    PICTURES.mkdir(parents=True, exist_ok=True)
    path = PICTURES / f"{name}.svg"
    path.write_text("\n".join(line.rstrip() for line in svg.splitlines()) + "\n", encoding="utf-8")
    print(f"{path.relative_to(ROOT)}  {path.stat().st_size / 1000:.0f} kB")


def _line(screen: pyte.Screen, row: int) -> Text:
    """One row of the screen, with one span for each run of cells that look alike."""
    text = Text()
    cells = (screen.buffer[row][column] for column in range(COLUMNS))
    for style, run in itertools.groupby(cells, key=_style):
        text.append("".join(cell.data for cell in run), style=style)
    text.rstrip()
    return text


def _style(cell: Any) -> Style:
    return Style(
        color=_colour(cell.fg),
        bgcolor=_colour(cell.bg),
        bold=cell.bold or None,
        italic=cell.italics or None,
        underline=cell.underscore or None,
        reverse=cell.reverse or None,
        dim=cell.blink or None,
    )


def _colour(name: str) -> str | None:
    """Rich's name of one of pyte's."""
    if name == "default":
        return None
    if re.fullmatch(r"[0-9a-f]{6}", name):
        return f"#{name}"
    plain = name.removeprefix("bright")
    plain = {"brown": "yellow"}.get(plain, plain)
    return f"bright_{plain}" if name.startswith("bright") else plain


@contextmanager
def _folder() -> Iterator[Path]:
    """A folder of our own, of the same name each time: the model is told it, so its length is counted."""
    folder = Path(tempfile.gettempdir()) / "nca-pictures"
    folder.mkdir(mode=0o700)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def main() -> None:
    with _folder() as folder, Provider(talk, token_seconds=TOKEN_SECONDS) as provider:
        home, directory = folder / "home", folder / "demo"
        home.mkdir(mode=0o700)
        directory.mkdir()
        for name, text in FILES.items():
            (directory / name).write_text(text, encoding="utf-8")
        terminal = Terminal(home, directory, provider.url)
        terminal.start()
        terminal.line(FIRST, "ZeroDivisionError")
        terminal.line(SECOND, "nothing calls")
        terminal.line(THIRD, "of budget")
        terminal.line(FOURTH, "it was not")
        save(terminal.screen, "chat", "nca loop")
        terminal.clear()
        terminal.line("/context", "window")
        terminal.line("/context history", "kept")
        save(terminal.screen, "context", "/context")
        terminal.leave()


if __name__ == "__main__":
    main()
