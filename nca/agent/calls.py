"""Tool calls of a turn: approve, run, cut to size, and append the results in order.

Calls that only read run together, a few at a time. A call that writes or executes waits for all before it, and
all after it wait for it. A command after a change that failed does not run: it would test or commit the old files.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from itertools import groupby
from pathlib import Path

import msgspec

from nca.agent.approvals import AFTER_FAILURE, BY_HOOK, refused
from nca.agent.parts import Parts
from nca.agent.project_instructions import ProjectInstructions
from nca.context.admission import SAVED, LeftOut, admit_output
from nca.context.file_reads import NOT_RUN
from nca.context.repeats import Repeats
from nca.context.view import RECALL
from nca.events import CallWritten, Notice, ToolFinished, ToolOutput, ToolProgress, ToolStarted
from nca.humanize import one_line
from nca.messages import Message, TextPart, ToolCall, clean_text
from nca.models.model import CallSoFar
from nca.models.tool_calls import whole_arguments
from nca.tools.shell.output_capture import Redact, as_on_terminal
from nca.tools.tool import ToolOutcome, current_call, interrupt_listener, output_listener, progress_listener

MOST_AT_ONCE = 4
"""Reading calls that run at the same time: enough to hide waiting, few enough for a small machine."""
_MAY_CHANGE = frozenset({"task", "job"})
"""A subtask has all tools, and a job can be stopped, although neither needs a permission of its own."""
CUT = "cut for the model"
"""The end of a result's line for a person, if the model was shown less than the tool gave."""
_SUMMARY_CHARS = 200
LIVE_LINES = 5
LIVE_SECONDS = 0.2
"""How often at most a running call's output is told. A call that ends sooner is not told of: its result is there."""
_KEPT_CHARS = 16_384
"""Enough to know a private key by its first line, which comes long before its last."""
_LIVE_CHARS = 4_000


class Calls:
    """Runs the calls of one turn."""

    def __init__(self, parts: Parts, within: str) -> None:
        """within: a prefix for the calls' ids in events, so that a subtask's ids differ from the conversation's."""
        self._within, self._emit, self._outputs = within, parts.emit, parts.outputs
        self._window, self._toolbox, self._approvals = parts.window, parts.toolbox, parts.approvals
        self._redactor, self._nested, self.hooks = parts.redactor, parts.nested, parts.hooks
        self._places = asyncio.Semaphore(MOST_AT_ONCE)
        self._begun: set[str] = set()
        self._so_far: dict[str, tuple[ToolOutcome, float]] = {}
        """The output of interrupted calls so far."""
        self.repeats = Repeats(self._only_reads)
        self._read_to = 0
        self._told_at = 0.0

    async def run(self, calls: Sequence[ToolCall]) -> None:
        """Run all calls of one answer. On return every result is in the log, in the order of the calls."""
        self._begun.clear()
        self._window.session.log.save_begun(())
        self._so_far.clear()
        self._read_on()
        failed_change = ""
        for group in self._groups(calls):
            tasks = [asyncio.create_task(self._outcome(call, failed_change)) for call in group]
            try:
                for call, task in zip(group, tasks, strict=True):
                    outcome, seconds = await task
                    await self._enter(call, outcome, seconds)
                    if outcome.is_error and self._is_change(call):
                        failed_change = call.name
            except asyncio.CancelledError:
                await _end(tasks)
                await self._enter_so_far(group)
                raise
            finally:
                await _end(tasks)

    def tell_written(self, call: CallSoFar) -> None:
        """Say how much of a call the model has written, a few times a second."""
        if (now := time.monotonic()) - self._told_at < LIVE_SECONDS:
            return
        self._told_at = now
        name, about = one_line(clean_text(call.name), _SUMMARY_CHARS), ""
        if known := whole_arguments(call.begin):
            about = self._toolbox.describe(ToolCall("", call.name, json.dumps(known)))
        summary = self._redactor.text(one_line(clean_text(about), _SUMMARY_CHARS))
        self._emit(CallWritten(name, summary or name, call.chars, call.lines))

    async def _enter_so_far(self, calls: Sequence[ToolCall]) -> None:
        """The results of interrupted calls that had something."""
        for call in calls:
            if call.id in self._so_far:
                outcome, seconds = self._so_far.pop(call.id)
                cleaned = await asyncio.to_thread(self._cleaned, outcome)
                await self._enter(call, cleaned, seconds, is_interrupted=True)

    def has_begun(self, call: ToolCall) -> bool:
        return call.id in self._begun

    def _read_on(self) -> None:
        """Let `repeats` read what is new in the log: the answer with the calls, and messages of the person."""
        history = self._window.history
        self._read_to = max(self._read_to, (history.newest_user or 1) - 1)
        for entry in history.entries[self._read_to :]:
            self.repeats.note(entry.message, entry.seq)
        self._read_to = history.head

    def _only_reads(self, call: ToolCall) -> bool:
        return self._toolbox.needs(call) in ("read", None) and call.name not in _MAY_CHANGE

    def _is_change(self, call: ToolCall) -> bool:
        """Whether it writes a file, also one that others run or obey, for which it needs the permission to execute."""
        return self._toolbox.permission(call.name) == "write"

    def _groups(self, calls: Sequence[ToolCall]) -> Iterator[list[ToolCall]]:
        for only_reads, group in groupby(calls, lambda call: self._toolbox.needs(call) in ("read", None)):
            if only_reads:
                yield list(group)
            else:
                yield from ([call] for call in group)

    async def _outcome(self, call: ToolCall, failed_change: str) -> tuple[ToolOutcome, float]:
        """failed_change: the tool before this call that failed to change a file, or ""."""
        async with self._places:
            if (not_allowed := self._refused_at_once(call, failed_change)) is not None:
                self._emit(self._started(call))
                return await asyncio.to_thread(self._cleaned, not_allowed), 0.0
            ruling = await self.hooks.before_tool(call, self._toolbox)
            call = ruling.call
            shown = msgspec.structs.replace(call, id=self._within + call.id)
            self._emit(self._started(call))
            if ruling.decision == "deny":
                said = one_line(f"a hook refused it: {ruling.reason} ({ruling.by})", _SUMMARY_CHARS)
                return refused(BY_HOOK.format(reason=ruling.reason), said), 0.0
            not_allowed = await self._approvals.check(shown, self._toolbox, ruling)
            # The time a person took to answer is not the tool's.
            started = time.monotonic()
            if not_allowed is not None:
                return await asyncio.to_thread(self._cleaned, not_allowed), time.monotonic() - started
            self._window.session.log.save_begun([*self._begun, call.id])
            self._begun.add(call.id)
            # Each call is a task of its own, and so has a context of its own.
            progress_listener.set(lambda text: self._emit(ToolProgress(shown.id, self._redactor.text(text))))
            current_call.set(shown.id)
            interrupt_listener.set(
                lambda outcome: self._so_far.update({call.id: (outcome, time.monotonic() - started)})
            )
            live = LiveOutput(self._redactor.clean, lambda text: self._emit(ToolOutput(shown.id, text)))
            output_listener.set(live.feed)
            try:
                outcome = await self._toolbox.run(call)
            finally:
                live.end()
            outcome = await asyncio.to_thread(self._cleaned, outcome)
            seconds = time.monotonic() - started
            said = await self.hooks.after_tool(call, self._toolbox, outcome, seconds)
            text = "\n".join(filter(None, (outcome.text, ruling.context, said)))
            return replace(outcome, text=text), seconds

    def _refused_at_once(self, call: ToolCall, failed_change: str) -> ToolOutcome | None:
        """Why a call must not run, whatever hooks and the person would say."""
        if failed_change and self._toolbox.needs(call) == "execute" and not self._is_change(call):
            return refused(AFTER_FAILURE.format(name=failed_change), f"not run: {failed_change} failed")
        return self._approvals.refused_by_mode(call, self._toolbox)

    def _started(self, call: ToolCall) -> ToolStarted:
        return ToolStarted(self._within + call.id, call.name, call.arguments, self._toolbox.describe(call))

    def _cleaned(self, outcome: ToolOutcome) -> ToolOutcome:
        """Redact keys, before the log, the output files and the model see them."""
        return replace(
            outcome,
            text=self._redactor.clean(outcome.text),
            summary=self._redactor.text(outcome.summary),
            diff=self._redactor.clean(outcome.diff),
            printed=self._redactor.clean(outcome.printed),
        )

    async def _enter(
        self, call: ToolCall, outcome: ToolOutcome, seconds: float, *, is_interrupted: bool = False
    ) -> None:
        text, is_cut = await asyncio.to_thread(self._admit, outcome)
        summary = f"{outcome.summary} · {CUT}" if is_cut or outcome.printed_lines else outcome.summary
        view_id = self._window.session.views.current_id
        if outcome.is_error:
            nested = ProjectInstructions()
        else:
            nested = await asyncio.to_thread(self._nested.for_call, call, view_id)
        text = "\n".join(filter(None, (text, nested.text)))
        said = (TextPart(clean_text(outcome.typed), source="typed"),) if outcome.typed else ()
        result = Message(
            "tool",
            text,
            tool_call_id=call.id,
            name=call.name,
            is_error=outcome.is_error,
            asks_to_read=outcome.asks_to_read,
        )
        parts = (TextPart(text), *said, *self._repeated(call, result, outcome.text, view_id), *outcome.media)
        self._window.append(msgspec.structs.replace(result, content=parts) if len(parts) > 1 else result)
        shown = outcome.diff, outcome.printed, is_interrupted, outcome.printed_lines
        shown_id, is_error = self._within + call.id, outcome.is_error
        self._emit(ToolFinished(shown_id, call.name, is_error, summary, seconds, *shown))
        for line in nested.notices:
            self._emit(Notice(line))

    def _repeated(self, call: ToolCall, result: Message, whole: str, view_id: int) -> Iterator[TextPart]:
        """The text for the model about a call that repeats. `whole`: its output before any cut."""
        before = self.repeats.failed_before(call)
        self.repeats.note(msgspec.structs.replace(result, content=whole), self._window.history.head + 1, view_id)
        if result.is_error and before is not None and not result.text.startswith(NOT_RUN):
            yield TextPart(before.line(), source="nca")
        if nudge := self.repeats.round.nudge:
            yield TextPart(nudge, source="nca")
        if notice := self.repeats.round.notice:
            self._emit(Notice(notice))

    def _admit(self, outcome: ToolOutcome) -> tuple[str, bool]:
        """The output within its limits, and whether they cut it. The whole is saved in the session's folder and
        named, if there is room."""
        text = self._pointing(outcome.text, outcome.left_out)
        admitted = admit_output(text, **asdict(self._window.state.limits))
        saved = self._saved(text) if admitted.is_cut else None
        text = f"{self._pointing(admitted.text, admitted.left_out)}\n{SAVED}{saved}]" if saved else admitted.text
        return text, admitted.is_cut

    def _saved(self, text: str) -> Path | None:
        """The file with the output of the next message; None if it cannot be written: the call has run all the same."""
        if self._outputs is None:
            return None
        path = self._outputs / f"{self._window.history.head + 1}.txt"
        try:
            self._outputs.mkdir(parents=True, exist_ok=True, mode=0o700)
            path.touch(mode=0o600)
            path.write_text(text, encoding="utf-8")
        except OSError:
            with suppress(OSError):
                path.unlink(missing_ok=True)
            return None
        return path

    def _pointing(self, text: str, left_out: LeftOut | None) -> str:
        """The text of the next message; if part is left out, it says how recall shows it.

        A subtask's recall searches the conversation's log, which does not have the subtask's messages.
        """
        if left_out is None or self._within or RECALL not in self._toolbox.names:
            return text
        return text.replace(left_out.seam(), left_out.seam(self._window.history.head + 1), 1)


async def _end(tasks: Sequence[asyncio.Task[tuple[ToolOutcome, float]]]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


class LiveOutput:
    """The output of a running call, reported a few times a second: its last lines, however much comes.

    Call `feed` with each piece of output, and `end` when the call has ended.
    """

    def __init__(self, redact: Redact, tell: Callable[[str], None]) -> None:
        self._redact, self._tell = redact, tell
        self._kept = self._told = ""
        self._timer: asyncio.TimerHandle | None = None

    def feed(self, text: str) -> None:
        self._kept = (self._kept + text[-_KEPT_CHARS:])[-_KEPT_CHARS:]
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(LIVE_SECONDS, self._look)

    def end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _look(self) -> None:
        self._timer = None
        kept = self._kept
        if len(kept) == _KEPT_CHARS and "\n" in kept:
            # The beginning of its first line is gone, so a key in there would not be known.
            kept = kept.partition("\n")[2]
        lines = self._redact(as_on_terminal(kept)).split("\n")
        text = "\n".join(lines[-LIVE_LINES:])[-_LIVE_CHARS:]
        if text != self._told:
            self._told = text
            self._tell(text)
