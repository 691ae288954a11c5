"""Pick a stored session with the keys; typing searches.

Keys never wait: titles are filtered as the person types. The full-text search and the preview run on a thread, after a
pause.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from nca.errors import UsageError
from nca.sessions.preview import SessionPreview
from nca.sessions.session import SessionInfo
from nca.terminal.panels.list_panel import Listing, ListPanel
from nca.terminal.panels.session_loader import SessionLoader
from nca.terminal.panels.session_picker_rows import PickerRows

SEARCH_SECONDS = 0.25
"""After this long without a key, the full text is searched."""
_PREVIEW_SECONDS = 0.06
"""After this long on one row, its preview is loaded."""


class SessionPicker(ListPanel[SessionInfo]):
    """Picks once. `directory`: its sessions come first; `current`: the id of the open session."""

    def __init__(self, loader: SessionLoader, directory: str, current: str = "", theme: str = "auto") -> None:
        super().__init__(theme)
        self._loader = loader
        self._directory = directory
        self._current = current
        self._rows = PickerRows((), directory)
        self._previews: dict[str, SessionPreview | None] = {}
        self._searching: asyncio.Task[None] | None = None
        self._looking: asyncio.Task[None] | None = None

    async def run(self) -> SessionInfo | None:
        """The chosen session, or None if the person cancels. Raises UsageError if there are no sessions."""
        infos = await self._loader.sessions()
        if not infos:
            raise UsageError("There is no session to resume.")
        self._rows = PickerRows(infos, self._directory, self._current, await self._loader.whose(infos))
        return await super().run()

    def begin(self) -> None:
        self._look()

    def listing(self, columns: int) -> Listing:
        chosen = self._rows.chosen
        return self._rows.listing(self._previews.get(chosen.id) if chosen else None, columns)

    def move(self, by: int) -> None:
        self._rows.move(by)
        self._look()

    def enter(self) -> None:
        if self._rows.chosen is not None:
            self.end(self._rows.chosen)

    def keys(self) -> Mapping[str, Callable[[], None]]:
        return {"tab": self._turn}

    def typed(self, text: str) -> None:
        self._rows.search(text)
        if self._searching is not None:
            self._searching.cancel()
        self._searching = self.background(self._search(text))
        self._look()

    def _turn(self) -> None:
        self._rows.turn()
        self._look()

    async def _search(self, text: str) -> None:
        await asyncio.sleep(SEARCH_SECONDS)
        if text.strip():
            self._rows.take(text, await self._loader.search(text))
            self._look()
            self.redraw()

    def _look(self) -> None:
        """Load the preview of the chosen session, unless it is loaded or loading."""
        if self._looking is None or self._looking.done():
            self._looking = self.background(self._read_previews())

    async def _read_previews(self) -> None:
        while (chosen := self._rows.chosen) is not None and chosen.id not in self._previews:
            await asyncio.sleep(_PREVIEW_SECONDS)
            if self._rows.chosen is chosen:
                self._previews[chosen.id] = await self._loader.preview(chosen.id)
                self.redraw()
