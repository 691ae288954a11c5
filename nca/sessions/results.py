"""Search results: messages with a snippet, and sessions with their best messages."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import msgspec

from nca.context.view import Range, is_in
from nca.errors import StoreDamaged, StoreError
from nca.sessions import search
from nca.sessions.access import SessionAccess
from nca.sessions.encoding import decode_message
from nca.sessions.passages import CJK_RUN, cuts, plain_text
from nca.sessions.paths import outputs_of
from nca.sessions.query import Only, WeightedTerm
from nca.sessions.search import Ranked, RankingWeights, rank_sessions
from nca.sessions.sql import SessionDatabase
from nca.sessions.views import SessionViews

_WORD = re.compile(r"[^\W_]+")
_ENDING = r"[^\W_]{0,8}"
_FEWEST = 2
_GAP_CHARS = 24
"""How far a cut may move to fall between two words."""
_LEAD_RATIO = 0.25
"""Share of a snippet before the first matching word."""
_SENTENCE_END = re.compile(r"[.!?…]+[\"'”’)\]]*\s+|[。！？]+|\n+")


class SnippetFinder:
    """Finds the words of a question in a text, in any form."""

    def __init__(self, weights: Mapping[str, float], stem: Callable[[str], str]) -> None:
        """`weights`: by word in lower case. `stem`: stems a word as the index does."""
        self._weights: dict[str, float] = {}
        for word, weight in weights.items():
            beginning = _common(word, stem(word))
            key = beginning if len(beginning) >= min(_FEWEST, len(word)) else word
            self._weights[key] = max(weight, self._weights.get(key, 0.0))
        longest = sorted(self._weights, key=len, reverse=True)
        wide = [re.escape(key) for key in longest if CJK_RUN.fullmatch(key)]
        narrow = [re.escape(key) for key in longest if not CJK_RUN.fullmatch(key)]
        choices = [f"({'|'.join(wide)})"] if wide else []
        choices += [rf"(?<![^\W_])({'|'.join(narrow)}){_ENDING}"] if narrow else []
        self._pattern = re.compile("|".join(choices), re.IGNORECASE) if choices else None

    def snippet(self, text: str, chars: int) -> str:
        """The sentences of `text` that hold most, at most `chars` characters; its beginning if no word matches."""
        hits = self._hits(text)
        best, first = 0.0, 0
        for number, (start, _) in enumerate(hits):
            held: dict[str, float] = {}
            for at, key in hits[number:]:
                if at - start > chars * (1 - _LEAD_RATIO) - _GAP_CHARS:
                    break
                held[key] = self._weights.get(key, 0.0)
            if sum(held.values()) > best:
                best, first = sum(held.values()), start
        return cut(text, _sentence_start(text, first, int(chars * _LEAD_RATIO)) if hits else 0, chars)

    def _hits(self, text: str) -> list[tuple[int, str]]:
        if self._pattern is None:
            return []
        return [(match.start(), (match[match.lastindex or 0]).lower()) for match in self._pattern.finditer(text)]


def _common(one: str, other: str) -> str:
    """The common prefix."""
    length = next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    return one[:length]


def _sentence_start(text: str, place: int, most: int) -> int:
    """The beginning of the sentence around `place`, or `most` characters before it in a longer one."""
    ends = [match.end() for match in _SENTENCE_END.finditer(text, max(0, place - most), place)]
    return ends[-1] if ends else place - most


def cut(text: str, first: int, chars: int) -> str:
    """At most `chars` characters from `first` on, as one line, with an ellipsis for omitted text.

    It ends with a sentence if one ends in its second half, else between two words.
    """
    earliest = max(0, len(text) - chars)
    if first > earliest:
        # There is room for sentences before it.
        ends = [match.end() for match in _SENTENCE_END.finditer(text, earliest, first)]
        first = 0 if not earliest else min(ends, default=first)
    first = max(0, first)
    if first > 0 and not text[first - 1].isspace() and not _SENTENCE_END.match(text[first - 1]):
        gap = text.find(" ", first, first + _GAP_CHARS)
        first = gap + 1 if gap >= 0 else first
    last = min(len(text), first + chars)
    if last < len(text):
        ends = [match.end() for match in _SENTENCE_END.finditer(text, first + chars // 2, last + 1)]
        gap = ends[-1] if ends else text.rfind(" ", last - _GAP_CHARS, last)
        last = min(last, gap) if gap > first else last
    line = " ".join(text[first:last].split())
    return ("…" if text[:first].strip() else "") + line + ("…" if text[last:].strip() else "")


SNIPPET_CHARS = 200
BESIDE_CHARS = 80
SESSION_CANDIDATES = 600
_OF_ONE_SESSION = 3
_SPARE = 5
_LOOKED_THROUGH_CHARS = 10_000
"""Characters of a neighbouring message that are searched for a snippet."""


_ROWS = """
SELECT session, seq, at, role, body, (SELECT id FROM sessions WHERE number = session) AS id,
    (SELECT coalesce(max(seq), 1) FROM messages AS turn
     WHERE turn.session = messages.session AND turn.seq <= messages.seq AND turn.role = 'user') AS first,
    (SELECT coalesce(min(seq) - 1, (SELECT max(seq) FROM messages AS log WHERE log.session = messages.session))
     FROM messages AS turn
     WHERE turn.session = messages.session AND turn.seq > messages.seq AND turn.role = 'user') AS last
FROM messages WHERE (session, seq) IN (VALUES """
"""The places are added: `(session, seq), …)`."""


class Neighbour(msgspec.Struct, frozen=True):
    """The message right before or after a hit."""

    seq: int
    role: str
    snippet: str


class Hit(msgspec.Struct, frozen=True):
    """A message or a note that a search found.

    id         as `recall` and the commands take it: `1a2b3c4d:12`
    session    the session's id; empty for a note
    seq        the message's number in the log, or the note's among the notes
    role       the message's role; `note` or `day` for a note
    at         seconds since the epoch
    score      comparable within one search
    snippet    the sentences that answer, on one line
    turn       first and last seq of the message's turn
    around     the messages right before and after it that are not hits themselves
    is_beside  it holds nothing of the question: it stands beside a message that does
    """

    id: str
    session: str
    seq: int
    role: str
    at: float
    score: float
    snippet: str
    turn: tuple[int, int]
    around: tuple[Neighbour, ...] = ()
    is_beside: bool = False


class SessionHit(msgspec.Struct, frozen=True):
    """A session that a search found, by its id, with its best messages."""

    session: str
    score: float
    hits: tuple[Hit, ...]


class _Row(NamedTuple):
    session: int
    seq: int
    at: float
    role: str
    body: str
    id: str
    first: int
    last: int


def find(
    database: SessionDatabase,
    question: str,
    session: int | None,
    limit: int,
    *,
    weights: RankingWeights | None = None,
    chars: int = SNIPPET_CHARS,
    aside: Sequence[Range] = (),
    with_aside: bool = True,
    only: Only | None = None,
    beside: Sequence[SessionDatabase] = (),
    clean: Callable[[str], str] = str,
) -> list[Hit]:
    """The best messages for a question, in one session (its row) or in all. Any text is a valid question.

    chars  of a snippet, at most
    aside  messages of the one session that are not looked at
    with_aside  also what is aside in its session: rewound, or asked beside the conversation
    only, beside  as in `search.ranked`
    clean  changes what snippets are cut from, such as to redact keys
    """
    ranked, weighed = search.ranked(database, question, session, weights=weights, only=only, beside=beside)
    if aside:
        ranked = [one for one in ranked if not is_in(one.seq, aside)]
    hidden = _asides(database) if not with_aside else lambda _: ()
    return _hits(database, ranked, _finder(database, weighed), limit, chars, clean, hidden)


def find_sessions(database: SessionDatabase, question: str, limit: int) -> list[SessionHit]:
    """The best sessions for a question, which a person may still be typing, each with its best messages."""
    ranked, weighed = search.ranked(database, question, None, candidates=SESSION_CANDIDATES, is_typed=True)
    finder = _finder(database, weighed)
    found = []
    for score, messages in rank_sessions(ranked)[:limit]:
        hits = tuple(_hits(database, messages, finder, _OF_ONE_SESSION))
        if hits:
            found.append(SessionHit(hits[0].session, round(score, 3), hits))
    return found


def searchable_text(database: SessionDatabase, session: int, seq: int) -> str:
    """The whole searchable text of a message; empty if there is no such message."""
    body = database.value("SELECT body FROM messages WHERE session = ? AND seq = ?", (session, seq))
    return "" if body is None else _text(body, seq, outputs_beside(database))


def outputs_beside(database: SessionDatabase) -> Path | None:
    return outputs_of(database.path) if database.path else None


def _asides(database: SessionDatabase) -> Callable[[int], Sequence[Range]]:
    """Gives what is aside in a session (its row)."""

    @cache
    def aside(session: int) -> Sequence[Range]:
        with suppress(StoreError):
            return SessionViews(SessionAccess(database, session)).current().aside
        return ()  # it was deleted meanwhile, with its messages

    return aside


def _finder(database: SessionDatabase, weighed: Sequence[WeightedTerm]) -> SnippetFinder:
    weights: dict[str, float] = {}
    for one in weighed:
        for phrase in one.term.phrases:
            for word in re.findall(r"[^\W_]+", phrase.text.lower()):
                weights[word] = max(weights.get(word, 0.0), one.idf * phrase.weight)
    return SnippetFinder(weights, database.index.stemmer())


def _hits(
    database: SessionDatabase,
    ranked: Sequence[Ranked],
    finder: SnippetFinder,
    limit: int,
    chars: int = SNIPPET_CHARS,
    clean: Callable[[str], str] = str,
    aside: Callable[[int], Sequence[Range]] = lambda _: (),
) -> list[Hit]:
    # A few spare ones: some are only next to a match and have no text to show.
    ranked = list(islice((one for one in ranked if not is_in(one.seq, aside(one.session))), limit + _SPARE))
    places = {(one.session, one.seq + step) for one in ranked for step in (-1, 0, 1)}
    near = {(session, seq) for session, seq in places if not is_in(seq, aside(session))}
    values = ", ".join(f"({session}, {seq})" for session, seq in sorted(near))
    rows = [_Row(*row) for row in database.rows(f"{_ROWS}{values})")] if near else []
    known = {(row.session, row.seq): row for row in rows}
    texts = {place: text for place, row in known.items() if (text := _shown(row, outputs_beside(database)))}
    chosen = [one for one in ranked if (one.session, one.seq) in texts][:limit]
    beside = {place: known[place] for place in texts.keys() - {(one.session, one.seq) for one in chosen}}
    hits = []
    for one in chosen:
        row = known[one.session, one.seq]
        snippet = finder.snippet(clean(_passage(texts[one.session, one.seq], one.place)), chars)
        around = []
        for other in (beside.get((one.session, one.seq + step)) for step in (-1, 1)):
            if other:
                text = clean(texts[other.session, other.seq][:_LOOKED_THROUGH_CHARS])
                around.append(Neighbour(other.seq, other.role, finder.snippet(text, BESIDE_CHARS)))
        score, turn = round(one.score, 3), (row.first, row.last)
        id = f"{row.id}:{row.seq}"
        hits.append(Hit(id, row.id, row.seq, row.role, row.at, score, snippet, turn, tuple(around), not any(one.terms)))
    return hits


def _shown(row: _Row, outputs: Path | None) -> str:
    """The message's text; empty if it is damaged, which reading the message itself reports."""
    with suppress(StoreDamaged):
        return _text(row.body, row.seq, outputs)
    return ""


def _passage(text: str, place: int) -> str:
    places = cuts(text)
    first, last = places[place] if place < len(places) else (0, len(text))
    return text[first:last]


def _text(body: str, seq: int, outputs: Path | None) -> str:
    return plain_text(decode_message(body, f"message {seq}"), outputs)
