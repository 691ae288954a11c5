"""Ask the person a question that one key answers, while a turn or a command waits."""

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
    """The key that was pressed; any other means nothing. "" for Escape, Ctrl-C and the end of the input."""

    def take(key: KeyPress | None) -> str | None:
        word = "" if key is None or key.key == Keys.Escape else str(key.key).lower()
        return word if not word or word in [one for one, _ in keys] else None

    return await by_key(
        draw,
        prompt,
        show=lambda: draw.warn(question),
        line=lambda: keys_line((*keys, ("Esc", "leave it")), Text()),
        take=take,
    )


async def by_key(
    draw: Draw,
    prompt: Prompt,
    *,
    show: Callable[[], None],
    line: Callable[[], Text],
    take: Callable[[KeyPress | None], T | None],
) -> T:
    """The answer to a question, which the first key gives that `take` makes one of.

    show  what the question is about, once nobody is in the middle of a line
    line  what can be pressed now; asked for again after each key
    take  None for a key that is no answer yet; its key is None at the end of the input
    """
    await prompt.pause()
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
        with prompt.asking(press):
            return await given
    finally:
        draw.show_question(None)


def keys_line(keys: Sequence[KeyChoice], line: Text) -> Text:
    """`line` with the keys and what each does behind it."""
    for key, about in keys:
        line.append("  " if line else "").append(key, style="bold").append(f" {about}")
    return line
