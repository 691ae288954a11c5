"""Ask a model for the prose of a record, in chunks if its window is small.

The engine calls no model: `write` is a generator that yields questions and takes the answers. The library or the agent
drives it, synchronously or not, and decides how long to wait. Each chunk is one question, with the summary of the
chunks before it, so the last answer covers all. Without a usable answer there is no prose, and the record of code
stands alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from nca.context.summary import SummaryFailure, SummaryReply, SummaryRequest, Written, accept, cut_text, prompt
from nca.context.summary_input import Chunk, as_data, framed, split, within
from nca.context.tokens import message_tokens, text_tokens
from nca.humanize import one_line
from nca.messages import Message
from nca.wire import content_text

WORDS_PER_TOKEN = 0.45
"""As models write records in English, with paths and names in them: 0.45 to 0.52 words a token were measured."""
OF_TALK = 0.6
"""A record has so many words a token, as a share of those that its language has in talk (English: 0.75)."""
SPACED = 0.25
"""A language with fewer words a token than this is written without spaces; what is a word there, the model decides."""
SAMPLE_CHARS = (200, 20_000)
"""With less of the person's text its language is not measured; more of it is not looked at."""
LENGTH_SLACK = 1.25
"""A record within its words may have more tokens, if it is full of names: it is not cut for that."""
SHORT_LIST_TOKENS = 300
"""With less room a short list is asked for: nine headings would take much of it."""
MAX_FAILURES = 2
"""After the first failed question a short list is asked for; after the second none."""
NO_SUMMARIZER = "no summarizer"
TOO_SMALL = "the summarizer's window is too small"
CUT_SHORT = "the summary ended at its length limit before it said what is pending"
SMALLEST_SUMMARY_TOKENS = 48
"""With less room than this no model is asked: it could not say anything."""
INPUT_PARTS = 3
"""An answer takes at most a third of the input. So the running summary leaves two thirds of each further question to
the transcript, and the answer fits into the part of the window that is not input."""
FOCUS_PARTS = 8
"""The focus takes at most an eighth of the input; so do the current request and the messages that stay in view."""
REQUEST_CHARS = 600
MOST_STAYING = 24
"""Lines about messages that stay in view: the newest."""
GOES_ON = (
    "The conversation goes on after the transcript, so what is open at its end may be settled by now. Do not report"
    " what is listed here: it stays in view."
)
LEAST_MERGED = 0.25
"""A merge that is shorter than this share of the summary that it should continue has lost that one's content."""
BY_CODE = "extract"
PROMPT_OF_FORM = {"sections": "detailed", "bullets": "bullets"}
"""The first form of the question for each context.summarize.form; after a failure it is the short list."""
WANTED = ("pending",)
"""The sections that a reply must have which ended for its length."""

Asking = Generator[SummaryRequest, "SummaryReply | SummaryFailure", Written]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """A summarizer's input beside the transcript: the current request, and a line for each part that stays."""

    request: str = ""
    staying: Sequence[str] = ()
    in_view: str = ""
    """All that stays, whole: a name in it is not made up."""

    def text(self, max_tokens: int) -> str:
        """At most so many raw tokens; empty if there is nothing to say."""
        lines = [GOES_ON]
        if self.request.strip():
            lines.append(f"The user's current request: {as_data(one_line(self.request, REQUEST_CHARS))}")
        lines += [f"- {as_data(line)}" for line in list(self.staying)[-MOST_STAYING:]]
        return cut_text("\n".join(lines), max_tokens) if len(lines) > 1 else ""


def write(
    messages: Sequence[Message],
    *,
    existing: Sequence[str],
    live: Sequence[Message],
    focus: str,
    max_tokens: int,
    input_tokens: int,
    left_out: int = 0,
    form: str = "sections",
    scores: Callable[[], Sequence[float]] = tuple,
    surroundings: Surroundings | None = None,
) -> Asking:
    """Ask for a summary of `messages`; `existing` are earlier summaries to merge. Token counts are raw.

    `input_tokens` is the summarizer's room for input; `form` is context.summarize.form; `scores` say
    how much each message matters: a summarizer with a small window is shown less of the others. `left_out`: of so many
    more the caller did not even read, because no question could show them.
    """
    writing = _Writing(messages, existing, scores, max_tokens, surroundings or Surroundings())
    writing.left_out = left_out
    if max_tokens < SMALLEST_SUMMARY_TOKENS:
        return writing.given_up()
    writing.plan(form, focus, input_tokens)
    if not writing.chunks:
        return writing.given_up(TOO_SMALL)
    while writing.done < len(writing.chunks):
        request = writing.question(live)
        if not writing.takes(request, (yield request)):
            return writing.given_up()
    return writing.whole()


class _Writing:
    """One summary while it is written: the model's text about the chunks so far, and its failures."""

    def __init__(
        self,
        messages: Sequence[Message],
        existing: Sequence[str],
        scores: Callable[[], Sequence[float]],
        max_tokens: int,
        surroundings: Surroundings,
    ) -> None:
        self.messages = messages
        self.existing = self.earlier = tuple(existing)
        """From before: as they are, and as the first question shows them."""
        self.scores = scores
        self.surroundings = surroundings
        self.max_tokens = self.cap = max_tokens
        """The summary's length, and how much of that the summarizer's window allows."""
        self.names = ("", "")
        self.focus = self.around = ""
        self.chunks: tuple[Chunk, ...] = ()
        self.done = 0
        self.prose = self.made_by = ""
        self.failures: list[str] = []
        self.left_out = self.unread = 0
        """Messages that the prose should cover but no question showed: for their length, and because the
        summarizer failed before it came to them."""

    def plan(self, form: str, focus: str, input_tokens: int) -> None:
        """Divide the messages into questions of at most `input_tokens`; no chunks if none would do."""
        self.names = (PROMPT_OF_FORM[form] if self.max_tokens >= SHORT_LIST_TOKENS else "bullets", "bullets")
        self.focus = cut_text(focus, max(SMALLEST_SUMMARY_TOKENS, input_tokens // FOCUS_PARTS))
        self.around = self.surroundings.text(input_tokens // FOCUS_PARTS)
        self.cap = min(self.max_tokens, input_tokens // INPUT_PARTS)
        if self.cap < SMALLEST_SUMMARY_TOKENS:
            return
        # Earlier prose takes no more room beside the first chunk than later prose does.
        self.earlier = within(self.existing, input_tokens // INPUT_PARTS)
        self.chunks = split(
            self.messages,
            first_tokens=input_tokens - self._frame(self.earlier),
            later_tokens=input_tokens - self._frame([""]) - self._running_tokens,
            # A chunk that is shorter than the summary is nothing to summarize.
            least_tokens=self.cap,
            scores=self.scores,
        )

    def question(self, live: Sequence[Message]) -> SummaryRequest:
        """About the next chunk; live only while nothing is written yet, since the live messages are all of them."""
        cap = min(self.cap, max(64, self.cap // 2)) if self.failures else self.cap
        name = self.names[bool(self.failures)]
        text = self._asked(name, cap, self._shown(), self.chunks[self.done].text)
        return SummaryRequest(
            instruction=self._instruction("live", cap),
            messages=(Message("user", text),),
            live=() if self.done else tuple(live),
            max_tokens=cap,
        )

    def takes(self, request: SummaryRequest, reply: SummaryReply | SummaryFailure) -> bool:
        """Take up a reply; False if nothing more is to be asked."""
        if isinstance(reply, SummaryFailure):
            self.failures.append(reply.reason)
            return not reply.is_final and len(self.failures) < MAX_FAILURES
        chunk = self.chunks[self.done]
        covered = len(self.messages) if reply.is_of_live else chunk.end
        asked = "\n".join(one.text for one in self.chunks) if reply.is_of_live else request.messages[0].text
        input_raw = self._sums[covered] + sum(map(text_tokens, self.existing))
        prose, problem = accept(
            reply, asked, existing=self._shown(), max_tokens=request.max_tokens, input_raw=input_raw
        )
        if not problem and reply.is_cut and not self.failures and not is_complete(prose, WANTED):
            problem = CUT_SHORT
        if not problem and text_tokens(prose) < LEAST_MERGED * text_tokens(self.prose):
            problem = "the summary lost the content of the one before"
        if problem:
            self.failures.append(problem)
            return len(self.failures) < MAX_FAILURES
        self.prose, self.made_by = marked(prose, self._known), reply.made_by or "summarizer"
        self.done = len(self.chunks) if reply.is_of_live else self.done + 1
        self.left_out += 0 if reply.is_of_live else chunk.left_out
        return True

    def whole(self) -> Written:
        return Written(self._noted(int(LENGTH_SLACK * self.max_tokens)), self.made_by, tuple(self.failures))

    def given_up(self, reason: str = "") -> Written:
        """The model's text about the first chunks stays; `reason`: why no more was asked, if that is new."""
        failures = (*self.failures, *([reason] if reason else []))
        if not self.prose:
            return Written("", BY_CODE, failures)
        self.unread = len(self.messages) - self.chunks[self.done].start
        return Written(self._noted(self.max_tokens), f"{self.made_by} + {BY_CODE}", failures)

    @cached_property
    def _sums(self) -> list[int]:
        """Raw tokens of the messages before each, and of all."""
        return list(accumulate(map(message_tokens, self.messages), initial=0))

    @cached_property
    def _known(self) -> str:
        """The texts that show that a name is not made up."""
        texts = [content_text(message.content) for message in self.messages]
        calls = [call.arguments for message in self.messages for call in message.tool_calls]
        around = (self.surroundings.request, self.surroundings.in_view, self.focus)
        return "\n".join((*texts, *calls, *self.existing, *around))

    def _noted(self, max_tokens: int) -> str:
        """The model's prose within `max_tokens`, and a note about messages that it does not cover."""
        notes = [f"{self.left_out} messages were left out of this summary for length."] if self.left_out else []
        notes += [f"The summarizer failed before the last {self.unread} messages."] if self.unread else []
        note = f"\n\n({' '.join(notes)})" if notes else ""
        return cut_text(self.prose, max_tokens - text_tokens(note)) + note

    def _shown(self) -> Sequence[str]:
        """The summaries that the next question shows: the running one, at first those from before."""
        return within([self.prose], self._running_tokens) if self.done else self.earlier

    @property
    def _running_tokens(self) -> int:
        """Tokens of the running summary in a question, with its frame."""
        return self.cap + text_tokens(framed([""], ""))

    def _frame(self, existing: Sequence[str]) -> int:
        """Tokens of a question beside its transcript."""
        return max(text_tokens(self._asked(name, self.cap, existing, "")) for name in self.names)

    def _asked(self, name: str, cap: int, existing: Sequence[str], body: str) -> str:
        parts = [self._instruction(name, cap), framed(existing, body), self.around]
        merge = f"{prompt('merge').strip()} " if existing else ""
        return "\n\n".join(part for part in (*parts, f"{merge}Now write the record.") if part)

    def _instruction(self, name: str, max_tokens: int) -> str:
        text = prompt(name).format(max_words=int(max_tokens * self._words_per_token)).strip()
        return f"{text}\n\nThe user asks to keep above all: {self.focus}" if self.focus else text

    @cached_property
    def _words_per_token(self) -> float:
        """Words per token in the person's language: a word of Hungarian has twice the tokens of an English one."""
        least, most = SAMPLE_CHARS
        said = "\n".join(content_text(one.content) for one in self.messages if one.role == "user")[:most]
        ratio = len(said.split()) / max(1, text_tokens(said))
        return WORDS_PER_TOKEN if len(said) < least or ratio < SPACED else min(WORDS_PER_TOKEN, OF_TALK * ratio)


HEADINGS = ("## ", "### ", "#### ")
UNKNOWN = " (?)"
"""The mark after a name that the summarized messages do not contain."""
FEWEST_FIGURES = 2
"""With fewer a word is prose, such as "3-step", and a number counts something."""
_SPECIFIC = re.compile(
    r"(?<![\w/.-])(?:[\w.-]*/[\w./-]*\w|[\w-]+\.[a-z]{2,4}|[\w-]{2,}\.[a-z])(?![\w/]|\.\w)"
    r"|(?<![A-Za-z0-9_/])(?:\d(?:[\d.,:'-]*\d)?(?:-?[A-Za-z]+)?(?![A-Za-z0-9_])|[A-Za-z0-9]+(?:[_-][A-Za-z0-9]+)*)"
)
"""Paths and file names; numbers with their units; words, of which only those with figures or an underscore count."""
_SEPARATORS = ".,:'-"
"""What one may leave out of a number, or write otherwise."""
_TOGETHER, _APART = str.maketrans("", "", _SEPARATORS), str.maketrans(_SEPARATORS, " " * len(_SEPARATORS))


def marked(prose: str, covered: str) -> str:
    """The prose with a mark behind each path, number and identifier that is nowhere in the covered messages."""
    names, known = set(_SPECIFIC.findall(prose)), covered.lower()
    figures = known.translate(_TOGETHER)
    unknown = {name for name in names if not _is_known(name.lower(), known, figures)}
    if not unknown:
        return prose
    again = _SPECIFIC.sub(lambda match: match[0] + UNKNOWN if match[0] in unknown else match[0], prose)
    return again.replace(UNKNOWN * 2, UNKNOWN)


def _is_known(name: str, covered: str, figures: str) -> bool:
    """Whether a name stands there, or has nothing that must not be made up. `figures`: the text without separators."""
    if "/" in name or ("." in name and not name[0].isdigit()):
        return name in covered or _is_either(name, covered)
    if "_" not in name and sum(char.isdigit() for char in name) < FEWEST_FIGURES:
        return True
    number = name.rstrip("-abcdefghijklmnopqrstuvwxyz")
    if name in covered or any(char.isalpha() for char in number):
        return name in covered
    return number.translate(_TOGETHER) in figures or all(part in covered for part in number.translate(_APART).split())


def _is_either(name: str, covered: str) -> bool:
    """Whether a slash only separates two words, or stands alone: then it is not a path."""
    parts = name.split("/")
    return (len(parts) == 2 and all(map(str.isalpha, parts))) or all(part in covered for part in parts)


def is_complete(prose: str, wanted: Sequence[str]) -> bool:
    """Whether a reply that ended for its length has the sections that matter."""
    headings = " ".join(line for line in prose.splitlines() if line.startswith(HEADINGS)).lower()
    return all(word in headings for word in wanted)
