"""Ask a question, answered with one key, while a turn or a command waits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

from prompt_toolkit.key_binding import KeyPress
from prompt_toolkit.keys import Keys
from rich.text import Text

from nca.terminal.panels.locked_session import KeyChoice

if TYPE_CHECKING:
    from nca.terminal.input.prompt import Prompt
    from nca.terminal.render.draw import Draw

T = TypeVar("T")


async def choose_by_key(question: str, keys: Sequence[KeyChoice], draw: Draw, prompt: Prompt) -> str:
    """The chosen key; "" for Escape, Ctrl-C and the end of the input. Other keys are ignored."""

    def take(key: KeyPress | None) -> str | None:
        word = "" if key is None or key.key == Keys.Escape else str(key.key).lower()
        return word if not word or word in [one for one, _ in keys] else None

    return await ask_by_key(
        draw,
        prompt,
        show=lambda: draw.warn(question),
        line=lambda: keys_line((*keys, ("Esc", "cancel")), Text()),
        take=take,
        expected=lambda: "".join(key for key, _ in keys),
    )


async def ask_by_key(
    draw: Draw,
    prompt: Prompt,
    *,
    show: Callable[[], None],
    line: Callable[[], Text],
    take: Callable[[KeyPress | None], T | None],
    expected: Callable[[], str | None],
) -> T:
    """Ask a question and wait until `take` returns an answer.

    show  prints what the question is about; called once the prompt is paused
    line  the keys that can be pressed now; called again after each key
    take  turns a key into the answer, or None if more keys are needed; the key is None at the end of the input
    expected  the keys that mean something now; None: every key does. Other keys are for the prompt
    """
    await prompt.type_ahead.pause()
    given: asyncio.Future[T] = asyncio.get_running_loop().create_future()

    def press(key: KeyPress | None) -> None:
        if given.done():
            return
        if (answer := take(key)) is not None:
            given.set_result(answer)
        draw.show_question(line())

    show()
    draw.show_question(line())
    try:
        with prompt.type_ahead.asking(press, expected):
            return await given
    finally:
        draw.show_question(None)


def keys_line(keys: Sequence[KeyChoice], line: Text) -> Text:
    """Append each key, and what it does, to `line`."""
    for key, about in keys:
        line.append("  " if line else "").append(key, style="bold").append(f" {about}")
    return line
