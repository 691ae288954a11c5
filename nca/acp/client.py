"""What the client is asked: permission requests, forms and pages of MCP servers, files and terminals for the tools."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import signal
import threading
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

from acp import Client, RequestError, helpers, schema
from pydantic import AnyHttpUrl, ValidationError

from nca.acp.tool_calls import CallIds, Content, Outlet, asked_content, kind_of, words
from nca.agent.approvals import Answer
from nca.events import ApprovalAsked
from nca.humanize import some_of
from nca.terminal.panels.session_loader import KeyChoice
from nca.terminal.reader import Reader
from nca.terminal.render.calls import ApprovalPanel
from nca.terminal.render.sanitize import one_line
from nca.tools.mcp.forms import Field, Value
from nca.tools.mcp.requests import Filled
from nca.tools.mcp.tool import rule_in_words
from nca.tools.tool import TerminalRun, ToolError, current_call
from nca.words import Words

T = TypeVar("T")

_TRIES = 3
"""After this many invalid answers a form is cancelled, so that no client is asked for ever."""
_KEPT = ("minLength", "maxLength", "minimum", "maximum", "minItems", "maxItems", "format", "pattern", "default")
"""The parts of a field's schema that the client gets unchanged."""
_ONCE, _SESSION, _DENY = "once", "session", "deny"
_RULE_CHARS = 160


class EditorPerson(Reader):
    """Asks for approvals, what MCP servers ask, and what commands let the person choose.

    outlet  has the session's id for the client
    ids     of the calls, for the client
    offers  which of forms and pages the client shows
    """

    is_interactive = False
    can_choose = True
    can_type = False

    def __init__(self, client: Client, outlet: Outlet, ids: CallIds, offers: schema.ElicitationCapabilities) -> None:
        self._client, self._outlet, self._ids, self._offers = client, outlet, ids, offers
        self.take_shown: Callable[[], str] = str
        """Gives what a command has shown until now, which the person reads before its question."""

    async def ask(self, asked: ApprovalAsked) -> Answer:
        """Once, for this session, or no. A cancelled request interrupts the turn.

        Nothing holds beyond the session, because the terminal asks twice for that.
        """
        options = options_for(asked)
        call = schema.ToolCallUpdate(
            tool_call_id=self._ids.of(asked.call_id),
            title=one_line(asked.summary or asked.name, _RULE_CHARS),
            kind=kind_of(asked.name),
            status="pending",
            content=asked_content(asked),
            locations=[schema.ToolCallLocation(path=asked.path)] if asked.path else None,
        )
        session = self._outlet.session_id
        answer = await _answered(self._client.request_permission(session_id=session, tool_call=call, options=options))
        if answer is None:
            return Answer("unanswered")
        if not isinstance(answer.outcome, schema.AllowedOutcome):
            raise asyncio.CancelledError
        chosen = answer.outcome.option_id
        if chosen == _ONCE:
            return Answer("once")
        is_offered = any(option.option_id == _SESSION for option in options)
        return Answer("session" if chosen == _SESSION and is_offered else "deny")

    async def choose(self, question: str, keys: Sequence[KeyChoice]) -> str:
        """Asked as a call that needs permission. "" if the person cancels, or the client cannot ask."""
        self._outlet.say(self.take_shown())
        call_id = self._ids.begin("question")
        title, session = one_line(question, _RULE_CHARS), self._outlet.session_id
        self._outlet.send(
            helpers.start_tool_call(call_id, title, kind="other", status="pending", content=[words(question)])
        )
        options = [schema.PermissionOption(option_id=key, name=about, kind="allow_once") for key, about in keys]
        options.append(schema.PermissionOption(option_id=_DENY, name="cancel", kind="reject_once"))
        chosen = ""
        try:
            call = schema.ToolCallUpdate(tool_call_id=call_id, title=title, status="pending", content=[words(question)])
            asking = self._client.request_permission(session_id=session, tool_call=call, options=options)
            answer = await _answered(asking)
            if answer is not None and isinstance(answer.outcome, schema.AllowedOutcome):
                chosen = answer.outcome.option_id if answer.outcome.option_id in dict(keys) else ""
        finally:
            status: schema.ToolCallStatus = "completed" if chosen else "failed"
            self._outlet.send(helpers.update_tool_call(call_id, status=status))
        return chosen

    async def fill_form(self, question: str, fields: Sequence[Field]) -> Filled | None:
        """All fields at once. Values that are not valid are asked again. None if the client cannot ask."""
        if self._offers.form is None:
            return None
        problem = ""
        for _ in range(_TRIES):
            try:
                mode = schema.ElicitationFormSessionMode(
                    session_id=self._outlet.session_id, requested_schema=_schema_of(fields)
                )
            except ValidationError:
                return None
            answer = await self._elicit(f"{problem}{question}", mode)
            if not isinstance(answer, schema.AcceptElicitationResponse):
                return answer
            try:
                return Filled("accept", _values(fields, answer.content or {}))
            except ValueError as error:
                problem = f"{error}.\n"
        return Filled("cancel")

    async def open_page(self, question: str, url: str) -> Filled | None:
        """None if the client cannot open it, or it is not a page of the web."""
        if self._offers.url is None:
            return None
        try:
            page = AnyHttpUrl(url)
        except ValidationError:
            return None
        session = self._outlet.session_id
        mode = schema.ElicitationUrlSessionMode(session_id=session, elicitation_id=str(uuid4()), url=page)
        answer = await self._elicit(question, mode)
        return Filled("accept") if isinstance(answer, schema.AcceptElicitationResponse) else answer

    async def read(self, conversation: object, default: Words = ()) -> Words:
        """Prompts come by the protocol."""
        raise EOFError

    def interrupt(self) -> bool:
        return False

    async def _elicit(
        self, question: str, mode: schema.ElicitationMode
    ) -> schema.AcceptElicitationResponse | Filled | None:
        answer = await _answered(self._client.create_elicitation(question, mode))
        if answer is None or isinstance(answer, schema.AcceptElicitationResponse):
            return answer
        return Filled("decline" if isinstance(answer, schema.DeclineElicitationResponse) else "cancel")


async def _answered(asking: Awaitable[T]) -> T | None:
    """None if the client cannot ask, or its answer means nothing. One that is gone interrupts the turn."""
    try:
        return await asking
    except (RequestError, ValidationError):
        return None
    except ConnectionError:
        raise asyncio.CancelledError from None


def options_for(asked: ApprovalAsked) -> list[schema.PermissionOption]:
    """The answers that the terminal takes with one key; it asks twice about calls that it would not show at once."""
    options = [schema.PermissionOption(option_id=_ONCE, name="Allow once", kind="allow_once")]
    panel = ApprovalPanel(asked)
    panel.first()
    if asked.subject and not panel.lines_left:
        rule = one_line(f"{asked.name} {rule_in_words(asked.name, asked.subject)}", _RULE_CHARS)
        options.append(
            schema.PermissionOption(option_id=_SESSION, name=f"Allow for this session: {rule}", kind="allow_always")
        )
    return [*options, schema.PermissionOption(option_id=_DENY, name="No", kind="reject_once")]


def _schema_of(fields: Sequence[Field]) -> schema.ElicitationSchema:
    """Raises ValidationError for a field that the protocol cannot describe."""
    return schema.ElicitationSchema.model_validate(
        {
            "properties": {field.name: _property(field) for field in fields},
            "required": [field.name for field in fields if field.is_required],
        }
    )


def _property(field: Field) -> dict[str, Any]:
    found = {key: field.schema[key] for key in _KEPT if key in field.schema}
    found |= {"type": field.kind, "title": field.title, "description": field.about or None}
    options = [{"const": value, "title": shown} for value, shown in field.choices]
    if field.kind == "array":
        found["items"] = {"anyOf": options}
    elif options:
        found["oneOf"] = options
    return found


def _values(fields: Sequence[Field], content: Mapping[str, object]) -> dict[str, Value]:
    """The values by name. Raises ValueError, which names the field and says what is valid."""
    values: dict[str, Value] = {}
    for field in fields:
        value = content.get(field.name)
        try:
            if value not in (None, ""):
                values[field.name] = field.take(value)
            elif field.is_required:
                raise ValueError("a value is needed")
        except ValueError as error:
            raise ValueError(f"{field.title}: {error}") from error
    return values


_NAMED = 3
READ_SECONDS, WRITE_SECONDS = 10.0, 30.0
"""A client that takes longer to give a text gives none, which a line says; one that writes longer has failed."""


class ClientFiles:
    """Asks the client from a tool's thread. Call it on the event loop's thread only to make one.

    outlet  has the session's id for the client
    offers  which of reading and writing the client can do
    """

    read_seconds = READ_SECONDS

    def __init__(self, client: Client, outlet: Outlet, offers: schema.FileSystemCapabilities) -> None:
        self._client, self._outlet, self._offers = client, outlet, offers
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()

    def read(self, *paths: Path) -> Mapping[Path, str]:
        if not self._offers.read_text_file or threading.get_ident() == self._thread:
            return {}
        try:
            texts = self._answer(self._texts(paths), self.read_seconds)
        except TimeoutError:
            late = f"the editor did not give its text within {self.read_seconds:g} seconds, so the saved file counts."
            self._outlet.note(one_line(f"{some_of([path.name for path in paths], _NAMED)}: {late}"))
        except ConnectionError:
            pass
        else:
            return {path: text for path, text in zip(paths, texts, strict=True) if text is not None}
        return {}

    async def _texts(self, paths: Sequence[Path]) -> list[str | None]:
        """All at once: each costs a way to the client and back."""

        async def text(path: Path) -> str | None:
            with contextlib.suppress(RequestError, ValidationError, ConnectionError):
                asking = self._client.read_text_file(session_id=self._outlet.session_id, path=str(path))
                return (await asking).content
            return None  # not open there, or not known: the file on the disk counts

        return await asyncio.gather(*map(text, paths))

    def write(self, path: Path, text: str) -> bool:
        if not self._offers.write_text_file:
            return False
        asking = self._client.write_text_file(session_id=self._outlet.session_id, path=str(path), content=text)
        try:
            self._answer(asking, WRITE_SECONDS)
        except (RequestError, ValidationError) as error:
            raise ToolError(f"the editor refused to write {path.name} ({one_line(str(error), 200)})") from error
        except TimeoutError:
            raise ToolError(f"the editor did not say whether it wrote {path.name}; read it again") from None
        except ConnectionError:
            raise ToolError(f"the editor has gone; {path.name} was not written") from None
        return True

    def _answer(self, asking: Coroutine[Any, Any, T], seconds: float) -> T:
        """Wait for the loop's answer. Raises TimeoutError, and what the asking raises."""
        future = asyncio.run_coroutine_threadsafe(asking, self._loop)
        try:
            return future.result(seconds)
        except concurrent.futures.CancelledError:
            raise ConnectionError("the client has gone") from None
        except TimeoutError:
            future.cancel()
            raise


_END_SECONDS = 5.0
"""How long the client may take to end a command and to send its output."""
_UNKNOWN_EXIT_CODE = 1


class ClientTerminal:
    """Runs each command in a terminal of its own.

    outlet  has the session's id for the client
    show    called with a call's id and the terminal, once there is one
    """

    def __init__(self, client: Client, outlet: Outlet, show: Callable[[str, Content], None]) -> None:
        self._client, self._outlet, self._show = client, outlet, show

    async def run(self, argv: Sequence[str], directory: Path, *, seconds: float, most_bytes: int) -> TerminalRun:
        client, session = self._client, self._outlet.session_id
        making = asyncio.ensure_future(
            client.create_terminal(
                session_id=session,
                command=argv[0],
                args=list(argv[1:]),
                cwd=str(directory),
                output_byte_limit=most_bytes,
            )
        )
        try:
            made = await asyncio.shield(making)
        except (RequestError, ValidationError, ConnectionError) as error:
            raise ToolError(f"the editor's terminal cannot be used ({one_line(str(error), 200)})") from error
        except asyncio.CancelledError:
            # The client may have started it anyway.
            await self._release(session, making)
            raise
        self._show(current_call.get(), schema.TerminalToolCallContent(type="terminal", terminal_id=made.terminal_id))
        is_timeout = False
        try:
            try:
                async with asyncio.timeout(seconds):
                    await client.wait_for_terminal_exit(session_id=session, terminal_id=made.terminal_id)
            except TimeoutError:
                is_timeout = True
            async with asyncio.timeout(_END_SECONDS):
                if is_timeout:
                    await client.kill_terminal(session_id=session, terminal_id=made.terminal_id)
                printed = await client.terminal_output(session_id=session, terminal_id=made.terminal_id)
        except (RequestError, ValidationError, ConnectionError, TimeoutError) as error:
            raise ToolError(f"the editor's terminal failed ({one_line(str(error) or 'no answer', 200)})") from error
        finally:
            # Also when the turn is interrupted: releasing a terminal ends what still runs in it.
            await asyncio.shield(self._release(session, making))
        return TerminalRun(_exit_code(printed), printed.output, printed.truncated, is_timeout)

    async def _release(self, session: str, making: asyncio.Future[schema.CreateTerminalResponse]) -> None:
        with contextlib.suppress(RequestError, ValidationError, ConnectionError, TimeoutError):
            async with asyncio.timeout(_END_SECONDS):
                terminal = (await making).terminal_id
                await self._client.release_terminal(session_id=session, terminal_id=terminal)


def _exit_code(printed: schema.TerminalOutputResponse) -> int:
    """As a shell's; negative for a signal."""
    status = printed.exit_status
    if status is None:
        return _UNKNOWN_EXIT_CODE
    if status.signal:
        name = status.signal if status.signal.startswith("SIG") else f"SIG{status.signal}"
        return -int(signal.Signals[name]) if name in signal.Signals.__members__ else _UNKNOWN_EXIT_CODE
    return _UNKNOWN_EXIT_CODE if status.exit_code is None else status.exit_code
