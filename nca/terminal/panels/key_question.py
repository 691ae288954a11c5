"""Ask a question or for an approval, answered with one key, while a turn or a command waits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from prompt_toolkit.key_binding import KeyPress
from prompt_toolkit.keys import Keys
from rich.text import Text

from nca.agent.approvals import Answer
from nca.humanize import counted
from nca.terminal.input.keyboard import ENTER, KeyQuestion, Offered
from nca.terminal.panels.session_loader import KeyChoice
from nca.terminal.render.calls import ALL_EDITS
from nca.terminal.render.sanitize import one_line

if TYPE_CHECKING:
    from nca.terminal.input.prompt import Prompt
    from nca.terminal.input.type_ahead import TypeAhead
    from nca.terminal.render.draw import Draw

T = TypeVar("T")

MOST_TYPED_CHARS = 4_000


class LetterQuestion(KeyQuestion[str]):
    """One letter answers, in either case; the answer is "" for Escape and the end of the input.

    A question that `gives_way` may be answered in words, which begin with any letter: so its letters need Enter.
    """

    def __init__(self, keys: Sequence[KeyChoice], *, gives_way: bool = False) -> None:
        self._keys = tuple(keys)
        self.gives_way = gives_way
        self._chosen = ""

    def offered(self) -> Offered:
        return Offered("", ENTER) if self._chosen else Offered("".join(key for key, _ in self._keys))

    def line(self) -> Text:
        keys = [("Enter", about) for key, about in self._keys if key == self._chosen] or self._keys
        how = "A letter and Enter, or type your answer:" if self.gives_way and not self._chosen else ""
        return keys_line((*keys, ("Esc", self.escape)), Text(how, style="notice"))

    def take(self, key: KeyPress | None) -> str | None:
        chosen = self.take_back()
        if key is None or key.key == Keys.Escape:
            return ""
        if key.key == Keys.ControlM:
            return chosen or None
        word = str(key.key).lower()
        if word not in [one for one, _ in self._keys]:
            return None
        self._chosen = word if self.gives_way else ""
        return None if self.gives_way else word

    def take_back(self) -> str:
        chosen, self._chosen = self._chosen, ""
        return chosen


class Typed(NamedTuple):
    """A line that was typed; None for Escape, Ctrl-C and the end of the input."""

    text: str | None


class TypedQuestion(KeyQuestion[Typed]):
    """A line of text answers, ended by Enter. Escape deletes the line, and cancels where it is empty."""

    is_typed = True

    def offered(self) -> Offered:
        return Offered("")

    def line(self) -> Text:
        how = f"(Enter sends it, Esc {'deletes it' if self.unsent else 'cancels'})"
        return Text(f"{how} {one_line(self.unsent, MOST_TYPED_CHARS)}▏", style="notice")

    def take(self, key: KeyPress | None) -> Typed | None:
        if key is None or (key.key == Keys.Escape and not self.unsent):
            return Typed(None)
        if key.key == Keys.ControlM:
            text, self.unsent = self.unsent, ""
            return Typed(text)
        self.unsent = edited(self.unsent, key, MOST_TYPED_CHARS)
        return None


def edited(text: str, key: KeyPress, most_chars: int) -> str:
    """A line that is typed, after a key: a character, a paste, or one that deletes. A line end is a blank in it."""
    match key.key:
        case Keys.Escape | Keys.ControlU:
            return ""
        case Keys.ControlH:
            return text[:-1]
        case Keys.ControlJ:
            return f"{text} "[:most_chars]
        case Keys.BracketedPaste:
            return (text + key.data)[:most_chars]
        case str() as character if not isinstance(character, Keys):
            return (text + character)[:most_chars]
    return text


async def ask_by_key(question: KeyQuestion[T], draw: Draw, prompt: Prompt, *, show: Callable[[], None]) -> T:
    """Ask a question and wait until it is answered. `show` prints its subject, once the person pauses."""
    ahead = prompt.type_ahead
    await ahead.pause()
    given: asyncio.Future[T] = asyncio.get_running_loop().create_future()

    def press(key: KeyPress | None) -> None:
        if not given.done() and (answer := question.take(key)) is not None:
            given.set_result(answer)

    show()
    draw.show_question(lambda: question_line(question, ahead))
    try:
        with ahead.asking(question, press):
            return await given
    finally:
        draw.show_question(None)


def question_line(question: KeyQuestion[T], ahead: TypeAhead) -> Text:
    """The keys that answer now. An open or queued line, and a key that did nothing, are mentioned."""
    begin = "\n" if question.heading else ""
    if ahead.is_line_open:
        keys = [("Enter", "queues it"), ("Esc", "deletes it")]
        heading = f"{question.heading}  " if question.heading else ""
        said = f"{begin}{heading}Your line below is open, so no key answers."
        return keys_line(keys, Text(said, style="notice"))
    said = "That key did nothing. These keys answer:\n" if ahead.is_refused else ""
    if ahead.is_line_queued:
        said = "Queued text is sent after your answer. These keys answer:\n"
    return Text(begin + said, style="notice").append_text(question.line())


def keys_line(keys: Sequence[KeyChoice], line: Text) -> Text:
    """Append each key, and its action, to `line`."""
    for key, about in keys:
        line.append("  " if line else "").append(key, style="bold").append(f" {about}")
    return line


_MOST_REASON_CHARS = 400


@dataclass(eq=False, kw_only=True)
class ApprovalKeys(KeyQuestion[Answer]):
    """The keys that answer: y, s, a, e, n; m shows more. After n the person may type a reason, up to Enter.

    As in every line, Escape deletes the reason. Without a reason nothing is decided: it and Backspace lead back.

    `a` holds for good, so it needs Enter; so does an answer to a call that was not shown whole. The same letter again
    shows more of it, and answers once all was shown.

    rule        what s and a allow; "": they are not answers
    show_more   shows the next part of the call
    lines_left  how many lines of the call were not shown yet
    stop        stops the turn, for Escape and the end of the input
    accept_edits  e, which allows this call, also allows all edits from here on; None: e is not an answer
    """

    heading = "Allow it?"
    escape = "no, and stop"

    rule: str = ""
    show_more: Callable[[], None] = lambda: None
    lines_left: Callable[[], int] = lambda: 0
    stop: Callable[[], None] = lambda: None
    accept_edits: Callable[[], None] | None = None

    def __post_init__(self) -> None:
        self.rule = one_line(self.rule, 160)
        self._chosen: Answer | None = None
        self._first = ""
        """The letter that was pressed last, if another key may continue with it: a choice, or m."""

    def take(self, key: KeyPress | None) -> Answer | None:
        if key is not None and self.is_typed:
            return self._take_reason(key)
        if key is None or key.key == Keys.Escape:
            self.stop()
            return None
        chosen = self._chosen
        first = self.take_back()
        if key.key == Keys.ControlM:
            return self._given(first, chosen)
        letter = str(key.key).lower()
        if chosen is not None and letter == first and self.lines_left():
            self.show_more()
            if self.lines_left():
                self._first, self._chosen = first, chosen
            return None
        match letter:
            case "y":
                return self._take_choice(letter, Answer("once"))
            case "s" if self.rule:
                return self._take_choice(letter, Answer("session"))
            case "a" if self.rule:
                return self._take_choice(letter, Answer("always"))
            case "e" if self.accept_edits is not None:
                return self._take_choice(letter, Answer("once"))
            case "m":
                self._first = letter
                if self.lines_left():
                    self.show_more()
            case "n":
                # If other letters follow at once, it is the first of the reason: "no, use b.txt".
                self._first, self.is_typed = letter, True
        return None

    def take_back(self) -> str:
        first, self._first, self._chosen = self._first, "", None
        return first

    def offered(self) -> Offered:
        more = (("sa", self.rule), ("e", self.accept_edits), ("m", self.lines_left()))
        keys = "yn" + "".join(letters for letters, is_so in more if is_so)
        return Offered(keys, ENTER if self._chosen is not None else self._first)

    def _take_choice(self, letter: str, answer: Answer) -> Answer | None:
        if answer.choice != "always" and not self.lines_left():
            return self._given(letter, answer)
        self._first, self._chosen = letter, answer
        return None

    def _given(self, letter: str, answer: Answer | None) -> Answer | None:
        if answer is not None and letter == "e" and self.accept_edits is not None:
            self.accept_edits()
        return answer

    def line(self) -> Text:
        if self.is_typed:
            how = "Enter sends it, Esc deletes it" if self.unsent else "Enter: none, Esc: back"
            return Text(f"No. Reason for the model ({how}): {one_line(self.unsent)}▏", style="notice")
        left = self.lines_left()
        about = {"once": "once", "session": f"this session: {self.rule}", "always": f"always here: {self.rule}"}
        keys = [(self._first if self._chosen else "m", f"shows more ({counted(left, 'line')} left)")] if left else []
        if self._chosen is not None:
            unseen = ", with the part not shown" if left else ""
            what = ALL_EDITS if self._first == "e" else about[self._chosen.choice]
            keys = [("Enter", what + unseen), *keys]
        elif self.rule:
            keys += [("y", about["once"]), ("s", about["session"]), ("a then Enter", "always here")]
        else:
            keys += [("y", about["once"])]
        if self.accept_edits is not None and self._chosen is None:
            keys.append(("e", ALL_EDITS))
        return keys_line([*keys, ("n", "no"), ("Esc", self.escape)], Text(self.heading, style="notice"))

    def _take_reason(self, key: KeyPress) -> Answer | None:
        if key.key == Keys.ControlM:
            reason, self.unsent = self.unsent, ""
            return Answer("deny", " ".join(reason.split()))
        if not self.unsent and key.key in (Keys.Escape, Keys.ControlH):
            self.is_typed = False
            self.take_back()
        self.unsent = edited(self.unsent, key, _MOST_REASON_CHARS)
        return None
