"""Events: frozen records that the terminal, NDJSON output and embedding programs receive.

msgspec encodes each to one JSON object; `type` is the class name in snake case.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Literal, Self

import msgspec

from nca.errors import NcaError
from nca.humanize import clean_text, one_line
from nca.messages import ResponseFacts, Server, Usage

_ERROR_CHARS = 500


def _snake(name: str) -> str:
    return "".join("_" + char.lower() if char.isupper() else char for char in name).lstrip("_")


class _Event(msgspec.Struct, frozen=True, tag_field="type", tag=_snake):
    pass


class TurnStarted(_Event, frozen=True):
    """A message is stored and its turn begins.

    session_id  as --session takes it
    turn        counts from 1 within the session
    """

    session_id: str
    turn: int


class RequestStarted(_Event, frozen=True):
    """A request to the model is about to be sent.

    step           counts from 1 within the turn
    used_tokens    the measured size of the request
    budget_tokens  what a request may have: the window without the reserve for the answer
    server         None if unknown
    """

    step: int
    model: str
    used_tokens: int
    budget_tokens: int
    server: Server | None = None


class RequestRead(_Event, frozen=True):
    """How many of a request's tokens the model has read; only from a server that says so (the embedded model's)."""

    read_tokens: int
    of_tokens: int


class TextDelta(_Event, frozen=True):
    """The next piece of the text that the model writes, also of what it says before its calls."""

    text: str


class ReasoningDelta(_Event, frozen=True):
    """The next piece of the model's reasoning, which is no part of the answer."""

    text: str


class CallWritten(_Event, frozen=True):
    """How much of a tool call the model has written so far; a few times a second, until the answer is complete."""

    name: str
    summary: str
    """One line to display, as far as it is known: the tool's name and its main argument."""
    chars: int
    """The length of the arguments so far."""
    lines: int
    """How many line ends are in them."""


class ToolStarted(_Event, frozen=True):
    """A call begins. A ToolFinished with the same `call_id` follows."""

    call_id: str
    name: str
    arguments: str
    """JSON, as the model wrote it."""
    summary: str
    """One line to display: the tool's name and its main argument."""


class ToolProgress(_Event, frozen=True):
    """How far a running call is, in one line to display."""

    call_id: str
    text: str


class ToolOutput(_Event, frozen=True):
    """The last lines that a running call has printed so far, without keys and control characters.

    Each replaces the one before, a few times a second. Neither the log nor the model has them.
    """

    call_id: str
    text: str


class ToolFinished(_Event, frozen=True):
    """A call is over, whether it ran or not."""

    call_id: str
    name: str
    is_error: bool
    summary: str
    """One line to display: the result."""
    seconds: float
    diff: str = ""
    """Unified diff of the changed file; "" if nothing changed."""
    printed: str = ""
    """A command's output, within the limits of tool output."""
    is_interrupted: bool = False
    """The person stopped it: it has neither failed nor come to its end."""
    printed_lines: int = 0
    """How many lines the command printed, if `printed` lacks some of them; else 0."""


class ApprovalAsked(_Event, frozen=True):
    """A tool call waits for the user's approval. An ApprovalGiven for the same call always follows.

    path, command, diff, warning  shown to the user
    subject                       what a permission rule for this call would name; "" if there can be none
    subjects                      of a list of commands: those of the rules that the answer makes, one for each command
    """

    call_id: str
    name: str
    needs: Literal["read", "write", "execute"]
    summary: str
    path: str = ""
    command: str = ""
    diff: str = ""
    warning: str = ""
    subject: str = ""
    directory: str = ""
    """Working directory of a command."""
    subjects: tuple[str, ...] = ()
    allowed_by: Literal["subject", "text", "tool", "mode", "person"] = "mode"
    """The least that allows it unasked: a rule for its subject, for exactly this command, for its tool, a mode; or only
    a person can."""


class ApprovalGiven(_Event, frozen=True):
    """The decision about a tool call. It runs for once, session and always only.

    decision  denied: the user said no; unanswered: nobody could be asked; stopped: the turn was interrupted
    word      what the user said to the model with a no
    """

    call_id: str
    name: str
    decision: Literal["once", "session", "always", "denied", "unanswered", "stopped"]
    word: str = ""


class MessageTaken(_Event, frozen=True):
    """A message that the user sent during a turn is in the log; the next request of that turn includes it."""

    text: str


class UsageReported(_Event, frozen=True):
    """Token usage of one request.

    is_estimate  the provider reported none
    response     the provider's facts about its answer; what it did not report is left out
    """

    usage: Usage
    model: str
    is_estimate: bool = False
    response: ResponseFacts = ResponseFacts()


class SideRequestFinished(_Event, frozen=True):
    """A request beside the conversation's own is over: for a summary, a question that is not part of it, or a server's.

    usage     None if it had no answer, or the provider reported none
    failure   why it had no answer; "" if it had one
    server    None if unknown
    """

    purpose: Literal["summary", "question", "sampling"]
    model: str
    seconds: float
    usage: Usage | None = None
    failure: str = ""
    server: Server | None = None
    response: ResponseFacts = ResponseFacts()


class ContextWarning(_Event, frozen=True):
    """Context usage has risen above a threshold.

    usage     used_tokens / budget_tokens
    message   the text to display
    compacts  nca makes room by itself
    is_now    and it does so at once: the event of the compaction follows, with the same numbers
    """

    level: Literal["info", "warning"]
    usage: float
    used_tokens: int
    budget_tokens: int
    message: str
    compacts: bool = False
    is_now: bool = False


class ContextCompaction(_Event, frozen=True):
    """A compaction. Each `starting` is followed by exactly one other phase; `preview` comes alone.

    kept_facts   how many of the user's messages and of the changed files can still be read
    total_facts  how many there are
    cost         of the summary in US dollars; None if unknown
    """

    phase: Literal["starting", "completed", "failed", "skipped", "insufficient", "preview"]
    trigger: Literal["manual", "threshold", "idle", "overflow", "turns", "model", "asked", "provider"]
    stages: tuple[str, ...] = ()
    tokens_before: int = 0
    tokens_after: int = 0
    kept_facts: int = 0
    total_facts: int = 0
    seconds: float = 0.0
    cost: float | None = None
    message: str = ""
    saves: float | None = None
    """US dollars saved on each later request, without a prompt cache; None if the price is unknown."""
    saves_cached: float | None = None
    """The same if the whole request is in the prompt cache."""
    card: tuple[str, ...] = ()
    """Where we are, in at most six lines (nca.agent.context_notices); only of a compaction that took effect, and of
    automatic ones of the first after each message of the person, if it says more than that and the last answer."""


class RetryScheduled(_Event, frozen=True):
    """A request is sent again.

    attempt  which of at most `retries` of this request
    retries  0 if not known
    """

    attempt: int
    wait_seconds: float
    reason: str
    retries: int = 0


class Notice(_Event, frozen=True):
    """One line to display once.

    is_usual  nothing is wrong; who reads the answer alone needs no such line
    """

    message: str
    is_usual: bool = False


class Failure(msgspec.Struct, frozen=True):
    """What an error says.

    advice     what to do; "" if there is none
    exit_code  that of its class
    """

    message: str
    advice: str = ""
    exit_code: int = 1

    @classmethod
    def of(cls, error: BaseException) -> Self:
        if isinstance(error, NcaError):
            return cls(error.message, error.advice, error.exit_code)
        return cls(one_line(clean_text(f"{type(error).__name__}: {error}"), _ERROR_CHARS))


class ErrorRaised(Failure, _Event, frozen=True):
    """An error."""


class TurnFinished(_Event, frozen=True):
    """The end of a turn, sent for every turn.

    reason         answered: a whole answer; stuck: the model made the same calls again and again and got the same
                   results each time; length: the answer reached its length limit, and so did its continuation;
                   content_filter: the provider's content filter ended it
    text           the final answer as far as it came: what was shown of it, all parts if it was continued
    steps          requests of the turn
    cost           US dollars for all requests of the turn, summaries included; None if a price is unknown
    exit_code      what `nca run` exits with: 0 for a whole answer, the error's own code for a failed turn, 130 for an
                   interrupted one, else 1
    is_unanswered  a call needed an approval and nobody could be asked
    is_empty       it was interrupted before anything came; the log holds nothing of it but the user's message
    files_changed  the paths of the files that the turn changed, as far as recorded
    error          the error that ended the turn; None if none did
    """

    reason: Literal["answered", "interrupted", "max_steps", "stuck", "length", "content_filter", "failed"]
    text: str
    steps: int
    seconds: float
    cost: float | None = None
    exit_code: int = 0
    is_unanswered: bool = False
    is_empty: bool = False
    files_changed: tuple[str, ...] = ()
    error: Failure | None = None


Event = (
    TurnStarted
    | RequestStarted
    | RequestRead
    | TextDelta
    | ReasoningDelta
    | CallWritten
    | ToolStarted
    | ToolProgress
    | ToolOutput
    | ToolFinished
    | ApprovalAsked
    | ApprovalGiven
    | MessageTaken
    | UsageReported
    | SideRequestFinished
    | ContextWarning
    | ContextCompaction
    | RetryScheduled
    | Notice
    | ErrorRaised
    | TurnFinished
)

Listener = Callable[[Event], None]
"""Called with each event on the event loop's thread. Must not block. What it raises ends the turn."""


class Listeners:
    """Hands each event to everyone who listens, in the order in which they subscribed.

    What one of them raises is raised once all have had the event.
    """

    def __init__(self, *listeners: Listener) -> None:
        self._listeners = list(listeners)

    def emit(self, event: Event) -> None:
        with ExitStack() as others:
            for listener in reversed(self._listeners):
                others.callback(listener, event)

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Hear all events from now on; call the returned function to stop."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener) if listener in self._listeners else None
