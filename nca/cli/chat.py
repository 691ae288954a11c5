"""The chat from the command line: settings, model, session; the prompt stands before most of it is loaded."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from nca.agent.conversation import Conversation
    from nca.cli.choose_session import WantedSession
    from nca.config.loaded import LoadedSettings
    from nca.events import Event
    from nca.models.choose import Choice
    from nca.terminal.input.first_prompt import FirstPrompt


_NEEDED = (
    *("nca.terminal.app", "nca.terminal.render.draw", "nca.terminal.render.session_lines", "nca.sessions.store"),
    *(
        "nca.agent.conversation",
        "nca.models.client",
        "nca.tools.files.edit",
        "nca.tools.shell.tool",
        "nca.tools.web.fetch",
    ),
)
"""What takes the longest to import of what `_opened` needs."""


@dataclass(frozen=True, slots=True)
class ChatWords:
    """What stands behind `nca loop`, by the names of its parameters; None was not given."""

    session: str | None = None
    model: str | None = None
    continue_: bool = False
    resume: bool = False
    compact_threshold: str | None = None
    disable_compaction: bool = False
    context_window: str | None = None
    max_output_tokens: str | None = None
    permission: str | None = None
    max_cost: str | None = None
    trust: bool = False
    profile: str | None = None
    plain: bool = False
    config: Path | None = None


def open_chat(words: ChatWords) -> int:
    """The exit code. Raises NcaError."""
    import asyncio

    from nca.cli.choose_session import WantedSession
    from nca.cli.first_start import with_weights
    from nca.cli.opening import choose_model, load_settings, settings_of
    from nca.errors import UsageError
    from nca.terminal import signals
    from nca.terminal.render.open_output import has_screen

    if words.session is not None and not words.resume:
        raise UsageError(
            f"nca loop takes no text ({words.session!r}).", advice="nca run asks once; --resume ID goes on."
        )
    if words.resume and words.continue_:
        raise UsageError("--continue and --resume exclude each other.")
    given = settings_of(
        profile=words.profile,
        permission=words.permission,
        model=words.model,
        context_window=words.context_window,
        max_output_tokens=words.max_output_tokens,
        compact_threshold=words.compact_threshold,
        disable_compaction=words.disable_compaction,
        max_cost=words.max_cost,
        plain="true" if words.plain else None,
    )
    loaded = load_settings(given, words.config, trust=words.trust, asks=True)
    with signals.raised():  # a download has something to clear away
        choice = with_weights(choose_model(loaded))
    if choice is None:
        return 0
    wanted = WantedSession(
        is_continuing=words.continue_,
        is_resuming=words.resume,
        session=words.session,
        has_screen=has_screen(loaded.settings.terminal),
    )
    return asyncio.run(_chat(loaded, choice, wanted))


async def _chat(loaded: LoadedSettings, choice: Choice, wanted: WantedSession) -> int:
    from nca.cli.opening import store_path
    from nca.terminal.render.open_output import has_screen

    history_file = store_path().with_name("history") if loaded.settings.session.persist else None
    first: FirstPrompt | None = None
    if wanted.is_new and has_screen(loaded.settings.terminal):
        import asyncio

        from nca.terminal.commands import Leave
        from nca.terminal.input.first_prompt import FirstPrompt
        from nca.terminal.signals import give_up

        first = FirstPrompt(loaded.settings.terminal, Path.cwd(), history_file)
        await first.begin()
        try:
            # In a thread, so that what is typed is seen.
            await first.during(asyncio.to_thread(_load))
        except (EOFError, Leave) as left:
            # Nothing is open yet, and nobody is to wait for a thread that cannot be stopped.
            await first.close()
            give_up(left.exit_code if isinstance(left, Leave) else 0)
    else:
        _load()
    try:
        return await _opened(loaded, choice, wanted, first, history_file)
    finally:
        if first is not None:
            await first.close()


def _load() -> None:
    """What a conversation needs."""
    import gc
    from importlib import import_module

    for name in _NEEDED:
        import_module(name)
    # What is left then stays to the end; to look through it again and again would find nothing.
    gc.collect()
    gc.freeze()
    gc.enable()


async def _opened(
    loaded: LoadedSettings, choice: Choice, wanted: WantedSession, first: FirstPrompt | None, history_file: Path | None
) -> int:
    from nca.cli.opening import open_conversation, open_store
    from nca.terminal.app import LoopOptions, run_loop
    from nca.terminal.commands import Leave
    from nca.terminal.render.draw import Draw
    from nca.terminal.render.open_output import open_output
    from nca.terminal.session_switcher import opener

    output = open_output(loaded.settings.terminal)
    if first is not None and isinstance(output, Draw):
        output.begin_prompt(first.above)
    gate = _Gate(output.on_event)
    with open_store(loaded, gate) as store:
        is_first = not store.list(limit=1)
        try:
            earlier, read_only = await wanted.find(store, output)
        except Leave as leave:
            return leave.exit_code
        session = earlier.id if earlier else None
        conversation = await open_conversation(
            loaded, store, gate, choice=choice, session=session, prepares=True, read_only=read_only
        )
        try:
            for line in _first_lines(conversation, choice, is_first=is_first, is_earlier=earlier is not None):
                output.notice(line)
            gate.open()
            options = LoopOptions(
                first_prompt=first,
                history_file=history_file,
                store=store,
                open_session=opener(gate),
                switch_model=_switch(gate),
                save_setting=_save,
                models=lambda: (choice.model, *choice.alternatives),
                after_prompt=_warmer(),
            )
        except BaseException:
            await conversation.close()
            raise
        return await run_loop(conversation, output, options, directory=Path.cwd())


def _first_lines(conversation: Conversation, choice: Choice, *, is_first: bool, is_earlier: bool) -> list[str]:
    """What stands above the first prompt."""
    from dataclasses import replace

    from nca.cli.first_start import banner
    from nca.terminal.render.session_lines import gone_on_lines

    facts = replace(
        conversation.model.facts, window_tokens=conversation.context.stats(with_details=False).window_tokens
    )
    return [*banner(choice, facts, is_first=is_first), *(gone_on_lines(conversation) if is_earlier else ())]


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


def _switch(listener: Callable[[Event], None]) -> Callable[[Conversation, str], Awaitable[str]]:
    async def switch(conversation: Conversation, name: str) -> str:
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


def _warmer() -> Callable[[Conversation], None]:
    """Loads what a conversation's first answer needs while the person types."""
    import asyncio
    import contextlib

    from nca.errors import NcaError
    from nca.models.client import warm as warm_litellm
    from nca.models.model import KeepsPrefix

    tasks: set[asyncio.Task[None]] = set()

    async def warm(conversation: Conversation) -> None:
        if not conversation.session.is_read_only:
            conversation.servers.begin()
        # What is wrong is said when the model is asked.
        with contextlib.suppress(ImportError, NcaError):
            if isinstance(conversation.model, KeepsPrefix):
                await conversation.model.warm(conversation.context.next_request())
            else:
                await warm_litellm()

    def start(conversation: Conversation) -> None:
        task = asyncio.get_running_loop().create_task(warm(conversation))
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    return start
