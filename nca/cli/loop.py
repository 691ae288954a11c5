"""nca loop: the chat."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from nca.agent.conversation import Conversation
    from nca.config.loaded import LoadedSettings
    from nca.events import Event
    from nca.models.choose import Choice
    from nca.sessions.session import SessionInfo
    from nca.sessions.store import Store
    from nca.terminal.output import Output

_SHOWN_CHARS = 160
_PICKED = 15
"""Sessions that `--resume` without an id offers."""


def loop(
    session: Annotated[str | None, typer.Argument(metavar="[ID]", help="With --resume: which session.")] = None,
    model: Annotated[str | None, typer.Option("--model", "-m", help="The model, as litellm names it.")] = None,
    continue_: Annotated[
        bool, typer.Option("--continue", "-c", help="Go on with the last session of this directory.")
    ] = False,
    resume: Annotated[
        bool, typer.Option("--resume", "-r", help="Go on with an earlier session: --resume ID, or choose one.")
    ] = False,
    compact_threshold: Annotated[
        str | None, typer.Option(help="The usage at which compaction happens: 0.8, 80 or 80%.")
    ] = None,
    disable_compaction: Annotated[bool, typer.Option("--disable-compaction", help="Never compact.")] = False,
    context_window: Annotated[str | None, typer.Option(help="The context window in tokens.")] = None,
    max_output_tokens: Annotated[str | None, typer.Option(help="Room kept for the answer, in tokens.")] = None,
    permission: Annotated[str | None, typer.Option(help="ask, accept-edits, plan or auto.")] = None,
    profile: Annotated[str | None, typer.Option(help="A set of numbers and stages by name, such as nexora.")] = None,
    config: Annotated[Path | None, typer.Option(help="A settings file in place of the project's.")] = None,
) -> int:
    """Open the chat."""
    import asyncio

    from nca.cli.first_start import with_weights
    from nca.cli.opening import choose_model, load_settings
    from nca.errors import UsageError

    if session is not None and not resume:
        raise UsageError(f"nca loop takes no text ({session!r}).", advice="nca run asks once; --resume ID goes on.")
    if resume and continue_:
        raise UsageError("--continue and --resume exclude each other.")
    loaded = load_settings(
        {
            "profile": profile,
            "agent.permission": permission,
            "model.name": model,
            "model.context_window": context_window,
            "model.max_output_tokens": max_output_tokens,
            "context.compact_threshold": compact_threshold,
            "context.auto": "off" if disable_compaction else None,
        },
        config,
    )
    choice = with_weights(choose_model(loaded))
    if choice is None:
        return 0
    return asyncio.run(_chat(loaded, choice, _Wish(is_continuing=continue_, is_resuming=resume, session=session)))


class _Wish:
    """Which session a person wants: a new one, the last one here, or one that is named or chosen."""

    def __init__(self, *, is_continuing: bool, is_resuming: bool, session: str | None) -> None:
        self._is_continuing = is_continuing
        self._is_resuming = is_resuming
        self._session = session

    def find(self, store: Store, output: Output) -> SessionInfo | None:
        """The session to go on with, None for a new one. Raises SessionNotFound, UsageError."""
        if self._is_continuing:
            found = store.latest(str(Path.cwd()))
            if found is None:
                output.notice("There is no earlier session in this directory; this is a new one.")
            return found
        if self._is_resuming:
            return store.find(self._session) if self._session else _picked(store)
        return None


async def _chat(loaded: LoadedSettings, choice: Choice, wish: _Wish) -> int:
    from dataclasses import replace

    from nca.cli.first_start import banner
    from nca.cli.opening import open_conversation, open_store, store_path
    from nca.terminal.loop import LoopOptions, run_loop
    from nca.terminal.opening import open_output

    output = open_output(loaded.settings.terminal)
    gate = _Gate(output.on_event)
    with open_store(loaded, gate) as store:
        is_first = not store.list(limit=1)
        earlier = wish.find(store, output)
        conversation = await open_conversation(
            loaded, store, gate, choice=choice, session=earlier.id if earlier else None, prepares=True
        )
        try:
            facts = replace(conversation.model.facts, window_tokens=conversation.stats().window_tokens)
            for line in banner(choice, facts, is_first=is_first):
                output.notice(line)
            if earlier is not None:
                output.notice(f"Going on with “{earlier.name or earlier.title}” ({earlier.messages} messages).")
                for line in _last_exchange(conversation):
                    output.notice(line)
            gate.open()
            options = LoopOptions(
                history_file=store_path().with_name("history") if store.path else None,
                store=store,
                switch_model=_switch(conversation, gate),
                save_setting=_save,
                models=lambda: (choice.model, *choice.alternatives),
                after_prompt=_warmer(conversation),
            )
            return await run_loop(conversation, output, options, directory=Path.cwd())
        finally:
            await conversation.close()


def _last_exchange(conversation: Conversation) -> list[str]:
    """Where one was: the last thing the person said and the beginning of the last answer."""
    from nca.terminal.sanitize import one_line

    lines = []
    for role, mark in (("user", "›"), ("assistant", "•")):
        said = (entry.message for entry in reversed(conversation.entries) if entry.message.role == role)
        text = next((message.text for message in said if message.text.strip()), "")
        if text:
            lines.append(f"{mark} {one_line(text, _SHOWN_CHARS)}")
    return lines


class _Gate:
    """Holds events back until the banner is on the screen."""

    def __init__(self, listener: Callable[[Event], None]) -> None:
        self._listener = listener
        self._held: list[Event] | None = []

    def __call__(self, event: Event) -> None:
        if self._held is not None:
            self._held.append(event)
        else:
            self._listener(event)

    def open(self) -> None:
        held, self._held = self._held or [], None
        for event in held:
            self._listener(event)


def _switch(conversation: Conversation, listener: Callable[[Event], None]) -> Callable[[str], Awaitable[str]]:
    async def switch(name: str) -> str:
        import os

        from nca.models.choose import named, open_model

        settings = conversation.loaded.for_model(name).settings.model
        choice = named(name, settings, os.environ)
        await conversation.use_model(await open_model(settings, choice, listener))
        note = conversation.model.facts.note
        return f"{choice.model} answers from now on. {note}".rstrip()

    return switch


def _save(name: str, value: Any) -> Path:
    from nca.config.paths import project_config_file
    from nca.config.saving import save_value

    path = project_config_file(Path.cwd())
    save_value(path, name, value)
    return path


def _warmer(conversation: Conversation) -> Callable[[], None]:
    """Loads what the first answer needs while the person types."""
    import asyncio
    import contextlib

    from nca.errors import NcaError
    from nca.models.client import warm as warm_litellm
    from nca.models.model import KeepsPrefix

    tasks: set[asyncio.Task[None]] = set()

    async def warm() -> None:
        # What is wrong is said when the model is asked.
        with contextlib.suppress(ImportError, NcaError):
            if isinstance(conversation.model, KeepsPrefix):
                await conversation.model.warm(conversation.next_request())
            else:
                await warm_litellm()

    def start() -> None:
        task = asyncio.get_running_loop().create_task(warm())
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    return start


def _picked(store: Store) -> SessionInfo | None:
    """The session that a person picks from a list; None for a new one."""
    import sys
    import time

    from nca.errors import UsageError
    from nca.terminal.sanitize import one_line

    infos = store.list(limit=_PICKED)
    if not infos:
        raise UsageError("There is no session to go on with.")
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("--resume needs an id here.", advice="`nca sessions list` shows them.")
    for number, info in enumerate(infos, 1):
        when = time.strftime("%Y-%m-%d %H:%M", time.localtime(info.updated_at))
        print(f"{number:3}  {when}  {info.messages:4} messages  {one_line(info.name or info.title, 60)}")
    while True:
        try:
            answer = input(f"1 to {len(infos)}, Enter for a new one: ").strip()
        except EOFError:
            return None
        if not answer:
            return None
        if answer.isdigit() and 1 <= int(answer) <= len(infos):
            return infos[int(answer) - 1]
