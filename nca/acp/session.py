"""One session of a client: its conversation, its MCP servers, and the prompt that is being answered."""

from __future__ import annotations

import asyncio
import contextlib
import re
import tempfile
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from acp import helpers, schema

from nca.acp.commands import EditorCommands, command_for, config_options, offered
from nca.acp.content import Block, Prompt, prompt_of
from nca.acp.stdio import request_error
from nca.acp.tool_calls import Outlet
from nca.acp.updates import Updates
from nca.config.servers import McpServer
from nca.errors import NcaError, UsageError
from nca.terminal.commands.command import find_command, named, unknown
from nca.terminal.render.sanitize import one_line
from nca.words import Words, part_of, stripped, text_of, words

if TYPE_CHECKING:
    from nca.agent.conversation import Conversation
    from nca.events import Event
    from nca.tools.tool import EditorFiles

_STOPS: dict[str, schema.StopReason] = {
    "answered": "end_turn",
    "stuck": "end_turn",
    "max_steps": "max_turn_requests",
    "length": "max_tokens",
    # Not "refusal": that says that the person's message is not part of the conversation.
    "content_filter": "end_turn",
}


class EditorSession:
    """Answers one prompt at a time. `open_files`: the editor's."""

    def __init__(
        self,
        conversation: Conversation,
        outlet: Outlet,
        updates: Updates,
        commands: EditorCommands,
        open_files: EditorFiles | None,
    ) -> None:
        self.conversation = conversation
        self._outlet, self._updates, self._commands = outlet, updates, commands
        self._open_files = open_files
        self._task: asyncio.Task[schema.StopReason] | None = None
        self._background: set[asyncio.Task[None]] = set()
        self._known_mode = conversation.approvals.mode
        self._known_options: list[schema.SessionConfigOptionSelect] = []
        self._known_commands: list[schema.AvailableCommand] = []

    async def prompt(self, blocks: Sequence[Block]) -> schema.StopReason:
        """Answer a prompt. Raises NcaError, RequestError; then nothing was sent, or the turn failed."""
        if self._task is not None:
            raise UsageError("This session still answers the prompt before.", advice="Cancel that first.")
        self._task = asyncio.create_task(self._answer(blocks))
        try:
            return await self._task
        except asyncio.CancelledError:
            return "cancelled"
        finally:
            self._task = None

    def tell(self, event: Event) -> None:
        """Tell the client of something that does not come from the conversation. May be called in any thread."""
        self._updates.on_event(event)

    def cancel(self) -> None:
        """Interrupt what the prompt is doing, if anything."""
        if self._task is not None:
            self._task.cancel()

    async def set_option(self, option: str, value: str | bool) -> list[schema.SessionConfigOptionSelect]:
        """Set an option as its slash command would. Returns all options. Raises NcaError."""
        name, argument = command_for(option, value)
        command = find_command(name)
        assert command is not None, name
        await self._commands.run(command, argument)
        self._tell_changes()
        return self._known_options

    def options(self) -> list[schema.SessionConfigOptionSelect]:
        """The options, which the client is told now."""
        self._known_options = config_options(self.conversation, self._commands.models)
        return self._known_options

    async def offer_commands(self) -> None:
        """Tell the client what can be called, if that has changed."""
        if (now := await self._commands.available()) != self._known_commands:
            self._known_commands = now
            self._outlet.send(helpers.update_available_commands(now))

    def warm(self) -> None:
        """Load what the first answer needs while the person types, and tell the client of the servers' prompts."""
        self.conversation.servers.follow(lambda: self._beside(self.offer_commands()))
        self._beside(self._warm())

    def _beside(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def close(self, *, opens_again: bool = False) -> None:
        """End the prompt and close the conversation. One without messages stays only if it opens again."""
        task = self._task
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
        for other in tuple(self._background):
            other.cancel()
        await asyncio.gather(*self._background, return_exceptions=True)
        await self.conversation.close(keeps_empty=opens_again)

    async def _answer(self, blocks: Sequence[Block]) -> schema.StopReason:
        with tempfile.TemporaryDirectory(prefix="nca-prompt-") as folder:
            directory = self.conversation.directory
            prompt = await asyncio.to_thread(prompt_of, blocks, directory, Path(folder), self._open_files)
            try:
                if prompt.is_command:
                    return await self._command(prompt)
                return await self._send(prompt.said, prompt)
            finally:
                self._tell_changes()

    async def _command(self, prompt: Prompt) -> schema.StopReason:
        """Run a slash command, or send the skill, custom command or server's prompt of that name."""
        name, argument = named(text_of(prompt.said).rstrip())
        if name.startswith("mcp:"):
            server, _, wanted = name.removeprefix("mcp:").partition(":")
            text = await self.conversation.servers.prompt(server, wanted, argument)
            return await self._send(words(text, "tool"), prompt)
        called = None
        try:
            command = offered(name)
            if command is not None:
                self._outlet.say(await self._commands.run(command, argument))
            elif (called := (await self._commands.prompts()).get(name)) is None:
                raise unknown(name, otherwise="The editor lists the commands.")
        except UsageError as error:
            # The typed text is not valid: the person reads so in the chat; to the client nothing went wrong.
            self._outlet.say(str(error))
        if called is None:
            self._updates.usage()
            return "end_turn"
        made = await asyncio.to_thread(
            called.call, stripped(part_of(prompt.said, len(f"/{name}"))), self.conversation.directory
        )
        prompt.attachments += [path for path in made.files if path not in prompt.attachments]
        prompt.beside[:0] = made.beside
        return await self._send(made.message, prompt)

    async def _send(self, said: Words, prompt: Prompt) -> schema.StopReason:
        """Run a turn, and say why it ended. Raises RequestError for one that failed."""
        finished = await self.conversation.run_turn(said, prompt.attachments, prompt.beside)
        if finished.reason == "interrupted":
            return "cancelled"
        if finished.error is not None:
            raise request_error(finished.error)
        return _STOPS[finished.reason]

    def _tell_changes(self) -> None:
        """A command may have changed the mode, the model or the reasoning."""
        mode = self.conversation.approvals.mode
        if mode != self._known_mode:
            self._known_mode = mode
            self._outlet.send(helpers.update_current_mode(mode))
        with contextlib.suppress(NcaError):  # only the list of recent models needs the store
            before = self._known_options
            if before and self.options() != before:
                self._outlet.send(
                    schema.ConfigOptionUpdate(
                        session_update="config_option_update", config_options=list(self._known_options)
                    )
                )

    async def _warm(self) -> None:
        from nca.models.client import ProviderModel

        self.conversation.servers.begin()
        # The error is reported when the model is asked.
        with contextlib.suppress(ImportError, NcaError):
            if isinstance(self.conversation.model, ProviderModel):
                await self.conversation.model.load()


_NAME_CHARS = 32


def servers_of(
    given: Sequence[schema.HttpMcpServer | schema.SseMcpServer | schema.AcpMcpServer | schema.McpServerStdio],
) -> tuple[McpServer, ...]:
    """The servers as settings. Raises UsageError for one that nca cannot use."""
    found: dict[str, McpServer] = {}
    for one in given:
        name = _name(one.name, found)
        try:
            if isinstance(one, schema.McpServerStdio):
                env = tuple((pair.name, pair.value) for pair in one.env)
                found[name] = McpServer(name=name, command=one.command, args=tuple(one.args), env=env)
            elif isinstance(one, schema.HttpMcpServer):
                headers = tuple((pair.name, pair.value) for pair in one.headers)
                found[name] = McpServer(name=name, url=one.url, headers=headers)
            else:
                raise ValueError("valid are a program and an HTTP address")
        except ValueError as error:
            raise UsageError(f"MCP server {one_line(one.name, 40)!r}: {error}.") from error
    return tuple(found.values())


def _name(wanted: str, taken: dict[str, McpServer]) -> str:
    """A name that can be part of a tool's name."""
    plain = re.sub(r"[^A-Za-z0-9_-]+", "-", wanted).strip("-_")[:_NAME_CHARS] or "server"
    name, count = plain, 1
    while name in taken:
        count += 1
        name = f"{plain[: _NAME_CHARS - len(str(count)) - 1]}-{count}"
    return name
