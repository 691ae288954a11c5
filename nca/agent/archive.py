"""Search and read what can be recalled: this session's log, other sessions, the notes and the daily memory files.

Or list what a log holds of one kind: messages, answers, errors, files, one file's uses, one turn.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, time
from itertools import takewhile
from posixpath import normpath
from typing import TYPE_CHECKING, Literal, Protocol, get_args

import msgspec

from nca.context.budget import Budget
from nca.context.file_reads import file_use, main_argument
from nca.context.history import History
from nca.context.record.excerpt import excerpt
from nca.context.record.said import said_in
from nca.context.view import RECALL, Range, Summary, Verbatim, how_to_recall, is_in, merge_ranges, without_ranges
from nca.errors import NcaError, SessionNotFound, UsageError
from nca.humanize import check_choice, check_kind, one_line
from nca.messages import Entry, Message, ToolCall
from nca.sessions import Hit, Session, Store
from nca.sessions.query import stop_words
from nca.sessions.results import SNIPPET_CHARS, cut
from nca.sessions.search import RankingWeights
from nca.tools.recall import Recalled

if TYPE_CHECKING:
    from nca.agent.memory import Memory


Scope = Literal["session", "all"]

NOTES = 2
"""At most so many notes among the answers. They come last, because they repeat what was said."""
_ALONE = RankingWeights(around=0.0, turn=0.0)
"""A note says nothing about the notes beside it."""
_MESSAGE = re.compile(r"(?:([0-9a-zA-Z]+):)?#?(\d{1,9})(?:-(\d{1,9}))?")
_MAX_RANGE = 50
ANSWER_RATIO = 0.2
"""Share of the budget that the answers of one step take together, by an upper bound: nearer to 0.12 by a count."""
_SPARE = 20
"""Results asked for beyond the limit, because some are in view."""
NOON = time(12)
ASIDE = "no part of the conversation: the user went back to before it, or asked it beside"
_WORD = re.compile(r"[^\W_]+")
_FEWEST_CHARS_IN_RECORD = 12


class Searched(Protocol):
    """The archive's sources: the log and the current view, their store, and the window's budget."""

    history: History
    budget: Budget

    @property
    def store(self) -> Store: ...
    @property
    def session(self) -> Session: ...


class Archive:
    """The log for the `recall` tool and `Context.search`. It only reads.

    memory    None: there are no notes
    sees_all  whether it reads the other sessions of the store too
    """

    def __init__(self, state: Searched, memory: Memory | None = None, *, sees_all: bool = True) -> None:
        self._state = state
        self._memory = memory
        self.sees_all = sees_all

    def room_tokens(self) -> int:
        """The size of one answer: the recalls of a step share one part of the budget."""
        history, asking = self._state.history, self._asking_seq()
        calls = history.message(asking).tool_calls if asking <= history.head else ()
        together = int(self._state.budget.budget_tokens * ANSWER_RATIO)
        return together // max(1, sum(call.name == RECALL for call in calls))

    def recall(self, question: str, scope: str, limit: int, chars: int) -> Recalled:
        """Answers that are not in view. Raises ValueError for an unknown scope, StoreError."""
        if scope == "session" or (scope == "all" and self.sees_all):
            where: Scope = "all" if scope == "all" else "session"
            found = self.search(question, scope=where, limit=limit + _SPARE, chars=chars, with_aside=False)
        else:
            # The newest messages count most; a turn is told from its beginning.
            rows = self._listed(scope)[:: 1 if turn_in(scope) else -1]
            found = self._search_in(rows, question, limit + _SPARE, chars) if scope in SAID_SCOPES else []
            if not found:
                found = [self._hit(seq, text, chars) for seq, text in _matching(rows, question)[: limit + _SPARE]]
        return self._without_view(found, limit, is_list=scope == "files")

    def search(
        self,
        question: str,
        *,
        scope: Scope = "session",
        limit: int = 10,
        chars: int = SNIPPET_CHARS,
        with_aside: bool = True,
    ) -> list[Hit]:
        """The best answers, best first, notes last. Any text is a question.

        Raises StoreError, and UsageError where other sessions are not to be seen.

        with_aside  also messages that are no part of their conversation
        """
        check_kind(question, str, "question", "text")
        check_choice(scope, get_args(Scope), "scope")
        check_kind(limit, int, "limit", "a number of results")
        if scope == "session":
            aside = () if with_aside else self._state.history.view.aside
            found = self._state.session.search(question, limit, chars=chars, aside=aside)
        elif not self.sees_all:
            raise UsageError(
                "scope: this conversation sees its own session only; valid: session.",
                advice="Open it with sees_all_sessions=True, or search the store (nca.Store.search).",
            )
        else:
            found = self._state.store.search(question, limit, chars=chars, with_aside=with_aside)
        noted = self._search_notes(question)[: min(NOTES, limit)]
        return [*found[: limit - len(noted)], *noted]

    def _search_in(self, rows: Sequence[Listed], question: str, limit: int, chars: int) -> list[Hit]:
        """The best answers among these messages, each from where it answers."""
        spans = merge_ranges((seq, seq) for seq, _ in rows)
        others = without_ranges([(1, self._state.history.head)], spans)
        return self._state.session.search(question, limit, chars=chars, aside=others) if question.strip() else []

    def expand(self, wanted: str) -> str:
        """The whole text of an id: `12`, `1a2b3c4d:12`, `12-15`, `note:3`, `day:2031-05-09:1`.

        "" if there is no such id. Raises StoreError.
        """
        check_kind(wanted, str, "wanted", "an id, as text")
        wanted = wanted.strip().strip("[]")
        if wanted.startswith(("note:", "day:")):
            return next((text for id, _, text in self._noted() if id == wanted), "")
        match = _MESSAGE.fullmatch(wanted)
        if match is None:
            return ""
        first, last = sorted((int(match[2]), int(match[3] or match[2])))
        if match[1] is None or self._state.session.info.id.startswith(match[1]):
            return _messages(self._state.session, first, last, self._state.history.view.aside)
        if not self.sees_all:
            return ""
        try:
            with self._state.store.open_session(match[1], read_only=True) as session:
                return _messages(session, first, last, session.views.current().aside)
        except SessionNotFound:
            return ""

    def _listed(self, scope: str) -> list[tuple[int, str]]:
        entries, aside = self._state.history.entries, self._state.history.view.aside
        if seq := turn_in(scope):
            first, last = self._turn_of(seq)
            return lines_of_turn(entry for entry in entries[first - 1 : last] if not is_in(entry.seq, aside))
        scopes = SCOPES if self.sees_all else [one for one in SCOPES if one != "all"]
        return listed((entry for entry in entries if not is_in(entry.seq, aside)), scope, scopes)

    def _hit(self, seq: int, text: str, chars: int) -> Hit:
        entry = self._state.history.entries[seq - 1]
        snippet, session = cut(text, 0, chars), self._state.session.info.id
        return Hit(f"{session}:{seq}", session, seq, entry.message.role, entry.at, 0.0, snippet, self._turn_of(seq))

    def _turn_of(self, seq: int) -> tuple[int, int]:
        """First and last message of the turn that a message is in."""
        log = self._state.session.log
        return max(1, log.said(seq)[1]), min(log.next_said(seq) or log.head + 1, log.head + 1) - 1

    def _without_view(self, found: Iterable[Hit], limit: int, *, is_list: bool) -> Recalled:
        """The results that the model does not see: not in view, not word for word in a record, not its question."""
        own, asking = self._state.session.info.id, self._asking_seq()
        request = self._state.history.newest_user
        hits: list[Hit] = []
        in_view: list[int] = []
        for hit in found:
            if hit.session != own:
                hits.append(hit)
            elif hit.seq == request or hit.seq >= asking:
                continue
            elif not is_list and (self._is_in_view(hit.seq) or self._is_in_record(hit.snippet)):
                in_view.append(hit.seq)
            else:
                aside = self._state.history.view.aside
                near = (one for one in hit.around if one.seq < asking and not is_in(one.seq, aside))
                around = tuple(one for one in near if not self._is_in_view(one.seq))
                hits.append(msgspec.structs.replace(hit, id=str(hit.seq), around=around))
        return Recalled(hits[:limit], list(dict.fromkeys(in_view)))

    def _is_in_view(self, seq: int) -> bool:
        view = self._state.history.view
        return seq >= view.tail or any(
            isinstance(item, Verbatim) and item.first <= seq <= item.last for item in view.items
        )

    def _is_in_record(self, snippet: str) -> bool:
        said = snippet.strip("…")
        return len(said) >= _FEWEST_CHARS_IN_RECORD and any(
            isinstance(item, Summary) and said in " ".join(item.text.split()) for item in self._state.history.view.items
        )

    def _asking_seq(self) -> int:
        """The message with the running calls of recall; beyond the log if a person asks."""
        history = self._state.history
        seq = history.head
        while seq and history.message(seq).role == "tool":
            seq -= 1
        is_asking = seq and any(call.name == RECALL for call in history.message(seq).tool_calls)
        return seq if is_asking else history.head + 1

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
        if self._memory is None:
            return []
        # Files of notes are read with what only Linux and macOS have; the library has no notes, and runs on Windows.
        from nca.agent.memory import day_entries, load_notes

        try:
            path = self._memory.file
            notes = [(f"note:{number}", note.at, note.text) for number, note in enumerate(load_notes(path), 1)]
            entries = ((day, datetime.combine(day, NOON).timestamp(), n, text) for day, n, text in day_entries(path))
            days = [(f"day:{day}:{number}", at, text) for day, at, number, text in entries]
        except NcaError:
            # /memory says why they cannot be read; a search continues without them.
            return []
        return [*notes, *days]


def _matching(found: Sequence[tuple[int, str]], question: str) -> list[tuple[int, str]]:
    """The listed items, those with most words of the question first."""
    words = [word.lower() for word in _WORD.findall(question)]
    meant = set(words) - stop_words(words)

    def held(row: tuple[int, str]) -> int:
        said = row[1].lower()
        return sum(word in said for word in meant)

    return sorted(found, key=held, reverse=True)


def _messages(session: Session, first: int, last: int, aside: Sequence[Range]) -> str:
    """The messages first … last; calls that are asked for alone come with their results.

    Messages that are aside are shown if they alone are asked for, and named as such.
    """
    if first == last:
        last = _last_result(session, first)
    is_aside = not without_ranges([(first, min(last, session.log.head))], aside)
    parts = [f"[{ASIDE}]"] if is_aside and first <= session.log.head else []
    for entry in session.log.entries(first, min(last, first + _MAX_RANGE - 1)):
        if not is_aside and is_in(entry.seq, aside):
            continue
        # Recall's own answers are not searchable, but they can be read again.
        text = session.searchable_text(entry.seq) or entry.message.told
        if text and first != last:
            text = f"[{entry.seq}]\n{text}"
        parts.append(text)
    following, last = first + _MAX_RANGE, min(last, session.log.head)
    if following <= last:
        parts.append(f"[more: {how_to_recall([(following, last)])}]")
    return "\n\n".join(part for part in parts if part)


def _last_result(session: Session, seq: int) -> int:
    """The last result of the calls in a message; the message itself where it has none."""
    calls = next((entry.message.tool_calls for entry in session.log.entries(seq, seq)), ())
    behind = session.log.entries(seq + 1, seq + len(calls))
    return max((entry.seq for entry in takewhile(lambda one: one.message.role == "tool", behind)), default=seq)


SAID_SCOPES = ("messages", "answers")
SCOPES = ("session", "all", *SAID_SCOPES, "errors", "files")
MAX_CALL_CHARS = 80
ERROR_TOKENS = 60
_TURN = re.compile(r"turn\s*#?(\d{1,9})")

Listed = tuple[int, str]
"""A message's number and what is listed of it."""


def listed(entries: Iterable[Entry], scope: str, scopes: Sequence[str] = SCOPES) -> list[Listed]:
    """The log's items of this scope, oldest first. Raises ValueError, which names `scopes`, for an unknown scope."""
    match scope:
        case "messages":
            said = ((entry.seq, said_in(entry.message)) for entry in entries)
            told = ((seq, "\n".join((one.typed.strip(), *one.marks)).strip()) for seq, one in said if one is not None)
            return [(seq, text) for seq, text in told if text]
        case "answers":
            return [(entry.seq, text) for entry in entries if (text := _answer(entry))]
        case "errors":
            return _errors(entries)
        case "files":
            return _files(entries)
    if "/" in scope or "." in scope:
        return list(_uses_of(entries, scope))
    raise ValueError(
        f"no such scope: {one_line(scope, 60)!r}; the scopes are {', '.join(scopes)}, turn 12, or a file's path"
    )


def turn_in(scope: str) -> int:
    """The message that a scope such as `turn 12` names, or 0."""
    match = _TURN.fullmatch(scope)
    return int(match[1]) if match else 0


def lines_of_turn(entries: Iterable[Entry]) -> list[Listed]:
    """One line for each message: its text, then its calls."""
    found = []
    for entry in entries:
        calls = "; ".join(_call_line(call) for call in entry.message.tool_calls)
        text = " ".join(entry.message.told.split())
        if text or calls:
            found.append((entry.seq, " → ".join(part for part in (text, calls) if part)))
    return found


def _answer(entry: Entry) -> str:
    message = entry.message
    return message.told.strip() if message.role == "assistant" and not message.tool_calls else ""


def _errors(entries: Iterable[Entry]) -> list[Listed]:
    """Failed calls that have not succeeded since, with the lines that say why."""
    open_calls: dict[str, ToolCall] = {}
    failed: dict[str, Listed] = {}
    for entry in entries:
        message = entry.message
        open_calls.update((call.id, call) for call in message.tool_calls)
        if message.role != "tool":
            continue
        call = open_calls.pop(message.tool_call_id, None)
        name = _call_line(call) if call else f"message {entry.seq}"
        failed.pop(name, None)
        if message.is_error:
            failed[name] = (entry.seq, f"{name}: {excerpt(message.text.strip(), ERROR_TOKENS)}")
    return list(failed.values())


def _files(entries: Iterable[Entry]) -> list[Listed]:
    """One line for each file that a tool read or changed, at its last use; the file that was used last comes last."""
    uses: dict[str, tuple[int, int, int]] = {}
    for entry in entries:
        for call in entry.message.tool_calls:
            if use := file_use(call):
                reads, changes, _ = uses.pop(use.path, (0, 0, 0))
                uses[use.path] = (reads + (not use.is_write), changes + use.is_write, entry.seq)
    return [
        (seq, f"{path}: " + ", ".join(f"{what} {n}×" for what, n in (("changed", changes), ("read", reads)) if n))
        for path, (reads, changes, seq) in uses.items()
    ]


def _uses_of(entries: Iterable[Entry], path: str) -> Iterator[Listed]:
    """The calls that read or changed a file."""
    path = normpath(path)
    for entry in entries:
        for call in entry.message.tool_calls:
            use = file_use(call)
            if use and (use.path == path or use.path.endswith(f"/{path}") or path.endswith(f"/{use.path}")):
                lines = f" lines {use.first_line}-{use.last_line or ''}" if use.first_line > 1 or use.last_line else ""
                yield entry.seq, f"{call.name} {use.path}{lines}"


def _call_line(call: ToolCall) -> str:
    return f"{call.name} {one_line(main_argument(call), MAX_CALL_CHARS)}".strip()
