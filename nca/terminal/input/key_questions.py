"""The law of a question that keys answer: a key answers it, or belongs to the line that the person types."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Generic, Literal, NamedTuple, TypeVar

from prompt_toolkit.key_binding import KeyPress

if TYPE_CHECKING:
    from rich.text import Text

T = TypeVar("T")

PAUSE_SECONDS = 1.0
"""A key this soon after another one belongs to what is being typed."""
QUIET_SECONDS = 0.4
"""A key this soon after a question appeared was meant for something else: nobody reads and answers faster."""
ENTER = "\r"

Meaning = Literal["answer", "line", "nothing"]
"""Where a key goes: to the question, to the line for the next prompt, or nowhere."""


class Offered(NamedTuple):
    """The keys that mean something to a question now, in lower case.

    keys  answer it after a pause
    next  go on with the key that was pressed last, as Enter does after a choice; they need no long pause
    """

    keys: str
    next: str = ""


class KeyQuestion(ABC, Generic[T]):
    """A question that keys answer.

    heading   stands before the keys
    escape    what Escape does
    is_typed  the answer was given, and its text is typed now: each key belongs to the text, up to Enter
    """

    heading = ""
    escape = "cancel"
    is_typed = False

    @abstractmethod
    def offered(self) -> Offered:
        """The keys that can be pressed now."""

    @abstractmethod
    def line(self) -> Text:
        """The same keys, and what each does, for the screen."""

    @abstractmethod
    def take(self, key: KeyPress | None) -> T | None:
        """Take a key that was offered, Escape, or None at the end of the input. Returns the answer once it is whole."""

    def take_back(self) -> str:
        """Forget a key that was only the first part of an answer, and return it; "" if there is none."""
        return ""


def meaning(
    typed: str, offered: Offered, *, is_line_empty: bool, since_key_seconds: float, since_asked_seconds: float
) -> Meaning:
    """What the characters of one read mean while a question is on the screen.

    A key answers only if it came alone, it is offered, the line that is being typed is empty, and the person had paused
    and could have read the question. Everything else belongs to the line. Enter does nothing on an empty line.

    since_key_seconds    since the last key, whatever it meant
    since_asked_seconds  since the question appeared
    """
    if not is_line_empty:
        return "line"
    key = typed.lower() if len(typed) == 1 else ""
    if key and key in offered.next:
        return "answer" if since_key_seconds >= QUIET_SECONDS else "nothing"
    has_paused = since_key_seconds >= PAUSE_SECONDS and since_asked_seconds >= QUIET_SECONDS
    if key and key in offered.keys and has_paused:
        return "answer"
    return "nothing" if typed and not typed.strip(ENTER) else "line"
