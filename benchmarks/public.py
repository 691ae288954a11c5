"""Public benchmarks of long conversations, read from where the user has put them: python -m benchmarks --data DIR

Nothing of them is in the repository. For each question its data names the messages that answer it. Measured is whether
all of these can still be read, word for word, after the conversation was compacted once, and whether nca's recall finds
them.

LoCoMo               github.com/snap-research/locomo (CC BY-NC 4.0): an array of conversations, or one in each file
LongMemEval          github.com/xiaowu0162/LongMemEval (MIT): an array of questions, each with a conversation of its own
lost-in-compaction   github.com/profff/lost-in-compaction (research use): a conversation in NAME.json, put together from
                     LongMemEval's, and NAME_meta.json with its questions; measured are d40_C1, d60_C1 and d80_C1 of
                     compaction_v5_R4_20260224_1353/contexts, of which 5% were summarized (these questions do not count)
"""

from __future__ import annotations

import json
import re
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.asking import ask, packed
from benchmarks.comparison import SUMMARY, VARIANTS, Variant, limits, named
from benchmarks.environments import Environment
from benchmarks.judge import SLACK
from benchmarks.questions import Question
from benchmarks.recall import filled, searched
from benchmarks.stated import shown
from benchmarks.summed import label_of, table
from benchmarks.tokens import tokens
from nca.sessions import Store
from nca.wire import message_from_dict

Row = dict[str, Any]
Figures = Mapping[str, Any]
WINDOWS = (8_000, 16_000, 32_000)
TIMES_BUDGET = 3
"""A conversation is compacted in the largest window whose budget it fills so often."""
MOST_CONVERSATIONS = 50
"""LongMemEval has 500, each with its own 100,000 tokens."""
NO_ANSWER = 5
"""LoCoMo's category of questions that the conversation does not answer."""
HITS = 10
OWN = ("nca", "extract")
RECALL, BOTH = "nca's recall, all messages needed", "nca's view or recall, all messages needed"
_PLACE = re.compile(r"D\d+:\d+")
_SESSION = re.compile(r"session_(\d+)")
_META = "_meta"
_FILES = (
    "LoCoMo (locomo10.json), LongMemEval (longmemeval_s.json) or lost-in-compaction (d40_C1.json, d40_C1_meta.json)"
)
_ROLES = ("user", "assistant")
_NO_ROLES = dict.fromkeys(_ROLES, (0, 0))


@dataclass(frozen=True, slots=True)
class Conversation:
    """Messages, and questions with the places (from 0) of all messages that are needed to answer."""

    name: str
    rows: list[Row]
    questions: list[tuple[str, frozenset[int]]]

    @property
    def window_tokens(self) -> int:
        size = tokens(self.rows)
        return max((one for one in WINDOWS if size >= TIMES_BUDGET * limits(one)["budget_tokens"]), default=WINDOWS[0])


def conversations_in(folder: Path) -> dict[str, list[Conversation]]:
    """By the name of the benchmark. Raises SystemExit where the folder has none of them."""
    if not folder.is_dir():
        raise SystemExit(f"--data {folder}: there is no such folder; put the files of {_FILES} there.")
    found: dict[str, list[Conversation]] = {}
    for path in sorted(folder.rglob("*.json")):
        if path.stem.endswith(_META):
            continue
        name, conversations = _read(path)
        if not conversations:
            print(f"{path}: none of {_FILES}; it is left out.", flush=True)
        found.setdefault(name, []).extend(conversations)
    found.pop("", None)
    if not found:
        raise SystemExit(f"--data {folder}: it has no file of {_FILES}.")
    return found


def _read(path: Path) -> tuple[str, list[Conversation]]:
    """What the file is, by its keys; "" where it is neither."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        items = data if isinstance(data, list) else [data]
        if "haystack_sessions" in items[0]:
            spread = items[:: -(-len(items) // MOST_CONVERSATIONS)]
            return "LongMemEval", [one for item in spread if (one := _longmemeval(item)).questions]
        if "qa" in items[0]:
            return "LoCoMo", [_locomo(item, f"{path.stem} {number}") for number, item in enumerate(items, 1)]
        if (meta := path.with_stem(f"{path.stem}{_META}")).is_file():
            facts = json.loads(meta.read_text(encoding="utf-8"))["facts"]
            return "lost-in-compaction", [_lost_in_compaction(items, facts, path.stem)]
    except (ValueError, KeyError, IndexError, TypeError, AttributeError):
        pass
    return "", []


def _locomo(item: Row, name: str) -> Conversation:
    talk = item.get("conversation", item)
    numbers = sorted(int(found[1]) for key in talk if (found := _SESSION.fullmatch(key)) and talk[key])
    rows: list[Row] = []
    places: dict[str, int] = {}
    begins = talk[f"session_{numbers[0]}"][0]["speaker"]
    for number in numbers:
        for turn in talk[f"session_{number}"]:
            places[turn["dia_id"]] = len(rows)
            photo = f" [photo: {turn['blip_caption']}]" if turn.get("blip_caption") else ""
            text = f"[{talk.get(f'session_{number}_date_time', '')}] {turn['speaker']}: {turn.get('text', '')}{photo}"
            rows.append({"role": "user" if turn["speaker"] == begins else "assistant", "content": text})
    questions = []
    for one in item["qa"]:
        named_places = _PLACE.findall(" ".join(one.get("evidence") or ()))
        needed = frozenset(places[place] for place in named_places if place in places)
        if needed and one.get("category") != NO_ANSWER:
            questions.append((str(one["question"]), needed))
    return Conversation(name, rows, questions)


def _longmemeval(item: Row) -> Conversation:
    """Without questions where it has no answer, or no message is marked to have it."""
    rows: list[Row] = []
    needed = []
    for when, session in zip(item["haystack_dates"], item["haystack_sessions"], strict=False):
        for number, turn in enumerate(session):
            if turn.get("has_answer"):
                needed.append(len(rows))
            date = f"[{when}] " if not number else ""
            rows.append({"role": turn["role"], "content": f"{date}{turn['content']}"})
    is_open = str(item["question_id"]).endswith("_abs") or not needed
    return Conversation(str(item["question_id"]), rows, [] if is_open else [(item["question"], frozenset(needed))])


def _lost_in_compaction(rows: list[Row], facts: Sequence[Row], name: str) -> Conversation:
    """The answer of a question is the first message of its place that has all its keywords; without one, it is open."""
    questions = []
    for fact in facts:
        words = [str(word).lower() for word in fact["keywords"]]
        for place in range(fact["message_start"], fact["message_end"] + 1):
            if not fact["compacted"] and all(word in rows[place]["content"].lower() for word in words):
                questions.append((str(fact["question"]), frozenset({place})))
                break
    return Conversation(name, rows, questions)


def measured(
    environments: Mapping[str, Environment],
    found: Mapping[str, Sequence[Conversation]],
    scratch: Path,
    variants: Sequence[Variant] = VARIANTS,
) -> Iterator[Row]:
    """For each benchmark a row for each program, one for nca's recall, and one for its view and recall together."""
    for data, conversations in found.items():
        cases = []
        for number, one in enumerate(conversations):
            path = packed(one.rows, scratch / f"{data}-{number}.json")
            cases.append({"file": str(path), "summary": SUMMARY, **limits(one.window_tokens)})
        questions = sum(len(one.questions) for one in conversations)
        sizes = sorted({one.window_tokens for one in conversations})
        head = {"data": data, "conversations": len(conversations), "questions": questions, "windows": sizes}
        for variant in variants:
            if environments[variant.peer].is_ready:
                task = {"op": "compact", "variant": variant.name}
                answers = ask(environments[variant.peer], task, cases)
                yield {**head, **named(variant), **_readable(conversations, cases, answers)}
                if (variant.peer, variant.name) == OWN:
                    hits = _recalled(conversations)
                    views = [_kept(one, answer) for one, answer in zip(conversations, answers, strict=True)]
                    for label, seen in ((RECALL, [set()] * len(views)), (BOTH, views)):
                        yield {**head, "peer": "nca", "label": label, "found": _answered(conversations, seen, hits)}


def _readable(conversations: Sequence[Conversation], cases: Sequence[Row], answers: Sequence[Row]) -> Row:
    """How many questions can be answered, and of those with all answers by one role; how full the target is."""
    by_role = {role: [0, 0] for role in _ROLES}
    found = met = 0
    fills = []
    for one, case, answer in zip(conversations, cases, answers, strict=True):
        done = "error" not in answer
        if done:
            fills.append(tokens(answer["messages"]) / case["target_tokens"])
            met += fills[-1] <= SLACK
        kept = _kept(one, answer)
        for _, needed in one.questions:
            is_found = needed <= kept
            found += is_found
            roles = {one.rows[place]["role"] for place in needed}
            if len(roles) == 1:
                pair = by_role[roles.pop()]
                pair[0] += is_found
                pair[1] += 1
    errors = sorted({one["error"] for one in answers if "error" in one})
    return {"found": found, "by_role": by_role, "fill": statistics.mean(fills or [0]), "met": met, "errors": errors}


def _plain(text: str) -> str:
    return " ".join(text.split())


def _kept(one: Conversation, answer: Row) -> set[int]:
    """The places of the messages that can be read word for word."""
    text = _plain(shown(answer["messages"])) if "error" not in answer else ""
    return {place for place, row in enumerate(one.rows) if text and _plain(row["content"]) in text}


def _answered(
    conversations: Sequence[Conversation], views: Sequence[set[int]], hits: Sequence[Sequence[set[int]]]
) -> int:
    """Questions whose messages are all in the view or among the first hits of a search for them."""
    return sum(
        needed <= view | found
        for one, view, of_one in zip(conversations, views, hits, strict=True)
        for (_, needed), found in zip(one.questions, of_one, strict=True)
    )


def _recalled(conversations: Sequence[Conversation]) -> list[list[set[int]]]:
    """Of each conversation and question, the places of the first hits of a search."""
    found: list[list[set[int]]] = []
    with Store.open(None) as store:
        ids = filled(store, [[message_from_dict(row) for row in one.rows] for one in conversations])
        search = searched(store, ids, "session")
        for number, one in enumerate(conversations):
            found.append([])
            for text, needed in one.questions:
                places, _ = search(Question("", text, frozenset((number, place + 1) for place in needed)))
                found[-1].append({seq - 1 for _, seq in places[:HITS]})
    return found


def public(figures: Figures) -> Iterator[str]:
    """The page's section; nothing where there were no data."""
    rows = figures.get("public")
    if not rows:
        return
    yield "## Public benchmarks"
    yield (
        "Conversations of [LoCoMo](https://github.com/snap-research/locomo) and"
        " [lost-in-compaction](https://github.com/profff/lost-in-compaction), which has put together its own from"
        " [LongMemEval](https://github.com/xiaowu0162/LongMemEval); the docstring of `benchmarks/public.py` names the"
        " files (`python -m benchmarks --data DIR --only public`). Each is compacted once to half of the budget. A"
        " question counts where all messages that answer it can be read word for word; its answer may be the user's or"
        " the assistant's, and in LoCoMo, where two people talk, the first one is the user. No program that keeps to"
        " its target can keep most of them: a conversation is several times larger. *Of the target*: the size of what"
        " is left. *Recall* searches the whole log once, for the question: all these messages must be among its first"
        f" {HITS} hits; for *view or recall*, each in the view or among these hits. The newest messages of"
        " lost-in-compaction are filling and answer nothing, so who keeps only the newest has no answer."
    )
    yield (
        "Not measured, since their data are on Hugging Face, which could not be reached: LongMemEval itself (which can"
        " be read) and MemoryAgentBench."
    )
    for data in dict.fromkeys(row["data"] for row in rows):
        of_data = [row for row in rows if row["data"] == data]
        first = of_data[0]
        windows = ", ".join(f"{one:,}" for one in first["windows"])
        asked = f"{first['conversations']} conversations, {first['questions']} questions"
        yield f"{data}: {asked}, windows of {windows} tokens."
        head = ("", "questions", "answered by the user", "by the assistant", "of the target", "target met")
        yield table(head, [_cells(row) for row in of_data])


def ahead(figures: Figures) -> Iterator[tuple[str, str, str, str, bool]]:
    """Where another program keeps more than nca: what, nca's figure, the other's, why, and whether it meets as many
    targets."""
    rows = [row for row in figures.get("public") or () if "has_model" in row]
    for own in [row for row in rows if row["label"] == "nca"]:
        for other in rows:
            is_beside = (other["data"], other["has_model"]) == (own["data"], own["has_model"])
            if is_beside and other["peer"] != "nca" and other["found"] > own["found"]:
                is_missed = other["met"] < own["met"]
                missed = f" but meets {other['met']} of {other['conversations']} targets (nca: {own['met']})"
                theirs = " ".join(_cells(other)[:2]) + missed * is_missed
                what = f"what questions of {own['data']} need{', with a summary' if own['has_model'] else ''}"
                of_user, of_assistant = _cells(own)[2:4]
                why = f"nca keeps the user's words first: {of_user} of their answers, {of_assistant} of the assistant's"
                yield what, _cells(own)[1], theirs, why, not is_missed


def _cells(row: Row) -> tuple[str, ...]:
    met = f"{row['met']} of {row['conversations']}" if "met" in row else "–"
    failed = f" ({'; '.join(row['errors'])})" if row.get("errors") else ""
    roles = [f"{100 * found / due:.1f}%" if due else "–" for found, due in row.get("by_role", _NO_ROLES).values()]
    fill = f"{row['fill']:.2f}" if "fill" in row else "–"
    return label_of(row), f"{100 * row['found'] / row['questions']:.1f}%{failed}", *roles, fill, met
