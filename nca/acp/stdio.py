"""The protocol's streams: one JSON-RPC message a line on standard input and output, which nothing else may use.

Errors go over them as JSON-RPC errors.
"""

from __future__ import annotations

import asyncio
import functools
import json
import os
import queue
import sys
import threading
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Any, ParamSpec, TypeVar

from acp import RequestError
from acp.meta import AGENT_METHODS

from nca.errors import ModelUnavailable, NcaError, SessionLocked, SessionNotFound, UsageError
from nca.events import Failure
from nca.terminal.render.event_lines import ERROR_CHARS, error_line
from nca.terminal.render.sanitize import one_line

PARSE_ERROR, INVALID_REQUEST, INVALID_PARAMS, INTERNAL_ERROR = -32700, -32600, -32602, -32603
RESOURCE_NOT_FOUND = -32002
"""Of the protocol."""

P = ParamSpec("P")
T = TypeVar("T")


def error_reply(number: str | int | None, code: int, message: str) -> dict[str, Any]:
    """The answer to a message that cannot be handled."""
    return {"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": message}}


def request_error(error: NcaError | Failure) -> RequestError:
    """The error as the client gets it: what happened and what to do, in one line.

    A failed turn is one of the chat, whose commands the person has; any other error may come before there is a chat.
    """
    is_mendable = error.exit_code == UsageError.exit_code or isinstance(error, ModelUnavailable | SessionLocked)
    code = INVALID_PARAMS if is_mendable else INTERNAL_ERROR
    if isinstance(error, SessionNotFound):
        code = RESOURCE_NOT_FOUND
    said = " ".join(filter(None, error_line(error))) if isinstance(error, Failure) else str(error)
    return RequestError(code, one_line(said, ERROR_CHARS))


def answered(method: Callable[P, Awaitable[T]]) -> Callable[P, Awaitable[T]]:
    """A method of the agent; the client gets its NcaErrors as JSON-RPC errors."""

    @functools.wraps(method)
    async def wrapped(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return await method(*args, **kwargs)
        except NcaError as error:
            raise request_error(error) from error

    return wrapped


def tidied(message: dict[str, Any]) -> dict[str, Any]:
    """The message; an error of the SDK has the reason in its line and no data of another form."""
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


MOST_LINE_BYTES = 64 * 1_048_576
"""A longer line is not read: an image in a prompt is far smaller."""
_PIECE_BYTES = 65_536
_UNROUTED = (AGENT_METHODS["session_delete"],)
"""Methods of the protocol for which the SDK has no route; as extensions (`_`), they reach the agent's `ext_method`."""
_CLOSE_SECONDS = 2.0
"""How long the end waits for running work, and for a client that does not read the rest."""

Message = dict[str, Any]


def private_streams() -> tuple[int, int]:
    """Take standard input and output for the protocol alone; returns their descriptors.

    From then on whatever prints, in this process or in one that it starts, prints to standard error, and whatever reads
    standard input finds it empty.
    """
    sys.stdout.flush()
    reader, writer = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    sys.stdin, sys.stdout = os.fdopen(0, closefd=False), sys.stderr
    return reader, writer


class Stdio:
    """A transport of the protocol's SDK. Threads read and write, so neither a file nor a slow client blocks the loop.

    A line that is not a message is answered with an error and has no other effect.
    """

    def __init__(self, reader: int, writer: int) -> None:
        """Call it on the event loop."""
        self._loop = asyncio.get_running_loop()
        self._reader, self._writer = reader, writer
        self._received: asyncio.Queue[Message | None] = asyncio.Queue()
        self._unsent: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._is_closed = False
        self._unanswered: set[str | int] = set()
        self._settled = asyncio.Event()
        self.on_end: Callable[[], None] = lambda: None
        """Called when the input has ended, to end running work."""
        threading.Thread(target=self._read, name="acp-reader", daemon=True).start()
        self._sender = threading.Thread(target=self._write, name="acp-writer", daemon=True)
        self._sender.start()

    def put(self, message: Message) -> None:
        """Send a message after those before it. Never waits; after the end it does nothing."""
        if self._is_closed:
            return
        if "method" not in message:
            self._unanswered.discard(message.get("id") or 0)
            if not self._unanswered:
                self._settled.set()
        line = json.dumps(tidied(message), ensure_ascii=False, separators=(",", ":"), default=str)
        self._unsent.put(line.encode("utf-8", "replace") + b"\n")

    async def send(self, message: Message) -> None:
        self.put(message)

    async def receive(self) -> Message | None:
        """The next message; None at the end, when those before it are answered or had their time."""
        message = await self._received.get()
        if message is None:
            self.on_end()
            if self._unanswered:
                self._settled.clear()
                with suppress(TimeoutError):
                    async with asyncio.timeout(_CLOSE_SECONDS):
                        await self._settled.wait()
        elif "method" in message and "id" in message:
            self._unanswered.add(message["id"] or 0)
        return message

    def end(self) -> None:
        """Behave as if standard input had ended."""
        self._received.put_nowait(None)

    async def close(self) -> None:
        """Send the rest, unless the client does not read it."""
        if not self._is_closed:
            self._is_closed = True
            self._unsent.put(None)
            await asyncio.to_thread(self._sender.join, _CLOSE_SECONDS)

    def _take(self, line: bytes) -> None:
        if not line.strip():
            return
        found = read_message(line)
        if "refused" in found:
            self.put(found["refused"])
        elif not str(found.get("method", "")).startswith("$/") or "id" in found:
            self._received.put_nowait(found)

    def _read(self) -> None:
        """In a thread, to the end of the input."""
        kept, is_too_long = bytearray(), False
        with suppress(RuntimeError):  # the loop has ended, and nobody listens
            while piece := self._piece():
                *ended, rest = piece.split(b"\n")
                for line in ended:
                    whole = bytes(kept) + line
                    self._loop.call_soon_threadsafe(self._take, b"{" if is_too_long else whole)
                    kept, is_too_long = bytearray(), False
                kept += rest
                if len(kept) > MOST_LINE_BYTES:
                    kept, is_too_long = bytearray(), True
            self._loop.call_soon_threadsafe(self._take, bytes(kept))
            self._loop.call_soon_threadsafe(self.end)

    def _piece(self) -> bytes:
        try:
            return os.read(self._reader, _PIECE_BYTES)
        except OSError:
            return b""

    def _write(self) -> None:
        """In a thread, until `close` or until the client is gone."""
        while (line := self._unsent.get()) is not None:
            try:
                while line:
                    line = line[os.write(self._writer, line) :]
            except OSError:
                with suppress(RuntimeError):
                    self._loop.call_soon_threadsafe(self.end)
                return


def read_message(line: bytes) -> Message:
    """A request, notification or response. Otherwise `{"refused": the answer to it}`.

    The SDK takes a message for what it says it is, so all of its fields are checked here.
    """
    try:
        message = json.loads(line.decode("utf-8"))
    except (ValueError, RecursionError):
        return {"refused": error_reply(None, PARSE_ERROR, "A line is not JSON; one message a line is expected.")}
    if not isinstance(message, dict):
        return {"refused": error_reply(None, INVALID_REQUEST, "A message is not an object; batches are not taken.")}
    number, method, params = message.get("id"), message.get("method"), message.get("params")
    known = number if isinstance(number, str | int) and not isinstance(number, bool) else None
    if number is not None and known is None:
        return {"refused": error_reply(None, INVALID_REQUEST, "The id of a message is neither text nor a number.")}
    if method is None and ("result" in message or isinstance(message.get("error"), dict)):
        return {key: value for key, value in message.items() if key not in ("method", "params")}
    if not isinstance(method, str):
        return {"refused": error_reply(known, INVALID_REQUEST, "A message has no method, and is no answer.")}
    if params is not None and not isinstance(params, dict):
        return {"refused": error_reply(known, INVALID_REQUEST, f"{method}: params is not an object.")}
    return {**message, "method": f"_{method}" if method in _UNROUTED else method, "params": params or {}}
