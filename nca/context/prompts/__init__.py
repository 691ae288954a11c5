"""The texts that ask for a summary, beside the code that uses them."""

from __future__ import annotations

from functools import cache
from importlib.resources import files


@cache
def prompt(name: str) -> str:
    """The text of `name`.md in this package; package data, read once."""
    return files(__package__).joinpath(f"{name}.md").read_text(encoding="utf-8")
