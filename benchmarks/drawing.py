"""Measure drawing: an answer of a megabyte, many small pieces, Markdown that is slow to parse.

`python -m benchmarks.drawing`. Times are processor seconds of everything from the event to the bytes for the terminal.
"""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Iterable, Iterator

from nca.events import Notice, TextDelta, ToolFinished, TurnFinished
from nca.terminal.render.draw import Draw
from nca.terminal.render.screen import Screen

COLUMNS, ROWS = 100, 40
PROSE = "Some *words* with `code`, a [link](https://example.org/a) and **more** of them, 日本 too. " * 5 + "\n\n"
CODE = "value = call(1, 'two')  # why\n"


class _Nowhere(io.StringIO):
    """A terminal that is infinitely fast."""

    def write(self, text: str) -> int:
        return len(text)


def seconds_of(text: str, chunk_chars: int = 1_000) -> float:
    """Processor seconds to draw an answer that comes in chunks."""
    chunks = [text[start : start + chunk_chars] for start in range(0, len(text), chunk_chars)]
    screen = Screen(_Nowhere())
    screen.console.size = (COLUMNS, ROWS)
    draw = Draw(screen)
    started = time.process_time()
    for chunk in chunks:
        draw.on_event(TextDelta(chunk))
    draw.on_event(TurnFinished("answered", "", 1, 0.1))
    return time.process_time() - started


def streams(counts: Iterable[int] = (10_000, 20_000), *, runs: int = 3) -> list[float]:
    """Seconds for answers of so many chunks of four characters; linear cost doubles them."""
    longest = max(counts)
    text = (PROSE * (4 * longest // len(PROSE) + 1))[: 4 * longest]
    return [min(_stream_seconds(text[: 4 * count]) for _ in range(runs)) for count in counts]


def _stream_seconds(text: str) -> float:
    """With every frame drawn that a slow stream would draw: one in five chunks."""
    screen = Screen(_Nowhere())
    screen.console.size = (COLUMNS, ROWS)
    draw = Draw(screen)
    draw._is_at_work = True
    started = time.process_time()
    for number in range(0, len(text), 4):
        draw.on_event(TextDelta(text[number : number + 4]))
        if number % 20 == 0:
            draw._frame()
    draw.on_event(TurnFinished("answered", "", 1, 0.1))
    return time.process_time() - started


CASES: dict[str, Callable[[], str]] = {
    "one line of 1 MB": lambda: "x" * 1_000_000,
    "one line of 1 MB, words": lambda: "word " * 200_000,
    "one line of 1 MB, wide characters": lambda: "日本語" * 333_333,
    "one line of 1 MB, in code": lambda: f"```\n{'x' * 1_000_000}\n```\n",
    "50,000 list items": lambda: "- an item of it\n" * 50_000,
    "50,000 numbered items": lambda: "1. an item of it\n" * 50_000,
    "a table of 20,000 rows": lambda: "| a | b | c |\n|---|---|---|\n" + "| one | two | `three` |\n" * 20_000,
    "code of 20,000 lines": lambda: "```python\n" + CODE * 20_000,
    "code of 2,000 lines in a list": lambda: "1. so\n   ```python\n" + f"   {CODE}" * 2_000,
    "one string of 5,000 lines": lambda: "```python\n'''\n" + "text in it\n" * 5_000,
    "1,000 levels of quotes": lambda: "> " * 1_000 + "x\n",
    "1,000 levels of lists": lambda: "- " * 1_000 + "x\n",
    "300 lists, each in the one before": lambda: "".join(f"{'  ' * depth}- x\n" for depth in range(300)),
    "100,000 asterisks": lambda: "*" * 100_000,
    "100,000 brackets": lambda: "[" * 100_000,
    "100,000 backticks": lambda: "`" * 100_000,
    "brackets, line by line": lambda: ("[" * 7_000 + "\n") * 14,
    "images, line by line": lambda: ("![" * 3_500 + "\n") * 14,
    "links, line by line": lambda: ("[x](" * 1_700 + "\n") * 14,
    "emphasis, line by line": lambda: ("*a **b " * 1_000 + "\n") * 20,
    "backticks of all lengths": lambda: "".join("`" * (number % 300) + " " for number in range(2_000)),
    "escape sequences that never end": lambda: "\x1b]0;" * 50_000,
    "entities": lambda: "&#x202e;" * 50_000,
}


def report() -> Iterator[str]:
    """One line each."""
    seconds_of("warm\n\n```python\nx = 1\n```\n")
    for name, made in CASES.items():
        text = made()
        yield f"{name}: {seconds_of(text):.2f} s for {len(text):,} characters"
    short, long = streams()
    yield f"10,000 chunks: {short:.2f} s, 20,000: {long:.2f} s, ratio {long / short:.2f}"
    yield f"a tool's change of 100,000 lines: {_change_seconds():.2f} s"
    yield f"a notice of 1 MB: {_notice_seconds():.2f} s"


def _change_seconds() -> float:
    diff = "--- a/x\n+++ b/x\n@@ -1,100000 +1,100000 @@\n" + "-old line\n" * 50_000 + "+new line\n" * 50_000
    return _event_seconds(ToolFinished("1", "edit_file", is_error=False, summary="", seconds=0, diff=diff))


def _notice_seconds() -> float:
    return _event_seconds(Notice("x" * 1_000_000))


def _event_seconds(event: ToolFinished | Notice) -> float:
    draw = Draw(Screen(_Nowhere()))
    started = time.process_time()
    draw.on_event(event)
    return time.process_time() - started


def main() -> None:
    for line in report():
        print(line, flush=True)


if __name__ == "__main__":
    main()
