"""The picker: type to search, choose one of the stored sessions, below the text that is on the screen already.

It draws a few lines and takes them away again; nothing of it stays in the scrollback. Keys never wait: names are
searched as they are typed, the full text after a pause and on a thread, and so is the preview.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from prompt_toolkit.application import Application
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys
from prompt_toolkit.layout import BufferControl, Dimension, FormattedTextControl, HSplit, Layout, Window
from prompt_toolkit.layout.processors import BeforeInput
from prompt_toolkit.styles import Style

from nca.errors import UsageError
from nca.sessions.preview import SessionPreview
from nca.sessions.session import SessionInfo
from nca.terminal.input.keyboard import Keyboard
from nca.terminal.input.prompt import terminal_output, write_above
from nca.terminal.panels.session_loader import SessionLoader
from nca.terminal.panels.session_picker_rows import PickerRows

PAUSE_SECONDS = 0.25
"""Without a key for so long, the full text is searched."""
_REST_SECONDS = 0.06
"""On one row for so long, its preview is read."""
_ESCAPE_SECONDS = 0.1
_PAGE = 10
_STYLE = Style.from_dict({"picker.chosen": "reverse", "picker.quiet": "dim", "picker.search": "ansicyan bold"})


class SessionPicker:
    """One choice. `directory`: whose sessions come first; `current`: the id of the session that is open."""

    def __init__(self, shelf: SessionLoader, directory: str, current: str = "") -> None:
        self._shelf = shelf
        self._directory = directory
        self._current = current
        self._rows = PickerRows((), directory)
        self._previews: dict[str, SessionPreview | None] = {}
        self._searching: asyncio.Task[None] | None = None
        self._looking: asyncio.Task[None] | None = None
        self._buffer = Buffer(multiline=False, on_text_changed=lambda _: self._typed())
        self._app: Application[SessionInfo | None] = self._application()

    async def pick(self) -> SessionInfo | None:
        """The chosen session, None where the person leaves. Raises UsageError where there is none to choose."""
        infos = await self._shelf.sessions()
        if not infos:
            raise UsageError("There is no session to go on with.")
        self._rows = PickerRows(infos, self._directory, self._current)
        self._app.ttimeoutlen = _ESCAPE_SECONDS
        # handle_sigint: the chat has a handler of its own.
        return await self._app.run_async(pre_run=self._look, handle_sigint=False)

    def above(self, write: Callable[[], None]) -> None:
        """Write above the picker while it stands on the screen."""
        write_above(self._app, write)

    def _application(self) -> Application[SessionInfo | None]:
        search = BufferControl(self._buffer, input_processors=[BeforeInput("Search: ", "class:picker.search")])
        body = FormattedTextControl(self._lines)
        return Application(
            layout=Layout(
                HSplit(
                    [
                        Window(search, height=1, dont_extend_height=True),
                        Window(body, height=self._height, dont_extend_height=True),
                    ]
                )
            ),
            key_bindings=self._bindings(),
            style=_STYLE,
            include_default_pygments_style=False,
            erase_when_done=True,
            input=_PickerKeyboard(),
            output=terminal_output(),
        )

    def _room(self) -> int:
        """Lines below the search line; the last row of the screen stays free."""
        return max(0, self._app.output.get_size().rows - 2)

    def _height(self) -> Dimension:
        lines = sum(text.count("\n") for _, text, *_ in self._lines()) + 1 if self._room() else 0
        return Dimension(min=0, max=lines, preferred=lines)

    def _lines(self) -> StyleAndTextTuples:
        chosen = self._rows.chosen
        preview = self._previews.get(chosen.id) if chosen else None
        return self._rows.lines(preview, self._app.output.get_size().columns, self._room())

    def _typed(self) -> None:
        self._rows.search(self._buffer.text)
        if self._searching is not None:
            self._searching.cancel()
        self._searching = self._app.create_background_task(self._search(self._buffer.text))
        self._look()

    async def _search(self, text: str) -> None:
        await asyncio.sleep(PAUSE_SECONDS)
        if text.strip():
            self._rows.take(text, await self._shelf.search(text))
            self._look()
            self._app.invalidate()

    def _look(self) -> None:
        """Read the preview of the chosen one, unless it is known or being read."""
        if self._looking is None or self._looking.done():
            self._looking = self._app.create_background_task(self._read_previews())

    async def _read_previews(self) -> None:
        while (chosen := self._rows.chosen) is not None and chosen.id not in self._previews:
            await asyncio.sleep(_REST_SECONDS)
            if self._rows.chosen is chosen:
                self._previews[chosen.id] = await self._shelf.preview(chosen.id)
                self._app.invalidate()

    def _bindings(self) -> KeyBindings:
        bindings = KeyBindings()
        steps = {"up": -1, "c-p": -1, "down": 1, "c-n": 1, "pageup": -_PAGE, "pagedown": _PAGE}
        for key, step in steps.items():

            @bindings.add(key)
            def move(event: KeyPressEvent, step: int = step) -> None:
                self._rows.move(step)
                self._look()

        @bindings.add("tab")
        def turn(event: KeyPressEvent) -> None:
            self._rows.turn()
            self._look()

        @bindings.add("enter", eager=True)
        def choose(event: KeyPressEvent) -> None:
            if self._rows.chosen is not None:
                event.app.exit(result=self._rows.chosen)

        @bindings.add("escape", eager=True)
        @bindings.add("c-c", eager=True)
        @bindings.add("c-g", eager=True)
        @bindings.add("c-d")
        @bindings.add(Keys.SIGINT)
        def leave(event: KeyPressEvent) -> None:
            event.app.exit(result=None)

        @bindings.add(Keys.BracketedPaste)
        def paste(event: KeyPressEvent) -> None:
            event.current_buffer.insert_text(" ".join(event.data.split()))

        return bindings


class _PickerKeyboard(Keyboard):
    """What was typed ahead is meant for the prompt, and never opens a session."""

    def typeahead_hash(self) -> str:
        return f"{super().typeahead_hash()}-picker"
