"""All errors that nca raises. `message` says in one line what happened, `advice` what to do about it.

NcaError                     exit code 1
├── UsageError               2  a wrong argument on a command line or in a call
│   ├── ConfigError          2  a setting that cannot be used
│   ├── InvalidMessages      2  messages that cannot be read
│   └── ViewInUse            2  a view of one conversation was used for another
├── ProviderError            3  the provider failed; .failure says how
│   ├── OnlyReasoned         3  the answer reached its length limit before any text
│   ├── AnswerFiltered       1  the provider's content filter ended the answer before any text
│   └── ModelUnavailable     3  no endpoint, no key, no weights
│       └── ModelNotFound    3  the provider does not know the model
├── ContextDoesNotFit        4  the part that may not be compacted is larger than the budget
├── CostLimitReached         5  the session has reached its cost limit
└── StoreError               1  the session database
    ├── SessionNotFound      2
    ├── SessionLocked        1  another process writes this session
    ├── NotAStore            2  a file that was never nca's is in the place of the database
    ├── StoreDamaged         1
    ├── StoreTooNew          1
    └── StoreUnreachable     1  the database server does not answer
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Action = Literal[
    "compact",
    "lower_max_tokens",
    "lower_max_tokens_then_compact",
    "backoff",
    "repair_history",
    "shrink_payload",
    "leave_out",
    "fail",
]


@dataclass(frozen=True, slots=True)
class ProviderFailure:
    """The reaction to a provider's error. Token counts are None if the error does not name them."""

    action: Action
    is_overflow: bool
    asked_tokens: int | None = None
    limit_tokens: int | None = None
    retry_after_seconds: float | None = None
    message: str = ""
    parameter: str = ""
    """What "leave_out" is about: the endpoint refuses this part of the request, whatever its value."""
    is_unexplained: bool = False
    """Status 400 or 413 without an explanation: near the window, an overflow."""


def sentence(text: str) -> str:
    """The text with a full stop at its end, unless it already ends with punctuation."""
    return text if not text or text.endswith((".", "!", "?", ":", ";", "…")) else f"{text}."


def system_reason(error: BaseException) -> str:
    """What the system says of a failure, as a part of a sentence: `no such file or directory`."""
    said = getattr(error, "strerror", None)
    return str(said).lower() if said else str(error)


def install_command(*packages: str) -> str:
    """The command that installs packages beside this nca, however nca was installed: with pip, pipx, uv or make.

    An extra such as `nca[postgres]` would not do: a package index may know another nca.
    """
    # Imports that only this needs.
    import shlex
    import sys
    from importlib.util import find_spec

    python = shlex.quote(sys.executable)
    pip = f"{python} -m pip install" if find_spec("pip") is not None else f"uv pip install --python {python}"
    return " ".join((pip, *map(shlex.quote, packages)))


class NcaError(Exception):
    """Base class of all errors that nca raises on purpose."""

    exit_code = 1

    def __init__(self, message: str, *, advice: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.advice = advice

    def __str__(self) -> str:
        return f"{sentence(self.message)} {self.advice}" if self.advice else self.message


class ProgramFault(NcaError):
    """A fault of nca itself. The message says where, for a report; the chat goes on."""


class UsageError(NcaError):
    """An argument, a file or a command line that cannot be used; the message names it and what is valid."""

    exit_code = 2


class ConfigError(UsageError):
    """A setting that cannot be used; the message names the place, the key, the value and what is valid."""


class StoppedByHook(UsageError):
    """A hook of the person's stopped a message or ended the turn. Nobody has used nca wrongly."""

    exit_code = 1


class InvalidMessages(UsageError):
    """Messages that cannot be read; the message names which one and what is valid."""


class ViewInUse(UsageError):
    """A `ContextView` got another conversation than its own, or is already fitting a request. Nothing was changed."""


class ProviderError(NcaError):
    """The provider failed; `failure` says what to do about it."""

    exit_code = 3

    def __init__(self, message: str, *, advice: str = "", failure: ProviderFailure | None = None) -> None:
        super().__init__(message, advice=advice)
        self.failure = failure or ProviderFailure(action="fail", is_overflow=False, message=message)


class OnlyReasoned(ProviderError):
    """The model reasoned until the answer reached its length limit."""


class AnswerFiltered(ProviderError):
    """The provider's content filter ended the answer before any text."""

    exit_code = 1


class ModelUnavailable(ProviderError):
    """No model can be used: it is unknown, or its key, endpoint or weights are missing."""


class ModelNotFound(ModelUnavailable):
    """The provider does not know this model, or no longer."""


class CostLimitReached(NcaError):
    """The session has reached `session.max_cost`. Nothing was sent."""

    exit_code = 5


class ContextDoesNotFit(NcaError):
    """The part that may not be compacted is larger than the budget, or than the provider's limit."""

    exit_code = 4

    def __init__(self, message: str, *, advice: str = "", used_tokens: int = 0, budget_tokens: int = 0) -> None:
        super().__init__(message, advice=advice)
        self.used_tokens = used_tokens
        self.budget_tokens = budget_tokens


class StoreError(NcaError):
    """The session database failed."""


class SessionNotFound(StoreError):
    exit_code = 2


class SessionLocked(StoreError):
    """Another process has this session open; the message names its pid."""


class NotAStore(StoreError):
    """The file is not nca's and never was. It was left as it is."""

    exit_code = 2


class StoreDamaged(StoreError):
    """The file is not a valid database. It was left as it is or moved aside, never overwritten."""


class StoreTooNew(StoreError):
    """The database was written by a newer nca."""


class StoreUnreachable(StoreError):
    """The database server does not answer, or stopped answering before it said whether a change is stored."""
