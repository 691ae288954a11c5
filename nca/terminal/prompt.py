"""The prompt of a terminal: history, completion, several lines, a status line below."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

from prompt_toolkit import PromptSession
from prompt_toolkit.application import get_app, run_in_terminal
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import CompleteEvent, Completer
from prompt_toolkit.enums import EditingMode
from prompt_toolkit.filters import Condition, has_selection, is_searching
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.history import History, InMemoryHistory
from prompt_toolkit.input import Input, create_input
from prompt_toolkit.key_binding import KeyBindings, KeyPress, KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.output import ColorDepth, Output, create_output
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.styles import Style

from nca.terminal.commands import Leave
from nca.terminal.completion import may_complete
from nca.terminal.pastes import FoldedPastes
from nca.terminal.toolbar import Status, toolbar

if sys.platform != "win32":
    from nca.terminal.keyboard import Keyboard, TypeAhead

LEAVE_SECONDS = 2.0
"""A second Ctrl-C within this time leaves."""

_MENU_ROWS = 8
_STYLE = Style.from_dict(
    {
        "prompt": "ansicyan bold",
        "continuation": "dim",
        "auto-suggestion": "dim",
        "bottom-toolbar": "noreverse bg:default default",
        "bottom-toolbar.text": "noreverse bg:default default dim",
        "gauge": "nodim ansicyan",
        "gauge.high": "nodim ansiyellow",
        "activity": "dim",
        "hint": "nodim ansiyellow",
        "completion-menu": "bg:default default",
        "completion-menu.completion": "bg:default default",
        "completion-menu.completion.current": "reverse",
        "completion-menu.meta.completion": "bg:default default dim",
        "completion-menu.meta.completion.current": "reverse",
        "scrollbar.background": "bg:default",
        "scrollbar.button": "reverse",
    }
)


class _NoQuestions(Vt100_Output):
    """Asks the terminal for nothing: an answer that comes late (over ssh, say) would be typed into the prompt."""

    def get_rows_below_cursor_position(self) -> int:
        return 1


@dataclass(slots=True)
class PromptOptions:
    """What the prompt asks of the program around it; all are called while it stands on the screen."""

    status: Callable[[], Status | None] = lambda: None
    completer: Completer | None = None
    history: History = field(default_factory=InMemoryHistory)
    keys: Callable[[], str] = lambda: "emacs"
    interrupted: Callable[[], bool] = lambda: True
    """Ctrl-C on an empty line was pressed; True: it is time to leave."""


class Prompt:
    """Reads what a person types; one object for the whole session."""

    def __init__(self, options: PromptOptions, pastes: FoldedPastes) -> None:
        self._options = options
        self._pastes = pastes
        self._hint = ""
        if sys.platform != "win32":
            keyboard = Keyboard()
            self._input: Input = keyboard
            self._type_ahead: TypeAhead | None = TypeAhead(keyboard)
        else:
            self._input = create_input()
            self._type_ahead = None
        self._session: PromptSession[str] = self._create_session()

    async def read(self, default: str = "") -> str:
        """What was typed, pastes unfolded. Raises EOFError for Ctrl-D, Leave(130) for Ctrl-C twice."""
        self._hint = ""
        vi = self._options.keys() == "vi"
        self._session.app.editing_mode = EditingMode.VI if vi else EditingMode.EMACS
        text = await self._session.prompt_async(default=self._pastes.refold(default), handle_sigint=False)
        return self._pastes.unfold(text)

    def when_drawn(self, callback: Callable[[], None]) -> None:
        """Call once, as soon as the prompt is on the screen."""

        def once(_: object) -> None:
            self._session.app.after_render -= once
            callback()

        self._session.app.after_render += once

    def interrupt(self) -> None:
        """A SIGINT from outside counts as the key."""
        if self._session.app.is_running:
            self._session.app.key_processor.send_sigint()

    def quiet_terminal(self) -> AbstractContextManager[None]:
        """For the whole chat: nothing typed is echoed or changed between two prompts."""
        return self._type_ahead.quiet() if self._type_ahead else nullcontext()

    def typing_ahead(self) -> AbstractContextManager[None]:
        """While nca works: keys are kept for the next `read`."""
        return self._type_ahead.collecting() if self._type_ahead else nullcontext()

    def lent_terminal(self) -> AbstractContextManager[None]:
        """While another program, such as an editor, has the terminal."""
        return self._type_ahead.lent() if self._type_ahead else nullcontext()

    def typed_ahead(self) -> str:
        return self._type_ahead.preview() if self._type_ahead else ""

    def take_lines(self, is_message: Callable[[str], bool]) -> list[str]:
        """Messages typed ahead to their Enter; they go into the history as if they had been read."""
        lines = self._type_ahead.take_lines(is_message) if self._type_ahead else []
        for line in lines:
            self._options.history.append_string(line)
        return lines

    async def pause(self) -> None:
        """Wait until nobody is in the middle of a line."""
        if self._type_ahead:
            await self._type_ahead.pause()

    def asking(self, answer: Callable[[KeyPress | None], None]) -> AbstractContextManager[None]:
        """While a question stands, keys go to `answer`."""
        if self._type_ahead:
            return self._type_ahead.asking(answer)
        answer(None)
        return nullcontext()

    def hold_typed_lines(self) -> None:
        """What was typed ahead is not sent by itself: it waits in the prompt."""
        if self._type_ahead:
            self._type_ahead.forget_enters()

    def above(self, write: Callable[[], None]) -> None:
        """Write above the prompt that stands on the screen, or at once where there is none."""
        if self._session.app.is_running:
            self._session.app.create_background_task(_in_terminal(write))
        else:
            write()

    def redraw(self) -> None:
        """The status changed while the prompt stands."""
        if self._session.app.is_running:
            self._session.app.invalidate()

    def _create_session(self) -> PromptSession[str]:
        return PromptSession(
            message=[("class:prompt", "› ")],
            prompt_continuation=[("class:continuation", "  ")],
            multiline=True,
            completer=self._options.completer,
            complete_while_typing=Condition(lambda: may_complete(get_app().current_buffer.document.text_before_cursor)),
            reserve_space_for_menu=_MENU_ROWS,
            auto_suggest=AutoSuggestFromHistory(),
            history=self._options.history,
            bottom_toolbar=self._toolbar,
            key_bindings=self._bindings(),
            enable_open_in_editor=True,
            enable_suspend=True,
            search_ignore_case=True,
            tempfile_suffix=".md",
            style=_STYLE,
            include_default_pygments_style=False,
            input=self._input,
            output=_output(),
        )

    def _toolbar(self) -> StyleAndTextTuples:
        if self._hint:
            return [("class:hint", f" {self._hint}")]
        status = self._options.status()
        width = self._session.app.output.get_size().columns
        return list(toolbar(status, width)) if status is not None else []

    def _bindings(self) -> KeyBindings:
        bindings = KeyBindings()

        @bindings.add("enter", filter=~is_searching)
        def send(event: KeyPressEvent) -> None:
            buffer = event.current_buffer
            if buffer.document.is_cursor_at_the_end and buffer.text.endswith("\\"):
                buffer.delete_before_cursor()
                buffer.newline(copy_margin=False)
            else:
                buffer.validate_and_handle()

        @bindings.add("escape", "enter", filter=~is_searching)
        @bindings.add("c-j", filter=~is_searching)
        def new_line(event: KeyPressEvent) -> None:
            event.current_buffer.newline(copy_margin=False)

        @bindings.add("tab", filter=~is_searching)
        def complete(event: KeyPressEvent) -> None:
            _complete(event.current_buffer)

        @bindings.add(Keys.BracketedPaste)
        def paste(event: KeyPressEvent) -> None:
            event.current_buffer.insert_text(self._pastes.fold(event.data))

        @bindings.add("c-c", filter=~is_searching & ~has_selection)
        @bindings.add(Keys.SIGINT)
        def interrupt(event: KeyPressEvent) -> None:
            self._on_interrupt(event)

        return bindings

    def _on_interrupt(self, event: KeyPressEvent) -> None:
        buffer = event.app.current_buffer
        if buffer.text:
            # Emptied, not lost: Up brings it back.
            buffer.append_to_history()
            buffer.reset()
            return
        if self._options.interrupted():
            event.app.exit(exception=Leave(130))
            return
        self._hint = "Ctrl-C again leaves (Ctrl-D too)"
        event.app.create_background_task(self._forget_hint())

    async def _forget_hint(self) -> None:
        await asyncio.sleep(LEAVE_SECONDS)
        self._hint = ""
        self.redraw()


def _complete(buffer: Buffer) -> None:
    """The only completion at once, else the next one; computed here, for who presses Tab before the menu is open."""
    state = buffer.complete_state
    if state is not None and len(state.completions) > 1:
        buffer.complete_next()
        return
    found = list(buffer.completer.get_completions(buffer.document, CompleteEvent(completion_requested=True)))
    if len(found) == 1:
        buffer.cancel_completion()
        buffer.apply_completion(found[0])
    else:
        buffer.start_completion(select_first=True)


async def _in_terminal(write: Callable[[], None]) -> None:
    await run_in_terminal(write)


def _output() -> Output:
    if sys.platform == "win32":
        return create_output()
    depth = ColorDepth.DEPTH_1_BIT if os.environ.get("NO_COLOR") else None
    output = _NoQuestions.from_pty(sys.stdout, term=os.environ.get("TERM"), default_color_depth=depth)
    output.enable_cpr = False
    return output
