"""Events of a conversation as updates for the client."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from acp import helpers, schema

from nca import events
from nca.acp import tool_calls
from nca.acp.tool_calls import CallIds, Content, Outlet
from nca.context.file_reads import arguments_of
from nca.errors import NcaError
from nca.messages import Message, ToolCall
from nca.terminal.render import event_lines
from nca.terminal.render.sanitize import StreamSanitizer, one_line
from nca.terminal.render.sessions import title

if TYPE_CHECKING:
    from nca.agent.conversation import Conversation


class Updates:
    """Listens to one conversation. Never raises.

    directory  of the session: calls name files relative to it
    ids        of the calls, for the client
    """

    def __init__(self, outlet: Outlet, directory: Path) -> None:
        self._outlet, self._directory = outlet, directory
        self.ids = CallIds()
        self._conversation: Callable[[], Conversation | None] = lambda: None
        self._text, self._thought = StreamSanitizer(), StreamSanitizer()
        self._running: dict[str, events.ToolStarted] = {}
        self._plans: dict[str, events.ToolStarted] = {}
        self._in_terminal: set[str] = set()
        self._compactions = 0
        self._shown_usage: tuple[int, int, float | None] | None = None
        self._title = ""
        self._notices = event_lines.Notices()

    def follow(self, conversation: Conversation) -> None:
        """From now on, say how full its context is."""
        self._conversation = lambda: conversation
        self._title = _title(conversation)
        self.usage()

    def on_event(self, event: events.Event) -> None:
        match event:
            case events.TextDelta():
                self._outlet.say(self._text.feed(event.text))
            case events.ReasoningDelta():
                self._outlet.think(self._thought.feed(event.text))
            case events.ToolStarted():
                self._started(event)
            case events.ToolProgress():
                self._progress(event.call_id, text=event.text)
            case events.ApprovalAsked():
                self._progress(
                    event.call_id, status="pending", content=tool_calls.asked_content(event), path=event.path
                )
            case events.ApprovalGiven(decision="once" | "session" | "always"):
                self._progress(event.call_id, status="in_progress")
            case events.ToolFinished():
                self._finished(event)
            case events.ContextCompaction():
                self._compaction(event)
            case events.RequestStarted() | events.UsageReported():
                self.usage()
            case events.TurnFinished():
                self._ended()
        line = self._notices.line(event)
        if line and not (isinstance(event, events.TurnFinished) and event.reason == "interrupted"):
            self._outlet.note(one_line(line[0], event_lines.ERROR_CHARS))

    def usage(self) -> None:
        """Say how full the context is and what the session has cost, if that has changed."""
        conversation = self._conversation()
        if conversation is None:
            return
        stats = conversation.context.stats(with_details=False)
        try:
            spent = conversation.session.usage.totals().cost
        except NcaError:  # reported when it matters: when the turn writes
            spent = None
        if self._shown_usage == (current := (stats.used_tokens, stats.budget_tokens, spent)):
            return
        self._shown_usage = current
        cost = None if spent is None else schema.Cost(amount=spent, currency="USD")
        self._outlet.send(
            schema.UsageUpdate(
                session_update="usage_update", used=stats.used_tokens, size=stats.budget_tokens, cost=cost
            )
        )

    def shown_in_terminal(self, call_id: str, content: Content) -> None:
        """A call's output is shown in a terminal of the client."""
        self._in_terminal.add(call_id)
        self._progress(call_id, content=[content])

    def _started(self, event: events.ToolStarted) -> None:
        self._flush()
        if tool_calls.is_plan(event.name):
            self._plans[event.call_id] = event
            return
        self._running[event.call_id] = event
        title = event_lines.tool_started_line(event)
        self._outlet.send(tool_calls.started(_call(event), self.ids.begin(event.call_id), title, self._directory))

    def _progress(
        self,
        call_id: str,
        *,
        status: schema.ToolCallStatus | None = None,
        content: list[Content] | None = None,
        path: str = "",
        text: str = "",
    ) -> None:
        running = self._running.get(call_id)
        if running is None:
            return
        title = f"{event_lines.tool_started_line(running)} · {one_line(text, 80)}" if text else None
        places = [schema.ToolCallLocation(path=path)] if path else None
        self._outlet.send(
            helpers.update_tool_call(
                self.ids.of(call_id), title=title, status=status, content=content or None, locations=places
            )
        )

    def _finished(self, event: events.ToolFinished) -> None:
        plan = self._plans.pop(event.call_id, None)
        entries = tool_calls.plan_of(arguments_of(_call(plan))) if plan is not None and not event.is_error else None
        if entries is not None:
            self._outlet.send(helpers.update_plan(entries))
        begun = self._running.pop(event.call_id, None)
        if begun is None:
            return
        is_shown = event.call_id in self._in_terminal
        self._in_terminal.discard(event.call_id)
        path = tool_calls.locations_of(arguments_of(_call(begun)), self._directory)
        content = tool_calls.diff_content(event.diff, path[0].path) if event.diff and path else self._output(event)
        self._outlet.send(
            helpers.update_tool_call(
                self.ids.of(event.call_id),
                title=event_lines.tool_finished_line(event_lines.tool_started_line(begun), event),
                status="failed" if event.is_error or event.is_interrupted else "completed",
                content=None if is_shown else content or None,
            )
        )

    def _output(self, event: events.ToolFinished) -> list[Content]:
        """The text for the model; for a call of a task, which has no place in the log, only the summary."""
        conversation = self._conversation()
        last: Message | None = conversation.context.entries[-1].message if conversation is not None else None
        if last is None or last.role != "tool" or last.tool_call_id != event.call_id:
            return [tool_calls.words(event.summary)] if event.summary else []
        return tool_calls.output_content(last.text)

    def _compaction(self, event: events.ContextCompaction) -> None:
        """A compaction is shown as a call: it takes time, and its result is one line."""
        if event_lines.is_silent(event):
            return
        line = event_lines.compaction_line(event)
        is_alone = event.phase in ("starting", "preview") or event.trigger == "idle"
        status: schema.ToolCallStatus = "failed" if event.phase == "failed" else "completed"
        if is_alone:
            self._flush()
            self._compactions += 1
            status = "in_progress" if event.phase == "starting" else status
        call_id = f"compaction-{self._compactions}"
        self._outlet.send(
            helpers.start_tool_call(call_id, line, kind="other", status=status)
            if is_alone
            else helpers.update_tool_call(call_id, title=line, status=status)
        )
        self.usage()

    def _ended(self) -> None:
        self._flush()
        for call_id in list(self._running):
            self._progress(call_id, status="failed")
        self._running.clear()
        self._plans.clear()
        self.usage()
        conversation = self._conversation()
        if conversation is not None and (now := _title(conversation)) != self._title:
            self._title = now
            self._outlet.send(schema.SessionInfoUpdate(session_update="session_info_update", title=now))

    def _flush(self) -> None:
        """The held-back part of a possible escape code."""
        self._outlet.think(self._thought.finish())
        self._outlet.say(self._text.finish())


def _call(event: events.ToolStarted) -> ToolCall:
    return ToolCall(event.call_id, event.name, event.arguments)


def _title(conversation: Conversation) -> str:
    """The session's title; "" as long as it is empty, or the store cannot say."""
    try:
        info = conversation.session.info
    except NcaError:
        return ""
    return title(info) if info.messages else ""
