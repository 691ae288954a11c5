"""Run nca in a pseudo-terminal and read its screen."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import get_native_id
from typing import Any

import pexpect
import pyte
from pictures_svg import DARK, LIGHT, Cell, Look, Shades

ROOT = Path(__file__).parents[1]
COLUMNS, ROWS = 92, 60
WAIT_SECONDS = 150.0
"""On a busy machine; only a picture that cannot be drawn takes as long."""
QUIET_SECONDS = 1.0
"""A screen that has been still for so long is finished."""
_LOOK_SECONDS = 0.1


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
    """A command of nca in a pseudo-terminal with a dark ground, or a light one."""

    def __init__(
        self,
        arguments: Sequence[str],
        directory: Path,
        environment: Mapping[str, str],
        *,
        columns: int = COLUMNS,
        rows: int = ROWS,
        is_light: bool = False,
        quiet_seconds: float = QUIET_SECONDS,
    ) -> None:
        self._columns, self._rows = columns, rows
        self._quiet_seconds = quiet_seconds
        self.shades: Shades = LIGHT if is_light else DARK
        self._screen = Screen(columns, rows)
        self._stream = pyte.ByteStream(self._screen)
        self._process = pexpect.spawn(
            sys.executable,
            ["-m", "nca", *arguments],
            cwd=str(directory),
            env={**environment, "TERM": "xterm-256color", "COLORFGBG": "0;15" if is_light else "15;0"},
            dimensions=(rows, columns),
            timeout=None,
        )
        self.wait("›")

    def line(self, text: str, awaited: str) -> None:
        """Type a line; wait until `awaited` is on the screen and the screen is still."""
        self._process.send(text)
        self.wait("")
        self.key("\r", awaited)

    def key(self, key: str, awaited: str, *, moves: bool = False) -> None:
        self._process.send(key)
        self.wait(awaited, moves=moves)

    def pause(self, seconds: float) -> None:
        time.sleep(seconds)
        self.wait("")

    def clear(self) -> None:
        """An empty screen, as Ctrl-L leaves it."""
        self.key("\x0c", "")

    def leave(self) -> None:
        self.end("\x04")

    def end(self, key: str) -> None:
        """With a key that ends the program."""
        self._process.send(key)
        self._process.expect(pexpect.EOF, timeout=WAIT_SECONDS)
        self._process.close()

    def wait(self, awaited: str, *, moves: bool = False) -> None:
        """Until `awaited` is on the screen and the screen is still; one that `moves` is never still."""
        deadline = time.monotonic() + WAIT_SECONDS
        still_seconds = 0.0
        while time.monotonic() < deadline:
            try:
                self._stream.feed(self._process.read_nonblocking(65_536, _LOOK_SECONDS))
                still_seconds = 0.0
                if moves and awaited in "\n".join(self._screen.display):
                    return
            except pexpect.TIMEOUT:
                # Looks are counted, not the time: on a busy machine neither this program nor nca may have had its turn.
                still_seconds = 0.0 if _has_work() else still_seconds + _LOOK_SECONDS
                if still_seconds >= self._quiet_seconds and awaited in "\n".join(self._screen.display):
                    return
        raise SystemExit(f"{awaited!r} did not come:\n" + "\n".join(self._screen.display))

    def rows(self) -> list[list[Cell]]:
        """The screen, without the empty lines above and below its text."""
        buffer, columns = self._screen.buffer, range(self._columns)
        rows = [[_cell(buffer[row][column], self.shades) for column in columns] for row in range(self._rows)]
        filled = [number for number, row in enumerate(rows) if any(cell.text.strip() for cell in row)]
        return rows[filled[0] : filled[-1] + 1]


def _has_work() -> bool:
    """Whether nca, what it started, or the provider here runs or wants to run; False where the system does not say."""
    return any(_state(task) in ("R", "D") for task in _tasks(os.getpid()) if task.name != str(get_native_id()))


def _tasks(pid: int) -> Iterator[Path]:
    """The threads of a process and of all that it started."""
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            yield task
            for child in (task / "children").read_text().split():
                yield from _tasks(int(child))


def _state(task: Path) -> str:
    with suppress(OSError):
        # The state stands behind the program's name, which may have spaces and brackets in it.
        return (task / "stat").read_text().rpartition(")")[2].split()[0]
    return ""


def environment(home: Path, api_base: str) -> dict[str, str]:
    """A person's environment with nothing in it but an endpoint."""
    return {
        "PATH": os.environ["PATH"],
        "LANG": "C.UTF-8",
        "PYTHONPATH": str(ROOT),
        "PYTHONUTF8": "1",
        "NCA_HOME": str(home),
        "OPENAI_API_BASE": api_base,
        "OPENAI_API_KEY": "none",
    }


def _cell(cell: Any, shades: Shades) -> Cell:
    ink, ground = shades.colour(cell.fg), shades.colour(cell.bg, "")
    if cell.reverse:
        ink, ground = ground or shades.ground, ink
    if cell.blink:
        ink = shades.faint(ink)
    return Cell(cell.data, Look(ink, ground, cell.bold, cell.italics, cell.underscore))
