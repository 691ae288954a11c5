"""Make the pictures of the documentation from the program itself.

    python scripts/pictures.py

Runs `nca loop` in a pseudo-terminal, in a folder `demo` with three small files, against the provider on loopback that
nca ships for tests (`nca.testing`), with answers that are written below. What is on the screen then is written to
docs/pictures/*.svg, cell by cell. Two things differ from run to run: seconds, and the ids of sessions.
"""

from __future__ import annotations

import io
import itertools
import os
import re
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pexpect
import pyte
from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.style import Style
from rich.terminal_theme import TerminalTheme
from rich.text import Text

from nca.testing.provider import Provider
from nca.testing.script import Answer, text_of

ROOT = Path(__file__).parents[1]
PICTURES = ROOT / "docs" / "pictures"
COLUMNS, ROWS = 92, 60
WINDOW_TOKENS = 4_800
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

# --- the talk -------------------------------------------------------------------------------------------------------

INVOICE = '''\
"""Invoices of the shop: lines, discounts, tax, and the total that a customer sees."""

from dataclasses import dataclass, field

TAX_RATE = 0.19


@dataclass
class Line:
    """One article on an invoice. Prices are in euros."""

    article: str
    quantity: int
    price: float

    def amount(self) -> float:
        return round(self.quantity * self.price, 2)


@dataclass
class Invoice:
    number: str
    lines: list[Line] = field(default_factory=list)
    discount: float = 0.0

    def net(self) -> float:
        """What the lines come to, less the discount."""
        total = sum(line.amount() for line in self.lines)
        return round(total * (1 - self.discount), 2)

    def tax(self) -> float:
        return round(self.net() * TAX_RATE, 2)

    def total(self) -> float:
        return round(self.net() + self.tax(), 2)

    def mean_price(self) -> float:
        """The mean price of an article on this invoice."""
        return sum(line.price for line in self.lines) / len(self.lines)


def parse_line(text: str) -> Line:
    """One line of the import file: article;quantity;price."""
    article, quantity, price = text.split(";")
    return Line(article.strip(), int(quantity), float(price))


def parse_invoice(number: str, text: str) -> Invoice:
    lines = [parse_line(row) for row in text.splitlines() if row.strip()]
    return Invoice(number, lines)
'''

_CASES = (
    ("one article", "pen;2;1.50", "3.57"),
    ("two articles", "pen;2;1.50\\nink;1;7.25", "12.20"),
    ("a third of a cent", "clip;3;0.335", "1.20"),
    ("nothing at all", "", "0.00"),
    ("blank lines", "\\npen;1;1.00\\n\\n", "1.19"),
)
TESTS = '"""Tests of invoice.py."""\n\nfrom invoice import parse_invoice\n' + "".join(
    f'''

def test_{name.replace(" ", "_")}() -> None:
    invoice = parse_invoice("2024-{number:03}", "{text}")
    assert f"{{invoice.total():.2f}}" == "{total}"
    assert invoice.net() <= invoice.total()
    assert invoice.number == "2024-{number:03}"
'''
    for number, (name, text, total) in enumerate(_CASES, 1)
)

REPORT = '''\
"""The monthly report: one row for each invoice, and what the month came to."""

from collections.abc import Iterable

from invoice import Invoice

HEAD = f"{'number':<10} {'net':>10} {'tax':>10} {'total':>10} {'mean':>8}"


def row(invoice: Invoice) -> str:
    numbers = f"{invoice.net():>10.2f} {invoice.tax():>10.2f} {invoice.total():>10.2f}"
    return f"{invoice.number:<10} {numbers} {invoice.mean_price():>8.2f}"


def report(invoices: Iterable[Invoice]) -> str:
    """Head, rows in the order of their numbers, and the sum of the totals."""
    ordered = sorted(invoices, key=lambda invoice: invoice.number)
    total = round(sum(invoice.total() for invoice in ordered), 2)
    return "\\n".join([HEAD, *map(row, ordered), f"{'':<10} {'':>10} {'':>10} {total:>10.2f}"])
'''

FIRST = "What does invoice.py do? Is anything wrong with it?"
SECOND = "Look at the tests: which case is missing?"
THIRD = "Mend it so that report.py works. Never change parse_line."
FOURTH = "Which rule did I set?"

TALK: dict[str, Sequence[Answer]] = {
    FIRST: (
        Answer(tool_calls=[("read_file", {"path": "invoice.py"})]),
        Answer(
            text="It reads invoices and adds up **net**, **tax** and **total**.\n\n"
            "One fault: `mean_price` divides by `len(self.lines)`, so an invoice without lines ends in "
            "`ZeroDivisionError`.\n"
        ),
    ),
    SECOND: (
        Answer(tool_calls=[("read_file", {"path": "test_invoice.py"})]),
        Answer(text="`nothing at all` checks the total of an empty invoice, but nothing calls `mean_price`.\n"),
    ),
    THIRD: (
        Answer(tool_calls=[("read_file", {"path": "report.py"})]),
        Answer(
            text="`report.py` prints the mean of every invoice, so 0.0 is the safest answer:\n\n"
            "```python\n"
            "def mean_price(self) -> float:\n"
            "    if not self.lines:\n"
            "        return 0.0\n"
            "    return sum(line.price for line in self.lines) / len(self.lines)\n"
            "```\n"
        ),
    ),
    FOURTH: (Answer(text="One: `parse_line` is **never changed**, and it was not.\n"),),
}

SUMMARY = """\
### 1. Goal and intent
Find and mend what is wrong with invoice.py.
### 2. Constraints and rules the user set
Never change parse_line.
### 3. Decisions and findings
mean_price ended in ZeroDivisionError for an invoice without lines; it returns 0.0 now.
### 4. Key concepts
net, tax (TAX_RATE 0.19), total; import lines are article;quantity;price.
### 5. Files and code
invoice.py, test_invoice.py and report.py (read).
### 6. Errors and fixes
ZeroDivisionError in mean_price: guarded by `if not self.lines`.
### 7. Pending and done
Done: the guard. Pending: a test of mean_price for an invoice without lines.
### 8. Current work
The user reviews the change.
### 9. Next step
Write the test.
"""


def talk(request: dict[str, Any]) -> Answer:
    """The answer to the newest of the talk's questions; a summary where one is asked for."""
    messages = request["messages"]
    last = text_of(messages[-1])
    if "<transcript>" in last:
        return Answer(text=SUMMARY)
    asked = max(index for index, message in enumerate(messages) if message["role"] == "user")
    answers = next(answers for question, answers in TALK.items() if text_of(messages[asked]).startswith(question))
    step = sum(1 for message in messages[asked:] if message["role"] == "assistant")
    return answers[min(step, len(answers) - 1)]


# --- the terminal ---------------------------------------------------------------------------------------------------


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


# --- the picture ----------------------------------------------------------------------------------------------------

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


def main() -> None:
    with tempfile.TemporaryDirectory() as folder, Provider(talk, token_seconds=TOKEN_SECONDS) as provider:
        home, directory = Path(folder) / "home", Path(folder) / "demo"
        home.mkdir(mode=0o700)
        directory.mkdir()
        (directory / "invoice.py").write_text(INVOICE, encoding="utf-8")
        (directory / "report.py").write_text(REPORT, encoding="utf-8")
        (directory / "test_invoice.py").write_text(TESTS, encoding="utf-8")
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
