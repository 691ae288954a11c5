"""The messages of errors, in the source of the whole program."""

from __future__ import annotations

import ast
import inspect
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import nca
from nca import errors, telemetry
from nca.models.embedded.known import RUNTIME
from nca.sessions import postgres

ROOT = Path(__file__).parents[1]

CLASSES = {name for name, value in inspect.getmembers(errors, inspect.isclass) if issubclass(value, errors.NcaError)}
LOWER_CASE = re.compile(r"(?!nca |litellm |pip )[a-z]+ (?!window: )")
"""A word of a sentence. Names of programs stay as they are, and so does what stands before a colon: `messages: …`."""


def test_what_is_missing_is_installed_beside_this_nca() -> None:
    """`pip install 'nca[postgres]'` may be another project's nca, and is not where pipx or uv put this one."""
    command = errors.install_command("a", "b[c]")
    assert sys.executable in command
    assert command.endswith(" a 'b[c]'")
    sources = sorted((ROOT / "nca").rglob("*.py"))
    own = [path.name for path in sources if "pip install" in path.read_text(encoding="utf-8")]
    assert own == ["errors.py"], "nca.errors.install_command knows the command"


def test_what_is_advised_is_what_the_extras_have() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    named = {extra: sorted(row.partition(">")[0] for row in rows) for extra, rows in extras.items()}
    assert named == {"local": [RUNTIME], "postgres": [postgres.PACKAGE], "otel": sorted(telemetry.PACKAGES)}


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
