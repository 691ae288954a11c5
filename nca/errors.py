"""One tree of errors. Each says what happened in one line, and `advice` what to do about it.

NcaError                     exit code 1
├── UsageError               2  wrong words on a command line or in a call
│   ├── ConfigError          2  a setting: which key, where, what is valid
│   └── InvalidMessages      2  messages that cannot be read: which one, what is valid
├── ProviderError            3  the model's side failed; .failure says how
│   └── ModelUnavailable     3  no endpoint, no key, no weights
│       └── ModelNotFound    3  the provider does not know the model
├── ContextDoesNotFit        4  the untouchable part alone is larger than the budget
├── CostLimitReached         5  the session has cost what it may
└── StoreError               1  the session database
    ├── SessionNotFound      2
    ├── SessionLocked        1  another process writes this session
    ├── StoreDamaged         1
    └── StoreTooNew          1
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
    "fail",
]


@dataclass(frozen=True, slots=True)
class ProviderFailure:
    """What a provider's error means. Token counts are None where the reply does not say."""

    action: Action
    is_overflow: bool
    asked_tokens: int | None = None
    limit_tokens: int | None = None
    retry_after_seconds: float | None = None
    message: str = ""


class NcaError(Exception):
    """The root of all errors that nca raises on purpose."""

    exit_code = 1

    def __init__(self, message: str, *, advice: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.advice = advice

    def __str__(self) -> str:
        end = "" if not self.advice or self.message.endswith((".", "!", "?", ":", ";")) else "."
        return f"{self.message}{end} {self.advice}".rstrip()


class UsageError(NcaError):
    """An argument, a file or a command line that cannot be used; the message names it and what is valid."""

    exit_code = 2


class ConfigError(UsageError):
    """A setting that cannot be used; the message names the place, the key, the value and what is valid."""


class InvalidMessages(UsageError):
    """Messages that cannot be read; the message names which one and what is valid."""


class ProviderError(NcaError):
    """The model's side failed; `failure` says what to do about it."""

    exit_code = 3

    def __init__(self, message: str, *, advice: str = "", failure: ProviderFailure | None = None) -> None:
        super().__init__(message, advice=advice)
        self.failure = failure or ProviderFailure(action="fail", is_overflow=False, message=message)


class ModelUnavailable(ProviderError):
    """There is nothing to talk to: unknown model, no key, no endpoint, no weights."""


class ModelNotFound(ModelUnavailable):
    """The provider answers and does not know this model, perhaps no longer."""


class CostLimitReached(NcaError):
    """The session has cost what `session.max_cost` allows. Nothing was sent."""

    exit_code = 5


class ContextDoesNotFit(NcaError):
    """What may not be compacted is larger than the budget. Nothing was sent."""

    exit_code = 4

    def __init__(self, message: str, *, advice: str = "", used_tokens: int = 0, budget_tokens: int = 0) -> None:
        super().__init__(message, advice=advice)
        self.used_tokens = used_tokens
        self.budget_tokens = budget_tokens


class StoreError(NcaError):
    """The session database cannot do what was asked."""


class SessionNotFound(StoreError):
    exit_code = 2


class SessionLocked(StoreError):
    """Another process writes this session; the message names its pid."""


class StoreDamaged(StoreError):
    """The file is not a healthy database; it was left as it is or set aside, never overwritten."""


class StoreTooNew(StoreError):
    """The database was written by a newer nca."""
