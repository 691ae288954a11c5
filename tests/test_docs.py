"""README and docs say what is so: their commands and flags exist, their links lead somewhere, their code runs."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import typer

from nca.cli.app import HELP_FLAGS, VERSION_FLAGS, run
from nca.cli.commands import build
from nca.terminal.commands import COMMANDS, find_command

ROOT = Path(__file__).parents[1]
PAGES = sorted([ROOT / "README.md", ROOT / "AGENTS.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").glob("*.md")])
PICTURES = sorted((ROOT / "docs" / "pictures").glob("*.svg"))
MOST_PICTURE_BYTES = 60_000

_FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"`([^`\n]+)`")
_LINK = re.compile(r"\]\(([^)\s]+)\)|<img[^>]* src=\"([^\"]+)\"")
_HEADING = re.compile(r"^#+ +(.+)$", re.MULTILINE)
_CHAT_WORDS = {"exit"}


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
    """The command that the words name, and its path; `nca` alone and `nca -m` are `nca loop`."""
    command: Any = typer.main.get_command(build())
    if not words or (words[0].startswith("-") and words[0] not in HELP_FLAGS):
        return ["loop"], command.commands["loop"]
    path: list[str] = []
    for word in words:
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


def test_the_docs_name_commands() -> None:
    assert {"nca loop", "nca doctor"} <= set(_command_lines())


@pytest.mark.parametrize("line", _command_lines())
def test_a_command_in_the_docs_exists(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = shlex.split(line.split(" > ")[0], comments=True)[1:]
    if words and words[0] in VERSION_FLAGS:
        return
    path, command = _resolve(words)
    given = {word.split("=")[0] for word in words if word.startswith("-") and word != "-"}
    assert given <= _flags(command)
    assert run([*path, "--help"]) == 0
    assert "Usage: nca" in capsys.readouterr().out


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_flags_and_chat_commands_in_the_docs_exist(page: Path) -> None:
    in_the_chat = {flag for command in COMMANDS for flag in re.findall(r"--[a-z-]+", command.usage)}
    known = _all_flags(typer.main.get_command(build())) | set(VERSION_FLAGS) | in_the_chat
    for code in _codes(page):
        first = code.split()[0] if code.split() else ""
        if re.fullmatch(r"--[a-z-]+", first):
            assert first in known, f"{page.name}: no command has {first}"
        elif re.fullmatch(r"/[a-z]+", first) and first[1:] not in _CHAT_WORDS:
            assert find_command(first[1:]), f"{page.name}: the chat has no {first}"


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
    assert not re.search(r"/(?:home|root|tmp|Users)\b", text)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_code_without_a_prompt_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What has a prompt (>>>) is a doctest of the library's; the rest is run as it stands."""
    monkeypatch.chdir(tmp_path)
    for kind, body in _FENCE.findall(page.read_text(encoding="utf-8")):
        if kind == "python" and ">>>" not in body:
            exec(compile(body, page.name, "exec"), {})
