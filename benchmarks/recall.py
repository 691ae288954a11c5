"""Measure recall: how often a search shows the message that answers a question, and how long it takes.

Weights were chosen on one half of the questions; what is printed is the other half. The baseline is FTS5 as it comes:
porter, bm25, the question's words joined by OR.
"""

from __future__ import annotations

import random
import re
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import apsw

import nca
from benchmarks.extractors import facts
from benchmarks.peers.side import Row, plain_row, text_of
from benchmarks.questions import Question, questions_of, sessions_in
from benchmarks.talks import talks, talks_in_languages
from nca.context.tokens import text_tokens
from nca.messages import Message
from nca.sessions import Store
from nca.sessions.passages import plain_text
from nca.tools.recall import MAX_ANSWER_TOKENS, answer
from nca.wire import message_from_dict

Place = tuple[int, int]
Found = Callable[[Question], tuple[list[Place], list[int]]]
"""Messages and sessions that a question finds, best first; sessions count from 0."""

MESSAGES = 200_000
TIMED = 300
FUZZED = 10_000
SHOWN = 10


def recall(folder: Path) -> Iterator[str]:
    """Lines of figures, of the transcripts in `folder` and of invented conversations."""
    transcripts = sessions_in(folder)
    for name, (sessions, questions) in (
        ("transcripts", (transcripts, questions_of(transcripts))),
        ("invented talks", talks()),
    ):
        held_out = [one for one in questions if one.is_held_out]
        yield f"recall on {name}: {len(held_out)} questions held out, {len(sessions)} sessions in one store"
        with Store.open(None) as store:
            ids = filled(store, sessions)
            for scope in ("all", "session"):
                yield f"  {scope}: " + line_of(held_out, sessions, searched(store, ids, scope))
                yield f"  {scope}, plain FTS5: " + line_of(held_out, sessions, _plain(sessions, scope))
            if name == "transcripts":
                kinds = sorted({one.kind for one in held_out})
                for kind in kinds:
                    of_kind = [one for one in held_out if one.kind == kind]
                    yield f"  all, {kind}: " + line_of(of_kind, sessions, searched(store, ids, "all"))
    yield from _languages()
    yield from _times(transcripts)


def recalled(rows: Sequence[Row], window_tokens: int) -> Row:
    """Facts in view, and with search: a fact is found where one of the first ten hits holds it."""
    wanted = [fact for kind, found in facts(rows).items() if kind != "user turns" for fact in found]
    view = nca.compact(list(rows), context_window=window_tokens).messages
    text = "\n".join(text_of(row) for row in view)
    lost = [fact for fact in wanted if fact not in text]
    with Store.open(None) as store, store.create(directory="/", model="m") as session:
        session.log.append([message_from_dict(plain_row(row)) for row in rows])
        found = sum(any(fact in text_of(rows[hit.seq - 1]) for hit in session.search(fact)[:SHOWN]) for fact in lost)
    return {"facts": len(wanted), "in_view": len(wanted) - len(lost), "with_search": len(wanted) - len(lost) + found}


def _languages() -> Iterator[str]:
    """Recall in a chat of each language; no weight was chosen on these questions."""
    sessions, questions = talks_in_languages()
    yield f"recall in {len(sessions)} languages: {len(questions)} questions, in the session"
    with Store.open(None) as store:
        ids = filled(store, sessions)
        for language in ("", *dict.fromkeys(one.kind for one in questions)):
            asked = [one for one in questions if language in ("", one.kind)]
            yield f"  {language or 'all'}: " + line_of(asked, sessions, searched(store, ids, "session"))
        yield "  all, plain FTS5: " + line_of(questions, sessions, _plain(sessions, "session"))


def filled(store: Store, sessions: Sequence[Sequence[Message]]) -> list[str]:
    ids = []
    for messages in sessions:
        with store.create(directory="/", model="m") as session:
            session.log.append(messages)
            ids.append(session.info.id)
    return ids


def searched(store: Store, ids: Sequence[str], scope: str) -> Found:
    number = {id: place for place, id in enumerate(ids)}

    def found(question: Question) -> tuple[list[Place], list[int]]:
        if scope == "all":
            hits = store.search(question.text)
            sessions = [number[hit.session] for hit in store.search_sessions(question.text)]
        else:
            with store.open_session(ids[min(question.evidence)[0]], read_only=True) as session:
                hits, sessions = session.search(question.text), []
        return [(number[hit.session], hit.seq) for hit in hits], sessions

    return found


def _plain(sessions: Sequence[Sequence[Message]], scope: str) -> Found:
    connection = apsw.Connection(":memory:")
    connection.execute("CREATE VIRTUAL TABLE log USING fts5 (text, place UNINDEXED, tokenize = 'porter unicode61')")
    for number, messages in enumerate(sessions):
        rows = [(plain_text(message), f"{number} {seq}") for seq, message in enumerate(messages, 1)]
        connection.executemany("INSERT INTO log VALUES (?, ?)", rows)

    def found(question: Question) -> tuple[list[Place], list[int]]:
        wanted = " OR ".join(f'"{word}"' for word in re.findall(r"\w+", question.text))
        only = f"{min(question.evidence)[0]} *" if scope == "session" else "*"
        sql = "SELECT place FROM log WHERE log MATCH ? AND place GLOB ? ORDER BY rank LIMIT 300"
        places = [tuple(map(int, place.split())) for (place,) in connection.execute(sql, (wanted, only))]
        sessions_found = list(dict.fromkeys(place[0] for place in places))[:10] if scope == "all" else []
        return [(place[0], place[1]) for place in places[:10]], sessions_found

    return found


def line_of(questions: Sequence[Question], sessions: Sequence[Sequence[Message]], found: Found) -> str:
    turns = [_turns(messages) for messages in sessions]
    right: dict[str, list[float]] = defaultdict(list)
    for question in questions:
        places, of_sessions = found(question)
        evidence = question.evidence
        for count in (1, 5, 10):
            right[f"message@{count}"].append(bool(evidence & set(places[:count])))
        right["MRR"].append(max((1 / rank for rank, place in enumerate(places, 1) if place in evidence), default=0))
        answered = {(session, turns[session][seq]) for session, seq in evidence}
        shown = {(session, turns[session][seq]) for session, seq in places}
        beside = {(session, seq + step) for session, seq in places for step in (-1, 0, 1)}
        right["turn@10"].append(bool(answered & shown))
        right["turn or beside@10"].append(bool(answered & shown or evidence & beside))
        if of_sessions:
            right["session@10"].append(bool({session for session, _ in evidence} & set(of_sessions)))
    return " · ".join(f"{name} {100 * sum(values) / len(values):.1f}%" for name, values in right.items())


def _turns(messages: Sequence[Message]) -> list[int]:
    """The turn of each seq; there is no seq 0."""
    turns = [0]
    for message in messages:
        turns.append(turns[-1] + (message.role == "user"))
    return turns


def _times(transcripts: Sequence[Sequence[Message]]) -> Iterator[str]:
    """Latency in a large store, on disk, of words as they are in the transcripts; and what fuzzed questions do."""
    chance = random.Random(3)
    words = [word for messages in transcripts for message in messages for word in message.text[:3_000].split()]
    questions = [one.text for one in chance.sample(questions_of(transcripts), TIMED)]
    with tempfile.TemporaryDirectory() as folder, Store.open(Path(folder) / "sessions.db") as store:
        ids = []
        for _ in range(MESSAGES // 10_000):
            with store.create(directory="/", model="m") as session:
                session.log.append([_said(place, words, chance) for place in range(10_000)])
                ids.append(session.info.id)
        with store.open_session(ids[0], read_only=True) as session:
            for name, search in (("all", store.search), ("session", session.search)):
                times = [_seconds(lambda text=text, search=search: search(text)) for text in questions]
                yield f"search at {MESSAGES:,} messages, {name}: {_percentiles(times)}"
        times = [_seconds(lambda text=text: store.search_sessions(text)) for text in questions]
        yield f"search at {MESSAGES:,} messages, sessions: {_percentiles(times)}"
        longest = max(text_tokens(answer(store.search(text))[0]) for text in questions)
        yield f"longest answer of recall: {longest:,} tokens of {MAX_ANSWER_TOKENS:,}"
    with Store.open(None) as store:
        filled(store, transcripts[:5])
        signs = "\"*()^:-+{}[]\\'\0\ud800 \n%;漢字éß" + "".join(map(chr, range(0x20, 0x7F)))
        for _ in range(FUZZED):
            store.search("".join(chance.choices(signs, k=chance.randint(0, 40))), 3)
        yield f"{FUZZED:,} fuzzed questions: 0 errors"


def _said(place: int, words: Sequence[str], chance: random.Random) -> Message:
    return Message("assistant" if place % 2 else "user", " ".join(chance.choices(words, k=chance.randint(5, 120))))


def _seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _percentiles(times: Sequence[float]) -> str:
    return f"p50 {statistics.median(times) * 1e3:.1f} ms · p95 {statistics.quantiles(times, n=20)[-1] * 1e3:.1f} ms"
