"""Run the person's hooks at the seams of a conversation, and return their decisions.

Events, input and answers are Claude Code's (docs/hooks.md). The seam carries out a hook's decision; a hook
that fails decides nothing, and the person is told once. Without hooks in the settings nothing here does anything.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from nca.agent.compaction_diff import compaction_diff
from nca.agent.fallbacks import Fallbacks
from nca.agent.window import Window
from nca.context.view import Summary
from nca.errors import StoppedByHook, StoreError
from nca.events import ApprovalAsked, ContextCompaction, Event, Listener, Notice
from nca.file_history import Recorder
from nca.messages import ToolCall
from nca.redact import Redactor
from nca.tools.permissions import matching
from nca.tools.programs import command_environment
from nca.tools.shell.command_words import mentioned_commands
from nca.tools.tool import ToolOutcome
from nca.tools.toolbox import Toolbox

if TYPE_CHECKING:
    from nca.agent.hook_process import Answer, Transcript
    from nca.config.hooks import Hook

MOST_STOPS = 8
"""How often in one turn a hook may ask the model to go on (Claude Code's limit)."""
_MODES = {"ask": "default", "accept-edits": "acceptEdits", "plan": "plan", "auto": "bypassPermissions"}
_RANK = ("", "allow", "ask", "deny")


@dataclass(frozen=True, slots=True)
class Ruling:
    """The hooks' decision on a call: `call` is to be run instead of the model's."""

    call: ToolCall
    decision: Literal["", "allow", "ask", "deny"] = ""
    reason: str = ""
    context: str = ""
    by: str = ""


class Hooks:
    """The hooks of one conversation and its subtasks."""

    def __init__(
        self,
        window: Window,
        directory: Path,
        emit: Listener,
        redactor: Redactor,
        models: Fallbacks,
        recorder: Recorder | None = None,
    ) -> None:
        """recorder: of the files that a hook changes after an edit, such as one that formats them.

        models: who answers the hooks that are questions
        """
        self._recorder, self._models = recorder or Recorder(), models
        self._window, self._directory = window, directory
        self._emit, self._redactor = emit, redactor
        self._begins_as = "resume" if window.history.head else "startup"
        self._has_begun = False
        self._stops = 0
        self._ended_by = ""
        self._transcript: Transcript | None = None
        self._told: set[Hook] = set()
        self._running: set[asyncio.Task[Any]] = set()

    @property
    def are_any(self) -> bool:
        return bool(self._window.settings.hooks)

    async def before_prompt(self, text: str) -> str:
        """Begin the session if it has not begun, and ask about the person's message. Returns additions to it.

        Raises StoppedByHook if a hook stops the message.
        """
        if not self.are_any:
            return ""
        self._stops, self._ended_by = 0, ""
        begun = await self.begun()
        answer = await self._ask("UserPromptSubmit", (), prompt=text)
        if answer is not None and answer.decision == "deny":
            raise StoppedByHook(f"A hook stopped the message: {answer.reason}", advice="Nothing was sent.")
        return "\n".join(filter(None, (begun, answer.context if answer else "")))

    async def begun(self) -> str:
        """The text that hooks add when the session begins, or continues after a compaction; "" if already said."""
        source, self._begins_as = self._begins_as, ""
        if not source or not self.are_any:
            return ""
        self._has_begun = True
        answer = await self._ask("SessionStart", (source,), source=source, model=self._window.facts.name)
        return answer.context if answer else ""

    async def before_tool(self, call: ToolCall, toolbox: Toolbox) -> Ruling:
        """The decision on a call. A change of its input counts only if the call may run."""
        if not self.are_any:
            return Ruling(call)
        answer = await self._ask_about("PreToolUse", call, toolbox.arguments(call))
        if answer is None:
            return Ruling(call)
        context = answer.context
        if answer.updated is not None and answer.decision != "deny":
            from nca.agent.hook_process import own_arguments

            arguments = own_arguments(call.name, answer.updated, toolbox.arguments(call), self._directory)
            written = json.dumps(arguments, ensure_ascii=False)
            call = msgspec.structs.replace(call, arguments=written)
            context = "\n".join(filter(None, (f"[a hook changed the arguments to {written}]", context)))
        return Ruling(call, answer.decision, answer.reason, context, answer.by)

    async def after_tool(self, call: ToolCall, toolbox: Toolbox, outcome: ToolOutcome, seconds: float) -> str:
        """The text that hooks add to the result of a call for the model."""
        if not self.are_any:
            return ""
        from nca.agent.hook_process import claude_input, claude_response

        arguments = toolbox.arguments(call)
        extra: dict[str, Any] = {"duration_ms": int(seconds * 1000)}
        if outcome.is_error:
            event, extra["error"] = "PostToolUseFailure", outcome.text
        else:
            shown = claude_input(call.name, arguments, self._directory)
            event, extra["tool_response"] = "PostToolUse", claude_response(call.name, outcome, shown)
        recorder = self._recorder if toolbox.permission(call.name) == "write" else None
        answer = await self._ask_about(event, call, arguments, recorder, **extra)
        if answer is None:
            return ""
        said = f"[a hook says: {answer.reason}]" if answer.decision == "deny" else ""
        return "\n".join(filter(None, (said, answer.context)))

    async def before_compaction(self, trigger: str, focus: str) -> str:
        """Why a hook forbids a compaction; "" if none does."""
        if not self._of("PreCompact", None):
            return ""
        by, measured = "manual" if trigger == "manual" else "auto", self._window.measure()
        sizes: dict[str, Any] = {"used_tokens": measured.used_tokens, "budget_tokens": measured.budget.budget_tokens}
        answer = await self._ask("PreCompact", (by,), trigger=by, custom_instructions=focus, **sizes)
        return answer.reason if answer is not None and answer.decision == "deny" else ""

    async def before_stop(self, answered: str) -> str:
        """The text for the model instead of ending its turn; "" if the turn may end."""
        if not self.are_any or self._stops >= MOST_STOPS:
            return ""
        active = self._stops > 0
        answer = await self._ask("Stop", (), stop_hook_active=active, last_assistant_message=answered)
        said = self._said_to_go_on(answer, "the model", self._stops)
        self._stops += bool(said)
        return said

    async def before_task_stop(self, task: str, agent: str, answered: str, stops: int) -> str:
        """The text for the assistant of a subtask instead of ending; "" if it may end. stops: so far."""
        if stops >= MOST_STOPS or not self._of("SubagentStop", None):
            return ""
        fields: dict[str, Any] = {"agent_id": task, "agent_type": agent, "stop_hook_active": stops > 0}
        answer = await self._ask("SubagentStop", (agent,), last_assistant_message=answered, **fields)
        return self._said_to_go_on(answer, f"the agent {agent}" if agent else "a task", stops)

    def _said_to_go_on(self, answer: Answer | None, who: str, stops: int) -> str:
        """What the hook has to say to whom it has go on, after a notice about it; "" if it does not. stops: so far."""
        if answer is None or answer.decision != "deny" or answer.ends_turn:
            return ""
        last = f" for the last time ({MOST_STOPS} of {MOST_STOPS})" if stops + 1 == MOST_STOPS else ""
        self._emit(Notice(f"A hook has {who} go on{last}: {answer.reason} ({answer.by})"))
        return answer.reason

    def check(self) -> None:
        """Raises StoppedByHook if a hook has ended the turn."""
        if self._ended_by:
            raise StoppedByHook(f"A hook ended the turn: {self._ended_by}")

    def hear(self, event: Event) -> None:
        """Tell hooks, without waiting for them, what has happened."""
        match event:
            case ApprovalAsked(name=name):
                from nca.agent.hook_process import claude_name

                message, kind = f"nca needs your permission to use {claude_name(name)}", "permission_prompt"
                self._start(self._ask("Notification", (kind,), message=message, title="nca", notification_type=kind))
            case ContextCompaction(phase="completed", trigger=trigger):
                self._begins_as = "compact" if self._has_begun else self._begins_as
                if self._of("PostCompact", None):
                    self._start(self._after_compaction("manual" if trigger == "manual" else "auto"))
            case _:
                pass

    async def close(self) -> None:
        """End the session: wait for what still runs, within the time of its last hooks."""
        if self._has_begun:
            self._has_begun = False
            await self._ask("SessionEnd", ("other",), reason="other")
        tasks = tuple(self._running)
        if tasks:
            await asyncio.wait(tasks, timeout=1.0)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._transcript is not None:
            self._transcript.close()

    def transcript(self) -> str:
        """The path of the transcript, with every message so far."""
        if self._transcript is None:
            from nca.agent.hook_process import Transcript

            session, store = self._window.session, self._window.store
            self._transcript = Transcript(session.info.id, store.outputs_folder(session.info.id))
        return self._transcript.brought_up(self._window.history)

    async def _after_compaction(self, by: str) -> None:
        try:
            facts = self._last_compaction()
        except StoreError as error:
            self._emit(Notice(f"The hooks for PostCompact did not run: {error.message}"))
        else:
            await self._ask("PostCompact", (by,), trigger=by, **facts)

    def _last_compaction(self) -> dict[str, Any]:
        """The compaction's facts by kind, tokens by kind, and hidden messages."""
        record = self._window.session.views.compactions()[-1]
        diff = compaction_diff(self._window, record)
        facts = {kind: {"kept": kept, "gone": stated - kept} for kind, (kept, stated) in record.kept.items()}
        tokens = {kind: {"before": diff.before[kind], "after": diff.after.get(kind, 0)} for kind in diff.before}
        return {
            "compact_summary": "\n\n".join(item.text for item in diff.made if isinstance(item, Summary)),
            "tokens_before": record.tokens_before,
            "tokens_after": record.tokens_after,
            "stages": list(record.stages),
            "facts": facts,
            "tokens": tokens,
            "hidden_messages": [list(span) for span in diff.hidden],
        }

    async def _ask_about(
        self, event: str, call: ToolCall, arguments: dict[str, Any], recorder: Recorder | None = None, **extra: Any
    ) -> Answer | None:
        from nca.agent.hook_process import claude_input, claude_name

        name, shown = claude_name(call.name), claude_input(call.name, arguments, self._directory)
        about = [str(shown[key]) for key in ("file_path", "path", "url") if key in shown]
        commands = mentioned_commands(str(shown.get("command", ""))) if call.name == "shell" else ()

        def meets(hook: Hook) -> bool:
            rules = hook.rules(self._directory)
            return not rules or matching(rules, call.name, about, self._directory, commands) is not None

        hooks = self._of(event, (name, call.name), meets)
        return await self._run_all(
            event, hooks, tool_name=name, tool_input=shown, tool_use_id=call.id, recorder=recorder, **extra
        )

    async def _ask(self, event: str, names: Sequence[str], **fields: Any) -> Answer | None:
        """Run the event's hooks together; None if there are none. `names`: what a matcher may match."""
        return await self._run_all(event, self._of(event, names), **fields)

    async def _run_all(
        self, event: str, hooks: Sequence[Hook], *, recorder: Recorder | None = None, **fields: Any
    ) -> Answer | None:
        if not hooks:
            return None
        settings = self._window.settings
        sent = {
            "session_id": self._window.session.info.id,
            "transcript_path": self.transcript(),
            "cwd": str(self._directory),
            "permission_mode": _MODES[settings.agent.permission],
            "hook_event_name": event,
            **fields,
        }
        place = {"CLAUDE_PROJECT_DIR": str(self._directory)}
        environment = command_environment(os.environ, settings.tools.environment, settings.tools.variables) | place
        for hook in hooks:
            if hook.background:
                self._start(self._run(hook, sent, environment))
        waited = [hook for hook in hooks if not hook.background]
        async with (recorder or Recorder()).command("hook"):
            answers = await asyncio.gather(*(self._run(hook, sent, environment) for hook in waited))
        return _joined(answers, waited) if answers else None

    async def _run(self, hook: Hook, sent: Mapping[str, Any], environment: Mapping[str, str]) -> Answer:
        """The hook's answer. The person has been shown what it says to them."""
        if hook.prompt:
            from nca.agent.hook_process import ask_hook

            shown = self._redactor.value(sent)
            answer = await ask_hook(hook, shown, self._models, self._window, self._emit)
        else:
            from nca.agent.hook_process import run_hook

            answer = await run_hook(hook, sent, self._directory, environment, self._redactor.text)
        if answer.problem and hook not in self._told:
            self._told.add(hook)
            self._emit(Notice(f"The hook {hook} did not work: {answer.problem}."))
        if answer.message:
            self._emit(Notice(answer.message))
        if answer.ends_turn and not hook.background:
            self._ended_by = answer.reason
        return answer

    def _of(
        self, event: str, names: Sequence[str] | None, meets: Callable[[Hook], bool] = lambda _: True
    ) -> list[Hook]:
        """The hooks to run; a command listed under several matchers runs only once.

        meets: whether the event is what a hook's condition asks for
        """
        found = (hook for hook in self._window.settings.hooks if hook.event == event)
        chosen = (hook for hook in found if (not names or hook.matches(names)) and meets(hook))
        return list({(hook.command, hook.args, hook.prompt): hook for hook in chosen}.values())

    def _start(self, run: Awaitable[Any]) -> None:
        task = asyncio.ensure_future(run)
        self._running.add(task)
        task.add_done_callback(self._running.discard)


def _joined(answers: Sequence[Answer], hooks: Sequence[Hook]) -> Answer:
    """The strictest decision with its reasons; everything that is added; the last change of the input."""
    from nca.agent.hook_process import Answer

    strictest = max((answer.decision for answer in answers), key=_RANK.index)
    updated = [answer.updated for answer in answers if answer.updated is not None]
    return Answer(
        strictest,
        "\n".join(answer.reason for answer in answers if answer.decision == strictest and answer.reason),
        "\n".join(answer.context for answer in answers if answer.context),
        updated[-1] if updated else None,
        ends_turn=any(answer.ends_turn for answer in answers),
        by="; ".join(str(hook) for hook, answer in zip(hooks, answers, strict=True) if answer.decision == strictest),
    )
