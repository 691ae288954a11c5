"""Ask a question before there is a prompt, answered with a word and Enter."""

from __future__ import annotations

import shutil
import sys
import textwrap
from collections.abc import Collection

YES_OR_NO = ("y", "yes", "n", "no")


def typed_answer(question: str, valid: Collection[str]) -> str:
    """The valid word that the person types, in lower case; "" at the end of the input.

    An empty line, and any other word, answers nothing: the question is asked again. What was typed before the question
    appeared is discarded.

    question  names the valid words, and ends with a blank
    """
    if sys.platform != "win32":
        from nca.terminal.input.terminal_modes import forget_typed

        forget_typed()
    while True:
        try:
            word = input(f"{wrapped(question)} ").strip().lower()
        except EOFError:
            return ""
        if word in valid:
            return word


def wrapped(text: str) -> str:
    """The text in rows of the terminal's width, broken between words."""
    columns = shutil.get_terminal_size().columns
    return textwrap.fill(text, columns, break_long_words=False, break_on_hyphens=False)


def agrees(question: str) -> bool:
    """Whether the person types yes. The end of the input means no."""
    return typed_answer(f"{question} y or n: ", YES_OR_NO).startswith("y")
