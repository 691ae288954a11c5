"""The messages of errors, in the source of the whole program."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import nca
from nca import errors

CLASSES = {name for name, value in inspect.getmembers(errors, inspect.isclass) if issubclass(value, errors.NcaError)}
LOWER_CASE = re.compile(r"(?!nca |litellm |pip )[a-z]+ (?!window: )")
"""A word of a sentence. Names of programs stay as they are, and so does what stands before a colon: `messages: …`."""


def beginnings() -> Iterator[tuple[str, str]]:
    """Where an error is made, and the first characters of its message."""
    for path in sorted(Path(nca.__file__).parent.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in CLASSES and node.args:
                message = node.args[0]
                first = message.values[0] if isinstance(message, ast.JoinedStr) else message
                if isinstance(first, ast.Constant):
                    yield f"{path.name}:{node.lineno}", str(first.value)


def test_every_message_begins_with_a_capital_letter() -> None:
    found = list(beginnings())
    assert len(found) > 200
    assert [one for one in found if LOWER_CASE.match(one[1])] == []
