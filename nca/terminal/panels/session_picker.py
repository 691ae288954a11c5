"""Pick a stored session with the keys; typing searches. Drawn below the text on the screen, and erased at the end.

Keys never wait: titles are filtered as the person types. The full-text search and the preview run on a thread, after a
pause.
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

SEARCH_SECONDS = 0.25
"""After this long without a key, the full text is searched."""
_PREVIEW_SECONDS = 0.06
"""After this long on one row, its preview is loaded."""
_ESCAPE_SECONDS = 0.1
_PAGE = 10
_STYLE = Style.from_dict({"picker.chosen": "reverse", "picker.quiet": "dim", "picker.search": "ansicyan bold"})


class SessionPicker:
    """Picks once. `directory`: its sessions come first; `current`: the id of the open session."""

    def __init__(self, loader: SessionLoader, directory: str, current: str = "") -> None:
        self._loader = loader
        self._directory = directory
        self._current = current
        self._rows = PickerRows((), directory)
        self._previews: dict[str, SessionPreview | None] = {}
        self._searching: asyncio.Task[None] | None = None
        self._looking: asyncio.Task[None] | None = None
        self._buffer = Buffer(multiline=False, on_text_changed=lambda _: self._typed())
        self._app: Application[SessionInfo | None] = self._application()

    async def pick(self) -> SessionInfo | None:
        """The chosen session, or None if the person cancels. Raises UsageError if there are no sessions."""
        infos = await self._loader.sessions()
        if not infos:
            raise UsageError("There is no session to resume.")
        self._rows = PickerRows(infos, self._directory, self._current)
        self._app.ttimeoutlen = _ESCAPE_SECONDS
        # The chat handles SIGINT itself.
        return await self._app.run_async(pre_run=self._look, handle_sigint=False)

    def above(self, write: Callable[[], None]) -> None:
        """Run a write so that it appears above the picker."""
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
        """Rows below the search line. The last row of the screen stays free."""
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
        await asyncio.sleep(SEARCH_SECONDS)
        if text.strip():
            self._rows.take(text, await self._loader.search(text))
            self._look()
            self._app.invalidate()

    def _look(self) -> None:
        """Load the preview of the chosen session, unless it is loaded or loading."""
        if self._looking is None or self._looking.done():
            self._looking = self._app.create_background_task(self._read_previews())

    async def _read_previews(self) -> None:
        while (chosen := self._rows.chosen) is not None and chosen.id not in self._previews:
            await asyncio.sleep(_PREVIEW_SECONDS)
            if self._rows.chosen is chosen:
                self._previews[chosen.id] = await self._loader.preview(chosen.id)
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
    """Keys typed ahead are meant for the prompt; they must not open a session."""

    def typeahead_hash(self) -> str:
        return f"{super().typeahead_hash()}-picker"
