"""What happens, as frozen records: the one list that the terminal, NDJSON and embedding programs listen to.

Each encodes with msgspec to one JSON object whose `type` is the record's name in snake case.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import msgspec

from nca.messages import Usage


def _snake(name: str) -> str:
    return "".join("_" + char.lower() if char.isupper() else char for char in name).lstrip("_")


class _Event(msgspec.Struct, frozen=True, tag_field="type", tag=_snake):
    pass


class TurnStarted(_Event, frozen=True):
    session_id: str
    turn: int


class RequestStarted(_Event, frozen=True):
    """One request to the model is about to go out. `step` counts from 1 within the turn."""

    step: int
    model: str
    used_tokens: int
    budget_tokens: int


class TextDelta(_Event, frozen=True):
    text: str


class ReasoningDelta(_Event, frozen=True):
    text: str


class ToolStarted(_Event, frozen=True):
    call_id: str
    name: str
    arguments: str
    summary: str
    """One line for a person: the tool's name and its main argument."""


class ToolFinished(_Event, frozen=True):
    call_id: str
    name: str
    is_error: bool
    summary: str
    """One line for a person: what came out."""
    seconds: float
    diff: str = ""
    """What was changed, as a unified diff; "" where nothing was."""


class ApprovalAsked(_Event, frozen=True):
    """A call waits for the person's word; an ApprovalGiven for the same call follows, whatever becomes of it.

    path, command, diff and warning are what the person is shown (see nca.tools.tool.Approval); subject is what a rule
    would speak of, "" where no rule can.
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
    """Where a command is run."""


class ApprovalGiven(_Event, frozen=True):
    """once, session, always: the call runs. denied: the person said no, perhaps with a word for the model.

    unanswered: nobody could be asked. stopped: the turn was interrupted instead. The call runs in none of these.
    """

    call_id: str
    name: str
    decision: Literal["once", "session", "always", "denied", "unanswered", "stopped"]
    word: str = ""


class MessageTaken(_Event, frozen=True):
    """What the person said while a turn was running is in the log, and the next request of that turn has it."""

    text: str


class UsageReported(_Event, frozen=True):
    """What the provider reported for one request; is_estimate where it reported nothing."""

    usage: Usage
    model: str
    is_estimate: bool = False


class ContextWarning(_Event, frozen=True):
    """A threshold was crossed upwards. `message` is the text a person sees."""

    level: Literal["info", "warning"]
    usage: float
    used_tokens: int
    budget_tokens: int
    message: str


class ContextCompaction(_Event, frozen=True):
    """Every `starting` is followed by exactly one of the other phases (preview stands alone)."""

    phase: Literal["starting", "completed", "failed", "skipped", "insufficient", "preview"]
    trigger: Literal["manual", "threshold", "idle", "overflow", "turns", "model", "provider"]
    stages: tuple[str, ...] = ()
    tokens_before: int = 0
    tokens_after: int = 0
    kept_facts: int = 0
    total_facts: int = 0
    seconds: float = 0.0
    cost: float | None = None
    message: str = ""
    saves: float | None = None
    """US dollars that each later request costs less, read without a cache; None where no price is known."""
    saves_cached: float | None = None
    """The same where the provider has all of it in its cache."""


class RetryScheduled(_Event, frozen=True):
    attempt: int
    wait_seconds: float
    reason: str


class Notice(_Event, frozen=True):
    """Something a person should know, once."""

    message: str


class ErrorRaised(_Event, frozen=True):
    """`exit_code` is that of the error's class (nca.errors)."""

    message: str
    advice: str = ""
    exit_code: int = 1


class TurnFinished(_Event, frozen=True):
    """The end of every turn, however it went. `text` is the final answer, or what there is of it.

    stuck: the model made the same call with the same result again and again.
    cost: US dollars for all that was asked in the turn, its summaries too; None where no price is known.
    """

    reason: Literal["answered", "interrupted", "max_steps", "stuck", "failed"]
    text: str
    steps: int
    seconds: float
    cost: float | None = None


Event = (
    TurnStarted
    | RequestStarted
    | TextDelta
    | ReasoningDelta
    | ToolStarted
    | ToolFinished
    | ApprovalAsked
    | ApprovalGiven
    | MessageTaken
    | UsageReported
    | ContextWarning
    | ContextCompaction
    | RetryScheduled
    | Notice
    | ErrorRaised
    | TurnFinished
)

Listener = Callable[[Event], None]
"""Called with each event as it happens, on the loop's thread. It must not block and must not raise."""
