"""Sessions made by code, as many as one likes: what people, models and tools say, with words that can be looked for.

    made = session(57)
    made.messages, made.window_tokens, made.said

Each part that matters holds a token, a distinctive word such as kq7x3vz. So code can tell what a view of the session
still shows, and who said it. All else is in invented words (see `generated_texts`). The same seed gives the same
session. One of 200 messages takes some 10 milliseconds.
"""

from __future__ import annotations

from random import Random
from typing import Literal, NamedTuple

from nca.messages import Message, ToolCall, user_message
from nca.words import Span, words
from tests.context import generated_texts as texts
from tests.context.generated_texts import MOST_RESULT_TOKENS, Caller, Kind

Speaker = Literal["typed", "pasted", "answer", "prose", "effect", "call", "tool"]
"""The author of the text with a token.

typed   the person typed it
pasted  the person pasted it
answer  the model's answer at the end of a turn
prose   the model's text beside its calls
effect  what tells a call with an effect from others: the file that it wrote, who a booking is for
call    other arguments of a call
tool    a tool's result
"""
LEAST_WINDOW_TOKENS, MOST_WINDOW_TOKENS = 6_000, 200_000
_KINDS: tuple[Kind, ...] = ("agent", "operations", "writing", "talk")
SHORT_CHARS = 600
"""A typed message up to this length has its token near its beginning."""


class Said(NamedTuple):
    """A token in a message. One in several messages is there for each.

    message   the message's number, from 1
    chars     length of the typed text
    is_first  it is in the first sentence of its text
    """

    message: int
    token: str
    by: Speaker
    chars: int = 0
    is_first: bool = False


class GeneratedSession(NamedTuple):
    """A session, which is a valid request as it is, and the window that it is to be compacted for.

    versions  the tokens of each text that was revised, the oldest version's first
    """

    seed: int
    messages: tuple[Message, ...]
    window_tokens: int
    said: tuple[Said, ...]
    versions: tuple[tuple[str, ...], ...]


def session(seed: int) -> GeneratedSession:
    rng = Random(seed)
    window = round(texts.between(rng, LEAST_WINDOW_TOKENS, MOST_WINDOW_TOKENS))
    kind: Kind = rng.choices(_KINDS, (45, 20, 20, 15))[0]
    if rng.random() < 0.2:
        # Few messages, some of which fill the window.
        length, most = texts.between(rng, 10, 40), min(window // 3, MOST_RESULT_TOKENS)
    else:
        # Mostly 30 to 200 messages, rarely very few or very many.
        length = texts.between(rng, *rng.choices(((10, 30), (30, 200), (200, 1_500)), (8, 86, 6))[0])
        most = round(texts.between(rng, 200, 15_000))
    writer = _Writer(rng, kind, most)
    writer.write(round(length))
    versions = tuple(tuple(found) for found in writer.versions)
    return GeneratedSession(seed, tuple(writer.messages), window, tuple(writer.said), versions)


class _Writer:
    """Writes one session, turn after turn."""

    def __init__(self, rng: Random, kind: Kind, most_result_tokens: int) -> None:
        self.rng, self.kind = rng, kind
        self.pool = texts.pool(rng.choice(texts.SCRIPTS))
        self.token = texts.Tokens(rng)
        self.caller = Caller(rng, self.pool, self.token, kind, most_result_tokens)
        self.messages: list[Message] = []
        self.said: list[Said] = []
        self.versions: list[list[str]] = []
        self._text: list[str] = []
        """The text that is being revised."""
        self._has_titles = False
        self._listed = self._called = 0

    def write(self, length: int) -> None:
        """Turns, until there are about this many messages; the last turn may still be open."""
        rng = self.rng
        if rng.random() < 0.7:
            self.messages.append(Message("system", texts.sentences(rng, self.pool, rng.choice((60, 400, 2_500)))))
        while len(self.messages) < length - 1:
            self._person()
            self._work()
            self._answer()
        end = rng.choices(("asked", "working", "answered"), (6, 3, 1))[0]
        if end != "answered":
            self._person()
        if end == "working" and self.kind != "talk":
            self._step()

    def _note(self, token: str, by: Speaker, *, chars: int = 0, is_first: bool = False) -> str:
        """A token of the message that comes next."""
        self.said.append(Said(len(self.messages) + 1, token, by, chars, is_first))
        return token

    # The person's messages.

    def _person(self) -> None:
        rng, token = self.rng, self.token()
        low, high = rng.choices(((20, SHORT_CHARS), (SHORT_CHARS, 2_000), (2_000, 9_000)), (85, 13, 2))[0]
        chars = round(texts.between(rng, low, high)) - len(token) - 4
        text = texts.sentences(rng, self.pool, chars, rng.choice((" ", " ", " ", "\n", "\n\n")))
        before = self.pool.early_chars - 3 if len(text) < SHORT_CHARS else len(text)
        text = texts.with_token(rng, text, token, before)
        if self._listed:
            # Something of the list before is chosen, by its number.
            text, self._listed = f"{rng.randint(1, self._listed)}. {text}", 0
        self._note(token, "typed", chars=len(text))
        self.messages.append(self._with_paste(text) if rng.random() < 0.06 else user_message(words(text)))

    def _with_paste(self, text: str) -> Message:
        """The typed text, with a log after or before it."""
        rng, token = self.rng, self._note(self.token(), "pasted")
        count = rng.choices((1, 20, 150, 400), (10, 40, 40, 10))[0]
        pasted = Span(texts.log_with_warning(rng, self.pool, count, token), "pasted")
        if rng.random() < 0.7:
            return user_message((Span(text + "\n", "typed"), pasted))
        return user_message((pasted, Span("\n" + text, "typed")))

    # The model's answers and calls.

    def _work(self) -> None:
        rng = self.rng
        most = {"agent": 12, "operations": 5, "writing": 2, "talk": 0}[self.kind]
        if most and rng.random() > 0.2:
            for _ in range(round(texts.between(rng, 1, most))):
                self._step()

    def _step(self) -> None:
        """A call, or several at once, with results."""
        rng = self.rng
        calls = self.caller.calls(rng.choices((1, 2, 4, 8), (70, 15, 10, 5))[0])
        text = self._told("prose", (60, 160, 500)) if rng.random() < 0.4 else None
        made: list[ToolCall] = []
        for call in calls:
            if call.effect:
                self._note(call.effect, "effect")
            if call.inside:
                self._note(call.inside, "call")
            self._called += 1
            made.append(ToolCall(f"call_{self._called}", call.name, call.arguments))
        self.messages.append(Message("assistant", text, tuple(made)))
        for call, asked in zip(calls, made, strict=True):
            if call.back:
                self._note(call.back, "tool")
            result = Message("tool", call.result, tool_call_id=asked.id, name=call.name, is_error=call.is_error)
            self.messages.append(result)

    def _answer(self) -> None:
        share, drawn = 0.5 if self.kind == "writing" else 0.05, self.rng.random()
        if drawn < share:
            text = self._version()
        elif drawn < share + 0.08:
            text = self._list()
        else:
            text = self._told("answer", (40, 150, 600, 600, 6_000))
        self.messages.append(Message("assistant", text))

    def _told(self, by: Speaker, sizes: tuple[int, ...]) -> str:
        """A text with a token in its first sentence."""
        rng = self.rng
        between = rng.choice((" ", " ", "\n", "\n\n"))
        chars = texts.between(rng, 40, rng.choice(sizes))
        first = texts.with_token(rng, rng.choice(self.pool.sentences), self._note(self.token(), by, is_first=True))
        return f"{first}{between}{texts.sentences(rng, self.pool, round(chars), between)}" if chars > 80 else first

    def _version(self) -> str:
        """A text of twenty lines, or a new version of the last one: its title may be another, or stay."""
        rng, token = self.rng, self.token()
        is_next = bool(self._text) and len(self.versions[-1]) < 4 and rng.random() < 0.8
        self._text = texts.revised(rng, self.pool, self._text) if is_next else texts.document(rng, self.pool)
        if not is_next:
            self.versions.append([])
            self._has_titles = rng.random() < 0.5
        self.versions[-1].append(self._note(token, "answer", is_first=self._has_titles))
        lines = list(self._text)
        place = 0 if self._has_titles else rng.choice((1, 2, rng.randrange(3, len(lines))))
        lines[place] = texts.with_token(rng, lines[place], token)
        return "\n".join(lines)

    def _list(self) -> str:
        """Something to choose from: the person's next message names a number."""
        rng = self.rng
        self._listed = rng.randint(5, 9)
        lines = [self._told("answer", (40,)), ""]
        for number in range(1, self._listed + 1):
            token = self._note(self.token(), "answer")
            lines.append(f"{number}. {texts.with_token(rng, rng.choice(self.pool.sentences), token)}")
        return "\n".join(lines)
