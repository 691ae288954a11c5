"""The arguments of the chat, parsed without Typer, mean the same as with it."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest
import typer

from nca.cli.commands import build, loop
from nca.cli.loop_arguments import SWITCHES, VALUES, LoopArguments, parse


def parameters() -> list[Any]:
    command: Any = build()
    assert isinstance(command, typer.core.TyperGroup)
    return [parameter for parameter in command.commands["loop"].params if parameter.name != "help"]


def test_flags_and_parameters_are_those_of_the_command() -> None:
    options = [parameter for parameter in parameters() if parameter.param_type_name == "option"]
    named = {flag: option.name for option in options for flag in option.opts}
    assert {flag: name for flag, name in named.items() if name in SWITCHES.values()} == SWITCHES
    assert {flag: name for flag, name in named.items() if name in VALUES.values()} == VALUES
    assert named == {**SWITCHES, **VALUES}
    assert {option.name for option in options if option.is_flag} == set(SWITCHES.values())
    assert set(LoopArguments._fields) == {parameter.name for parameter in parameters()}
    defaults = {name: parameter.default for name, parameter in inspect.signature(loop).parameters.items()}
    assert defaults == LoopArguments()._asdict()


def test_a_session_is_continued_by_the_same_names_in_both_commands() -> None:
    whole: Any = build()
    for command in ("loop", "run"):
        names = [set(parameter.opts) for parameter in whole.commands[command].params]
        assert {"--session", "--resume", "-r"} in names


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ([], LoopArguments()),
        (["-c"], LoopArguments(continue_=True)),
        (["--resume", "abc"], LoopArguments(resume=True, texts=["abc"])),
        (["--session", "abc"], LoopArguments(resume=True, texts=["abc"])),
        (["abc", "what next"], LoopArguments(texts=["abc", "what next"])),
        (["-m", "openai/x", "--plain"], LoopArguments(model="openai/x", plain=True)),
        (["--model=a=b", "--config", "f.toml"], LoopArguments(model="a=b", config=Path("f.toml"))),
        (
            ["--allow", "shell make", "--allow=edit_file", "hi"],
            LoopArguments(allow=["shell make", "edit_file"], texts=["hi"]),
        ),
    ],
)
def test_plain_words(words: list[str], meant: LoopArguments) -> None:
    assert parse(words) == meant


@pytest.mark.parametrize(
    "words",
    [
        ["--help"],
        ["--nope"],
        ["-mx"],
        ["-cr"],
        ["--model"],
        ["--model", ""],
        ["--max-cost", "-1"],
        ["--", "a"],
        ["--plain=1"],
    ],
)
def test_everything_else_is_left_to_typer(words: list[str]) -> None:
    assert parse(words) is None
