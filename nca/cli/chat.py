"""Open the chat from the command line: load the settings, choose model and session, show the prompt early.

The first run without a key: choose a model and download it; and the lines above the first prompt.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from nca.cli.printing import echo
from nca.cli.startup import (
    choose_model,
    load_settings,
    open_chat_conversation,
    open_store,
    rules_of,
    settings_of,
    store_place,
)
from nca.config.paths import data_dir, workspace_file
from nca.errors import ModelUnavailable, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from nca.agent.conversation import Conversation
    from nca.cli.choose_session import WantedSession
    from nca.cli.loop_arguments import LoopArguments
    from nca.config.loaded import LoadedSettings
    from nca.config.tables import PermissionRule
    from nca.events import Event, Listener
    from nca.models.catalog import ModelFacts
    from nca.models.choose import Choice
    from nca.terminal.input.first_prompt import FirstPrompt
    from nca.terminal.interrupts import Interrupts


_NEEDED = (
    *("nca.terminal.app", "nca.terminal.render.draw", "nca.terminal.render.sessions"),
    *("nca.sessions.store", "nca.agent.conversation", "nca.models.client"),
)
"""The slowest imports of `_opened`."""


class _Asked(NamedTuple):
    """The settings and the model of a chat, and what its command line asks for; `is_alone`: nca has written nothing."""

    loaded: LoadedSettings
    choice: Choice
    wanted: WantedSession
    message: str
    rules: Sequence[PermissionRule]
    is_alone: bool


def open_chat(words: LoopArguments) -> int:
    """The exit code. Raises NcaError."""
    import asyncio

    from nca.cli.choose_session import WantedSession
    from nca.terminal import signals
    from nca.terminal.open_terminal import has_screen, has_typed_line

    is_alone = not has_typed_line()
    texts = list(words.texts or ())
    session = texts.pop(0) if words.resume and texts else None
    message = texts.pop(0) if texts else ""
    if texts:
        raise UsageError(f"nca loop takes no {texts[0]!r}.", advice="A message of several words stands in quotes.")
    if words.resume and words.continue_:
        raise UsageError("--continue and --resume exclude each other.")
    if message and not sys.stdin.isatty():
        return _run(words, session, message)
    loaded = load_settings(settings_of(**words._asdict()), words.config, trust=words.trust, asks=True, remembers=True)
    rules = rules_of(words.allow, loaded)
    with signals.raised():  # a download has something to clear away
        chosen = choose_model(loaded)
        choice = ensure_weights(chosen, lambda: choose_model(loaded))
    if choice is None:
        return 0
    wanted = WantedSession(
        is_continuing=words.continue_,
        is_resuming=words.resume,
        session=session,
        has_screen=has_screen(loaded.settings.terminal),
    )
    # A download has written lines.
    return asyncio.run(_chat(_Asked(loaded, choice, wanted, message, rules, is_alone and choice is chosen)))


def _run(words: LoopArguments, session: str | None, message: str) -> int:
    """`nca run`: nobody can type on, and what is piped in beside a message is data, of which no line is a command."""
    from nca.cli.run import run

    given = words._asdict()
    if session is not None:
        from nca.terminal.panels.session_loader import find_titled

        loaded = load_settings(settings_of(**given), words.config, trust=words.trust)
        # `run` opens it again, and says what there is to say.
        with open_store(loaded, lambda event: None, is_new=False) as store:
            session = find_titled(store, session).id
    of_chat = ("texts", "resume", "plain")
    return run(message, session=session, **{name: value for name, value in given.items() if name not in of_chat})


async def _chat(asked: _Asked) -> int:
    from nca.terminal.interrupts import Interrupts
    from nca.terminal.open_terminal import has_screen

    settings, interrupts = asked.loaded.settings, Interrupts()
    if not has_screen(settings.terminal):
        _load()
        return await _opened(asked, None, interrupts)

    from nca.terminal.input.first_prompt import FirstPrompt

    history_file = data_dir(os.environ) / "history" if settings.session.persist else None
    first = FirstPrompt(settings.terminal, Path.cwd(), history_file, interrupts)
    try:
        first.be_quiet(is_alone=asked.is_alone)
        if asked.wanted.is_new and not asked.message and not _is_cut_off(asked.loaded):
            await _load_behind(first)
        else:
            _load()
        return await _opened(asked, first, interrupts)
    finally:
        await first.close()


def _is_cut_off(loaded: LoadedSettings) -> bool:
    """Whether a rewind in this folder was cut off, or is made by another nca: it ends before there is a prompt."""
    session = loaded.settings.session
    return session.persist and os.path.exists(
        workspace_file(store_place(session.store).path, Path.cwd().resolve(), "rewind")
    )


async def _load_behind(first: FirstPrompt) -> None:
    """Load while the person types. A thread does it, so that the terminal shows typed text."""
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
    """The needs of a conversation."""
    import gc
    from importlib import import_module

    for name in _NEEDED:
        import_module(name)
    # Objects left by then stay to the end; searching them again and again would find nothing.
    gc.collect()
    gc.freeze()
    gc.enable()


async def _opened(asked: _Asked, first: FirstPrompt | None, interrupts: Interrupts) -> int:
    from contextlib import ExitStack, nullcontext

    from nca.agent.rewinding import FINISHING
    from nca.terminal.app import ChatApp
    from nca.terminal.interrupts import Leave
    from nca.terminal.open_terminal import open_terminal

    loaded, wanted = asked.loaded, asked.wanted
    output, reader = open_terminal(loaded.settings.terminal, first, interrupts)
    events = _HeldEvents(output.on_event)
    if _is_cut_off(loaded):
        events.release()  # how far it is must be seen at once, banner or not
        output.notice(FINISHING)
    with ExitStack() as ends:
        ends.callback(events.release)
        store = ends.enter_context(open_store(loaded, events, is_new=wanted.is_new))
        is_first = not store.list(limit=1)
        try:
            # Its questions need the terminal in the state in which it was found.
            lent = first.prompt.lent_terminal(is_typed_kept=True) if first and not wanted.is_new else nullcontext()
            with lent:
                earlier = await wanted.find(store, output)
        except Leave as leave:
            return leave.exit_code
        conversation, choice = await open_chat_conversation(loaded, asked.choice, store, events, earlier, reader)
        conversation.approvals.session_rules += asked.rules
        first_line, *lines = _first_lines(conversation, choice, is_first=is_first)
        output.title(first_line)
        for line in lines:
            output.notice(line)
        models = (choice.model, *choice.alternatives)
        app = ChatApp(conversation, output, reader, interrupts, models=models, first=asked.message)
        if earlier.session is not None:
            app.sessions.show(earlier, is_prompt_next=not asked.message)
        events.release()
        return await app.run()


def _first_lines(conversation: Conversation, choice: Choice, *, is_first: bool) -> list[str]:
    """The lines above the first prompt."""
    context = conversation.context
    loaded = conversation.loaded
    auto, not_kept = loaded.settings.context.auto, ""
    if conversation.store.path is None:
        is_wanted = loaded.settings.session.persist
        not_kept = (
            "it cannot be stored" if is_wanted else f"session.persist is off ({loaded.origin('session.persist')})"
        )
    return banner(
        choice,
        context.facts,
        is_first=is_first,
        reserve_tokens=context.reserve_tokens,
        auto=auto,
        not_kept=not_kept,
    )


class _HeldEvents:
    """Events that wait until the banner is on the screen, or there will be none."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._waiting: list[Event] | None = []

    def __call__(self, event: Event) -> None:
        if self._waiting is not None:
            self._waiting.append(event)
        else:
            self._listener(event)

    def release(self) -> None:
        """Pass events on from now on, first those that waited."""
        waiting, self._waiting = self._waiting or [], None
        for event in waiting:
            self._listener(event)


_QUESTION = """\
nca found no API key, no local server and no downloaded model. Which model should it use?
  1  {recommended}
  2  {other}
  3  I have an API key"""
_CHOICE_CELLS = len("  1  ")
_KEY_HELP = """\
To store a key: nca keys add. Or set it in the environment and start nca again:
  export OPENAI_API_KEY=…
or ANTHROPIC_API_KEY, GEMINI_API_KEY, MISTRAL_API_KEY, OPENROUTER_API_KEY, …
A server of your own, which may need no key: nca config set --user model.api_base ADDRESS
To choose a model: nca loop --model NAME. To see what nca found: nca doctor."""


def ensure_weights(choice: Choice, choose_again: Callable[[], Choice]) -> Choice | None:
    """Download the embedded model of `choice` if needed, or ask for a key; None if the person gives none now.

    Asks once on a terminal. Without one it downloads only what the environment (NCA_EMBEDDED) asks for, as `make loop`.
    choose_again: the choice that a new key leads to. Raises ModelUnavailable, NcaError.
    """
    if not choice.is_embedded:
        return choice
    from dataclasses import replace

    from nca.cli.early_questions import can_ask, wrapped
    from nca.cli.keys import ask_for_key
    from nca.cli.models import download_weights
    from nca.models.choose import require_usable
    from nca.models.embedded import weights

    try:
        require_usable(choice, os.environ)
    except ModelUnavailable as missing:
        if not weights.has_runtime():
            return _with_key(missing, choose_again)
        if not (can_ask() or os.environ.get(weights.VARIABLE)):
            raise
    else:
        return choice
    try:
        name = _wanted(choice)
    except EOFError:
        echo()
        return None
    if name is None:
        if not ask_for_key():
            echo(wrapped(_KEY_HELP))
            return None
        return _by_new_key(choose_again())
    echo(f"Downloading {weights.known(name).title} to {weights.models_dir()}.", err=True)
    download_weights(name)
    return replace(choice, model=f"embedded/{name}", why="no key, no endpoint and no local server was found")


def banner(
    choice: Choice, facts: ModelFacts, *, is_first: bool, reserve_tokens: int, auto: str = "on", not_kept: str = ""
) -> list[str]:
    """The lines above the first prompt: five on the first run, one later, and one each for a note and a memory.

    reserve_tokens  what of the window is kept free for the answer; the first run says so, and names the setting
    auto            context.auto
    not_kept        why the session is not kept on disk; "": it is
    """
    reserve = f", {reserve_tokens:,} for the answer (see model.max_output_tokens)" if is_first else ""
    window = f"{facts.window_in_words}{reserve}"
    first = f"nca · {choice.model} · window {window}" + ("" if auto == "on" else f" · auto-compaction {auto}")
    if not is_first:
        origin = f"Why this model: {choice.why}." if choice.is_remembered or choice.is_guess else ""
        if choice.is_remembered:
            origin += " /model default goes back to the configured one."
        return [f"{first} · /help", *filter(None, (facts.note, origin))]
    others = f" Also available: {', '.join(choice.alternatives[:3])}." if choice.alternatives else ""
    later = f"This session is not kept: {not_kept}." if not_kept else "nca loop --continue resumes this session."
    return [
        first,
        f"Why this model: {choice.why}. {facts.note}".rstrip() + others,
        "Another model in this directory: /model NAME. Everywhere: nca config set --user model.name NAME.",
        "Type what you want done. @path attaches a file. /help lists all commands and keys.",
        f"Ctrl-C stops an answer. Ctrl-D or /exit leaves. {later}",
    ]


def _by_new_key(choice: Choice) -> Choice | None:
    """The choice, unless no model is usual for the key's provider."""
    from nca.cli.early_questions import wrapped

    if not choice.is_embedded:
        return choice
    echo(wrapped("Name a model of this provider: nca loop --model PROVIDER/NAME"))
    return None


def _with_key(missing: ModelUnavailable, choose_again: Callable[[], Choice]) -> Choice | None:
    """The choice that a key leads to, which the person types. Raises `missing` if they give none."""
    from nca.cli.early_questions import can_ask, wrapped
    from nca.cli.keys import ask_for_key

    if can_ask():
        echo(wrapped(missing.message))
        if ask_for_key():
            return _by_new_key(choose_again())
    raise missing


def _wanted(choice: Choice) -> str | None:
    """The name of the model to download; None if the person has a key. Raises EOFError if they leave."""
    from nca.cli.early_questions import wrapped
    from nca.humanize import byte_size
    from nca.models.embedded import weights
    from nca.models.embedded.known import KNOWN

    if os.environ.get(weights.VARIABLE) or choice.is_named:
        return choice.model.removeprefix("embedded/")
    small, recommended = list(KNOWN)[-1], weights.recommended()
    other = small if recommended != small else next(iter(KNOWN))
    titles = [f"{one.title}, {byte_size(one.size_bytes)}" for one in map(weights.known, (recommended, other))]
    if lacks := weights.shortage() if recommended == small else "":
        titles[1] += f"; {lacks}"
    # Not even the small one may fit.
    missing = weights.missing_room(recommended)
    titles[0] += f"; {missing}" if missing else " (recommended)"
    usual = "3" if missing else "1"
    question, *choices = _QUESTION.format(recommended=titles[0], other=titles[1]).split("\n")
    echo("\n".join([wrapped(question), *(wrapped(one, hang=_CHOICE_CELLS) for one in choices)]))
    while True:
        answer = input(f"1, 2 or 3 [{usual}]: ").strip() or usual
        if answer in ("1", "2", "3"):
            return {"2": other, "3": None}.get(answer, recommended)
        echo(f"Type 1, 2 or 3, or press Enter for {usual}. Ctrl-C leaves without downloading.")
