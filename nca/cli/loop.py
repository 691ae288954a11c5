"""nca loop: the chat."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nca.cli import flags

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from nca.agent.conversation import Conversation
    from nca.cli.earlier import Wish
    from nca.config.loaded import LoadedSettings
    from nca.events import Event
    from nca.models.choose import Choice

_SHOWN_CHARS = 160


def loop(
    session: Annotated[str | None, typer.Argument(metavar="[ID]", help="With --resume: which session.")] = None,
    model: flags.Model = None,
    continue_: Annotated[
        bool, typer.Option("--continue", "-c", help="Go on with the last session of this directory.")
    ] = False,
    resume: Annotated[
        bool, typer.Option("--resume", "-r", help="Go on with an earlier session: --resume ID, or choose one.")
    ] = False,
    compact_threshold: flags.CompactThreshold = None,
    disable_compaction: flags.DisableCompaction = False,
    context_window: flags.ContextWindow = None,
    max_output_tokens: flags.MaxOutputTokens = None,
    permission: flags.Permission = None,
    max_cost: flags.MaxCost = None,
    trust: flags.Trust = False,
    profile: flags.Profile = None,
    config: flags.Config = None,
) -> int:
    """Open the chat."""
    import asyncio

    from nca.cli.earlier import Wish
    from nca.cli.first_start import with_weights
    from nca.cli.opening import choose_model, load_settings
    from nca.errors import UsageError

    if session is not None and not resume:
        raise UsageError(f"nca loop takes no text ({session!r}).", advice="nca run asks once; --resume ID goes on.")
    if resume and continue_:
        raise UsageError("--continue and --resume exclude each other.")
    given = flags.settings_of(
        profile=profile,
        permission=permission,
        model=model,
        context_window=context_window,
        max_output_tokens=max_output_tokens,
        compact_threshold=compact_threshold,
        disable_compaction=disable_compaction,
        max_cost=max_cost,
    )
    loaded = load_settings(given, config, trust=trust, asks=True)
    choice = with_weights(choose_model(loaded))
    if choice is None:
        return 0
    return asyncio.run(_chat(loaded, choice, Wish(is_continuing=continue_, is_resuming=resume, session=session)))


async def _chat(loaded: LoadedSettings, choice: Choice, wish: Wish) -> int:
    from dataclasses import replace

    from nca.cli.first_start import banner
    from nca.cli.opening import open_conversation, open_store, store_path
    from nca.terminal.loop import LoopOptions, run_loop
    from nca.terminal.opening import open_output

    output = open_output(loaded.settings.terminal)
    gate = _Gate(output.on_event)
    with open_store(loaded, gate) as store:
        is_first = not store.list(limit=1)
        earlier, read_only = wish.find(store, output)
        session = earlier.id if earlier else None
        conversation = await open_conversation(
            loaded, store, gate, choice=choice, session=session, prepares=True, read_only=read_only
        )
        try:
            facts = replace(conversation.model.facts, window_tokens=conversation.stats(with_scores=False).window_tokens)
            for line in banner(choice, facts, is_first=is_first):
                output.notice(line)
            if earlier is not None:
                doing = "Reading" if conversation.is_read_only else "Going on with"
                output.notice(f"{doing} “{earlier.name or earlier.title}” ({earlier.messages} messages).")
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
    import os

    from nca.config.paths import project_config_file
    from nca.config.saving import save_value
    from nca.config.trust import TrustStore

    path = project_config_file(Path.cwd())
    with TrustStore(os.environ).saving(Path.cwd()):
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
        if not conversation.is_read_only:
            conversation.servers.begin()
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
