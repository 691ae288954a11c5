"""The code that a small model gives for a file: without what is around it, and checked."""

from __future__ import annotations

import ast
import json
import re
import tomllib
import warnings
from collections.abc import Callable
from pathlib import PurePath
from typing import Any

from nca.tools.tool import ToolError

_CHECKED_CHARS = 500_000
"""Larger files are not parsed: it would take seconds."""
_LEFT_OUT = re.compile(r"(?:#|//|--|;|/\*|<!--)?\s*(?:\.\.\.|…)\s*(?:\*/|-->)?|(?:#|//|--).*(?:\.\.\.|…).*")
_FENCE = re.compile(r"\s*```[^\n]*\n(.*?)\n?```\s*", re.DOTALL)
_NUMBER = re.compile(r"\s*\d+\t")


def bare(code: str) -> str:
    """The code without a fence and without line numbers around it."""
    fenced = _FENCE.fullmatch(code)
    lines = (fenced[1] if fenced else code).replace("\r\n", "\n").strip("\n").split("\n")
    if all(_NUMBER.match(line) for line in lines if line.strip()):
        lines = [_NUMBER.sub("", line, count=1) for line in lines]
    return "\n".join(line.rstrip() for line in lines)


def refuse_gaps(text: str, code: str) -> None:
    """Raises ToolError if a line of the code stands for lines that it leaves out."""
    there = {line.strip() for line in text.split("\n")}
    for line in code.split("\n"):
        said = line.strip()
        if said and said not in there and _LEFT_OUT.fullmatch(said):
            raise ToolError(f"new_text leaves something out ({said[:40]}); write all of the function that changes")


def refuse_invalid(before: str, after: str, filename: str) -> None:
    """Raises ToolError if a Python, JSON or TOML file was valid before and is not after."""
    parse = _PARSERS.get(PurePath(filename).suffix.lower())
    if parse is None or len(after) > _CHECKED_CHARS or _fault(parse, before):
        return
    if fault := _fault(parse, after):
        raise ToolError(f"{filename} would not be valid any more ({fault}); nothing is changed; write whole functions")


def _python(text: str) -> None:
    # A deprecated escape in a string is no fault of the change.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ast.parse(text)


_PARSERS: dict[str, Callable[[str], Any]] = {".py": _python, ".json": json.loads, ".toml": tomllib.loads}


def _fault(parse: Callable[[str], Any], text: str) -> str:
    """What is wrong with the text, in one line; "" if it is valid."""
    try:
        parse(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError) as error:
        return " ".join(str(error).split()) or type(error).__name__
    return ""
