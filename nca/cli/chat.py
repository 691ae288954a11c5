"""Open the chat from the command line: load the settings, choose model and session, show the prompt early."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nca.agent.conversation import Conversation
    from nca.cli.choose_session import WantedSession
    from nca.cli.loop_arguments import LoopArguments
    from nca.config.loaded import LoadedSettings
    from nca.events import Event, Listener
    from nca.models.choose import Choice
    from nca.terminal.input.first_prompt import FirstPrompt
    from nca.terminal.interrupts import Interrupts


_NEEDED = (
    *("nca.terminal.app", "nca.terminal.render.draw", "nca.terminal.render.sessions", "nca.sessions.store"),
    *(
        "nca.agent.conversation",
        "nca.models.client",
        "nca.tools.files.edit",
        "nca.tools.shell.tool",
        "nca.tools.web.fetch",
    ),
)
"""The slowest imports of `_opened`."""


def open_chat(words: LoopArguments) -> int:
    """The exit code. Raises NcaError."""
    import asyncio

    from nca.cli.choose_session import WantedSession
    from nca.cli.first_run import ensure_weights
    from nca.cli.startup import choose_model, load_settings, settings_of
    from nca.errors import UsageError
    from nca.terminal import signals
    from nca.terminal.open_terminal import has_screen

    if words.session is not None and not words.resume:
        raise UsageError(
            f"nca loop takes no message ({words.session!r}).",
            advice="nca run sends one message; --resume ID resumes a session.",
        )
    if words.resume and words.continue_:
        raise UsageError("--continue and --resume exclude each other.")
    loaded = load_settings(settings_of(**words._asdict()), words.config, trust=words.trust, asks=True, remembers=True)
    with signals.raised():  # a download has something to clear away
        choice = ensure_weights(choose_model(loaded))
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
    from nca.config.paths import data_dir
    from nca.terminal.interrupts import Interrupts
    from nca.terminal.open_terminal import has_screen

    settings, interrupts = loaded.settings, Interrupts()
    if not has_screen(settings.terminal):
        _load()
        return await _opened(loaded, choice, wanted, None, interrupts)

    from nca.terminal.input.first_prompt import FirstPrompt

    history_file = data_dir(os.environ) / "history" if settings.session.persist else None
    first = FirstPrompt(settings.terminal, Path.cwd(), history_file, interrupts)
    try:
        if wanted.is_new and not _is_cut_off(loaded):
            await _load_behind(first)
        else:
            _load()
        return await _opened(loaded, choice, wanted, first, interrupts)
    finally:
        await first.close()


def _is_cut_off(loaded: LoadedSettings) -> bool:
    """Whether a rewind in this folder was cut off, or is made by another nca: it ends before there is a prompt."""
    from nca.cli.startup import store_place
    from nca.config.paths import workspace_file

    session = loaded.settings.session
    return session.persist and workspace_file(store_place(session.store).path, Path.cwd().resolve(), "rewind").exists()


async def _load_behind(first: FirstPrompt) -> None:
    """Load while the person types. A thread does it, so that the terminal shows what is typed."""
    import asyncio

    from nca.terminal.interrupts import Leave
    from nca.terminal.signals import give_up

    await first.begin()
    try:
        await first.during(asyncio.to_thread(_load))
    except (EOFError, Leave) as left:
        # Nothing is open yet, and nobody is to wait for a thread that cannot be stopped.
        await first.close()
        give_up(left.exit_code if isinstance(left, Leave) else 0)


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
    loaded: LoadedSettings, choice: Choice, wanted: WantedSession, first: FirstPrompt | None, interrupts: Interrupts
) -> int:
    from nca.agent.rewinding import FINISHING
    from nca.cli.startup import open_chat_conversation, open_store
    from nca.terminal.app import ChatApp
    from nca.terminal.interrupts import Leave
    from nca.terminal.open_terminal import open_terminal

    output, reader = open_terminal(loaded.settings.terminal, first, interrupts)
    gate = _Gate(output.on_event)
    if _is_cut_off(loaded):
        gate.open()  # how far it is must be seen at once, banner or not
        output.notice(FINISHING)
    with gate, open_store(loaded, gate) as store:
        is_first = not store.list(limit=1)
        try:
            earlier = await wanted.find(store, output)
        except Leave as leave:
            return leave.exit_code
        conversation, choice = await open_chat_conversation(loaded, choice, store, gate, earlier, reader)
        first_line, *lines = _first_lines(
            conversation, choice, is_first=is_first, is_earlier=earlier.session is not None
        )
        output.title(first_line)
        for line in lines:
            output.notice(line)
        if earlier.session is not None:
            output.card(conversation.context.where_we_were())
        gate.open()
        models = (choice.model, *choice.alternatives)
        return await ChatApp(conversation, output, reader, interrupts, models=models).run()


def _first_lines(conversation: Conversation, choice: Choice, *, is_first: bool, is_earlier: bool) -> list[str]:
    """What stands above the first prompt."""
    from msgspec.structs import replace

    from nca.cli.first_run import banner
    from nca.terminal.render.sessions import resumed_lines

    facts = replace(conversation.model.facts, window_tokens=conversation.context.window_tokens)
    loaded = conversation.loaded
    auto, not_kept = loaded.settings.context.auto, ""
    if conversation.store.path is None:
        is_wanted = loaded.settings.session.persist
        not_kept = (
            "it cannot be stored" if is_wanted else f"session.persist is off ({loaded.origin('session.persist')})"
        )
    lines = banner(
        choice,
        facts,
        is_first=is_first,
        reserve_tokens=conversation.context.reserve_tokens,
        auto=auto,
        not_kept=not_kept,
    )
    return [*lines, *(resumed_lines(conversation) if is_earlier else ())]


class _Gate:
    """Holds events back until the banner is on the screen, or there will be none."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._held: list[Event] | None = []

    def __call__(self, event: Event) -> None:
        if self._held is not None:
            self._held.append(event)
        else:
            self._listener(event)

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        self.open()

    def open(self) -> None:
        held, self._held = self._held or [], None
        for event in held:
            self._listener(event)
