"""Run the person's `terminal.status_command`: it reads what Claude Code gives a `statusLine`, and writes its lines."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from nca.agent.hook_process import exited, run_told
from nca.messages import clean_text
from nca.tools.programs import command_environment

if TYPE_CHECKING:
    from nca.agent.conversation import Conversation

LIMIT_SECONDS = 5.0
PAUSE_SECONDS = 0.3
"""Between two runs, as in Claude Code."""
MOST_LINES = 3
"""Lines that are shown: Claude Code shows each that the program writes."""
_KEPT_BYTES = 8_192
_LARGE_TOKENS = 200_000
"""Claude Code's name for more than these is `exceeds_200k_tokens`."""


class StatusCommand:
    """The newest lines of the command, at most MOST_LINES.

    It runs beside everything else, once at a time; nothing waits for it.

    on_line     called when they differ
    on_problem  called with why there is none, once for each command
    """

    def __init__(self, version: str, on_line: Callable[[], None], on_problem: Callable[[str], None]) -> None:
        self.line = ""
        self._version = version
        self._on_line, self._on_problem = on_line, on_problem
        self._began = time.monotonic()
        self._told: set[str] = set()
        self._running: asyncio.Task[None] | None = None
        self._next: Conversation | None = None

    def run(self, conversation: Conversation) -> None:
        """Run it for the state of the conversation now, or after the run in progress."""
        if not conversation.loaded.settings.terminal.status_command:
            self.line = ""
            return
        self._next = conversation
        if self._running is None or self._running.done():
            self._running = asyncio.create_task(self._run())

    def close(self) -> None:
        if self._running is not None:
            self._running.cancel()

    async def _run(self) -> None:
        while (conversation := self._next) is not None:
            self._next = None
            command = conversation.loaded.settings.terminal.status_command
            sent = status_input(conversation, self._version, time.monotonic() - self._began)
            line, problem = await _ask(command, sent, conversation)
            if line != self.line:
                self.line = line
                self._on_line()
            if problem and command not in self._told:
                self._told.add(command)
                self._on_problem(f"terminal.status_command did not work: {problem}.")
            await asyncio.sleep(PAUSE_SECONDS)


async def _ask(command: str, sent: Mapping[str, Any], conversation: Conversation) -> tuple[str, str]:
    """The first lines that it wrote, and why there are none."""
    directory = conversation.directory
    tools = conversation.loaded.settings.tools
    environment = command_environment(os.environ, tools.environment, tools.variables)
    environment["CLAUDE_PROJECT_DIR"] = str(directory)
    output, errors = _Beginning(), _Beginning()
    ended = await run_told(command, (), directory, environment, sent, LIMIT_SECONDS, output, errors)
    if isinstance(ended, str):
        return "", ended
    if ended.exit_code:
        return "", exited(ended.exit_code, errors.text)
    return "\n".join([line for line in output.text.split("\n") if line.strip()][:MOST_LINES]), ""


class _Beginning:
    """Keeps the beginning of an output."""

    def __init__(self) -> None:
        self._kept = b""

    def feed(self, data: bytes) -> None:
        self._kept = (self._kept + data)[:_KEPT_BYTES]

    @property
    def text(self) -> str:
        return clean_text(self._kept.decode("utf-8", "replace")).strip()


def status_input(conversation: Conversation, version: str, seconds: float) -> dict[str, Any]:
    """Claude Code's input of a status line, as far as nca knows it. `seconds`: since the chat was opened.

    The version is nca's. The window is nca's budget, so that a percentage is the one of nca's gauge.
    Source: Claude Code's documentation, "Status line configuration".
    """
    session, settings = conversation.session, conversation.loaded.settings
    stats = conversation.context.stats(with_details=False)
    directory, name = str(conversation.directory), stats.model
    reports = session.usage.reports(1)
    used = reports[-1].usage if reports else None
    share = round(stats.usage_ratio * 100)
    sent: dict[str, Any] = {
        "hook_event_name": "Status",
        "session_id": session.info.id,
        "transcript_path": conversation.transcript(),
        "cwd": directory,
        "model": {"id": name, "display_name": name.rpartition("/")[2]},
        "workspace": {"current_dir": directory, "project_dir": directory, "added_dirs": []},
        "version": version,
        "output_style": {"name": "default"},
        # A price that nobody knows is not a price of 0.
        "cost": {
            **({} if (cost := session.usage.totals().cost) is None else {"total_cost_usd": cost}),
            "total_duration_ms": int(seconds * 1000),
        },
        "context_window": {
            "total_input_tokens": stats.used_tokens,
            "total_output_tokens": used.completion_tokens if used else 0,
            "context_window_size": stats.budget_tokens,
            "used_percentage": share,
            "remaining_percentage": max(0, 100 - share),
            "current_usage": used
            and {
                "input_tokens": max(0, used.prompt_tokens - used.cache_read_tokens - used.cache_write_tokens),
                "output_tokens": used.completion_tokens,
                "cache_creation_input_tokens": used.cache_write_tokens,
                "cache_read_input_tokens": used.cache_read_tokens,
            },
        },
        "exceeds_200k_tokens": stats.used_tokens > _LARGE_TOKENS,
    }
    level = settings.model.reasoning
    optional = {
        "session_name": session.info.name,
        "effort": {"level": level} if level in ("low", "medium", "high") else None,
    }
    return sent | {key: value for key, value in optional.items() if value}
