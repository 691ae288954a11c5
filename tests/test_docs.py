"""README and docs match the program: commands and flags exist, links resolve, code runs."""

from __future__ import annotations

import ast
import importlib
import re
import shlex
import subprocess
import sys
import tokenize
import tomllib
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from nca.cli import HELP_FLAGS, VERSION_FLAGS
from nca.cli.app import run, with_command
from nca.cli.commands import build
from nca.compat.names import FOREIGN_NAMES
from nca.config.schema import KEYS
from nca.terminal.commands.command import Command, all_commands, find_command

ROOT = Path(__file__).parents[1]
PAGES = sorted([ROOT / "README.md", ROOT / "AGENTS.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").glob("*.md")])
PICTURES = sorted((ROOT / "docs" / "pictures").glob("*.svg"))
MOST_PICTURE_BYTES = 60_000

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"`([^`\n]+)`")
_LINK = re.compile(r"\]\(([^)\s]+)\)|<img[^>]* src=\"([^\"]+)\"")
_HEADING = re.compile(r"^#+ +(.+)$", re.MULTILINE)
_PATH = re.compile(r"/(?:bin|etc|home|opt|proc|run|tmp|usr|var)\b")
"""Folders of a machine; nothing of the chat is called so."""
SCRIPTS = ROOT / "scripts"


def _codes(page: Path) -> list[str]:
    """Inline code, and the lines of fences in a shell's language; a pipe's parts each for itself."""
    text = page.read_text(encoding="utf-8")
    lines = [line for kind, body in _FENCE.findall(text) if kind in ("sh", "console") for line in body.splitlines()]
    commands = [part.strip() for line in lines for part in line.removeprefix("$ ").split(" | ")]
    return commands + _INLINE.findall(_FENCE.sub("", text))


def _command_lines() -> list[str]:
    found = {code for page in PAGES for code in _codes(page) if code == "nca" or code.startswith("nca ")}
    return sorted(found)


def _resolve(words: list[str]) -> tuple[list[str], Any]:
    """The command that the words name, and its path."""
    command: Any = build()
    path: list[str] = []
    for word in with_command(words):
        if not hasattr(command, "commands"):
            break
        names = word.split("|")
        assert set(names) <= set(command.commands), f"nca {' '.join(words)}: there is no {word!r}"
        path.append(names[0])
        command = command.commands[names[0]]
    return path, command


def _flags(command: Any) -> set[str]:
    return {flag for parameter in command.params for flag in parameter.opts} | set(HELP_FLAGS)


def _all_flags(command: Any) -> set[str]:
    return _flags(command).union(*(_all_flags(below) for below in getattr(command, "commands", {}).values()))


def test_a_percentage_is_written_in_one_way() -> None:
    apart = re.compile(r"[0-9}] %(?![a-z(])")
    texts = {page.name: page.read_text(encoding="utf-8") for page in PAGES}
    for path in [*(ROOT / "nca").rglob("*.py"), *(ROOT / "benchmarks").glob("*.py")]:
        if not apart.search(path.read_text(encoding="utf-8")):
            continue
        with path.open("rb") as file:
            said = [one.string for one in tokenize.tokenize(file.readline) if one.type == tokenize.STRING]
        texts[path.name] = "\n".join(said)
    assert {name: apart.findall(text) for name, text in texts.items() if apart.search(text)} == {}, "write 80%"


def test_no_message_names_a_page_that_only_the_repository_has() -> None:
    named = {}
    for path in (ROOT / "nca").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if "docs/" not in text:
            continue
        tree = ast.parse(text)
        strings = {id(one): one.value for one in ast.walk(tree) if isinstance(one, ast.Constant)}
        for one in ast.walk(tree):
            if isinstance(one, ast.Expr):  # a docstring
                strings.pop(id(one.value), None)
        if found := [said for said in strings.values() if isinstance(said, str) and re.search(r"\bdocs/\S+\.md", said)]:
            named[path.name] = found
    assert named == {}


def test_the_docs_name_commands() -> None:
    assert {"nca loop", "nca doctor"} <= set(_command_lines())


@pytest.mark.parametrize("line", _command_lines())
def test_a_command_in_the_docs_exists(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = shlex.split(line.split(" > ")[0], comments=True)[1:]
    if words and words[0] in VERSION_FLAGS:
        return
    path, command = _resolve(words)
    # What follows `--` is another program's.
    words = list(takewhile(lambda word: word != "--", words))
    given = {word.split("=")[0] for word in words if word.startswith("-") and word != "-"}
    assert given <= _flags(command)
    assert run([*path, "--help"]) == 0
    assert "Usage: nca" in capsys.readouterr().out


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_flags_and_chat_commands_in_the_docs_exist(page: Path) -> None:
    in_the_chat = {flag for command in all_commands() for flag in re.findall(r"--[a-z-]+", command.usage)}
    known = _all_flags(build()) | set(VERSION_FLAGS) | in_the_chat
    for code in _codes(page):
        first = code.split()[0] if code.split() else ""
        if re.fullmatch(r"--[a-z-]+", first):
            assert first in known, f"{page.name}: no command has {first}"
        elif re.fullmatch(r"/[a-z]+", first) and not _PATH.fullmatch(first):
            command = find_command(first[1:])
            assert command, f"{page.name}: the chat has no {first}"
            _check_words(page, command, code.split()[1:])


def _check_words(page: Path, command: Command, words: list[str]) -> None:
    """What stands behind `/context` is one of its words, or a place for something of yours."""
    below = re.findall(rf"^/{command.name} ([a-z]+)", command.usage, re.MULTILINE)
    if command.name == "context" and words and words[0].isascii() and words[0].islower():
        assert words[0] in below, f"{page.name}: there is no /context {words[0]}"


def _paths(command: Any, path: tuple[str, ...] = ("nca",)) -> Iterator[str]:
    below = getattr(command, "commands", {})
    yield from (" ".join((*path, name)) for name in below)
    for name, one in below.items():
        yield from _paths(one, (*path, name))


def _all_codes() -> set[str]:
    return {code for page in PAGES if page.name != "CHANGELOG.md" for code in _codes(page)}


@pytest.mark.parametrize("path", sorted(_paths(build())))
def test_every_command_is_documented(path: str) -> None:
    assert any(code == path or code.startswith(f"{path} ") for code in _all_codes()), f"no page has {path}"


@pytest.mark.parametrize("name", [command.name for command in all_commands()])
def test_every_chat_command_is_documented(name: str) -> None:
    assert any(code.split()[:1] == [f"/{name}"] for code in _all_codes()), f"no page has /{name}"


def test_every_word_of_context_is_documented() -> None:
    """Below `/context`, in a row of a table or in text: `/context undo`, or `undo` behind it."""
    words = re.findall(
        r"^/context ([a-z]+)", all_commands()[[one.name for one in all_commands()].index("context")].usage, re.M
    )
    rows = [line for page in PAGES for line in page.read_text(encoding="utf-8").splitlines() if "/context" in line]
    missing = [word for word in words if not any(re.search(rf"`(?:/context )?{word}\b", row) for row in rows)]
    assert words
    assert not missing


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_settings_in_the_docs_exist(page: Path) -> None:
    """`context.max_turns`, a group such as `context.prune`, and names in the environment."""
    groups = {name.rpartition(".")[0] for name in KEYS} | {name.split(".")[0] for name in KEYS}
    known = set(KEYS) | groups
    if page.name == "CHANGELOG.md":
        known |= {name for foreign in FOREIGN_NAMES for name in foreign.names}  # what was renamed
    text = _PARTS_OF_OTHERS.split(page.read_text(encoding="utf-8"))[0]
    for code in _INLINE.findall(_FENCE.sub("", text)):
        if match := _SETTING.fullmatch(code):
            assert match[1] in known or _is_no_setting(match[1]), f"{page.name}: there is no setting {match[1]}"
        if match := re.fullmatch(r"NCA_([A-Z_]+__[A-Z_]+)(?:=.*)?", code):
            key = match[1].lower().replace("__", ".")
            assert key in KEYS, f"{page.name}: {code} sets nothing"


_SETTING = re.compile(rf"((?:{'|'.join(sorted({name.split('.')[0] for name in KEYS if '.' in name}))})\.[a-z_.]+)")
_PARTS_OF_OTHERS = re.compile(r"^## Names from other programs$", re.MULTILINE)


def _is_no_setting(name: str) -> bool:
    """A file, a module of nca's, or an object of the library's."""
    first, _, rest = name.partition(".")
    is_module = (ROOT / "nca" / first / f"{rest.split('.')[0]}.py").exists() or (ROOT / "nca" / first / rest).is_dir()
    return is_module or rest in {"md", "json", "toml", "db"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for first, second in _LINK.findall(page.read_text(encoding="utf-8")):
        link = first or second
        if re.match(r"[a-z]+:", link):
            continue
        name, _, anchor = link.partition("#")
        target = page.parent / name if name else page
        assert target.exists(), f"{page.name}: {link}"
        if anchor:
            assert anchor in _anchors(target), f"{page.name}: {link}"


def _anchors(page: Path) -> set[str]:
    """As GitHub makes them of headings."""
    headings = _HEADING.findall(_FENCE.sub("", page.read_text(encoding="utf-8")))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def _layers() -> list[str]:
    """The rooms from above, as import-linter holds them."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = settings["tool"]["importlinter"]["contracts"]
    return [layer.replace("nca.", "") for one in contracts if one["type"] == "layers" for layer in one["layers"]]


def test_the_rooms_are_those_that_are_held() -> None:
    rooms = (ROOT / "AGENTS.md").read_text(encoding="utf-8").partition("**Rooms.**")[2].partition("\n\n")[0]
    assert re.findall(r"`([a-z_. |]+)`(?= >|\.\n)", rooms) == _layers()
    house = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    # A room whose modules stand on several floors is named once.
    rooms_held = {layer.partition(".")[0] for layer in _layers()}
    assert not [room for room in rooms_held if not re.search(rf"`{room}(?:/|\.py)`", house)]


def test_the_page_on_architecture_lists_every_module() -> None:
    """The first column of each table below "Modules", relative to the folder in the heading above it."""
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8").partition("\n## Modules\n")[2]
    listed = [
        f"{folder}{name}"
        for folder, text in re.findall(r"^### `nca/([\w/]*)`\n(.*?)(?=^### |\Z)", page, re.MULTILINE | re.DOTALL)
        for names in re.findall(r"^\| (`.*?) \|", text, re.MULTILINE)
        for name in re.findall(r"`([^`]+)`", names)
    ]
    files = [file for file in (ROOT / "nca").rglob("*.py") if file.name != "__init__.py" or _has_code(file)]
    modules = {file.relative_to(ROOT / "nca").with_suffix("").as_posix() for file in files}
    assert sorted(modules - set(listed)) == [], "not listed"
    assert sorted(set(listed) - modules) == [], "listed, but they do not exist"
    assert len(listed) == len(set(listed)), "listed twice"


def _has_code(file: Path) -> bool:
    """More than a docstring."""
    return len(ast.parse(file.read_text(encoding="utf-8")).body) > 1


def test_files_that_the_page_on_architecture_names_exist() -> None:
    """`nca/context/policy.py`, or `agent/turn` in the text above the tables."""
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8").partition("\n## Modules\n")[0]
    rooms = "|".join(folder.name for folder in (ROOT / "nca").iterdir() if folder.is_dir())
    named = re.findall(rf"`(?:nca/)?((?:{rooms})/[\w/]*)(?:\.py)?`", page)
    assert len(named) > 20
    assert not [name for name in named if not _is_there(name)]


def test_decisions_that_the_code_names_exist() -> None:
    """A comment says: docs/decisions.md, "Title"."""
    page = (ROOT / "docs" / "decisions.md").read_text(encoding="utf-8")
    titles = set(re.findall(r"^## (.+)$", page, re.MULTILINE))
    for folder in ("nca", "benchmarks", "scripts"):
        for file in (ROOT / folder).rglob("*.py"):
            words = " ".join(file.read_text(encoding="utf-8").replace("#", " ").split())
            for title in re.findall(r'docs/decisions\.md, "([^"]+)"', words):
                assert title in titles, f"{file.name}: there is no decision {title!r}"


def _is_there(name: str) -> bool:
    """`context/plan`, or `context/stages/`, below nca/."""
    path = ROOT / "nca" / name
    return path.is_dir() if name.endswith("/") else path.with_suffix(".py").is_file()


def test_the_pictures_are_those_that_are_shown() -> None:
    shown = {
        (page.parent / (first or second)).resolve()
        for page in PAGES
        for first, second in _LINK.findall(page.read_text(encoding="utf-8"))
        if (first or second).endswith(".svg")
    }
    assert shown == set(PICTURES)
    assert PICTURES


@pytest.mark.parametrize("picture", PICTURES, ids=lambda picture: picture.name)
def test_a_picture_is_small_and_fetches_nothing(picture: Path) -> None:
    text = picture.read_text(encoding="utf-8")
    assert ElementTree.fromstring(text).tag == "{http://www.w3.org/2000/svg}svg"
    assert len(text.encode()) < MOST_PICTURE_BYTES
    assert not re.search(r"url\((?!#)|@import|<image|<script|href=", text)
    assert not re.search(r"/(?:home|root|tmp|Users)\b(?!/nca-pictures/demo)", text)


@pytest.mark.parametrize("picture", PICTURES, ids=lambda picture: picture.name)
def test_a_picture_can_be_read_on_light_and_on_dark_pages(picture: Path) -> None:
    """It brings a ground of its own, and every text stands out from what it stands on (WCAG's 4.5 to 1)."""
    root = ElementTree.fromstring(picture.read_text(encoding="utf-8"))
    shapes = list(root.iter())
    opaque = [shape for shape in shapes if shape.tag.endswith("rect") and "fill-opacity" not in shape.attrib]
    grounds = [shape.attrib for shape in opaque if "fill" in shape.attrib]
    for shape in shapes:
        ink = shape.attrib.get("fill", root.attrib.get("fill"))
        if not shape.tag.endswith("text") or ink is None:
            continue
        # What was drawn last lies on top: the first covers the whole picture.
        behind = next((one for one in reversed(grounds) if _covers(one, shape.attrib)), grounds[0])
        assert _contrast(ink, behind["fill"]) >= 4.5, shape.text


def _covers(ground: dict[str, str], text: dict[str, str]) -> bool:
    """Whether a text begins on a rectangle; its y is that of its line of writing."""
    x, y, width, height = (float(ground.get(name, "0")) for name in ("x", "y", "width", "height"))
    return x <= float(text.get("x", "0")) < x + width and y <= float(text.get("y", "0")) < y + height


def _contrast(one: str, other: str) -> float:
    """As WCAG 2.1 defines it."""

    def luminance(shade: str) -> float:
        parts = [int(shade[place : place + 2], 16) / 255 for place in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


def test_the_picture_of_log_and_view_is_what_the_engine_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(SCRIPTS))
    drawn = importlib.import_module("pictures_views").views()
    advice = "run: python scripts/pictures.py"
    assert (ROOT / "docs" / "pictures" / "views.svg").read_text(encoding="utf-8") == drawn, advice


@pytest.mark.timeout(900)
def test_the_page_on_events_says_what_the_definitions_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(SCRIPTS))
    page: Any = importlib.import_module("events")
    assert page.FILE.read_text(encoding="utf-8") == page.render(), "run: python scripts/events.py"


def test_the_pictures_have_the_words_of_the_program() -> None:
    """Drawn anew in a pseudo-terminal; numbers, ids and dates may differ."""
    command = [sys.executable, str(SCRIPTS / "pictures.py"), "--check"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_code_without_a_prompt_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What has a prompt (>>>) is a doctest of the library's; the rest is run as it stands."""
    monkeypatch.chdir(tmp_path)
    for name, value in (("CHAT_FOLDER", str(tmp_path)), ("CHAT_USERS", "{}"), ("OPENAI_API_KEY", "x")):
        monkeypatch.setenv(name, value)  # what the example for FastAPI is told
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # else litellm begins a download when it is imported
    for kind, body in _FENCE.findall(page.read_text(encoding="utf-8")):
        if kind == "python" and ">>>" not in body:
            exec(compile(body, page.name, "exec"), {})
