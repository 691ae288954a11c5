"""Ask a question, answered with one key, while a turn or a command waits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from prompt_toolkit.key_binding import KeyPress
from prompt_toolkit.keys import Keys
from rich.text import Text

from nca.terminal.input.key_questions import KeyQuestion, Offered
from nca.terminal.panels.locked_session import KeyChoice
from nca.terminal.render.sanitize import one_line

if TYPE_CHECKING:
    from nca.terminal.input.prompt import Prompt
    from nca.terminal.render.draw import Draw

T = TypeVar("T")

_MOST_TYPED_CHARS = 4_000


async def choose_by_key(question: str, keys: Sequence[KeyChoice], draw: Draw, prompt: Prompt) -> str:
    """The chosen key; "" for Escape, Ctrl-C and the end of the input."""
    return await ask_by_key(LetterQuestion(keys), draw, prompt, show=lambda: _show_lines(question, draw))


class LetterQuestion(KeyQuestion[str]):
    """One letter answers, in either case; the answer is "" for Escape and the end of the input."""

    def __init__(self, keys: Sequence[KeyChoice]) -> None:
        self._keys = tuple(keys)

    def offered(self) -> Offered:
        return Offered("".join(key for key, _ in self._keys))

    def line(self) -> Text:
        return keys_line((*self._keys, ("Esc", self.escape)), Text())

    def take(self, key: KeyPress | None) -> str | None:
        word = "" if key is None or key.key == Keys.Escape else str(key.key).lower()
        return word if not word or word in [one for one, _ in self._keys] else None


class Typed(NamedTuple):
    """A line that was typed; None for Escape, Ctrl-C and the end of the input."""

    text: str | None


class TypedQuestion(KeyQuestion[Typed]):
    """A line of text answers, ended by Enter."""

    is_typed = True

    def __init__(self) -> None:
        self._text = ""

    def offered(self) -> Offered:
        return Offered("")

    def line(self) -> Text:
        return Text(f"(Enter sends it, Esc cancels) {one_line(self._text, _MOST_TYPED_CHARS)}▏", style="notice")

    def take(self, key: KeyPress | None) -> Typed | None:
        if key is None or key.key == Keys.Escape:
            return Typed(None)
        if key.key in (Keys.ControlM, Keys.ControlJ):
            return Typed(self._text)
        self._text = edited(self._text, key, _MOST_TYPED_CHARS)
        return None


def edited(text: str, key: KeyPress, most_chars: int) -> str:
    """A line that is typed, after a key: a character, a paste or Backspace."""
    match key.key:
        case Keys.ControlH:
            return text[:-1]
        case Keys.BracketedPaste:
            return (text + key.data)[:most_chars]
        case str() as character if not isinstance(character, Keys):
            return (text + character)[:most_chars]
    return text


async def type_by_key(question: str, draw: Draw, prompt: Prompt) -> str | None:
    """The typed line, which stays on the screen; None for Escape, Ctrl-C and the end of the input."""
    typed = (await ask_by_key(TypedQuestion(), draw, prompt, show=lambda: _show_lines(question, draw))).text
    if typed:
        draw.notice(f"› {one_line(typed, _MOST_TYPED_CHARS)}")
    return typed


def _show_lines(question: str, draw: Draw) -> None:
    for line in question.splitlines():
        draw.warn(line)


async def ask_by_key(question: KeyQuestion[T], draw: Draw, prompt: Prompt, *, show: Callable[[], None]) -> T:
    """Ask a question and wait until it is answered. `show` prints what it is about, once the person pauses."""
    ahead = prompt.type_ahead
    await ahead.pause()
    given: asyncio.Future[T] = asyncio.get_running_loop().create_future()

    def press(key: KeyPress | None) -> None:
        if not given.done() and (answer := question.take(key)) is not None:
            given.set_result(answer)

    show()
    draw.show_question(lambda: question_line(question, is_line_open=ahead.is_line_open, is_refused=ahead.is_refused))
    try:
        with ahead.asking(question, press):
            return await given
    finally:
        draw.show_question(None)


def question_line(question: KeyQuestion[T], *, is_line_open: bool, is_refused: bool) -> Text:
    """What can be pressed now. A line that is open, and a key that did nothing, are said."""
    begin = "\n" if question.heading else ""
    if is_line_open:
        keys = [("Enter", "queues it"), ("Ctrl-U, Backspace", "delete it"), ("Esc", question.escape)]
        heading = f"{question.heading}  " if question.heading else ""
        return keys_line(keys, Text(f"{begin}{heading}Your line is open, so no key answers.", style="notice"))
    refused = "That key did nothing. These answer:\n" if is_refused else ""
    return Text(begin + refused, style="notice").append_text(question.line())


def keys_line(keys: Sequence[KeyChoice], line: Text) -> Text:
    """Append each key, and what it does, to `line`."""
    for key, about in keys:
        line.append("  " if line else "").append(key, style="bold").append(f" {about}")
    return line
