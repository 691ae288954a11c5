"""Pick a stored session with the keys; typing searches.

Keys never wait: titles are filtered as the person types. The full-text search and the preview run on a thread, after a
pause.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from rich.cells import set_cell_size

from nca.errors import UsageError
from nca.humanize import byte_size, counted, local_time
from nca.sessions.results import SessionHit
from nca.sessions.session import SessionInfo, SessionPreview
from nca.sessions.sql import Whose
from nca.terminal.panels.list_panel import Line, ListPanel, wrapped
from nca.terminal.panels.session_loader import SessionLoader
from nca.terminal.render.sanitize import one_line, to_terminal
from nca.terminal.render.sessions import begun_by, end_of, place, short_id, title
from nca.transcripts.descriptions import model_in_words

_FACT_LINES = 2
_PREVIEW_LINES = _FACT_LINES + 4
_LEAST_OF_ID = 4
"""Fewer characters are not taken for the start of an id, because many ids start with the same one."""
_NARROW = 56
_SHOWN_CHARS = 400
_PLACE_CELLS = 18
_KEYS = (
    "{chosen} · ↑↓ choose · Enter opens · Tab shows {other} · Esc cancels",
    "{chosen} · Enter opens · Tab {other} · Esc cancels",
    "↑↓ · Enter · Tab · Esc · {chosen}",
)


class _Known(NamedTuple):
    """The text that the search filters as the person types, in lower case."""

    info: SessionInfo
    words: str
    directory: str

    def holds(self, word: str, *, is_here: bool) -> bool:
        is_id = len(word) >= _LEAST_OF_ID and self.info.id.startswith(word)
        is_named = is_id or word in self.words
        return is_named or (not is_here and word in self.directory)


class SessionList(ListPanel[SessionInfo, SessionInfo]):
    """The sessions that match, and the chosen one.

    previews  of sessions, by their ids, as far as they are loaded
    """

    def __init__(self, directory: str, current: str = "", theme: str = "auto") -> None:
        """`directory`: its sessions come first; `current`: the id of the open session."""
        super().__init__(theme)
        self._directory = directory
        self._current = current
        self._text = ""
        self._found: dict[str, str] = {}
        """The snippet of each session that the full-text search found, best first."""
        self.previews: dict[str, SessionPreview | None] = {}

    def offer(self, infos: Sequence[SessionInfo], whose: Mapping[str, Whose] | None = None) -> None:
        """infos: the newest first. whose: the person who began each session, if the store is shared."""
        self._whose = whose or {}
        self._known = [
            _Known(info, to_terminal(f"{info.name} {info.title} {info.model}").lower(), info.directory.lower())
            for info in infos
        ]
        self._by_id = {info.id: info for info in infos}
        self._here = {info.id for info in infos if info.directory == self._directory}
        self._is_here = bool(self._here)
        """Whether only sessions of this directory are shown."""
        self._filter()

    @property
    def first(self) -> int:
        """Nobody picks the session that is already open."""
        return 1 if len(self.rows) > 1 and self.rows[0].id == self._current else 0

    def enter(self) -> None:
        if self.chosen is not None:
            self.end(self.chosen)

    def search(self, text: str) -> None:
        """Filter titles now. The results of the full-text search follow with `take`."""
        self._text, self._found = text, {}
        self._filter()
        self.choose_first()

    def take(self, text: str, hits: Sequence[SessionHit]) -> None:
        """Add the results of a full-text search, unless the text has changed."""
        if text == self._text:
            self._found = {hit.session: hit.hits[0].snippet for hit in hits if hit.hits}
            self._filter()

    def turn(self) -> None:
        """Switch between this directory and all."""
        self._is_here = not self._is_here
        self._filter()

    def _filter(self) -> None:
        words = self._text.lower().split()
        shown = [
            one.info
            for one in self._known
            if (not self._is_here or one.info.id in self._here)
            and all(one.holds(word, is_here=self._is_here) for word in words)
        ]
        by_title = {info.id for info in shown}
        inside = [name for name in self._found if name in self._by_id and name not in by_title]
        self.fill([*shown, *(self._by_id[name] for name in inside if not self._is_here or name in self._here)])

    def nothing(self) -> str:
        said = "nothing found" if self._text.strip() else "no sessions"
        return f"{said}{' in this directory; Tab shows all' if self._is_here else ''}"

    def head(self, columns: int) -> Line:
        """The headings above the columns of the rows, after the mark."""
        if columns < _NARROW:
            return [("class:label", "  when  session")]
        where = "" if self._is_here else f"{'directory':<{_PLACE_CELLS}}  "
        return [("class:label", f"  {'when':<16} {'messages':>8}  {where}session")]

    def row(self, info: SessionInfo, columns: int) -> Line:
        marks = "(this) " if info.id == self._current else ""
        about = f"{marks}{'(run) ' if info.kind == 'run' else ''}{title(info)}"
        if columns < _NARROW:
            return [("", f"{local_time(info.updated_at)[5:10]} {about}")]
        where = "" if self._is_here else f"{set_cell_size(end_of(place(info.directory), _PLACE_CELLS), _PLACE_CELLS)}  "
        # How many messages another agent's session has is not known before it is read.
        messages = f"{info.messages:,}" if info.messages else "–"
        return [("", f"{local_time(info.updated_at)} {messages:>8}  {where}{about}")]

    def about(self, columns: int) -> Sequence[Line]:
        if (info := self.chosen) is None:
            return ()
        preview = self.previews.get(info.id)
        if "\0" in info.id:
            # Another agent's: its id is made of its file.
            facts = [f"a session of {one_line(info.model, 60)}, imported when it is opened"]
            # When it began is not known before it is read.
            at = "last used"
        else:
            model = list(filter(None, [one_line(model_in_words(info), 60)]))
            facts = [short_id(info.id), *model, counted(info.messages, "message")]
            at = "began"
        facts += [byte_size(preview.size_bytes)] if preview else []
        by = begun_by(self._whose.get(info.id))
        facts += [f"{at} {local_time(info.created_at)}", *([by] if by else [])]
        facts += ["from nca run"] if info.kind == "run" else []
        found = self._found.get(info.id)
        lines = [
            *(("class:quiet", line) for line in wrapped(" · ".join(facts), columns, _FACT_LINES)),
            ("class:quiet", place(info.directory)),
            ("", f"found: {one_line(found, _SHOWN_CHARS)}" if found else ""),
            ("", f"› {one_line(preview.asked, _SHOWN_CHARS)}" if preview and preview.asked else ""),
            ("", f"• {one_line(preview.answered, _SHOWN_CHARS)}" if preview and preview.answered else ""),
        ]
        filled: list[Line] = [[line] for line in lines if line[1]]
        return filled + [[("", "")]] * (_PREVIEW_LINES - len(filled))

    def key_texts(self) -> Sequence[str]:
        other = "all directories" if self._is_here else "this directory"
        chosen = f"{self.selected + 1:,} of {len(self.rows):,}" if self.rows else "0"
        return tuple(keys.format(chosen=chosen, other=other) for keys in _KEYS)


SEARCH_SECONDS = 0.25
"""After this long without a key, the full text is searched."""
_PREVIEW_SECONDS = 0.06
"""After this long on one row, its preview is loaded."""


class SessionPicker(SessionList):
    """Picks once."""

    def __init__(self, loader: SessionLoader, directory: str, current: str = "", theme: str = "auto") -> None:
        super().__init__(directory, current, theme)
        self._loader = loader
        self._searching: asyncio.Task[None] | None = None

    async def run(self) -> SessionInfo | None:
        """The chosen session, or None if the person cancels. Raises UsageError if there are no sessions."""
        infos = await self._loader.sessions()
        if not infos:
            raise UsageError("There is no session to resume.")
        self.offer(infos, await self._loader.whose(infos))
        return await super().run()

    def begin(self) -> None:
        self.look(self._read_previews)

    def move(self, by: int) -> None:
        super().move(by)
        self.look(self._read_previews)

    def keys(self) -> Mapping[str, Callable[[], None]]:
        return {"tab": self.turn}

    def typed(self, text: str) -> None:
        self.search(text)
        if self._searching is not None:
            self._searching.cancel()
        self._searching = self.background(self._search(text))
        self.look(self._read_previews)

    def turn(self) -> None:
        super().turn()
        self.look(self._read_previews)

    async def _search(self, text: str) -> None:
        await asyncio.sleep(SEARCH_SECONDS)
        if text.strip():
            self.take(text, await self._loader.search(text))
            self.look(self._read_previews)
            self.redraw()

    async def _read_previews(self) -> None:
        """Load the preview of the chosen session, unless it is loaded."""
        while (chosen := self.chosen) is not None and chosen.id not in self.previews:
            await asyncio.sleep(_PREVIEW_SECONDS)
            if self.chosen is chosen:
                self.previews[chosen.id] = await self._loader.preview(chosen.id)
                self.redraw()
