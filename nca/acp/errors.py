"""Errors as JSON-RPC errors, each in one line."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, ParamSpec, TypeVar

from acp import RequestError

from nca.errors import NcaError, SessionNotFound, UsageError
from nca.terminal.render.event_lines import ERROR_CHARS
from nca.terminal.render.sanitize import one_line

PARSE_ERROR, INVALID_REQUEST, INVALID_PARAMS, INTERNAL_ERROR = -32700, -32600, -32602, -32603
RESOURCE_NOT_FOUND = -32002
"""Of the protocol."""

P = ParamSpec("P")
T = TypeVar("T")


def error_reply(number: str | int | None, code: int, message: str) -> dict[str, Any]:
    """The answer to a message that cannot be handled."""
    return {"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": message}}


def request_error(error: NcaError) -> RequestError:
    """The error as the client gets it: what happened and what to do, in one line."""
    code = INTERNAL_ERROR
    if isinstance(error, SessionNotFound):
        code = RESOURCE_NOT_FOUND
    elif isinstance(error, UsageError):
        code = INVALID_PARAMS
    line = one_line(str(error), ERROR_CHARS)
    return RequestError(code, line[:1].upper() + line[1:])


def answered(method: Callable[P, Awaitable[T]]) -> Callable[P, Awaitable[T]]:
    """A method of the agent whose NcaErrors the client gets as JSON-RPC errors."""

    @functools.wraps(method)
    async def wrapped(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return await method(*args, **kwargs)
        except NcaError as error:
            raise request_error(error) from error

    return wrapped


def tidied(message: dict[str, Any]) -> dict[str, Any]:
    """The message; in an error of the SDK, what is wrong stands in its line and not in data of any form."""
    error = message.get("error")
    if not isinstance(error, Mapping):
        return message
    text, data = str(error.get("message", "")), error.get("data")
    if isinstance(data, Mapping):
        text = f"{text}: {_said(data)}" if _said(data) else text
    return {**message, "error": {"code": error.get("code", INTERNAL_ERROR), "message": one_line(text, ERROR_CHARS)}}


def _said(data: Mapping[str, Any]) -> str:
    problems = data.get("errors")
    if isinstance(problems, list) and problems and isinstance(problems[0], Mapping):
        where = ".".join(str(part) for part in problems[0].get("loc", ()))
        return f"{where}: {problems[0].get('msg', '')}".strip(": ")
    return next((str(value) for value in data.values() if isinstance(value, str)), "")
