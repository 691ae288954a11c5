"""Draw the pictures of the documentation from the program itself.

    python scripts/pictures.py            writes docs/pictures/*.svg
    python scripts/pictures.py --check    says which of them the program would draw with other words

Runs `nca loop` in a pseudo-terminal, in a folder `demo` with three small files, against the provider on loopback that
nca ships for tests (`nca.testing`), with files and answers from `pictures_talk`. What is on the screen then is drawn
cell by cell. Dates, seconds and the ids of sessions differ from run to run; `pictures_views` makes the picture of log
and view, which is the same in every run.
"""

from __future__ import annotations

import json
import re
import secrets
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from string import ascii_lowercase
from xml.etree import ElementTree

from pictures_svg import EDGE, GROUND, INK, card, screen
from pictures_talk import CHANGE, CLEAN, FILES, FIRST, FOURTH, LONG, SECOND, THIRD, WINDOW_TOKENS, talk
from pictures_terminal import Terminal, environment
from pictures_views import views

from nca.testing.provider import Provider

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"
TEMPORARY = Path("/tmp")
"""Not where an environment says: the length of the path is counted and shown."""
USUAL = {"NCA_CONTEXT__COMPACT_THRESHOLD": "0.80", "NCA_CONTEXT__TARGET_RATIO": "0.65"}
"""A usual window's threshold in a small one, so that little has to be said until it is reached."""
TOKEN_SECONDS = 0.004
ROOMY_TOKENS = 16_000
LONG_WINDOW_TOKENS = 9_000
MODEL = ("-m", "openai/scripted", "--context-window")
TIMELINE_COLOURS = {
    "fixed": "#5b4a80",
    "summaries": "#a3842f",
    "ledger": "#c79a2e",
    "conversation": "#256a75",
    "tool_calls": "#304a80",
    "tool_results": "#3f66b3",
    "attachments": "#8a4640",
}


@contextmanager
def demo(*, is_check: bool) -> Iterator[tuple[Path, dict[str, str]]]:
    """A folder of our own, with a name of as many letters each time: the model is told it, so its tokens are counted.

    The pictures that are kept show the name; a check takes one that nobody else has.
    """
    letters = "".join(secrets.choice(ascii_lowercase) for _ in "pictures") if is_check else "pictures"
    folder = TEMPORARY / f"nca-{letters}"
    folder.mkdir(mode=0o700)
    try:
        home, directory = folder / "home", folder / "demo"
        home.mkdir(mode=0o700)
        directory.mkdir()
        for name, text in FILES.items():
            (directory / name).write_text(text, encoding="utf-8")
        with Provider(talk, token_seconds=TOKEN_SECONDS) as provider:
            yield directory, environment(home, provider.url) | USUAL
    finally:
        shutil.rmtree(folder)


def drawn(*, is_check: bool = False) -> Iterator[tuple[str, str]]:
    """Names and pictures, as the program draws them now."""
    yield "views", views()
    with demo(is_check=is_check) as (directory, env):
        yield "timeline", timeline(directory, env)
    with demo(is_check=is_check) as (directory, env):
        yield from approval(directory, env)
    with demo(is_check=is_check) as (directory, env):
        yield "undo", undo(directory, env)
    with demo(is_check=is_check) as (directory, env):
        yield from chat(directory, env)


def chat(directory: Path, env: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Four questions that fill the window, with the card below the compaction; then the panel with its list."""
    # A summarizer takes a second or less, and the line says how long only from a second on.
    env = {**env, "NCA_MODEL__SUMMARIZER": "none"}
    terminal = Terminal(["loop", *MODEL, str(WINDOW_TOKENS)], directory, env)
    terminal.line(FIRST, "ZeroDivisionError")
    terminal.line(SECOND, "nothing calls")
    terminal.line(THIRD, "always")
    terminal.key("y", "without lines")
    terminal.line(FOURTH, "it was not")
    terminal.wait("You said: ")
    terminal.wait("So far: ")
    yield "chat", screen(terminal.rows(), "nca loop")
    terminal.clear()
    terminal.line("/context", "Esc leaves")
    yield "context", screen(terminal.rows(), "/context")
    terminal.key("\x1b", "")
    terminal.leave()


def approval(directory: Path, env: dict[str, str]) -> Iterator[tuple[str, str]]:
    """A change that waits for its approval; then it was made, and /rewind asks what is to go back."""
    terminal = Terminal(["loop", *MODEL, str(ROOMY_TOKENS)], directory, env)
    terminal.clear()
    terminal.line(CHANGE, "always")
    yield "approval", screen(terminal.rows(), "A change that waits for approval")
    terminal.key("y", "if there are no lines")
    terminal.clear()
    terminal.line("/rewind", "goes back to before it")
    terminal.key("\r", "files only")
    yield "rewind", screen(terminal.rows(), "/rewind")
    terminal.key("\x1b", "Nothing was changed")
    terminal.leave()


def undo(directory: Path, env: dict[str, str]) -> str:
    """A command deletes two files; /undo brings them back."""
    terminal = Terminal(["loop", *MODEL, str(ROOMY_TOKENS)], directory, env)
    terminal.clear()
    terminal.line(CLEAN, "always")
    terminal.key("y", "are deleted")
    terminal.line("/undo", "restored")
    terminal.key("\x15", "")
    terminal.line("!ls", "Attached to")
    picture = screen(terminal.rows(), "/undo after rm")
    terminal.leave()
    return picture


def timeline(directory: Path, env: dict[str, str]) -> str:
    """A session of many questions down a pipe, and the picture in its export, in colours that need no page."""
    command = [sys.executable, "-m", "nca"]
    lines = "".join(f"{line}\n" for line in LONG)
    loop = [*command, "loop", *MODEL, str(LONG_WINDOW_TOKENS)]
    subprocess.run(loop, cwd=directory, env=env, input=lines, text=True, capture_output=True, check=True)
    listed = subprocess.run([*command, "sessions", "list", "--json"], cwd=directory, env=env, stdout=-1, check=True)
    (session,) = json.loads(listed.stdout)
    export = [*command, "sessions", "export", session["id"], "--format", "html"]
    page = subprocess.run(export, cwd=directory, env=env, stdout=-1, check=True).stdout.decode()
    found = re.search(r'<svg viewBox="0 0 (\d+) (\d+)".*?>\n(.*?)</svg>', page, re.DOTALL)
    assert found, page
    rules = "".join(f".{kind}{{fill:{colour}}}" for kind, colour in TIMELINE_COLOURS.items())
    style = (
        f"<style>svg{{font:11px system-ui,sans-serif;fill:{INK}}}.k{{stroke:{GROUND};stroke-width:.5}}{rules}"
        f".line{{fill:none;stroke:#6cb0ff;stroke-width:1.5}}.axis{{stroke:{EDGE}}}"
        ".mark line{stroke:#f0a04b;stroke-dasharray:3 3}.mark circle{fill:#f0a04b}</style>"
    )
    inner = re.sub(r"</?a\b[^>]*>", "", found[3])
    body = [style, f'<g transform="translate(8 12)">\n{inner}</g>']
    return card(body, title="The context over the turns", width=int(found[1]) + 16, height=int(found[2]) + 20)


_VARYING = re.compile(r"\b[0-9a-f]{8}\b|\d[\d.,:k-]*|/\S*/nca-\w{8}\b")
_DURATION = re.compile(r" · # s$")
"""Said only of what took long."""


def wording(svg: str) -> list[str]:
    """The words of a picture in their order, wherever lines break; without numbers, ids and what has their length."""
    texts = [(node.text or "").replace("\xa0", " ") for node in ElementTree.fromstring(svg).iter()]
    return " ".join(_DURATION.sub("", _VARYING.sub("#", text).strip()) for text in texts).split()


def main() -> None:
    is_check = sys.argv[1:] == ["--check"]
    stale = []
    for name, svg in drawn(is_check=is_check):
        path = PICTURES / f"{name}.svg"
        if is_check:
            stored = path.read_text(encoding="utf-8") if path.exists() else "<svg/>"
            now, then = wording(svg), wording(stored)
            if now != then:
                stale.append(name)
                print(f"{name}.svg shows {sorted(set(then) - set(now))}; now {sorted(set(now) - set(then))}")
        else:
            PICTURES.mkdir(parents=True, exist_ok=True)
            path.write_text(svg, encoding="utf-8", newline="\n")
            print(f"{path.relative_to(PICTURES.parents[1])}  {len(svg) / 1000:.0f} kB")
    if stale:
        sys.exit("Other words than the program's: run python scripts/pictures.py")


if __name__ == "__main__":
    main()
