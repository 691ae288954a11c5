"""Draw every screen of the chat, for a person to look at: each panel, at each width, on a dark and on a light ground.

    python scripts/screenshots.py FOLDER                       writes FOLDER/*.svg and FOLDER/index.html
    python scripts/screenshots.py FOLDER --columns 40,80 --grounds light --rows 24
    python scripts/screenshots.py FOLDER --text                as text, one file for each width

Runs `nca loop` as `pictures` does, once for each width and ground, with the talk of `screenshots_talk`.
"""

from __future__ import annotations

import argparse
import itertools
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from pictures_svg import Cell, Shades, screen
from pictures_terminal import Terminal, environment
from screenshots_talk import FAULT, FILES, MODEL, SETTINGS, talk

from nca.testing.provider import Provider

COLUMNS = (40, 60, 80, 120, 200)
GROUNDS = ("dark", "light")
ROWS = 50
AT_ONCE = 2
QUIET_SECONDS = 0.5
PAUSE_SECONDS = 1.2
"""A question takes no key before."""


class Shot(NamedTuple):
    """A panel, and what was on the screen then."""

    panel: str
    cells: list[list[Cell]]
    shades: Shades

    @property
    def text(self) -> str:
        return "\n".join("".join(cell.text for cell in row).rstrip() for row in self.cells)

    @property
    def picture(self) -> str:
        return screen(self.cells, self.panel, self.shades)


def shots(columns: int, ground: str, rows: int = ROWS) -> Iterator[Shot]:
    """Every panel in one terminal, in the order of the talk."""
    folder = Path(tempfile.mkdtemp(prefix="nca-screens-"))
    try:
        home, directory = folder / "home", folder / "demo"
        home.mkdir(mode=0o700)
        directory.mkdir()
        (home / "config.toml").write_text(SETTINGS, encoding="utf-8")
        for name, text in FILES.items():
            (directory / name).write_text(text, encoding="utf-8")
        with Provider(talk, models=(MODEL, "test-model", FAULT)) as provider:
            yield from _walk(directory, environment(home, provider.url), columns, ground, rows)
    finally:
        shutil.rmtree(folder)


def _walk(directory: Path, env: dict[str, str], columns: int, ground: str, rows: int) -> Iterator[Shot]:
    def opened(*arguments: str) -> Terminal:
        return Terminal(
            ["loop", "-m", f"openai/{MODEL}", *arguments],
            directory,
            env,
            columns=columns,
            rows=rows,
            is_light=ground == "light",
            quiet_seconds=QUIET_SECONDS,
        )

    def shot(panel: str) -> Shot:
        return Shot(panel, terminal.rows(), terminal.shades)

    def say(line: str, awaited: str) -> None:
        """On an empty screen."""
        terminal.clear()
        terminal.line(line, awaited)

    terminal = opened("--context-window", "9000")
    terminal.wait("%")
    yield shot("banner")
    for panel, line, awaited in (
        ("answer-table", "Which widths are tried?", "nothing is lost"),
        ("answer-code", "Show me the code.", "as it stands"),
        ("read", "Read both files.", "two functions"),
    ):
        say(line, awaited)
        yield shot(panel)
    say("Change the mean.", "Allow it?")
    yield shot("approval-diff")
    terminal.pause(PAUSE_SECONDS)
    terminal.key("y", "0.0 if there")
    yield shot("changed")
    say("Serve the folder.", "Allow it?")
    yield shot("approval-command")
    terminal.pause(PAUSE_SECONDS)
    terminal.key("y", "The server runs")
    terminal.clear()
    terminal.key("Take your time.", "")
    terminal.key("\r", "Esc stops", moves=True)
    yield shot("spinner")
    terminal.wait("Here it is.")
    for panel, line, awaited, keys in (
        ("context", "/context", "Esc", "\x1b"),
        ("context-all", "/context all", "Try: /context", ""),
        ("jobs", "/jobs", "http.server", ""),
        ("changes", "/changes", "statistics.py", ""),
        ("rewind", "/rewind", "Esc", "\x1b"),
        ("help", "/help", "/help", ""),
        ("help-context", "/help context", "Examples", ""),
        ("help-keys", "/help keys", "Ctrl-C", ""),
        ("config", "/config", "Esc", "\x1b"),
        ("config-group", "/config context", "", ""),
        ("model", "/model", "Esc", "\x1b"),
        ("tools", "/tools", "/permissions", ""),
        ("mcp", "/mcp", "notes", ""),
        ("permissions", "/permissions", "rules", ""),
        ("cost", "/cost", "tokens", ""),
        ("unknown-command", "/contxt", "There is no command", ""),
        ("sessions", "/sessions", "Esc", "\x1b"),
        ("resume", "/resume", "Esc", "\x1b"),
        ("show", "/show", "", ""),
        ("completion", "/c", "", "\x15"),
    ):
        terminal.clear()
        if panel == "completion":
            terminal.key(line, "")
        else:
            terminal.line(line, awaited)
        yield shot(panel)
        if keys:
            terminal.key(keys, "")
    say("/compact", "Compacted")
    yield shot("compaction-notice")
    for panel, line, awaited in (
        ("context-history", "/context history", "compaction"),
        ("context-diff", "/context diff", "Try:"),
        ("context-compacted", "/context all", "Try: /context"),
        ("context-show", "/context show", "summary"),
        ("undo", "/context undo", "Undid"),
    ):
        say(line, awaited)
        yield shot(panel)
    say(f"/model openai/{FAULT}", "")
    terminal.line("Does it answer?", "key")
    yield shot("error-line")
    terminal.key("\x03", "")
    terminal.leave()
    terminal = opened("--resume")
    yield shot("resume-at-start")
    terminal.end("\x1b")


def _page(pictures: Sequence[tuple[str, str]]) -> str:
    """All pictures below each other, by panel."""
    by_panel = itertools.groupby(sorted(pictures), key=lambda one: one[0].rsplit("-", 2)[0])
    body = "".join(
        f"<h2>{panel}</h2>" + "".join(f'<p><img src="{name}.svg" alt="{name}"></p>' for name, _ in group)
        for panel, group in by_panel
    )
    return f"<!doctype html><meta charset=utf-8><title>Every screen</title><style>body{{background:#888}}</style>{body}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--columns", default=",".join(map(str, COLUMNS)))
    parser.add_argument("--grounds", default=",".join(GROUNDS))
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--text", action="store_true", help="as text in place of pictures")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    places = list(itertools.product(map(int, options.columns.split(",")), options.grounds.split(",")))
    pictures: list[tuple[str, str]] = []

    def draw(place: tuple[int, str]) -> None:
        columns, ground = place
        texts = []
        for one in shots(columns, ground, options.rows):
            if options.text:
                texts.append(f"== {one.panel}, {columns} columns\n{one.text}\n")
            else:
                name = f"{one.panel}-{columns:03}-{ground}"
                (options.folder / f"{name}.svg").write_text(one.picture, encoding="utf-8")
                pictures.append((name, one.panel))
        if texts:
            (options.folder / f"{columns:03}-{ground}.txt").write_text("\n".join(texts), encoding="utf-8")

    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(draw, places))
    if pictures:
        (options.folder / "index.html").write_text(_page(pictures), encoding="utf-8")
    print(f"{len(pictures)} pictures" if pictures else f"{len(places)} texts", "in", options.folder)


if __name__ == "__main__":
    main()
