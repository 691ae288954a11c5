"""Search and read what can be recalled: this session's log, other sessions, the notes and the daily memory files."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Literal

import msgspec

from nca.agent.memory import Memory, day_entries, load_notes
from nca.errors import NcaError, SessionNotFound
from nca.messages import Message
from nca.sessions import Hit, Session, Store
from nca.sessions.ranking import RankingWeights

Scope = Literal["session", "all"]

NOTES = 2
"""At most so many notes among the answers. They come last, because they repeat what was said."""
_ALONE = RankingWeights(around=0.0, turn=0.0)
"""A note says nothing about the notes beside it."""
_MESSAGE = re.compile(r"(?:([0-9a-zA-Z]+):)?#?(\d{1,9})(?:-(\d{1,9}))?")
_MAX_RANGE = 50


class Archive:
    """What the `recall` tool and `Context.search` look into. It only reads."""

    def __init__(self, store: Store, session: Session, memory: Memory) -> None:
        self._store = store
        self._session = session
        self._memory = memory

    def search(self, question: str, *, scope: Scope = "session", limit: int = 10) -> list[Hit]:
        """The best answers, best first, notes last. Any text is a question. Raises StoreError."""
        found = self._session.search(question, limit) if scope == "session" else self._store.search(question, limit)
        noted = self._search_notes(question)[: min(NOTES, limit)]
        return [*found[: limit - len(noted)], *noted]

    def expand(self, wanted: str) -> str:
        """The whole text behind an id: `12`, `1a2b3c4d:12`, `12-15`, `note:3`, `day:2031-05-09:1`.

        "" if there is no such id. Raises StoreError.
        """
        wanted = wanted.strip().strip("[]")
        if wanted.startswith(("note:", "day:")):
            return next((text for id, _, text in self._noted() if id == wanted), "")
        match = _MESSAGE.fullmatch(wanted)
        if match is None:
            return ""
        first, last = int(match[2]), int(match[3] or match[2])
        if match[1] is None or self._session.info.id.startswith(match[1]):
            return _messages(self._session, first, last)
        try:
            with self._store.open_session(match[1], read_only=True) as session:
                return _messages(session, first, last)
        except SessionNotFound:
            return ""

    def _search_notes(self, question: str) -> list[Hit]:
        noted = self._noted()
        if not noted:
            return []
        with Store.open(None) as shelf, shelf.create(directory="", model="") as session:
            session.log.append([Message("user", text) for _, _, text in noted])
            hits = session.search(question, NOTES, weights=_ALONE)
        found = []
        for hit in hits:
            if hit.score > 0:
                id, at, _ = noted[hit.seq - 1]
                role = id.partition(":")[0]
                found.append(
                    msgspec.structs.replace(hit, id=id, session="", role=role, at=at, turn=(hit.seq,) * 2, around=())
                )
        return found

    def _noted(self) -> list[tuple[str, float, str]]:
        """The notes and the entries of the daily files: id, time, text. Empty if they cannot be read."""
        try:
            path = self._memory.file
            notes = [(f"note:{number}", note.at, note.text) for number, note in enumerate(load_notes(path), 1)]
            days = [(f"day:{day.isoformat()}:{number}", _noon(day), text) for day, number, text in day_entries(path)]
        except NcaError:
            # /memory says why they cannot be read; a search goes on without them.
            return []
        return [*notes, *days]


def _messages(session: Session, first: int, last: int) -> str:
    parts = []
    for seq in range(first, min(last, first + _MAX_RANGE - 1) + 1):
        text = session.searchable_text(seq)
        if text and first != last:
            text = f"[{seq}]\n{text}"
        parts.append(text)
    return "\n\n".join(part for part in parts if part)


def _noon(day: object) -> float:
    return datetime.fromisoformat(f"{day}T12:00").timestamp()
